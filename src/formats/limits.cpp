#include "formats/limits.h"

#include "base/text.h"

namespace tensordiff {

Error limit_hit(std::string_view name, std::string_view what) {
  return Error("{}, the limit; --limit {}=N raises it", what, name);
}

Result<void> set_limit(Limits& limits, std::string_view name, uint64_t value) {
  std::string names;
  for (const LimitRow& row : kLimitRows) {
    if (row.value == &Limits::depth_max && name == row.name && value > kDepthLimitMax)
      return Error("limit depth: at most {}", kDepthLimitMax);
    if (row.name == name) {
      limits.*row.value = value;
      return {};
    }
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return Error("no limit '{}'; there are: {}", printable(name), names);
}

}  // namespace tensordiff
