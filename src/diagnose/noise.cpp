#include "diagnose/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/parallel.h"
#include "base/text.h"
#include "diagnose/activation.h"
#include "diagnose/attention.h"
#include "diagnose/by_weights.h"
#include "diagnose/carried.h"
#include "diagnose/exactness.h"
#include "diagnose/expected.h"
#include "diagnose/fit.h"
#include "diagnose/growth.h"
#include "diagnose/harmless.h"
#include "diagnose/norms.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

// A step of a clean run amplifies the noise of its inputs by less than this: attention by up to 2
// and a residual sum by up to 3 in clean runs of small and large models; the rest is margin.
constexpr double kGrowth = 8;
// Roundings that one step adds up, in unit roundoffs. float32 sums are made in float32, where a sum
// of K products is off by up to sqrt(K / 2), so 64 is K = 8192. Narrower types are summed in
// float32 and rounded once for each operation; a step is a handful of operations.
constexpr double kStepsWide = 64;
constexpr double kStepsNarrow = 16;
constexpr double kStepsTiny = 4;  // 8-bit floats: one rounding is already 3 to 6 %.
// Below so many unit roundoffs nothing is said of structure: it may be the format's own.
constexpr double kQuietRoundoffs = 8;
constexpr double kQuietWide = 32;   // Of float32, whose exp and tanh may be rough.
constexpr double kQuietGrowth = 3;  // An error that is no larger than this times its input's.
// Noise spreads: a factor for each of n tokens explains 1/n of its energy. Half is structure.
constexpr double kStructured = 0.5;
constexpr uint64_t kStructureSizeMin = 8;  // Of the axis that is averaged over.
// The largest of 10^9 normal errors is 6 sigma; noise that scales with the value has longer tails.
constexpr double kOutlier = 12;
// With a third run that measures the noise: up to here it is noise, from there on a mistake.
constexpr double kNoiseRatioMax = 3;
constexpr double kNoiseRatioSuspicious = 1.5;

// Noise grows alike in all layers: what grows so much more than elsewhere stands out, loud or not.
constexpr double kOutOfLine = 2.5;
constexpr std::size_t kLayersMinOfCasts = 2;  // Bits are counted, not estimated.
constexpr int kBitsLost = 3;  // Of fraction: what tells bf16 from f16, and 8-bit floats from bf16.

// What is no farther off than the noise before it agrees again, if it was off by far more.
constexpr double kHealed = 2;
constexpr double kVanished = 0.1;

constexpr std::size_t kSample = 96;  // Scattered: each is a page to fetch.
// Of every norm of a run, so no more than it takes: 8 tokens of 8192 features.
constexpr uint64_t kValuesLookedAt = uint64_t{1} << 16;
constexpr int kFormatBits[] = {7, 10};  // Of the fraction: bf16, f16 (and TF32).

// How many bits of fraction a value needs.
int fraction_bits(double value) {
  int exponent = 0;
  double fraction = std::abs(std::frexp(value, &exponent)) * 2 - 1;
  int bits = 0;
  for (; fraction > 0 && bits < 53; ++bits) {
    fraction *= 2;
    if (fraction >= 1) fraction -= 1;
  }
  return bits;
}

// How many bits of fraction the values of a view need, by a sample; those of its dtype where that
// does not tell: few values, or whole numbers, need few bits in any format.
int bits_needed(const View& view) {
  const int of_dtype = info(view.dtype).mantissa_bits;
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || of_dtype < kFormatBits[0]) return of_dtype;
  std::vector<double> values =
      values_at(reader.value(), sample_positions(view.elements(), kSample));
  std::erase_if(values, [](double value) { return value == 0 || !std::isfinite(value); });
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  int bits = 0;
  for (const double value : values) bits = std::max(bits, fraction_bits(value));
  const bool telling = values.size() >= 32 && std::ranges::any_of(values, [](double value) {
                         return value != std::floor(value);
                       });
  return telling ? std::min(bits, of_dtype) : of_dtype;
}

