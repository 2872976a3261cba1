// npy: one numpy array.
//
//   "\x93NUMPY" major minor, header size (u16; u32 from version 2 on), a Python dict as text, data
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }
//
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

#include <algorithm>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/audit.h"
#include "formats/format.h"
#include "formats/limits.h"
#include "formats/pickle/code.h"
#include "formats/pickle/machine.h"
#include "formats/pickle/walk.h"
#include "formats/python_literal.h"

namespace tensordiff {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  DType dtype;
  bool swapped;
  bool raw_bits;  // Elements of no type that numpy knows, read as unsigned integers.
  bool objects;   // Python's objects: a pickle follows, and nothing else here counts.
  bool fortran_order;
  Shape shape;
};

bool recognises(const Bytes& file) { return as_text(file.view).starts_with(kMagic); }

// Types by kind and size as numpy spells them, without the byte order.
constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"b1", DType::boolean},
    {"i1", DType::i8},
    {"i2", DType::i16},
    {"i4", DType::i32},
    {"i8", DType::i64},
    {"u1", DType::u8},
    {"u2", DType::u16},
    {"u4", DType::u32},
    {"u8", DType::u64},
    {"f2", DType::f16},
    {"f4", DType::f32},
    {"f8", DType::f64},
    {"c8", DType::c64},
    {"c16", DType::c128},
    // Types that come from elsewhere (bfloat16, float8) lose their name in an npy file.
    {"V1", DType::u8},
    {"V2", DType::u16},
    {"V4", DType::u32},
    {"V8", DType::u64},
};

Error refused_type(std::string_view descr, char kind) {
  const std::string text = printable(descr, 40);
  switch (kind) {
    case 'S':
    case 'a':
    case 'U':
      return Error("text array ('{}'), which is not read", text);
    case 'm':
    case 'M':
      return Error("array of times ('{}'), which is not read", text);
    case 'f':
    case 'c':
      return Error("array of long double ('{}'), whose layout differs between machines", text);
    default:
      return Error("unknown element type '{}'", text);
  }
}

Error refused_fields(const PythonLiteral::Sequence& fields) {
  std::string names;
  for (const PythonLiteral& field : fields.items) {
    const auto* pair = field.as<PythonLiteral::Sequence>();
    const auto* name = pair && !pair->items.empty() ? pair->items[0].as<std::string>() : nullptr;
    if (name) names += (names.empty() ? "'" : ", '") + printable(*name, 40) + "'";
  }
  return Error("structured array with the fields {}, which is not read", printable(names, 200));
}

Result<void> parse_descr(const PythonLiteral& literal, Header& header) {
  if (const auto* fields = literal.as<PythonLiteral::Sequence>()) return refused_fields(*fields);
  const std::string* descr = literal.as<std::string>();
  if (!descr) return Error("its 'descr' is not an element type");
  std::string_view type = *descr;
  char order = '|';
  if (!type.empty() && std::string_view("<>|=").find(type[0]) != std::string_view::npos) {
    order = type[0];
    type.remove_prefix(1);
  }
  header.objects = type == "O";
  if (header.objects) return {};
  const auto* known = std::ranges::find(kTypes, type, [](const auto& row) { return row.first; });
  if (known == std::end(kTypes)) return refused_type(*descr, type.empty() ? '\0' : type[0]);
  header.dtype = known->second;
  header.swapped = order == '>' && item_bytes(header.dtype) > 1;
  header.raw_bits = type[0] == 'V';
  return {};
}

