// Feeds arbitrary bytes to every format, and reads the first elements of what they find there.
// Nothing may crash, hang or run out of memory; any Result is fine.

#include <algorithm>
#include <vector>

#include "formats/format.h"
#include "tensor/reader.h"

namespace {

using namespace tensordiff;

constexpr uint64_t kElementsRead = 4096;

// Small enough that no honest refusal takes long or looks like a leak.
Limits small_limits() {
  Limits limits;
  limits.pickle_bytes_max = 1 << 20;
  limits.json_bytes_max = 1 << 20;
  limits.header_bytes_max = 1 << 20;
  limits.members_max = 1000;
  limits.tensors_max = 1000;
  limits.expanded_bytes_max = 16 << 20;
  return limits;
}

Result<ByteSource> no_sibling(std::string_view name) { return Error("no file '{}' here", name); }

void read_elements(const Catalog& catalog) {
  std::vector<double> values(2 * kElementsRead);  // Complex elements give two each.
  for (const Tensor& tensor : catalog.tensors) {
    if (!tensor.fault.empty()) continue;
    const Result<Reader> reader = Reader::open(tensor.view);
    if (!reader.ok()) continue;
    const uint64_t elements = tensor.elements();
    const uint64_t count = std::min(elements, kElementsRead);
    reader.value().values(0, count, values.data());
    reader.value().values(elements - count, count, values.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  const Input input = {.name = "fuzz",
                       .source = ByteSource(bytes_of(std::move(file))),
                       .limits = small_limits(),
                       .depth = 0,
                       .sibling = no_sibling};
  for (const Format* format : formats::kAll) {
    const Result<Catalog> catalog = format->open(input);
    if (catalog.ok()) read_elements(catalog.value());
  }
  return 0;
}
