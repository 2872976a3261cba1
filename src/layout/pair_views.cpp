#include "layout/pair_views.h"

#include <algorithm>

#include "align/rope_rows.h"
#include "align/view.h"
#include "base/checked_math.h"
#include "base/text.h"
#include "dumps/tokens.h"
#include "match/checkpoint.h"
#include "match/filter.h"
#include "tensor/shards.h"

namespace tensordiff {
namespace {

bool is_of_experts(const Tensor& tensor) { return tensor.place.expert != Place::kNone; }

std::size_t ranks_of(const Tensor& tensor) {
  return std::max<std::size_t>(1, tensor.shards.size());
}

// Whether two shapes are the same but for one axis, of which as many ranks as each side has hold as
// much on both.
bool is_cut_once(const Tensor& a, const Tensor& b) {
  const Shape& x = a.view.shape;
  const Shape& y = b.view.shape;
  if (x.size() != y.size()) return false;
  std::size_t cuts = 0;
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    if (x[axis] == y[axis]) continue;
    const std::optional<uint64_t> all_a = checked_mul(x[axis], ranks_of(a));
    if (++cuts > 1 || !all_a || all_a != checked_mul(y[axis], ranks_of(b))) return false;
  }
  return cuts == 1;
}

bool are_distinct(const Tensor& tensor) {
  return tensor.shards.size() < 2 || distinct_shards(tensor).size() == tensor.shards.size();
}

// Whether this pair shows that all ranks of both sides have pieces of their own. Experts may be
// spread over more ranks than the layers around them.
bool shows_all_ranks(const Tensor& a, const Tensor& b) {
  return ranks_of(a) != ranks_of(b) && a.fault.empty() && b.fault.empty() && !is_of_experts(a) &&
         !is_of_experts(b) && is_cut_once(a, b) && are_distinct(a) && are_distinct(b);
}

// Whether a name says that it is one tensor, and not query, key and value or gate and up in one.
bool is_one_by_name(const Place& place) {
  static constexpr Role kMayBeFused[] = {Role::fused_qkv, Role::gate_up, Role::up, Role::attention,
                                         Role::mlp};
  return place.known && place.layer != Place::kAll &&
         std::ranges::find(kMayBeFused, place.step) == std::end(kMayBeFused);
}

Operand operand_of(const Sides& sides, const Tensor& tensor, const std::optional<Section>& section,
                   bool is_one) {
  if (tensor.shards.empty()) return {{tensor.view}, section, {}};
  return {tensor.shards,
          section,
          {sides.all_ranks && !is_of_experts(tensor), is_one || is_one_by_name(tensor.place)}};
}

// What the user said of the axes of a pair. Parts of fused tensors are cut by their values.
const Dims* dims_of(const Sides& sides, const Pair& which) {
  if (which.section_a || which.section_b) return nullptr;
  const std::string& name = sides.a.tensors[which.a].name;
  const Dims* found = nullptr;
  for (const DimsOf& each : sides.options.dims)
    if (each.whole ? name == each.names : starts_with_glob(name, each.names)) found = &each.dims;
  return found;
}

bool is_gguf(const Catalog& catalog) {
  return std::ranges::find(catalog.metadata, "general.architecture", &Metadata::key) !=
         catalog.metadata.end();
}

// q or k of a model in GGUF against the same in another format.
bool may_differ_in_rope_rows(const Sides& sides, const Pair& which) {
  if (is_gguf(sides.a) == is_gguf(sides.b) || which.section_a || which.section_b) return false;
  const Place& place = sides.a.tensors[which.a].place;
  return place.known && (place.step == Role::query || place.step == Role::key);
}

// Compared as it is stored: right where all layers are, a reshape in place of a transpose where one
// is.
bool is_flattened(const AlignedPair& pair) {
  return std::ranges::find(pair.steps, Op::flatten, &Step::op) != pair.steps.end();
}

// A pair that its own values tell no layout of, laid out as others of the run are.
std::optional<AlignedPair> laid_out_like_peers(const Sides& sides, const Pair& which,
                                               const Operand& a, const Operand& b) {
  for (Plan& plan : sides.peers->plans_for(which, sides.options.align)) {
    AlignOptions options = sides.options.align;
    options.like = std::move(plan);
    Result<AlignedPair> aligned = align(a, b, options);
    if (aligned.ok() && is_told(aligned.value().notes)) return std::move(aligned).value();
  }
  return std::nullopt;
}

// A pair of which one side is the end of the other, compared with its beginning instead.
AlignedPair from_the_first(AlignedPair pair, const Operand& a, const Operand& b) {
  if (a.shards.size() != 1 || b.shards.size() != 1) return pair;
  Plan plan = pair.steps;
  bool shifted = false;
  for (Step& step : plan) {
    if (step.op != Op::select || step.argument[1] == 0) continue;
    shifted = true;
    step = {step.side, Op::truncate, {step.argument[0], step.argument[2]}};
  }
  return shifted ? carry_out(plan, a.shards[0], b.shards[0]) : pair;
}

// How many rows of the larger side stand before those that the other has, and nothing before 1.
std::optional<uint64_t> first_of(const AlignedPair& pair) {
  for (const Step& step : pair.steps)
    if (step.op == Op::select && step.argument[0] == 0 && step.argument[1] > 0)
      return step.argument[1];
  return std::nullopt;
}

// Models that come from fairseq (RoBERTa, BART, OPT) count positions from 2, behind the index of
// padding; other formats leave out the rows in front.
constexpr uint64_t kPositionsReserved = 2;

bool leaves_out_reserved(const Sides& sides, const Pair& which, const AlignedPair& pair) {
  const auto is_table = [](const Tensor& tensor) { return tensor.place.step == Role::positions; };
  return (is_table(sides.a.tensors[which.a]) || is_table(sides.b.tensors[which.b])) &&
         std::ranges::any_of(pair.steps, [](const Step& step) {
           return step.op == Op::select && step.argument[0] == 0 &&
                  step.argument[1] == kPositionsReserved;
         });
}

// The form of the pair's kind, where a conversion was inferred.
const Form* converted_form(const Sides& sides, const Pair& which) {
  if (!sides.conversion) return nullptr;
  return sides.conversion->form_of(static_cast<std::size_t>(&which - sides.matching.pairs.data()));
}

}  // namespace

