// What a pickle says, as a graph of plain values.
//
// Numbers, strings and containers are nodes. So is every call that unpickling would make: it is
// written down (who would be called, with what) and never made. Nodes live in one array and refer
// to each other by index, so a pickle may share values or contain itself, and however deep it
// nests, letting go of it is freeing an array.

#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/byte_source.h"

namespace tensordiff::pickle {

using NodeId = uint32_t;

enum class Kind : uint8_t {
  none,
  boolean,
  integer,
  big_integer,  // More than 64 bits: two's complement bytes, or the decimal text of protocol 0.
  real,
  text,   // str, as UTF-8.
  bytes,  // bytes, bytearray and the str of Python 2.
  tuple,
  list,
  set,
  dict,        // Items are key, value, key, value ...
  global,      // A name, "module.name". Never looked up.
  call,        // What REDUCE, NEWOBJ, INST or OBJ would have made.
  persistent,  // A value kept outside the pickle; its one item is the id.
};

struct Node {
  Kind kind = Kind::none;
  int64_t number = 0;         // boolean, integer; the bits of a real; the index of a call.
  std::string_view text;      // text, bytes, big_integer, global.
  std::vector<NodeId> items;  // Containers and persistent.
};

// A call that was not made, and what the pickle then does to its result.
struct Call {
  NodeId callee;
  NodeId args;
  bool makes_object;             // NEWOBJ and the like: the callee is a class.
  std::optional<NodeId> state;   // BUILD
  std::vector<NodeId> pairs;     // SETITEMS: key, value, key, value ...
  std::vector<NodeId> appended;  // APPENDS, ADDITEMS
};

// These nodes are in every graph.
inline constexpr NodeId kNone = 0, kTrue = 1, kFalse = 2, kEmptyTuple = 3;

class Graph {
 public:
  explicit Graph(Bytes pickle);

  NodeId root = kNone;
  uint64_t end = 0;  // Where the pickle stopped, in bytes from the start of the file.

  const Bytes& pickle() const { return pickle_; }
  std::size_t size() const { return nodes_.size(); }
  uint64_t edges() const { return edges_; }  // Values in values: each is met once by a whole walk.
  uint64_t structure_bytes() const;          // Memory that all of it takes.
  const std::vector<NodeId>& globals() const { return globals_; }  // Each name once.

  const Node& at(NodeId id) const { return nodes_[id]; }
  Kind kind(NodeId id) const { return nodes_[id].kind; }
  std::span<const NodeId> items(NodeId id) const { return nodes_[id].items; }
  double real(NodeId id) const { return std::bit_cast<double>(nodes_[id].number); }
  const Call* call(NodeId id) const;

  // The value of a node, where it is one of that kind.
  std::optional<int64_t> integer(NodeId id) const;          // An int or a bool.
  std::optional<double> number(NodeId id) const;            // Any of the three.
  std::optional<std::string_view> string(NodeId id) const;  // A str, of Python 2 or 3.
  std::string_view global(NodeId id) const;                 // Empty when it is none.
  // The value of a key of a dict; the last one where a key comes twice.
  std::optional<NodeId> find(NodeId dict, std::string_view key) const;

  // For the machine that fills the graph.
  NodeId add(Kind kind, std::string_view text = {}, int64_t number = 0);
  NodeId add(Kind kind, std::vector<NodeId> items);
  NodeId add_call(Call call);
  NodeId add_global(std::string_view module, std::string_view name);
  void add_items(NodeId container, std::span<const NodeId> items);  // A call notes them.
  void add_pairs(NodeId dict, std::span<const NodeId> pairs);       // A call notes them.
  void set_state(NodeId call, NodeId state);
  std::string_view keep(std::string text);  // Text that is not in the pickle as it stands.

 private:
  Bytes pickle_;
  std::vector<Node> nodes_;
  std::vector<Call> calls_;
  uint64_t edges_ = 0;
  uint64_t kept_bytes_ = 0;
  std::deque<std::string> kept_;
  std::vector<NodeId> globals_;
  std::unordered_map<std::string_view, NodeId> global_by_name_;
};

}  // namespace tensordiff::pickle
