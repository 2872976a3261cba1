// The private folder of what lasts: the database, uploads and the token. One server at a time has
// it.

#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace tensordiff::serve {

class StateFolder {
 public:
  // The folder named, or that of the user: $XDG_STATE_HOME/tensordiff. It is made where it is not
  // there; the mode of one that is there stays as it is. While another server has it, or where the
  // user has none that can be written, a folder of our own that ends with us. A folder that is
  // named and cannot be used is an error.
  static Result<StateFolder> open(const std::string& named);
  StateFolder(StateFolder&& other) noexcept
      : path_(std::move(other.path_)),
        lock_(std::exchange(other.lock_, -1)),
        why_passing_(std::move(other.why_passing_)) {}
  StateFolder& operator=(StateFolder&&) = delete;
  ~StateFolder();

  const std::filesystem::path& path() const { return path_; }
  bool passing() const { return !why_passing_.empty(); }  // It ends with us.
  // "another server has ...": why it does not last.
  const std::string& why_passing() const { return why_passing_; }

  // The secret that a client has to know. The same one as long as the folder lasts and nobody else
  // could read it.
  Result<std::string> token() const;

  // A page that leads a browser to the address. Its path can stand on a command line, which others
  // on this machine see; the address has the token in it and cannot.
  Result<std::filesystem::path> write_redirect(const std::string& address) const;

 private:
  StateFolder(std::filesystem::path path, int lock, std::string why_passing)
      : path_(std::move(path)), lock_(lock), why_passing_(std::move(why_passing)) {}
  static Result<StateFolder> make_passing(std::string why);

  std::filesystem::path path_;
  int lock_;  // -1: moved from.
  std::string why_passing_;
};

}  // namespace tensordiff::serve
