// Feeds arbitrary names to every layout of dumps. A line of the input is the name of a tensor; its
// first byte says what the tensor is. Nothing may crash or hang, and what is arranged can be read.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "dumps/layout.h"
#include "dumps/tokens.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTensorsMax = 64;
constexpr uint64_t kElementsMax = 4096;

View view_of(unsigned char kind) {
  static const Shape kShapes[] = {{4, 8},    {1, 4, 8},    {6, 8}, {4},
                                  {2, 4, 8}, {1, 2, 4, 4}, {},     {4, 2, 8}};
  const Shape& shape = kShapes[kind % 8];
  const DType dtype = (kind & 8U) != 0 ? DType::i64 : DType::f32;
  const uint64_t count = element_count(shape).value_or(0);
  std::string bytes(stored_bytes(dtype, count), '\0');
  for (std::size_t i = 0; i < bytes.size(); i += item_bytes(dtype))
    bytes[i] = static_cast<char>((kind & 16U) != 0 ? i / item_bytes(dtype) : 1);
  return contiguous_view(dtype, shape, ByteSource(bytes_of(std::move(bytes)))).value();
}

Catalog catalog_of(std::string_view data) {
  Catalog catalog;
  while (!data.empty() && catalog.tensors.size() < kTensorsMax) {
    const std::size_t end = std::min(data.find('\n'), data.size());
    const std::string_view line = data.substr(0, end);
    data.remove_prefix(std::min(end + 1, data.size()));
    if (line.empty()) continue;
    Tensor tensor;
    tensor.name = line.substr(1);
    tensor.view = view_of(static_cast<unsigned char>(line[0]));
    catalog.tensors.push_back(std::move(tensor));
  }
  make_names_unique(catalog);
  return catalog;
}

void read_all(const Catalog& catalog) {
  for (const Tensor& tensor : catalog.tensors) {
    const Result<Reader> reader = Reader::open(tensor.view);
    if (!reader.ok()) continue;
    const uint64_t count = std::min(tensor.elements(), kElementsMax);
    std::vector<double> values(count);
    reader.value().values(0, count, values.data());
  }
}

}  // namespace
}  // namespace tensordiff

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace tensordiff;
  const Catalog stored = catalog_of({reinterpret_cast<const char*>(data), size});
  for (const Layout* layout : layouts::kAll) {
    layout->recognises(stored);
    Catalog catalog = stored;
    if (!arrange(catalog, layout->name).ok()) continue;
    read_all(catalog);
    // The same dump with its first half of tensors gone, so that tokens differ.
    Catalog other = stored;
    other.tensors.resize(other.tensors.size() / 2);
    if (!arrange(other, layout->name).ok()) continue;
    std::vector<std::string> notes;
    line_up_tokens(catalog, other, notes);
    read_all(catalog);
    read_all(other);
  }
  return 0;
}
