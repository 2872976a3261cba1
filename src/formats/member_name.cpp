#include "formats/member_name.h"

#include "base/text.h"

namespace tensordiff {

std::string_view member_name_fault(std::string_view name) {
  if (name.empty()) return "its name is empty";
  if (name.find('\0') != std::string_view::npos) return "its name contains a NUL";
  if (name.find('\\') != std::string_view::npos) return "its name contains a backslash";
  if (name.front() == '/') return "its name is an absolute path";
  if (name.size() > 1 && name[1] == ':') return "its name starts with a drive letter";
  for (const std::string_view component : split(name, '/'))
    if (component == "..") return "its name climbs out of the archive with '..'";
  return {};
}

}  // namespace tensordiff
