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

using Values = std::vector<double>;
using Groups = std::vector<std::span<const double>>;  // Of values that share a scale.
using Books = std::vector<const CodeBook*>;

Groups groups_of(const std::vector<Values>& runs) { return {runs.begin(), runs.end()}; }

Values values_at(const Reader& reader, uint64_t first, std::size_t count) {
  Values values(count);
  reader.values(first, count, values.data());
  for (double& value : values)
    if (!std::isfinite(value)) value = 0;
  return values;
}

std::size_t misses_allowed(const Groups& groups) {
  return static_cast<std::size_t>((1 - kNearlyAll) * static_cast<double>(groups.size()));
}

// All groups on one book; nothing where they are not.
std::optional<Grid> judge(const Groups& groups, const Precision& precision, const CodeBook& book) {
  Grid grid;
  grid.book = &book;
  grid.bits = book.bits;
  Values steps;
  std::size_t missed = 0;
  double values_counted = 0;
  for (const std::span<const double> values : groups) {
    const std::optional<Fit> found = fit(values, precision, book);
    if (!found) {
      // What cannot refuse any book says nothing.
      if (evidence_possible(values, precision) < kTelling) continue;
      if (++missed > misses_allowed(groups)) return std::nullopt;
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

// What storing a value so takes, in bits: its own, and its part of the scale (and the offset) that
// its block shares, in 16 bits each. Those of whole rows hardly count.
double cost_of(const Grid& grid) {
  const double shared = grid.book->offset ? 32 : 16;
  return grid.bits + (grid.block > 0 ? shared / static_cast<double>(grid.block) : 0);
}

// The same steps with and without an offset: integer zero points leave both.
bool same_steps(const Grid& x, const Grid& y) {
  return x.book->levels.empty() && y.book->levels.empty() &&
         std::abs(x.step - y.step) < 0.05 * y.step;
}

// Whether x explains more of each value than y, beyond what x itself takes to say. A book of many
// levels has those of coarser ones among its own: whole numbers up to 15 are values of f8_e4m3.
bool tells_more(const Grid& x, const Grid& y) {
  if (same_steps(x, y)) return x.bits < y.bits;
  return x.bits_per_value - cost_of(x) > y.bits_per_value - cost_of(y);
}

// The groups, and the books that they may be on.
struct Question {
  const Groups& groups;
  const Books& books;
};
std::optional<Grid> judge(const Question& question, const Precision& precision, Grid::Share share,
                          std::size_t block = 0) {
  std::optional<Grid> best;
  for (const CodeBook* book : question.books) {
    std::optional<Grid> found = judge(question.groups, precision, *book);
    if (!found) continue;
    if (!best) {
      best = std::move(found);
      continue;
    }
    // What speaks for the steps speaks for both ways to count them.
    const double evidence =
        same_steps(*found, *best) ? std::max(found->bits_per_value, best->bits_per_value) : 0;
    if (tells_more(*found, *best)) best = std::move(found);
    best->bits_per_value = std::max(best->bits_per_value, evidence);
  }
  if (best) best->share = share, best->block = block;
  return best;
}

// The best that was found so far, from large groups to small ones.
class Best {
 public:
  // A grid of few bits that each value speaks for is not looked at more closely. After rounding to
  // 16 bits, fine steps fit much that is on coarser ones in smaller groups, and a type of 8 bits
  // holds the levels of 4 bits whose scales are powers of two.
  bool found() const {
    return grid_ && grid_->bits_per_value >= kStrong && grid_->bits <= kFewBits;
  }
  void add(std::optional<Grid> next) {
    if (next && (!grid_ || beats(*next, *grid_))) grid_ = std::move(next);
  }
  std::optional<Grid> take() { return std::move(grid_); }

 private:
  // Smaller groups have to explain more of each value. A few of them use fewer of the same levels
  // than the whole does, but not a quarter of them.
  static bool beats(const Grid& next, const Grid& than) {
    constexpr double kMore = 1;
    constexpr int kQuarter = 2;
    if (next.bits_per_value > than.bits_per_value + kMore) return true;
    if (same_steps(next, than)) return false;  // They share their scale.
    const double gained = next.bits_per_value - cost_of(next);
    return next.bits + kQuarter <= than.bits &&
           gained > than.bits_per_value - cost_of(than) + kMore;
  }

  static constexpr double kStrong = 6;
  static constexpr int kFewBits = 4;
  std::optional<Grid> grid_;
};

// Blocks of a size out of longer runs that start where a block starts.
Groups cut(const std::vector<Values>& runs, std::size_t size) {
  constexpr std::size_t kBlocks = 48;
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (std::size_t at = 0; at + size <= runs[run].size(); at += size)
      places.emplace_back(run, at);
  Groups blocks;
  for (const uint64_t which : spread(places.size(), kBlocks)) {
    const auto [run, at] = places[which];
    blocks.push_back(std::span(runs[run]).subspan(at, size));
  }
  return blocks;
}

bool refused(const Groups& blocks, const Precision& precision, const CodeBook& book) {
  std::size_t missed = 0;
  for (const std::span<const double> values : blocks)
    if (!fit(values, precision, book) && evidence_possible(values, precision) >= kTelling)
      if (++missed > misses_allowed(blocks)) return true;
  return false;
}

// The books that the smallest blocks of the runs may be on. Where a larger group is on a book, so
// is every block of it: what these refuse need not be looked for in larger groups.
Books open_books(const std::vector<Values>& runs, const Precision& precision) {
  const Groups blocks = cut(runs, std::ranges::min(kBlockSizes));
  Books books;
  for (const CodeBook& book : code_books())
    if (!refused(blocks, precision, book)) books.push_back(&book);
  return books;
}

// Some columns, from runs of neighbours: a column by itself is a page of the file for each value.
std::vector<Values> columns_of(const Reader& reader, const Extents& extents, uint64_t down) {
  constexpr std::size_t kRuns = 4, kRun = 4;
  const auto height = static_cast<std::size_t>(std::min<uint64_t>(extents.rows, down));
  const auto run = static_cast<std::size_t>(std::min<uint64_t>(extents.columns, kRun));
  std::vector<Values> columns;
  for (const uint64_t at : spread(extents.columns / run, kRuns)) {
    std::vector<Values> some(run, Values(height));
    for (std::size_t row = 0; row < height; ++row) {
      const Values values = values_at(reader, row * extents.columns + at * run, run);
      for (std::size_t i = 0; i < run; ++i) some[i][row] = values[i];
    }
    for (Values& column : some) columns.push_back(std::move(column));
  }
  return columns;
}

// Runs of the longest block, by the order of elements alone: as bitsandbytes cuts a tensor.
std::vector<Values> flat_runs(const Reader& reader, uint64_t elements) {
  std::vector<Values> runs;
  const uint64_t size = kBlockSizes[0];
  if (elements < size) return {values_at(reader, 0, elements)};
  for (const uint64_t at : spread(elements / size, kRows))
    runs.push_back(values_at(reader, at * size, size));
  return runs;
}

// Runs along one way through the tensor, and the books that their values may be on.
struct Way {
  Grid::Share share;
  std::vector<Values> runs = {};
  Books books = {};
};

// The largest blocks that fit, whichever way they run.
void find_blocks(const std::vector<const Way*>& ways, const Precision& precision, Best& best) {
  for (const std::size_t size : kBlockSizes)
    for (const Way* way : ways)
      if (!best.found() && !way->books.empty())
        best.add(judge({cut(way->runs, size), way->books}, precision, way->share, size));
}

Way rows_of(const Reader& reader, const Extents& extents, const Precision& precision) {
  Way way{Grid::Share::block};
  const auto width = static_cast<std::size_t>(std::min<uint64_t>(extents.columns, kRowMax));
  for (const uint64_t row : spread(extents.rows, kRows))
    way.runs.push_back(values_at(reader, row * extents.columns, width));
  way.books = open_books(way.runs, precision);
  return way;
}

// A few rows are enough to refuse all books; else more are read.
Way down_of(const Reader& reader, const Extents& extents, const Precision& precision) {
  constexpr uint64_t kFewDown = 64, kDown = 1024;
  Way way{Grid::Share::block_down};
  if (extents.rows < 2 || extents.columns < 2) return way;
  way.books = open_books(columns_of(reader, extents, kFewDown), precision);
  if (!way.books.empty()) way.runs = columns_of(reader, extents, kDown);
  return way;
}

// One scale for all: some values of each row, since levels of one scale show in fewer.
Values some_of_all(const std::vector<Values>& rows, std::span<const double> extremes) {
  Values some(extremes.begin(), extremes.end());
  for (const Values& row : rows)
    some.insert(some.end(), row.begin(),
                row.begin() + static_cast<std::ptrdiff_t>(std::min(row.size(), kOfRow)));
  return some;
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

  Best best;
  const Way along = rows_of(reader, extents, precision);
  if (!along.books.empty()) {
    const Values whole = some_of_all(along.runs, extremes);
    best.add(judge({{whole}, along.books}, precision, Grid::Share::tensor));
    if (!best.found())
      best.add(judge({groups_of(along.runs), along.books}, precision, Grid::Share::row));
  }
  if (!best.found()) {
    const Way down = down_of(reader, extents, precision);
    if (!down.books.empty())
      best.add(judge({groups_of(down.runs), down.books}, precision, Grid::Share::column));
    Way flat{Grid::Share::block};
    if (!best.found()) flat.runs = flat_runs(reader, elements);
    if (!best.found()) flat.books = open_books(flat.runs, precision);
    find_blocks({&along, &flat, &down}, precision, best);
  }
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return best.take();
}

}  // namespace tensordiff
