#include "dumps/token_grid.h"

#include <algorithm>
#include <utility>

#include "align/view.h"
#include "dumps/passes.h"
#include "dumps/tokens.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// Whether it is a dump of a run, and no file with some embedding.
bool has_layers(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const Tensor& tensor) {
    const Place& place = tensor.place;
    return place.known && place.layer >= 0 && place.parameter == Param::none;
  });
}

bool is_key(const Place& place, TokenKey key) {
  if (place.step == Role::embedding) return key == TokenKey::stream;
  if (place.layer != 0 || !place.known) return false;
  return place.step == (key == TokenKey::stream ? Role::layer_input
                        : key == TokenKey::norm ? Role::attention_norm
                                                : Role::value);
}

// Whether two ranks hold the same first token, and not each a part of the sequence.
bool starts_alike(const View& x, const View& y, uint64_t features) {
  constexpr uint64_t kRead = 64;          // Enough to tell tokens apart.
  constexpr double kRounding = 1.0 / 16;  // Of each, with much room: ranks may add up in any order.
  const uint64_t count = std::min({features, kRead, x.elements(), y.elements()});
  const Result<Reader> of_x = Reader::open(x), of_y = Reader::open(y);
  if (!of_x.ok() || !of_y.ok() || is_complex(x.dtype) || is_complex(y.dtype)) return true;
  std::vector<double> a(count), b(count);
  of_x.value().values(0, count, a.data());
  of_y.value().values(0, count, b.data());
  double apart = 0, size = 0;
  for (uint64_t i = 0; i < count; ++i) {
    apart += (a[i] - b[i]) * (a[i] - b[i]);
    size += a[i] * a[i] + b[i] * b[i];
  }
  return !(apart > kRounding * kRounding * size);
}

// Where the sequence comes first, [tokens, batch, …], only a batch of one can be known.
std::vector<Token> tokens_by_shape(const Catalog& catalog) {
  std::optional<TokenGrid> grid = grid_of(catalog, TokenKey::stream);
  if (!grid) return {};
  if (grid->length == 1) std::swap(grid->length, grid->batch);
  const bool fits = grid->length > grid->batch && grid->batch <= kTokenPairsMax / grid->length;
  return fits ? tokens_in(*grid) : std::vector<Token>();
}

// What a side tells, or what the shapes of its tensors do.
std::vector<RunToken> known(const Catalog& catalog) {
  const PassParts parts = passes_in(catalog);
  std::vector<RunToken> tokens;
  for (const Token& token : catalog.tokens.empty() ? tokens_by_shape(catalog) : catalog.tokens) {
    tokens.push_back({token.sequence, token.position});
    const auto end =
        std::upper_bound(parts.begin(), parts.end(), std::pair(token.sequence, token.position),
                         [](const auto& at, const PassPart& part) {
                           return at < std::pair(part.sequence, part.position);
                         });
    if (end == parts.begin() || std::prev(end)->sequence != token.sequence) continue;
    tokens.back().pass = std::prev(end)->pass;
    tokens.back().placed = std::prev(end)->placed;
  }
  return tokens;
}

bool has_passes(const std::vector<RunToken>& tokens) {
  return std::ranges::any_of(tokens, [&](const RunToken& t) { return t.pass != tokens[0].pass; });
}

}  // namespace

std::optional<TokenGrid> grid_of(const Catalog& catalog, TokenKey key) {
  TokenGrid grid;
  for (const Tensor& tensor : catalog.tensors) {
    const bool is_result = tensor.place.parameter == Param::none && tensor.fault.empty();
    if (!is_key(tensor.place, key) || !is_result || tensor.tokens) continue;
    const Shape& shape = tensor.view.shape;
    if (shape.size() != 2 && shape.size() != 3) continue;
    // All ranks have all of it, or there is no telling. What a rank has of values is its own heads.
    const auto same_rows = [&](const View& shard) {
      return shard.shape == shape &&
             (key == TokenKey::value || starts_alike(shard, tensor.view, shape.back()));
    };
    if (!std::ranges::all_of(tensor.shards, same_rows)) continue;
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

std::vector<Token> tokens_in(const TokenGrid& grid) {
  std::vector<Token> tokens;
  for (uint64_t i = 0; i < grid.batch; ++i)
    for (uint64_t k = 0; k < grid.length; ++k)
      tokens.push_back({static_cast<int32_t>(i), static_cast<int32_t>(k)});
  return tokens;
}

std::optional<View> by_tokens(const View& view, const TokenGrid& grid) {
  const Shape& shape = view.shape;
  if (grid.packed)
    return !shape.empty() && shape[0] == grid.length ? std::optional(view) : std::nullopt;
  // Routers and experts see the tokens of all sequences in one row.
  if (shape.size() == 2 && shape[0] == grid.tokens() && grid.batch > 1) return view;
  View source = view;
  const bool heads_first = shape.size() == 4 && shape[0] == grid.batch && shape[2] == grid.length &&
                           shape[1] != grid.length && shape[3] != grid.length;
  if (heads_first) source = permuted(view, std::vector<uint64_t>{0, 2, 1, 3});
  // What positions give is the same for all sequences, and stands there once.
  const bool once = source.shape.size() == 3 && source.shape[0] == 1;
  if (source.shape.size() < 3 || (source.shape[0] != grid.batch && !once) ||
      source.shape[1] != grid.length)
    return std::nullopt;
  std::vector<View> rows;
  for (uint64_t i = 0; i < grid.batch; ++i)
    rows.push_back(squeezed(narrowed(source, 0, once ? 0 : i, 1), 0));
  return rows.size() == 1 ? std::move(rows[0]) : concatenated(rows, 0);
}

std::vector<RunToken> common_tokens(const Catalog& a, const Catalog& b) {
  std::vector<RunToken> tokens = known(b), others = known(a);
  if (tokens.empty()) return others;
  if (tokens.size() != others.size()) return tokens;
  const bool passes_of_a = !has_passes(tokens) && has_passes(others);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    RunToken& token = tokens[i];
    const RunToken& other = others[i];
    if (passes_of_a) token.pass = other.pass;
    if (token.placed || !other.placed) continue;
    token.sequence = other.sequence, token.position = other.position, token.placed = true;
  }
  return tokens;
}

}  // namespace tensordiff
