// Chooses among the plans that the aligners propose.
//
// Plans are ordered from the simplest to the boldest: axes of size 1 dropped, merged axes split,
// axes moved (fewest first), the longer side cut. A plan that fits the shapes alone and keeps the
// order of the elements is taken as it is. Where there are more, or where axes move, each is tried
// on a sample of the values; the best is taken if it explains them and no other comes near. If
// values decide nothing, because the tensors differ anyway, the simplest is taken and marked.

#include <algorithm>
#include <array>
#include <set>

#include "align/evidence.h"
#include "align/view.h"
#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// How many times less than any other plan the chosen one must leave unexplained. A right layout
// leaves rounding, a wrong one nearly everything: they are decades apart.
constexpr double kClearlyBetter = 4;
// Below this, values agree to the last bits a double can tell in a correlation.
constexpr double kNothingUnexplained = 1e-12;

struct Candidate {
  Evidence evidence;
  Plan plan;
};

// A view that has a shape but no elements: the strides of what is made of it are positions.
View blank(const Shape& shape) {
  Part part{Shape(shape.size(), 0), shape, contiguous_strides(shape), 0, ByteSource()};
  return View{DType::u8, false, shape, {std::move(part)}};
}

AlignedPair carry_out(const Plan& plan, View a, View b) {
  AlignedPair pair{std::move(a), std::move(b), plan, ""};
  for (const Step& step : plan) {
    View& view = step.side == 'a' ? pair.a : pair.b;
    const Shape before = view.shape;
    view = apply(step, std::move(view));
    if (step.op != ops::kTruncate) continue;
    const uint64_t axis = step.argument[0];
    const uint64_t kept = step.argument[1];
    if (!pair.note.empty()) pair.note += "; ";
    pair.note += fmt::format("{} has {} more rows on axis {}: only the first {} are compared",
                             step.side, before[axis] - kept, axis, kept);
  }
  assert(pair.a.shape == pair.b.shape);
  return pair;
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
  Correspondence merged;
  for (const auto& [step_a, step_b, size] : axes) {
    if (!merged.empty() && merged.back()[0] == step_a * size && merged.back()[1] == step_b * size)
      merged.back() = {step_a, step_b, merged.back()[2] * size};
    else
      merged.push_back({step_a, step_b, size});
  }
  return merged;
}

std::vector<Candidate> candidates_for(const Shape& a, const Shape& b, const AlignOptions& options) {
  if (a == b) return {{Evidence::none, {}}};
  std::vector<Candidate> candidates;
  std::set<Correspondence> seen;
  for (const Aligner* aligner : aligners::kAll) {
    if (!options.enabled) break;
    for (Plan& plan : aligner->propose(a, b))
      if (seen.insert(correspondence(plan, a, b)).second)
        candidates.push_back({aligner->evidence, std::move(plan)});
  }
  return candidates;
}

AlignedPair choose(const std::vector<Candidate>& candidates, const View& a, const View& b) {
  // Held open, so that what is compressed is unpacked once and not for every plan.
  const Result<Reader> open_a = Reader::open(a);
  const Result<Reader> open_b = Reader::open(b);
  std::vector<double> disagreements;
  for (const Candidate& candidate : candidates)
    disagreements.push_back(sampled_disagreement(carry_out(candidate.plan, a, b)));
  const double least = *std::ranges::min_element(disagreements);
  if (least > disagreement_max(a.elements(), candidates.size())) {
    AlignedPair pair = carry_out(candidates[0].plan, a, b);
    pair.note = "layout not confirmed by values";
    return pair;
  }
  const auto as_good = [&](double value) {
    return value <= std::max(least * kClearlyBetter, kNothingUnexplained);
  };
  const auto chosen = std::ranges::find_if(disagreements, as_good) - disagreements.begin();
  AlignedPair pair = carry_out(candidates[static_cast<std::size_t>(chosen)].plan, a, b);
  if (least > kNothingUnexplained && std::ranges::count_if(disagreements, as_good) > 1)
    pair.note = "layout not confirmed by values";
  else if (chosen > 0 && candidates[0].evidence == Evidence::none)
    pair.note = "the shapes fit as they are, but the values only with the axes in another order";
  return pair;
}

}  // namespace

Result<AlignedPair> align(const View& a, const View& b, const AlignOptions& options) {
  std::vector<Candidate> candidates = candidates_for(a.shape, b.shape, options);
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.evidence == Evidence::exact &&
           !hold_same_values(carry_out(candidate.plan, a, b));
  });
  if (candidates.empty())
    return Error("no common layout: {} against {}", shape_text(a.shape), shape_text(b.shape));
  if (candidates.size() == 1 && candidates[0].evidence != Evidence::values)
    return carry_out(candidates[0].plan, a, b);
  return choose(candidates, a, b);
}

}  // namespace tensordiff
