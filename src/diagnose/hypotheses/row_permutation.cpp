// The tokens (or rows) of B are those of A in another order: a shuffled batch, patches in blocks
// against raster order, a zigzag split over ranks.
//
// Rows are matched by a few scattered features, each to the nearest, and the match must be one to
// one. Of a weight that is too large to be held, these features of all rows are read.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/hypotheses/blocks.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/hypotheses/row_order.h"
#include "diagnose/sample/fit.h"
#include "tensor/reader.h"

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

std::string text_of(const Case& it, const std::vector<uint64_t>& source) {
  uint64_t moved = 0;
  for (uint64_t row = 0; row < source.size(); ++row) moved += source[row] != row;
  return fmt::format("{} of {} {} of B are those of A in another order", moved, source.size(),
                     it.run.activations ? "tokens" : "rows");
}

// Of all rows of a weight; the rows that the case holds tell how well that explains them.
std::optional<Explanation> of_all_rows(const Case& it) {
  if (it.run.activations || it.own || it.a.batch != 1) return std::nullopt;
  const std::optional<std::vector<uint64_t>> source = order_of_rows(it.site.views);
  const Result<Reader> reader = Reader::open(it.site.views.a);
  if (!source || !reader.ok()) return std::nullopt;
  Matrix model = like(it.a);
  for (uint64_t row = 0; row < it.a.rows(); ++row)
    reader.value().values((*source)[it.a.first_token + row] * it.a.features, it.a.features,
                          model.row(row).data());
  Explanation result = explained_by(it, std::move(model));
  result.text = text_of(it, *source);
  result.parameters = {{"source", *source}};
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.a.whole && it.norm_a > 0)
    if (std::optional<Explanation> all = of_all_rows(it)) return all;
  const uint64_t rows = it.a.rows();
  if (rows < 2 || rows > kRowsMax || it.norm_a == 0) return std::nullopt;
  const std::optional<BlockMap> map = block_order(sketch(it.a), sketch(it.b), rows);
  if (!map) return std::nullopt;
  Explanation result = explained_by(
      it, filled(it.a, [&](uint64_t row, uint64_t i) { return it.a.row(map->source[row])[i]; }));
  if (it.carried > 0) judge_moved(it, map->source, result);
  result.text = text_of(it, map->source);
  result.parameters = {{"source", map->source}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::row_permutation = {
    .code = "row_permutation",
    .question = "Are the tokens or rows of B those of A in another order?",
    .explains = "a shuffled batch, another order of patches, a zigzag split not undone",
    .layout = true,
    .examine = examine,
};

}  // namespace tensordiff
