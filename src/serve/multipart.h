// A form as browsers send it with files: multipart/form-data, RFC 7578.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensordiff::serve {

struct FormPart {
  std::string name;
  std::string filename;    // Empty where it is no file.
  std::string_view bytes;  // Points into the body.
};

Result<std::vector<FormPart>> parse_multipart(std::string_view body, std::string_view content_type);

}  // namespace tensordiff::serve
