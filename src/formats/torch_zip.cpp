// What torch.save writes since 1.6: a zip, all of it in one folder.
//
//   <root>/data.pkl     the object, with tensors as references to storages
//   <root>/data/<key>   the bytes of each storage, not compressed
//   <root>/byteorder    "little" or "big"; little where it is missing
//
// TorchScript archives have the same data.pkl and storages, and code beside them that is not read.

#include "base/text.h"
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

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  return pickle::collect_tensors(TRY(pickle::read_torch_zip(file, input.limits)), input.limits);
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
  const bool swapped = TRY(is_big_endian(*archive, *root));

  const ByteSource& source = archive->find(*root + std::string(kPickleName))->source;
  if (source.size() > limits.pickle_bytes_max && !source.ready())
    return Error("data.pkl: {} to inflate, the limit is {}", human_bytes(source.size()),
                 human_bytes(limits.pickle_bytes_max));
  const Bytes pickle = TRY(source.open().in("data.pkl"));
  Graph graph = TRY(read_pickle(pickle, 0, limits).in("data.pkl"));

  const auto find = [archive,
                     folder = *root + "/data/"](std::string_view key) -> Result<ByteSource> {
    const ZipMember* member = archive->find(folder + std::string(key));
    if (!member) return Error("storage '{}' is not in the file", printable(key));
    return member->source;
  };
  return TorchFile{std::move(graph), {find, swapped}, "data.pkl", archive->problems};
}

constinit const Format formats::torch_zip = {
    .name = "torch-zip",
    .summary = "PyTorch files (torch.save since 1.6), TorchScript archives",
    .extensions = ".pt .pth .bin",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
