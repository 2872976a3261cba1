#include "diagnose/verdict/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/parallel.h"
#include "base/text.h"
#include "diagnose/graph/asides.h"
#include "diagnose/graph/edges.h"
#include "diagnose/limits.h"
#include "diagnose/noise/casts.h"
#include "diagnose/noise/coarse_products.h"
#include "diagnose/noise/exactness.h"
#include "diagnose/noise/growth.h"
#include "diagnose/noise/norms.h"
#include "diagnose/noise/roundoff.h"
#include "diagnose/noise/structure.h"
#include "diagnose/replay/activation.h"
#include "diagnose/replay/attention.h"
#include "diagnose/replay/by_weights.h"
#include "diagnose/replay/expected.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"
#include "diagnose/verdict/harmless.h"

namespace tensordiff {
namespace {

// A step of a clean run amplifies the noise of its inputs by less than this: attention by up to 2
// and a residual sum by up to 3 in clean runs of small and large models; the rest is margin.
constexpr double kGrowth = 8;
// Below so many unit roundoffs nothing is said of structure: it may be the format's own.
constexpr double kQuietRoundoffs = 8;
constexpr double kQuietWide = 32;   // Of float32, whose exp and tanh may be rough.
constexpr double kQuietGrowth = 3;  // An error that is no larger than this times its input's.
// With a third run that measures the noise: up to here it is noise, from there on a mistake.
constexpr double kNoiseRatioMax = 3;
constexpr double kNoiseRatioSuspicious = 1.5;

// Noise grows alike in all layers: what grows so much more than elsewhere stands out, loud or not.
constexpr double kOutOfLine = 2.5;

constexpr double kSameError = 1e-6;  // Of two sums of the same squares, in float64.

// What is no farther off than the noise before it agrees again, if it was off by far more.
constexpr double kHealed = 2;
constexpr double kVanished = 0.1;

// Of every norm of a run, so no more than it takes: 8 tokens of 8192 features.
constexpr uint64_t kValuesLookedAt = uint64_t{1} << 16;

// Whether all tokens of a norm shrink alike, far below the noise of single elements. Wide types
// show another epsilon without that, and the roots of two libraries differ by a few roundoffs.
bool shrinks(const Site& site, const Extent& extent) {
  if (!is_norm(site.role) || site.roundoff < limits::kNarrow) return false;
  const Result<Matrix> a = read_matrix(site.views.a, extent, 0, kValuesLookedAt);
  const Result<Matrix> b = read_matrix(site.views.b, extent, 0, kValuesLookedAt);
  return a.ok() && b.ok() && shared_shrink(a.value(), b.value(), site.roundoff);
}

// Whether an error is so far from rounding that its structure tells something.
bool is_loud(const Site& site) {
  const double quiet = site.roundoff < limits::kNarrow ? kQuietWide : kQuietRoundoffs;
  return site.error > quiet * site.roundoff && site.error > kQuietGrowth * site.error_in;
}

// Why an error within the budget is no noise after all; empty where it is.
std::string quiet_reason(const Site& site, const Extent& extent) {
  if (shrinks(site, extent)) return "all its tokens are off to the same side";
  if (!is_loud(site)) return "";
  return unlike_noise(site, extent, site.budget);
}

void judge_by_noise_run(Site& site) {
  // Where the noise run happens to be exact, one rounding is still noise.
  const double limit = kNoiseRatioMax * std::max(*site.noise, 0.5 * site.roundoff);
  site.budget = limit;
  const double floor = std::max(*site.noise, 0.5 * site.roundoff);
  const std::string ratio = human_number(site.error / floor);
  if (site.error > limit)
    site.reason = fmt::format("its error is {} times that of the noise run", ratio);
  else if (site.error > kNoiseRatioSuspicious * floor)
    site.note = fmt::format("suspicious: its error is {} times that of the noise run", ratio);
}

void judge_by_model(const Run& run, Site& site, bool clean_inputs) {
  if (site.error > site.budget)
    site.reason = fmt::format("relative error {}; rounding explains at most {}",
                              human_number(site.error), human_number(site.budget));
  else if (!blank_tokens(run, site).empty())
    site.reason = "some of its tokens are empty";
  else if (clean_inputs && site.reason.empty())
    site.reason = quiet_reason(site, run.extent);
}

bool out_of_usual(const Run& run, const std::map<Role, double>& usual, const Site& site) {
  const auto found = usual.find(site.role);
  return found != usual.end() && !site.inputs.empty() &&
         growth_of(run, site) > kOutOfLine * found->second;
}

// Sets the reason of a site that grows far more than the same step in other layers.
void judge_by_layers(const Run& run, const std::map<Role, double>& usual, Site& site) {
  if (!site.reason.empty() || site.noise) return;
  if (is_loud(site) && out_of_usual(run, usual, site))
    site.reason = "its error grows far more than in the same step of other layers";
}

// What is known of the run before a site, in execution order.
struct Before {
  const std::map<Role, double>& usual;  // Growth.
  double clean_level = 0;               // The largest error that is noise.
  Exactness exactness;
  std::vector<bool> tainted;  // Of each site: a mistake goes into it, however faint.
  bool lost = false;          // What is no number is in the residual stream, and stays there.
};

bool adds_to_stream(Role role) {
  return role == Role::attention_output || role == Role::mlp_output || role == Role::layer_output;
}

bool reads_stream(Role role) { return is_norm(role) || role == Role::layer_output; }

// Sharp attention makes noise grow without bound, and noise hides mistakes in it; what a machine
// makes of tanh is off by more than rounding. Computing the step again from b's own inputs tells.
// So it does of a norm that is out of line, where noise would allow that.
void judge_by_replay(const Run& run, const std::map<Role, double>& usual, Site& site) {
  const double own = steps_of(site.roundoff) * site.roundoff;
  std::optional<bool> agrees;
  if (site.made_of && site.error >= own) {
    if (const auto expected = expected_of(run, site)) agrees = expected->met();
  } else if (site.role == Role::activation) {
    if (const auto step = learn_activation(run, site)) agrees = step->same;
  } else if (site.role == Role::attention_heads && (!site.reason.empty() || site.error >= own)) {
    agrees = attention_agrees(run, site);
  } else if (is_norm(site.role) && site.reason.empty() && site.error >= own &&
             out_of_usual(run, usual, site)) {
    if (const auto expected = expected_of(run, site)) agrees = expected->met();
  }
  if (!agrees || (*agrees && !shown_at_start(run, site))) return;
  if (*agrees)
    site.reason.clear();
  else if (site.reason.empty())
    site.reason = "recomputing it from its own inputs gives another result";
}

// Masks that are added to scores: -inf on one side, on the other a number that softmax makes as
// little of.
bool masks_alike(const Site& site) {
  const Stats &a = site.comparison.a, &b = site.comparison.b;
  const double lowest = std::min(a.min.value_or(0), b.min.value_or(0));
  return site.is_lost() && a.nan == 0 && b.nan == 0 && lowest < -limits::kStandIn &&
         std::max(a.max.value_or(0), b.max.value_or(0)) < limits::kStandIn;
}

// What both sides hold twice is judged once, whatever it is called.
bool is_judged_before(const Run& run, Site& site) {
  const Site* first = site.copy_of ? &run.sites[*site.copy_of] : nullptr;
  // What holds the same values in another order differs from A by something else.
  site.repeats = first && same_statistics(first->comparison.b, site.comparison.b) &&
                 near(site.comparison.diff.rel_l2.value_or(0),
                      first->comparison.diff.rel_l2.value_or(0), kSameError);
  if (!site.repeats) return false;
  site.error_in = first->error;
  site.budget = first->budget;
  site.roundoff = first->roundoff;
  site.verdict = first->verdict;
  site.reason = first->reason;
  site.note = first->note;
  return true;
}

void judge_one(Run& run, Site& site, const Before& before, bool against_weights) {
  if (site.aside) {
    site.verdict = Verdict::precision;
    site.created = false;
    site.note = aside_note(site);
    return;
  }
  if (is_judged_before(run, site)) return;
  const Diff& diff = site.comparison.diff;
  bool clean = true, finite = !before.lost || !reads_stream(site.role);
  const bool cast = !site.reason.empty();
  site.error_in = 0;
  for (const std::size_t input : site.inputs) {
    const Site& source = run.sites[input];
    clean = clean && !source.bug() && !before.tainted[input];
    finite = finite && !source.is_lost();
    site.error_in = std::max(site.error_in, source.error);
  }
  const double level = clean ? site.error_in : before.clean_level;
  const double own = steps_of(site.roundoff) * site.roundoff;
  site.budget = kGrowth * level + own;
  const auto usual = before.usual.find(site.role);
  if (!clean && usual != before.usual.end())
    site.budget = std::min(site.budget,
                           std::max(own, kOutOfLine * usual->second * sum_of_errors_in(run, site)));
  if (site.comparison.status == Status::incomparable)
    site.reason = "the two sides have no common layout";
  else if (masks_alike(site))
    site.note =
        "one side masks with -inf, the other with the lowest number: the same after softmax";
  else if (site.is_lost())
    site.reason = finite ? "NaN or Inf from finite inputs" : "NaN or Inf, like its inputs";
  else if (diff.equal == diff.compared)
    site.reason.clear();
  else if (site.noise)
    judge_by_noise_run(site);
  else
    judge_by_model(run, site, clean);
  if (clean && diff.equal != diff.compared) judge_by_layers(run, before.usual, site);
  if (clean && diff.equal != diff.compared && site.reason.empty() && !site.noise)
    site.reason = inexact_reason(run, site, before.exactness);
  if (clean && !cast && !site.is_lost()) {
    judge_by_replay(run, before.usual, site);
    forgive_harmless(run, site);
  }
  if (site.reason.empty() && !site.noise && against_weights)
    site.reason = "recomputing it from its inputs and the weights gives another result";
  const bool within = site.comparison.status <= Status::close;
  site.verdict = !site.reason.empty() ? Verdict::bug : within ? Verdict::match : Verdict::precision;
  // What is no number is made where all that goes in is one, however far that is off.
  const bool lost_here = site.is_lost() && finite;
  site.created = site.bug() && (clean || lost_here) && !site.inputs.empty();
}

// Logits whose layers were not dumped: what a whole model may leave of rounding is not known, so
// the tolerance judges them, but for so many roundings of the narrower type.
constexpr double kRoundingsOfModel = 32;

void judge_ends(Run& run) {
  for (Site& site : run.sites) {
    const Status status = site.comparison.status;
    if (status == Status::error) continue;
    const bool rounded = site.error <= kRoundingsOfModel * site.roundoff && !site.is_lost();
    site.verdict = status <= Status::close                  ? Verdict::match
                   : status == Status::different && rounded ? Verdict::precision
                                                            : Verdict::bug;
    if (site.bug()) site.reason = "more than rounding explains for logits";
  }
}

// A mistake may come to nothing: attention does not see what is added to all keys.
bool healed(const Site& site, const Before& before) {
  return site.role == Role::attention_heads && site.compared() &&
         site.error <= std::min(kHealed * before.clean_level, kVanished * site.error_in);
}

// The bits of fraction that the values of both sides need at each site.
struct Bits {
  std::vector<int> a, b;
  // In the middle of all sites, as the unit roundoff of the coarser side: that of the weights and
  // tables, too, which are not dumped.
  double of_run = 0;
};

double middle_roundoff(const Run& run, const std::vector<int>& bits, View AlignedPair::*side) {
  std::vector<double> known;
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i] > 0) known.push_back(roundoff_of((run.sites[i].views.*side).dtype, bits[i]));
  if (known.empty()) return 0;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::ranges::nth_element(known, middle);
  return *middle;
}

