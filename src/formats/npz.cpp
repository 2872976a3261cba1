// npz: a zip of npy files, each named as its array. Zips of npy files in folders are dumps, not
// npz; but no folder has a name that starts with a slash, as values of ONNX graphs have.

#include <algorithm>

#include "formats/audit.h"
#include "formats/zip_archive.h"

namespace tensordiff {
namespace {

constexpr std::string_view kEnding = ".npy";

bool is_npy(const ZipMember& member) { return member.name.ends_with(kEnding); }

bool is_in_folder(const ZipMember& member) { return member.name.find('/') != std::string::npos; }

bool is_value(const ZipMember& member) { return member.name.starts_with('/'); }

bool recognises(const Bytes& file) {
  if (!as_text(file.view).starts_with("PK\3\4")) return false;
  const Result<ZipArchive> zip = read_zip(file, {});
  if (!zip.ok() || zip.value().members.empty()) return false;
  const std::vector<ZipMember>& members = zip.value().members;
  return std::ranges::all_of(members, is_npy) &&
         (std::ranges::none_of(members, is_in_folder) || std::ranges::any_of(members, is_value));
}

// One array. What is wrong with it spoils only its own tensor.
void open_array(const ZipMember& member, const Input& around, Catalog& catalog) {
  const std::string name = member.name.substr(0, member.name.size() - kEnding.size());
  Input input = around;
  input.name = member.name;
  input.source = member.source;
  Result<Catalog> array = formats::npy.open(input);
  if (!array.ok()) {
    catalog.tensors.push_back(broken_tensor(name, array.error().message()));
    return;
  }
  for (Tensor& tensor : array.value().tensors) {  // Several only in an array of objects.
    tensor.name = tensor.name.empty() ? name : name + "." + tensor.name;
    catalog.tensors.push_back(std::move(tensor));
  }
  for (const Problem& problem : array.value().problems)
    catalog.problems.push_back({member.name, problem.message, problem.severity});
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  ZipArchive zip = TRY(read_zip(file, input.limits));
  Catalog catalog;
  catalog.problems = std::move(zip.problems);
  for (const ZipMember& member : zip.members) {
    if (is_npy(member)) {
      open_array(member, input, catalog);
    } else {
      catalog.problems.push_back({member.name, "not an npy file: left out"});
    }
  }
  if (std::ranges::none_of(zip.members, is_npy)) return Error("no npy file in it");
  make_names_unique(catalog);
  return catalog;
}

std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  return file.ok() ? audit_zip(file.value(), input.limits) : std::vector<Problem>();
}

}  // namespace

constinit const Format formats::npz = {
    .name = "npz",
    .summary = "numpy arrays in a zip, compressed or not",
    .extensions = ".npz",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::npz = {
    .format = &formats::npz,
    .audit = audit,
};

}  // namespace tensordiff
