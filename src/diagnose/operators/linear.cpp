#include "diagnose/operators/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "align/view.h"
#include "base/text.h"
#include "diagnose/operators/combine.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/quantised.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kSwapped[] = {1, 0};
constexpr double kRanks[] = {2, 4, 8, 16, 32, 64};
// Weights of the same sizes: two or three for each layer of a large model.
constexpr std::size_t kOthersMax = 256;

// The ways to read a weight as [out, in].
std::vector<TablePtr> tables_of(const Named& weight, uint64_t out) {
  std::vector<TablePtr> tables;
  View view = *weight.view;
  // A 1 × 1 convolution is a projection of channels.
  while (view.shape.size() > 2 && view.shape.back() == 1)
    view = squeezed(view, view.shape.size() - 1);
  if (view.shape.size() != 2) return tables;
  if (view.shape[0] == out) tables.push_back(std::make_shared<Table>(view, weight.name));
  if (view.shape[1] == out)
    tables.push_back(std::make_shared<Table>(permuted(view, kSwapped), weight.name));
  return tables;
}

OperatorPtr propose_with(const Context& context, const Extents& extents, const Named& weight,
                         const std::vector<double>& bias) {
  for (const TablePtr& table : tables_of(weight, extents.features)) {
    const bool biased = bias.size() == extents.features;
    Around around(context, [&](const OperatorPtr& input) {
      return std::make_shared<Linear>(extents, table, biased ? Linear::Bias{bias} : Linear::Bias{},
                                      input);
    });
    if (try_inputs(around, extents, table->columns())) return around.found();
  }
  return nullptr;
}

// A head that is tied has no weight of its own: any of its width is tried, as the embedding is.
OperatorPtr propose_tied(const Context& context, const Extents& extents) {
  std::vector<Named> fitting;
  for (const DumpedPtr& last : context.earlier(Layout::tokens)) {
    if (last->extents().rows() != extents.rows()) continue;
    fitting = context.parameters().of_shape({extents.features, last->extents().features}, true);
    break;
  }
  for (const Named& weight : fitting)
    if (OperatorPtr found = propose_with(context, extents, weight, {})) return found;
  return nullptr;
}

OperatorPtr propose(const Context& context) {
  const std::vector<Named> all = context.parameters().under(context.path());
  for (const Layout layout : {Layout::tokens, Layout::channels}) {
    const DumpedPtr& target = context.target(layout);
    if (!target) continue;
    for (const Named& weight : all) {
      // Of a container: the last projection in it gives what it gives.
      if (!weight.leaf.ends_with("weight")) continue;
      std::string leaf = weight.leaf.substr(0, weight.leaf.size() - 6) + "bias";
      const std::vector<double> bias = read_vector(context.parameters().find(context.path(), leaf));
      if (OperatorPtr found = propose_with(context, target->extents(), weight, bias)) return found;
    }
  }
  const DumpedPtr& target = context.target(Layout::tokens);
  return all.empty() && target ? propose_tied(context, target->extents()) : nullptr;
}

}  // namespace

Block Linear::predict(const Reading& from, const Grid& grid) const {
  const Block x = input_->predict(from, {grid.rows});
  if (x.empty() || x.features != weight_->columns()) return {};
  Block made{grid.columns.empty() ? extents_.features : grid.columns.size()};
  made.values.resize(grid.rows.size() * made.features);
  for (uint64_t c = 0; c < made.features; ++c) {
    const uint64_t column = grid.columns.empty() ? c : grid.columns[c];
    const double* weight = weight_->row(column);
    if (!weight) return {};
    const double bias = bias_.values.empty() ? 0 : bias_.times * bias_.values[column];
    for (uint64_t r = 0; r < made.rows(); ++r) {
      const double* in = x.row(r);
      double sum = bias;
      for (uint64_t i = 0; i < x.features; ++i) sum += in[i] * weight[i];
      made.row(r)[c] = sum;
    }
  }
  return made;
}

