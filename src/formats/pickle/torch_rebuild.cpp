// The torch half of Rebuilder: storages, strides, and the variants of torch._utils._rebuild_*.

#include <algorithm>

#include "base/text.h"
#include "formats/pickle/derived.h"
#include "formats/pickle/rebuild.h"

namespace tensordiff::pickle {
namespace {

// How far calls may nest in each other's arguments: a parameter of a subclass of a tensor.
constexpr int kCallDepthMax = 8;

}  // namespace

Meaning Rebuilder::meaning(NodeId call) const {
  const Call* made = graph_.call(call);
  return made ? data_name(graph_.global(made->callee)).meaning : Meaning::unknown;
}

Result<Rebuilder::Args> Rebuilder::arguments(NodeId call, std::size_t count_min) const {
  const NodeId args = graph_.call(call)->args;
  const Args items = graph_.items(args);
  if (graph_.kind(args) != Kind::tuple || items.size() < count_min)
    return Error("'{}' has too few arguments", graph_.global(graph_.call(call)->callee));
  return items;
}

Result<std::vector<int64_t>> Rebuilder::integers(NodeId sequence) const {
  if (meaning(sequence) == Meaning::sequence) sequence = TRY(arguments(sequence, 1))[0];
  const Kind kind = graph_.kind(sequence);
  if (kind != Kind::tuple && kind != Kind::list) return Error("sizes that are not a list or tuple");
  const Args items = graph_.items(sequence);
  if (items.size() > kRankMax) return Error("{} axes, at most {} are read", items.size(), kRankMax);
  std::vector<int64_t> numbers;
  for (const NodeId item : items) {
    const std::optional<int64_t> number = graph_.integer(item);
    if (!number) return Error("a size that is not a number");
    numbers.push_back(*number);
  }
  return numbers;
}

Result<Shape> Rebuilder::shape(NodeId sequence) const {
  Shape shape;
  for (const int64_t size : TRY(integers(sequence))) {
    if (size < 0) return Error("negative size {}", size);
    shape.push_back(static_cast<uint64_t>(size));
  }
  return shape;
}

Result<Rebuilder::Nested*> Rebuilder::nested(NodeId call) {
  const NodeId content = TRY(arguments(call, 1).in("torch file in a pickle"))[0];
  if (const auto known = nested_.find(content); known != nested_.end()) {
    if (!known->second.ok()) return known->second.error();
    return &known->second.value();
  }
  const auto read = [&]() -> Result<Nested> {
    if (depth_ >= kNestedFilesMax) return Error("torch files nested in each other too deep");
    const Bytes file = TRY(bytes(content));
    return Nested{TRY(read_torch_file(file, limits_)), nullptr};
  };
  Result<Nested>& made =
      nested_.emplace(content, read().in("torch file in a pickle")).first->second;
  if (!made.ok()) return made.error();
  Nested& inner = made.value();
  inner.rebuilder =
      std::make_unique<Rebuilder>(inner.file.graph, inner.file.storages, limits_, depth_ + 1);
  return &inner;
}

Result<Rebuilder::Storage> Rebuilder::storage(NodeId id) {
  if (meaning(id) == Meaning::load_from_bytes) {
    Nested* inner = TRY(nested(id));
    return inner->rebuilder->storage(inner->file.graph.root);
  }
  const StorageId described = TRY(read_storage_id(graph_, id, storages_.plain_ids));
  const StorageId& first = described_.emplace(described.key, described).first->second;
  if (first.type != described.type || first.count != described.count)
    return Error("storage '{}' is described in two ways", printable(described.key));
  if (!storages_.find) return Error("the file has no storages");

  ByteSource bytes = TRY(storages_.find(described.key));
  const uint64_t item = described.item_bytes();
  const std::optional<uint64_t> needed = checked_mul(described.count, item);
  if (!needed || *needed != bytes.size())
    return Error("storage '{}' has {} bytes, but {} elements of {} bytes are said to be in it",
                 printable(described.key), bytes.size(), described.count, item);
  bytes = bytes.slice(described.view_offset * item, described.view_count * item);
  return Storage{std::move(bytes), described.type->dtype, described.type->quantized,
                 storages_.swapped};
}

Result<View> Rebuilder::whole_storage(NodeId id) {
  const Storage stored = TRY(storage(id));
  const DType type = stored.dtype.value_or(DType::u8);
  View view = TRY(contiguous_view(type, {stored.bytes.size() / item_bytes(type)}, stored.bytes));
  view.swapped = stored.swapped;
  return view;
}

Result<Rebuilder::Layout> Rebuilder::layout(Args args) const {
  const std::optional<int64_t> offset = graph_.integer(args[1]);
  if (!offset || *offset < 0) return Error("a storage offset that is not a count");
  // One TRY to a statement: in the middle of a braced list it would leak the members before it.
  Shape size = TRY(shape(args[2]));
  Strides strides = TRY(integers(args[3]));
  return Layout{std::move(size), std::move(strides), static_cast<uint64_t>(*offset)};
}

Result<DType> Rebuilder::dtype(NodeId global) const {
  const std::string_view name = graph_.global(global);
  const DataName& row = data_name(name);
  if (row.meaning != Meaning::dtype || !row.dtype)
    return Error("element type '{}' is not supported", printable(name));
  return *row.dtype;
}

// storage, offset, size, stride; `type` where the storage does not know it.
Result<View> Rebuilder::strided(Args args, std::optional<DType> type) {
  const Storage stored = TRY(storage(args[0]));
  if (!type) type = stored.dtype;
  if (!type) return Error("a storage without element type");
  Layout where = TRY(layout(args));
  View view = TRY(strided_view(*type, std::move(where.shape), std::move(where.strides),
                               where.offset, stored.bytes));
  view.swapped = stored.swapped && item_bytes(*type) > 1;
  return view;
}

// The last argument may be a dict of flags: {'conj': True, 'neg': True}.
Result<View> Rebuilder::adjusted(View view, Args args, std::size_t metadata) const {
  if (args.size() <= metadata) return view;
  const auto flag = [&](std::string_view name) {
    const std::optional<NodeId> value = graph_.find(args[metadata], name);
    return value && graph_.integer(*value).value_or(0) != 0;
  };
  const bool conjugate = flag("conj") && is_complex(view.dtype);
  const bool negative = flag("neg");
  if (!conjugate && !negative) return view;
  return flipped(std::move(view), conjugate, negative);
}

// A tensor of before torch 0.4: the class is called without arguments, and then given a state of
// (storage, offset, size, stride) or, for a Variable, (data, ...) of five.
Result<View> Rebuilder::from_state(NodeId call, int depth) {
  const Call& made = *graph_.call(call);
  if (!made.state) return tensor(TRY(arguments(call, 1))[0], depth + 1);
  const Args state = graph_.items(*made.state);
  if (graph_.kind(*made.state) == Kind::tuple && state.size() == 4) return strided(state, {});
  if (graph_.kind(*made.state) == Kind::tuple && state.size() == 5)
    return tensor(state[0], depth + 1);
  return Error("a tensor whose state is not known");
}

Result<View> Rebuilder::quantized(Args args, int depth) {
  View stored = TRY(strided(args, {}));
  const Args parameters = graph_.items(args[4]);
  if (graph_.kind(args[4]) != Kind::tuple || parameters.size() < 3)
    return Error("a quantized tensor without scale");
  const std::string_view scheme = graph_.global(parameters[0]);
  if (scheme == "torch.per_tensor_affine") {
    const std::optional<double> scale = graph_.number(parameters[1]);
    const std::optional<double> zero_point = graph_.number(parameters[2]);
    if (!scale || !zero_point) return Error("a scale that is not a number");
    return dequantized(std::move(stored), *scale, *zero_point);
  }
  if (!scheme.starts_with("torch.per_channel_affine") || parameters.size() < 4)
    return Error("quantization scheme '{}' is not supported", printable(scheme));
  const std::optional<int64_t> axis = graph_.integer(parameters[3]);
  if (!axis || *axis < 0 || static_cast<std::size_t>(*axis) >= stored.shape.size())
    return Error("a quantization axis that the tensor does not have");
  View scales = TRY(tensor(parameters[1], depth + 1));
  View zero_points = TRY(tensor(parameters[2], depth + 1));
  ChannelScales channels{std::move(scales), std::move(zero_points),
                         static_cast<std::size_t>(*axis)};
  return dequantized(std::move(stored), std::move(channels));
}

// layout, (indices, values, size, ...) or (starts, others, values, size).
Result<View> Rebuilder::sparse(Args args, int depth) {
  std::string_view name = graph_.global(args[0]);
  if (meaning(args[0]) == Meaning::layout)
    name = graph_.string(TRY(arguments(args[0], 1))[0]).value_or("");
  const Args parts = graph_.items(args[1]);
  if (graph_.kind(args[1]) != Kind::tuple || parts.size() < 3)
    return Error("a sparse tensor without its parts");
  if (name == "torch.sparse_coo") {
    View indices = TRY(tensor(parts[0], depth + 1));
    View values = TRY(tensor(parts[1], depth + 1));
    Shape size = TRY(shape(parts[2]));
    return sparse_coo(std::move(indices), std::move(values), std::move(size), limits_);
  }
  const bool rows = name == "torch.sparse_csr" || name == "torch.sparse_bsr";
  const bool columns = name == "torch.sparse_csc" || name == "torch.sparse_bsc";
  if ((!rows && !columns) || parts.size() < 4)
    return Error("sparse layout '{}' is not supported", printable(name));
  View starts = TRY(tensor(parts[0], depth + 1));
  View others = TRY(tensor(parts[1], depth + 1));
  View values = TRY(tensor(parts[2], depth + 1));
  Shape size = TRY(shape(parts[3]));
  Compressed compressed{std::move(starts), std::move(others), std::move(values), columns};
  return sparse_compressed(std::move(compressed), std::move(size), limits_);
}

// function, type, its arguments, state: the same call with a subclass put on top.
Result<View> Rebuilder::from_type(Args args, int depth) {
  if (graph_.kind(args[2]) != Kind::tuple) return Error("a tensor subclass without arguments");
  const DataName& function = data_name(graph_.global(args[0]));
  return rebuild(function.meaning, graph_.items(args[2]), depth + 1);
}

Result<View> Rebuilder::rebuild(Meaning function, Args args, int depth) {
  const auto need = [&](std::size_t count) { return args.size() >= count; };
  const Error few("a tensor with too few arguments");
  switch (function) {
    case Meaning::rebuild_tensor:
      if (!need(4)) return few;
      return adjusted(TRY(strided(args, {})), args, 6);
    case Meaning::rebuild_tensor_v3: {
      if (!need(7)) return few;
      const DType type = TRY(dtype(args[6]));
      return adjusted(TRY(strided(args, type)), args, 7);
    }
    case Meaning::rebuild_parameter:
    case Meaning::rebuild_from_numpy:
    case Meaning::rebuild_from_tensor:
      return need(1) ? tensor(args[0], depth + 1) : few;
    case Meaning::rebuild_quantized:
      return need(5) ? quantized(args, depth) : few;
    case Meaning::rebuild_sparse:
      return need(2) ? sparse(args, depth) : few;
    case Meaning::rebuild_from_type:
      return need(3) ? from_type(args, depth) : few;
    case Meaning::rebuild_nested:
      return Error("nested tensors are not supported");
    case Meaning::rebuild_meta:
      return Error("a tensor on the meta device, which has no values");
    case Meaning::rebuild_wrapper:
      return Error("a wrapper without values of its own");
    default:
      return Error("not a tensor");
  }
}

bool Rebuilder::is_tensor_id(NodeId id) const {
  return storages_.tensor && graph_.kind(id) == Kind::persistent &&
         graph_.string(graph_.items(id)[0]).has_value();
}

Result<View> Rebuilder::tensor(NodeId id, int depth) {
  if (depth > kCallDepthMax) return Error("calls nested in each other too deep");
  if (is_tensor_id(id)) return storages_.tensor(*graph_.string(graph_.items(id)[0]));
  switch (const Meaning function = meaning(id)) {
    case Meaning::tensor_class:
      return from_state(id, depth);
    case Meaning::array:
      return array(id);
    case Meaning::array_from_buffer:
      return array_from_buffer(id);
    case Meaning::array_scalar:
      return array_scalar(id);
    case Meaning::unknown:
      return Error("not a tensor");
    default:
      return rebuild(function, TRY(arguments(id, 1)), depth);
  }
}

}  // namespace tensordiff::pickle