// Of the narrowest format that holds such values.
double roundoff_of(DType dtype, int bits) {
  int needed = info(dtype).mantissa_bits;
  for (const int format : kFormatBits)
    if (bits <= format) needed = std::min(needed, format);
  return std::ldexp(1.0, -needed - 1);
}

double steps_of(double roundoff) {
  if (roundoff < kNarrow) return kStepsWide;
  return roundoff < 1e-2 ? kStepsNarrow : kStepsTiny;
}

struct Structure {
  double rows = 0;     // Share of the error that one factor for each token explains.
  double columns = 0;  // Share of the error that one offset for each feature explains.
};

Structure structure_of(const Site& site, const Extent& extent) {
  Structure share;
  const Result<Matrix> a = read_matrix(site.views.a, extent);
  const Result<Matrix> b = read_matrix(site.views.b, extent);
  if (!a.ok() || !b.ok()) return share;
  const Matrix& x = a.value();
  const double all = distance(x.values, b.value().values);
  if (all == 0) return share;
  double rows = 0;
  std::vector<double> mean(x.features);
  for (uint64_t row = 0; row < x.rows(); ++row) {
    const auto of_a = x.row(row), of_b = b.value().row(row);
    const double excess = factor_between(of_a, of_b) - 1;
    rows += excess * excess * norm(of_a) * norm(of_a);
    for (uint64_t i = 0; i < x.features; ++i) mean[i] += of_b[i] - of_a[i];
  }
  double columns = 0;
  for (const double sum : mean) columns += sum * sum / static_cast<double>(x.rows());
  if (x.features >= kStructureSizeMin) share.rows = rows / (all * all);
  if (x.rows() >= kStructureSizeMin) share.columns = columns / (all * all);
  return share;
}

// Whether all tokens of a norm shrink alike, far below the noise of single elements. Wide types
// show another epsilon without that, and the roots of two libraries differ by a few roundoffs.
bool shrinks(const Site& site, const Extent& extent) {
  if (!is_norm(site.role) || site.roundoff < kNarrow) return false;
  const Result<Matrix> a = read_matrix(site.views.a, extent, 0, kValuesLookedAt);
  const Result<Matrix> b = read_matrix(site.views.b, extent, 0, kValuesLookedAt);
  return a.ok() && b.ok() && shared_shrink(a.value(), b.value(), site.roundoff);
}

// Whether an error is so far from rounding that its structure tells something.
bool is_loud(const Site& site) {
  const double quiet = site.roundoff < kNarrow ? kQuietWide : kQuietRoundoffs;
  return site.error > quiet * site.roundoff && site.error > kQuietGrowth * site.error_in;
}

// Why an error within the budget is no noise after all; empty where it is.
std::string quiet_reason(const Site& site, const Extent& extent) {
  const Diff& diff = site.comparison.diff;
  if (shrinks(site, extent)) return "all its tokens are off to the same side";
  if (!is_loud(site)) return "";
  const double count = static_cast<double>(std::max<uint64_t>(1, diff.compared));
  const double size = site.comparison.a.norm.value_or(0) / std::sqrt(count);
  const double scale = std::max(size, std::abs(diff.a_there.value_or(0)));
  if (diff.max_abs.value_or(0) > kOutlier * site.budget * scale)
    return "a few elements stand out of the noise";
  const Structure structure = structure_of(site, extent);
  if (structure.rows > kStructured) return "one factor for each token explains most of the error";
  if (structure.columns > kStructured)
    return "one offset for each feature explains most of the error";
  return "";
}

// The bits that the values of one side need at each site, and in the middle of each role.
struct Fineness {
  std::vector<int> bits;
  std::map<Role, int> usual;

