// ONNX: a ModelProto, or a TensorProto by itself, in protobuf's wire format. It has no signature.
// Many TensorProtos may lie in tables of SQLite: see onnx_tables.h.
//
//   ModelProto      1 ir_version  2, 3 producer  7 graph  8 opset_import  14 metadata
//                   20 training_info  25 functions
//   GraphProto      1 nodes  5 initializers  15 sparse initializers
//   FunctionProto   1 name  7 nodes
//   NodeProto       1 inputs  2 outputs  3 name  4 op_type  5 attributes
//   AttributeProto  1 name  5 tensor  6 graph  10 tensors  11 graphs  22, 23 sparse tensors
//                   and for Constant nodes 2 float  3 int  7 floats  8 ints
//
// An initializer has its own name; what stands in an attribute is "node/attribute", and what stands
// in a subgraph has its node's before it. https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

#include <zlib.h>

#include <algorithm>

#include "base/text.h"
#include "formats/limits.h"
#include "formats/onnx_names.h"
#include "formats/onnx_tables.h"
#include "formats/onnx_tensor.h"
#include "formats/proto_elements.h"
#include "formats/sqlite.h"

namespace tensordiff {
namespace {

using onnx::TensorFields;

constexpr uint64_t kVersionMax = 20;
constexpr uint64_t kDataTypeMax = 26;

// What tells a message from others: the numbers and forms of its fields.
bool all_fields(ByteView message, bool (*known)(const ProtoField& field)) {
  ProtoReader reader(message);
  while (const auto field = reader.next())
    if (!known(*field)) return false;
  return reader.finish().ok();
}

bool is_graph_field(const ProtoField& field) {
  constexpr uint32_t kNumbers[] = {1, 2, 5, 10, 11, 12, 13, 14, 15, 16};
  return field.wire == ProtoField::Wire::bytes &&
         std::ranges::find(kNumbers, field.number) != std::end(kNumbers);
}

bool is_model(ByteView file) {
  bool version = false, graph = false;
  ProtoReader reader(file);
  while (const auto field = reader.next()) {
    if (field->is_varint(1)) version = field->value >= 1 && field->value <= kVersionMax;
    if (field->is_bytes(7)) graph = all_fields(field->bytes, is_graph_field);
    if (field->number == 7 && !graph) return false;
    if (field->number > 40) return false;
  }
  return reader.finish().ok() && version && graph;
}

bool is_tensor(ByteView file) {
  bool type = false, data = false;
  ProtoReader reader(file);
  while (const auto field = reader.next()) {
    if (field->is_varint(2)) type = field->value >= 1 && field->value <= kDataTypeMax;
    data |=
        (field->number >= 4 && field->number <= 13 && field->number != 8) || field->is_varint(1);
    if (field->number > 16 || (field->number == 2 && !type)) return false;
  }
  return reader.finish().ok() && type && data;
}

class Walk {
 public:
  Walk(const Input& input, const Bytes& file) : input_(input), file_(file), tensors_(input, file) {}

  Result<Catalog> model() {
    ProtoReader reader(file_.view);
    uint64_t version = 0, functions = 0, trainings = 0;
    bool opset = false;
    while (const auto field = reader.next()) {
      if (field->is_varint(1)) version = field->value;
      if (field->is_bytes(2)) note("producer_name", field->text());
      if (field->is_bytes(3)) note("producer_version", field->text());
      if (field->is_bytes(4)) note("domain", field->text());
      if (field->is_varint(5)) note("model_version", fmt::format("{}", field->value));
      if (field->is_bytes(7)) TRY(graph(field->bytes, "", 0));
      if (field->is_bytes(8)) opset = TRY(read_opset(field->bytes));
      if (field->is_bytes(14)) TRY(read_property(field->bytes));
      if (field->is_bytes(20)) TRY(training(field->bytes, trainings++));
      if (field->is_bytes(25)) TRY(function(field->bytes, functions++));
    }
    TRY(reader.finish());
    note("ir_version", fmt::format("{}", version));
    if (version >= 3 && !opset)
      catalog_.problems.push_back({"", "no opset_import: the file may be cut short"});
    make_names_unique(catalog_);
    readers_.name(catalog_);
    return std::move(catalog_);
  }

