#include "convert/candidates.h"

#include <algorithm>
#include <numeric>

#include "align/axes.h"
#include "align/view.h"
#include "align/whole.h"
#include "convert/function.h"
#include "convert/merged_kernel.h"
#include "tensor/shape.h"

namespace tensordiff {
namespace {

constexpr std::size_t kPartsMax = 3;  // Fused tensors whose order is tried: q, k and v.
constexpr std::size_t kAxesMax = 5;   // 120 orders; convolutions over volumes have five axes.
constexpr std::size_t kCandidatesMax = 512;  // As many as alignment would try at most, twice over.

std::vector<AxisStep> without_sizes(const Plan& plan) {
  std::vector<AxisStep> steps;
  for (const Step& step : plan) {
    AxisStep bare{step.side, step.op, step.argument};
    const bool sized = step.op == Op::split || step.op == Op::select;
    if (sized) bare.argument.resize(1);
    steps.push_back(std::move(bare));
  }
  return steps;
}

// All orders of the axes of A that give the shape of B, but for the order that they have. An axis
// of size 1 keeps its place among the others: kernels of one point follow the rule of larger ones.
std::vector<Plan> axis_orders(const Shape& a, const Shape& b) {
  std::vector<Plan> plans;
  if (a.size() < 2 || a.size() != b.size() || a.size() > kAxesMax) return plans;
  std::vector<uint64_t> order(a.size());
  std::iota(order.begin(), order.end(), 0);
  while (std::ranges::next_permutation(order).found) {
    bool fits = true, moves = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      fits &= a[order[i]] == b[i];
      moves |= order[i] != i && a[i] > 1;  // Moving an axis of size 1 moves nothing.
    }
    if (fits && moves) plans.push_back({{'a', Op::permute, order}});
  }
  return plans;
}

// All plans that give two shapes one without leaving anything out.
std::vector<Plan> axis_plans(const Shape& a, const Shape& b) {
  std::vector<Plan> plans;
  if (a == b) plans.emplace_back();
  for (const Aligner* aligner : {&aligners::unit_axes, &aligners::merged, &aligners::permuted})
    for (Plan& plan : a == b ? std::vector<Plan>() : aligner->propose(a, b)) {
      // Moving the axes of B is moving those of A the other way; a converter's form is one of A.
      const bool of_b = plan.size() == 1 && plan[0].op == Op::permute && plan[0].side == 'b';
      if (!of_b || a.size() != b.size()) plans.push_back(std::move(plan));
    }
  std::vector<Plan> more = axis_orders(a, b);
  for (Plan& plan : merged_kernel_plans(a, b)) more.push_back(std::move(plan));
  for (Plan& plan : more)
    if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(std::move(plan));
  if (a.size() == b.size() || without_units(a) != without_units(b)) return plans;
  // Alignment never turns a square matrix: [64, 1, 64] against [64, 64]. A converter may.
  for (const Plan& order : axis_orders(without_units(a), without_units(b))) {
    Plan plan = drop_units('a', a);
    for (const Plan& rest : {drop_units('b', b), order})
      plan.insert(plan.end(), rest.begin(), rest.end());
    plans.push_back(std::move(plan));
  }
  return plans;
}

// The orders in which the parts of a fused tensor may be stored, that of their names first. Layers
// and experts that are stacked are counted, and no converter stores them in another order.
std::vector<std::vector<std::size_t>> part_orders(const std::optional<Section>& section) {
  const bool counted =
      section && !section->label.empty() && section->label[0] >= '0' && section->label[0] <= '9';
  if (!section || counted || section->elements.size() > kPartsMax) return {{}};
  std::vector<std::size_t> order(section->elements.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<std::size_t>> orders = {{}};
  while (std::ranges::next_permutation(order).found) orders.push_back(order);
  return orders;
}

Operand with_order(const Operand& operand, const std::vector<std::size_t>& order) {
  if (order.empty()) return operand;
  Operand result = operand;
  Section& section = *result.section;
  for (std::size_t i = 0; i < order.size(); ++i) {
    section.elements[i] = operand.section->elements[order[i]];
    if (order[i] == operand.section->index) section.index = i;
  }
  return result;
}

Candidate candidate_of(const Whole& a, const Whole& b, const Plan& plan) {
  Candidate candidate;
  candidate.form.axes = without_sizes(plan);
  candidate.pair = carry_out(plan, a.view, b.view);
  for (const Whole* whole : {&b, &a}) {
    AlignedPair& pair = candidate.pair;
    pair.steps.insert(pair.steps.begin(), whole->steps.begin(), whole->steps.end());
    pair.copies.insert(pair.copies.begin(), whole->copies.begin(), whole->copies.end());
    const std::vector<AxisStep> steps = without_sizes(whole->steps);
    candidate.form.whole.insert(candidate.form.whole.begin(), steps.begin(), steps.end());
  }
  return candidate;
}

void add_plain(const Operand& a, const Operand& b, const std::vector<std::size_t>& order,
               std::vector<Candidate>& candidates) {
  const Result<std::vector<Whole>> wholes_a = wholes_of('a', a);
  const Result<std::vector<Whole>> wholes_b = wholes_of('b', b);
  if (!wholes_a.ok() || !wholes_b.ok()) return;
  for (const Whole& whole_a : wholes_a.value())
    for (const Whole& whole_b : wholes_b.value()) {
      const uint64_t elements = whole_a.view.elements();
      if (elements == 0 || elements != whole_b.view.elements()) continue;
      for (const Plan& plan : axis_plans(whole_a.view.shape, whole_b.view.shape)) {
        if (candidates.size() == kCandidatesMax) return;
        candidates.push_back(candidate_of(whole_a, whole_b, plan));
        candidates.back().form.parts = order;
      }
    }
}

void apply_to(const Plan& plan, AlignedPair& pair) {
  for (const Step& step : plan) {
    View& view = step.side == 'a' ? pair.a : pair.b;
    view = apply(step, std::move(view));
    pair.steps.push_back(step);
  }
}

// Swaps the two axes that stand at `axis` and after it.
std::vector<uint64_t> swapped_order(std::size_t rank, std::size_t axis) {
  std::vector<uint64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[axis + 1]);
  return order;
}

constexpr uint64_t kHeadMin = 4, kHeadMax = 1024;  // Features of a head in models that exist.
constexpr uint64_t kHeadsMax = 256;

void add_rope(const Candidate& plain, std::size_t axis, std::vector<Candidate>& candidates) {
  const uint64_t rows = plain.pair.a.shape[axis];
  for (uint64_t head = kHeadMin; head <= std::min(rows, kHeadMax); head += 2) {
    if (rows % head != 0) continue;
    for (const char side : {'a', 'b'}) {
      const char other = side == 'a' ? 'b' : 'a';
      Candidate candidate = plain;
      candidate.form.rows = {RowOrder::rope, side, axis, 0, head, 0};
      const std::size_t rank = plain.pair.a.shape.size() + 2;
      apply_to({{side, Op::split, {axis, rows / head, 2, head / 2}},
                {side, Op::permute, swapped_order(rank, axis + 1)},
                {other, Op::split, {axis, rows / head, head / 2, 2}}},
               candidate.pair);
      candidates.push_back(std::move(candidate));
    }
  }
}

// Two or three equal parts inside each head on one side.
void add_equal_parts(const Candidate& plain, std::size_t axis, std::vector<Candidate>& candidates) {
  const uint64_t rows = plain.pair.a.shape[axis];
  for (const uint64_t parts : {uint64_t{3}, uint64_t{2}})
    for (uint64_t heads = 2; heads <= std::min(kHeadsMax, rows / parts); ++heads) {
      if (rows % (parts * heads) != 0) continue;
      for (const char side : {'a', 'b'}) {
        const char other = side == 'a' ? 'b' : 'a';
        Candidate candidate = plain;
        candidate.form.rows = {RowOrder::by_head, side, axis, heads, 0, parts == 3 ? 1u : 0u};
        const uint64_t each = rows / (parts * heads);
        const std::size_t rank = plain.pair.a.shape.size() + 2;
        apply_to({{side, Op::split, {axis, heads, parts, each}},
                  {side, Op::permute, swapped_order(rank, axis)},
                  {other, Op::split, {axis, parts, heads, each}}},
                 candidate.pair);
        candidates.push_back(std::move(candidate));
      }
    }
}

// Groups of several queries with one key and one value each; the other side has all queries, then
// all keys, then all values.
View regrouped(const View& view, std::size_t axis, uint64_t groups, uint64_t queries) {
  const uint64_t size = view.shape[axis] / groups;
  const uint64_t head = size / (queries + 2);
  std::vector<View> pieces;
  for (const auto& [first, count] : {std::pair{uint64_t{0}, queries * head},
                                     {queries * head, head},
                                     {(queries + 1) * head, head}})
    for (uint64_t group = 0; group < groups; ++group)
      pieces.push_back(narrowed(view, axis, group * size + first, count));
  return concatenated(pieces, axis);
}

void add_grouped(const Candidate& plain, std::size_t axis, std::vector<Candidate>& candidates) {
  if (plain.pair.a.terms != 1 || plain.pair.b.terms != 1) return;  // Sums of ranks are not cut.
  const uint64_t rows = plain.pair.a.shape[axis];
  for (uint64_t groups = 1; groups <= std::min<uint64_t>(kHeadsMax, rows / 4); ++groups) {
    if (rows % groups != 0) continue;
    for (uint64_t queries = 2; queries <= 32; ++queries) {
      if (rows / groups % (queries + 2) != 0 || rows / groups / (queries + 2) < kHeadMin) continue;
      for (const char side : {'a', 'b'}) {
        if (groups == 1) continue;  // All queries come first already.
        Candidate candidate = plain;
        candidate.form.rows = {RowOrder::by_head, side, axis, groups, 0, queries};
        View& view = side == 'a' ? candidate.pair.a : candidate.pair.b;
        view = regrouped(view, axis, groups, queries);
        candidates.push_back(std::move(candidate));
      }
    }
  }
}

// Equal parts of A in another order: halves, q, k and v, the gates of a GRU or an LSTM.
void add_part_orders(const Candidate& plain, std::size_t axis, std::vector<Candidate>& candidates) {
  if (plain.pair.a.terms != 1 || !plain.form.parts.empty()) return;  // Sums are not cut.
  const uint64_t rows = plain.pair.a.shape[axis];
  for (const uint64_t count : {uint64_t{2}, uint64_t{3}, uint64_t{4}}) {
    if (rows % count != 0) continue;
    std::vector<uint64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    while (std::ranges::next_permutation(order).found) {
      std::vector<View> pieces;
      for (const uint64_t part : order)
        pieces.push_back(narrowed(plain.pair.a, axis, part * (rows / count), rows / count));
      Candidate candidate = plain;
      candidate.form.parts.assign(order.begin(), order.end());
      candidate.form.rows.axis = axis;
      candidate.pair.a = concatenated(pieces, axis);
      candidates.push_back(std::move(candidate));
    }
  }
}

// How ranks were put together, and apart from that how axes were moved.
Candidate of_ranks(AlignedPair aligned) {
  Candidate candidate;
  for (AxisStep& step : without_sizes(aligned.steps)) {
    const bool moves = step.op == Op::permute || step.op == Op::squeeze;
    (moves ? candidate.form.axes : candidate.form.whole).push_back(std::move(step));
  }
  candidate.pair = std::move(aligned);
  return candidate;
}

// Ranks that all hold the same may hold copies, or shares of a sum: biases of row-parallel layers.
void add_sums(const Operand& a, const Operand& b, std::vector<Candidate>& candidates) {
  const std::vector<AxisStep>& whole = candidates[0].form.whole;
  if (whole.size() != 1 || whole[0].op != Op::replica) return;
  const char side = whole[0].side;
  const std::vector<View>& shards = side == 'a' ? a.shards : b.shards;
  if (!can_encode(shards[0].dtype) || shards[0].shape != candidates[0].pair.a.shape) return;
  Candidate sum = candidates[0];
  (side == 'a' ? sum.pair.a : sum.pair.b) = summed(shards);
  const auto replica = std::ranges::find(sum.pair.steps, Op::replica, &Step::op);
  *replica = {side, Op::sum, {shards.size()}};
  sum.pair.copies.clear();
  sum.form.whole = {{side, Op::sum, {shards.size()}}};
  candidates.push_back(std::move(sum));
}

}  // namespace

