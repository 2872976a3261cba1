#include "convert/form.h"

#include <fmt/format.h>

#include <algorithm>

#include "convert/candidates.h"
#include "convert/function.h"

namespace tensordiff {
namespace {

std::string axes_text(const std::vector<AxisStep>& axes) {
  for (const AxisStep& step : axes) {
    if (step.op != Op::permute) continue;
    if (step.argument == std::vector<uint64_t>{1, 0}) return "transposed";
    return fmt::format("axes in the order [{}]", fmt::join(step.argument, ", "));
  }
  return axes.empty() ? "" : "reshaped";
}

std::string rows_text(const Rows& rows) {
  const std::string_view side = rows.side == 'a' ? "A" : "B";
  switch (rows.order) {
    case RowOrder::as_is:
      return "";
    case RowOrder::rope:
      return fmt::format("rows in the other RoPE order (heads of {}, halves in {})", rows.head,
                         side);
    case RowOrder::by_head:
      return fmt::format("parts interleaved by head in {} ({} {})", side, rows.heads,
                         rows.queries > 1 ? "groups" : "heads");
  }
  return "";
}

std::string parts_text(const Form& form) {
  const std::vector<std::size_t>& parts = form.parts;
  static constexpr std::string_view kThree[] = {"q", "k", "v"};
  static constexpr std::string_view kTwo[] = {"gate", "up"};
  if (parts.empty()) return "";
  if (reorders_whole(form))
    return parts.size() == 2
               ? "halves exchanged"
               : fmt::format("{} of A in the order [{}]", parts.size() == 3 ? "thirds" : "quarters",
                             fmt::join(parts, ", "));
  std::vector<std::string_view> names;
  for (const std::size_t part : parts)
    names.push_back(parts.size() == 3 ? kThree[part] : kTwo[std::min<std::size_t>(part, 1)]);
  return fmt::format("parts stored in the order {}", fmt::join(names, ", "));
}

}  // namespace

std::string text_of(const Merge& merge) {
  const std::string_view side = merge.side == 'a' ? "A" : "B";
  switch (merge.kind) {
    case MergeKind::none:
      return "";
    case MergeKind::weight_norm:
      return fmt::format("weight norm of {} merged", side);
    case MergeKind::batch_norm:
      return fmt::format("batch norm of {} folded in", side);
    case MergeKind::lora:
      return fmt::format("LoRA update of {} merged (scale {:.3g})", side,
                         static_cast<double>(merge.scale) / 1e6);
  }
  return "";
}

bool Form::moves_axes() const {
  return std::ranges::any_of(axes, [](const AxisStep& step) { return step.op == Op::permute; });
}

std::string text_of(const Form& form) {
  std::vector<std::string> words;
  for (std::string text :
       {text_of(form.merge), axes_text(form.axes), rows_text(form.rows), parts_text(form)})
    if (!text.empty()) words.push_back(std::move(text));
  if (form.function != Function::none)
    words.push_back(fmt::format("B = {}", text_of(form.function)));
  if (std::ranges::find(form.whole, Op::sum, &AxisStep::op) != form.whole.end())
    words.emplace_back("summed over the ranks");
  else if (!form.whole.empty())
    words.emplace_back("put together from shards or parts");
  return words.empty() ? "as it is" : fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace tensordiff