Result<Header> parse_header(std::string_view text) {
  const PythonLiteral dict = TRY(parse_python_literal(text));
  const auto* entries = dict.as<PythonLiteral::Dict>();
  const PythonLiteral* descr = dict.find("descr");
  const PythonLiteral* fortran_order = dict.find("fortran_order");
  const PythonLiteral* shape = dict.find("shape");
  if (!entries || entries->keys.size() != 3 || !descr || !fortran_order || !shape)
    return Error("not just 'descr', 'fortran_order' and 'shape'");
  const bool* fortran = fortran_order->as<bool>();
  const auto* sizes = shape->as<PythonLiteral::Sequence>();
  if (!fortran) return Error("its 'fortran_order' is neither True nor False");
  if (!sizes) return Error("its 'shape' is not a tuple");

  Header header = {};
  TRY(parse_descr(*descr, header));
  header.fortran_order = *fortran;
  for (const PythonLiteral& item : sizes->items) {
    const int64_t* size = item.as<int64_t>();
    if (!size || *size < 0) return Error("its 'shape' has a size that is not a whole number");
    header.shape.push_back(static_cast<uint64_t>(*size));
  }
  return header;
}

// Column-major: the strides of the reversed shape, reversed. The extents are the same.
void transpose(View& view) {
  Shape reversed = view.shape;
  std::ranges::reverse(reversed);
  Strides strides = contiguous_strides(reversed);
  std::ranges::reverse(strides);
  view.parts[0].strides = std::move(strides);
}

// An array of objects is a pickle behind the header: read as one, and never run.
Result<Catalog> open_objects(const Input& input, const Bytes& file, uint64_t begin) {
  pickle::Graph graph = TRY(pickle::read_pickle(file, begin, input.limits).in("object array"));
  const uint64_t end = graph.end;
  pickle::TorchFile objects{std::move(graph), {}, "object array", {}};
  Catalog catalog = pickle::collect_tensors(std::move(objects), input.limits);
  if (end != file.size())
    catalog.problems.push_back({"", fmt::format("{} bytes follow the array", file.size() - end)});
  return catalog;
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  ByteCursor cursor(file.view);
  if (as_text(cursor.take(kMagic.size())) != kMagic) return Error("no numpy signature");
  const unsigned major = cursor.u8();
  const unsigned minor = cursor.u8();
  if (cursor.ok() && (major < 1 || major > 3))
    return Error("version {}.{} of the npy format, which is not read", major, minor);
  const uint64_t header_bytes = major == 1 ? cursor.u16() : cursor.u32();
  if (header_bytes > input.limits.npy_header_bytes_max)
    return limit_hit("npy-header", fmt::format("a header of {} bytes is longer than {}",
                                               header_bytes, input.limits.npy_header_bytes_max));
  const ByteView text = cursor.take(header_bytes);
  if (!cursor.ok()) return Error("the header is longer than the file");
  const Header header = TRY(parse_header(as_text(text)).in("header"));

  if (header.objects) return open_objects(input, file, cursor.position());

  const ByteSource data = input.source.slice(cursor.position(), cursor.remaining());
  Catalog catalog;
  Tensor tensor;
  tensor.view = TRY(contiguous_view(header.dtype, header.shape, data));
  tensor.view.swapped = header.swapped;
  if (header.fortran_order) transpose(tensor.view);
  if (const uint64_t surplus = data.size() - tensor.bytes(); surplus > 0)
    catalog.problems.push_back({"", fmt::format("{} bytes follow the array", surplus)});
  if (header.raw_bits)
    catalog.problems.push_back({"", fmt::format("its element type has no name in the file: read "
                                                "as {}",
                                                name_of(header.dtype))});
  catalog.tensors.push_back(std::move(tensor));
  return catalog;
}

// Code in an array of objects that is refused.
std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  if (!file.ok() || open(input).ok()) return {};
  const std::size_t begin = as_text(file.value().view).find('\n');
  if (begin == std::string_view::npos) return {};
  return pickle::code_in(file.value(), begin + 1, input.limits, "object array");
}

}  // namespace

constinit const Format formats::npy = {
    .name = "npy",
    .summary = "numpy array",
    .extensions = ".npy",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::npy = {
    .format = &formats::npy,
    .audit = audit,
};

}  // namespace tensordiff