  Result<Catalog> lone_tensor() {
    TensorFields fields;
    TRY(fields.read(file_.view));
    if (fields.type == onnx::kString) {
      add_strings(fields.name.empty() ? "strings" : std::string(fields.name), fields);
      return std::move(catalog_);
    }
    Tensor tensor;
    tensor.name = fields.name;
    tensor.view = TRY(tensors_.view_of(fields));
    catalog_.tensors.push_back(std::move(tensor));
    return std::move(catalog_);
  }

 private:
  void note(std::string key, std::string_view value) {
    if (!value.empty()) catalog_.metadata.push_back({std::move(key), std::string(value)});
  }

  Result<void> add(std::string name, Result<View> view) {
    if (catalog_.tensors.size() >= input_.limits.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} tensors", input_.limits.tensors_max));
    Tensor tensor;
    if (view.ok())
      tensor.view = std::move(view).value();
    else
      tensor.fault = view.error().message();
    tensor.name = std::move(name);
    catalog_.tensors.push_back(std::move(tensor));
    return {};
  }

  // Strings are no numbers to compare: they are told apart by a checksum.
  void add_strings(std::string name, const TensorFields& fields) {
    uint32_t sum = 0;
    for (const std::string_view text : fields.strings)
      sum = static_cast<uint32_t>(
          crc32_z(sum, reinterpret_cast<const Bytef*>(text.data()), text.size()));
    note(std::move(name), fmt::format("{} strings, crc32 {:08x}", fields.strings.size(), sum));
  }

  Result<void> tensor(ByteView message, const std::string& prefix, std::string name) {
    TensorFields fields;
    TRY(fields.read(message).in("a tensor"));
    if (name.empty()) name = fields.name;
    if (fields.type == onnx::kString) return add_strings(prefix + name, fields), Result<void>();
    return add(prefix + name, tensors_.view_of(fields));
  }

  Result<void> sparse(ByteView message, const std::string& prefix, std::string name) {
    TensorFields values, indices;
    ProtoNumbers dims;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) TRY(values.read(field->bytes));
      if (field->is_bytes(2)) TRY(indices.read(field->bytes));
      if (field->number == 3) dims.add(*field);
    }
    TRY(reader.finish());
    if (name.empty()) name = values.name;
    const Shape shape = TRY(dims.varints(kRankMax).in("the shape of a sparse tensor"));
    return add(prefix + name, tensors_.sparse(values, indices, shape));
  }

  Result<void> graph(ByteView message, const std::string& prefix, int depth) {
    if (static_cast<uint64_t>(depth) > input_.limits.depth_max)
      return limit_hit("depth",
                       fmt::format("graphs nested more than {} deep", input_.limits.depth_max));
    ProtoReader reader(message);
    uint64_t nodes = 0;
    while (const auto field = reader.next()) {
      if (field->is_bytes(1) && prefix.empty()) readers_.add(field->bytes);
      if (field->is_bytes(1)) TRY(node(field->bytes, prefix, nodes++, depth));
      if (field->is_bytes(5)) TRY(tensor(field->bytes, prefix, ""));
      if (field->is_bytes(15)) TRY(sparse(field->bytes, prefix, ""));
    }
    return reader.finish().in("graph");
  }

