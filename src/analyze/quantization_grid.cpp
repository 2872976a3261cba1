#include "analyze/quantization_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/group_sums.h"
#include "analyze/patch.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// Outlier rows are often kept as they were, and a block may straddle the end of a row.
constexpr double kNearlyAll = 0.9;
// Of one group: fewer bits than this cannot refuse a book that is wrong.
constexpr double kTelling = 8;
// Of all groups together: less than one false alarm among the tensors of a million models.
constexpr double kSure = 40;

// Of one group: a book that is wrong has this much by chance in one of 16.
constexpr double kLuck = 4;

constexpr std::size_t kRows = 16, kRowMax = 4096, kOfRow = 1024;
constexpr std::size_t kBlockSizes[] = {1024, 512, 256, 128, 64, 32, 16};

using Groups = std::vector<std::vector<double>>;

std::vector<double> values_at(const Reader& reader, uint64_t first, std::size_t count) {
  std::vector<double> values(count);
  reader.values(first, count, values.data());
  for (double& value : values)
    if (!std::isfinite(value)) value = 0;
  return values;
}

// All groups on one book; nothing where they are not.
std::optional<Grid> judge(const Groups& groups, const Precision& precision, const CodeBook& book) {
  Grid grid;
  grid.book = &book;
  grid.bits = book.bits;
  std::vector<double> steps;
  std::size_t missed = 0;
  double values_counted = 0;
  const auto allowed =
      static_cast<std::size_t>((1 - kNearlyAll) * static_cast<double>(groups.size()));
  for (const std::vector<double>& values : groups) {
    const std::optional<Fit> found = fit(values, precision, book);
    if (!found) {
      // What cannot refuse any book says nothing.
      if (evidence_possible(values, precision) < kTelling) continue;
      if (++missed > allowed) return std::nullopt;
      continue;
    }
    if (found->bits_of_evidence <= kLuck) continue;
    steps.push_back(found->scale);
    grid.levels = std::max(grid.levels, found->levels);
    grid.bits_of_evidence += found->bits_of_evidence - kLuck;
    values_counted += found->values;
  }
  if (grid.bits_of_evidence < kSure || steps.size() <= missed) return std::nullopt;
  std::ranges::sort(steps);
  grid.step = steps[steps.size() / 2];
  grid.bits_per_value = grid.bits_of_evidence / values_counted;
  if (grid.bits == 0)
    grid.bits = static_cast<int>(std::ceil(std::log2(static_cast<double>(grid.levels))));
  return grid;
}

// Whether x explains more of each value than y; where both explain about as much, the one of fewer
// bits.
bool tells_more(const Grid& x, const Grid& y) {
  constexpr double kAlike = 0.5;
  // The same steps with and without an offset: integer zero points leave both.
  const bool same =
      x.book->levels.empty() && y.book->levels.empty() && std::abs(x.step - y.step) < 0.05 * y.step;
  if (same) return x.bits < y.bits;
  if (std::abs(x.bits_per_value - y.bits_per_value) > kAlike)
    return x.bits_per_value > y.bits_per_value;
  return x.bits < y.bits;
}

std::optional<Grid> judge(const Groups& groups, const Precision& precision, Grid::Share share,
                          std::size_t block = 0) {
  std::optional<Grid> best;
  for (const CodeBook& book : code_books()) {
    std::optional<Grid> found = judge(groups, precision, book);
    if (found && (!best || tells_more(*found, *best))) best = std::move(found);
  }
  if (best) best->share = share, best->block = block;
  return best;
}

// The best that was found so far, from large groups to small ones.
class Best {
 public:
  // A grid that each value speaks for is not looked at more closely. After rounding to 16 bits the
  // fine steps of 8 bits fit much that is on coarser ones in smaller groups.
  bool found() const { return grid_ && grid_->bits_per_value >= kStrong; }
  void add(std::optional<Grid> next) {
    constexpr double kMore = 1;  // What smaller groups have to explain beyond larger ones.
    if (next && (!grid_ || next->bits_per_value > grid_->bits_per_value + kMore))
      grid_ = std::move(next);
  }
  std::optional<Grid> take() { return std::move(grid_); }

 private:
  static constexpr double kStrong = 6;
  std::optional<Grid> grid_;
};

