// W + s·B·A: the names of peft, diffusers and kohya.
//
//   X.lora_A.default.weight [r, in]   X.lora_down.weight   X.lora.down.weight   X.lora_embedding_A
//   X.lora_B.default.weight [out, r]  X.lora_up.weight     X.lora.up.weight     X.lora_embedding_B
//   X.base_layer.weight or X.weight: the weight itself; X.alpha: s is alpha / r
//
// peft's adapter_config.json has alpha and r for all. Where nobody says what s is, the values do:
// it is one number for all layers.

#include <algorithm>
#include <cmath>
#include <map>

#include "align/view.h"
#include "base/json.h"
#include "base/text.h"
#include "convert/candidates.h"
#include "convert/merge_parts.h"
#include "convert/misfit.h"
#include "naming/numbered_name.h"
#include "packed/window.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr uint64_t kRankMax = 4096;      // Of an update; a weight has not many more rows.
constexpr std::size_t kPrefixWords = 6;  // "base_model.model." and "lora_unet_" are shorter.
constexpr std::size_t kSample = 256;     // As misfit() takes.
constexpr std::size_t kWordsMin = 2;     // A base is told by no fewer words of its name.

struct Spelling {
  std::string_view down, up;
};
constexpr Spelling kSpellings[] = {
    {".lora_A", ".lora_B"},
    {".lora_a", ".lora_b"},
    {".lora_down", ".lora_up"},
    {".lora.down", ".lora.up"},
    {".lora_embedding_A", ".lora_embedding_B"},
};

struct Update {
  std::size_t base = 0, down = 0, up = 0;
  std::optional<std::size_t> alpha;
  uint64_t rank = 0;
  bool turned = false;  // The weight is stored as [in, out].
  bool square = false;  // Whether it is, its shape does not tell.
};

// A path with one kind of separator: kohya writes "down_blocks_0_attn" for "down_blocks.0.attn".
std::string path_of(std::string_view name) {
  std::string path(name);
  for (char& c : path)
    if (c == '.' || c == '/') c = '_';
  return path;
}

using Paths = std::unordered_map<std::string, std::size_t>;

Paths bases_of(const MergeSide& side) {
  Paths paths;
  for (std::size_t i = 0; i < side.own.tensors.size(); ++i) {
    std::string_view name = side.own.tensors[i].pairing_name();
    if (!side.partner.contains(i)) continue;
    for (const std::string_view ending : {".weight", ".base_layer", ".default"})
      if (name.ends_with(ending)) name.remove_suffix(ending.size());
    paths.emplace(path_of(name), i);
  }
  return paths;
}

// The weight of a module, whatever stands before its path.
std::optional<std::size_t> base_named(const Paths& bases, std::string_view stem) {
  const std::string path = path_of(stem);
  std::string_view rest = path;
  for (std::size_t i = 0; i < kPrefixWords; ++i) {
    if (const auto found = bases.find(std::string(rest)); found != bases.end())
      return found->second;
    const std::size_t mark = rest.find('_');
    if (mark == std::string_view::npos) break;
    rest.remove_prefix(mark + 1);
    if (static_cast<std::size_t>(std::ranges::count(rest, '_')) + 1 < kWordsMin) break;
  }
  return std::nullopt;
}

// [out, in] of a weight of any rank.
struct Sizes {
  uint64_t rows, columns;
};

Sizes sizes_of(const Shape& shape) {
  uint64_t columns = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) columns *= shape[i];
  return {shape.empty() ? 1 : shape[0], columns};
}

bool fits(const View& base, const View& down, const View& up, Update& update) {
  if (base.shape.size() < 2 || down.shape.size() < 2 || up.shape.size() < 2) return false;
  const Sizes of_base = sizes_of(base.shape), of_down = sizes_of(down.shape);
  const Sizes of_up = sizes_of(up.shape);
  update.rank = of_down.rows;
  if (update.rank == 0 || update.rank > kRankMax || of_up.columns != update.rank) return false;
  const bool straight = of_base.rows == of_up.rows && of_base.columns == of_down.columns;
  const bool turned = of_base.rows == of_down.columns && of_base.columns == of_up.rows;
  update.turned = turned && !straight;
  update.square = turned && straight;
  return straight || turned;
}

