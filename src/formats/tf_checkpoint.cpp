// TensorFlow checkpoints. Version 2 is an index, `p.index`, and data, `p.data-00000-of-00002` …;
// the index is a table (see table.cpp):
//
//   ""    BundleHeaderProto  1 shards  2 byte order (1: big)
//   name  BundleEntryProto   1 dtype  2 shape  3 shard  4 offset  5 bytes  6 masked crc32c  7
//   slices
//
// A variable that was stored in pieces has slices and no data; each piece has an entry of its own,
// whose key is the name and the piece in an encoding that sorts. Version 1 is one table with all in
// it: "" says which tensors there are, and each other entry is a piece of one.
//
//   SavedTensorSlices  1 meta: 1 tensors: 1 name  2 shape  3 type
//                      2 data: 1 name  2 slice  3 TensorProto
//   TensorSliceProto   1 axes: 1 start  2 length, or none of both for all of it

#include <map>

#include "base/text.h"
#include "formats/checksum.h"
#include "formats/format.h"
#include "formats/protobuf.h"
#include "formats/table.h"
#include "formats/tf_slices.h"
#include "formats/tf_tensor.h"

namespace tensordiff {
namespace {

using tf::Slice;

constexpr uint64_t kShardsMax = 100'000;
constexpr std::string_view kObjectGraph = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr std::string_view kValueOf = "/.ATTRIBUTES/VARIABLE_VALUE";

struct Entry {
  uint64_t type = 0, shard = 0, offset = 0, bytes = 0;
  Shape shape;
  std::optional<uint32_t> checksum;
  std::vector<Slice> slices;
};

Result<Entry> read_entry(ByteView message) {
  Entry entry;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->is_varint(1)) entry.type = field->value;
    if (field->is_bytes(2)) entry.shape = TRY(tf::read_shape(field->bytes));
    if (field->is_varint(3)) entry.shard = field->value;
    if (field->is_varint(4)) entry.offset = field->value;
    if (field->is_varint(5)) entry.bytes = field->value;
    if (field->is(6, ProtoField::Wire::fixed32))
      entry.checksum = static_cast<uint32_t>(field->value);
    if (field->is_bytes(7)) entry.slices.push_back(TRY(tf::read_slice(field->bytes)));
  }
  TRY(reader.finish());
  return entry;
}

std::string shown_name(std::string_view name) {
  if (name.ends_with(kValueOf)) name.remove_suffix(kValueOf.size());
  return std::string(name);
}

std::string stem_of(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  if (path.ends_with(".index")) path.remove_suffix(6);
  return std::string(path);
}

class Bundle {
 public:
  Bundle(const Input& input, std::vector<TableEntry> table)
      : input_(input), table_(std::move(table)) {
    for (const TableEntry& entry : table_) by_key_.emplace(entry.key, &entry);
  }

