#include "diagnose/verdict/carried.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "diagnose/graph/heads.h"
#include "diagnose/limits.h"
#include "diagnose/noise/growth.h"
#include "diagnose/noise/norms.h"
#include "diagnose/operators/routing.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr double kCarriedGrowth = 5;  // At most, of a step that only carries an error on.
constexpr double kSuspicious = 1.2;
constexpr uint64_t kTokensGlanced = 16;
constexpr uint64_t kTokensGlancedMin = 8;  // Of wide ones.
constexpr uint64_t kTokensFewest = 2, kWide = 1024;
constexpr uint64_t kValuesGlanced = uint64_t{1} << 16;
constexpr uint64_t kFeaturesGlanced = 64, kFeaturesOfBlanks = 16;
constexpr double kGlanceRoom = 1.3;  // A part may be worse than the whole.
constexpr double kPromisingAtFirst = 0.9;
// A transform that takes away so much of an input's error, too, came in with it.
constexpr double kExplainsInput = 0.9;
// A factor must be so far from those of the inputs.
constexpr double kFactorApart = 1.25;
constexpr double kFactorApartOfMlp = 1.6;
// Growth beyond what weights make of a difference, and growth that is nothing special.
constexpr double kOutgrown = 4;
constexpr double kOrdinary = 2.5;
constexpr double kErrorGrown = 1.5;  // In the usual norm, which counts factors, too.
constexpr double kMostTokens = 0.9;
constexpr double kFarApart = 0.3;
constexpr double kUnrelated = 1;
constexpr double kSizeApart = 2;    // How much more than its direction the size of a norm is off.
constexpr double kOwnWeight = 0.4;  // Of the error, what the weights of a norm may leave.
constexpr double kRerouted = 0.5;   // Of what may be carried: more is another expert.
constexpr double kNearMost = 0.5;   // Where more comes in, little is left to be told.
constexpr std::size_t kPartMinOfMlp = 2;  // It may make anything of one token.

// How much of an error an explanation takes away.
double explained(double before, double after) {
  return std::sqrt(std::max(0.0, before * before - after * after));
}

// The same diagnosis on what came in takes away much of that, and about as much as here.
bool explains_input(const Case& it, const Diagnosis& diagnosis, const Explanation& here) {
  const double much = explained(here.before.value_or(it.before), here.after);
  return std::ranges::any_of(it.site.inputs, [&](std::size_t index) {
    const Site& input = it.run.sites[index];
    const bool counts = input.bug() || kStandsOut * input.error >= it.site.error;
    std::optional<Case> in = counts ? values_of(it.run, input) : std::nullopt;
    if (!in) return false;
    in->carried = INFINITY;
    const std::optional<Explanation> found = diagnosis.examine(*in);
    if (!found) return false;
    const double before = found->before.value_or(in->before);
    return found->after <= kExplainsInput * before &&
           much <= kStandsOut * explained(before, found->after);
  });
}

std::optional<double> factor_of(const Explanation& explanation) {
  for (const Parameter& parameter : explanation.parameters)
    if (parameter.name == "factor" && std::holds_alternative<double>(parameter.value))
      return std::get<double>(parameter.value);
  return std::nullopt;
}

// Whether a factor lies beyond those that may have come in.
bool beyond(const Site& site, double factor, double least, double most) {
  const double apart = site.role == Role::mlp_output ? kFactorApartOfMlp : kFactorApart;
  return factor < (least < 0 ? least * apart : least / apart) || factor > apart * most;
}

// Whether a factor is none that the inputs have, nor what an MLP, which multiplies them with each
// other, makes of theirs.
bool own_factor(const Case& it, double factor) {
  double least = 1, most = 1;
  for (const std::size_t index : it.site.inputs) {
    if (!it.run.sites[index].bug()) continue;
    const std::optional<Case> in = values_of(it.run, it.run.sites[index]);
    if (!in) return false;
    const double of_input = factor_between(in->a.values, in->b.values);
    const double size = norm(in->b.values) / std::max(norm(in->a.values), 1e-300);
    for (const double usual : {of_input, of_input * of_input, size, size * size}) {
      least = std::min(least, usual);
      most = std::max(most, usual);
    }
  }
  return beyond(it.site, factor, least, most);
}

// What is unrelated in each token.
std::vector<double> unrelated_tokens(const Run& run, const Site& site) {
  const Result<Matrix> a = read_matrix(site.views.a, run.extent);
  const Result<Matrix> b = read_matrix(site.views.b, run.extent);
  std::vector<double> shares;
  if (!a.ok() || !b.ok() || !same_form(a.value(), b.value())) return shares;
  for (uint64_t row = 0; row < a.value().rows(); ++row) {
    const auto of_a = a.value().row(row), of_b = b.value().row(row);
    const double size = norm(of_b);
    shares.push_back(unrelated(size > 0 ? factor_between(of_a, of_b) * norm(of_a) / size : 0));
  }
  return shares;
}