// Blocks of a size out of longer runs that start where a block starts.
Groups cut(const Groups& runs, std::size_t size) {
  constexpr std::size_t kBlocks = 48;
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (std::size_t at = 0; at + size <= runs[run].size(); at += size)
      places.emplace_back(run, at);
  Groups blocks;
  for (const uint64_t which : spread(places.size(), kBlocks)) {
    const auto [run, at] = places[which];
    const auto first = runs[run].begin() + static_cast<std::ptrdiff_t>(at);
    blocks.emplace_back(first, first + static_cast<std::ptrdiff_t>(size));
  }
  return blocks;
}

// Some columns, from runs of neighbours: a column by itself is a page of the file for each value.
Groups columns_of(const Reader& reader, const Extents& extents) {
  constexpr std::size_t kRuns = 4, kRun = 4, kDown = 1024;
  const auto height = static_cast<std::size_t>(std::min<uint64_t>(extents.rows, kDown));
  const auto run = static_cast<std::size_t>(std::min<uint64_t>(extents.columns, kRun));
  Groups columns;
  for (const uint64_t at : spread(extents.columns / run, kRuns)) {
    Groups some(run, std::vector<double>(height));
    for (std::size_t row = 0; row < height; ++row) {
      const std::vector<double> values = values_at(reader, row * extents.columns + at * run, run);
      for (std::size_t i = 0; i < run; ++i) some[i][row] = values[i];
    }
    for (std::vector<double>& column : some) columns.push_back(std::move(column));
  }
  return columns;
}

// Runs of the longest block, by the order of elements alone: as bitsandbytes cuts a tensor.
Groups flat_runs(const Reader& reader, uint64_t elements) {
  Groups runs;
  const uint64_t size = kBlockSizes[0];
  if (elements < size) return {values_at(reader, 0, elements)};
  for (const uint64_t at : spread(elements / size, kRows))
    runs.push_back(values_at(reader, at * size, size));
  return runs;
}

// The largest blocks that fit, whichever way they run.
struct Runs {
  Groups values;
  Grid::Share share;
};
void find_blocks(const std::vector<Runs>& ways, const Precision& precision, Best& best) {
  for (const std::size_t size : kBlockSizes)
    for (const Runs& way : ways)
      if (!best.found()) best.add(judge(cut(way.values, size), precision, way.share, size));
}

}  // namespace

std::string Grid::text() const {
  std::string type = book->levels.empty() ? fmt::format("int{}", bits) : std::string(book->name);
  if (book->offset) type += " with an offset";
  switch (share) {
    case Share::tensor:
      return type + ", one scale";
    case Share::row:
      return type + ", a scale for each row";
    case Share::column:
      return type + ", a scale for each column";
    case Share::block:
      return fmt::format("{}, blocks of {}", type, block);
    case Share::block_down:
      break;
  }
  return fmt::format("{}, blocks of {} down", type, block);
}

Result<std::optional<Grid>> find_grid(const View& view, std::span<const double> extremes) {
  const uint64_t elements = view.elements();
  const Extents extents = extents_of(view.shape);
  if (is_complex(view.dtype) || elements < 2) return std::optional<Grid>();
  const Precision precision = precision_of(view.dtype);
  const Reader reader = TRY(Reader::open(view));

  Groups rows;
  const auto width = static_cast<std::size_t>(std::min<uint64_t>(extents.columns, kRowMax));
  for (const uint64_t row : spread(extents.rows, kRows))
    rows.push_back(values_at(reader, row * extents.columns, width));
  Groups whole{std::vector<double>(extremes.begin(), extremes.end())};
  // Some of each row: levels of one scale show in fewer values.
  for (const std::vector<double>& row : rows)
    whole[0].insert(whole[0].end(), row.begin(),
                    row.begin() + static_cast<std::ptrdiff_t>(std::min(row.size(), kOfRow)));
  Best best;
  best.add(judge(whole, precision, Grid::Share::tensor));
  if (!best.found()) best.add(judge(rows, precision, Grid::Share::row));
  Groups columns;
  if (!best.found() && extents.rows > 1 && extents.columns > 1) {
    columns = columns_of(reader, extents);
    best.add(judge(columns, precision, Grid::Share::column));
  }
  if (!best.found())
    find_blocks({{rows, Grid::Share::block},
                 {flat_runs(reader, elements), Grid::Share::block},
                 {std::move(columns), Grid::Share::block_down}},
                precision, best);
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return best.take();
}

}  // namespace tensordiff