Sides sides_of(const Catalog& a, const Catalog& b, const Matching& matching,
               LayoutOptions options) {
  const auto shows = [&](const Pair& pair) {
    return !pair.section_a && !pair.section_b &&
           shows_all_ranks(a.tensors[pair.a], b.tensors[pair.b]);
  };
  const bool all_ranks = options.read_values && std::ranges::any_of(matching.pairs, shows);
  return {
      a, b, matching, std::move(options), all_ranks, std::make_shared<PeerLayouts>(a, b, matching)};
}

PairOperands operands_of(const Sides& sides, const Pair& which) {
  // What is a part of a fused tensor on either side is one tensor on both.
  const bool is_part = which.section_a || which.section_b;
  const Tensor& a = sides.a.tensors[which.a];
  const Tensor& b = sides.b.tensors[which.b];
  PairOperands operands = {operand_of(sides, a, which.section_a, is_part),
                           operand_of(sides, b, which.section_b, is_part)};
  if (sides.merges && !is_part)
    for (const char side : {'a', 'b'}) {
      const MergesOf& merges = sides.merges->of(side);
      const auto found = merges.find(side == 'a' ? which.a : which.b);
      if (found == merges.end()) continue;
      for (const Merged& each : found->second) operands.merges.push_back({each.how, each.view});
    }
  // A tensor that has some tokens only, as logits of the last one, is compared with these.
  if (!is_part && (a.tokens || b.tokens)) {
    const uint64_t count = std::max(sides.a.tokens.size(), sides.b.tokens.size());
    TokenViews views{operands.a.shards, operands.b.shards};
    keep_common_tokens(a, b, count, views);
    operands.a.shards = std::move(views.a);
    operands.b.shards = std::move(views.b);
  }
  return operands;
}

std::optional<Shifted> shifted_rows(const Sides& sides, const Pair& which) {
  const Tensor &a = sides.a.tensors[which.a], &b = sides.b.tensors[which.b];
  if (!sides.conversion || which.section_a || which.section_b || a.elements() == b.elements())
    return std::nullopt;
  const PairOperands operands = operands_of(sides, which);
  const Result<AlignedPair> pair = align(operands.a, operands.b, sides.options.align);
  if (!pair.ok() || leaves_out_reserved(sides, which, pair.value())) return std::nullopt;
  const std::optional<uint64_t> rows = first_of(pair.value());
  if (!rows) return std::nullopt;
  return Shifted{a.elements() > b.elements() ? 'a' : 'b', *rows};
}

std::shared_ptr<const Conversion> conversion_of(const Sides& sides) {
  const bool may_read = sides.options.read_values && sides.options.align.enabled;
  if (!may_read || !are_checkpoints(sides.a, sides.b)) return nullptr;
  return std::make_shared<Conversion>(
      infer_conversion(sides.a, sides.b, sides.matching.pairs,
                       [&](const Pair& pair) { return operands_of(sides, pair); }));
}

Result<AlignedPair> aligned_views(const Sides& sides, const Pair& which) {
  const bool is_part = which.section_a || which.section_b;
  const PairOperands operands = operands_of(sides, which);
  const Operand& a = operands.a;
  const Operand& b = operands.b;
  if (const Dims* dims = dims_of(sides, which))
    return align_named(a, b, *dims).in(fmt::format("--dims '{}'", dims->text));
  if (const Form* form = converted_form(sides, which))
    if (std::optional<AlignedPair> pair = carried_out(*form, operands)) return std::move(*pair);
  AlignedPair pair = TRY(align(a, b, sides.options.align));
  // Converters pad at the end. A checkpoint whose rows only fit further on was padded in front.
  if (sides.conversion && !is_part && !leaves_out_reserved(sides, which, pair))
    pair = from_the_first(std::move(pair), a, b);
  if (has(pair.notes, LayoutNote::Kind::not_confirmed) || (!is_part && is_flattened(pair))) {
    std::optional<AlignedPair> as_others = laid_out_like_peers(sides, which, a, b);
    if (as_others) pair = std::move(*as_others);
  }
  if (sides.options.align.enabled && may_differ_in_rope_rows(sides, which))
    if (std::optional<AlignedPair> turned = with_rope_rows(pair)) return std::move(*turned);
  return pair;
}

}  // namespace tensordiff
