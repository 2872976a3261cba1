// Feeds arbitrary bytes to every format, or to the one that TENSORDIFF_READER names, reads what
// opens and audits it. Nothing may crash or hang; any Result is fine.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "formats/audit.h"
#include "formats/format.h"
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
bool is_wanted(const Format& format) {
  static const std::string wanted = [] {
    const char* name = std::getenv("TENSORDIFF_READER");
    const std::string reader = name ? name : "";
    for (const Format* each : formats::kAll)
      if (reader.empty() || each->name == reader) return reader;
    std::fprintf(stderr, "no reader '%s'\n", reader.c_str());
    std::exit(2);
  }();
  return wanted.empty() || format.name == wanted;
}

}  // namespace
}  // namespace tensordiff

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tensordiff;
  Input input;
  input.name = "fuzz";
  input.source = ByteSource(bytes_of({reinterpret_cast<const char*>(data), size}));
  input.limits.expanded_bytes_max = 16 << 20;  // Keeps one input quick.
  for (const Format* format : formats::kAll) {
    if (!is_wanted(*format)) continue;
    audit_input(input, format->name);
    const Result<Catalog> catalog = format->open(input);
    if (!catalog.ok()) continue;
    for (const Tensor& tensor : catalog.value().tensors) read_elements(tensor);
  }
  return 0;
}