  Result<Catalog> read() {
    TRY(read_header());
    for (const TableEntry& entry : table_) {
      if (entry.key.empty() || entry.key[0] == '\0' || entry.key == kObjectGraph) continue;
      const std::string where = fmt::format("'{}'", printable(entry.key));
      add(entry.key, TRY(read_entry(entry.value.view).in(where)));
    }
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

 private:
  Result<void> read_header() {
    shards_ = 0;
    ProtoReader reader(table_[0].value.view);
    while (const auto field = reader.next()) {
      if (field->is_varint(1)) shards_ = field->value;
      if (field->is_varint(2)) swapped_ = field->value == 1;
    }
    TRY(reader.finish().in("header"));
    if (shards_ > kShardsMax) return Error("{} data files, the limit is {}", shards_, kShardsMax);
    return {};
  }

  void add(const std::string& name, const Entry& entry) {
    if (entry.type == tf::kString) {
      catalog_.metadata.push_back(
          {shown_name(name), fmt::format("{} strings, crc32c {:08x}", shape_text(entry.shape),
                                         entry.checksum.value_or(0))});
      return;
    }
    Result<View> view = entry.slices.empty() ? whole(entry) : from_slices(name, entry);
    if (!view.ok()) {
      catalog_.tensors.push_back(broken_tensor(shown_name(name), view.error().message()));
      return;
    }
    Tensor tensor;
    tensor.name = shown_name(name);
    tensor.view = std::move(view).value();
    tensor.view.swapped = swapped_ && item_bytes(tensor.view.dtype) > 1;
    catalog_.tensors.push_back(std::move(tensor));
  }

  Result<View> whole(const Entry& entry) {
    const DType dtype = TRY(tf::dtype_of(entry.type));
    return contiguous_view(dtype, entry.shape, TRY(data_of(dtype, entry, entry.shape)));
  }

  Result<View> from_slices(std::string_view name, const Entry& entry) {
    const DType dtype = TRY(tf::dtype_of(entry.type));
    std::vector<Part> parts;
    for (const Slice& slice : entry.slices) {
      Part part = TRY(tf::place_part(slice, entry.shape));
      const auto found = by_key_.find(tf::key_of(name, slice));
      if (found == by_key_.end())
        return Error("its piece {} at {} is not in the index", shape_text(part.shape),
                     shape_text(part.origin));
      const Entry piece = TRY(read_entry(found->second->value.view));
      part.source = TRY(data_of(dtype, piece, part.shape));
      parts.push_back(std::move(part));
    }
    return tf::joined(dtype, entry.shape, std::move(parts));
  }

  // The bytes of an entry. Their checksum is taken when they are first read.
  Result<ByteSource> data_of(DType dtype, const Entry& entry, const Shape& shape) {
    const std::optional<uint64_t> elements = element_count(shape);
    if (!elements) return Error("shape {} has more than 2^40 elements", shape_text(shape));
    if (const uint64_t needed = stored_bytes(dtype, *elements); entry.bytes != needed)
      return Error("{} bytes stored, but its shape needs {}", entry.bytes, needed);
    const ByteSource file = TRY(shard(entry.shard));
    if (!range_fits(entry.offset, entry.bytes, file.size()))
      return Error("{} bytes at {} lie outside the {} bytes of its data file", entry.bytes,
                   entry.offset, file.size());
    const ByteSource data = file.slice(entry.offset, entry.bytes);
    if (!entry.checksum) return data;
    return ByteSource(entry.bytes, [data, sum = *entry.checksum]() -> Result<Bytes> {
      const Bytes bytes = TRY(data.open());
      if (masked(crc32c(bytes.view)) != sum) return Error("its checksum does not match");
      return bytes;
    });
  }

  Result<ByteSource> shard(uint64_t number) {
    if (number >= shards_) return Error("it is in data file {} of {}", number + 1, shards_);
    const auto known = files_.find(number);
    if (known != files_.end()) return known->second;
    if (!input_.sibling) return Error("its data file is missing");
    const std::string name =
        fmt::format("{}.data-{:05}-of-{:05}", stem_of(input_.name), number, shards_);
    ByteSource file = TRY(input_.sibling(name));
    files_.emplace(number, file);
    return file;
  }

  const Input& input_;
  std::vector<TableEntry> table_;
  std::map<std::string_view, const TableEntry*> by_key_;
  std::map<uint64_t, ByteSource> files_;
  uint64_t shards_ = 0;
  bool swapped_ = false;
  Catalog catalog_;
};

class FirstVersion {
 public:
  explicit FirstVersion(std::vector<TableEntry> table) : table_(std::move(table)) {}

  Result<Catalog> read() {
    for (const TableEntry& entry : table_) TRY(read_saved(entry.value));
    Catalog catalog;
    for (Variable& variable : variables_) {
      Result<View> view = view_of(variable);
      if (view.ok())
        catalog.tensors.push_back({variable.name, std::move(view).value(), ""});
      else
        catalog.tensors.push_back(broken_tensor(variable.name, view.error().message()));
    }
    make_names_unique(catalog);
    return catalog;
  }

