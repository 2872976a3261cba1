#include "report/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/side.h"
#include "convert/merge_parts.h"
#include "convert/misfit.h"
#include "convert/rope_convention.h"
#include "diagnose/verdict/exceptions.h"

namespace tensordiff {

namespace {

std::vector<ConversionRow> rows_of(const Conversion& conversion) {
  std::vector<ConversionRow> rows;
  for (const ConversionRule& rule : conversion.rules)
    rows.push_back({text_of(rule.form), rule.kind_a, rule.kind_b, rule.pairs, {}, rule.form});
  for (const Exception& exception : conversion.exceptions)
    if (const std::size_t rule = conversion.rule_of[exception.pair]; rule < rows.size())
      rows[rule].exceptions.push_back(exception.pair);
  std::ranges::stable_sort(rows, {},
                           [](const ConversionRow& row) { return row.exceptions.empty(); });
  return rows;
}

// The one of several ways to merge a pair that fits it best: the values choose the axis of a
// square.
const MergeWay* way_of(const Sides& sides, const WaysOf& ways, const Pair& pair, const Form& form) {
  const auto found = ways.find(form.merge.side == 'a' ? pair.a : pair.b);
  if (found == ways.end()) return nullptr;
  const MergeWay* best = nullptr;
  double least = 0;
  for (const MergeWay& each : found->second) {
    if (each.merged.how != form.merge) continue;
    PairOperands operands = operands_of(sides, pair);
    operands.merges = {{each.merged.how, each.merged.view}};
    const std::optional<AlignedPair> merged = carried_out(form, operands);
    if (!merged) continue;
    const double misfits = misfit(*merged);
    if (best && !(misfits < least)) continue;
    best = &each, least = misfits;
  }
  return best;
}

// What a tensor that others take in is called in the list of unpaired ones.
using Takers = std::map<std::string_view, std::pair<const Merged*, std::string_view>>;

Takers takers_of(const Sides& sides, char side) {
  Takers takers;
  const Catalog& catalog = side == 'a' ? sides.a : sides.b;
  const std::vector<Pair>& pairs = sides.matching.pairs;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Form* form = sides.conversion->form_of(i);
    if (!form || form->merge.kind == MergeKind::none || form->merge.side != side) continue;
    const std::size_t tensor = side == 'a' ? pairs[i].a : pairs[i].b;
    for (const Merged& merged : sides.merges->of(side).at(tensor))
      for (const std::size_t part : merged.with)
        takers[catalog.tensors[part].name] = {&merged, catalog.tensors[tensor].name};
  }
  return takers;
}

}  // namespace

MergedPairs merged_pairs(const Sides& sides) {
  MergedPairs result;
  if (!sides.conversion) return result;
  std::map<char, WaysOf> ways;
  for (const char side : {'a', 'b'})
    ways[side] = merge_ways(side, sides.a, sides.b, sides.matching);
  for (std::size_t i = 0; i < sides.matching.pairs.size(); ++i) {
    const Form* form = sides.conversion->form_of(i);
    if (!form || form->merge.kind == MergeKind::none) continue;
    const MergeWay* way = way_of(sides, ways[form->merge.side], sides.matching.pairs[i], *form);
    if (!way) continue;
    const MergeParts& parts = way->parts;
    MergedFrom from{{}, parts.axis, parts.number, parts.turned, parts.is_bias};
    for (const std::optional<std::size_t>& part : parts.tensors)
      from.names.push_back(part ? (form->merge.side == 'a' ? sides.a : sides.b).tensors[*part].name
                                : "");
    result.emplace(i, std::move(from));
  }
  return result;
}

void list_merged(const Sides& sides, Report& report) {
  if (!sides.conversion || !sides.merges) return;
  for (const char side : {'a', 'b'}) {
    auto& rows = side == 'a' ? report.only_a : report.only_b;
    auto& auxiliary = side == 'a' ? report.auxiliary_a : report.auxiliary_b;
    const Takers takers = takers_of(sides, side);
    const auto is_length = [&](Report::Unpaired& row) {
      const auto found = takers.find(row.id.name);
      if (found == takers.end()) return false;
      const auto& [merged, into] = found->second;
      row.merged = true;
      row.nearest.clear();
      row.why = fmt::format("merged into {}", into);
      return merged->how.kind == MergeKind::weight_norm;
    };
    for (Report::Unpaired& row : rows)
      if (is_length(row)) auxiliary.push_back(row);
    std::erase_if(rows, is_length);
    const auto merged = std::ranges::count_if(rows, &Report::Unpaired::merged);
    if (merged > 0)
      report.notes.push_back(fmt::format(
          "{} tensors only in {} are merged into weights of the other side; see the conversion",
          merged, capital(side)));
  }
}

void report_conversion(const Sides& sides, Report& report) {
  if (!sides.conversion) return;
  report.conversion = rows_of(*sides.conversion);
  if (std::string open = open_rope_order(sides.a, sides.b); !open.empty())
    report.notes.push_back("conversion: " + open);
  for (std::string& line : summary_of(*sides.conversion)) report.notes.push_back(std::move(line));
  std::vector<std::optional<double>> errors;
  for (const PairRow& row : report.pairs) errors.push_back(row.comparison.diff.rel_l2);
  const auto operands = [&](const Pair& pair) { return operands_of(sides, pair); };
  std::vector<Finding> findings =
      explain_exceptions(*sides.conversion, sides.matching.pairs, operands, errors);
  for (std::size_t i = 0; i < report.pairs.size(); ++i)
    if (report.pairs[i].comparison.status == Status::different)
      if (const auto shifted = shifted_rows(sides, sides.matching.pairs[i]))
        findings.push_back(shift_finding(i, shifted->side, shifted->rows, errors[i]));
  for (Finding& finding : findings) {
    std::erase_if(report.findings, [&](const Finding& it) { return it.pair == finding.pair; });
    report.findings.push_back(std::move(finding));
  }
  std::ranges::stable_sort(report.findings, {}, &Finding::pair);
}

}  // namespace tensordiff
