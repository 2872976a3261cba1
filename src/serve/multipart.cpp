#include "serve/multipart.h"

#include "base/text.h"

namespace tensordiff::serve {
namespace {

constexpr std::size_t kPartsMax = 1000;
constexpr std::size_t kPartHeadMax = 16 << 10;

// The value of `key` in 'form-data; name="model1"; filename="a.zip"'; empty where there is none.
std::string parameter(std::string_view text, std::string_view key) {
  const std::string wanted = lower(text);
  for (std::size_t at = 0; (at = wanted.find(key, at)) != std::string::npos; ++at) {
    const bool starts = at > 0 && (wanted[at - 1] == ' ' || wanted[at - 1] == ';');
    std::string_view rest = text.substr(at + key.size());
    if (!starts || !rest.starts_with('=')) continue;
    rest.remove_prefix(1);
    if (!rest.starts_with('"')) return std::string(rest.substr(0, rest.find_first_of("; \r\n")));
    return std::string(rest.substr(1, rest.find('"', 1) - 1));
  }
  return "";
}

}  // namespace

Result<std::vector<FormPart>> parse_multipart(std::string_view body,
                                              std::string_view content_type) {
  const std::string boundary = parameter(content_type, "boundary");
  if (!lower(content_type).starts_with("multipart/form-data") || boundary.empty() ||
      boundary.size() > 70)
    return Error("not a form with files: multipart/form-data with a boundary");
  const std::string mark = "--" + boundary;
  if (!body.starts_with(mark)) return Error("the form does not start with its boundary");
  std::vector<FormPart> parts;
  body.remove_prefix(mark.size());
  while (!body.starts_with("--")) {
    const std::size_t head_end = body.substr(0, kPartHeadMax).find("\r\n\r\n");
    const std::size_t end = body.find("\r\n" + mark);
    if (!body.starts_with("\r\n") || head_end == std::string_view::npos ||
        end == std::string_view::npos || end < head_end)
      return Error("the form is cut short");
    const std::string_view head = body.substr(0, head_end);
    parts.push_back({parameter(head, "name"), parameter(head, "filename"),
                     body.substr(head_end + 4, end > head_end + 4 ? end - head_end - 4 : 0)});
    if (parts.size() > kPartsMax) return Error("the form has more than {} parts", kPartsMax);
    body.remove_prefix(end + 2 + mark.size());
  }
  return parts;
}

}  // namespace tensordiff::serve
