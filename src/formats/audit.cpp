#include "formats/audit.h"

#include <algorithm>

#include "base/text.h"
#include "formats/detect.h"

namespace tensordiff {
namespace {

bool has_extension(const Format& format, std::string_view extension) {
  const std::vector<std::string_view> known = split(format.extensions, ' ');
  return std::ranges::find(known, extension) != known.end();
}

// A name that promises another format than the content is, as some files have that are to get past
// a scanner. Any of several endings may be the right one: checkpoint.pth.tar, model.gguf.bak.
void check_extension(std::string_view path, const Format& format, std::vector<Problem>& problems) {
  const std::string name = lower(path.substr(path.rfind('/') + 1));
  std::string promised;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    const std::string_view ending =
        std::string_view(name).substr(dot, name.find('.', dot + 1) - dot);
    if (has_extension(format, ending)) return;
    for (const Format* other : formats::kAll)
      if (has_extension(*other, ending))
        promised += (promised.empty() ? "" : " or ") + std::string(other->name);
  }
  if (!promised.empty())
    problems.push_back({"", fmt::format("wrong extension: its name says {}, its content is {}",
                                        promised, format.name)});
}

}  // namespace

void audit_member(const ArchiveFile& member, const Input& archive, std::vector<Problem>& problems) {
  const Input inside{member.path, member.source, archive.limits, archive.depth + 1, nullptr};
  for (Problem& found : audit_input(inside))
    problems.push_back({found.where.empty() ? member.path : member.path + ": " + found.where,
                        std::move(found.message), found.severity});
}

std::vector<Problem> audit_input(const Input& input, std::string_view name) {
  const Result<Bytes> file = input.source.open();
  if (!file.ok()) return {};
  const Result<const Format*> format = name.empty() ? detect(file.value()) : format_named(name);
  if (!format.ok()) return {};
  std::vector<Problem> problems;
  if (name.empty()) check_extension(input.name, *format.value(), problems);
  for (const Auditor* auditor : audits::kAll)
    if (auditor->format == format.value())
      for (Problem& found : auditor->audit(input)) problems.push_back(std::move(found));
  return problems;
}

std::vector<Problem> audit_model(const std::string& path, const OpenOptions& options) {
  std::vector<Problem> problems;
  const Result<Roots::Entry> found = options.roots.look(path);
  if (!found.ok()) return problems;
  if (!found.value().folder) {
    Result<Bytes> file = options.roots.map(path);
    if (!file.ok()) return problems;
    return audit_input({path, ByteSource(std::move(file).value()), options.limits, 0, nullptr},
                       options.format);
  }
  const Result<Archive> folder = walk_folder(path, options);
  if (!folder.ok()) return problems;
  // At the depth of a folder's files, which is that of no archive.
  const Input around{path, ByteSource(), options.limits, -1, nullptr};
  for (const ArchiveFile& file : folder.value().files) audit_member(file, around, problems);
  return problems;
}

}  // namespace tensordiff
