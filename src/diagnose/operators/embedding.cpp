// Rows of a table. The ids need not be in the dumps: A's rows tell which rows of the table they
// are.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kRowsMax = uint64_t{1} << 18;    // Of a table that is read for its ids.
constexpr uint64_t kTokensMax = uint64_t{1} << 14;  // Of the output.

struct Lookup {
  TablePtr table;
  std::vector<uint64_t> ids;  // One for each row of the output.
  double scale = 1;
};

class Embedding final : public Operator {
 public:
  Embedding(Extents extents, Lookup lookup)
      : extents_(std::move(extents)), lookup_(std::move(lookup)) {}

  std::string_view kind() const override { return "embedding"; }
  const Extents& extents() const override { return extents_; }
  std::string text() const override { return fmt::format("'{}'", lookup_.table->name()); }

  Block predict(const Reading& from, const Grid& grid) const override {
    Block made{grid.columns.empty() ? extents_.features : grid.columns.size()};
    for (const uint64_t row : grid.rows) {
      const double* values = lookup_.table->row(lookup_.ids[row]);
      if (!values) return {};
      for (uint64_t c = 0; c < made.features; ++c)
        made.values.push_back(lookup_.scale * (1 + from.unit) *
                              values[grid.columns.empty() ? c : grid.columns[c]]);
    }
    return made;
  }

  std::vector<Change> changes(const Context& context) const override;

 private:
  void change_ids(const std::vector<uint64_t>& ids, std::vector<Change>& changes) const;

  Extents extents_;
  Lookup lookup_;
};

// Which row of the table each row of a side is; nothing where one is none.
std::optional<std::vector<uint64_t>> ids_of(const Dumped& target, const Table& table, double scale,
                                            const Reading& from);

std::vector<Change> Embedding::changes(const Context& context) const {
  std::vector<Change> changes;
  const auto add = [&](Lookup other, std::string code, std::string text, std::string cause) {
    changes.push_back({std::make_shared<Embedding>(extents_, std::move(other)), std::move(code),
                       std::move(text), std::move(cause), Family::index, 3});
  };
  const uint64_t tokens = extents_.rows_by_axis.back();
  const auto ids_b =
      ids_of(*context.target(Layout::tokens), *lookup_.table, lookup_.scale, {&AlignedPair::b});
  for (const int64_t by : {1, -1, 2, -2}) {
    Lookup other = lookup_;
    for (std::size_t i = 0; i < other.ids.size(); ++i) {
      const auto to = static_cast<int64_t>(i % tokens) + by;
      if (to >= 0 && to < static_cast<int64_t>(tokens))
        other.ids[i] = lookup_.ids[i - i % tokens + static_cast<uint64_t>(to)];
    }
    add(other, "token_shift", fmt::format("B's ids are shifted by {} tokens", -by), "id_shift");
    other = lookup_;
    bool fits = true;
    for (uint64_t& id : other.ids) {
      const int64_t to = static_cast<int64_t>(id) + by;
      fits = fits && to >= 0 && to < static_cast<int64_t>(lookup_.table->rows());
      id = static_cast<uint64_t>(to);
    }
    if (fits)
      add(other, "operator",
          fmt::format("B looks up row id {} {} where A looks up row id", by < 0 ? '-' : '+',
                      std::abs(by)),
          "id_offset");
  }
  Lookup other = lookup_;
  for (uint64_t& id : other.ids) id = 0;
  add(other, "operator", "B looks up row 0 for all tokens: the ids were not passed in",
      "ids_missing");
  const double root = std::sqrt(static_cast<double>(extents_.features));
  for (const double factor : {root, 1 / root}) {
    other = lookup_;
    other.scale *= factor;
    add(other, "scale",
        fmt::format("B = {} × A: the factor of the embedding", human_number(factor)),
        "embedding_scale");
    changes.back().family = Family::affine;
    changes.back().parameters = {{"factor", factor}};
  }
  if (ids_b) change_ids(*ids_b, changes);
  return changes;
}

// Any other rows of the same table.
void Embedding::change_ids(const std::vector<uint64_t>& ids, std::vector<Change>& changes) const {
  // What it takes to say them: each id of A that becomes another, where that tells all of them.
  std::map<uint64_t, uint64_t> becomes;
  bool by_id = true;
  double others = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [at, added] = becomes.emplace(lookup_.ids[i], ids[i]);
    by_id = by_id && at->second == ids[i];
    others += ids[i] != lookup_.ids[i];
  }
  double told = 0;
  for (const auto& [from, to] : becomes) told += from != to;
  if (others == 0) return;
  changes.push_back(
      {std::make_shared<Embedding>(extents_, Lookup{lookup_.table, ids, lookup_.scale}),
       "operator",
       fmt::format("B looks up other rows of '{}' than A at {} of {} places",
                   printable(lookup_.table->name(), 60), others, ids.size()),
       "other_ids",
       Family::index,
       (by_id ? 2 * told : others) * std::log2(static_cast<double>(lookup_.table->rows()) + 1),
       0,
       {{"places", others}}});
}

std::optional<std::vector<uint64_t>> ids_of(const Dumped& target, const Table& table, double scale,
                                            const Reading& from) {
  Grid all;
  for (uint64_t row = 0; row < target.extents().rows(); ++row) all.rows.push_back(row);
  const Block y = target.predict(from, all);
  if (y.empty()) return std::nullopt;
  // By the first value: rounding leaves the rest to the misfit.
  std::multimap<double, uint64_t> by_first;
  for (uint64_t id = 0; id < table.rows(); ++id) {
    const double* row = table.row(id);
    if (!row) return std::nullopt;
    by_first.emplace(scale * row[0], id);
  }
  std::vector<uint64_t> ids;
  for (uint64_t r = 0; r < y.rows(); ++r) {
    const double first = y.row(r)[0], slack = 0.01 * std::abs(first) + 1e-12;
    double least = INFINITY;
    uint64_t id = 0;
    for (auto at = by_first.lower_bound(first - slack);
         at != by_first.end() && at->first <= first + slack; ++at) {
      double gap = 0;
      for (uint64_t c = 0; c < y.features; ++c)
        gap += std::pow(scale * table.row(at->second)[c] - y.row(r)[c], 2);
      if (gap < least) least = gap, id = at->second;
    }
    if (!std::isfinite(least)) return std::nullopt;
    ids.push_back(id);
  }
  return ids;
}

OperatorPtr propose(const Context& context) {
  const DumpedPtr& target = context.target(Layout::tokens);
  const View* weight = context.parameters().find(context.path(), "weight");
  if (!target || !weight || weight->shape.size() != 2 ||
      weight->shape[1] != target->extents().features || weight->shape[0] > kRowsMax ||
      target->extents().rows() > kTokensMax)
    return nullptr;
  const auto table = std::make_shared<Table>(*weight, context.path() + ".weight");
  const double root = std::sqrt(static_cast<double>(weight->shape[1]));
  for (const double scale : {1.0, root}) {
    std::optional<std::vector<uint64_t>> ids = ids_of(*target, *table, scale, {});
    if (!ids) continue;
    auto made = std::make_shared<Embedding>(target->extents(), Lookup{table, *ids, scale});
    if (context.explains_a(*made)) return made;
  }
  return nullptr;
}

}  // namespace

constinit const Proposal kinds::embedding = {
    .kind = "embedding",
    .needs = "the table (--weights)",
    .propose = propose,
};

}  // namespace tensordiff::operators