 private:
  struct Variable {
    std::string name;
    uint64_t type = 0;
    Result<Shape> shape = Shape{};
    std::vector<Part> parts = {};
    std::string fault = {};
  };

  Result<void> read_saved(const Bytes& value) {
    ProtoReader reader(value.view);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) TRY(read_meta(field->bytes));
      if (field->is_bytes(2)) TRY(read_piece(field->bytes, value));
    }
    return reader.finish();
  }

  Result<void> read_meta(ByteView message) {
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (!field->is_bytes(1)) continue;
      Variable variable;
      ProtoReader tensor(field->bytes);
      while (const auto part = tensor.next()) {
        if (part->is_bytes(1)) variable.name = part->text();
        if (part->is_bytes(2)) variable.shape = tf::read_shape(part->bytes);
        if (part->is_varint(3)) variable.type = part->value;
      }
      TRY(tensor.finish());
      by_name_.emplace(variable.name, variables_.size());
      variables_.push_back(std::move(variable));
    }
    return reader.finish();
  }

  Result<void> read_piece(ByteView message, const Bytes& value) {
    std::string name;
    Slice slice;
    ByteView tensor;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) name = field->text();
      if (field->is_bytes(2)) slice = TRY(tf::read_slice(field->bytes));
      if (field->is_bytes(3)) tensor = field->bytes;
    }
    TRY(reader.finish());
    const auto found = by_name_.find(name);
    if (found == by_name_.end())
      return Error("a piece of '{}', which is not listed", printable(name));
    Variable& variable = variables_[found->second];
    Result<Part> part = part_of_variable(variable, slice, tensor, value);
    if (part.ok())
      variable.parts.push_back(std::move(part).value());
    else if (variable.fault.empty())
      variable.fault = part.error().message();
    return {};
  }

  static Result<Part> part_of_variable(const Variable& variable, const Slice& slice,
                                       ByteView tensor, const Bytes& value) {
    const Shape shape = TRY(Result<Shape>(variable.shape));
    Part part = TRY(tf::place_part(slice, shape));
    tf::TensorValue stored = TRY(tf::read_tensor(tensor, ByteSource(value), value,
                                                 tf::KnownTensor{variable.type, part.shape}));
    const View view = TRY(std::move(stored.view));
    if (const DType listed = TRY(tf::dtype_of(variable.type)); view.dtype != listed)
      return Error("it is listed as {} and stored as {}", name_of(listed), name_of(view.dtype));
    part.strides = view.parts[0].strides;
    part.source = view.parts[0].source;
    return part;
  }

  static Result<View> view_of(const Variable& variable) {
    if (!variable.fault.empty()) return Error("{}", variable.fault);
    const DType dtype = TRY(tf::dtype_of(variable.type));
    return tf::joined(dtype, TRY(Result<Shape>(variable.shape)), variable.parts);
  }

  std::vector<TableEntry> table_;
  std::vector<Variable> variables_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

// The header of version 2 is made of numbers, that of version 1 of a message.
bool is_first_version(const TableEntry& header) {
  ProtoReader reader(header.value.view);
  const auto field = reader.next();
  return field && field->is_bytes(1);
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  std::vector<TableEntry> table = TRY(read_table(file, input.limits));
  if (table.empty() || !table[0].key.empty()) return Error("a table, but not of a checkpoint");
  if (is_first_version(table[0])) return FirstVersion(std::move(table)).read();
  return Bundle(input, std::move(table)).read();
}

}  // namespace

constinit const Format formats::tf_checkpoint = {
    .name = "tf-checkpoint",
    .summary = "TensorFlow checkpoints, by their index; version 1 too",
    .extensions = ".index .ckpt",
    .recognises = is_table,
    .open = open,
};

}  // namespace tensordiff
