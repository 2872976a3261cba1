#include "formats/onnx_tables.h"

#include <algorithm>
#include <set>

#include "formats/limits.h"
#include "formats/sqlite.h"

namespace tensordiff::onnx {
namespace {

// What is wrong with one value spoils its own tensor.
Result<void> add(const Input& input, const ByteSource& value, const std::string& name,
                 OpenTensor open_tensor, Catalog& catalog) {
  if (catalog.tensors.size() >= input.limits.tensors_max)
    return limit_hit("tensors", fmt::format("more than {} tensors", input.limits.tensors_max));
  Input inside = input;
  inside.source = value;
  inside.sibling = nullptr;
  Result<Catalog> tensor = open_tensor(inside);
  if (!tensor.ok()) {
    catalog.tensors.push_back(broken_tensor(name, tensor.error().message()));
    return {};
  }
  for (Tensor& each : tensor.value().tensors) {
    each.name = name;
    catalog.tensors.push_back(std::move(each));
  }
  return {};
}

}  // namespace

Result<Catalog> open_tables(const Input& input, OpenTensor open_tensor) {
  const Bytes file = TRY(input.source.open());
  const SqliteFile database = TRY(SqliteFile::open(file));
  const SqliteTable table = TRY(database.table("Tensors").in("not a dump of ONNX Runtime"));
  const std::size_t step = table.column("step"), name = table.column("name");
  const std::size_t value = table.column("value");
  if (std::max(name, value) == SIZE_MAX)
    return Error("not a dump of ONNX Runtime: table Tensors has no columns Name and Value");
  std::set<int64_t> steps;
  TRY(database.each_row(table, [&](const SqliteRow& row) -> Result<void> {
    steps.insert(row.integer(step).value_or(0));
    return {};
  }));
  Catalog catalog;
  catalog.format = formats::onnx.name;
  const auto take = [&](const SqliteRow& row) -> Result<void> {
    std::string called = TRY(row.text(name));
    if (called.size() > input.limits.name_bytes_max) return Error("a name is too long");
    if (steps.size() > 1)
      called = fmt::format("iteration_{}/{}", row.integer(step).value_or(0), called);
    if (!row.is_blob(value)) return {};  // A tensor that was not on the host.
    return add(input, row.blob(value), called, open_tensor, catalog);
  };
  TRY(database.each_row(table, take));
  if (catalog.tensors.empty()) return Error("no tensors in it");
  make_names_unique(catalog);
  return catalog;
}

}  // namespace tensordiff::onnx
