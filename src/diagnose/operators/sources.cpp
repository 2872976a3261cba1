#include "diagnose/operators/sources.h"

#include <algorithm>
#include <cmath>

#include "diagnose/operators/attention.h"
#include "diagnose/operators/combine.h"
#include "diagnose/operators/scan.h"

namespace tensordiff::operators {
namespace {

// Of sums the nearest tensors are tried in pairs: a block has about a dozen steps.
constexpr std::size_t kPaired = 16;
constexpr std::size_t kNear = 6;  // For functions and products: what was computed just before.

// Whether two hold the same in A, as a container and its last module do: by their first row.
bool same_in_a(const Operator& x, const Operator& y) {
  if (x.extents() != y.extents()) return false;
  return x.predict({}, {{0}}).values == y.predict({}, {{0}}).values;
}

// What A has of so many features, the nearest first, whether B has it or not.
std::vector<OperatorPtr> leaves_of(const Context& context, uint64_t features, Layout layout) {
  const std::vector<DumpedPtr> both = context.of_features(features, layout);
  std::vector<OneSidedPtr> lone = context.only_a(features, layout);
  std::erase_if(lone, [&](const OneSidedPtr& each) {
    return std::ranges::any_of(both, [&](const DumpedPtr& x) { return same_in_a(*x, *each); });
  });
  std::vector<OperatorPtr> leaves;
  auto next = lone.begin();
  for (const DumpedPtr& each : both) {
    for (; next != lone.end() && (*next)->capture() > each->site().capture; ++next)
      leaves.push_back(*next);
    leaves.push_back(each);
  }
  leaves.insert(leaves.end(), next, lone.end());
  return leaves;
}

// Those of the extents, and those that are repeated to have them.
std::vector<OperatorPtr> terms_of(const Context& context, const Extents& extents) {
  std::vector<OperatorPtr> terms;
  for (const OperatorPtr& each : leaves_of(context, extents.features, extents.layout)) {
    if (each->extents().rows() == extents.rows())
      terms.push_back(each);
    else if (extents.rows_by_axis.size() == 2 &&
             each->extents().rows() == extents.rows_by_axis.back())
      terms.push_back(std::make_shared<Repeated>(each, extents));
  }
  return terms;
}

bool try_functions(const std::vector<OperatorPtr>& near, const Accept& accept) {
  for (const OperatorPtr& of : near)
    for (const ActivationFunction& function : activation_functions())
      if (&function != &identity_function() && accept(std::make_shared<Map>(function, of)))
        return true;
  return false;
}

bool try_products(const std::vector<OperatorPtr>& near, const Accept& accept) {
  for (const OperatorPtr& gate : near)
    for (const OperatorPtr& up : near)
      for (const ActivationFunction& function : activation_functions())
        if (gate != up && accept(std::make_shared<Gated>(function, gate, up))) return true;
  return false;
}

// Two halves of one tensor: gate and up in one projection.
bool try_halves(const Context& context, uint64_t rows, uint64_t features, const Accept& accept) {
  std::size_t tried = 0;
  for (const DumpedPtr& fused : context.of_features(2 * features, Layout::tokens)) {
    if (fused->extents().rows() != rows) continue;
    if (++tried > kNear) break;
    const auto first = std::make_shared<Columns>(fused, 0, features);
    const auto second = std::make_shared<Columns>(fused, features, features);
    if (try_products({first, second}, accept)) return true;
  }
  return false;
}

bool try_pooled(const Context& context, const Extents& rows, uint64_t features,
                const Accept& accept) {
  for (const Layout layout : {Layout::tokens, Layout::channels})
    for (const OperatorPtr& each : leaves_of(context, features, layout)) {
      const Extents& extents = each->extents();
      if (extents.rows_by_axis.size() < 2 || extents.rows_by_axis[0] != rows.rows()) continue;
      for (const auto by : {Pooled::By::first, Pooled::By::last, Pooled::By::mean,
                            Pooled::By::mean_of_others, Pooled::By::maximum})
        if (accept(std::make_shared<Pooled>(each, by))) return true;
    }
  return false;
}

}  // namespace

Block Repeated::predict(const Reading& from, const Grid& grid) const {
  Grid inner{grid.rows, grid.columns};
  for (uint64_t& row : inner.rows) row %= of_->extents().rows();
  return of_->predict(from, inner);
}

std::vector<Change> Repeated::changes(const Context& context) const {
  std::vector<Change> changes;
  lift(
      of_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Repeated>(made, extents_); }, changes);
  return changes;
}

std::vector<OperatorPtr> rows_like(const Context& context, const Extents& extents) {
  std::vector<OperatorPtr> found;
  for (const DumpedPtr& each : context.of_features(extents.features, extents.layout)) {
    if (extents.layout == Layout::tokens && found.size() == kPaired) break;
    if (each->extents() == extents)
      found.push_back(each);
    else if (each->extents().rows() == extents.rows())
      found.push_back(std::make_shared<Repeated>(each, extents));
  }
  return found;
}

bool try_streams(const Context& context, const Extents& extents, const Accept& accept) {
  const std::vector<OperatorPtr> terms = terms_of(context, extents);
  for (const OperatorPtr& term : terms)
    if (accept(term)) return true;
  const std::size_t near = std::min(kPaired, terms.size());
  // A stream that was last dumped long ago, and what was added since.
  for (std::size_t i = 0; i < near; ++i)
    for (std::size_t j = i + 1; j < near; ++j)
      if (accept(sum_of({terms[i], terms[j]}))) return true;
  for (std::size_t i = 0; i < near; ++i)
    for (std::size_t j = i + 1; j < near; ++j)
      for (std::size_t k = j + 1; k < near; ++k)
        if (accept(sum_of({terms[i], terms[j], terms[k]}))) return true;
  return false;
}

bool Around::accept(const OperatorPtr& input) {
  OperatorPtr made = wrap_(input);
  if (!made || !context_.explains_a(*made)) return false;
  found_ = std::move(made);
  return true;
}

double Around::rest(const OperatorPtr& input, const std::vector<uint64_t>& rows) const {
  const OperatorPtr made = wrap_(input);
  return made ? context_.rest_of_a(*made, rows) : 1;
}

bool try_inputs(Around& around, const Extents& rows, uint64_t features) {
  const Context& context = around.context();
  const auto accept = [&](const OperatorPtr& input) { return around.accept(input); };
  std::vector<OperatorPtr> same;
  for (const OperatorPtr& each : leaves_of(context, features, rows.layout))
    if (each->extents().rows() == rows.rows()) same.push_back(each);
  for (const OperatorPtr& each : same)
    if (accept(each)) return true;
  if (rows.layout != Layout::tokens) return false;
  if (rows.rows_by_axis.size() == 1 && try_pooled(context, rows, features, accept)) return true;
  if (try_attention(around, rows, features) || try_scan(around, rows, features)) return true;
  const std::vector<OperatorPtr> near(
      same.begin(), same.begin() + static_cast<std::ptrdiff_t>(std::min(kNear, same.size())));
  // Factors that models have in front of a head: 1/√d and √d.
  for (const OperatorPtr& each : near)
    for (const double power : {-0.5, 0.5}) {
      std::vector<Term> term = {{each, std::pow(static_cast<double>(features), power)}};
      if (accept(std::make_shared<Sum>(each->extents(), std::move(term)))) return true;
    }
  if (try_functions(near, accept) || try_products(near, accept)) return true;
  return try_halves(context, rows.rows(), features, accept);
}

}  // namespace tensordiff::operators
