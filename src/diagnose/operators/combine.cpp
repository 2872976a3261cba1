#include "diagnose/operators/combine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "diagnose/operators/context.h"

namespace tensordiff::operators {
namespace {

std::string_view name_of(Pooled::By by) {
  switch (by) {
    case Pooled::By::first:
      return "the first token";
    case Pooled::By::last:
      return "the last token";
    case Pooled::By::mean:
      return "the mean of all tokens";
    case Pooled::By::mean_of_others:
      return "the mean of all tokens but the first";
    default:
      return "the maximum of all tokens";
  }
}
constexpr Pooled::By kPoolings[] = {Pooled::By::first, Pooled::By::last, Pooled::By::mean,
                                    Pooled::By::mean_of_others, Pooled::By::maximum};

std::string applied(const ActivationFunction& function, const Operator& of) {
  if (&function == &identity_function()) return of.text();
  return fmt::format("{}({})", function.name, of.text());
}

double bits_of_functions() { return std::log2(static_cast<double>(activation_functions().size())); }

}  // namespace

const ActivationFunction& identity_function() { return activation_functions().back(); }

OperatorPtr sum_of(std::vector<OperatorPtr> terms) {
  if (terms.size() == 1) return terms[0];
  const Extents extents = terms[0]->extents();
  std::vector<Term> all;
  for (OperatorPtr& term : terms) all.push_back({std::move(term)});
  return std::make_shared<Sum>(extents, std::move(all));
}

Block Sum::predict(const Reading& from, const Grid& grid) const {
  Block sum{grid.columns.empty() ? extents_.features : grid.columns.size()};
  sum.values.resize(grid.rows.size() * sum.features);
  for (const Term& term : terms_) {
    if (term.times == 0) continue;  // It need not be there.
    const Block block = term.of->predict(from, grid);
    if (block.values.size() != sum.values.size()) return {};
    for (std::size_t i = 0; i < sum.values.size(); ++i) {
      const uint64_t at = i % sum.features;
      const double scale =
          term.by_column.empty() ? 1 : term.by_column[grid.columns.empty() ? at : grid.columns[at]];
      sum.values[i] += term.times * scale * block.values[i];
    }
  }
  return sum;
}

Standing Sum::standing() const {
  const bool given =
      std::ranges::any_of(terms_, [](const Term& t) { return !t.by_column.empty(); });
  return given ? Standing::given : Standing::fitted;
}

void Sum::change_term(const Context& context, std::size_t at, std::vector<Change>& changes) const {
  const Term& term = terms_[at];
  const auto with = [&](double times) {
    std::vector<Term> terms = terms_;
    terms[at].times = times * term.times;
    return std::make_shared<Sum>(extents_, std::move(terms));
  };
  const double bits = std::log2(3.0 * static_cast<double>(terms_.size()));
  if (terms_.size() > 1) {
    changes.push_back({with(0),
                       "residual_missing",
                       fmt::format("B does not add {}", term.of->text()),
                       "term_missing",
                       Family::term,
                       bits,
                       0,
                       {{"tensor", term.of->text()}}});
    changes.push_back({with(2),
                       "residual_missing",
                       fmt::format("B adds {} twice", term.of->text()),
                       "term_doubled",
                       Family::term,
                       bits,
                       0,
                       {{"tensor", term.of->text()}}});
    changes.push_back({with(-1),
                       "operator",
                       fmt::format("B subtracts {} where A adds it", term.of->text()),
                       "term_negated",
                       Family::term,
                       bits,
                       0,
                       {{"tensor", term.of->text()}}});
  }
  if (!term.by_column.empty()) {
    std::vector<Term> terms = terms_;
    terms[at].by_column.clear();
    changes.push_back(
        {std::make_shared<Sum>(extents_, std::move(terms)), "operator",
         fmt::format("B omits the factors '{}' of {}", term.scaled_by, term.of->text()),
         "scale_missing", Family::parameter, bits});
  }
  std::vector<Change> inner = term.of->changes(context);
  for (Change& change : inner) {
    if (change.family != Family::substitution || terms_.size() < 2) continue;
    change.code = "residual_missing";
    change.text = fmt::format("B adds {} where A adds {}", change.made->text(), term.of->text());
  }
  lift(
      inner,
      [&](const OperatorPtr& made) {
        std::vector<Term> terms = terms_;
        terms[at].of = made;
        return std::make_shared<Sum>(extents_, std::move(terms));
      },
      changes);
}

std::vector<Change> Sum::changes(const Context& context) const {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < terms_.size(); ++i) change_term(context, i, changes);
  return changes;
}

