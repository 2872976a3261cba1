#include "dumps/tokens.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <queue>

#include <fmt/format.h>

#include "align/view.h"
#include "dumps/token_grid.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kFeaturesRead = 64;  // Of an embedding: enough to tell tokens apart.
constexpr double kSameToken = 0.02;     // Of its length: bf16 rounds by 0.004 at most.
constexpr std::size_t kRunsMax = 100'000;

// What tells the tokens of a side apart, a row for each.
struct Keys {
  std::vector<double> values;
  uint64_t width = 0;

  std::span<const double> row(uint64_t i) const {
    return std::span(values).subspan(i * width, width);
  }
};

std::optional<Keys> ids_of(const Catalog& catalog, const TokenGrid& grid) {
  Keys keys{{}, 1};
  if (catalog.tokens.size() != grid.tokens()) return std::nullopt;
  for (const Token& token : catalog.tokens) {
    if (token.id < 0) return std::nullopt;
    keys.values.push_back(static_cast<double>(token.id));
  }
  return keys;
}

std::optional<Keys> embeddings_of(const TokenGrid& grid, uint64_t width) {
  const View& view = grid.embedding->view;
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || is_complex(view.dtype)) return std::nullopt;
  const uint64_t features = view.shape.back();
  Keys keys{std::vector<double>(grid.tokens() * width), width};
  for (uint64_t i = 0; i < grid.tokens(); ++i)
    reader.value().values(i * features, width, keys.values.data() + i * width);
  return keys;
}

// Ids are the same or not. Rows of an embedding point the same way: one side may hold them times a
// number, as Gemma scales what it looks up.
bool same(std::span<const double> x, std::span<const double> y) {
  if (x.size() == 1) return x[0] == y[0];
  double product = 0, size_x = 0, size_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    product += x[i] * y[i];
    size_x += x[i] * x[i];
    size_y += y[i] * y[i];
  }
  // Two rows of one length that are so much of it apart have this cosine. NaN is no token.
  constexpr double kCosine = 1 - kSameToken * kSameToken / 2;
  return product >= kCosine * std::sqrt(size_x) * std::sqrt(size_y) &&
         (size_x == 0) == (size_y == 0);
}

// Rows [a, a + count) of one side are [b, b + count) of the other.
struct Run {
  uint64_t count = 0, a = 0, b = 0;

  // The longest first, then in order.
  bool operator<(const Run& other) const {
    return std::tuple(count, other.a, other.b) < std::tuple(other.count, a, b);
  }
};

// Whether a row starts another sequence than the one before it.
std::vector<char> starts_of(const Catalog& catalog, const TokenGrid& grid) {
  std::vector<char> starts(grid.tokens());
  for (uint64_t i = 0; i < starts.size(); ++i) {
    starts[i] = i % grid.length == 0;
    if (grid.packed && catalog.tokens.size() == starts.size() && i > 0)
      starts[i] = catalog.tokens[i].sequence != catalog.tokens[i - 1].sequence;
  }
  return starts;
}

std::priority_queue<Run> diagonals(const Keys& a, const Keys& b, const std::vector<char>& starts_a,
                                   const std::vector<char>& starts_b) {
  const uint64_t rows = starts_a.size(), columns = starts_b.size();
  std::priority_queue<Run> runs;
  for (uint64_t shift = 0; shift < rows + columns - 1; ++shift) {
    uint64_t i = shift < rows ? rows - 1 - shift : 0;
    uint64_t j = shift < rows ? 0 : shift - rows + 1;
    Run run;
    for (; i < rows && j < columns; ++i, ++j) {
      const bool equal = same(a.row(i), b.row(j));
      if (run.count > 0 && (!equal || starts_a[i] || starts_b[j])) {
        runs.push(run);
        run = {};
      }
      if (!equal) continue;
      if (run.count == 0) run = {0, i, j};
      ++run.count;
    }
    if (run.count > 0) runs.push(run);
  }
  return runs;
}

// The longest runs first; of those that overlap, what the longer ones leave.
std::vector<Run> chosen(std::priority_queue<Run> runs, uint64_t rows, uint64_t columns) {
  std::vector<char> used_a(rows), used_b(columns);
  std::vector<Run> result;
  while (!runs.empty() && result.size() < kRunsMax) {
    const Run run = runs.top();
    runs.pop();
    Run left;
    std::vector<Run> rest;
    for (uint64_t i = 0; i < run.count; ++i) {
      const bool used = used_a[run.a + i] || used_b[run.b + i];
      if (used && left.count > 0) rest.push_back(std::exchange(left, {}));
      if (used) continue;
      if (left.count == 0) left = {0, run.a + i, run.b + i};
      ++left.count;
    }
    if (left.count == run.count) {
      for (uint64_t i = 0; i < run.count; ++i) used_a[run.a + i] = used_b[run.b + i] = true;
      result.push_back(run);
      continue;
    }
    if (left.count > 0) rest.push_back(left);
    for (const Run& part : rest) runs.push(part);
  }
  std::ranges::sort(result, {}, &Run::a);
  return result;
}

