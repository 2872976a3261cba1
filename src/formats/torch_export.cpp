// torch.export.save (.pt2): a zip with the tensors as plain bytes and JSON that says what they are.
//
//   <root>/archive_format                               "pt2"
//   <root>/data/weights/<model>_weights_config.json     {"config": {name: {"path_name": "weight_0",
//   <root>/data/constants/<model>_constants_config.json   "use_pickle": false, "tensor_meta":
//   {...}}}} <root>/data/weights/weight_0                        a storage, or a torch file
//   (use_pickle)
//
// The graph of the program, models/<model>.json, is not read.

#include "base/json.h"
#include "base/text.h"
#include "formats/audit.h"
#include "formats/limits.h"
#include "formats/pickle/rebuild.h"
#include "formats/zip_archive.h"

namespace tensordiff {
namespace {

constexpr std::string_view kMark = "/archive_format", kConfig = "_config.json";

// By the number that the schema of torch.export gives each type.
std::optional<DType> dtype_numbered(int64_t number) {
  constexpr std::pair<int, DType> kTypes[] = {
      {1, DType::u8},           {2, DType::i8},           {3, DType::i16},
      {4, DType::i32},          {5, DType::i64},          {6, DType::f16},
      {7, DType::f32},          {8, DType::f64},          {10, DType::c64},
      {11, DType::c128},        {12, DType::boolean},     {13, DType::bf16},
      {28, DType::u16},         {29, DType::f8_e4m3},     {30, DType::f8_e5m2},
      {31, DType::f8_e4m3fnuz}, {32, DType::f8_e5m2fnuz},
  };
  for (const auto& [key, dtype] : kTypes)
    if (key == number) return dtype;
  return std::nullopt;
}

std::optional<std::string> root_of(const ZipArchive& archive) {
  for (const ZipMember& member : archive.members) {
    const std::size_t slash = member.name.find('/');
    if (slash == std::string::npos || member.name.substr(slash) != kMark) continue;
    if (member.source.size() > 16) continue;
    const Result<Bytes> mark = member.source.open();
    if (mark.ok() && as_text(mark.value().view) == "pt2") return member.name.substr(0, slash);
  }
  return std::nullopt;
}

Result<int64_t> integer_in(const Json& value) {
  const std::optional<int64_t> number = value["as_int"].i64();
  if (!number || *number < 0) return Error("a size that is not a number");
  return *number;
}

Result<View> raw_tensor(const Json& meta, const ByteSource& source) {
  const std::optional<int64_t> number = meta["dtype"].i64();
  const std::optional<DType> dtype = dtype_numbered(number.value_or(0));
  if (!dtype) return Error("element type {} of torch.export is not supported", number.value_or(0));
  Shape shape;
  Strides strides;
  for (const Json& size : meta["sizes"].array())
    shape.push_back(static_cast<uint64_t>(TRY(integer_in(size))));
  for (const Json& stride : meta["strides"].array()) strides.push_back(TRY(integer_in(stride)));
  const int64_t offset = TRY(integer_in(meta["storage_offset"]));
  return strided_view(*dtype, std::move(shape), std::move(strides), static_cast<uint64_t>(offset),
                      source);
}

Result<View> read_tensor(const Json& entry, const ByteSource& source, const Limits& limits) {
  if (!entry["use_pickle"].boolean().value_or(false))
    return raw_tensor(entry["tensor_meta"], source);
  const Bytes bytes = TRY(source.open());
  const pickle::TorchFile file = TRY(pickle::read_torch_file(bytes, limits));
  return pickle::Rebuilder(file.graph, file.storages, limits).tensor(file.graph.root);
}

Result<void> read_config(const ZipArchive& archive, const ZipMember& config, const Limits& limits,
                         Catalog& catalog) {
  if (config.source.size() > limits.json_bytes_max)
    return limit_hit("json", fmt::format("more than {}", human_bytes(limits.json_bytes_max)));
  const Bytes text = TRY(config.source.open());
  const Json root = TRY(Json::parse(as_text(text.view)));
  if (!root["config"].is_object()) return Error("no 'config' in it");
  const std::string folder = config.name.substr(0, config.name.rfind('/') + 1);
  for (const Json::Member& entry : root["config"].object()) {
    const std::string_view file = entry.value["path_name"].string();
    const ZipMember* member = archive.find(folder + std::string(file));
    Tensor tensor = broken_tensor(entry.key, "");
    if (member) {
      Result<View> view = read_tensor(entry.value, member->source, limits);
      if (view.ok()) tensor.view = std::move(view).value();
      if (!view.ok()) tensor.fault = view.error().message();
    } else {
      tensor.fault = fmt::format("'{}' is not in the file", printable(file));
    }
    catalog.tensors.push_back(std::move(tensor));
    if (catalog.tensors.size() > limits.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} tensors", limits.tensors_max));
  }
  return {};
}

bool recognises(const Bytes& file) {
  if (!as_text(file.view).starts_with("PK")) return false;
  const Result<ZipArchive> archive = read_zip(file, Limits());
  return archive.ok() && root_of(archive.value());
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  const ZipArchive archive = TRY(read_zip(file, input.limits));
  const std::optional<std::string> root = root_of(archive);
  if (!root) return Error("a zip without an archive_format of 'pt2'");
  const ZipMember* order = archive.find(*root + "/byteorder");
  if (order && order->source.size() != std::string_view("little").size())
    return Error("byteorder: only little-endian programs are read");
  Catalog catalog;
  catalog.problems = archive.problems;
  for (const ZipMember& member : archive.members)
    if (member.name.starts_with(*root + "/data/") && member.name.ends_with(kConfig))
      TRY(read_config(archive, member, input.limits, catalog).in(printable(member.name)));
  make_names_unique(catalog);
  return catalog;
}

std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  return file.ok() ? audit_zip(file.value(), input.limits) : std::vector<Problem>();
}

}  // namespace

constinit const Format formats::torch_export = {
    .name = "torch-export",
    .summary = "programs saved by torch.export: their weights and constants",
    .extensions = ".pt2",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::torch_export = {
    .format = &formats::torch_export,
    .audit = audit,
};

}  // namespace tensordiff
