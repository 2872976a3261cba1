// Chooses among the plans that the aligners propose.
//
// Plans are ordered from the simplest to the boldest: axes of size 1 dropped, merged axes split,
// axes moved (fewest first), the longer side cut. A plan that fits the shapes alone and keeps the
// order of the elements is taken as it is. Where there are more, or where axes move, each is tried
// on a sample of the values; the best is taken if it explains them and no other comes near. If
// values decide nothing, because the tensors differ anyway, the simplest is taken and marked.

#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "align/evidence.h"
#include "align/view.h"
#include "align/whole.h"
#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// How many times less than any other plan the chosen one must leave unexplained. A right layout
// leaves rounding, a wrong one nearly everything: they are decades apart.
constexpr double kClearlyBetter = 4;
// Below this, values agree to the last bits a double can tell in a correlation.
constexpr double kNothingUnexplained = 1e-12;

// More than anybody can mean; sharded tensors can be put together in many ways.
constexpr std::size_t kCandidatesMax = 1024;

struct Candidate {
  const Whole* a;
  const Whole* b;
  std::size_t boldness;
  Evidence evidence;
  Plan plan;
};

// A view that has a shape but no elements: the strides of what is made of it are positions.
View blank(const Shape& shape) {
  Part part{Shape(shape.size(), 0), shape, contiguous_strides(shape), 0, ByteSource()};
  return View{DType::u8, false, shape, {std::move(part)}};
}

// Which position of a meets which of b, in a form that does not depend on how the plan is written:
// axes as (position step in a, in b, size), the slowest of a first, those that run on merged.
using Correspondence = std::vector<std::array<uint64_t, 3>>;

Correspondence correspondence(const Plan& plan, const Shape& a, const Shape& b) {
  const AlignedPair pair = carry_out(plan, blank(a), blank(b));
  Correspondence axes;
  for (std::size_t axis = 0; axis < pair.a.shape.size(); ++axis)
    if (pair.a.shape[axis] != 1)
      axes.push_back({static_cast<uint64_t>(pair.a.parts[0].strides[axis]),
                      static_cast<uint64_t>(pair.b.parts[0].strides[axis]), pair.a.shape[axis]});
  std::ranges::sort(axes, std::ranges::greater());
  // Where both start, which tells the beginning of an axis from its end.
  Correspondence merged = {{pair.a.parts[0].offset, pair.b.parts[0].offset, 0}};
  for (const auto& [step_a, step_b, size] : axes) {
    if (merged.size() > 1 && merged.back()[0] == step_a * size && merged.back()[1] == step_b * size)
      merged.back() = {step_a, step_b, merged.back()[2] * size};
    else
      merged.push_back({step_a, step_b, size});
  }
  return merged;
}

// The plans that give two shapes one, simplest first, with how bold each is.
struct Fit {
  std::size_t boldness;
  Evidence evidence;
  Plan plan;
};

std::vector<Fit> fits_of(const Shape& a, const Shape& b, const AlignOptions& options) {
  if (a == b) return {{0, Evidence::none, {}}};
  std::vector<Fit> fits;
  std::set<Correspondence> seen;
  std::size_t boldness = 0;
  for (const Aligner* aligner : aligners::kAll) {
    if (!options.enabled) break;
    for (Plan& plan : aligner->propose(a, b))
      if (seen.insert(correspondence(plan, a, b)).second)
        fits.push_back({boldness, aligner->evidence, std::move(plan)});
    ++boldness;
  }
  return fits;
}

using Wholes = std::vector<Whole>;

// Leaving elements out must not make one rank of many pass for the whole, nor some for copies.
bool may_truncate(const Whole& a, const Whole& b) {
  return a.copies.empty() && b.copies.empty() && !a.guess && !b.guess;
}

bool can_carry_out(const Plan& plan, const View& a, const View& b) {
  return std::ranges::all_of(plan, [&](const Step& step) {
    return step.op != Op::flatten || can_flatten(step.side == 'a' ? a : b);
  });
}

// Rank meets rank: what they hold is compared as it is.
bool same_shards(const Operand& a, const Operand& b) {
  return a.shards.size() > 1 && !a.section && !b.section &&
         std::ranges::equal(a.shards, b.shards, {}, &View::shape, &View::shape);
}

bool moves_axes(const Plan& plan) {
  return std::ranges::find(plan, Op::permute, &Step::op) != plan.end();
}

// Where other tensors are cut with their axes as they are, or rank meets rank, one that fits so is
// not turned: square shards that were transposed stay a mistake.
void keep_axes(std::vector<Candidate>& candidates) {
  const bool fit = std::ranges::any_of(candidates, [](const Candidate& candidate) {
    return candidate.boldness == 0 && candidate.plan.empty();
  });
  if (fit) std::erase_if(candidates, [](const Candidate& each) { return moves_axes(each.plan); });
}

// How many ranks a whole adds up; 0: none. A stream that is stored as two summands is no such sum.
uint64_t ranks_added(const Whole& whole) {
  const auto sum = std::ranges::find(whole.steps, Op::sum, &Step::op);
  return sum == whole.steps.end() ? 0 : sum->argument[0];
}

