#include "diagnose/operators/dropped.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace tensordiff::operators {
namespace {

// A zero of each value is one bit that B's output tells; with fewer zeros than this it is no
// dropout but a hole.
constexpr double kShareMin = 0.01;
constexpr double kShareMax = 0.95;
constexpr double kDeviations = 4;  // Of a share that is drawn: one in 16,000 is farther off.
constexpr double kChosenRows =
    0.5;  // Rows are chosen by their error, which grows with their zeros.

class Dropped final : public Operator {
 public:
  Dropped(OperatorPtr of, DumpedPtr seen, double factor)
      : of_(std::move(of)), seen_(std::move(seen)), factor_(factor) {}

  std::string_view kind() const override { return "dropout"; }
  const Extents& extents() const override { return of_->extents(); }
  std::string text() const override { return of_->text(); }
  std::vector<Change> changes(const Context&) const override { return {}; }

  Block predict(const Reading& from, const Grid& grid) const override {
    Block made = of_->predict(from, grid);
    const Block seen = seen_->predict({from.side}, grid);
    if (seen.values.size() != made.values.size()) return {};
    for (std::size_t i = 0; i < made.values.size(); ++i)
      made.values[i] *= seen.values[i] == 0 ? 0 : factor_;
    return made;
  }

 private:
  OperatorPtr of_;
  DumpedPtr seen_;
  double factor_;
};

// Dropout does not look at what it drops: positive and negative values are equally likely to go.
// An activation that cuts off one sign is none.
bool ignores_signs(const std::vector<double>& x, const std::vector<double>& y) {
  double count[2] = {0, 0}, gone[2] = {0, 0};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    count[x[i] > 0] += 1;
    gone[x[i] > 0] += y[i] == 0 ? 1 : 0;
  }
  if (count[0] == 0 || count[1] == 0) return true;
  const double share = (gone[0] + gone[1]) / (count[0] + count[1]);
  const double deviation = std::sqrt(share * (1 - share) * (1 / count[0] + 1 / count[1]));
  return std::abs(gone[0] / count[0] - gone[1] / count[1]) <= kDeviations * deviation;
}

}  // namespace

std::optional<Change> dropped(const Context& context, const OperatorPtr& of) {
  const DumpedPtr& target = context.target(of->extents().layout);
  if (!target) return std::nullopt;
  const Grid& grid = context.grid(of->extents());
  const Block x = of->predict({&AlignedPair::b}, grid),
              y = target->predict({&AlignedPair::b}, grid);
  if (x.values.size() != y.values.size() || x.empty()) return std::nullopt;
  if (!ignores_signs(x.values, y.values)) return std::nullopt;
  double zeros = 0;
  std::vector<double> factors;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    if (x.values[i] == 0) continue;
    if (y.values[i] == 0)
      zeros += 1;
    else
      factors.push_back(y.values[i] / x.values[i]);
  }
  const double share = zeros / std::max(1.0, zeros + static_cast<double>(factors.size()));
  if (share < kShareMin || share > kShareMax || factors.empty()) return std::nullopt;
  const auto middle = factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2);
  std::ranges::nth_element(factors, middle);
  // Dropout of a share p divides what it leaves by 1 − p; the share is that of a sample, in which
  // the rows with most zeros are over-represented.
  const auto count = static_cast<double>(x.values.size());
  const double drawn = kDeviations * std::sqrt(share * (1 - share) / count) + kChosenRows * share;
  // Where nothing is divided, nothing was drawn: those zeros are a hole.
  if (!(1 - 1 / *middle >= kShareMin) || std::abs(1 - 1 / *middle - share) > drawn)
    return std::nullopt;
  return Change{std::make_shared<Dropped>(of, target, *middle),
                "operator",
                fmt::format("B sets {} % of the values to zero and multiplies the others by {}: "
                            "dropout is on",
                            human_number(std::round(100 * share)), human_number(*middle)),
                "dropout",
                Family::support,
                count * -(share * std::log2(share) + (1 - share) * std::log2(1 - share)),
                1,
                {{"share", share}, {"factor", *middle}}};
}

}  // namespace tensordiff::operators
