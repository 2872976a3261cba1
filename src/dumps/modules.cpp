#include "dumps/modules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "dumps/grammar.h"
#include "dumps/summaries.h"
#include "naming/naming.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using Outputs = std::map<int32_t, const Record*>;  // By which of them it is.

// One call of one module.
struct Module {
  std::string_view path;
  Outputs outputs;
};

// Whether two tensors hold cosines and sines of the same angles, by their first elements.
bool on_unit_circle(const View& x, const View& y) {
  constexpr uint64_t kRead = 256;
  constexpr double kRounding = 0.02;  // Of bf16, twice.
  const uint64_t count = std::min(x.elements(), kRead);
  if (x.shape != y.shape || count == 0 || is_complex(x.dtype)) return false;
  const Result<Reader> of_x = Reader::open(x), of_y = Reader::open(y);
  if (!of_x.ok() || !of_y.ok()) return false;
  std::vector<double> cosines(count), sines(count);
  of_x.value().values(0, count, cosines.data());
  of_y.value().values(0, count, sines.data());
  for (uint64_t i = 0; i < count; ++i)
    if (!(std::abs(cosines[i] * cosines[i] + sines[i] * sines[i] - 1) <= kRounding)) return false;
  return true;
}

class Modules {
 public:
  Modules(const Catalog& catalog, const Dump& dump) : catalog_(catalog) {
    for (const Record& record : dump.records)
      if (record.fact == RunFact::none) add(record);
  }

  std::vector<Item> items() {
    for (const auto& [key, module] : modules_) {
      const Place& place = place_of(module.path);
      if (place.parameter != Param::none)
        plain(module);
      else if (gives_cosines(module))
        cosines(module, place);
      else if (is_rotary(module, place))
        rotary(module, place);
      else if (!is_pair(module))
        plain(module);
      else if (place.step == Role::layer_output)
        layer(module, !has_statistics(catalog_));
      else if (is_norm(place.step))
        norm(module, place);
      else
        plain(module);
    }
    std::ranges::stable_sort(
        items_, {}, [](const Item& item) { return std::tuple(item.rank, item.pass, item.order); });
    return std::move(items_);
  }

 private:
  using Key = std::tuple<int32_t, int32_t, std::string_view>;  // Rank, pass and path.

  void add(const Record& record) {
    modules_.try_emplace(Key(record.rank, record.pass, record.path), Module{record.path, {}})
        .first->second.outputs.emplace(record.output, &record);
    paths_.insert(record.path);
    const Place& place = place_of(record.path);
    if (place.layer < 0) return;
    last_layer_ = std::max(last_layer_, place.layer);
    prefix_ = std::string_view(record.path).substr(0, place.layer_at.first);
    if (!is_rope_module(record.path)) {
      auto& first =
          first_of_layer_.try_emplace({record.rank, record.pass, place.layer}, record.order)
              .first->second;
      first = std::min(first, record.order);
    }
  }

  const Place& place_of(std::string_view path) {
    const auto found = places_.find(path);
    return found != places_.end() ? found->second
                                  : places_.emplace(path, read_place(path)).first->second;
  }

  bool has(std::string_view path) const { return paths_.contains(path); }

  const Shape& shape_of(const Record& record) const {
    return catalog_.tensors[record.tensor].view.shape;
  }

  // Two outputs of one shape, and no more.
  bool is_pair(const Module& module) const {
    const Outputs& outputs = module.outputs;
    return outputs.size() == 2 && outputs.contains(0) && outputs.contains(1) &&
           shape_of(*outputs.at(0)) == shape_of(*outputs.at(1)) &&
           catalog_.tensors[outputs.at(0)->tensor].view.dtype ==
               catalog_.tensors[outputs.at(1)->tensor].view.dtype;
  }

  bool gives_two(const Module& module) const {
    return module.outputs.size() == 2 && module.outputs.contains(0) && module.outputs.contains(1);
  }

  // Modules of RoPE give cosines and sines, or query and key behind it.
  bool gives_cosines(const Module& module) const {
    return is_rope_module(module.path) && gives_two(module) &&
           on_unit_circle(catalog_.tensors[module.outputs.at(0)->tensor].view,
                          catalog_.tensors[module.outputs.at(1)->tensor].view);
  }
  bool is_rotary(const Module& module, const Place& place) const {
    return place.layer >= 0 && is_rope_module(module.path) && gives_two(module);
  }

  void keep(const Record& record, std::string known_as, bool with_output) {
    std::string name = record.name;
    if (name.empty())
      name = with_output && record.output >= 0 ? fmt::format("{}.{}", record.path, record.output)
                                               : record.path;
    if (known_as == name) known_as.clear();
    items_.push_back({std::move(name),
                      std::move(known_as),
                      {record.tensor},
                      record.pass,
                      record.rank,
                      record.order,
                      record.part});
  }

