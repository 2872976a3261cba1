#include "formats/limits.h"

#include <algorithm>

#include "base/suggest.h"
#include "base/text.h"

namespace tensordiff {

Error limit_hit(std::string_view name, std::string_view what) {
  return Error("{}, the limit; --limit {}=N raises it", what, name);
}

bool grows_too_much(uint64_t bytes, uint64_t packed, const Limits& limits) {
  constexpr uint64_t kFrom = 64ULL << 20;
  return bytes > kFrom && bytes / std::max<uint64_t>(1, limits.growth_max) > packed;
}

Limits limits_inside(const Limits& limits, uint64_t bytes, uint64_t packed) {
  Limits inside = limits;
  if (bytes > packed && bytes > 0)
    inside.growth_max =
        static_cast<uint64_t>(static_cast<double>(limits.growth_max) * static_cast<double>(packed) /
                              static_cast<double>(bytes));
  return inside;
}

Result<void> set_limit(Limits& limits, std::string_view name, uint64_t value) {
  std::vector<std::string_view> names;
  for (const LimitRow& row : kLimitRows) {
    if (row.value == &Limits::depth_max && name == row.name && value > kDepthLimitMax)
      return Error("limit depth: at most {}", kDepthLimitMax);
    if (row.name == name) {
      limits.*row.value = value;
      return {};
    }
    names.push_back(row.name);
  }
  return Error("no limit '{}'{}", printable(name), did_you_mean(name, names));
}

}  // namespace tensordiff
