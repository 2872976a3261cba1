#include "diagnose/noise/casts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "diagnose/graph/module_tree.h"
#include "diagnose/noise/coarse_products.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLayersMinOfCasts = 2;  // Bits are counted, not estimated.
constexpr int kBitsLost = 3;  // Of fraction: what tells bf16 from f16, and 8-bit floats from bf16.

// The bits that the values of one side need at each site, and in the middle of each kind of them.
struct Fineness {
  std::vector<int> bits;
  std::map<std::string, int> usual;
  int of_run = 0;  // In the middle of all sites.

  Fineness(const Run& run, std::vector<int> of_sites) : bits(std::move(of_sites)) {
    std::map<std::string, std::vector<int>> seen;
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i] > 0) seen[kind_of(run.sites[i])].push_back(bits[i]);
    std::vector<int> all = bits;
    std::erase(all, 0);
    std::ranges::sort(all);
    if (!all.empty()) of_run = all[all.size() / 2];
    int least = 0;  // Of what all layers have.
    for (auto& [kind, of_kind] : seen) {
      if (of_kind.size() < kLayersMinOfCasts) continue;
      std::ranges::sort(of_kind);
      usual[kind] = of_kind[of_kind.size() / 2];
      least = least == 0 ? usual[kind] : std::min(least, usual[kind]);
    }
    // A step that is there once is held against the coarsest of those that are in all layers.
    for (const auto& [kind, of_kind] : seen)
      if (of_kind.size() < kLayersMinOfCasts && least > 0) usual[kind] = least;
  }

  bool coarse(const Run& run, std::size_t i) const {
    const auto found = usual.find(kind_of(run.sites[i]));
    // What is as coarse as the run is not cast: other layers may add up in a wider type.
    return found != usual.end() && bits[i] > 0 && bits[i] + kBitsLost <= found->second &&
           bits[i] + kBitsLost <= of_run;
  }
};

// Of coarse operands, a product of few terms needs few bits itself: attention that sees one token,
// a convolution at the border of a map. Where B's products are coarse, that is no cast.
bool may_be_of_products(const Run& run, const Site& site, int bits) {
  return may_multiply(site) && std::ldexp(1.0, -bits - 1) <= run.product_roundoff;
}

}  // namespace

void find_casts(Run& run, std::vector<int> of_a, std::vector<int> of_b) {
  const Fineness a(run, std::move(of_a)), b(run, std::move(of_b));
  for (std::size_t i = 0; i < run.sites.size(); ++i) {
    if (!b.coarse(run, i) || a.coarse(run, i)) continue;
    Site& site = run.sites[i];
    if (may_be_of_products(run, site, b.bits[i])) continue;
    site.reason = "its values are coarser than in other tensors of its kind";
    // What is rounding here is told by those.
    const int usual = std::min(b.usual.at(kind_of(site)), a.bits[i] > 0 ? a.bits[i] : 64);
    site.roundoff = std::ldexp(1.0, -usual - 1);
  }
}

}  // namespace tensordiff