struct Piece {
  uint64_t first = 0, count = 0;
};

View picked(const View& view, const std::vector<Piece>& pieces) {
  std::vector<View> parts;
  for (const Piece& piece : pieces) parts.push_back(narrowed(view, 0, piece.first, piece.count));
  return parts.size() == 1 ? std::move(parts[0]) : concatenated(parts, 0);
}

using Indexes = std::vector<uint64_t>;

void count_from_first(std::vector<Token>& tokens) {
  std::map<int32_t, int32_t> first;  // By sequence.
  for (const Token& token : tokens) {
    const auto at = first.emplace(token.sequence, token.position).first;
    at->second = std::min(at->second, token.position);
  }
  for (Token& token : tokens) token.position -= first[token.sequence];
}

// Gives a side the rows of the runs only.
class Selecting {
 public:
  Selecting(const TokenGrid& grid, const std::vector<Run>& runs, uint64_t Run::*side)
      : grid_(grid), number_(grid.tokens(), kNone) {
    for (const Run& run : runs) {
      pieces_.push_back({run.*side, run.count});
      for (uint64_t i = 0; i < run.count; ++i) number_[run.*side + i] = count_++;
    }
  }

  void apply(Catalog& catalog) const {
    for (Tensor& tensor : catalog.tensors) {
      if (!tensor.fault.empty() || tensor.place.parameter != Param::none) continue;
      tensor.tokens ? renumber(tensor) : select(tensor);
    }
    // Of a pass that the other side does not have.
    std::erase_if(catalog.tensors,
                  [](const Tensor& tensor) { return tensor.tokens && tensor.tokens->empty(); });
    const bool by_shape = catalog.tokens.empty();
    if (by_shape) catalog.tokens = tokens_in(grid_);
    if (catalog.tokens.size() != number_.size()) return catalog.tokens.clear();
    std::vector<Token> tokens;
    for (const Piece& piece : pieces_)
      for (uint64_t i = 0; i < piece.count; ++i) tokens.push_back(catalog.tokens[piece.first + i]);
    // What stands before the first token of a padded sequence is padding, too.
    if (by_shape) count_from_first(tokens);
    catalog.tokens = std::move(tokens);
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;

  void select(Tensor& tensor) const {
    const std::optional<View> view = by_tokens(tensor.view, grid_);
    if (!view) return;
    std::vector<View> shards;
    for (const View& shard : tensor.shards) {
      const std::optional<View> of_shard = by_tokens(shard, grid_);
      if (!of_shard) return;
      shards.push_back(picked(*of_shard, pieces_));
    }
    tensor.view = picked(*view, pieces_);
    tensor.shards = std::move(shards);
  }

  // Of a tensor that has some tokens only, those that are in both.
  void renumber(Tensor& tensor) const {
    std::map<uint64_t, uint64_t> rows;  // By their new numbers.
    for (uint64_t i = 0; i < tensor.tokens->size(); ++i)
      if (number_[(*tensor.tokens)[i]] != kNone) rows.emplace(number_[(*tensor.tokens)[i]], i);
    std::vector<Piece> pieces;
    Indexes tokens;
    for (const auto& [number, row] : rows) {
      tokens.push_back(number);
      if (!pieces.empty() && pieces.back().first + pieces.back().count == row)
        ++pieces.back().count;
      else
        pieces.push_back({row, 1});
    }
    if (pieces.empty()) {
      tensor.tokens = std::make_shared<const Indexes>();
      return;
    }
    tensor.view = picked(tensor.view, pieces);
    for (View& shard : tensor.shards) shard = picked(shard, pieces);
    const bool all = tokens.size() == count_;
    tensor.tokens = all ? nullptr : std::make_shared<const Indexes>(std::move(tokens));
  }

  const TokenGrid& grid_;
  std::vector<uint64_t> number_;
  std::vector<Piece> pieces_;
  uint64_t count_ = 0;
};

std::optional<std::vector<Run>> runs_between(const Catalog& a, const TokenGrid& grid_a,
                                             const Catalog& b, const TokenGrid& grid_b) {
  const uint64_t features = grid_a.embedding->view.shape.back();
  std::optional<Keys> keys_a = ids_of(a, grid_a), keys_b = ids_of(b, grid_b);
  if (!keys_a || !keys_b) {
    if (features != grid_b.embedding->view.shape.back()) return std::nullopt;
    const uint64_t width = std::min(features, kFeaturesRead);
    keys_a = embeddings_of(grid_a, width);
    keys_b = embeddings_of(grid_b, width);
  }
  if (!keys_a || !keys_b) return std::nullopt;
  return chosen(diagonals(*keys_a, *keys_b, starts_of(a, grid_a), starts_of(b, grid_b)),
                grid_a.tokens(), grid_b.tokens());
}

// The rows of a view whose tokens are `wanted`; nothing where one is missing. `held` are the tokens
// of the view, all of the run where there is no list.
std::optional<View> only(View view, const Indexes* held, const Indexes& wanted, uint64_t count) {
  if (view.shape.empty()) return std::nullopt;
  if (!held && view.shape[0] == 1 && view.shape.size() > 2 && view.shape[1] == count)
    view = squeezed(std::move(view), 0);
  if (view.shape[0] != (held ? held->size() : count)) return std::nullopt;
  std::vector<Piece> pieces;
  for (const uint64_t token : wanted) {
    uint64_t row = token;
    if (held) row = static_cast<uint64_t>(std::ranges::find(*held, token) - held->begin());
    if (row >= view.shape[0]) return std::nullopt;
    if (!pieces.empty() && pieces.back().first + pieces.back().count == row)
      ++pieces.back().count;
    else
      pieces.push_back({row, 1});
  }
  return pieces.empty() ? std::nullopt : std::optional(picked(view, pieces));
}

std::optional<std::vector<View>> only(const std::vector<View>& views, const Tensor& of,
                                      const Indexes& wanted, uint64_t count) {
  std::vector<View> rows;
  for (const View& view : views) {
    std::optional<View> each = only(view, of.tokens.get(), wanted, count);
    if (!each) return std::nullopt;
    rows.push_back(std::move(*each));
  }
  return rows;
}

// Whether most results of a side have the tokens of a grid: one odd tensor tells nothing of others.
bool is_shared(const Catalog& catalog, const TokenGrid& grid) {
  if (grid.tokens() == 0) return false;
  std::size_t all = 0, fit = 0;
  for (const Tensor& tensor : catalog.tensors) {
    if (tensor.place.parameter != Param::none || !tensor.fault.empty()) continue;
    ++all;
    fit += by_tokens(tensor.view, grid) ? 1 : 0;
  }
  return 2 * fit > all;
}

}  // namespace

