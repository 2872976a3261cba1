#include "formats/pickle/named_items.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/pickle/names.h"

namespace tensordiff::pickle {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"name",      "module_name", "layer_name",
                                                    "full_name", "module_path", "tensor_name"};
constexpr std::size_t kPartsMax = 16;  // Of one item.

bool is_tensor(const Rebuilder& rebuilder, NodeId id) {
  const Graph& graph = rebuilder.graph();
  if (graph.kind(id) == Kind::persistent) return rebuilder.is_tensor_id(id);
  if (graph.kind(id) != Kind::call) return false;
  const Meaning meaning = rebuilder.meaning(id);
  return meaning >= Meaning::rebuild_tensor && meaning != Meaning::array_type &&
         meaning != Meaning::array_scalar && meaning != Meaning::array_dtype;
}

// A tensor, or what holds some: a tuple of outputs, a dict of them.
bool holds_tensors(const Rebuilder& rebuilder, NodeId id) {
  if (is_tensor(rebuilder, id)) return true;
  const Kind kind = rebuilder.graph().kind(id);
  if (kind != Kind::tuple && kind != Kind::list && kind != Kind::dict) return false;
  const std::span<const NodeId> items = rebuilder.graph().items(id);
  return std::ranges::any_of(items.first(std::min(items.size(), kPartsMax)),
                             [&](NodeId each) { return is_tensor(rebuilder, each); });
}

struct Part {
  std::string key;
  NodeId value;
};

// The name of an item and what it holds; of no value where it is none of this kind.
struct Item {
  std::string name;
  std::vector<Part> parts;
};

Item in_tuple(const Rebuilder& rebuilder, std::span<const NodeId> items) {
  const Graph& graph = rebuilder.graph();
  Item item;
  if (items.size() < 2 || items.size() > kPartsMax) return item;
  for (const NodeId each : items) {
    const std::optional<std::string_view> text = graph.string(each);
    if (text && item.name.empty()) item.name = key_text(graph, each);
    if (holds_tensors(rebuilder, each)) item.parts.push_back({"", each});
  }
  if (item.parts.size() > 1)
    for (std::size_t i = 0; i < item.parts.size(); ++i) item.parts[i].key = std::to_string(i);
  return item;
}

Item in_dict(const Rebuilder& rebuilder, std::span<const NodeId> pairs) {
  const Graph& graph = rebuilder.graph();
  Item item;
  if (pairs.size() > 2 * kPartsMax) return item;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string_view key = graph.string(pairs[i]).value_or("");
    const bool named = std::ranges::find(kNames, key) != kNames.end();
    if (named && item.name.empty() && graph.string(pairs[i + 1]))
      item.name = key_text(graph, pairs[i + 1]);
    if (holds_tensors(rebuilder, pairs[i + 1]))
      item.parts.push_back({key_text(graph, pairs[i]), pairs[i + 1]});
  }
  if (item.parts.size() == 1) item.parts[0].key.clear();
  return item;
}

Item item_in(const Rebuilder& rebuilder, NodeId id) {
  const Graph& graph = rebuilder.graph();
  if (graph.kind(id) == Kind::tuple || graph.kind(id) == Kind::list)
    return in_tuple(rebuilder, graph.items(id));
  if (graph.kind(id) == Kind::dict) return in_dict(rebuilder, graph.items(id));
  const Call* call = graph.call(id);
  if (!call || rebuilder.meaning(id) > Meaning::reconstructor || !call->state) return {};
  if (graph.kind(*call->state) != Kind::dict) return {};
  return in_dict(rebuilder, graph.items(*call->state));
}

}  // namespace

std::vector<NamedItem> named_items(const Rebuilder& rebuilder, std::span<const NodeId> items) {
  std::vector<Item> all;
  std::unordered_map<std::string, std::size_t> times;
  bool repeated = false;
  for (const NodeId id : items) {
    Item item = item_in(rebuilder, id);
    if (item.name.empty() || item.parts.empty()) return {};
    repeated |= ++times[item.name] > 1;
    all.push_back(std::move(item));
  }
  if (all.size() < 2) return {};
  times.clear();
  std::vector<NamedItem> named;
  for (Item& item : all) {
    const std::size_t time = times[item.name]++;
    const std::string name = repeated ? fmt::format("{}.{}", time, item.name) : item.name;
    for (const Part& part : item.parts)
      named.push_back({part.key.empty() ? name : fmt::format("{}.{}", name, part.key), part.value});
  }
  return named;
}

}  // namespace tensordiff::pickle
