// A tar of other files: a folder of dumps, packed. What the tar container is, see tar_archive.cpp.

#include "formats/audit.h"
#include "formats/tar_archive.h"

namespace tensordiff {
namespace {

bool recognises(const Bytes& file) { return is_tar(file); }

Result<Catalog> open(const Input& input) {
  TRY(check_nesting(input));
  const Bytes file = TRY(input.source.open());
  return open_files(TRY(read_tar(file, input.limits)), input.limits, input.depth + 1);
}

std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  std::vector<Problem> problems;
  if (!file.ok() || !check_nesting(input).ok()) return problems;
  const Result<Archive> archive = read_tar(file.value(), input.limits);
  if (!archive.ok()) return problems;
  for (const ArchiveFile& member : archive.value().files) audit_member(member, input, problems);
  return problems;
}

}  // namespace

constinit const Format formats::tar = {
    .name = "tar",
    .summary = "tar archive of files of any other format",
    .extensions = ".tar",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::tar = {
    .format = &formats::tar,
    .audit = audit,
};

}  // namespace tensordiff