// Where rank meets rank, to add them up, to regroup them on one side or to look at the first alone
// would hide that they changed places.
bool hides_order(const Whole& a, const Whole& b, bool as_many_ranks) {
  if (ranks_added(a) > 0 && ranks_added(a) == ranks_added(b)) return true;
  if (a.unlike && b.unlike) return true;
  if (a.on_rank != b.on_rank) return false;
  const unsigned grids = (a.regrouping | b.regrouping) & regrouped::kGrid;
  if (as_many_ranks) return a.regrouping != b.regrouping || grids != 0;
  return grids != (a.regrouping & b.regrouping & regrouped::kGrid);
}

// The pieces of a grid in rows on one side, in columns on the other: two ranks changed places.
bool turns_grid(const Whole& a, const Whole& b, const Plan& plan) {
  if ((a.regrouping & b.regrouping & regrouped::kGrid) == 0) return false;
  if (a.on_rank != b.on_rank || moves_axes(plan)) return false;
  // Without views: clang 14, which is for fuzzing, cannot compile those of this library.
  const auto joins = [](const Whole& whole) {
    std::vector<decltype(Step::argument)> axes;
    for (const Step& step : whole.steps)
      if (step.op == Op::concat) axes.push_back(step.argument);
    return axes;
  };
  return joins(a) != joins(b);
}

void add_candidates(const Whole& a, const Whole& b, const AlignOptions& options,
                    std::vector<Candidate>& candidates) {
  const bool guess = a.guess || b.guess;
  const bool gathered = !a.steps.empty() || !b.steps.empty();
  for (Fit& fit : fits_of(a.view.shape, b.view.shape, options)) {
    const bool cuts = fit.evidence == Evidence::exact;
    if (cuts && !may_truncate(a, b)) continue;
    if (turns_grid(a, b, fit.plan)) continue;
    if (!can_carry_out(fit.plan, a.view, b.view)) continue;
    std::size_t boldness = fit.boldness;
    if (guess) boldness += std::size(aligners::kAll);
    // Ranks may hold more than the whole because of padding, but sooner because of copies. All
    // pieces of both sides add up to multiples of each other, whether they are summands or not.
    // Copies are out of step where nothing else explains what ranks hold.
    const bool sums = ranks_added(a) > 0 && ranks_added(b) > 0;
    if ((cuts && gathered) || sums || a.unlike || b.unlike)
      boldness += 2 * std::size(aligners::kAll);
    const bool weak = guess && fit.evidence == Evidence::none;
    candidates.push_back(
        {&a, &b, boldness, weak ? Evidence::values : fit.evidence, std::move(fit.plan)});
  }
}

std::vector<Candidate> candidates_for(const Wholes& a, const Wholes& b, bool as_many_ranks,
                                      const AlignOptions& options) {
  std::vector<Candidate> candidates;
  for (const Whole& whole_a : a)
    for (const Whole& whole_b : b) {
      if (hides_order(whole_a, whole_b, as_many_ranks)) continue;
      if (candidates.size() < kCandidatesMax) add_candidates(whole_a, whole_b, options, candidates);
    }
  std::ranges::stable_sort(candidates, {}, &Candidate::boldness);
  return candidates;
}

AlignedPair carry_out(const Candidate& candidate) {
  AlignedPair pair = carry_out(candidate.plan, candidate.a->view, candidate.b->view);
  for (const Whole* whole : {candidate.b, candidate.a}) {
    pair.steps.insert(pair.steps.begin(), whole->steps.begin(), whole->steps.end());
    pair.copies.insert(pair.copies.begin(), whole->copies.begin(), whole->copies.end());
  }
  return pair;
}

// Of the copies of a side, the one that agrees best speaks for all: others may be out of step.
double disagreement(const Candidate& candidate) {
  double least = sampled_disagreement(carry_out(candidate));
  for (const View& view : candidate.a->substitutes)
    least =
        std::min(least, sampled_disagreement(carry_out(candidate.plan, view, candidate.b->view)));
  for (const View& view : candidate.b->substitutes)
    least =
        std::min(least, sampled_disagreement(carry_out(candidate.plan, candidate.a->view, view)));
  return least;
}

// Held open while plans are tried, so that what is compressed is unpacked once and not for each.
std::vector<Result<Reader>> held_open(const Operand& a, const Operand& b) {
  std::vector<Result<Reader>> readers;
  for (const Operand* operand : {&a, &b})
    for (const View& view : operand->shards) readers.push_back(Reader::open(view));
  return readers;
}

// `size` is that of the axis before the step, which truncates or selects.
LayoutNote part_note(const Step& step, uint64_t size) {
  using enum LayoutNote::Kind;
  const uint64_t axis = step.argument[0], kept = step.argument.back();
  const LayoutNote::Kind kind = step.op != Op::select ? only_beginning
                                : kept == 1           ? one_of_stack
                                                      : only_end;
  return {kind, step.side, axis, size, kept};
}