std::string Sum::text() const {
  std::string text;
  for (const Term& term : terms_) text += (text.empty() ? "" : " + ") + term.of->text();
  return text;
}

Block Map::predict(const Reading& from, const Grid& grid) const {
  Block block = of_->predict(from, grid);
  std::ranges::transform(block.values, block.values.begin(), function_.value);
  return block;
}

std::vector<Change> Map::changes(const Context& context) const {
  std::vector<Change> changes;
  for (const ActivationFunction& other : activation_functions()) {
    if (other.name == function_.name) continue;
    changes.push_back(
        {std::make_shared<Map>(other, of_),
         "operator",
         fmt::format("B applies {} where A applies {}", other.name, function_.name),
         "activation",
         Family::parameter,
         bits_of_functions(),
         0,
         {{"function_a", std::string(function_.name)}, {"function_b", std::string(other.name)}}});
  }
  // The function before the sum: of one of its terms.
  if (const auto* sum = dynamic_cast<const Sum*>(of_.get()); sum && sum->terms().size() > 1) {
    for (std::size_t i = 0; i < sum->terms().size(); ++i) {
      std::vector<Term> terms = sum->terms();
      terms[i].of = std::make_shared<Map>(function_, terms[i].of);
      changes.push_back({std::make_shared<Sum>(sum->extents(), terms), "operator",
                         fmt::format("B applies {} to {} before the sum, A after it",
                                     function_.name, sum->terms()[i].of->text()),
                         "function_before_sum", Family::term, 2});
    }
  }
  lift(
      of_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Map>(function_, made); }, changes);
  return changes;
}

std::string Map::text() const { return applied(function_, *of_); }

Block Gated::predict(const Reading& from, const Grid& grid) const {
  Block block = gate_->predict(from, grid);
  const Block up = up_->predict(from, grid);
  if (up.values.size() != block.values.size()) return {};
  for (std::size_t i = 0; i < up.values.size(); ++i)
    block.values[i] = function_.value(block.values[i]) * up.values[i];
  return block;
}

std::vector<Change> Gated::changes(const Context& context) const {
  std::vector<Change> changes;
  if (&function_ != &identity_function())
    changes.push_back(
        {std::make_shared<Gated>(function_, up_, gate_), "operator",
         fmt::format("B computes {} · {} where A computes {}: gate and up are swapped",
                     applied(function_, *up_), gate_->text(), text()),
         "gate_up_swapped", Family::parameter, 1});
  changes.push_back({std::make_shared<Map>(function_, gate_), "operator",
                     fmt::format("B omits the factor {}", up_->text()), "gate_missing",
                     Family::term, 2});
  changes.push_back({up_, "operator", fmt::format("B omits the gate {}", gate_->text()),
                     "gate_missing", Family::term, 2});
  for (const ActivationFunction& other : activation_functions()) {
    if (other.name == function_.name) continue;
    changes.push_back(
        {std::make_shared<Gated>(other, gate_, up_),
         "operator",
         fmt::format("B applies {} where A applies {}", other.name, function_.name),
         "activation",
         Family::parameter,
         bits_of_functions(),
         0,
         {{"function_a", std::string(function_.name)}, {"function_b", std::string(other.name)}}});
  }
  lift(
      gate_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Gated>(function_, made, up_); },
      changes);
  lift(
      up_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Gated>(function_, gate_, made); },
      changes);
  return changes;
}

std::string Gated::text() const {
  return fmt::format("{} · {}", applied(function_, *gate_), up_->text());
}

