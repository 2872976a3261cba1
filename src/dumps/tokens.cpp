#include "dumps/tokens.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <queue>

#include <fmt/format.h>

#include "align/view.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kPairsMax = 1 << 24;  // Of rows of both sides: a second or so.
constexpr uint64_t kFeaturesRead = 64;   // Of an embedding: enough to tell tokens apart.
constexpr double kSameToken = 0.02;      // Of its size: bf16 rounds by 0.004 at most.
constexpr std::size_t kRunsMax = 100'000;

// How the tokens lie in the tensors of a side: [batch, length, …], or [tokens, …].
struct Grid {
  uint64_t batch = 1, length = 0;
  bool packed = true;
  const Tensor* embedding = nullptr;

  uint64_t tokens() const { return batch * length; }
};

// Whether it is a dump of a run, and no file with some embedding.
bool has_layers(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const Tensor& tensor) {
    const Place& place = tensor.place;
    return place.known && place.layer >= 0 && place.parameter == Param::none;
  });
}

// What tells tokens apart: the embedding, which is the input of the first layer, or else what that
// layer makes of each token by itself.
enum class Key : uint8_t { stream, norm, value };

bool is_key(const Place& place, Key key) {
  if (place.step == Role::embedding) return key == Key::stream;
  if (place.layer != 0 || !place.known) return false;
  return place.step == (key == Key::stream ? Role::layer_input
                        : key == Key::norm ? Role::attention_norm
                                           : Role::value);
}

std::optional<Grid> grid_of(const Catalog& catalog, Key key) {
  Grid grid;
  for (const Tensor& tensor : catalog.tensors) {
    const bool is_result = tensor.place.parameter == Param::none && tensor.fault.empty();
    if (!is_key(tensor.place, key) || !is_result || tensor.tokens) continue;
    const Shape& shape = tensor.view.shape;
    if (shape.size() != 2 && shape.size() != 3) continue;
    // All ranks have all of it, or there is no telling.
    const auto same_shape = [&](const View& shard) { return shard.shape == shape; };
    if (!std::ranges::all_of(tensor.shards, same_shape)) continue;
    grid.embedding = &tensor;
    grid.packed = shape.size() == 2;
    grid.batch = grid.packed ? 1 : shape[0];
    grid.length = grid.packed ? shape[0] : shape[1];
    break;
  }
  if (!grid.embedding || !has_layers(catalog)) return std::nullopt;
  const bool told = !catalog.tokens.empty();
  if (told && grid.packed && catalog.tokens.size() != grid.length) return std::nullopt;
  return grid;
}

// What tells the tokens of a side apart, a row for each.
struct Keys {
  std::vector<double> values;
  uint64_t width = 0;

  std::span<const double> row(uint64_t i) const {
    return std::span(values).subspan(i * width, width);
  }
};

std::optional<Keys> ids_of(const Catalog& catalog, const Grid& grid) {
  Keys keys{{}, 1};
  if (catalog.tokens.size() != grid.tokens()) return std::nullopt;
  for (const Token& token : catalog.tokens) {
    if (token.id < 0) return std::nullopt;
    keys.values.push_back(static_cast<double>(token.id));
  }
  return keys;
}

std::optional<Keys> embeddings_of(const Grid& grid, uint64_t width) {
  const View& view = grid.embedding->view;
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || is_complex(view.dtype)) return std::nullopt;
  const uint64_t features = view.shape.back();
  Keys keys{std::vector<double>(grid.tokens() * width), width};
  for (uint64_t i = 0; i < grid.tokens(); ++i)
    reader.value().values(i * features, width, keys.values.data() + i * width);
  return keys;
}

bool same(std::span<const double> x, std::span<const double> y) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    apart += (x[i] - y[i]) * (x[i] - y[i]);
    size += x[i] * x[i] + y[i] * y[i];
  }
  return apart <= kSameToken * kSameToken * size / 2;  // NaN is no token.
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
std::vector<char> starts_of(const Catalog& catalog, const Grid& grid) {
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

// The tensor with tokens first, all in one row; nothing where it has none.
std::optional<View> by_tokens(const View& view, const Grid& grid) {
  const Shape& shape = view.shape;
  if (grid.packed)
    return !shape.empty() && shape[0] == grid.length ? std::optional(view) : std::nullopt;
  // Routers and experts see the tokens of all sequences in one row.
  if (shape.size() == 2 && shape[0] == grid.tokens() && grid.batch > 1) return view;
  View source = view;
  const bool heads_first = shape.size() == 4 && shape[0] == grid.batch && shape[2] == grid.length &&
                           shape[1] != grid.length && shape[3] != grid.length;
  if (heads_first) source = permuted(view, std::vector<uint64_t>{0, 2, 1, 3});
  if (source.shape.size() < 3 || source.shape[0] != grid.batch || source.shape[1] != grid.length)
    return std::nullopt;
  std::vector<View> rows;
  for (uint64_t i = 0; i < grid.batch; ++i) rows.push_back(squeezed(narrowed(source, 0, i, 1), 0));
  return rows.size() == 1 ? std::move(rows[0]) : concatenated(rows, 0);
}

using Indexes = std::vector<uint64_t>;

// Gives a side the rows of the runs only.
class Selecting {
 public:
  Selecting(const Grid& grid, const std::vector<Run>& runs, uint64_t Run::*side)
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
    if (catalog.tokens.size() != number_.size()) return catalog.tokens.clear();
    std::vector<Token> tokens;
    for (const Piece& piece : pieces_)
      for (uint64_t i = 0; i < piece.count; ++i) tokens.push_back(catalog.tokens[piece.first + i]);
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

  const Grid& grid_;
  std::vector<uint64_t> number_;
  std::vector<Piece> pieces_;
  uint64_t count_ = 0;
};

std::optional<std::vector<Run>> runs_between(const Catalog& a, const Grid& grid_a, const Catalog& b,
                                             const Grid& grid_b) {
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
bool is_shared(const Catalog& catalog, const Grid& grid) {
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
  std::optional<Grid> grid_a, grid_b;
  for (const Key key : {Key::stream, Key::norm, Key::value}) {
    grid_a = grid_of(a, key), grid_b = grid_of(b, key);
    if (!grid_a || !grid_b) continue;
    if (key != Key::stream && !(is_shared(a, *grid_a) && is_shared(b, *grid_b))) return;
    break;
  }
  if (!grid_a || !grid_b) return;
  const uint64_t tokens_a = grid_a->tokens(), tokens_b = grid_b->tokens();
  if (tokens_a == tokens_b || tokens_a == 0 || tokens_b == 0) return;
  if (tokens_a > kPairsMax / tokens_b) return;
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