void line_up_tokens(Catalog& a, Catalog& b, std::vector<std::string>& notes) {
  std::optional<TokenGrid> grid_a, grid_b;
  for (const TokenKey key : {TokenKey::stream, TokenKey::norm, TokenKey::value}) {
    grid_a = grid_of(a, key), grid_b = grid_of(b, key);
    if (!grid_a || !grid_b) continue;
    if (key != TokenKey::stream && !(is_shared(a, *grid_a) && is_shared(b, *grid_b))) return;
    break;
  }
  if (!grid_a || !grid_b) return;
  const uint64_t tokens_a = grid_a->tokens(), tokens_b = grid_b->tokens();
  if (tokens_a == tokens_b || tokens_a == 0 || tokens_b == 0) return;
  if (tokens_a > kTokenPairsMax / tokens_b) return;
  const std::optional<std::vector<Run>> runs = runs_between(a, *grid_a, b, *grid_b);
  if (!runs) return;
  uint64_t common = 0;
  for (const Run& run : *runs) common += run.count;
  // Less than half of the smaller side is no run of the same tokens.
  if (2 * common < std::min(tokens_a, tokens_b)) return;
  Selecting(*grid_a, *runs, &Run::a).apply(a);
  Selecting(*grid_b, *runs, &Run::b).apply(b);
  notes.push_back(
      fmt::format("{} tokens are compared, of {} in A and {} in B: the others are padding, "
                  "warm-up or on one side only",
                  common, tokens_a, tokens_b));
}

void keep_common_tokens(const Tensor& a, const Tensor& b, uint64_t count, TokenViews& views) {
  if (!a.tokens && !b.tokens) return;
  Indexes wanted;
  const Indexes& fewer = a.tokens ? *a.tokens : *b.tokens;
  for (const uint64_t token : fewer)
    if (!a.tokens || !b.tokens || std::ranges::find(*b.tokens, token) != b.tokens->end())
      wanted.push_back(token);
  std::optional<std::vector<View>> of_a = only(views.a, a, wanted, count);
  std::optional<std::vector<View>> of_b = only(views.b, b, wanted, count);
  if (of_a && of_b) views = {std::move(*of_a), std::move(*of_b)};
}

}  // namespace tensordiff
