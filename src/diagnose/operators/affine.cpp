// A factor and an offset for each channel, fitted to A: batch norm at rest without its parameters.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/norm_fit.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {
namespace {

// Five more rows than unknowns for each channel (design, section 10).
constexpr uint64_t kRowsMin = 7, kRowsMax = 256;

struct Lines {
  std::vector<double> factors, offsets;
};

class Affine final : public Operator {
 public:
  Affine(Lines lines, OperatorPtr input) : lines_(std::move(lines)), input_(std::move(input)) {}

  std::string_view kind() const override { return "factors of channels"; }
  const Extents& extents() const override { return input_->extents(); }
  Standing standing() const override { return Standing::fitted; }
  std::string text() const override { return input_->text(); }

  Block predict(const Reading& from, const Grid& grid) const override {
    Block made = input_->predict(from, grid);
    for (std::size_t i = 0; i < made.values.size(); ++i) {
      const uint64_t at = i % made.features;
      const uint64_t c = grid.columns.empty() ? at : grid.columns[at];
      made.values[i] = made.values[i] * lines_.factors[c] + lines_.offsets[c];
    }
    return made;
  }
  std::vector<Change> changes(const Context& context) const override;

 private:
  Lines lines_;
  OperatorPtr input_;
};

// A line for each channel, over some rows of a side.
std::optional<Lines> fitted_to(const Dumped& target, const Operator& input, const Reading& from) {
  Grid grid;
  const uint64_t rows = target.extents().rows(), count = std::min(rows, kRowsMax);
  for (uint64_t i = 0; i < count; ++i) grid.rows.push_back(i * rows / count);
  const Block x = input.predict(from, grid), y = target.predict(from, grid);
  if (x.values.size() != y.values.size() || x.rows() < kRowsMin) return std::nullopt;
  Lines lines;
  for (uint64_t c = 0; c < x.features; ++c) {
    const Line line = line_of(x, y, c, true);
    lines.factors.push_back(line.slope);
    lines.offsets.push_back(line.start);
  }
  return lines;
}

std::vector<Change> Affine::changes(const Context& context) const {
  std::vector<Change> changes;
  const DumpedPtr& target = context.target(extents().layout);
  const std::optional<Lines> of_b = fitted_to(*target, *input_, {&AlignedPair::b});
  const auto channels = static_cast<double>(extents().features);
  if (of_b) {
    double low = INFINITY, high = -INFINITY;
    for (std::size_t c = 0; c < lines_.factors.size(); ++c) {
      if (lines_.factors[c] == 0) continue;
      low = std::min(low, of_b->factors[c] / lines_.factors[c]);
      high = std::max(high, of_b->factors[c] / lines_.factors[c]);
    }
    changes.push_back(
        {std::make_shared<Affine>(*of_b, input_), "norm_weight",
         fmt::format("each channel has another factor than in A ({} to {} times) and "
                     "another offset: the norm has another weight, or other statistics",
                     human_number(low), human_number(high)),
         "channel_factors", Family::affine, 0, 2 * channels});
    changes.push_back({std::make_shared<Affine>(Lines{lines_.factors, of_b->offsets}, input_),
                       "offset", "each channel has another offset than in A", "channel_offsets",
                       Family::affine, 0, channels});
  }
  lift(
      input_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Affine>(lines_, made); }, changes);
  return changes;
}

OperatorPtr propose(const Context& context) {
  for (const Layout layout : {Layout::channels, Layout::tokens}) {
    const DumpedPtr& target = context.target(layout);
    if (!target) continue;
    for (const OperatorPtr& input : rows_like(context, target->extents())) {
      // Tokens may be alike, and lines then fit anything; a norm that sees them as one list is
      // known.
      if (layout == Layout::tokens && !dynamic_cast<const Repeated*>(input.get())) continue;
      const std::optional<Lines> lines = fitted_to(*target, *input, {});
      if (!lines) continue;
      auto made = std::make_shared<Affine>(*lines, input);
      if (context.explains_a(*made)) return made;
    }
  }
  return nullptr;
}

}  // namespace

constinit const Proposal kinds::affine = {
    .kind = "factors of channels",
    .needs = "the tensor that is multiplied",
    .propose = propose,
};

}  // namespace tensordiff::operators
