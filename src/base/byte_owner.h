// What stands behind Bytes: whoever holds them, and knows whether they can still be trusted.

#pragma once

#include <string>

#include "base/byte_source.h"

namespace tensordiff {

struct ByteOwner {
  ByteOwner() = default;
  ByteOwner(const ByteOwner&) = delete;
  ByteOwner& operator=(const ByteOwner&) = delete;
  virtual ~ByteOwner() = default;
  virtual bool intact() const { return true; }
  // What is wrong with bytes that are not intact.
  virtual std::string damage() const { return "the file was cut short while it was read"; }
  virtual bool remote() const { return false; }  // Whether they come from another machine.
};

// Bytes that are held by an owner. There is no other way to make some, so that intact() may ask it.
Bytes owned_bytes(ByteView view, std::shared_ptr<const ByteOwner> owner);

// What is wrong with bytes that are not intact.
std::string damage_of(const Bytes& bytes);

// Whether bytes come from another machine, so that each look at another place costs a request.
bool is_remote(const Bytes& bytes);

// Whether both are the same place of one file on another machine. Two files there are one when
// their servers give the same hash of their content.
bool same_remote_bytes(const Bytes& a, const Bytes& b);

}  // namespace tensordiff