// Whether the stream gets no more of a step than what its branch gives, which is in the dumps.
bool inside_branch(const Run& run, const Site& site) {
  if (site.role >= Role::query && site.role <= Role::attention_heads)
    return find_role(run, site, Role::attention_output) != nullptr;
  return site.role >= Role::gate && site.role <= Role::gated &&
         find_role(run, site, Role::mlp_output) != nullptr;
}

// What a step that reads the residual stream may have got through it: what was computed in this
// layer and in the one before. Nothing for other steps.
std::vector<const Site*> added_to_stream(const Run& run, const Site& site) {
  std::vector<const Site*> added;
  if (!is_norm(site.role) && site.role != Role::layer_output) return added;
  for (const Site& other : run.sites) {
    if (&other == &site) break;
    const bool recent =
        other.block == site.block || !site.block || !other.block || *other.block + 1 == *site.block;
    if (recent && other.role != Role::setting && !inside_branch(run, other))
      added.push_back(&other);
  }
  return added;
}

// As many zeros as it takes for a token of them, and more of them than a has here and there.
bool may_have_blanks(const Run& run, const Site& site) {
  const Comparison& found = site.comparison;
  const TokenView tokens = by_tokens(site.views.a, run.extent);
  const uint64_t token = tokens.features;
  if (found.b.zeros < token || found.b.zeros < found.a.zeros + (token + 1) / 2) return false;
  // Sums of narrow types are zero here and there: a few features of each token tell most off.
  const uint64_t few = tokens.heads > 0 ? token / tokens.heads : kFeaturesOfBlanks;
  const Result<Matrix> b = read_matrix(first_features(site.views.b, run.extent, few), run.extent);
  for (uint64_t row = 0; b.ok() && row < b.value().rows(); ++row)
    if (norm(b.value().row(row)) == 0) return true;
  return false;
}

// Which tokens of a view hold nothing but zeros, or so little of an ordinary token's size.
std::vector<bool> blanks(const Run& run, const View& view, double share = 0) {
  std::vector<bool> blank;
  const Result<Matrix> read = read_matrix(view, run.extent);
  if (!read.ok()) return blank;
  const uint64_t rows = read.value().rows();
  const double most = share * norm(read.value().values) / std::sqrt(static_cast<double>(rows));
  for (uint64_t row = 0; row < rows; ++row) blank.push_back(norm(read.value().row(row)) <= most);
  return blank;
}

// Whether the heads that a projection puts together are there, or attention itself is in it.
bool has_heads(const Run& run, const Site& site) {
  return std::ranges::any_of(site.inputs, [&](std::size_t input) {
    return run.sites[input].role == Role::attention_heads;
  });
}

// Steps that compute each token from the same token of one input.
bool of_one_input(const Run& run, const Site& site) {
  switch (site.role) {
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::gate:
    case Role::up:
    case Role::mlp_output:
      return !site.inputs.empty();
    case Role::attention_output:
      return has_heads(run, site);
    default:
      return false;
  }
}

// Attention averages tokens, so that what differs may come out as one vector for all of them.
bool averages_tokens(const Run& run, const Site& site) {
  return site.role == Role::attention_heads ||
         (site.role == Role::attention_output && !has_heads(run, site));
}

// How far errors grow at steps of this kind, and at those that read the same.
double usual_growth(const Run& run, const Site& site) {
  std::vector<double> growths;
  double most = 1;
  for (const Site& other : run.sites) {
    if (&other == &site || !other.bug() || !of_one_input(run, other)) continue;
    const double growth = unrelated(other) / std::max(unrelated(run.sites[other.inputs[0]]), 1e-9);
    if (other.role == site.role) growths.push_back(growth);
    if (other.inputs == site.inputs) most = std::max(most, growth);
  }
  if (growths.empty()) return site.role == Role::mlp_output ? std::max(most, kOrdinary) : most;
  std::ranges::nth_element(growths, growths.begin() + std::ssize(growths) / 2);
  return std::max(most, growths[growths.size() / 2]);
}

bool moves_tokens(const Diagnosis& diagnosis) {
  return diagnosis.layout || &diagnosis == &diagnoses::token_shift ||
         &diagnosis == &diagnoses::row_permutation;
}

// Whether a norm gives the opposite, and nothing that went into the stream is it.
bool turned_round(const Case& it, double factor) {
  return factor < 0 && std::ranges::none_of(added_to_stream(it.run, it.site), [](const Site* part) {
           return part->comparison.diff.cosine.value_or(1) < 0;
         });
}

