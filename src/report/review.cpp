#include "report/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "report/divergence_text.h"
#include "report/selection.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::size_t kGroupsMax = 5;
constexpr std::size_t kLookMax = 3;

bool has_changed(const PairRow& row) {
  return row.comparison.status == Status::different ||
         row.comparison.status == Status::incomparable;
}

// "layers.12.mlp.up" -> "layers.*.mlp.up": tensors of one kind are told in one line.
std::string kind_of(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      out += c;
    else if (!out.ends_with('*'))
      out += '*';
  }
  return out;
}

std::string kinds_text(const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::string>> kinds;
  for (const std::string& name : names) kinds[kind_of(name)].push_back(name);
  std::vector<std::pair<std::string, std::size_t>> order;
  for (const auto& [kind, members] : kinds)
    order.emplace_back(members.size() == 1 ? members[0] : kind, members.size());
  std::ranges::stable_sort(order, std::greater(), [](const auto& each) { return each.second; });
  std::string out;
  for (std::size_t i = 0; i < std::min(kGroupsMax, order.size()); ++i) {
    out += fmt::format("{}{}", out.empty() ? "" : ", ", printable(order[i].first));
    if (order[i].second > 1) out += fmt::format(" ({})", order[i].second);
  }
  if (order.size() > kGroupsMax)
    out += fmt::format(" and {} more kinds", order.size() - kGroupsMax);
  return out;
}

void tell_values(const Report& report, Review& review) {
  std::vector<std::string> names;
  uint64_t changed = 0, compared = 0;
  for (const PairRow& row : report.pairs) {
    const Diff& diff = row.comparison.diff;
    compared += diff.compared;
    if (!has_changed(row)) continue;
    changed += diff.compared - diff.equal;
    names.push_back(row.a.name);
  }
  if (names.empty()) {
    review.changed.push_back(fmt::format("No tensor differs beyond tolerance, of {} compared.",
                                         counted(report.pairs.size(), "pair")));
    return;
  }
  review.changed.push_back(
      fmt::format("{} of {} tensors differ, {} of all compared elements in them: {}.", names.size(),
                  report.pairs.size(), share_text(changed, compared), kinds_text(names)));
}

void tell_form(const Report& report, Review& review) {
  std::map<std::string, uint64_t> dtypes;
  std::vector<std::string> shapes;
  for (const PairRow& row : report.pairs) {
    if (row.a.dtype != row.b.dtype)
      ++dtypes[fmt::format("{} → {}", name_of(row.a.dtype), name_of(row.b.dtype))];
    if (row.comparison.status == Status::incomparable) shapes.push_back(row.a.name);
  }
  for (const auto& [change, count] : dtypes)
    review.changed.push_back(fmt::format("Type {} in {}.", change, counted(count, "tensor")));
  if (!shapes.empty())
    review.changed.push_back(fmt::format("No common shape: {}.", kinds_text(shapes)));
}

void tell_unpaired(const std::vector<Report::Unpaired>& tensors, std::string_view what,
                   Review& review) {
  std::vector<std::string> names;
  for (const Report::Unpaired& tensor : tensors)
    if (tensor.is_difference()) names.push_back(tensor.id.name);
  if (names.empty()) return;
  review.changed.push_back(
      fmt::format("{} {}: {}.", counted(names.size(), "tensor"), what, kinds_text(names)));
}

void look_at_findings(const Report& report, Review& review) {
  if (const PairRow* largest = report.steps ? nullptr : largest_change(report)) {
    const Finding* finding = finding_at(report, largest->index);
    review.look_at.push_back(fmt::format("Largest change: {}{}.", names_of(*largest),
                                         finding ? ": " + cause_of(*finding) : ""));
  } else if (report.first_divergence) {
    const PairRow& row = report.pairs[report.first_divergence->pair];
    const Finding* finding = finding_at(report, row.index);
    const std::string why =
        finding ? cause_of(*finding) : printable(report.first_divergence->explanation, 1000);
    review.look_at.push_back(fmt::format("First divergence {}: {}.", place_of(row), why));
  }
  for (std::size_t i = 0; i < std::min(kLookMax, report.next_divergences.size()); ++i) {
    const std::size_t pair = report.next_divergences[i].pair;
    const Finding* finding = finding_at(report, pair);
    review.look_at.push_back(fmt::format("Then {}{}.", place_of(report.pairs[pair]),
                                         finding ? ": " + cause_of(*finding) : ""));
  }
}

void look_at_numbers(const Report& report, Review& review) {
  std::vector<std::string> broken, unreadable;
  for (const PairRow& row : report.pairs) {
    const Stats &a = row.comparison.a, &b = row.comparison.b;
    if (b.nan + b.inf > a.nan + a.inf) broken.push_back(row.b.name);
    if (row.comparison.status == Status::error) unreadable.push_back(row.a.name);
  }
  if (!broken.empty())
    review.look_at.push_back(
        fmt::format("NaN or Inf that A does not have: {}.", kinds_text(broken)));
  if (!unreadable.empty())
    review.look_at.push_back(fmt::format("Could not be read: {}.", kinds_text(unreadable)));

  RenderOptions options;
  options.show = std::set{Status::different};
  std::string largest;
  std::size_t count = 0;
  for (const PairRow* row : select_pairs(report, options, Sort::difference)) {
    if (count++ == kLookMax) break;
    largest += fmt::format("{}{} (relative L2 {})", largest.empty() ? "" : ", ", names_of(*row),
                           number_or_dash(as_shown(row->comparison.diff).rel_l2));
  }
  if (!largest.empty()) review.look_at.push_back(fmt::format("Largest changes: {}.", largest));
}

}  // namespace

Review review_of(const Report& report) {
  Review review;
  tell_values(report, review);
  tell_form(report, review);
  tell_unpaired(report.only_a, "only in A", review);
  tell_unpaired(report.only_b, "only in B", review);
  look_at_findings(report, review);
  look_at_numbers(report, review);
  for (const Answer& answer : report.analyses)
    if (answer.alarm) review.look_at.push_back(fmt::format("{}: {}.", answer.name, *answer.alarm));
  return review;
}

}  // namespace tensordiff