std::vector<Update> updates_of(const MergeSide& side) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  const std::vector<Tensor>& tensors = side.own.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) by_name.emplace(tensors[i].name, i);
  const auto find = [&](const std::string& name) -> std::optional<std::size_t> {
    const auto found = by_name.find(name);
    if (found == by_name.end() || !tensors[found->second].fault.empty()) return std::nullopt;
    return found->second;
  };
  std::optional<Paths> bases;
  std::vector<Update> updates;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (const auto& [down, up] : kSpellings) {
      const std::string& name = tensors[i].name;
      const std::size_t at = name.find(down);
      if (at == std::string::npos || !side.is_free[i] || !tensors[i].fault.empty()) continue;
      const std::string rest = name.substr(at + down.size());
      if (!rest.empty() && rest[0] != '.') continue;
      const std::string stem = name.substr(0, at);
      const std::optional<std::size_t> other = find(stem + std::string(up) + rest);
      if (!other || !side.is_free[*other]) continue;
      if (!bases) bases = bases_of(side);
      const std::optional<std::size_t> base = base_named(*bases, stem);
      Update update{base.value_or(0), i, *other, find(stem + ".alpha"), 0, false, false};
      if (base && fits(tensors[*base].view, tensors[i].view, tensors[*other].view, update))
        updates.push_back(update);
    }
  return updates;
}

// Adds `scale` times the update to `count` elements of a row, or of a column where it is turned.
void add_update(std::span<const Reader> in, uint64_t rank, uint64_t row, uint64_t column,
                double scale, std::span<double> values) {
  const uint64_t columns = in[1].view().elements() / rank;
  std::vector<double> up(rank), down(values.size());
  in[2].values(row * rank, rank, up.data());
  for (uint64_t k = 0; k < rank; ++k) {
    in[1].values(k * columns + column, values.size(), down.data());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += scale * up[k] * down[i];
  }
}

View with_update(const MergeSide& side, const Update& update, double scale) {
  const std::vector<Tensor>& tensors = side.own.tensors;
  const View& base = tensors[update.base].view;
  Packed packed{{base, tensors[update.down].view, tensors[update.up].view}, {}};
  const uint64_t columns = sizes_of(base.shape).columns;
  packed.decode = [=, rank = update.rank, turned = update.turned](std::span<const Reader> in,
                                                                  uint64_t first, int64_t step,
                                                                  std::size_t count, float* out) {
    std::vector<double> values;
    for (std::size_t done = 0; done < count;) {
      const uint64_t element = first + done * static_cast<uint64_t>(step);
      const uint64_t row = element / columns, column = element % columns;
      // As many as stand in one row of the weight, one after the other.
      const std::size_t run =
          step == 1 && !turned ? std::min<uint64_t>(count - done, columns - column) : 1;
      values.resize(run);
      in[0].values(element, run, values.data());
      add_update(in, rank, turned ? column : row, turned ? row : column, scale, values);
      for (const double value : values) out[done++] = static_cast<float>(value);
    }
  };
  return merged_view(base, std::move(packed));
}

// The scale that peft's configuration states.
std::optional<double> told_scale(const Catalog& catalog, uint64_t rank) {
  if (!catalog.beside) return std::nullopt;
  const Result<Bytes> bytes = catalog.beside("adapter_config.json");
  if (!bytes.ok()) return std::nullopt;
  const Result<Json> json = Json::parse(as_text(bytes.value().view));
  if (!json.ok()) return std::nullopt;
  const std::optional<double> alpha = json.value()["lora_alpha"].number();
  if (!alpha || !std::isfinite(*alpha)) return std::nullopt;
  const auto ranks = static_cast<double>(rank);
  const bool by_root = json.value()["use_rslora"].boolean().value_or(false);
  return *alpha / (by_root ? std::sqrt(ranks) : ranks);
}

// What the update has to be multiplied with to make the other side's weight, by least squares.
struct ScaleFit {
  double scale, left;  // What the update does not explain of the change.
};

std::optional<ScaleFit> fit_of(const MergeSide& side, const Update& update) {
  const View& base = side.own.tensors[update.base].view;
  const Operand other{{side.other.tensors[side.partner.at(update.base)].view}};
  // Of one shape, so that their candidates are the same, too.
  const std::vector<Candidate> without = plain_candidates(Operand{{base}}, other);
  const std::vector<Candidate> with =
      plain_candidates(Operand{{with_update(side, update, 1)}}, other);
  const std::vector<uint64_t> at = sample_positions(base.elements(), kSample);
  std::optional<ScaleFit> best;
  double least = misfit_max(base.elements(), without.size());
  for (std::size_t i = 0; i < without.size(); ++i) {
    const Result<Reader> x = Reader::open(without[i].pair.a), y = Reader::open(without[i].pair.b);
    const Result<Reader> z = Reader::open(with[i].pair.a);
    if (!x.ok() || !y.ok() || !z.ok()) continue;
    const std::vector<double> from = values_at(x.value(), at), to = values_at(y.value(), at);
    const std::vector<double> merged = values_at(z.value(), at);
    double both = 0, own = 0, all = 0;
    for (std::size_t k = 0; k < at.size(); ++k) {
      const double step = merged[k] - from[k], change = to[k] - from[k];
      both += step * change, own += step * step, all += change * change;
    }
    if (own == 0 || all == 0) continue;
    const double left = 1 - both * both / (own * all);
    if (left < least) least = left, best = {both / own, left};
  }
  return best;
}

