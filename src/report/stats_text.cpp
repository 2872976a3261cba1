// `--stats`: one line for each change, in the form that scripts written for diffai know.
//
//   ~ fc1.bias: mean=0.0018->0.0017, std=0.0518->0.0647
//   ~ conv1.weight: shape=[64, 3, 7, 7] -> [32, 3, 3, 3]
//   + head.weight: shape=[10, 64], dtype=f32, params=640
//
// Lines are indented by how deep a name is nested, two columns for each dot and never less.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/analyses.h"
#include "report/changes.h"

namespace tensordiff {
namespace {

std::string indent(std::string_view name) {
  const auto dots = static_cast<std::size_t>(std::ranges::count(name, '.'));
  // A name is data: one made of dots alone must not push its line off the page.
  return std::string(2 * std::clamp<std::size_t>(dots, 1, 20), ' ');
}

std::string four_digits(const std::optional<double>& number) {
  return number ? fmt::format("{:.4f}", *number) : "none";
}

std::string arrow(const std::optional<double>& a, const std::optional<double>& b) {
  return four_digits(a) + "->" + four_digits(b);
}

std::string describe(const TensorId& tensor) {
  return fmt::format("shape={}, dtype={}, params={}", shape_text(tensor.shape),
                     name_of(tensor.dtype), element_count(tensor.shape).value_or(0));
}

std::string line(const Change& change) {
  const std::string name = printable(change.name);
  switch (change.kind) {
    case ChangeKind::stats:
      return fmt::format("~ {}: mean={}, std={}", name,
                         arrow(change.a.stats->mean, change.b.stats->mean),
                         arrow(change.a.stats->std, change.b.stats->std));
    case ChangeKind::shape:
      return fmt::format("~ {}: shape={} -> {}", name, shape_text(change.a.id->shape),
                         shape_text(change.b.id->shape));
    case ChangeKind::added:
      return fmt::format("+ {}: {}", name, describe(*change.b.id));
    case ChangeKind::removed:
      return fmt::format("- {}: {}", name, describe(*change.a.id));
    case ChangeKind::unreadable:
      return fmt::format("! {}: {}", name, printable(change.message, 1000));
  }
  return {};
}

std::string render(const Report& report, const RenderOptions& options) {
  const std::string& caveat = report.summary.caveat;
  std::string text = caveat.empty() ? "" : "  ! " + printable(caveat, 1000) + "\n";
  for (const Change& change : list_changes(report, options))
    text += indent(change.name) + line(change) + "\n";
  for (const Answer& answer : report.analyses) text += "  + " + answer_line(answer) + "\n";
  return text;
}

}  // namespace

constinit const Renderer renderers::stats = {
    .name = "stats",
    .summary = "a line for each changed tensor: mean and std before and after (same as --stats)",
    .unpaired_stats = false,
    .render = render,
};

}  // namespace tensordiff
