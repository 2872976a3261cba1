// The numpy half of Rebuilder: arrays and scalars whose bytes lie in the pickle itself.

#include <algorithm>
#include <array>

#include "base/text.h"
#include "formats/pickle/rebuild.h"

namespace tensordiff::pickle {
namespace {

struct TypeCode {
  std::string_view code;
  DType dtype;
};

constexpr TypeCode kCodes[] = {
    {"f8", DType::f64}, {"f4", DType::f32},   {"f2", DType::f16},    {"i8", DType::i64},
    {"i4", DType::i32}, {"i2", DType::i16},   {"i1", DType::i8},     {"u8", DType::u64},
    {"u4", DType::u32}, {"u2", DType::u16},   {"u1", DType::u8},     {"b1", DType::boolean},
    {"c8", DType::c64}, {"c16", DType::c128}, {"?", DType::boolean},
};

// The bytes that stand for text of code points below 256.
Result<std::string> latin1_bytes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto lead = static_cast<uint8_t>(text[at]);
    if (lead < 0x80) {
      out += text[at];
      continue;
    }
    const auto next = at + 1 < text.size() ? static_cast<uint8_t>(text[at + 1]) : uint8_t{0};
    if ((lead != 0xc2 && lead != 0xc3) || (next & 0xc0) != 0x80)
      return Error("bytes written as text, with a character that is not a byte");
    out += static_cast<char>((lead & 3) << 6 | (next & 0x3f));
    ++at;
  }
  return out;
}

Strides fortran_strides(const Shape& shape) {
  Strides strides;
  int64_t step = 1;
  for (const uint64_t size : shape) {
    strides.push_back(step);
    step *= static_cast<int64_t>(std::max<uint64_t>(size, 1));
  }
  return strides;
}

}  // namespace

// The bytes that a node holds or that its call would give.
Result<Bytes> Rebuilder::bytes(NodeId id) {
  if (graph_.kind(id) == Kind::bytes) return copied(id, false);
  const Meaning function = meaning(id);
  if (function != Meaning::encode && function != Meaning::bytes)
    return Error("neither bytes nor a text that encodes them");
  const Args args = TRY(arguments(id, 0));
  if (args.empty() && function == Meaning::bytes) return bytes_of("");
  if (args.empty()) return Error("bytes written as text, without the text");
  if (graph_.kind(args[0]) == Kind::bytes) return copied(args[0], false);
  if (graph_.kind(args[0]) != Kind::text) {
    // A bytearray of bytes that protocol 2 wrote as text.
    if (function == Meaning::bytes && meaning(args[0]) == Meaning::encode) return bytes(args[0]);
    return Error("bytes written as text, without the text");
  }
  const std::string codec =
      args.size() > 1 ? lower(graph_.string(args[1]).value_or("")) : std::string("utf-8");
  if (codec != "latin1" && codec != "latin-1" && codec != "iso-8859-1")
    return Error("bytes written as text in '{}', not latin1", printable(codec));
  return copied(args[0], true);
}

// Bytes lie in the pickle and stay there. What does not is made once for each node, so that naming
// it often costs nothing.
Result<Bytes> Rebuilder::copied(NodeId id, bool latin1) {
  const std::string_view text = graph_.at(id).text;
  const std::string_view all = as_text(graph_.pickle().view);
  const bool inside = text.data() >= all.data() && text.data() <= all.data() + all.size();
  if (!latin1 && inside)
    return graph_.pickle().slice(static_cast<uint64_t>(text.data() - all.data()), text.size());
  if (const auto known = copied_.find(id); known != copied_.end()) return known->second;
  std::string content = latin1 ? TRY(latin1_bytes(text)) : std::string(text);
  return copied_.emplace(id, bytes_of(std::move(content))).first->second;
}

// "f4" of numpy.dtype('f4', False, True); empty where the type is not written so.
std::string_view Rebuilder::array_code(NodeId type) const {
  if (meaning(type) != Meaning::array_dtype) return {};
  const Args args = graph_.items(graph_.call(type)->args);
  return args.empty() ? std::string_view() : graph_.string(args[0]).value_or("");
}