// ‖b − a‖ / ‖a‖. Numbers that stand for infinity have no size that others could be measured by.
double error_of(const Site& site, const Extent& extent) {
  const double all = site.comparison.diff.rel_l2.value_or(0);
  const Stats& stats = site.comparison.a;
  const double largest = std::max(std::abs(stats.min.value_or(0)), std::abs(stats.max.value_or(0)));
  if (largest < limits::kStandIn) return all;
  const Result<Matrix> a = read_matrix(site.views.a, extent), b = read_matrix(site.views.b, extent);
  if (!a.ok() || !b.ok() || !same_form(a.value(), b.value())) return all;
  double gaps = 0, size = 0;
  for (std::size_t i = 0; i < a.value().values.size(); ++i) {
    const double x = a.value().values[i], gap = b.value().values[i] - x;
    if (!(std::abs(x) < limits::kStandIn) || !(std::abs(gap) < limits::kStandIn)) continue;
    gaps += gap * gap;
    size += x * x;
  }
  return size > 0 ? std::max(all, std::sqrt(gaps / size)) : all;
}

void measure(Run& run, std::size_t i, const Bits& bits) {
  Site& site = run.sites[i];
  site.error = error_of(site, run.extent);
  site.reason.clear();
  site.note.clear();
  site.roundoff = 0;
  for (const auto& [view, of_side] : {std::pair(&site.views.a, &bits.a), {&site.views.b, &bits.b}})
    if (is_float(view->dtype))
      site.roundoff = std::max(site.roundoff, roundoff_of(view->dtype, (*of_side)[i]));
  // What no dumped step feeds comes of weights and tables, in the type of the run.
  if (site.inputs.empty() && site.roundoff > 0)
    site.roundoff = std::max(site.roundoff, bits.of_run);
  if (may_multiply(site)) site.roundoff = std::max(site.roundoff, run.product_roundoff);
  site.budget = steps_of(site.roundoff) * site.roundoff;
}

