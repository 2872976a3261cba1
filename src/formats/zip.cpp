// A zip of other files: a folder of dumps, packed. What the zip container is, see zip_archive.cpp.

#include "formats/archive.h"
#include "formats/audit.h"
#include "formats/keras_code.h"
#include "formats/zip_archive.h"

namespace tensordiff {
namespace {

bool recognises(const Bytes& file) {
  const std::string_view text = as_text(file.view);
  return text.starts_with("PK\3\4") || text.starts_with("PK\5\6");
}

// A .keras archive says in config.json how to build the model.
void look_at_config(const ZipArchive& zip, const Limits& limits, std::vector<Problem>& problems) {
  const ZipMember* config = zip.find("config.json");
  if (!config || !zip.find("metadata.json")) return;
  if (config->source.size() > limits.json_bytes_max)
    return problems.push_back({config->name, "too long to be looked at for code"});
  const Result<Bytes> bytes = config->source.open();
  if (!bytes.ok()) return problems.push_back({config->name, bytes.error().message()});
  for (Problem& found : code_in_keras(as_text(bytes.value().view), config->name))
    problems.push_back(std::move(found));
}

Result<Catalog> open(const Input& input) {
  TRY(check_nesting(input));
  const Bytes file = TRY(input.source.open());
  ZipArchive zip = TRY(read_zip(file, input.limits));
  Archive archive{{}, std::move(zip.problems)};
  look_at_config(zip, input.limits, archive.problems);
  for (ZipMember& member : zip.members)
    archive.files.push_back({std::move(member.name), std::move(member.source), member.packed});
  zip = {};  // Of a million members every copy counts.
  return open_files(std::move(archive), input.limits, input.depth + 1);
}

std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  if (!file.ok() || !check_nesting(input).ok()) return {};
  std::vector<Problem> problems = audit_zip(file.value(), input.limits);
  Result<ZipArchive> zip = read_zip(file.value(), input.limits);
  if (!zip.ok()) return problems;
  for (ZipMember& member : zip.value().members)
    audit_member({std::move(member.name), std::move(member.source)}, input, problems);
  return problems;
}

}  // namespace

constinit const Format formats::zip = {
    .name = "zip",
    .summary = "zip archive of files of any other format",
    .extensions = ".zip .keras",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::zip = {
    .format = &formats::zip,
    .audit = audit,
};

}  // namespace tensordiff
