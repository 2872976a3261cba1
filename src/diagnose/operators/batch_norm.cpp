// Norms of channels: batch norm with stored statistics, group norm over the positions of an image.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {
namespace {

constexpr double kEpsilons[] = {1e-5, 1e-3, 1e-6, 1e-8, 1e-4, 1e-2, 1e-12};
constexpr uint64_t kRowsMax = uint64_t{1} << 16;  // Of an image that statistics are taken of.

enum class Statistics { stored, batch, group, none };

struct ChannelNorm {
  std::vector<double> weight, bias, mean, variance;
  double epsilon = 1e-5;
  Statistics statistics = Statistics::stored;
  uint64_t groups = 1;
};

class NormOfChannels final : public Operator {
 public:
  NormOfChannels(ChannelNorm form, OperatorPtr input)
      : form_(std::move(form)), input_(std::move(input)) {}

  std::string_view kind() const override { return "norm of channels"; }
  const Extents& extents() const override { return input_->extents(); }
  std::string text() const override { return fmt::format("the norm of {}", input_->text()); }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;

 private:
  struct Moments {
    std::vector<double> mean, variance;
  };
  // Of the image that a row is in, or of all.
  Moments moments_of(const Reading& from, uint64_t image) const;
  void change_form(std::vector<Change>& changes) const;

  ChannelNorm form_;
  OperatorPtr input_;
};

NormOfChannels::Moments NormOfChannels::moments_of(const Reading& from, uint64_t image) const {
  const uint64_t channels = extents().features;
  if (form_.statistics == Statistics::stored) return {form_.mean, form_.variance};
  Moments result{std::vector<double>(channels), std::vector<double>(channels, 1)};
  if (form_.statistics == Statistics::none) return result;
  const bool all = form_.statistics == Statistics::batch;
  const uint64_t positions = all ? extents().rows() : extents().rows() / extents().rows_by_axis[0];
  Grid grid;
  for (uint64_t i = 0; i < std::min(positions, kRowsMax); ++i)
    grid.rows.push_back(all ? i : image * positions + i);
  const Block x = input_->predict(from, grid);
  if (x.empty()) return {};
  const uint64_t group = all ? 1 : channels / form_.groups;
  for (uint64_t g = 0; g < channels / group; ++g) {
    double sum = 0, squares = 0;
    const auto count = static_cast<double>(x.rows() * group);
    for (uint64_t r = 0; r < x.rows(); ++r)
      for (uint64_t c = g * group; c < (g + 1) * group; ++c) sum += x.row(r)[c];
    for (uint64_t r = 0; r < x.rows(); ++r)
      for (uint64_t c = g * group; c < (g + 1) * group; ++c)
        squares += std::pow(x.row(r)[c] - sum / count, 2);
    for (uint64_t c = g * group; c < (g + 1) * group; ++c)
      result.mean[c] = sum / count, result.variance[c] = squares / count;
  }
  return result;
}

Block NormOfChannels::predict(const Reading& from, const Grid& grid) const {
  const Block x = input_->predict(from, grid);
  if (x.empty()) return {};
  Block made = x;
  const uint64_t positions = extents().rows() / extents().rows_by_axis[0];
  Moments moments;
  uint64_t last = UINT64_MAX;
  for (uint64_t r = 0; r < x.rows(); ++r) {
    const uint64_t image = form_.statistics == Statistics::group ? grid.rows[r] / positions : 0;
    if (image != last) moments = moments_of(from, image);
    last = image;
    if (moments.mean.empty()) return {};
    for (uint64_t i = 0; i < x.features; ++i) {
      const uint64_t c = grid.columns.empty() ? i : grid.columns[i];
      double value =
          (x.row(r)[i] - moments.mean[c]) / std::sqrt(moments.variance[c] + form_.epsilon);
      if (!form_.weight.empty()) value *= form_.weight[c];
      if (!form_.bias.empty()) value += form_.bias[c];
      made.row(r)[i] = value;
    }
  }
  return made;
}

void NormOfChannels::change_form(std::vector<Change>& changes) const {
  const auto add = [&](ChannelNorm form, std::string code, std::string text, std::string cause) {
    changes.push_back({std::make_shared<NormOfChannels>(std::move(form), input_), std::move(code),
                       std::move(text), std::move(cause), Family::parameter, 3});
  };
  for (const double epsilon : kEpsilons) {
    if (epsilon == form_.epsilon) continue;
    ChannelNorm other = form_;
    other.epsilon = epsilon;
    add(other, "norm_epsilon",
        fmt::format("the norm has epsilon {} in B and {} in A", human_number(epsilon),
                    human_number(form_.epsilon)),
        "epsilon");
    changes.back().parameters = {{"epsilon_a", form_.epsilon}, {"epsilon_b", epsilon}};
  }
  ChannelNorm other = form_;
  if (form_.statistics == Statistics::stored) {
    other.statistics = Statistics::batch;
    add(other, "norm_weight", "B normalizes by the statistics of the batch, as in training",
        "batch_statistics");
    other.statistics = Statistics::none;
    add(other, "norm_weight", "B's stored mean and variance are 0 and 1: they were not loaded",
        "statistics_missing");
  } else {
    for (uint64_t groups = 1; groups <= extents().features; groups *= 2) {
      other.groups = groups;
      if (groups != form_.groups && extents().features % groups == 0)
        add(other, "operator",
            fmt::format("the norm has {} groups in B and {} in A", groups, form_.groups), "groups");
    }
  }
  other = form_;
  other.weight.clear();
  add(other, "norm_weight", "B omits the weight of the norm", "weight_missing");
  other.bias.clear();
  add(other, "norm_weight", "B omits weight and bias of the norm", "weight_missing");
  other = form_;
  other.bias.clear();
  add(other, "norm_weight", "B omits the bias of the norm", "bias_missing");
  other = form_;
  std::swap(other.weight, other.bias);
  add(other, "norm_weight", "B has weight and bias of the norm swapped", "swapped");
  other = form_;
  std::swap(other.mean, other.variance);
  if (form_.statistics == Statistics::stored)
    add(other, "norm_weight", "B has mean and variance of the norm swapped", "swapped");
}

std::vector<Change> NormOfChannels::changes(const Context& context) const {
  std::vector<Change> changes;
  change_form(changes);
  changes.push_back({input_, "other_tensor", fmt::format("B does not normalize {}", input_->text()),
                     "norm_missing", Family::substitution, 1});
  lift(
      input_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<NormOfChannels>(form_, made); },
      changes);
  return changes;
}

