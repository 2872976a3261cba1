// The tokens (or rows) of b are those of a in another order: a shuffled batch, patches in blocks
// against raster order, a zigzag split over ranks.
//
// Rows are matched by a few scattered features, each to the nearest, and the match must be one to
// one.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/blocks.h"
#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kRowsMax = 4096;  // The match takes rows², so no more than this.
constexpr uint64_t kFeaturesLookedAt = 16;
constexpr uint64_t kWork = uint64_t{1} << 20;  // Or more of them, so that all rows take this.

// A few features of each row, side by side: rows become the blocks of one long row.
Matrix sketch(const Matrix& matrix) {
  const uint64_t affordable = kWork / (matrix.rows() * matrix.rows());
  const uint64_t kept = std::min(matrix.features, std::max(kFeaturesLookedAt, affordable));
  Matrix result;
  result.tokens = kept;
  result.features = matrix.rows();
  for (uint64_t k = 0; k < kept; ++k)
    for (uint64_t row = 0; row < matrix.rows(); ++row)
      result.values.push_back(matrix.row(row)[k * matrix.features / kept]);
  return result;
}

// The tokens that moved, by themselves: all others have but the error that came in.
void judge_moved(const Case& it, const std::vector<uint64_t>& source, Explanation& result) {
  double size = 0, before = 0, after = 0;
  const auto squared = [](double x) { return x * x; };
  for (uint64_t row = 0; row < source.size(); ++row) {
    if (source[row] == row) continue;
    size += squared(norm(it.a.row(row)));
    before += squared(distance(it.a.row(row), it.b.row(row)));
    after += squared(distance(it.a.row(source[row]), it.b.row(row)));
  }
  if (size == 0) return;
  result.before = std::sqrt(before / size);
  result.after = std::sqrt(after / size);
}

std::optional<Explanation> examine(const Case& it) {
  const uint64_t rows = it.a.rows();
  if (rows < 2 || rows > kRowsMax || it.norm_a == 0) return std::nullopt;
  const std::optional<BlockMap> map = block_order(sketch(it.a), sketch(it.b), rows);
  if (!map) return std::nullopt;
  Explanation result = explained_by(
      it, filled(it.a, [&](uint64_t row, uint64_t i) { return it.a.row(map->source[row])[i]; }));
  if (it.carried > 0) judge_moved(it, map->source, result);
  uint64_t moved = 0;
  for (uint64_t row = 0; row < rows; ++row) moved += map->source[row] != row;
  result.text = fmt::format("{} of {} {} of b are those of a in another order", moved, rows,
                            it.run.activations ? "tokens" : "rows");
  result.parameters = {{"source", map->source}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::row_permutation = {
    .code = "row_permutation",
    .question = "Are the tokens or rows of b those of a in another order?",
    .explains = "a shuffled batch, another order of patches, a zigzag split not undone",
    .layout = true,
    .examine = examine,
};

}  // namespace tensordiff
