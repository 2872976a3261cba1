#include "diagnose/noise/coarse_products.h"

#include <algorithm>
#include <cmath>

#include "diagnose/graph/module_tree.h"
#include "diagnose/noise.h"
#include "diagnose/noise/structure.h"

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
// Of the steps that are off with inputs that agree: three projections read one norm.
constexpr std::size_t kLooksMax = 3;

// The format whose rounding comes nearest.
const Format* format_of(const Site& site) {
  const Format* best = nullptr;
  double least = std::log(kSpread);
  for (const Format& format : kFormats) {
    const double apart = std::abs(std::log(site.error / (kOfProduct * format.roundoff)));
    if (apart <= least) least = apart, best = &format;
  }
  return best;
}

bool is_projection(Role role) {
  return (role >= Role::query && role <= Role::value) || role == Role::fused_qkv ||
         role == Role::attention_output || role == Role::gate || role == Role::up ||
         role == Role::mlp_output || role == Role::logits;
}

// Whether a step is known to multiply as the one that is off does: it is a projection by its name,
// or the same step of another layer. Convolutions may be rounded in another way than matmuls.
bool multiply_alike(const Site& site, const Site& off) {
  const bool of_maps = off.role == Role::other && off.views.a.shape.size() > 3;
  return may_multiply(site) &&
         ((is_projection(site.role) && !of_maps) || kind_of(site) == kind_of(off));
}

}  // namespace

bool may_multiply(const Site& site) {
  return !is_norm(site.role) && !site.made_of && !site.copy_of && site.role != Role::setting &&
         site.role != Role::embedding && site.role != Role::activation &&
         !(site.role >= Role::query_final && site.role <= Role::value_final);
}

std::string_view name_of_products(double roundoff) {
  const auto* format = std::ranges::find(kFormats, roundoff, &Format::roundoff);
  return format == std::end(kFormats) ? "" : format->name;
}

namespace {

// What the products of a run round to, where this step is off by no more than that.
double shared_rounding(const Run& run, const Site& off) {
  if (!off.compared() || off.is_lost() || off.roundoff >= kNarrow || !may_multiply(off)) return 0;
  const Format* format = format_of(off);
  if (!format || !unlike_noise(off, run.extent, kSpread * format->roundoff).empty()) return 0;
  // One that is exact shows that products are, whatever it may have read.
  const double exact = kOfProduct * format->roundoff / kSpread;
  bool shared = false;
  for (const Site& other : run.sites) {
    if (&other == &off || !other.compared()) continue;
    if (other.error < exact && multiply_alike(other, off)) return 0;
    shared = shared || (other.error >= exact && may_multiply(other));
  }
  // A rounding is that of a run only where more than one step has it.
  return shared ? format->roundoff : 0;
}

}  // namespace

double coarse_products(const Run& run) {
  // The first step that is off may hold a mistake, and so may a few others that read the same.
  std::size_t looked_at = 0;
  for (const Site& site : run.sites) {
    if (!site.bug() || (looked_at > 0 && !site.created)) continue;
    if (const double roundoff = shared_rounding(run, site); roundoff > 0) return roundoff;
    if (++looked_at == kLooksMax) break;
  }
  return 0;
}

}  // namespace tensordiff