std::optional<double> fitted_scale(const MergeSide& side, const Update& update) {
  const std::optional<ScaleFit> fit = fit_of(side, update);
  return fit ? std::optional(fit->scale) : std::nullopt;
}

// Square weights are stored as most of their kind show by their values, or else as the weights of
// the model that are not square.
void turn_squares(const MergeSide& side, std::vector<Update>& updates) {
  std::map<std::string, int64_t> votes;  // By kind: for [in, out], less those against it.
  int64_t others = 0;
  const auto kind_of = [&](const Update& update) {
    return numbered_name(side.own.tensors[update.base].name).pattern;
  };
  for (Update update : updates) {
    if (!update.square) {
      others += update.turned ? 1 : -1;
      continue;
    }
    const std::optional<ScaleFit> straight = fit_of(side, update);
    update.turned = true;
    const std::optional<ScaleFit> turned = fit_of(side, update);
    if (!straight && !turned) continue;
    votes[kind_of(update)] += turned && (!straight || turned->left < straight->left) ? 1 : -1;
  }
  for (Update& update : updates) {
    if (!update.square) continue;
    const auto found = votes.find(kind_of(update));
    update.turned = (found != votes.end() && found->second != 0 ? found->second : others) > 0;
  }
}

constexpr double kMillion = 1e6;
constexpr double kScaleMax = 1e6;  // Larger ones are no scales.

int64_t in_millionths(double scale) {
  return static_cast<int64_t>(std::llround(std::clamp(scale, -kScaleMax, kScaleMax) * kMillion));
}

// To three digits: what rounding leaves of a fitted scale differs from layer to layer.
double rounded(double scale) {
  if (scale == 0 || !std::isfinite(scale)) return scale;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(scale))) - 2);
  return std::round(scale / unit) * unit;
}

// The scale of most layers, where no file tells it.
std::optional<double> common_scale(const MergeSide& side, const std::vector<Update>& updates) {
  std::map<double, std::size_t> votes;
  for (const Update& update : updates)
    if (const std::optional<double> scale = fitted_scale(side, update)) ++votes[rounded(*scale)];
  if (votes.empty()) return std::nullopt;
  return std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; })->first;
}

}  // namespace

WaysOf lora_ways(const MergeSide& side) {
  WaysOf merges;
  std::vector<Update> updates = updates_of(side);
  if (updates.empty()) return merges;
  turn_squares(side, updates);
  std::optional<std::optional<double>> common;
  for (const Update& update : updates) {
    std::optional<double> scale = told_scale(side.own, update.rank);
    if (update.alpha) {
      const Result<Reader> alpha = Reader::open(side.own.tensors[*update.alpha].view);
      if (alpha.ok() && side.own.tensors[*update.alpha].elements() == 1)
        scale = alpha.value().value(0) / static_cast<double>(update.rank);
    }
    if (!scale) {
      if (!common) common = common_scale(side, updates);
      scale = *common;
    }
    if (!scale) continue;
    std::vector<MergeWay>& ways = merges[update.base];
    if (!ways.empty()) continue;  // Several adapters on one weight: which is meant is not told.
    const auto add = [&](double by, int64_t millionths, std::vector<std::size_t> with) {
      ways.push_back({{{MergeKind::lora, side.side, millionths},
                       with_update(side, update, by),
                       std::move(with)},
                      {{update.down, update.up}, 0, by, update.turned, false}});
    };
    std::vector<std::size_t> with = {update.down, update.up};
    if (update.alpha) with.push_back(*update.alpha);
    add(*scale, in_millionths(*scale), std::move(with));
    // What a mistake would give: another scale, mostly none.
    if (const std::optional<double> other = fitted_scale(side, update);
        other && std::abs(*other - *scale) > 1e-3 * std::abs(*scale))
      add(*other, in_millionths(rounded(*other)), {});
  }
  return merges;
}

}  // namespace tensordiff
