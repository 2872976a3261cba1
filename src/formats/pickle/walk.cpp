#include "formats/pickle/walk.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "formats/limits.h"
#include "formats/pickle/code.h"
#include "formats/pickle/findings.h"
#include "formats/pickle/named_items.h"
#include "formats/pickle/rebuild.h"

namespace tensordiff::pickle {
namespace {

using Entries = std::vector<std::pair<NodeId, NodeId>>;

class Walker {
 public:
  Walker(Rebuilder& rebuilder, Findings& found)
      : rebuilder_(rebuilder),
        graph_(rebuilder.graph()),
        found_(found),
        met_(rebuilder.graph().size()) {
    found_.edges += graph_.edges();
  }

  void walk(NodeId id);

 private:
  void walk_into(std::string key, NodeId id);
  void walk_items(std::span<const NodeId> items, std::size_t first = 0);
  void walk_list(std::span<const NodeId> items);
  void walk_entries(const Entries& entries);
  void walk_call(NodeId id);
  void walk_sequence(NodeId id);
  void walk_object(NodeId id);
  void walk_state(NodeId state);
  bool walk_module(NodeId state);
  void walk_subclass(NodeId id);
  bool walk_piece(std::string_view type, NodeId state);
  std::optional<NodeId> attribute(NodeId state, std::string_view key);
  void walk_array(NodeId id);
  void walk_nested(NodeId id);
  void walk_persistent(NodeId id);
  void add_tensor(Result<View> view);
  void add_scalar(DType dtype, const void* value);
  void add_complex(NodeId id);
  bool is_number(NodeId id) const { return graph_.number(id).has_value(); }
  Entries entries(NodeId id);
  std::optional<NodeId> lookup(NodeId id, std::string_view key);

