// What goes wrong between ranks: every rank holds the same shard, or the sum over ranks was done
// the wrong number of times.
//
// Where all blocks of b are one block of a, each rank loaded the same shard. A sum that lacks the
// other ranks' parts is told where those parts were dumped too.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/blocks.h"
#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

std::optional<Explanation> examine(const Case& it) {
  if (it.norm_a == 0) return std::nullopt;
  std::optional<Explanation> best;
  for (const uint64_t ranks : block_counts(it.a)) {
    const BlockMap map = map_blocks(it.a, it.b, ranks);
    const bool repeated =
        std::ranges::all_of(map.source, [&](uint64_t from) { return from == map.source[0]; });
    if (!repeated) continue;
    Explanation found = explained_by(it, rearranged(it.a, map));
    found.text =
        fmt::format("all {} blocks of b are block {} of a: every rank holds the same shard", ranks,
                    map.source[0]);
    found.parameters = {{"ranks", static_cast<double>(ranks)},
                        {"shard", static_cast<double>(map.source[0])}};
    if (accepted(it, found)) return found;
    if (!best || found.after < best->after) best = std::move(found);
  }
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::reduction = {
    .code = "reduction",
    .question = "Was something lost or doubled between ranks?",
    .explains = "every rank loaded the same shard",
    .examine = examine,
};

}  // namespace tensordiff
