// Convolutions of images and sequences, with their geometry found by A's values.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/windows.h"

namespace tensordiff::operators {
namespace {

struct Kernel {
  TablePtr weight;  // [out, in of a group · places]
  std::vector<double> bias;
  Windows windows;
  uint64_t groups = 1;
};

class Convolution final : public Operator {
 public:
  Convolution(Extents extents, Kernel kernel, OperatorPtr input)
      : extents_(std::move(extents)), kernel_(std::move(kernel)), input_(std::move(input)) {}

  std::string_view kind() const override { return "convolution"; }
  const Extents& extents() const override { return extents_; }
  std::string text() const override { return fmt::format("{} * W", input_->text()); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;

 private:
  OperatorPtr with(Kernel kernel) const {
    return std::make_shared<Convolution>(extents_, std::move(kernel), input_);
  }
  void change_geometry(std::vector<Change>& changes) const;
  void change_weight(const Context& context, std::vector<Change>& changes) const;

  Extents extents_;
  Kernel kernel_;
  OperatorPtr input_;
};

Block Convolution::predict(const Reading& from, const Grid& grid) const {
  const uint64_t places = kernel_.windows.places();
  Grid needed;
  std::vector<std::ptrdiff_t> at;  // For each row and place: where in the block; −1: padding.
  for (const uint64_t row : grid.rows)
    for (uint64_t place = 0; place < places; ++place) {
      const auto under = kernel_.windows.under(input_->extents(), extents_, row, place);
      at.push_back(under ? static_cast<std::ptrdiff_t>(needed.rows.size()) : -1);
      if (under) needed.rows.push_back(*under);
    }
  const Block x = input_->predict(from, needed);
  if (x.empty()) return {};
  Block made{grid.columns.empty() ? extents_.features : grid.columns.size()};
  made.values.resize(grid.rows.size() * made.features);
  const uint64_t in = x.features / kernel_.groups, out = extents_.features / kernel_.groups;
  for (uint64_t c = 0; c < made.features; ++c) {
    const uint64_t column = grid.columns.empty() ? c : grid.columns[c];
    const double* weight = kernel_.weight->row(column);
    if (!weight) return {};
    const uint64_t first = column / out * in;
    for (uint64_t r = 0; r < made.rows(); ++r) {
      double sum = kernel_.bias.empty() ? 0 : kernel_.bias[column];
      for (uint64_t place = 0; place < places; ++place) {
        const std::ptrdiff_t row = at[r * places + place];
        if (row < 0) continue;
        const double* values = x.row(static_cast<uint64_t>(row)) + first;
        for (uint64_t i = 0; i < in; ++i) sum += values[i] * weight[i * places + place];
      }
      made.row(r)[c] = sum;
    }
  }
  return made;
}

void Convolution::change_geometry(std::vector<Change>& changes) const {
  for (const int64_t by : {-1, 1, -2, 2, -3, 3}) {
    Kernel other = kernel_;
    other.windows.padding += by;
    if (other.windows.padding >= 0)
      changes.push_back({with(other), "operator",
                         fmt::format("B pads by {} in front, A by {}; the rest is at the end",
                                     other.windows.padding, kernel_.windows.padding),
                         "padding", Family::parameter, 3});
  }
  for (const uint64_t dilation : {1, 2, 4}) {
    Kernel other = kernel_;
    other.windows.dilation = dilation;
    if (dilation != kernel_.windows.dilation)
      changes.push_back(
          {with(other), "operator",
           fmt::format("B has dilation {} where A has {}", dilation, kernel_.windows.dilation),
           "dilation", Family::parameter, 3});
  }
}

void Convolution::change_weight(const Context& context, std::vector<Change>& changes) const {
  const uint64_t places = kernel_.windows.places();
  const auto moved = [&](const std::function<uint64_t(uint64_t)>& from) {
    Kernel other = kernel_;
    other.weight = std::make_shared<Table>(kernel_.weight, [=](std::span<double> row) {
      const std::vector<double> old(row.begin(), row.end());
      for (uint64_t i = 0; i < row.size(); ++i) row[i] = old[i - i % places + from(i % places)];
    });
    return with(other);
  };
  if (places > 1)
    changes.push_back({moved([=](uint64_t place) { return places - 1 - place; }), "operator",
                       "B has the kernel flipped: a convolution where A has a correlation",
                       "kernel_flipped", Family::index, 2});
  const std::vector<uint64_t>& kernel = kernel_.windows.kernel;
  if (kernel.size() == 2 && kernel[0] == kernel[1] && kernel[0] > 1) {
    const uint64_t k = kernel[0];
    changes.push_back({moved([=](uint64_t place) { return place % k * k + place / k; }), "operator",
                       "B has rows and columns of the kernel swapped", "kernel_transposed",
                       Family::index, 2});
  }
  if (!kernel_.bias.empty()) {
    Kernel other = kernel_;
    other.bias.clear();
    changes.push_back({with(other), "offset", "B omits the bias of this convolution",
                       "bias_missing", Family::parameter, 2});
  }
  const std::vector<Named> others =
      context.parameters().of_shape(kernel_.weight->view().shape, false);
  for (const Named& named : others) {
    if (named.name == kernel_.weight->name()) continue;
    Kernel other = kernel_;
    other.weight = std::make_shared<Table>(*named.view, named.name);
    changes.push_back(
        {with(other), "other_tensor",
         fmt::format("B has the weight '{}' where A has '{}'", printable(named.name, 80),
                     printable(kernel_.weight->name(), 80)),
         "other_weight", Family::substitution, std::log2(static_cast<double>(others.size()) + 1)});
  }
}

std::vector<Change> Convolution::changes(const Context& context) const {
  std::vector<Change> changes;
  change_geometry(changes);
  change_weight(context, changes);
  lift(
      input_->changes(context),
      [&](const OperatorPtr& made) {
        return std::make_shared<Convolution>(extents_, kernel_, made);
      },
      changes);
  return changes;
}

OperatorPtr propose(const Context& context) {
  const DumpedPtr& target = context.target(Layout::channels);
  const View* weight = context.parameters().find(context.path(), "weight");
  if (!target || !weight || weight->shape.size() < 3 || weight->shape.size() > 4 ||
      weight->shape[0] != target->extents().features)
    return nullptr;
  Kernel kernel{std::make_shared<Table>(*weight, context.path() + ".weight"),
                read_vector(context.parameters().find(context.path(), "bias")),
                {},
                1};
  const std::vector<uint64_t> size(weight->shape.begin() + 2, weight->shape.end());
  for (const DumpedPtr& input : context.earlier(Layout::channels)) {
    const uint64_t channels = input->extents().features;
    if (channels % weight->shape[1] != 0 || weight->shape[0] % (channels / weight->shape[1]) != 0)
      continue;
    kernel.groups = channels / weight->shape[1];
    for (const Windows& windows : windows_for(input->extents(), target->extents(), size)) {
      kernel.windows = windows;
      auto made = std::make_shared<Convolution>(target->extents(), kernel, input);
      if (context.explains_a(*made)) return made;
    }
  }
  return nullptr;
}

}  // namespace

constinit const Proposal kinds::convolution = {
    .kind = "convolution",
    .needs = "the kernel (--weights) and the input",
    .propose = propose,
};

}  // namespace tensordiff::operators