AlignedPair choose(const std::vector<Candidate>& candidates) {
  std::vector<double> disagreements;
  for (const Candidate& candidate : candidates) {
    disagreements.push_back(disagreement(candidate));
    if (disagreements.back() <= kNothingUnexplained) break;  // No bolder one can be better.
  }
  const double least = *std::ranges::min_element(disagreements);
  const double most = disagreement_max(candidates[0].a->view.elements(), candidates.size());
  if (least > most) {
    AlignedPair pair = carry_out(candidates[0]);
    pair.notes.push_back({LayoutNote::Kind::not_confirmed});
    return pair;
  }
  const auto as_good = [&](double value) {
    return value <= std::min(most, std::max(least * kClearlyBetter, kNothingUnexplained));
  };
  const auto found = std::ranges::find_if(disagreements, as_good) - disagreements.begin();
  const Candidate& chosen = candidates[static_cast<std::size_t>(found)];
  AlignedPair pair = carry_out(chosen);
  const bool same_wholes = chosen.a == candidates[0].a && chosen.b == candidates[0].b;
  if (least > kNothingUnexplained && std::ranges::count_if(disagreements, as_good) > 1)
    pair.notes.push_back({LayoutNote::Kind::not_confirmed});
  else if (found > 0 && (same_wholes || moves_axes(chosen.plan)) &&
           candidates[0].evidence == Evidence::none)
    pair.notes.push_back({LayoutNote::Kind::other_order});
  return pair;
}

// All that is done to both sides, cutting included.
Plan whole_plan(const Candidate& candidate) {
  Plan plan = candidate.a->steps;
  plan.insert(plan.end(), candidate.b->steps.begin(), candidate.b->steps.end());
  plan.insert(plan.end(), candidate.plan.begin(), candidate.plan.end());
  return plan;
}

// Whether two plans do the same to axes of whatever sizes.
bool alike(const Plan& x, const Plan& y) {
  return std::ranges::equal(x, y, [](const Step& one, const Step& other) {
    const bool sized = one.op == Op::split;
    return one.side == other.side && one.op == other.op &&
           one.argument.size() == other.argument.size() &&
           (sized ? one.argument[0] == other.argument[0] : one.argument == other.argument);
  });
}

// What is cut off may be padding, but not all that a rank has.
bool has_all_ranks(const Whole& whole, const View& cut) {
  return whole.steps.empty() || cut.parts.size() == whole.view.parts.size();
}

// Whether the values say what they have to say for a plan to be looked at, one of so many.
bool supported(const Candidate& candidate, std::size_t plans) {
  if (candidate.evidence == Evidence::exact) {
    const AlignedPair pair = carry_out(candidate);
    return has_all_ranks(*candidate.a, pair.a) && has_all_ranks(*candidate.b, pair.b) &&
           hold_same_values(pair);
  }
  if (candidate.evidence != Evidence::support) return true;
  return disagreement(candidate) <= disagreement_max(candidate.a->view.elements(), plans);
}

std::string shapes_text(const Operand& operand) {
  std::string text = shape_text(operand.shards[0].shape);
  if (operand.shards.size() > 1) text += fmt::format(" on {} ranks", operand.shards.size());
  if (operand.section)
    text += fmt::format(" (part {} of {})", operand.section->index + 1,
                        operand.section->elements.size());
  return text;
}

}  // namespace

AlignedPair carry_out(const Plan& plan, View a, View b) {
  AlignedPair pair{std::move(a), std::move(b), plan};
  for (const Step& step : plan) {
    View& view = step.side == 'a' ? pair.a : pair.b;
    const Shape before = view.shape;
    view = apply(step, std::move(view));
    if (step.op == Op::flatten) pair.notes = {{LayoutNote::Kind::flattened}};
    if (step.op == Op::truncate || step.op == Op::select)
      pair.notes.push_back(part_note(step, before[step.argument[0]]));
  }
  assert(pair.a.shape == pair.b.shape);
  return pair;
}

Result<AlignedPair> align(const Operand& a, const Operand& b, const AlignOptions& options) {
  const Wholes wholes_a = TRY(wholes_of('a', a).in("A"));
  const Wholes wholes_b = TRY(wholes_of('b', b).in("B"));
  const bool as_many_ranks = a.shards.size() == b.shards.size();
  std::vector<Candidate> candidates = candidates_for(wholes_a, wholes_b, as_many_ranks, options);
  if (a.facts.all || b.facts.all || (as_many_ranks && a.shards.size() > 1)) keep_axes(candidates);
  if (same_shards(a, b))
    std::erase_if(candidates, [](const Candidate& candidate) { return !candidate.plan.empty(); });
  if (options.like)
    for (const Candidate& candidate : candidates)
      if (alike(whole_plan(candidate), *options.like)) return carry_out(candidate);
  const std::size_t count = candidates.size();
  std::erase_if(candidates,
                [&](const Candidate& candidate) { return !supported(candidate, count); });
  if (candidates.empty())
    return Error("no common layout: {} against {}", shapes_text(a), shapes_text(b));
  if (candidates.size() == 1 && candidates[0].evidence != Evidence::values)
    return carry_out(candidates[0]);
  const std::vector<Result<Reader>> open = held_open(a, b);
  return choose(candidates);
}

}  // namespace tensordiff
