#include "diagnose/operators/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>

#include "align/view.h"
#include "base/text.h"
#include "diagnose/noise/roundoff.h"
#include "diagnose/operators/combine.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/quantised.h"
#include "diagnose/operators/reordered.h"
#include "diagnose/operators/shares.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {
namespace {

// What is left without some features, where that is the share of one of several equal ranks.
struct RankShare {
  uint64_t rank, ranks;
};
std::optional<RankShare> rank_share(const std::vector<uint64_t>& lost, uint64_t of) {
  const uint64_t kept = of - lost.size();
  if (of % kept != 0) return std::nullopt;
  // The first feature that is kept, and whether those before and behind it are all the others.
  uint64_t first = 0;
  while (first < lost.size() && lost[first] == first) ++first;
  if (first % kept != 0 || (first < lost.size() && lost[first] != first + kept))
    return std::nullopt;
  return RankShare{first / kept, of / kept};
}

constexpr uint64_t kSwapped[] = {1, 0};
constexpr double kRanks[] = {2, 4, 8, 16, 32, 64};
// Weights of the same sizes: two or three for each layer of a large model.
constexpr std::size_t kOthersMax = 256;

// Columns of a weight that are solved for at once: 512 of them take 22 million multiplications.
constexpr uint64_t kSolvedMax = 512;
// How far the share of a column that is there, or is not, may be from 1 or 0.
constexpr double kShareSlack = 0.05;
// For rows that were picked out of another tensor: columns that tell them apart.
constexpr uint64_t kPickedColumns = 8;
constexpr uint64_t kPickedFrom = 4096;
constexpr uint64_t kRowsMoved = 8192;  // Outputs whose order is looked for.
constexpr std::size_t kPickedTries = 6;

// To so many bits of fraction, to nearest even.
double rounded(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits + 1)), exponent - bits - 1);
}

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

// Some rows of a tensor, as an expert reads the tokens that were sent to it. A's output tells
// which.
bool try_picked_rows(Around& around, const Extents& rows, uint64_t features) {
  const Context& context = around.context();
  const DumpedPtr& target = context.target(rows.layout);
  if (rows.layout != Layout::tokens || target->extents() != rows) return false;
  Grid own, all;
  for (uint64_t i = 0; i < std::min(kPickedColumns, rows.features); ++i)
    own.columns.push_back(i * rows.features / std::min(kPickedColumns, rows.features));
  own.rows.resize(rows.rows());
  std::iota(own.rows.begin(), own.rows.end(), 0);
  all.columns = own.columns;
  const Block y = target->predict({}, own);
  std::size_t tried = 0;
  for (const DumpedPtr& each : context.of_features(features, Layout::tokens)) {
    const uint64_t count = each->extents().rows();
    if (count <= rows.rows() || count > kPickedFrom) continue;
    if (++tried > kPickedTries) break;
    all.rows.resize(count);
    std::iota(all.rows.begin(), all.rows.end(), 0);
    const OperatorPtr whole = around.wrapped(each);
    const auto ids = whole ? places_of(y, whole->predict({}, all),
                                       steps_of(context.unit(false)) * context.unit(false))
                           : std::nullopt;
    const Extents picked{rows.rows_by_axis, features, Layout::tokens};
    if (ids && around.accept(std::make_shared<Rows>(each, picked, *ids))) return true;
  }
  return false;
}