std::vector<Candidate> plain_candidates(const Operand& a, const Operand& b) {
  std::vector<Candidate> candidates;
  if (a.shards.size() > 1 || b.shards.size() > 1) {
    // Alignment knows which ways to put ranks together would hide that they changed places.
    Result<AlignedPair> aligned = align(a, b);
    if (!aligned.ok()) return {};
    candidates.push_back(of_ranks(std::move(aligned).value()));
    add_sums(a, b, candidates);
    const Shape& shape = candidates[0].pair.a.shape;
    // Alignment takes a square matrix as it is; whether it is, the other layers decide.
    if (shape.size() == 2 && shape[0] == shape[1] && shape[0] > 1 &&
        !candidates[0].form.moves_axes()) {
      Candidate turned = candidates[0];
      apply_to({{'a', Op::permute, {1, 0}}}, turned.pair);
      turned.form.axes.push_back({'a', Op::permute, {1, 0}});
      candidates.push_back(std::move(turned));
    }
    return candidates;
  }
  for (const std::vector<std::size_t>& order_a : part_orders(a.section))
    for (const std::vector<std::size_t>& order_b : part_orders(b.section))
      add_plain(with_order(a, order_a), with_order(b, order_b), order_a.empty() ? order_b : order_a,
                candidates);
  return candidates;
}