Columns::Columns(OperatorPtr of, std::vector<uint64_t> picked)
    : of_(std::move(of)), extents_(of_->extents()), picked_(std::move(picked)) {
  extents_.features = picked_.size();
}

Columns::Columns(OperatorPtr of, uint64_t first, uint64_t count)
    : Columns(std::move(of), std::vector<uint64_t>(count)) {
  std::iota(picked_.begin(), picked_.end(), first);
}

Block Columns::predict(const Reading& from, const Grid& grid) const {
  Grid wider{grid.rows, grid.columns.empty() ? picked_ : grid.columns};
  if (!grid.columns.empty())
    for (uint64_t& column : wider.columns) column = picked_[column];
  return of_->predict(from, wider);
}

std::string Columns::text() const { return fmt::format("a part of {}", of_->text()); }

Joined::Joined(std::vector<OperatorPtr> parts)
    : parts_(std::move(parts)), extents_(parts_[0]->extents()) {
  extents_.features = 0;
  for (const OperatorPtr& part : parts_) extents_.features += part->extents().features;
}

Block Joined::predict(const Reading& from, const Grid& grid) const {
  Block all{extents_.features, std::vector<double>(grid.rows.size() * extents_.features)};
  uint64_t first = 0;
  for (const OperatorPtr& part : parts_) {
    const Block block = part->predict(from, {grid.rows});
    if (block.rows() != grid.rows.size()) return {};
    for (uint64_t r = 0; r < block.rows(); ++r)
      std::copy(block.row(r), block.row(r) + block.features, all.row(r) + first);
    first += block.features;
  }
  if (grid.columns.empty()) return all;
  Block picked{grid.columns.size()};
  for (uint64_t r = 0; r < all.rows(); ++r)
    for (const uint64_t column : grid.columns) picked.values.push_back(all.row(r)[column]);
  return picked;
}

Pooled::Pooled(OperatorPtr of, By by) : of_(std::move(of)), extents_(of_->extents()), by_(by) {
  extents_.rows_by_axis.resize(1);
  extents_.layout = Layout::tokens;
}

Block Pooled::predict(const Reading& from, const Grid& grid) const {
  const uint64_t tokens = of_->extents().rows() / std::max<uint64_t>(1, extents_.rows());
  const uint64_t begin = by_ == By::last ? tokens - 1 : (by_ == By::mean_of_others ? 1 : 0);
  const uint64_t end = by_ == By::first ? 1 : tokens;
  if (begin >= end) return {};
  Block pooled{grid.columns.empty() ? extents_.features : grid.columns.size()};
  for (const uint64_t row : grid.rows) {
    Grid inner{{}, grid.columns};
    for (uint64_t token = begin; token < end; ++token) inner.rows.push_back(row * tokens + token);
    const Block all = of_->predict(from, inner);
    if (all.empty()) return {};
    for (uint64_t c = 0; c < pooled.features; ++c) {
      double value = by_ == By::maximum ? -std::numeric_limits<double>::infinity() : 0;
      for (uint64_t r = 0; r < all.rows(); ++r)
        value = by_ == By::maximum ? std::max(value, all.row(r)[c]) : value + all.row(r)[c];
      if (by_ != By::maximum) value /= static_cast<double>(all.rows());
      pooled.values.push_back(value);
    }
  }
  return pooled;
}

std::vector<Change> Pooled::changes(const Context& context) const {
  std::vector<Change> changes;
  for (const By by : kPoolings)
    if (by != by_)
      changes.push_back(
          {std::make_shared<Pooled>(of_, by), "operator",
           fmt::format("B takes {} of {} where A takes {}", name_of(by), of_->text(), name_of(by_)),
           "pooling", Family::parameter, 2});
  lift(
      of_->changes(context),
      [&](const OperatorPtr& made) { return std::make_shared<Pooled>(made, by_); }, changes);
  return changes;
}

std::string Pooled::text() const { return fmt::format("{} of {}", name_of(by_), of_->text()); }

}  // namespace tensordiff::operators