void judge_by(const Bits& bits, Run& run) {
  for (std::size_t i = 0; i < run.sites.size(); ++i)
    if (run.sites[i].compared()) measure(run, i, bits);
  if (!run.activations) return;  // Weights do not feed each other: the tolerance judges them.
  if (run.ends_only) return judge_ends(run);
  find_casts(run, bits.a, bits.b);
  const std::map<Role, double> usual = usual_growth(run);
  const std::vector<bool> against = against_weights(run);
  Before before{usual, 0, {}, std::vector<bool>(run.sites.size()), false};
  // Where products round coarser than all else, no step shows how exact the run is.
  if (run.product_roundoff > 0) before.exactness.add(INFINITY);
  for (std::size_t i = 0; i < run.sites.size(); ++i) {
    Site& site = run.sites[i];
    if (site.comparison.status == Status::error) continue;
    judge_one(run, site, before, against[i]);
    const bool tainted = site.bug() || (!healed(site, before) &&
                                        std::ranges::any_of(site.inputs, [&](std::size_t input) {
                                          return before.tainted[input];
                                        }));
    before.tainted[i] = tainted;
    before.lost = before.lost || (adds_to_stream(site.role) && site.is_lost());
    if (tainted || !site.compared() || site.aside) continue;
    before.clean_level = std::max(before.clean_level, site.error);
    if (site.role == Role::setting || site.roundoff == 0) continue;
    before.exactness.add(site.error / site.roundoff);
  }
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"match", "precision", "bug"};
  return kNames[static_cast<std::size_t>(verdict)];
}

void judge(Run& run) {
  Bits bits{std::vector<int>(run.sites.size()), std::vector<int>(run.sites.size())};
  for_each_index(run.sites.size(), [&](std::size_t i) {
    Site& site = run.sites[i];
    if (!site.compared()) return;
    for (const auto& [view, of_side] :
         {std::pair(&site.views.a, &bits.a), {&site.views.b, &bits.b}})
      if (is_float(view->dtype)) (*of_side)[i] = bits_needed(*view);
  });
  bits.of_run = std::max(middle_roundoff(run, bits.a, &AlignedPair::a),
                         middle_roundoff(run, bits.b, &AlignedPair::b));
  judge_by(bits, run);
  if (run.activations && !run.ends_only && find_asides(run)) {
    find_inputs(run.sites);
    judge_by(bits, run);
  }
  run.product_roundoff = run.activations && !run.ends_only ? coarse_products(run) : 0;
  if (run.product_roundoff > 0) judge_by(bits, run);
}

}  // namespace tensordiff
