// Names for what is found in a pickle: the path to it, joined with dots.

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "formats/pickle/graph.h"
#include "tensor/catalog.h"

namespace tensordiff::pickle {

// A key of a dict as part of a name: text as it is, other values as Python prints them.
std::string key_text(const Graph& graph, NodeId key);

class Path {
 public:
  void enter(std::string key) { keys_.push_back(std::move(key)); }
  void leave() { keys_.pop_back(); }

  std::string plain() const;   // a.b.c
  std::string quoted() const;  // 'a.b'.c: keys with dots in quotes; empty where no key has any.

 private:
  std::vector<std::string> keys_;
};

// Tensors and the two forms of their names. Where several have the same plain name, those with dots
// in their keys get the quoted one.
class NamedTensors {
 public:
  void add(const Path& path, Tensor tensor);
  std::size_t size() const { return tensors_.size(); }
  std::size_t name_bytes() const { return name_bytes_; }
  std::vector<Tensor> take() &&;

 private:
  std::vector<Tensor> tensors_;
  std::unordered_map<std::size_t, std::string> quoted_;  // By place in tensors_.
  std::size_t name_bytes_ = 0;
};

}  // namespace tensordiff::pickle