OperatorPtr with_input(const Context& context, ChannelNorm form, const OperatorPtr& input) {
  std::vector<uint64_t> groups = {1};
  if (form.statistics == Statistics::group)
    for (uint64_t count = 2; count <= form.weight.size(); ++count)
      if (form.weight.size() % count == 0) groups.push_back(count);
  for (const uint64_t count : groups) {
    form.groups = count;
    double least = INFINITY;
    ChannelNorm best = form;
    for (const double epsilon : kEpsilons) {
      form.epsilon = epsilon;
      const Misfit left = context.misfit(NormOfChannels(form, input), false);
      if (left.known && left.s < 0.9 * least) least = left.s, best = form;
    }
    auto made = std::make_shared<NormOfChannels>(best, input);
    if (context.explains_a(*made)) return made;
  }
  return nullptr;
}

OperatorPtr propose(const Context& context) {
  const Parameters& parameters = context.parameters();
  const std::string path = context.path();
  ChannelNorm form{read_vector(parameters.find(path, "weight")),
                   read_vector(parameters.find(path, "bias")),
                   read_vector(parameters.find(path, "running_mean")),
                   read_vector(parameters.find(path, "running_var"))};
  if (form.mean.empty()) form.statistics = Statistics::group;
  for (const Layout layout : {Layout::channels, Layout::tokens}) {
    const DumpedPtr& target = context.target(layout);
    if (!target || form.weight.size() != target->extents().features ||
        form.bias.size() != form.weight.size() || form.mean.size() != form.variance.size())
      continue;
    OperatorPtr found;
    for (const OperatorPtr& input : rows_like(context, target->extents()))
      if ((found = with_input(context, form, input))) return found;
  }
  return nullptr;
}

}  // namespace

constinit const Proposal kinds::batch_norm = {
    .kind = "norm of channels",
    .needs = "its weight and statistics (--weights) and its input",
    .propose = propose,
};

}  // namespace tensordiff::operators
