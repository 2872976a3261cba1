// The opcodes that build containers, and those that would call something and here only note it.

#include "base/text.h"
#include "formats/pickle/machine.h"

namespace tensordiff::pickle {

template <Kind kKind>
Machine::Step Machine::from_mark() {
  std::vector<NodeId> items = TRY(pop_to_mark());
  if (kKind == Kind::dict && items.size() % 2 != 0) return Error("a key without a value");
  return push_new(Kind(kKind), std::move(items));
}
template Machine::Step Machine::from_mark<Kind::tuple>();
template Machine::Step Machine::from_mark<Kind::list>();
template Machine::Step Machine::from_mark<Kind::dict>();
template Machine::Step Machine::from_mark<Kind::set>();

template <std::size_t kCount>
Machine::Step Machine::tuple_of() {
  std::vector<NodeId> items(kCount);
  for (std::size_t i = kCount; i-- > 0;) items[i] = TRY(pop_one());
  return push_new(Kind::tuple, std::move(items));
}
template Machine::Step Machine::tuple_of<1>();
template Machine::Step Machine::tuple_of<2>();
template Machine::Step Machine::tuple_of<3>();

// A container takes items, a call notes them, and a bare name swallows them: it has no values that
// anybody could read. On anything else Python would fail too.
Machine::Step Machine::add_items(std::vector<NodeId> items, Kind container) {
  const NodeId target = TRY(top());
  const Kind kind = graph_.kind(target);
  if (kind == Kind::global || kind == Kind::persistent) return {};
  if (kind != Kind::call && kind != container) return Error("the target takes no items");
  graph_.add_items(target, items);
  return {};
}

Machine::Step Machine::add_pairs(std::vector<NodeId> pairs) {
  if (pairs.size() % 2 != 0) return Error("a key without a value");
  const NodeId target = TRY(top());
  const Kind kind = graph_.kind(target);
  if (kind == Kind::global || kind == Kind::persistent) return {};
  if (kind != Kind::call && kind != Kind::dict) return Error("the target takes no keys");
  graph_.add_pairs(target, pairs);
  return {};
}

Machine::Step Machine::append() { return add_items({TRY(pop_one())}, Kind::list); }
Machine::Step Machine::appends() { return add_items(TRY(pop_to_mark()), Kind::list); }
Machine::Step Machine::additems() { return add_items(TRY(pop_to_mark()), Kind::set); }
Machine::Step Machine::setitems() { return add_pairs(TRY(pop_to_mark())); }

Machine::Step Machine::setitem() {
  const NodeId value = TRY(pop_one());
  const NodeId key = TRY(pop_one());
  return add_pairs({key, value});
}

Machine::Step Machine::global() {
  const std::string_view module = TRY(line());
  const std::string_view name = TRY(line());
  if (module.size() + name.size() > kNameBytesMax)
    return Error("a name of more than {} bytes", kNameBytesMax);
  return push(graph_.add_global(module, name));
}

Machine::Step Machine::stack_global() {
  const NodeId name = TRY(pop_one());
  const NodeId module = TRY(pop_one());
  const std::optional<std::string_view> module_text = graph_.string(module);
  const std::optional<std::string_view> name_text = graph_.string(name);
  if (!module_text || !name_text) return Error("module and name are not both strings");
  if (module_text->size() + name_text->size() > kNameBytesMax)
    return Error("a name of more than {} bytes", kNameBytesMax);
  return push(graph_.add_global(*module_text, *name_text));
}

Machine::Step Machine::push_call(NodeId callee, NodeId args, bool makes_object) {
  return push(graph_.add_call({callee, args, makes_object, std::nullopt, {}, {}}));
}

Machine::Step Machine::reduce() {
  const NodeId args = TRY(pop_one());
  return push_call(TRY(pop_one()), args, false);
}

Machine::Step Machine::newobj() {
  const NodeId args = TRY(pop_one());
  return push_call(TRY(pop_one()), args, true);
}

Machine::Step Machine::newobj_ex() {
  TRY(pop_one());  // Keyword arguments: no data constructor takes any.
  return newobj();
}

Machine::Step Machine::inst() {
  TRY(global());
  const NodeId callee = TRY(pop_one());
  const NodeId args = graph_.add(Kind::tuple, TRY(pop_to_mark()));
  return push_call(callee, args, true);
}

Machine::Step Machine::obj() {
  std::vector<NodeId> items = TRY(pop_to_mark());
  if (items.empty()) return Error("no class between the mark and the top");
  const NodeId callee = items.front();
  items.erase(items.begin());
  return push_call(callee, graph_.add(Kind::tuple, std::move(items)), true);
}

Machine::Step Machine::build() {
  const NodeId state = TRY(pop_one());
  const NodeId target = TRY(top());
  const Kind kind = graph_.kind(target);
  if (kind == Kind::call) graph_.set_state(target, state);
  if (kind == Kind::call || kind == Kind::global || kind == Kind::persistent) return {};
  return Error("the target takes no state");
}

Machine::Step Machine::persid() {
  const std::string_view id = TRY(line());
  return push_new(Kind::persistent, {graph_.add(Kind::text, id)});
}

Machine::Step Machine::binpersid() { return push_new(Kind::persistent, {TRY(pop_one())}); }

}  // namespace tensordiff::pickle
