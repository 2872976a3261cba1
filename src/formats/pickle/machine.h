// Reads one pickle into a Graph. Every opcode of protocols 0 to 5 is known; none runs anything.
//
// A pickle is a program for a stack machine. Values are pushed, MARK starts a group, REDUCE and its
// kin would call something: here they only note the call. The memo lets a later opcode push an
// earlier value again. https://github.com/python/cpython/blob/main/Lib/pickletools.py

#pragma once

#include "base/byte_cursor.h"
#include "formats/format.h"
#include "formats/pickle/graph.h"

namespace tensordiff::pickle {

inline constexpr std::size_t kNameBytesMax = 65'536;  // Of a module and a name in it.

// The pickle that starts at `begin`. What follows its STOP is left alone; see Graph::end. The limit
// on the size of a pickle does not count bytes objects: those stay in the file.
Result<Graph> read_pickle(const Bytes& file, uint64_t begin, const Limits& limits);

// Whether the bytes begin like a pickle: its first opcodes follow each other as they should.
bool looks_like_pickle(const Bytes& file);

class Machine {
 public:
  Machine(const Bytes& file, uint64_t begin, const Limits& limits);

  // Runs to STOP, or for at most `opcodes_max` opcodes; says whether STOP was reached.
  Result<bool> run(uint64_t opcodes_max);
  Graph take() && { return std::move(graph_); }

  // One opcode each; the table in machine.cpp says which. Errors do not name the place: run() does.
  using Step = Result<void>;
  Step proto();
  Step frame();
  Step stop();
  Step refused();

  Step mark();
  Step pop();
  Step pop_mark();
  Step dup();

  Step none() { return push(kNone); }
  Step true_value() { return push(kTrue); }
  Step false_value() { return push(kFalse); }
  Step float_binary();
  template <int kBytes>
  Step int_binary();
  template <int kLengthBytes>
  Step long_binary();
  template <Kind kKind, int kLengthBytes>
  Step string_binary();
  Step int_text();
  Step long_text();
  Step float_text();
  Step string_text();
  Step unicode_text();

  template <Kind kKind>
  Step empty() {
    return push_new(Kind(kKind), {});
  }
  Step empty_tuple() { return push(kEmptyTuple); }
  template <Kind kKind>
  Step from_mark();
  template <std::size_t kCount>
  Step tuple_of();
  Step append();
  Step appends();
  Step additems();
  Step setitem();
  Step setitems();

  template <int kBytes>
  Step get();
  template <int kBytes>
  Step put();
  Step get_text();
  Step put_text();
  Step memoize() { return remember(memo_.size()); }

  Step global();
  Step stack_global();
  Step reduce();
  Step newobj();
  Step newobj_ex();
  Step inst();
  Step obj();
  Step build();
  Step persid();
  Step binpersid();

 private:
  Step push(NodeId id);
  Step push_new(Kind kind, std::vector<NodeId> items) {
    return push(graph_.add(kind, std::move(items)));
  }
  Step push_decimal(std::string_view digits);
  Step push_call(NodeId callee, NodeId args, bool makes_object);
  Result<NodeId> pop_one();
  Result<NodeId> top();
  Result<std::vector<NodeId>> pop_to_mark();  // And the mark with it.
  Result<std::string_view> line();
  Step recall(uint64_t index);
  Step remember(uint64_t index);
  Step add_items(std::vector<NodeId> items, Kind container);
  Step add_pairs(std::vector<NodeId> pairs);
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Result<void> check_limits() const;

  Graph graph_;
  ByteCursor cursor_;
  uint64_t begin_;
  Limits limits_;
  uint64_t payload_bytes_ = 0;  // Of bytes objects.
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;  // Heights of the stack.
  std::vector<NodeId> memo_;        // kUnset where nothing was put.
  bool stopped_ = false;
};

}  // namespace tensordiff::pickle
