#include "formats/pickle/machine.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "formats/limits.h"

namespace tensordiff::pickle {
namespace {

constexpr NodeId kUnset = UINT32_MAX;

struct Opcode {
  uint8_t code;
  std::string_view name;
  Machine::Step (Machine::*step)();
};

using M = Machine;
using K = Kind;

// clang-format off
constexpr Opcode kOpcodes[] = {
    {0x80, "PROTO", &M::proto},
    {0x95, "FRAME", &M::frame},
    {'.', "STOP", &M::stop},
    {'(', "MARK", &M::mark},
    {'0', "POP", &M::pop},
    {'1', "POP_MARK", &M::pop_mark},
    {'2', "DUP", &M::dup},

    {'N', "NONE", &M::none},
    {0x88, "NEWTRUE", &M::true_value},
    {0x89, "NEWFALSE", &M::false_value},
    {'I', "INT", &M::int_text},
    {'J', "BININT", &M::int_binary<4>},
    {'K', "BININT1", &M::int_binary<1>},
    {'M', "BININT2", &M::int_binary<2>},
    {'L', "LONG", &M::long_text},
    {0x8a, "LONG1", &M::long_binary<1>},
    {0x8b, "LONG4", &M::long_binary<4>},
    {'F', "FLOAT", &M::float_text},
    {'G', "BINFLOAT", &M::float_binary},
    {'S', "STRING", &M::string_text},
    {'T', "BINSTRING", &M::string_binary<K::bytes, 4>},
    {'U', "SHORT_BINSTRING", &M::string_binary<K::bytes, 1>},
    {'B', "BINBYTES", &M::string_binary<K::bytes, 4>},
    {'C', "SHORT_BINBYTES", &M::string_binary<K::bytes, 1>},
    {0x8e, "BINBYTES8", &M::string_binary<K::bytes, 8>},
    {0x96, "BYTEARRAY8", &M::string_binary<K::bytes, 8>},
    {'V', "UNICODE", &M::unicode_text},
    {'X', "BINUNICODE", &M::string_binary<K::text, 4>},
    {0x8c, "SHORT_BINUNICODE", &M::string_binary<K::text, 1>},
    {0x8d, "BINUNICODE8", &M::string_binary<K::text, 8>},

    {')', "EMPTY_TUPLE", &M::empty_tuple},
    {']', "EMPTY_LIST", &M::empty<K::list>},
    {'}', "EMPTY_DICT", &M::empty<K::dict>},
    {0x8f, "EMPTY_SET", &M::empty<K::set>},
    {'t', "TUPLE", &M::from_mark<K::tuple>},
    {0x85, "TUPLE1", &M::tuple_of<1>},
    {0x86, "TUPLE2", &M::tuple_of<2>},
    {0x87, "TUPLE3", &M::tuple_of<3>},
    {'l', "LIST", &M::from_mark<K::list>},
    {'d', "DICT", &M::from_mark<K::dict>},
    {0x91, "FROZENSET", &M::from_mark<K::set>},
    {'a', "APPEND", &M::append},
    {'e', "APPENDS", &M::appends},
    {'s', "SETITEM", &M::setitem},
    {'u', "SETITEMS", &M::setitems},
    {0x90, "ADDITEMS", &M::additems},

    {'g', "GET", &M::get_text},
    {'h', "BINGET", &M::get<1>},
    {'j', "LONG_BINGET", &M::get<4>},
    {'p', "PUT", &M::put_text},
    {'q', "BINPUT", &M::put<1>},
    {'r', "LONG_BINPUT", &M::put<4>},
    {0x94, "MEMOIZE", &M::memoize},

    {'c', "GLOBAL", &M::global},
    {0x93, "STACK_GLOBAL", &M::stack_global},
    {'R', "REDUCE", &M::reduce},
    {0x81, "NEWOBJ", &M::newobj},
    {0x92, "NEWOBJ_EX", &M::newobj_ex},
    {'i', "INST", &M::inst},
    {'o', "OBJ", &M::obj},
    {'b', "BUILD", &M::build},
    {'P', "PERSID", &M::persid},
    {'Q', "BINPERSID", &M::binpersid},

    // Values that are not in the pickle at all.
    {0x82, "EXT1", &M::refused},
    {0x83, "EXT2", &M::refused},
    {0x84, "EXT4", &M::refused},
    {0x97, "NEXT_BUFFER", &M::refused},
    {0x98, "READONLY_BUFFER", &M::refused},
};
// clang-format on

constexpr std::array<const Opcode*, 256> kByCode = [] {
  std::array<const Opcode*, 256> table = {};
  for (const Opcode& opcode : kOpcodes) table[opcode.code] = &opcode;
  return table;
}();

}  // namespace

Result<Graph> read_pickle(const Bytes& file, uint64_t begin, const Limits& limits) {
  Machine machine(file, begin, limits);
  if (!TRY(machine.run(limits.opcodes_max)))
    return limit_hit("opcodes",
                     fmt::format("the pickle has more than {} opcodes", limits.opcodes_max));
  return std::move(machine).take();
}

bool looks_like_pickle(const Bytes& file) {
  // Before protocol 2 there is no first byte to tell: then its opcodes must speak for it.
  constexpr uint64_t kOpcodesTried = 24;
  const ByteView view = file.view;
  if (view.size() < 2) return false;
  if (view[0] == std::byte{0x80}) return view[1] >= std::byte{2} && view[1] <= std::byte{5};
  return Machine(file, 0, Limits()).run(kOpcodesTried).ok();
}

Machine::Machine(const Bytes& file, uint64_t begin, const Limits& limits)
    : graph_(file), cursor_(file.view), begin_(begin), limits_(limits) {
  cursor_.seek(begin);
}

Result<bool> Machine::run(uint64_t opcodes_max) {
  for (uint64_t count = 0; count < opcodes_max; ++count) {
    const uint64_t at = cursor_.position();
    const uint8_t code = cursor_.u8();
    if (!cursor_.ok()) return Error("byte {}: the pickle ends without STOP", at);
    const Opcode* opcode = kByCode[code];
    if (!opcode) return Error("byte {}: unknown pickle opcode 0x{:02x}", at, code);

    Step step = (this->*opcode->step)();
    if (!cursor_.ok()) return Error("byte {}: {}: the pickle is cut short", at, opcode->name);
    if (step.ok()) step = check_limits();
    if (!step.ok()) return std::move(step).error().in(fmt::format("byte {}: {}", at, opcode->name));
    if (stopped_) return true;
  }
  return false;
}

Result<void> Machine::check_limits() const {
  if (cursor_.position() - begin_ - payload_bytes_ > limits_.pickle_bytes_max)
    return limit_hit("pickle",
                     fmt::format("the pickle is longer than {} bytes", limits_.pickle_bytes_max));
  if (graph_.size() > limits_.values_max)
    return limit_hit("values",
                     fmt::format("the pickle has more than {} values", limits_.values_max));
  if (graph_.structure_bytes() > limits_.structure_bytes_max)
    return limit_hit("structure", fmt::format("the values of the pickle take more than {}",
                                              human_bytes(limits_.structure_bytes_max)));
  if (stack_.size() + marks_.size() > limits_.stack_max)
    return limit_hit("stack", fmt::format("more than {} values on the stack", limits_.stack_max));
  return {};
}

Machine::Step Machine::proto() {
  const unsigned version = cursor_.u8();
  if (version > 5) return Error("protocol {} is not known", version);
  return {};
}

// Frames only help a reader that buffers; their length is nothing to rely on.
Machine::Step Machine::frame() {
  cursor_.u64();
  return {};
}

Machine::Step Machine::stop() {
  graph_.root = TRY(pop_one());
  graph_.end = cursor_.position();
  stopped_ = true;
  return {};
}

Machine::Step Machine::refused() { return Error("refers to a value outside the pickle"); }

Machine::Step Machine::push(NodeId id) {
  stack_.push_back(id);
  return {};
}

Result<NodeId> Machine::top() {
  if (stack_.size() <= floor()) return Error("nothing on the stack");
  return stack_.back();
}

Result<NodeId> Machine::pop_one() {
  const NodeId id = TRY(top());
  stack_.pop_back();
  return id;
}

Result<std::vector<NodeId>> Machine::pop_to_mark() {
  if (marks_.empty()) return Error("no mark on the stack");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<NodeId> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

Machine::Step Machine::mark() {
  marks_.push_back(stack_.size());
  return {};
}

Machine::Step Machine::pop() {
  if (!marks_.empty() && stack_.size() == marks_.back()) {
    marks_.pop_back();
    return {};
  }
  TRY(pop_one());
  return {};
}

Machine::Step Machine::pop_mark() {
  TRY(pop_to_mark());
  return {};
}

Machine::Step Machine::dup() { return push(TRY(top())); }

Machine::Step Machine::recall(uint64_t index) {
  if (index >= memo_.size() || memo_[index] == kUnset)
    return Error("nothing was put in place {} of the memo", index);
  return push(memo_[index]);
}

Machine::Step Machine::remember(uint64_t index) {
  if (index >= limits_.values_max)
    return limit_hit("values",
                     fmt::format("place {} of the memo, of {}", index, limits_.values_max));
  const NodeId id = TRY(top());
  if (index >= memo_.size()) memo_.resize(index + 1, kUnset);
  memo_[index] = id;
  return {};
}

}  // namespace tensordiff::pickle
