// A token reads the experts with the k highest scores. k is not dumped: the smallest is taken with
// which the tokens that differ are those of some experts, and of no others.

#include "report/expert_reach.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "report/token_reach.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kChosenMax = 8;      // Experts of a token, in models that exist.
constexpr uint64_t kExpertsMax = 1024;  // More scores are those of something else.
constexpr uint64_t kReadMax = 1 << 22;  // Elements; more take too long for a remark.
constexpr double kTold = 0.1;           // Of the error: less is not worth a word.
constexpr double kNearTie = 0.05;       // Of the spread of a token's scores.
constexpr std::size_t kExpertsTold = 4;

using Experts = std::set<uint64_t>;

Experts chosen(std::span<const double> scores, uint64_t count) {
  std::vector<uint64_t> order(scores.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](uint64_t i) { return scores[i]; });
  return {order.begin(), order.begin() + static_cast<ptrdiff_t>(count)};
}

// How far the last that is taken lies above the first that is not, in spreads of the scores.
double margin(std::span<const double> scores, uint64_t count) {
  std::vector<double> sorted(scores.begin(), scores.end());
  std::ranges::sort(sorted, std::ranges::greater());
  const double spread = sorted.front() - sorted.back();
  return spread > 0 ? (sorted[count - 1] - sorted[count]) / spread : 0;
}

std::span<const double> row_of(const std::vector<double>& scores, uint64_t experts, uint64_t row) {
  return std::span(scores).subspan(row * experts, experts);
}

// Tokens whose experts are others.
struct Flips {
  uint64_t tokens = 0;
  double share = 0;   // Of the error, in these tokens.
  double widest = 0;  // Of the margins by which A took its own.
};

Flips flips_of(const ExpertScores& scores, uint64_t count) {
  Flips flips;
  double all = 0, flipped = 0;
  for (uint64_t row = 0; row < scores.errors.size(); ++row) {
    all += scores.errors[row];
    const auto of_a = row_of(scores.a, scores.experts, row);
    if (chosen(of_a, count) == chosen(row_of(scores.b, scores.experts, row), count)) continue;
    ++flips.tokens;
    flipped += scores.errors[row];
    flips.widest = std::max(flips.widest, margin(of_a, count));
  }
  if (all > 0) flips.share = flipped / all;
  return flips;
}

// The experts that no token takes which agrees, where every token that differs takes one of them.
Experts wrong_ones(const ExpertScores& scores, uint64_t count) {
  Experts right, wrong;
  std::vector<Experts> differing;
  for (uint64_t row = 0; row < scores.differs.size(); ++row) {
    Experts taken = chosen(row_of(scores.a, scores.experts, row), count);
    if (scores.differs[row])
      differing.push_back(std::move(taken));
    else
      right.insert(taken.begin(), taken.end());
  }
  for (const Experts& taken : differing) {
    Experts rest;
    std::ranges::set_difference(taken, right, std::inserter(rest, rest.end()));
    if (rest.empty()) return {};
    wrong.insert(rest.begin(), rest.end());
  }
  return wrong;
}

std::string wrong_text(const Experts& wrong) {
  std::string list;
  for (const uint64_t expert : wrong)
    list += fmt::format("{}{}",
                        list.empty()                ? ""
                        : expert == *wrong.rbegin() ? " and "
                                                    : ", ",
                        expert);
  const char* why = wrong.size() == 1   ? "it computes something else"
                    : wrong.size() == 2 ? "exchanged, or both wrong"
                                        : "these are wrong";
  return fmt::format("the tokens of expert{} {} differ, and no others: {}",
                     wrong.size() == 1 ? "" : "s", list, why);
}

std::optional<std::vector<double>> values_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || is_complex(view.dtype) || view.elements() > kReadMax) return std::nullopt;
  std::vector<double> values(view.elements());
  reader.value().values(0, values.size(), values.data());
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); }))
    return std::nullopt;
  return values;
}

const PairRow* router_of(const Report& report, const PairRow& at) {
  for (const PairRow& row : report.pairs)
    if (row.a.place.step == Role::router && row.a.place.parameter == Param::none &&
        row.depth() == at.depth() && row.compared())
      return &row;
  return nullptr;
}

}  // namespace

std::string experts_text(const ExpertScores& scores) {
  if (scores.experts < 2 || scores.experts > kExpertsMax || scores.differs.empty()) return "";
  Experts least;
  Flips most;
  for (uint64_t count = 1; count <= std::min(kChosenMax, scores.experts - 1); ++count) {
    const Flips flips = flips_of(scores, count);
    if (flips.share > most.share) most = flips;
    Experts wrong = wrong_ones(scores, count);
    if (!wrong.empty() && (least.empty() || wrong.size() < least.size())) least = std::move(wrong);
  }
  if (most.share >= kTold)
    return fmt::format("routing flips in {} of {} tokens explain {:.0f} % of the error{}",
                       most.tokens, scores.errors.size(), 100 * most.share,
                       most.widest <= kNearTie ? ", near ties only" : "");
  return least.empty() || least.size() > kExpertsTold ? "" : wrong_text(least);
}

namespace {

void tell_experts(const std::function<Result<AlignedPair>(std::size_t pair)>& views_of,
                  Report& report) {
  if (!report.first_divergence) return;
  const PairRow& first = report.pairs[report.first_divergence->pair];
  const Role role = first.a.place.step;
  if (role != Role::mlp && role != Role::mlp_output && role != Role::layer_output) return;
  const PairRow* router = router_of(report, first);
  if (!router) return;
  const Result<AlignedPair> of_router = views_of(router->index), views = views_of(first.index);
  if (!of_router.ok() || !views.ok() || of_router.value().a.shape.empty()) return;
  ExpertScores scores;
  scores.experts = of_router.value().a.shape.back();
  const std::optional<std::vector<double>> a = values_of(of_router.value().a),
                                           b = values_of(of_router.value().b);
  if (!a || !b || scores.experts == 0 || a->size() != b->size()) return;
  const uint64_t tokens = a->size() / scores.experts;
  const std::optional<std::vector<double>> errors = errors_by_token(views.value(), tokens);
  const std::optional<TokenRows> apart = rows_apart(views.value(), tokens);
  if (!errors || !apart || apart->empty()) return;
  scores.a = *a, scores.b = *b, scores.errors = *errors;
  for (uint64_t row = 0; row < tokens; ++row) scores.differs.push_back(apart->contains(row));
  if (const std::string text = experts_text(scores); !text.empty())
    report.first_divergence->explanation += "; " + text;
}

}  // namespace

void tell_reach(const std::vector<RunToken>& tokens,
                const std::function<Result<AlignedPair>(std::size_t pair)>& views_of,
                Report& report) {
  tell_tokens(tokens, views_of, report);
  tell_experts(views_of, report);
}

}  // namespace tensordiff