OperatorPtr propose_with(const Context& context, const Extents& extents, const Named& weight,
                         const std::vector<double>& bias) {
  for (const TablePtr& table : tables_of(weight, extents.features)) {
    const bool biased = bias.size() == extents.features;
    Around around(context, [&](const OperatorPtr& input) {
      return std::make_shared<Linear>(extents, table, biased ? Linear::Bias{bias} : Linear::Bias{},
                                      input);
    });
    if (try_inputs(around, extents, table->columns()) ||
        try_picked_rows(around, extents, table->columns()))
      return around.found();
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
  Block x = input_->predict(from, {grid.rows});
  if (x.empty() || x.features != weight_->columns()) return {};
  const auto coarse = [&](double value) { return rounded(value, bits_); };
  if (bits_ > 0) std::ranges::transform(x.values, x.values.begin(), coarse);
  Block made{grid.columns.empty() ? extents_.features : grid.columns.size()};
  made.values.resize(grid.rows.size() * made.features);
  for (uint64_t c = 0; c < made.features; ++c) {
    const uint64_t column = grid.columns.empty() ? c : grid.columns[c];
    const double* weight = weight_->row(column);
    if (!weight) return {};
    std::vector<double> row;
    if (bits_ > 0) {
      row.assign(weight, weight + x.features);
      std::ranges::transform(row, row.begin(), coarse);
      weight = row.data();
    }
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

// Outputs in another order, with the bias as it is: the rows of the weight were moved.
void Linear::change_rows(const Context& context, std::vector<Change>& changes) const {
  const Grid rows{context.grid(extents_).rows};
  if (bias_.values.empty() || extents_.features > kRowsMoved || rows.rows.size() < 2) return;
  Block y = context.target(extents_.layout)->predict({&AlignedPair::b}, rows);
  Block p = predict({&AlignedPair::b}, rows);
  if (p.values.size() != y.values.size() || p.empty()) return;
  for (std::size_t i = 0; i < p.values.size(); ++i) {
    y.values[i] -= bias_.times * bias_.values[i % p.features];
    p.values[i] -= bias_.times * bias_.values[i % p.features];
  }
  const auto order = places_of(turned(y), turned(p), context.site().budget);
  std::vector<uint64_t> sorted = order.value_or(std::vector<uint64_t>());
  std::ranges::sort(sorted);
  if (!order || std::ranges::is_sorted(*order) ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return;
  double runs = 1;
  for (std::size_t i = 1; i < order->size(); ++i) runs += (*order)[i] != (*order)[i - 1] + 1;
  changes.push_back(
      {with(std::make_shared<Table>(weight_, *order)),
       "block_permutation",
       fmt::format("B has the rows of the weight in another order: row {} of B is row "
                   "{} of A",
                   0, (*order)[0]),
       "rows_moved",
       Family::index,
       runs * std::log2(static_cast<double>(extents_.features)),
       0,
       {{"order", *order}}});
}

// Tensor cores round what they multiply, and add up in float32.
void Linear::change_products(std::vector<Change>& changes) const {
  for (const int bits : {10, 7})
    changes.push_back({std::make_shared<Linear>(extents_, weight_, bias_, input_, bits),
                       "cast",
                       fmt::format("B rounds what it multiplies here to {}: {} bits of fraction",
                                   bits == 7 ? "bf16" : "TF32 or f16", bits),
                       "products_rounded",
                       Family::quantiser,
                       1,
                       0,
                       {{"fraction_bits", static_cast<double>(bits)}}});
}

// Input features that B does not multiply: with a share s_j of each, y = b + Σ s_j·x_j·w_j, which
// is linear in all s_j.
void Linear::change_columns(const Context& context, std::vector<Change>& changes) const {
  const uint64_t in = weight_->columns();
  const Grid& grid = context.grid(extents_);
  if (in > kSolvedMax || !weight_->is_stored() || grid.rows.size() * grid.columns.size() < 2 * in)
    return;
  const Block x = input_->predict({&AlignedPair::b}, {grid.rows});
  const Block y = context.target(extents_.layout)->predict({&AlignedPair::b}, grid);
  const Block p = predict({&AlignedPair::b}, grid);
  if (x.empty() || p.values.size() != y.values.size()) return;
  Block w{in};
  for (const uint64_t column : grid.columns) {
    const double* row = weight_->row(column);
    if (!row) return;
    w.values.insert(w.values.end(), row, row + in);
  }
  const std::optional<std::vector<double>> off = solve_shares(x, w, y, p);
  if (!off) return;
  std::vector<uint64_t> lost;
  for (uint64_t j = 0; j < in; ++j) {
    if (std::abs((*off)[j] + 1) < kShareSlack)
      lost.push_back(j);
    else if (std::abs((*off)[j]) > kShareSlack)
      return;
  }
  if (lost.empty() || lost.size() == in) return;
  const bool together = lost.back() - lost[0] + 1 == lost.size();
  const auto without = [lost](std::span<double> row) {
    for (const uint64_t column : lost) row[column] = 0;
  };
  const OperatorPtr made = with(std::make_shared<Table>(weight_, without));
  if (const std::optional<RankShare> share = rank_share(lost, in)) {
    changes.push_back({made,
                       "reduction",
                       fmt::format("B is the part of rank {} of {}: the sum over ranks is missing",
                                   share->rank, share->ranks),
                       "missing_all_reduce",
                       Family::term,
                       std::log2(static_cast<double>(in)),
                       0,
                       {{"rank", static_cast<double>(share->rank)},
                        {"ranks", static_cast<double>(share->ranks)}}});
    return;
  }
  changes.push_back(
      {made,
       "operator",
       fmt::format(
           "B does not multiply {} of the {} input features, from feature {} on: columns of "
           "its weight are zero or were not loaded",
           lost.size(), in, lost[0]),
       "columns_lost",
       Family::support,
       std::log2(static_cast<double>(in)) * (together ? 2 : static_cast<double>(lost.size())),
       0,
       {{"features", lost}}});
}

std::vector<Change> Linear::changes(const Context& context) const {
  std::vector<Change> changes;
  change_bias(changes);
  change_weight(context, changes);
  change_rows(context, changes);
  change_products(changes);
  change_columns(context, changes);
  std::vector<Change> inner = input_->changes(context);
  if (!dynamic_cast<const Dumped*>(input_.get()) && !dynamic_cast<const OneSided*>(input_.get()))
    std::ranges::move(substitutes(context, input_->extents(), input_->text(), nullptr),
                      std::back_inserter(inner));
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
