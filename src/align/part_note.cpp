#include "align/part_note.h"

#include <fmt/format.h>

namespace tensordiff {
namespace {

constexpr std::string_view kOneOfMany = ", of which only the first is compared";
constexpr std::string_view kSomeRows = ": only the ";

}  // namespace

std::string part_note(const Step& step, uint64_t size) {
  const uint64_t axis = step.argument[0], kept = step.argument.back();
  const bool selects = step.op == ops::kSelect;
  if (selects && kept == 1)
    return fmt::format("axis {} of {} stacks {}{}", axis, step.side, size, kOneOfMany);
  return fmt::format("{} has {} more rows on axis {}{}{} {} are compared", step.side, size - kept,
                     axis, kSomeRows, selects ? "last" : "first", kept);
}

bool tells_of_a_part(std::string_view message) {
  return message.find(kOneOfMany) != std::string_view::npos ||
         message.find(kSomeRows) != std::string_view::npos;
}

}  // namespace tensordiff