std::vector<Candidate> merged_candidates(const PairOperands& operands,
                                         const MergedOperand& merged) {
  Operand a = operands.a, b = operands.b;
  (merged.how.side == 'a' ? a : b).shards = {merged.view};
  std::vector<Candidate> candidates = plain_candidates(a, b);
  for (Candidate& candidate : candidates) candidate.form.merge = merged.how;
  return candidates;
}

std::vector<Candidate> row_candidates(const Candidate& plain, bool may_be_fused) {
  std::vector<Candidate> candidates;
  const Shape& shape = plain.pair.a.shape;
  for (std::size_t axis = 0; axis < std::min<std::size_t>(shape.size(), 2); ++axis) {
    add_rope(plain, axis, candidates);
    add_part_orders(plain, axis, candidates);
    if (!may_be_fused) continue;
    add_equal_parts(plain, axis, candidates);
    add_grouped(plain, axis, candidates);
  }
  return candidates;
}

std::vector<Candidate> rope_candidates(const Candidate& plain) {
  std::vector<Candidate> candidates;
  for (std::size_t axis = 0; axis < std::min<std::size_t>(plain.pair.a.shape.size(), 2); ++axis)
    add_rope(plain, axis, candidates);
  return candidates;
}

bool reorders_whole(const Form& form) {
  return !form.parts.empty() &&
         std::ranges::find(form.whole, Op::select, &AxisStep::op) == form.whole.end();
}

std::vector<Candidate> function_candidates(const Candidate& plain) {
  std::vector<Candidate> candidates;
  if (plain.pair.a.elements() > kFunctionElementsMax || is_complex(plain.pair.a.dtype)) return {};
  for (const Function function : {Function::plus_one, Function::minus_one, Function::negated,
                                  Function::negative_exp, Function::log_negated}) {
    Candidate candidate = plain;
    candidate.form.function = function;
    candidate.pair.a = with_function(function, plain.pair.a);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace tensordiff