  // The first output is the module's; the experts of a layer in one are its MLP.
  void plain(const Module& module) {
    for (const auto& [output, record] : module.outputs) {
      const bool main = output <= 0;
      keep(*record, main ? without_experts(record->path) : "", !main);
    }
  }

  std::string without_experts(const std::string& path) const {
    constexpr std::string_view kEnding = ".experts";
    if (!path.ends_with(kEnding)) return path;
    const std::string parent = path.substr(0, path.size() - kEnding.size());
    return has(parent) || has(path + ".0") ? path : parent;
  }

  // The statistics of a sum do not follow from those of its parts.
  void layer(const Module& module, bool tells_sum) {
    const Record& hidden = *module.outputs.at(0);
    const Record& residual = *module.outputs.at(1);
    if (tells_sum)
      items_.push_back({std::string(module.path),
                        {},
                        {hidden.tensor, residual.tensor},
                        hidden.pass,
                        hidden.rank,
                        residual.order});
    // Under names of their own: the numbers of outputs are no numbers of anything else.
    keep(hidden, std::string(module.path) + ".hidden_part", true);
    keep(residual, std::string(module.path) + ".residual_part", true);
  }

  void norm(const Module& module, const Place& place) {
    const Record& normed = *module.outputs.at(0);
    const Record& stream = *module.outputs.at(1);
    keep(stream, stream_of(place), true);
    items_.back().order = std::min(stream.order, normed.order);  // It is what is normed.
    keep(normed, std::string(module.path), false);
  }

  // The output of the layer before, unless the dump has it.
  std::string stream_of(const Place& place) const {
    if (place.step == Role::mlp_norm || place.step == Role::post_attention_norm)
      return fmt::format("{}{}.resid_mid", prefix_, place.layer);
    const int32_t layer = place.step == Role::final_norm ? last_layer_ : place.layer - 1;
    if (layer < 0) return "";
    const std::string before = fmt::format("{}{}", prefix_, layer);
    if (!has(before) || has_statistics(catalog_)) return before;  // Its sum is not told then.
    return place.step == Role::final_norm ? "" : fmt::format("{}{}.resid_pre", prefix_, layer + 1);
  }

  void cosines(const Module& module, const Place& place) {
    const std::string at = place.layer >= 0 ? fmt::format("{}{}.", prefix_, place.layer) : "";
    keep(*module.outputs.at(0), at + "rotary_cos", true);
    keep(*module.outputs.at(1), at + "rotary_sin", true);
  }

  void rotary(const Module& module, const Place& place) {
    const Record& query = *module.outputs.at(0);
    const auto first = first_of_layer_.find({query.rank, query.pass, place.layer});
    // Written before anything else of its layer: a module that all layers share.
    const bool shared = first == first_of_layer_.end() || query.order < first->second;
    if (shared && place.layer != last_layer_ && place.layer != 0) return;
    if (place.layer == 0 && last_layer_ > 0 && is_shared(query)) return;
    const std::string parent(module.path.substr(0, module.path.rfind('.')));
    const std::size_t kept = items_.size();
    keep(query, parent + ".q_rope", true);
    keep(*module.outputs.at(1), parent + ".k_rope", true);
    if (!shared) return;
    // It was computed behind the projections of its own layer, wherever it is written.
    for (std::size_t i = kept; i < items_.size(); ++i)
      items_[i].order = std::max(items_[i].order, last_projection(query, place.layer));
  }

  int64_t last_projection(const Record& of, int32_t layer) {
    int64_t last = 0;
    for (const auto& [key, module] : modules_) {
      const Place& place = place_of(module.path);
      const bool near = std::get<0>(key) == of.rank && std::get<1>(key) == of.pass;
      if (near && place.layer == layer && place.step >= Role::query &&
          place.step <= Role::value_norm)
        last = std::max(last, module.outputs.begin()->second->order);
    }
    return last;
  }

  // Layer 0's stands where it should in any case: the next layer tells.
  bool is_shared(const Record& first) {
    const std::string next = fmt::format("{}1.", prefix_);
    for (const auto& [key, module] : modules_) {
      if (std::get<0>(key) != first.rank || std::get<1>(key) != first.pass) continue;
      if (!module.path.starts_with(next) || !is_rope_module(module.path)) continue;
      const auto of_next = first_of_layer_.find({first.rank, first.pass, 1});
      return of_next == first_of_layer_.end() ||
             module.outputs.begin()->second->order < of_next->second;
    }
    return false;
  }

  const Catalog& catalog_;
  std::map<Key, Module> modules_;
  std::set<std::string, std::less<>> paths_;
  std::map<std::string, Place, std::less<>> places_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t> first_of_layer_;  // Its order.
  int32_t last_layer_ = -1;
  std::string_view prefix_;  // "model.layers."
  std::vector<Item> items_;
};

}  // namespace

std::vector<Item> items_of(const Catalog& catalog, const Dump& dump) {
  return Modules(catalog, dump).items();
}

}  // namespace tensordiff
