// npz: a zip of npy files, each named as its array. Zips of npy files in folders are dumps, not
// npz.

#include <algorithm>

#include "formats/zip_archive.h"

namespace tensordiff {
namespace {

constexpr std::string_view kEnding = ".npy";

bool is_array(const ZipMember& member) {
  return member.name.ends_with(kEnding) && member.name.find('/') == std::string::npos;
}

bool recognises(const Bytes& file) {
  if (!as_text(file.view).starts_with("PK\3\4")) return false;
  const Result<ZipArchive> zip = read_zip(file, {});
  return zip.ok() && !zip.value().members.empty() &&
         std::ranges::all_of(zip.value().members, is_array);
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
  array.value().tensors[0].name = name;
  catalog.tensors.push_back(std::move(array.value().tensors[0]));
  for (const Problem& problem : array.value().problems)
    catalog.problems.push_back({member.name, problem.message});
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  ZipArchive zip = TRY(read_zip(file, input.limits));
  Catalog catalog;
  catalog.problems = std::move(zip.problems);
  for (const ZipMember& member : zip.members) {
    if (member.name.ends_with(kEnding)) {
      open_array(member, input, catalog);
    } else {
      catalog.problems.push_back({member.name, "not an npy file: left out"});
    }
  }
  if (catalog.tensors.empty()) return Error("no npy file in it");
  make_names_unique(catalog);
  return catalog;
}

}  // namespace

constinit const Format formats::npz = {
    .name = "npz",
    .summary = "numpy arrays in a zip, compressed or not",
    .extensions = ".npz",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