void Linear::change_bias(std::vector<Change>& changes) const {
  if (bias_.values.empty()) return;
  const auto with_bias = [&](double times) {
    return std::make_shared<Linear>(extents_, weight_, Bias{bias_.values, times}, input_);
  };
  const double bits = std::log2(1 + std::size(kRanks));
  changes.push_back({with_bias(0), "offset", "B omits the bias of this projection", "bias_missing",
                     Family::parameter, bits});
  for (const double ranks : kRanks)
    changes.push_back(
        {with_bias(ranks),
         "reduction",
         fmt::format("B has the bias {} times: added on each of {} ranks, or before the sum over "
                     "them",
                     ranks, ranks),
         "bias_repeated",
         Family::parameter,
         bits,
         0,
         {{"ranks", ranks}}});
}

void Linear::change_weight(const Context& context, std::vector<Change>& changes) const {
  if (!weight_->is_stored()) return;
  const uint64_t out = weight_->rows(), in = weight_->columns();
  if (out == in)
    changes.push_back(
        {with(std::make_shared<Table>(permuted(weight_->view(), kSwapped), weight_->name())),
         "operator", "B multiplies by the transposed weight", "transposed_weight",
         Family::parameter, 1});
  std::vector<Named> others = context.parameters().of_shape({out, in}, true);
  if (others.size() > kOthersMax) others.resize(kOthersMax);
  const double bits = 1 + std::log2(static_cast<double>(others.size()) + 1);
  for (const Named& other : others) {
    if (other.name == weight_->name()) continue;
    for (const TablePtr& table : tables_of(other, out)) {
      if (table->columns() != in) continue;
      const std::vector<Parameter> which = {{"weight", other.name}};
      const std::string text =
          fmt::format("B multiplies by '{}' where A multiplies by '{}'", printable(other.name, 80),
                      printable(weight_->name(), 80));
      changes.push_back({with(table), "other_tensor", text, "other_weight", Family::substitution,
                         bits, 0, which});
      // With the bias that belongs to it.
      const std::string stem = other.name.substr(0, other.name.size() - 6);
      const std::vector<double> bias = read_vector(
          context.parameters().find(stem.substr(0, stem.empty() ? 0 : stem.size() - 1), "bias"));
      if (!bias_.values.empty() && bias.size() == out)
        changes.push_back({std::make_shared<Linear>(extents_, table, Bias{bias}, input_),
                           "other_tensor", text, "other_weight", Family::substitution, bits, 0,
                           which});
    }
  }
  for (const Quantised& each : quantised_ways(weight_))
    changes.push_back({with(each.made), "quantization", each.text, "weight_quantized",
                       Family::quantiser, each.bits, 0, each.parameters});
}

std::vector<Change> Linear::changes(const Context& context) const {
  std::vector<Change> changes;
  change_bias(changes);
  change_weight(context, changes);
  std::vector<Change> inner = input_->changes(context);
  // What is left out of, or put into, what a projection reads is read, not added.
  lift(
      inner,
      [&](const OperatorPtr& made) {
        return std::make_shared<Linear>(extents_, weight_, bias_, made);
      },
      changes);
  if (const auto* scaled = dynamic_cast<const Sum*>(input_.get());
      scaled && scaled->terms().size() == 1)
    changes.push_back({std::make_shared<Linear>(extents_, weight_, bias_, scaled->terms()[0].of),
                       "scale",
                       fmt::format("B omits the factor {} in front of the weight",
                                   human_number(scaled->terms()[0].times)),
                       "input_scale",
                       Family::affine,
                       1,
                       0,
                       {{"factor", 1 / scaled->terms()[0].times}}});
  return changes;
}

std::string Linear::text() const { return fmt::format("{} · W", input_->text()); }

constinit const Proposal kinds::linear = {
    .kind = "linear",
    .needs = "the weight of the projection (--weights) and its input",
    .propose = propose,
};

}  // namespace tensordiff::operators
