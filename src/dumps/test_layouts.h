// For tests: catalogs of names, and what a layout reads from them.

#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "dumps/layout.h"
#include "tensor/test_views.h"

namespace tensordiff::test_layouts {

using Texts = std::vector<std::string>;

inline View integers_view(const std::vector<int64_t>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return contiguous_view(DType::i64, {values.size()}, ByteSource(bytes_of(bytes))).value();
}

inline Tensor integers(std::string name, uint64_t count) {
  return {std::move(name), integers_view(std::vector<int64_t>(count)), ""};
}

inline Catalog named(const Texts& names) {
  Catalog catalog;
  for (const std::string& name : names)
    catalog.tensors.push_back({name, noise_view({4, 8}, 1), ""});
  return catalog;
}

// "path output 1 pass 2 rank 3", and "fact" for what is no result.
inline std::string told(const Record& record) {
  std::string text = record.path;
  if (record.output >= 0) text += fmt::format(" output {}", record.output);
  if (record.pass != 0) text += fmt::format(" pass {}", record.pass);
  if (record.rank >= 0) text += fmt::format(" rank {}", record.rank);
  return text + (record.fact == RunFact::none ? "" : " fact");
}

inline Texts told(const Layout& layout, const Catalog& catalog) {
  Texts result;
  for (const Record& record : layout.read(catalog).records) result.push_back(told(record));
  return result;
}

inline const Layout* recognised(const Catalog& catalog) {
  for (const Layout* layout : layouts::kAll)
    if (layout->recognises(catalog)) return layout;
  return nullptr;
}

}  // namespace tensordiff::test_layouts
