#include "report/token_reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "align/view.h"
#include "base/text.h"
#include "diagnose/noise/roundoff.h"
#include "diagnose/sample/fit.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kReadMax = 1 << 22;   // Read of a pair; a second or so is too long for more.
constexpr std::size_t kLayersMax = 128;  // Looked at behind the first divergence.
// What is left of a mistake in tokens that it does not reach is rounding: a thousandth of what it
// does to the others, and no more than some roundoffs.
constexpr double kOfLargest = 1e-3;
constexpr double kRoundoffs = 8;
constexpr double kSmall = 0.25;  // Of the mean token: smaller ones have the noise of others.
constexpr std::size_t kPartsMax = 4;

// The view with its tokens first, on one axis or as [batch, length, …]; nothing where no axis is
// theirs.
std::optional<View> tokens_first(const View& view, uint64_t tokens, uint64_t batch) {
  const Shape& shape = view.shape;
  if (batch > 1 && shape.size() > 2 && shape[0] == batch && tokens % batch == 0 &&
      shape[1] == tokens / batch)
    return view;
  const auto axis = std::ranges::find(view.shape, tokens);
  if (axis == view.shape.end()) return std::nullopt;
  std::vector<uint64_t> order(view.shape.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  const auto at = order.begin() + (axis - view.shape.begin());
  std::rotate(order.begin(), at, at + 1);
  return permuted(view, order);
}

std::optional<std::vector<double>> values_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || is_complex(view.dtype)) return std::nullopt;
  std::vector<double> values(view.elements());
  reader.value().values(0, values.size(), values.data());
  return values;
}

// What one sequence shows.
struct InSequence {
  std::vector<uint64_t> positions;  // That differ.
  uint64_t tokens = 0;
  int64_t last_good = -1;  // The last position that agrees.

  bool to_the_end() const { return static_cast<int64_t>(positions.front()) > last_good; }
};

std::string text_of(const InSequence& in) {
  if (in.positions.size() == in.tokens) return "";
  if (in.to_the_end()) return fmt::format("from position {} on", in.positions.front());
  return fmt::format("at position{} {}", in.positions.size() == 1 ? "" : "s",
                     ranges_text(in.positions));
}

}  // namespace

namespace {

// Squared sizes, by token, of what both differ by and of A.
struct BySquares {
  std::vector<double> gaps, sizes;
};

std::optional<BySquares> squares_of(const AlignedPair& views, uint64_t tokens, uint64_t batch) {
  if (tokens < 2 || views.a.elements() > kReadMax) return std::nullopt;
  const std::optional<View> first_a = tokens_first(views.a, tokens, batch);
  const std::optional<View> first_b = tokens_first(views.b, tokens, batch);
  if (!first_a || !first_b || first_a->shape != first_b->shape) return std::nullopt;
  const std::optional<std::vector<double>> a = values_of(*first_a), b = values_of(*first_b);
  if (!a || !b) return std::nullopt;
  const std::size_t width = a->size() / tokens;
  BySquares squares{std::vector<double>(tokens), std::vector<double>(tokens)};
  for (std::size_t i = 0; i < a->size(); ++i) {
    const double gap = (*b)[i] - (*a)[i];
    squares.gaps[i / width] += std::isfinite(gap) ? gap * gap : INFINITY;
    squares.sizes[i / width] += (*a)[i] * (*a)[i];
  }
  return squares;
}

}  // namespace

std::optional<std::vector<double>> errors_by_token(const AlignedPair& views, uint64_t tokens,
                                                   uint64_t batch) {
  std::optional<BySquares> squares = squares_of(views, tokens, batch);
  return squares ? std::optional(std::move(squares->gaps)) : std::nullopt;
}