Result<Rebuilder::ArrayType> Rebuilder::array_type(NodeId type) const {
  const Call* call = graph_.call(type);
  if (meaning(type) != Meaning::array_dtype) return Error("an array without element type");
  std::string_view order = "<";
  if (call->state) {
    const Args state = graph_.items(*call->state);
    if (graph_.kind(*call->state) != Kind::tuple || state.size() < 3)
      return Error("an element type whose state is not known");
    order = graph_.string(state[1]).value_or("<");
    if (state[2] != kNone) return Error("element types that are themselves arrays");
  }
  std::optional<DType> dtype = data_name(graph_.global(call->callee)).dtype;
  std::string_view code = array_code(type);
  if (code.starts_with('<') || code.starts_with('>') || code.starts_with('|')) {
    if (!call->state) order = code.substr(0, 1);
    code.remove_prefix(1);
  }
  for (const TypeCode& row : kCodes)
    if (!dtype && row.code == code) dtype = row.dtype;
  // A type of the ml_dtypes package is written by its class.
  const Args args = graph_.items(call->args);
  if (!dtype && !args.empty()) dtype = data_name(graph_.global(args[0])).dtype;
  if (!dtype) return Error("numpy type '{}' is not supported", printable(code));
  return ArrayType{*dtype, order == ">" && item_bytes(*dtype) > 1};
}

Result<View> Rebuilder::array_view(NodeId type, Shape shape, bool fortran, NodeId data) {
  const ArrayType element = TRY(array_type(type));
  const Bytes content = TRY(bytes(data));
  const std::optional<uint64_t> count = element_count(shape);
  if (!count || *count * item_bytes(element.dtype) != content.size())
    return Error("array of shape {} and type {} with {} bytes", shape_text(shape),
                 name_of(element.dtype), content.size());
  View view =
      fortran
          ? TRY(strided_view(element.dtype, shape, fortran_strides(shape), 0, ByteSource(content)))
          : TRY(contiguous_view(element.dtype, std::move(shape), ByteSource(content)));
  view.swapped = element.swapped;
  return view;
}

// (version, shape, type, is fortran, data) as state; very old ones have no version.
Result<View> Rebuilder::array(NodeId call) {
  const std::optional<NodeId> state = graph_.call(call)->state;
  if (!state || graph_.kind(*state) != Kind::tuple) return Error("an array without its state");
  Args fields = graph_.items(*state);
  if (fields.size() == 5) fields = fields.subspan(1);
  if (fields.size() != 4) return Error("an array whose state has {} fields", fields.size());
  const bool fortran = graph_.integer(fields[2]).value_or(0) != 0;
  return array_view(fields[1], TRY(shape(fields[0])), fortran, fields[3]);
}

Result<View> Rebuilder::array_from_buffer(NodeId call) {
  const Args args = TRY(arguments(call, 4));
  const bool fortran = graph_.string(args[3]) == "F";
  return array_view(args[1], TRY(shape(args[2])), fortran, args[0]);
}

Result<View> Rebuilder::array_scalar(NodeId call) {
  const Args args = TRY(arguments(call, 2));
  return array_view(args[0], {}, false, args[1]);
}

std::optional<NodeId> Rebuilder::array_objects(NodeId array) const {
  const std::optional<NodeId> state = graph_.call(array)->state;
  if (!state || graph_.items(*state).empty()) return std::nullopt;
  const NodeId data = graph_.items(*state).back();
  return graph_.kind(data) == Kind::list ? std::optional(data) : std::nullopt;
}

bool Rebuilder::is_text_array(NodeId array) const {
  const Call& call = *graph_.call(array);
  const NodeId holder = meaning(array) == Meaning::array ? call.state.value_or(kNone) : call.args;
  return std::ranges::any_of(graph_.items(holder), [&](NodeId field) {
    const std::string_view code = array_code(field);
    return code.starts_with('S') || code.starts_with('U');
  });
}

}  // namespace tensordiff::pickle