  Rebuilder& rebuilder_;
  const Graph& graph_;
  Findings& found_;
  std::vector<NodeId> above_;  // The containers that the walk is inside of.
  std::vector<bool> met_;      // By node.
};

void Walker::walk(NodeId id) {
  if (!found_.room()) return;
  const Node& node = graph_.at(id);
  switch (node.kind) {
    case Kind::boolean: {
      const uint8_t value = node.number != 0;
      return add_scalar(DType::boolean, &value);
    }
    case Kind::integer:
      return add_scalar(DType::i64, &node.number);
    case Kind::real:
      return add_scalar(DType::f64, &node.number);
    case Kind::persistent:
      return walk_persistent(id);
    case Kind::none:
    case Kind::big_integer:
    case Kind::text:
    case Kind::bytes:
    case Kind::global:
      return;
    default:
      break;
  }
  if (std::ranges::find(above_, id) != above_.end())
    return found_.report(fmt::format("'{}' is a value that holds itself; it is followed once",
                                     printable(found_.path.plain())));
  if (above_.size() >= found_.limits.depth_max)
    return found_.report(
        limit_hit("depth", fmt::format("'{}' is nested deeper than {} and was not looked at",
                                       printable(found_.path.plain()), found_.limits.depth_max))
            .message(),
        Severity::unreadable);
  if (met_[id] && !found_.may_repeat()) return;
  met_[id] = true;
  above_.push_back(id);
  if (node.kind == Kind::dict) {
    walk_entries(entries(id));
  } else if (node.kind == Kind::call) {
    walk_call(id);
  } else if (node.kind == Kind::list) {
    walk_list(node.items);
  } else {
    walk_items(node.items);
  }
  above_.pop_back();
}

void Walker::walk_into(std::string key, NodeId id) {
  found_.path.enter(std::move(key));
  walk(id);
  found_.path.leave();
}

void Walker::walk_items(std::span<const NodeId> items, std::size_t first) {
  for (std::size_t i = 0; i < items.size() && !found_.full; ++i)
    walk_into(std::to_string(first + i), items[i]);
}

void Walker::walk_list(std::span<const NodeId> items) {
  const std::vector<NamedItem> named = named_items(rebuilder_, items);
  if (named.empty()) return walk_items(items);
  for (const NamedItem& item : named) {
    if (found_.full) return;
    walk_into(item.name, item.value);
  }
}

void Walker::walk_entries(const Entries& entries) {
  for (const auto& [key, value] : entries) {
    if (found_.full) return;
    walk_into(key_text(graph_, key), value);
  }
}

// The pairs of a dict, or of a call that makes one. As in Python a key that comes again takes the
// place of the first, with the value of the last.
Entries Walker::entries(NodeId id) {
  std::vector<NodeId> pairs(graph_.items(id).begin(), graph_.items(id).end());
  if (const Call* call = graph_.call(id)) {
    pairs = call->pairs;
    // Python 2 gives an OrderedDict its pairs as an argument, a Counter a dict.
    const std::span<const NodeId> args = graph_.items(call->args);
    if (!args.empty() && graph_.kind(args[0]) == Kind::dict) {
      const std::span<const NodeId> given = graph_.items(args[0]);
      pairs.insert(pairs.begin(), given.begin(), given.end());
    } else if (!args.empty() && graph_.kind(args[0]) == Kind::list) {
      std::vector<NodeId> given;
      for (const NodeId pair : graph_.items(args[0]))
        if (const auto both = graph_.items(pair); both.size() == 2)
          given.insert(given.end(), both.begin(), both.end());
      pairs.insert(pairs.begin(), given.begin(), given.end());
    }
  }
  Entries out;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const bool plain_key = graph_.string(pairs[i]) || graph_.integer(pairs[i]);
    const std::string identity = (graph_.string(pairs[i]) ? "s" : "n") + key_text(graph_, pairs[i]);
    found_.visits += 1 + identity.size() / 64;  // So that no long key is free.
    const auto [place, fresh] = places.try_emplace(identity, out.size());
    if (fresh || !plain_key) {
      out.emplace_back(pairs[i], pairs[i + 1]);
      continue;
    }
    out[place->second].second = pairs[i + 1];
    found_.report(fmt::format("key '{}' comes twice in one dict; the last counts",
                              printable(key_text(graph_, pairs[i]))));
  }
  return out;
}

std::optional<NodeId> Walker::lookup(NodeId id, std::string_view key) {
  found_.visits += graph_.items(id).size() / 2;
  if (graph_.kind(id) == Kind::dict) return graph_.find(id, key);
  const Call* call = graph_.call(id);
  for (std::size_t i = 0; call && i + 1 < call->pairs.size(); i += 2)
    if (graph_.string(call->pairs[i]) == key) return call->pairs[i + 1];
  return std::nullopt;
}

void Walker::walk_call(NodeId id) {
  switch (rebuilder_.meaning(id)) {
    case Meaning::unknown:
    case Meaning::reconstructor:
      return walk_object(id);
    case Meaning::dict:
      return walk_entries(entries(id));
    case Meaning::sequence:
      return walk_sequence(id);
    case Meaning::tagged:
      if (const auto args = graph_.items(graph_.call(id)->args); !args.empty()) walk(args[0]);
      return;
    case Meaning::complex:
      return add_complex(id);
    case Meaning::load_from_bytes:
      return walk_nested(id);
    case Meaning::rebuild_from_type:
      return walk_subclass(id);
    case Meaning::array:
    case Meaning::array_from_buffer:
    case Meaning::array_scalar:
      return walk_array(id);
    case Meaning::bytes:
    case Meaning::encode:
    case Meaning::plain:
    case Meaning::dtype:
    case Meaning::storage_type:
    case Meaning::untyped_storage:
    case Meaning::layout:
    case Meaning::quantization_scheme:
    case Meaning::array_type:
    case Meaning::array_dtype:
      return;
    default:
      return add_tensor(rebuilder_.tensor(id));
  }
}

void Walker::walk_sequence(NodeId id) {
  const Call& call = *graph_.call(id);
  const std::span<const NodeId> args = graph_.items(call.args);
  const std::span<const NodeId> given =
      args.empty() ? std::span<const NodeId>() : graph_.items(args[0]);
  walk_items(given);
  walk_items(call.appended, given.size());
}

// An object of a class that is not known: its attributes, keys and items are data all the same. But
// plain numbers among the attributes of an object or the arguments of a call are its settings.
void Walker::walk_object(NodeId id) {
  const Call& call = *graph_.call(id);
  if (call.state) {
    if (walk_module(*call.state)) return;
    walk_state(*call.state);
  }
  const std::span<const NodeId> args = graph_.items(call.args);
  const bool reconstructed = rebuilder_.meaning(id) == Meaning::reconstructor;
  for (std::size_t i = reconstructed ? 1 : 0; i < args.size() && !found_.full; ++i)
    if (call.makes_object || !is_number(args[i])) walk_into(std::to_string(i), args[i]);
  Entries pairs = call.pairs.empty() ? Entries() : entries(id);
  walk_entries(pairs);
  walk_items(call.appended);
}

// A state is the dict of attributes, or that and the one of its slots.
void Walker::walk_state(NodeId state) {
  const auto attributes = [&](NodeId id) { return id == kNone || graph_.kind(id) == Kind::dict; };
  const std::span<const NodeId> both = graph_.items(state);
  if (graph_.kind(state) == Kind::tuple && both.size() == 2 &&
      std::ranges::all_of(both, attributes)) {
    for (const NodeId each : both) walk_state(each);
    return;
  }
  if (graph_.kind(state) != Kind::dict) return walk(state);
  for (const auto& [key, value] : entries(state))
    if (!is_number(value)) walk_into(key_text(graph_, key), value);
}

// A torch.nn.Module holds its tensors in _parameters and _buffers, and others of its kind in
// _modules. Says whether this was one.
bool Walker::walk_module(NodeId state) {
  const std::optional<NodeId> parameters = lookup(state, "_parameters");
  const std::optional<NodeId> modules = lookup(state, "_modules");
  if (!parameters || !modules) return false;
  walk_entries(entries(*parameters));

  std::unordered_set<std::string_view> passing;
  if (const auto names = lookup(state, "_non_persistent_buffers_set")) {
    std::span<const NodeId> items = graph_.items(*names);
    if (rebuilder_.meaning(*names) == Meaning::sequence) {
      const std::span<const NodeId> args = graph_.items(graph_.call(*names)->args);
      if (!args.empty()) items = graph_.items(args[0]);
    }
    found_.visits += items.size();
    for (const NodeId name : items) passing.insert(graph_.string(name).value_or(""));
  }
  if (const auto buffers = lookup(state, "_buffers"))
    for (const auto& [key, value] : entries(*buffers))
      if (!passing.contains(graph_.string(key).value_or("")))
        walk_into(key_text(graph_, key), value);

  walk_entries(entries(*modules));
  return true;
}

// A tensor of a subclass: the tensor itself, or where it only wraps others, those.
void Walker::walk_subclass(NodeId id) {
  const std::span<const NodeId> args = graph_.items(graph_.call(id)->args);
  const bool wraps =
      !args.empty() && data_name(graph_.global(args[0])).meaning == Meaning::rebuild_wrapper;
  if (!wraps) add_tensor(rebuilder_.tensor(id));
  if (args.size() <= 3) return;
  if (!wraps || !walk_piece(graph_.global(args[1]), args[3])) walk_state(args[3]);
}

// An attribute in the state of an object, which is a dict or (dict or None, dict of slots).
std::optional<NodeId> Walker::attribute(NodeId state, std::string_view key) {
  if (graph_.kind(state) != Kind::tuple) return lookup(state, key);
  for (const NodeId part : graph_.items(state))
    if (const auto found = lookup(part, key)) return found;
  return std::nullopt;
}

// What this rank holds of a tensor that is cut over several goes by the name of the tensor. The
// numbers beside it (offsets, meshes, placements) are no tensors. Says whether this was one.
bool Walker::walk_piece(std::string_view type, NodeId state) {
  if (type.ends_with(".DTensor")) {
    const std::optional<NodeId> local = attribute(state, "_local_tensor");
    if (local) walk(*local);
    return local.has_value();
  }
  if (!type.ends_with(".ShardedTensor") || graph_.kind(state) != Kind::tuple) return false;
  const std::span<const NodeId> fields = graph_.items(state);
  if (fields.empty() || graph_.kind(fields[0]) != Kind::list) return false;
  const std::span<const NodeId> shards = graph_.items(fields[0]);
  for (std::size_t i = 0; i < shards.size() && !found_.full; ++i) {
    const Call* shard = graph_.call(shards[i]);
    const auto piece = shard && shard->state ? attribute(*shard->state, "tensor") : std::nullopt;
    if (!piece) continue;
    if (shards.size() == 1)
      walk(*piece);
    else
      walk_into(std::to_string(i), *piece);
  }
  return true;
}

void Walker::walk_array(NodeId id) {
  if (rebuilder_.meaning(id) == Meaning::array)
    if (const auto objects = rebuilder_.array_objects(id))
      return walk_items(graph_.items(*objects));
  if (!rebuilder_.is_text_array(id)) add_tensor(rebuilder_.tensor(id));
}

void Walker::walk_nested(NodeId id) {
  Result<Rebuilder::Nested*> inner = rebuilder_.nested(id);
  if (!inner.ok()) return add_tensor(inner.error());
  Walker(*inner.value()->rebuilder, found_).walk(inner.value()->file.graph.root);
}

void Walker::walk_persistent(NodeId id) {
  if (rebuilder_.is_tensor_id(id)) return add_tensor(rebuilder_.tensor(id));
  const std::span<const NodeId> fields = graph_.items(graph_.items(id)[0]);
  if (!fields.empty() && graph_.string(fields[0]) == "storage")
    add_tensor(rebuilder_.whole_storage(id));
}

void Walker::add_tensor(Result<View> view) {
  Tensor tensor = broken_tensor("", view.ok() ? "" : view.error().message());
  if (view.ok()) tensor.view = std::move(view).value();
  found_.tensors.add(found_.path, std::move(tensor));
}

void Walker::add_scalar(DType dtype, const void* value) {
  Tensor tensor;
  tensor.view.dtype = dtype;
  found_.scalar_places.emplace_back(found_.tensors.size(), found_.scalars.size());
  found_.scalars.append(static_cast<const char*>(value), item_bytes(dtype));
  found_.tensors.add(found_.path, std::move(tensor));
}

void Walker::add_complex(NodeId id) {
  const std::span<const NodeId> args = graph_.items(graph_.call(id)->args);
  if (args.size() != 2 || !is_number(args[0]) || !is_number(args[1])) return;
  const double parts[2] = {*graph_.number(args[0]), *graph_.number(args[1])};
  add_scalar(DType::c128, parts);
}

// Numbers all lie in one piece of memory, and each scalar tensor is a slice of it.
void fill_scalars(Findings& found, std::vector<Tensor>& tensors) {
  const ByteSource all(bytes_of(std::move(found.scalars)));
  for (const auto& [tensor, offset] : found.scalar_places) {
    const DType dtype = tensors[tensor].view.dtype;
    ByteSource source = all.slice(offset, item_bytes(dtype));
    tensors[tensor].view = contiguous_view(dtype, {}, std::move(source)).value();
  }
}

}  // namespace

Catalog collect_tensors(TorchFile file, const Limits& limits) {
  Findings found(file.where, limits);
  Rebuilder rebuilder(file.graph, file.storages, limits);
  Walker(rebuilder, found).walk(file.graph.root);
  if (found.problems_left_out)
    found.problems.push_back(
        {file.where, fmt::format("and {} more problems like these", found.problems_left_out)});
  report_code(rebuilder, {file.where, file.scripted}, found.problems);

  Catalog catalog;
  catalog.tensors = std::move(found.tensors).take();
  fill_scalars(found, catalog.tensors);
  catalog.problems = std::move(file.problems);
  catalog.problems.insert(catalog.problems.end(), found.problems.begin(), found.problems.end());
  make_names_unique(catalog);
  return catalog;
}

}  // namespace tensordiff::pickle
