// What torch.save writes since 1.6: a zip, all of it in one folder.
//
//   <root>/data.pkl     the object, with tensors as references to storages
//   <root>/data/<key>   the bytes of each storage, not compressed
//   <root>/byteorder    "little" or "big"; little where it is missing
//
// TorchScript archives have the same data.pkl and storages, more tensors in <root>/constants.pkl
// with storages of their own in <root>/constants/, and code beside them that is not read.

#include "base/text.h"
#include "formats/audit.h"
#include "formats/limits.h"
#include "formats/pickle/code.h"
#include "formats/pickle/machine.h"
#include "formats/pickle/torch_file.h"
#include "formats/pickle/walk.h"
#include "formats/zip_archive.h"

namespace tensordiff {
namespace {

constexpr std::string_view kPickleName = "/data.pkl";

// The folder of the one data.pkl; nothing where there is none or more than one.
std::optional<std::string> root_of(const ZipArchive& archive) {
  std::optional<std::string> root;
  for (const ZipMember& member : archive.members) {
    const std::size_t slash = member.name.find('/');
    if (slash == std::string::npos || member.name.substr(slash) != kPickleName) continue;
    if (root) return std::nullopt;
    root = member.name.substr(0, slash);
  }
  return root;
}

Result<bool> is_big_endian(const ZipArchive& archive, const std::string& root) {
  const ZipMember* member = archive.find(root + "/byteorder");
  if (!member) return false;
  if (member->source.size() > 16) return Error("byteorder: neither little nor big");
  const Bytes order = TRY(member->source.open().in("byteorder"));
  if (as_text(order.view) == "big") return true;
  if (as_text(order.view) == "little") return false;
  return Error("byteorder: '{}' is neither little nor big", printable(as_text(order.view)));
}

bool recognises(const Bytes& file) { return pickle::is_torch_zip(file); }

using SharedArchive = std::shared_ptr<const ZipArchive>;

// One pickle of the archive, and the folder of its storages: "data" of "data.pkl".
Result<pickle::TorchFile> read_part(const SharedArchive& archive, const std::string& root,
                                    const std::string& part, const Limits& limits) {
  const std::string name = part + ".pkl";
  const bool swapped = TRY(is_big_endian(*archive, root));
  const ByteSource& source = archive->find(root + "/" + name)->source;
  if (source.size() > limits.pickle_bytes_max && !source.ready())
    return limit_hit("pickle",
                     fmt::format("{}: {} to inflate are more than {}", name,
                                 human_bytes(source.size()), human_bytes(limits.pickle_bytes_max)));
  const Bytes pickle = TRY(source.open().in(name));
  pickle::Graph graph = TRY(pickle::read_pickle(pickle, 0, limits).in(name));
  pickle::UsedKeys used = std::make_shared<pickle::UsedKeys::element_type>();
  const auto find = [archive, used,
                     folder = root + "/" + part + "/"](std::string_view key) -> Result<ByteSource> {
    used->emplace(key);
    const ZipMember* member = archive->find(folder + std::string(key));
    if (!member) return Error("storage '{}' is not in the file", printable(key));
    return member->source;
  };
  pickle::TorchFile torch{std::move(graph), {find, swapped}, name, {}, used};
  torch.scripted = archive->find(root + "/constants.pkl") != nullptr;
  return torch;
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  pickle::TorchFile main = TRY(pickle::read_torch_zip(file, input.limits));
  const bool scripted = main.scripted;
  Catalog catalog = pickle::collect_tensors(std::move(main), input.limits);
  if (!scripted) return catalog;

  const auto archive = std::make_shared<const ZipArchive>(TRY(read_zip(file, input.limits)));
  pickle::TorchFile part = TRY(read_part(archive, *root_of(*archive), "constants", input.limits));
  Catalog constants = pickle::collect_tensors(std::move(part), input.limits);
  for (Tensor& tensor : constants.tensors) {
    tensor.name = "constants." + tensor.name;
    catalog.tensors.push_back(std::move(tensor));
  }
  for (Problem& problem : constants.problems) catalog.problems.push_back(std::move(problem));
  make_names_unique(catalog);
  return catalog;
}

// Storages that no tensor uses, and code in pickles that were not read.
void report_unused(const SharedArchive& archive, const std::string& root, const Limits& limits,
                   std::vector<Problem>& problems) {
  Result<pickle::TorchFile> file = read_part(archive, root, "data", limits);
  const pickle::UsedKeys used = file.ok() ? file.value().used : nullptr;
  if (file.ok()) pickle::collect_tensors(std::move(file).value(), limits);
  const std::string storages = root + "/data/";
  for (const ZipMember& member : archive->members) {
    const std::string below = member.name.substr(root.size() + 1);
    const bool is_read = (below == "data.pkl" && used) || below == "constants.pkl";
    if (used && member.name.starts_with(storages) &&
        !used->contains(member.name.substr(storages.size())))
      problems.push_back(
          {member.name, fmt::format("its {} bytes belong to no tensor", member.source.size())});
    if (!below.ends_with(".pkl") || is_read || member.source.size() > limits.pickle_bytes_max)
      continue;
    if (const Result<Bytes> bytes = member.source.open(); bytes.ok())
      for (Problem& found : pickle::code_in(bytes.value(), 0, limits, below))
        problems.push_back(std::move(found));
  }
}

std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  if (!file.ok()) return {};
  std::vector<Problem> problems = audit_zip(file.value(), input.limits);
  Result<ZipArchive> archive = read_zip(file.value(), input.limits);
  if (!archive.ok()) return problems;
  const auto shared = std::make_shared<const ZipArchive>(std::move(archive).value());
  if (const std::optional<std::string> root = root_of(*shared))
    report_unused(shared, *root, input.limits, problems);
  return problems;
}

}  // namespace

bool pickle::is_torch_zip(const Bytes& file) {
  if (!as_text(file.view).starts_with("PK")) return false;
  const Result<ZipArchive> archive = read_zip(file, Limits());
  return archive.ok() && root_of(archive.value());
}

Result<pickle::TorchFile> pickle::read_torch_zip(const Bytes& file, const Limits& limits) {
  const auto archive = std::make_shared<const ZipArchive>(TRY(read_zip(file, limits)));
  const std::optional<std::string> root = root_of(*archive);
  if (!root) return Error("a zip without exactly one data.pkl in a folder");
  TorchFile torch = TRY(read_part(archive, *root, "data", limits));
  torch.problems = archive->problems;
  return torch;
}

constinit const Format formats::torch_zip = {
    .name = "torch-zip",
    .summary = "PyTorch files (torch.save since 1.6), TorchScript archives",
    .extensions = ".pt .pth .bin .ckpt .ptl",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::torch_zip = {
    .format = &formats::torch_zip,
    .audit = audit,
};

}  // namespace tensordiff
