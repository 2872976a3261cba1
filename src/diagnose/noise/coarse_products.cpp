#include "diagnose/noise/coarse_products.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "diagnose/graph/module_tree.h"
#include "diagnose/limits.h"
#include "diagnose/noise/structure.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

struct Format {
  std::string_view name;
  double roundoff;
};
constexpr Format kFormats[] = {{"TF32", 0x1p-11}, {"bf16", 0x1p-8}};

// Rounding an operand leaves 0.42 u of it (uniform over the steps of a mantissa), both 0.6 u of a
// product and of a sum of products whose terms do not cancel. Terms that all have one sign leave
// less, those that cancel more: by up to the root of how many there are, of which 8 is a usual one.
constexpr double kOfProduct = 0.6;
constexpr double kSpread = 8;
// From 16 features on, the error of one token tells that of all to a quarter (1/√16).
constexpr uint64_t kFeaturesMin = 16;
// Of the steps that are off: the first, and the three projections that read one norm.
constexpr std::size_t kLooksMax = 4;
// Products that are computed again: one of them may hold a mistake. Of so many that are tried.
constexpr std::size_t kComputedMin = 2, kComputedMax = 5, kTriedMax = 12;

// What products of a format are off by at least, and the least of all formats.
double least_error(const Format& format) { return kOfProduct * format.roundoff / kSpread; }
constexpr double kExact = kOfProduct * kFormats[0].roundoff / kSpread;

// The format whose rounding comes nearest to an error.
const Format* format_of(double error) {
  const Format* best = nullptr;
  double least = std::log(kSpread);
  for (const Format& format : kFormats) {
    const double apart = std::abs(std::log(error / (kOfProduct * format.roundoff)));
    if (apart <= least) least = apart, best = &format;
  }
  return best;
}

bool is_projection(Role role) {
  return (role >= Role::query && role <= Role::value) || role == Role::fused_qkv ||
         role == Role::attention_output || role == Role::gate || role == Role::up ||
         role == Role::mlp_output || role == Role::logits;
}

// A convolution gives a map, whatever it is called: a table gives a row for each token.
bool gives_map(const Site& site) {
  return (site.role == Role::other || site.role == Role::embedding) &&
         site.views.a.shape.size() > 3;
}

// Whether a step is known to multiply as the one that is off does: it is a projection by its name,
// or has the same kind of name in another place. Convolutions may be rounded in another way than
// matmuls.
bool multiply_alike(const Site& site, const Site& off) {
  const std::string_view word = last_word_of(off);
  return may_multiply(site) && gives_map(site) == gives_map(off) &&
         (is_projection(site.role) || (!word.empty() && word == last_word_of(site)));
}

// Statistics in place of a tensor, or a few values, show no rounding.
bool has_few_values(const Site& site) { return site.views.a.elements() < kFeaturesMin; }

// Whether some token is exact: products that round do so in each. What only positions change leaves
// the first token as it is.
bool has_exact_token(const Run& run, const Site& site, double least) {
  const Result<Matrix> a = read_matrix(site.views.a, run.extent);
  const Result<Matrix> b = read_matrix(site.views.b, run.extent);
  if (!a.ok() || !b.ok() || !same_form(a.value(), b.value()) || a.value().features < kFeaturesMin)
    return false;
  for (uint64_t row = 0; row < a.value().rows(); ++row) {
    const auto of_a = a.value().row(row);
    const double size = norm(of_a);  // What is empty was not multiplied.
    if (size > 0 && distance(of_a, b.value().row(row)) < least * size) return true;
  }
  return false;
}

// Whether most rows of a step repeat others: it looks up a table, or is the same for all sequences,
// as what is made of positions. Whole numbers and constants are exact in any format.
bool repeats_rows(const Run& run, const Site& site) {
  const Result<Matrix> read = read_matrix(site.views.a, run.extent);
  if (!read.ok() || read.value().rows() < 2) return false;
  const Matrix& a = read.value();
  std::vector<uint64_t> order(a.rows());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](uint64_t x, uint64_t y) {
    return std::ranges::lexicographical_compare(a.row(x), a.row(y));
  });
  const auto same = std::ranges::unique(
      order, [&](uint64_t x, uint64_t y) { return std::ranges::equal(a.row(x), a.row(y)); });
  return 2 * same.size() >= a.rows();
}

}  // namespace

bool may_multiply(const Site& site) {
  return !is_norm(site.role) && !site.made_of && !site.copy_of && site.role != Role::setting &&
         (site.role != Role::embedding || gives_map(site)) && site.role != Role::activation &&
         !(site.role >= Role::query_final && site.role <= Role::value_final);
}

std::string_view name_of_products(double roundoff) {
  const auto* format = std::ranges::find(kFormats, roundoff, &Format::roundoff);
  return format == std::end(kFormats) ? "" : format->name;
}

