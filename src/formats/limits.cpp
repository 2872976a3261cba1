#include "formats/limits.h"

#include "base/suggest.h"
#include "base/text.h"

namespace tensordiff {

Error limit_hit(std::string_view name, std::string_view what) {
  return Error("{}, the limit; --limit {}=N raises it", what, name);
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