std::optional<TokenRows> rows_apart(const AlignedPair& views, uint64_t tokens, uint64_t batch) {
  std::optional<BySquares> squares = squares_of(views, tokens, batch);
  if (!squares) return std::nullopt;
  auto& [gaps, sizes] = *squares;
  const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) / double(tokens);
  double largest = 0;
  for (uint64_t row = 0; row < tokens; ++row) {
    gaps[row] = std::sqrt(gaps[row] / std::max(sizes[row], kSmall * mean));
    if (std::isfinite(gaps[row])) largest = std::max(largest, gaps[row]);
  }
  const double rounded = std::max(roundoff_of(views.a), roundoff_of(views.b));
  const double most = std::max(kOfLargest * largest, kRoundoffs * rounded);
  TokenRows rows;
  for (uint64_t row = 0; row < tokens; ++row)
    if (!(gaps[row] <= most)) rows.insert(row);
  return rows;
}

std::string reach_text(const TokenRows& rows, const std::vector<RunToken>& tokens) {
  const bool placed = std::ranges::all_of(tokens, &RunToken::placed);
  std::map<int32_t, InSequence> sequences;
  for (uint64_t row = 0; row < tokens.size(); ++row) {
    InSequence& in = sequences[placed ? tokens[row].sequence : tokens[row].pass];
    ++in.tokens;
    const int64_t position = std::max(0, tokens[row].position);
    if (rows.contains(row))
      in.positions.push_back(static_cast<uint64_t>(position));
    else
      in.last_good = std::max(in.last_good, position);
  }
  // What is alike in several sequences is said once.
  std::vector<std::pair<std::string, std::vector<uint64_t>>> parts;
  for (const auto& [number, in] : sequences) {
    if (in.positions.empty()) continue;
    const std::string part = text_of(in);
    auto same = std::ranges::find(parts, part, [](const auto& each) { return each.first; });
    if (same == parts.end()) same = parts.insert(same, {part, {}});
    same->second.push_back(static_cast<uint64_t>(number));
  }
  if (sequences.size() == 1) return parts.empty() ? "" : parts[0].first;
  const std::string_view word = placed ? "sequence" : "pass";
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), kPartsMax); ++i) {
    const auto& [where, numbers] = parts[i];
    text += text.empty() ? "of " : " and of ";
    if (numbers.size() == sequences.size())
      text += fmt::format("each {}", word);
    else if (numbers.size() == 1)
      text += fmt::format("{} {}", word, numbers[0]);
    else
      text += fmt::format("{} {}", placed ? "sequences" : "passes", ranges_text(numbers));
    text += (where.empty() ? "" : " ") + where;
  }
  return parts.size() > kPartsMax ? text + " and more" : text;
}

namespace {

// How many there are, where all are of one length and numbered in order: [batch, length, …].
uint64_t sequences_of(const std::vector<RunToken>& tokens) {
  return static_cast<uint64_t>(std::max(0, tokens.back().sequence)) + 1;
}

}  // namespace

void tell_tokens(const std::vector<RunToken>& tokens,
                 const std::function<Result<AlignedPair>(std::size_t pair)>& views_of,
                 Report& report) {
  if (tokens.size() < 2 || !report.first_divergence) return;
  const uint64_t batch = sequences_of(tokens);
  const auto rows_of = [&](std::size_t pair) -> std::optional<TokenRows> {
    const Result<AlignedPair> views = views_of(pair);
    return views.ok() ? rows_apart(views.value(), tokens.size(), batch) : std::nullopt;
  };
  const PairRow& first = report.pairs[report.first_divergence->pair];
  const std::optional<TokenRows> rows = rows_of(first.index);
  if (!rows || rows->empty() || rows->size() == tokens.size()) return;
  std::string text = fmt::format("only tokens {} differ", reach_text(*rows, tokens));
  std::size_t looked = 0;
  const std::optional<int64_t> layer = first.depth();
  bool stays = layer.has_value();
  for (const PairRow& row : report.pairs) {
    const bool later = layer && row.depth() && *row.depth() > *layer;
    if (!stays || !later || row.a.place.step != Role::layer_output || looked == kLayersMax)
      continue;
    const std::optional<TokenRows> there = rows_of(row.index);
    if (!there) continue;
    ++looked;
    stays = *there == *rows;
  }
  if (stays && looked > 0) text += fmt::format(", in every layer from {} on", *layer);
  if (const std::string passes = passes_text(*rows, tokens); !passes.empty()) text += ": " + passes;
  report.first_divergence->explanation += "; " + text;
}

}  // namespace tensordiff
