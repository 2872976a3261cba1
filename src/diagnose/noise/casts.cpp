#include "diagnose/noise/casts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "diagnose/graph/module_tree.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLayersMinOfCasts = 2;  // Bits are counted, not estimated.
constexpr int kBitsLost = 3;  // Of fraction: what tells bf16 from f16, and 8-bit floats from bf16.

// The bits that the values of one side need at each site, and in the middle of each kind of them.
struct Fineness {
  std::vector<int> bits;
  std::map<std::string, int> usual;

  Fineness(const Run& run, std::vector<int> of_sites) : bits(std::move(of_sites)) {
    std::map<std::string, std::vector<int>> seen;
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i] > 0) seen[kind_of(run.sites[i])].push_back(bits[i]);
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
    return found != usual.end() && bits[i] > 0 && bits[i] + kBitsLost <= found->second;
  }
};

}  // namespace

void find_casts(Run& run, std::vector<int> of_a, std::vector<int> of_b) {
  const Fineness a(run, std::move(of_a)), b(run, std::move(of_b));
  for (std::size_t i = 0; i < run.sites.size(); ++i) {
    if (!b.coarse(run, i) || a.coarse(run, i)) continue;
    Site& site = run.sites[i];
    site.reason = "its values are coarser than in other tensors of its kind";
    // What is rounding here is told by those.
    const int usual = std::min(b.usual.at(kind_of(site)), a.bits[i] > 0 ? a.bits[i] : 64);
    site.roundoff = std::ldexp(1.0, -usual - 1);
  }
}

}  // namespace tensordiff