  Fineness(const Run& run, std::vector<int> of_sites) : bits(std::move(of_sites)) {
    std::map<Role, std::vector<int>> seen;
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i] > 0) seen[run.sites[i].role].push_back(bits[i]);
    for (auto& [role, of_role] : seen) {
      if (role == Role::other || of_role.size() < kLayersMinOfCasts) continue;
      std::ranges::sort(of_role);
      usual[role] = of_role[of_role.size() / 2];
    }
  }

  bool coarse(const Run& run, std::size_t i) const {
    const auto found = usual.find(run.sites[i].role);
    return found != usual.end() && bits[i] > 0 && bits[i] + kBitsLost <= found->second;
  }
};

// A step whose values lost bits that the same step has in other layers was cast.
void find_casts(Run& run, std::vector<int> of_a, std::vector<int> of_b) {
  const Fineness a(run, std::move(of_a)), b(run, std::move(of_b));
  for (std::size_t i = 0; i < run.sites.size(); ++i) {
    if (!b.coarse(run, i) || a.coarse(run, i)) continue;
    Site& site = run.sites[i];
    site.reason = "its values are coarser than at this step in other layers";
    // What is rounding here is told by those.
    const int usual = std::min(b.usual.at(site.role), a.bits[i] > 0 ? a.bits[i] : 64);
    site.roundoff = std::ldexp(1.0, -usual - 1);
  }
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
    site.reason = fmt::format("error {} is more than rounding leaves here ({})",
                              human_number(site.error), human_number(site.budget));
  else if (!blank_tokens(run, site).empty())
    site.reason = "some of its tokens are left empty";
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
    site.reason = "its error grows far more than at this step in other layers";
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
  if (site.role == Role::activation) {
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
    site.reason = "computed again from its own inputs it comes out otherwise";
}

// What both sides hold twice is judged once, whatever it is called.
bool is_judged_before(const Run& run, Site& site) {
  const Site* first = site.copy_of ? &run.sites[*site.copy_of] : nullptr;
  site.repeats = first && same_statistics(first->comparison.b, site.comparison.b);
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
  else if (site.is_lost())
    site.reason = finite ? "NaN or infinite from finite inputs" : "NaN or infinite, as its inputs";
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
    site.reason = "its own inputs and the weights give something else";
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
    if (site.bug()) site.reason = "beyond what rounding leaves of logits";
  }
}

// A mistake may come to nothing: attention does not see what is added to all keys.
bool healed(const Site& site, const Before& before) {
  return site.role == Role::attention_heads && site.compared() &&
         site.error <= std::min(kHealed * before.clean_level, kVanished * site.error_in);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"match", "precision", "bug"};
  return kNames[static_cast<std::size_t>(verdict)];
}

double roundoff_of(const View& view) {
  return is_float(view.dtype) ? roundoff_of(view.dtype, bits_needed(view)) : 0;
}

void judge(Run& run) {
  std::vector<int> bits_a(run.sites.size()), bits_b(run.sites.size());
  for_each_index(run.sites.size(), [&](std::size_t i) {
    Site& site = run.sites[i];
    if (!site.compared()) return;
    site.error = site.comparison.diff.rel_l2.value_or(0);
    for (const auto& [view, bits] : {std::pair(&site.views.a, &bits_a), {&site.views.b, &bits_b}}) {
      if (!is_float(view->dtype)) continue;
      (*bits)[i] = bits_needed(*view);
      site.roundoff = std::max(site.roundoff, roundoff_of(view->dtype, (*bits)[i]));
    }
    site.budget = steps_of(site.roundoff) * site.roundoff;
  });
  if (!run.activations) return;  // Weights do not feed each other: the tolerance judges them.
  if (run.ends_only) return judge_ends(run);
  find_casts(run, std::move(bits_a), std::move(bits_b));
  const std::map<Role, double> usual = usual_growth(run);
  const std::vector<bool> against = against_weights(run);
  Before before{usual, 0, {}, std::vector<bool>(run.sites.size()), false};
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
    if (tainted || !site.compared()) continue;
    before.clean_level = std::max(before.clean_level, site.error);
    if (site.role == Role::setting || site.roundoff == 0) continue;
    before.exactness.add(site.error / site.roundoff);
  }
}

}  // namespace tensordiff
