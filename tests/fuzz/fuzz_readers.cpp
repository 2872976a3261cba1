// Feeds arbitrary bytes to every reader, or to the one that TENSORDIFF_READER names, reads what
// opens and audits it. Nothing may crash or hang; any Result is fine.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "formats/audit.h"
#include "formats/folder.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kElementsMax = 64 << 10;  // Of each tensor.

void read_elements(const Tensor& tensor) {
  if (!tensor.fault.empty()) return;
  const Result<Reader> reader = Reader::open(tensor.view);
  if (!reader.ok()) return;
  const uint64_t count = std::min(tensor.elements(), kElementsMax);
  std::vector<double> values(2 * count);  // Complex elements give two each.
  reader.value().values(0, count, values.data());
}

// All, or the one that was asked for. A name that is none would fuzz nothing and find nothing.
bool is_wanted(std::string_view format) {
  static const std::string wanted = [] {
    const char* name = std::getenv("TENSORDIFF_READER");
    const std::string reader = name ? name : "";
    bool known = reader.empty();
    for (const Format* each : formats::kAll) known = known || each->name == reader;
    for (const FolderFormat* each : folders::kAll) known = known || each->name == reader;
    if (known) return reader;
    std::fprintf(stderr, "no reader '%s'\n", reader.c_str());
    std::exit(2);
  }();
  return wanted.empty() || format == wanted;
}

void read_catalog(const Result<Catalog>& catalog) {
  if (!catalog.ok()) return;
  for (const Tensor& tensor : catalog.value().tensors) read_elements(tensor);
}

// The files of a folder, one behind the other in one input: the path of each stands between two
// lines of "@@".
Folder folder_in(std::string_view data, const Limits& limits) {
  constexpr std::string_view kMark = "\n@@\n";
  const auto take = [&] {
    const std::size_t end = std::min(data.find(kMark), data.size());
    const std::string_view part = data.substr(0, end);
    data.remove_prefix(std::min(end + kMark.size(), data.size()));
    return std::string(part);
  };
  Folder folder{"fuzz/", {}, limits};
  while (!data.empty()) {
    const std::string path = take();
    folder.files[path] = ByteSource(bytes_of(take()));
  }
  return folder;
}

}  // namespace
}  // namespace tensordiff

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tensordiff;
  Input input;
  input.name = "fuzz";
  input.source = ByteSource(bytes_of({reinterpret_cast<const char*>(data), size}));
  input.limits.expanded_bytes_max = 16 << 20;  // Keeps one input quick.
  input.limits.dense_bytes_max = 1 << 20;
  for (const Format* format : formats::kAll) {
    if (!is_wanted(format->name)) continue;
    audit_input(input, format->name);
    read_catalog(format->open(input));
  }
  for (const FolderFormat* format : folders::kAll) {
    if (!is_wanted(format->name)) continue;
    const Folder folder = folder_in({reinterpret_cast<const char*>(data), size}, input.limits);
    const auto starts = [&](const auto& file) { return format->starts(file.first); };
    if (std::ranges::any_of(folder.files, starts)) read_catalog(format->open(folder));
  }
  return 0;
}