  Result<void> node(ByteView message, const std::string& prefix, uint64_t number, int depth) {
    std::string_view name, output, type;
    std::vector<ByteView> attributes;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(2) && output.empty()) output = field->text();
      if (field->is_bytes(3)) name = field->text();
      if (field->is_bytes(4)) type = field->text();
      if (field->is_bytes(5)) attributes.push_back(field->bytes);
    }
    TRY(reader.finish().in("node"));
    std::string own(name.empty() ? output : name);
    if (own.empty()) own = fmt::format("{}_{}", type, number);
    for (const ByteView each : attributes)
      TRY(attribute(each, prefix + own + "/", type == "Constant", depth));
    return {};
  }

  Result<void> attribute(ByteView message, const std::string& prefix, bool constant, int depth) {
    std::string name;
    ProtoReader names(message);
    while (const auto field = names.next())
      if (field->is_bytes(1)) name = field->text();
    TRY(names.finish().in("attribute"));
    ProtoNumbers numbers[2];  // Floats and ints.
    bool scalar = false;
    uint64_t tensors = 0, graphs = 0;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      scalar |= field->number == 2 || field->number == 3;
      if (field->number == 2 || field->number == 7) numbers[0].add(*field);
      if (field->number == 3 || field->number == 8) numbers[1].add(*field);
      if (field->is_bytes(5)) TRY(tensor(field->bytes, prefix, name));
      if (field->is_bytes(10))
        TRY(tensor(field->bytes, prefix, fmt::format("{}.{}", name, tensors++)));
      if (field->is_bytes(6)) TRY(graph(field->bytes, prefix + name + "/", depth + 1));
      if (field->is_bytes(11))
        TRY(graph(field->bytes, fmt::format("{}{}.{}/", prefix, name, graphs++), depth + 1));
      if (field->is_bytes(22) || field->is_bytes(23)) TRY(sparse(field->bytes, prefix, name));
    }
    if (!constant) return {};
    if (name == "value_float" || name == "value_floats")
      return add(prefix + name, constants(DType::f32, numbers[0], scalar));
    if (name == "value_int" || name == "value_ints")
      return add(prefix + name, constants(DType::i64, numbers[1], scalar));
    return {};
  }

  Result<View> constants(DType dtype, const ProtoNumbers& numbers, bool scalar) const {
    const ProtoList list{numbers, input_.source, file_};
    const std::size_t item = item_bytes(dtype);
    const bool fixed = dtype == DType::f32;
    const uint64_t count = TRY(fixed ? list.count_fixed(item) : list.count_varints());
    if (scalar && count != 1) return Error("{} numbers where one is expected", count);
    const ByteSource data = fixed ? list.fixed() : TRY(list.varints(count, item));
    return contiguous_view(dtype, scalar ? Shape{} : Shape{count}, data);
  }

  Result<void> function(ByteView message, uint64_t number) {
    std::string prefix = fmt::format("function_{}/", number);
    ProtoReader names(message);
    while (const auto field = names.next())
      if (field->is_bytes(1)) prefix = std::string(field->text()) + "/";
    ProtoReader reader(message);
    uint64_t nodes = 0;
    while (const auto field = reader.next())
      if (field->is_bytes(7)) TRY(node(field->bytes, prefix, nodes++, 0));
    return reader.finish().in("function");
  }

  Result<void> training(ByteView message, uint64_t number) {
    ProtoReader reader(message);
    while (const auto field = reader.next())
      if (field->is_bytes(1) || field->is_bytes(2))
        TRY(graph(field->bytes,
                  fmt::format("training_{}.{}/", number,
                              field->number == 1 ? "initialization" : "algorithm"),
                  0));
    return reader.finish().in("training_info");
  }

  Result<bool> read_opset(ByteView message) {
    std::string_view domain;
    uint64_t version = 0;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) domain = field->text();
      if (field->is_varint(2)) version = field->value;
    }
    TRY(reader.finish().in("opset_import"));
    note(domain.empty() ? "opset" : fmt::format("opset.{}", domain), fmt::format("{}", version));
    return true;
  }

  Result<void> read_property(ByteView message) {
    std::string key;
    std::string_view value;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) key = field->text();
      if (field->is_bytes(2)) value = field->text();
    }
    TRY(reader.finish().in("metadata"));
    note("metadata." + key, value);
    return {};
  }

  const Input& input_;
  Bytes file_;
  onnx::TensorReader tensors_;
  onnx::Readers readers_;
  Catalog catalog_;
};

bool recognises(const Bytes& file) {
  return SqliteFile::recognises(file.view) || is_model(file.view) || is_tensor(file.view);
}

Result<Catalog> open_tensor(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!is_tensor(file.view)) return Error("no TensorProto");
  return Walk(input, file).lone_tensor();
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (SqliteFile::recognises(file.view)) return onnx::open_tables(input, open_tensor);
  if (is_tensor(file.view)) return Walk(input, file).lone_tensor();
  if (!is_model(file.view)) {
    TRY(Walk(input, file).model());  // Says what is malformed, where that is it.
    return Error("no model: an ir_version of 1 to {} and a graph are missing", kVersionMax);
  }
  return Walk(input, file).model();
}

}  // namespace

constinit const Format formats::onnx = {
    .name = "onnx",
    .summary = "ONNX models with external data beside them, and single tensors",
    .extensions = ".onnx .pb .db",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
