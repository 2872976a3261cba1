#include "formats/pickle/graph.h"

namespace tensordiff::pickle {

Graph::Graph(Bytes pickle) : pickle_(std::move(pickle)) {
  add(Kind::none);
  add(Kind::boolean, {}, 1);
  add(Kind::boolean, {}, 0);
  add(Kind::tuple);
}

const Call* Graph::call(NodeId id) const {
  const Node& node = nodes_[id];
  return node.kind == Kind::call ? &calls_[static_cast<std::size_t>(node.number)] : nullptr;
}

std::optional<int64_t> Graph::integer(NodeId id) const {
  const Node& node = nodes_[id];
  if (node.kind != Kind::integer && node.kind != Kind::boolean) return std::nullopt;
  return node.number;
}

std::optional<double> Graph::number(NodeId id) const {
  if (kind(id) == Kind::real) return real(id);
  const std::optional<int64_t> whole = integer(id);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

std::optional<std::string_view> Graph::string(NodeId id) const {
  const Node& node = nodes_[id];
  if (node.kind != Kind::text && node.kind != Kind::bytes) return std::nullopt;
  return node.text;
}

std::string_view Graph::global(NodeId id) const {
  const Node& node = nodes_[id];
  return node.kind == Kind::global ? node.text : std::string_view();
}

std::optional<NodeId> Graph::find(NodeId dict, std::string_view key) const {
  if (kind(dict) != Kind::dict) return std::nullopt;
  const std::span<const NodeId> pairs = items(dict);
  for (std::size_t i = pairs.size(); i >= 2; i -= 2)
    if (string(pairs[i - 2]) == key) return pairs[i - 1];
  return std::nullopt;
}

NodeId Graph::add(Kind kind, std::string_view text, int64_t number) {
  nodes_.push_back({kind, number, text, {}});
  return static_cast<NodeId>(nodes_.size() - 1);
}

uint64_t Graph::structure_bytes() const {
  return nodes_.size() * sizeof(Node) + calls_.size() * sizeof(Call) + edges_ * sizeof(NodeId) +
         kept_bytes_;
}

NodeId Graph::add(Kind kind, std::vector<NodeId> items) {
  edges_ += items.size();
  nodes_.push_back({kind, 0, {}, std::move(items)});
  return static_cast<NodeId>(nodes_.size() - 1);
}

NodeId Graph::add_call(Call call) {
  ++edges_;  // Its arguments.
  calls_.push_back(std::move(call));
  return add(Kind::call, {}, static_cast<int64_t>(calls_.size() - 1));
}

NodeId Graph::add_global(std::string_view module, std::string_view name) {
  std::string full = std::string(module) + "." + std::string(name);
  if (const auto known = global_by_name_.find(full); known != global_by_name_.end())
    return known->second;
  const std::string_view kept = keep(std::move(full));
  const NodeId id = add(Kind::global, kept);
  globals_.push_back(id);
  global_by_name_.emplace(kept, id);
  return id;
}

void Graph::add_items(NodeId container, std::span<const NodeId> items) {
  Node& node = nodes_[container];
  std::vector<NodeId>& into =
      node.kind == Kind::call ? calls_[static_cast<std::size_t>(node.number)].appended : node.items;
  into.insert(into.end(), items.begin(), items.end());
  edges_ += items.size();
}

void Graph::add_pairs(NodeId dict, std::span<const NodeId> pairs) {
  Node& node = nodes_[dict];
  std::vector<NodeId>& into =
      node.kind == Kind::call ? calls_[static_cast<std::size_t>(node.number)].pairs : node.items;
  into.insert(into.end(), pairs.begin(), pairs.end());
  edges_ += pairs.size();
}

void Graph::set_state(NodeId call, NodeId state) {
  ++edges_;
  calls_[static_cast<std::size_t>(nodes_[call].number)].state = state;
}

std::string_view Graph::keep(std::string text) {
  kept_bytes_ += sizeof(text) + text.size();
  return kept_.emplace_back(std::move(text));
}

}  // namespace tensordiff::pickle
