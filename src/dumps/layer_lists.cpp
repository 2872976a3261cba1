// One list over the layers for each kind of step, as notebooks collect them: "resid.0", "resid.1",
// "mlp_out.0", …; or each list stacked in one tensor, "resid" [layers, batch, tokens, hidden].
//
// A number behind a name may also be a part of a module ("mlp.0" of a Sequential). It is the layer
// where the name is that of a step in a layer, all tensors of it have one shape, and a second kind
// has as many: or where it is the stream, which has no parts.

#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr uint64_t kLayersMax = 4096;  // More are no layers.

struct Kind {
  Role role = Role::other;
  std::string step;  // Its name, of one layer.
  uint64_t layers = 0;
  bool stacked = false;
  bool one_shape = true;  // And numbers from 0 on.
};

Role role_of(std::string_view kind) {
  const Place place = read_place(fmt::format("layers.0.{}", kind));
  return place.known && place.parameter == Param::none && place.expert == Place::kNone
             ? place.step
             : Role::other;
}

// A list may be called by what is in it, "mlp_outputs": each word without its "s".
std::string singular(std::string_view kind) {
  std::string text;
  for (const std::string_view word : split(kind, '_')) {
    if (!text.empty()) text += '_';
    if (word.ends_with("ies"))
      text.append(word.substr(0, word.size() - 3)).append("y");
    else
      text += word.ends_with('s') && !word.ends_with("ss") ? word.substr(0, word.size() - 1) : word;
  }
  return text;
}

void name_step(std::string_view list, Kind& kind) {
  kind.step = list;
  kind.role = role_of(kind.step);
  if (kind.role != Role::other) return;
  kind.step = singular(list);
  kind.role = role_of(kind.step);
}

// The lists of a dump, by name.
class Lists {
 public:
  explicit Lists(const Catalog& catalog) {
    std::map<std::string, const Shape*, std::less<>> shapes;
    for (const Tensor& tensor : catalog.tensors) {
      std::string_view name = tensor.name;
      const std::optional<int32_t> number = take_output(name);
      const Shape& shape = tensor.view.shape;
      if (!number && (shape.size() != 4 || shape[0] < 2 || shape[0] > kLayersMax)) continue;
      if (read_place(tensor.name).layer >= 0 && read_place(tensor.name).known) continue;
      Kind& kind = kinds_[std::string(name)];
      if (kind.layers == 0) name_step(name, kind);
      if (!number) {
        kind.stacked = true;
        kind.layers = shape[0];
        continue;
      }
      const Shape*& first = shapes[std::string(name)];
      if (!first) first = &shape;
      kind.one_shape &= *first == shape && static_cast<uint64_t>(*number) == kind.layers;
      ++kind.layers;
    }
    std::erase_if(kinds_, [](const auto& kind) {
      return kind.second.role == Role::other || !kind.second.one_shape || kind.second.layers < 2;
    });
    std::map<uint64_t, std::size_t> counts;
    for (const auto& [name, kind] : kinds_) ++counts[kind.layers];
    std::erase_if(kinds_, [&](const auto& kind) {
      return counts[kind.second.layers] < 2 && kind.second.role != Role::layer_output;
    });
  }

  // How many tensors of the catalog belong to them.
  std::size_t tensors() const {
    std::size_t count = 0;
    for (const auto& [name, kind] : kinds_) count += kind.stacked ? 1 : kind.layers;
    return count;
  }

  const Kind* find(std::string_view name) const {
    const auto found = kinds_.find(name);
    return found == kinds_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Kind, std::less<>> kinds_;
};

bool recognises(const Catalog& catalog) {
  const std::size_t count = Lists(catalog).tensors();
  return count > 0 && 2 * count >= catalog.tensors.size();
}

void read_stack(const Tensor& tensor, const Kind& kind, const Record& of, Dump& dump) {
  for (uint64_t i = 0; i < kind.layers; ++i) {
    Record record = of;
    record.part = AxisIndex{0, i};
    record.path = fmt::format("layers.{}.{}", i, kind.step);
    record.name = fmt::format("layers.{}.{}", i, tensor.name);
    record.order = order_by_role(static_cast<int64_t>(i), kind.role);
    dump.records.push_back(std::move(record));
  }
}

Dump read(const Catalog& catalog) {
  Dump dump;
  const Lists lists(catalog);
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    Record record{.tensor = i, .path = tensor.name};
    record.fact = fact_in(tensor, tensor.name);
    const Role role = read_place(tensor.name).step;
    record.order = role <= Role::embedding_norm ? -1 : INT64_MAX;
    std::string_view name = tensor.name;
    const std::optional<int32_t> layer = take_output(name);
    const Kind* kind = record.fact == RunFact::none ? lists.find(name) : nullptr;
    if (kind && kind->stacked && !layer) {
      read_stack(tensor, *kind, record, dump);
      continue;
    }
    if (kind && !kind->stacked && layer) {
      record.path = fmt::format("layers.{}.{}", *layer, kind->step);
      record.name = fmt::format("layers.{}.{}", *layer, name);
      record.order = order_by_role(*layer, kind->role);
    }
    dump.records.push_back(std::move(record));
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::layer_lists = {
    .name = "layer-lists",
    .summary = "a list, or a stack, over the layers for each kind of step",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