// What points nearly the same way comes out of a norm nearly as large, whatever went in.
bool has_own_size(const Case& it, const Explanation& explanation) {
  const double size = it.norm_a > 0 ? norm(it.b.values) / it.norm_a : 1;
  return size > 0 && std::abs(size - 1) > kSizeApart * explanation.after / size;
}

// Whether it takes away more than the best of all diagnoses would of few values by chance: in nats,
// against the choice of one of them and one number that is fitted.
bool earns_its_words(const Case& it, const Explanation& explanation) {
  const auto count = static_cast<double>(it.b.values.size());
  const double before = explanation.before.value_or(it.before);
  if (!(explanation.after > 0) || !(before > 0)) return true;
  return count * std::log(before / explanation.after) >
         std::log(static_cast<double>(std::size(diagnoses::kAll))) + 0.5 * std::log(count);
}

}  // namespace

bool same_statistics(const Stats& x, const Stats& y) {
  // Sums of the same squares may be taken in another order.
  return x.finite == y.finite && x.zeros == y.zeros && x.min == y.min && x.max == y.max &&
         near(x.norm.value_or(0), y.norm.value_or(0), limits::kSumsRounded) && x.min < x.max;
}

double carried_into(const Run& run, const Site& site) {
  double level = site.error_in;
  for (const Site* other : added_to_stream(run, site)) level = std::max(level, other->error);
  return level;
}

double most_carried(const Run& run, const Site& site) {
  return std::hypot(kCarriedGrowth * carried_into(run, site), site.budget);
}

const Site* held_before(const Run& run, const Site& site) {
  for (const Site& other : run.sites) {
    if (&other == &site) break;
    if (other.role == site.role && other.block != site.block && other.compared() &&
        same_statistics(other.comparison.b, site.comparison.b) &&
        !same_statistics(other.comparison.a, site.comparison.a))
      return &other;
  }
  return nullptr;
}

bool worth_a_look(const Run& run, const Site& site) {
  if (site.error > kSuspicious * carried_into(run, site) || may_have_blanks(run, site) ||
      held_before(run, site))
    return true;
  const double size = site.comparison.diff.norm_ratio.value_or(1);
  double least = 1, most = 1;
  for (const std::size_t input : site.inputs) {
    const double of_input = run.sites[input].comparison.diff.norm_ratio.value_or(1);
    least = std::min(least, of_input), most = std::max(most, of_input);
  }
  return size > kSuspicious * most || size * kSuspicious < least;
}

Glance::Glance(const Run& run, const Site& site) {
  const TokenView tokens = by_tokens(site.views.a, run.extent);
  const auto part = [&](const View& a, const View& b, uint64_t values, std::optional<Case>& into) {
    Result<Matrix> of_a = read_matrix(a, run.extent, 0, values);
    Result<Matrix> of_b = read_matrix(b, run.extent, 0, values);
    if (!of_a.ok() || !of_b.ok()) return;
    into.emplace(run, site, std::move(of_a).value(), std::move(of_b).value());
    measure(*into);
    into->carried = kGlanceRoom * carried_into(run, site);
    into->floor = std::max(site.budget, kStandsOut * into->carried);
  };
  const uint64_t count =
      std::clamp(tokens_held(run, site, kValuesGlanced), kTokensGlancedMin, kTokensGlanced);
  part(site.views.a, site.views.b, count * tokens.batch * tokens.features, tokens_);
  if (tokens.features >= kWide)
    part(site.views.a, site.views.b, kTokensFewest * tokens.batch * tokens.features, fewest_);
  // Whole heads where there are some, so that both sides have as many.
  const uint64_t features = tokens.heads > 0 ? tokens.features / tokens.heads : kFeaturesGlanced;
  part(first_features(site.views.a, run.extent, features),
       first_features(site.views.b, run.extent, features), kValuesMax, features_);
}

bool Glance::is_ruled_out(const Diagnosis& diagnosis) const {
  const bool orders_features =
      &diagnosis == &diagnoses::block_permutation || &diagnosis == &diagnoses::interleave;
  if (!fewest_ || !orders_features) return false;
  const std::optional<Explanation> found = diagnosis.examine(*fewest_);
  return !found || (!found->settled && found->after > kPromisingAtFirst * fewest_->before);
}