namespace {

// Whether no other module is inside of the one that gives a site: a container may give far more
// than the products in it, as a bias that it adds.
bool is_leaf(const ModuleTree& tree, std::size_t site) {
  const auto is_item = [&](std::size_t module) {
    return tree[module].number && tree[module].stem.empty();
  };
  std::size_t module = tree.module_of(site);
  if (is_item(module)) module = tree[module].parent;
  return module == Module::kRoot || std::ranges::all_of(tree[module].inside, is_item);
}

// What the products of a run round to, where this step is off by no more than that.
double shared_rounding(const Run& run, const ModuleTree& tree, const Site& off) {
  if (!off.compared() || off.is_lost() || off.roundoff >= limits::kNarrow || !may_multiply(off) ||
      has_few_values(off))
    return 0;
  const Format* format = format_of(off.error);
  if (!format || !unlike_noise(off, run.extent, kSpread * format->roundoff).empty()) return 0;
  if (has_exact_token(run, off, least_error(*format))) return 0;
  // One that is exact shows that products are, whatever it may have read.
  const double exact = least_error(*format);
  bool shared = false, alone = true, computed = false;
  for (const Site& other : run.sites) {
    // An expert that got no token tells nothing.
    if (&other == &off || !other.compared() || other.comparison.diff.compared == 0) continue;
    const bool alike = multiply_alike(other, off);
    if (other.error < exact && alike &&
        is_leaf(tree, static_cast<std::size_t>(&other - run.sites.data())) &&
        !repeats_rows(run, other))
      return 0;
    alone = alone && !alike;
    computed = computed || other.error > 0;
    shared = shared || (other.error >= exact && may_multiply(other));
  }
  // A rounding is that of a run where more than one step has it, or where there is no other product
  // of its kind and other steps show that B computed them in its own way: programs choose it for
  // matmuls, convolutions and recurrent cells each by itself.
  return shared || (alone && computed) ? format->roundoff : 0;
}

// What a step leaves of what its weights, or attention, make of B's own inputs; nothing where that
// is not known.
std::optional<double> left_of_inputs(const Run& run, const Site& site) {
  const operators::Context context(run, site);
  const operators::Proposal& kind =
      site.role == Role::attention_heads ? operators::kinds::attention : operators::kinds::linear;
  const operators::OperatorPtr product = kind.propose(context);
  const operators::Misfit left = product ? context.misfit(*product, true) : operators::Misfit();
  return left.known ? std::optional(left.rest) : std::nullopt;
}

// Whether it can be computed again: attention from what it reads, the others with weights.
bool is_product(const Run& run, const operators::Parameters& parameters, const Site& site) {
  if (!site.compared() || site.is_lost() || site.comparison.diff.compared == 0 ||
      site.roundoff >= limits::kNarrow || !may_multiply(site))
    return false;
  return site.role == Role::attention_heads ||
         (!run.weights.empty() && !parameters.under(operators::module_path(site.a.name)).empty());
}

// No product of B is exact, whatever it read.
double rounding_behind_mistake(const Run& run) {
  const operators::Parameters parameters(run.weights.named());
  std::vector<double> left;
  std::size_t tried = 0;
  for (const Site& site : run.sites) {
    if (left.size() == kComputedMax || tried == kTriedMax) break;
    if (!is_product(run, parameters, site)) continue;
    ++tried;
    const std::optional<double> each = left_of_inputs(run, site);
    if (each && *each < kExact) return 0;
    if (each) left.push_back(*each);
  }
  if (left.size() < kComputedMin) return 0;
  const Format* format = format_of(*std::ranges::min_element(left));
  return format ? format->roundoff : 0;
}

}  // namespace

std::string_view rounds_alone_like(const Run& run, const Site& site) {
  const bool shows = run.product_roundoff == 0 && site.compared() && !site.is_lost() &&
                     site.roundoff < limits::kNarrow && site.error_in < kExact &&
                     may_multiply(site) && !has_few_values(site);
  const Format* format = shows ? format_of(site.error) : nullptr;
  if (!format || !unlike_noise(site, run.extent, kSpread * format->roundoff).empty()) return "";
  return has_exact_token(run, site, least_error(*format)) ? "" : format->name;
}

double coarse_products(const Run& run) {
  // The first step that is off may hold a mistake. So may others; but products whose inputs agree
  // show their rounding, wherever the mistake is.
  std::size_t looked_at = 0;
  const ModuleTree tree(run.sites);
  for (const Site& site : run.sites) {
    if (!site.bug()) continue;
    const bool shows = !site.inputs.empty() && site.error_in < kExact && may_multiply(site) &&
                       format_of(site.error);
    if (looked_at > 0 && !shows) continue;
    if (const double roundoff = shared_rounding(run, tree, site); roundoff > 0) return roundoff;
    if (++looked_at == kLooksMax) break;
  }
  return looked_at > 0 ? rounding_behind_mistake(run) : 0;
}

}  // namespace tensordiff
