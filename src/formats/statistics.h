// Statistics that stand for tensors, as some programs write them in place of the elements.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.h"

namespace tensordiff {

// Tensor::made_from of statistics begins so; their names follow, in order, divided by commas.
inline constexpr std::string_view kStatisticsMark = "statistics: ";
// What msprobe tells of each tensor.
inline constexpr std::string_view kProbeStatistics = "max, min, mean, norm";

// Statistics are as exact as the elements: "torch.bfloat16" and, of MindSpore, "BFloat16".
DType type_of_statistics(std::string_view dtype, const std::vector<double>& numbers);

// A whole text as a number.
std::optional<double> number_in(std::string_view text);

// Takes a line off the front, without what ends it.
std::string_view take_line(std::string_view& text);

// Collects them: a vector for each tensor.
class StatisticsList {
 public:
  explicit StatisticsList(const Limits& limits) : limits_(limits) {}

  // Whether one more tensor is allowed.
  Result<void> make_room(std::size_t tensors) const;
  Result<void> add(const std::string& name, const std::vector<double>& numbers,
                   std::string_view labels, DType dtype = DType::f32);
  Result<Catalog> take();

 private:
  Limits limits_;
  Catalog catalog_;
};

}  // namespace tensordiff