bool Glance::promises(const Diagnosis& diagnosis) const {
  if (is_ruled_out(diagnosis)) return false;
  // Where tokens went is told by all of them.
  const bool by_features =
      &diagnosis == &diagnoses::token_shift || &diagnosis == &diagnoses::row_permutation;
  const std::optional<Case>& part = by_features ? features_ : tokens_;
  const std::optional<Explanation> found = part ? diagnosis.examine(*part) : std::nullopt;
  if (!found || found->settled) return found.has_value();
  if (const std::optional<double> factor = factor_of(*found))
    return beyond(part->site, *factor, 1, 1) && near_carried(*part, *found);
  return found->after <= limits::kPromising * found->before.value_or(part->before);
}

bool made_there(const Case& it, const Diagnosis& diagnosis, const Explanation& explanation) {
  if (explanation.settled) return falls(it, explanation);
  if (!earns_its_words(it, explanation)) return false;
  // A norm makes factors and offsets of its own of what comes in, but not one for each feature.
  if (is_norm(it.site.role) && &diagnosis == &diagnoses::norm_weight)
    return explanation.after <= kOwnWeight * it.before || has_own_size(it, explanation);
  const std::optional<double> factor = factor_of(explanation);
  if (is_norm(it.site.role) && !moves_tokens(diagnosis))
    return &diagnosis == &diagnoses::scale && factor && turned_round(it, *factor) &&
           near_carried(it, explanation);
  if (&diagnosis == &diagnoses::scale && factor)
    return near_carried(it, explanation) && own_factor(it, *factor);
  if (&diagnosis == &diagnoses::offset && averages_tokens(it.run, it.site)) return false;
  return accepted(it, explanation) && !explains_input(it, diagnosis, explanation);
}

std::vector<uint64_t> blank_tokens(const Run& run, const Site& site) {
  const std::vector<const Site*> stream = added_to_stream(run, site);
  if ((site.inputs.empty() && stream.empty()) || !may_have_blanks(run, site)) return {};
  std::vector<bool> blank = blanks(run, site.views.b);
  const auto drop = [&](const View& view, double share = 0) {
    const std::vector<bool> other = blanks(run, view, share);
    for (std::size_t i = 0; i < std::min(blank.size(), other.size()); ++i)
      if (other[i]) blank[i] = false;
  };
  drop(site.views.a, site.roundoff);  // Less than that vanishes beside the others: gates underflow.
  for (const std::size_t input : site.inputs) drop(run.sites[input].views.b);
  for (const Site* added : stream) drop(added->views.b);
  std::vector<uint64_t> tokens;
  for (uint64_t i = 0; i < blank.size(); ++i)
    if (blank[i]) tokens.push_back(i);
  return tokens;
}

Outgrown outgrown_tokens(const Run& run, const Site& site) {
  Outgrown result;
  if (!of_one_input(run, site) || site.error < kErrorGrown * site.error_in) return result;
  const double usual = usual_growth(run, site);
  const std::vector<double> out = unrelated_tokens(run, site);
  const Site& input = run.sites[site.inputs[0]];
  std::vector<double> in = unrelated_tokens(run, input);
  if (out.size() != in.size()) return result;
  // An MLP makes another direction of another size.
  if (site.role == Role::mlp_output)
    for (double& each : in) each = std::max(each, input.error);
  std::size_t ordinary = 0, near_before = 0, told = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double level = std::max(usual * in[i], site.budget);
    const bool beyond = out[i] > std::max(kFarApart, kOutgrown * level);
    if (beyond) result.tokens.push_back(i);
    told += beyond && level < kNearMost;
    near_before += beyond && level < kNearMost && out[i] > kUnrelated;
    ordinary += out[i] <= kOrdinary * level;
  }
  const std::size_t many = result.tokens.size();
  result.all = static_cast<double>(told) >= kMostTokens * static_cast<double>(out.size());
  // A part stands out only where the others are as they should be, and where it was right before.
  const std::size_t fewest = site.role == Role::mlp_output ? kPartMinOfMlp : 1;
  const bool part = many >= fewest && 2 * many <= out.size() && many + ordinary >= out.size() &&
                    near_before == many;
  const bool routed =
      part && !rerouted_tokens(run, site, kRerouted * most_carried(run, site)).empty();
  if ((!result.all && !part) || routed) result.tokens.clear();
  return result;
}

Explanation region_of(const Case& it, const std::vector<uint64_t>& tokens) {
  Explanation result;
  result.text =
      fmt::format("the new error is confined to tokens {} of {}", ranges_text(tokens), it.a.rows());
  result.parameters = {{"axis", std::string("tokens")}, {"slices", tokens}};
  double outside = 0;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    const double gap = distance(it.a.row(row), it.b.row(row));
    if (!std::ranges::binary_search(tokens, row)) outside += gap * gap;
  }
  result.after = it.norm_a > 0 ? std::sqrt(outside) / it.norm_a : 0;
  return result;
}

}  // namespace tensordiff
