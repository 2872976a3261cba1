#include "cli/hdf5_type.h"

namespace tensordiff::hdf5 {
namespace {

Result<bool> is_swapped(hid_t type) {
  switch (H5Tget_order(type)) {
    case H5T_ORDER_LE:
    case H5T_ORDER_NONE:
      return false;
    case H5T_ORDER_BE:
      return H5Tget_size(type) > 1;
    default:
      return Error("elements in an odd byte order");
  }
}

Result<Element> integer(hid_t type, bool is_signed) {
  const std::size_t size = H5Tget_size(type);
  if (H5Tget_precision(type) != size * 8 || H5Tget_offset(type) != 0)
    return Error("integers of {} bits in {} bytes", H5Tget_precision(type), size);
  constexpr std::pair<std::size_t, std::pair<DType, DType>> kTypes[] = {
      {1, {DType::u8, DType::i8}},
      {2, {DType::u16, DType::i16}},
      {4, {DType::u32, DType::i32}},
      {8, {DType::u64, DType::i64}},
  };
  const bool swapped = TRY(is_swapped(type));
  for (const auto& [bytes, types] : kTypes)
    if (bytes == size) return Element{is_signed ? types.second : types.first, swapped, {}};
  return Error("integers of {} bytes", size);
}

Result<Element> real(hid_t type) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, fraction = 0, fraction_bits = 0;
  H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits);
  struct Known {
    std::size_t bytes, exponent_bits, fraction_bits, bias;
    DType dtype;
  };
  constexpr Known kKnown[] = {
      {2, 5, 10, 15, DType::f16},
      {2, 8, 7, 127, DType::bf16},
      {4, 8, 23, 127, DType::f32},
      {8, 11, 52, 1023, DType::f64},
  };
  const bool swapped = TRY(is_swapped(type));
  for (const Known& known : kKnown)
    if (known.bytes == H5Tget_size(type) && known.exponent_bits == exponent_bits &&
        known.fraction_bits == fraction_bits && known.bias == H5Tget_ebias(type) && fraction == 0 &&
        exponent == fraction_bits && sign == fraction_bits + exponent_bits)
      return Element{known.dtype, swapped, {}};
  return Error("floats of {} bytes with {} bits of exponent and {} of fraction", H5Tget_size(type),
               exponent_bits, fraction_bits);
}

std::string member_name(hid_t type, unsigned member) {
  char* name = H5Tget_member_name(type, member);
  std::string text = name ? name : "";
  H5free_memory(name);
  return text;
}

// h5py keeps booleans as an enum of FALSE and TRUE; other enums are their numbers.
Result<Element> enumeration(hid_t type) {
  const Handle base(H5Tget_super(type), H5Tclose);
  Element element = TRY(element_of(base.id()));
  if (H5Tget_nmembers(type) == 2 && H5Tget_size(type) == 1 && member_name(type, 0) == "FALSE" &&
      member_name(type, 1) == "TRUE")
    element.dtype = DType::boolean;
  return element;
}

// Complex numbers: h5py's {r, i} and MATLAB's {real, imag}.
Result<Element> compound(hid_t type) {
  const Error other("compound elements, which are not read");
  if (H5Tget_nmembers(type) != 2) return other;
  const std::string first = member_name(type, 0), second = member_name(type, 1);
  if (!(first == "r" && second == "i") && !(first == "real" && second == "imag")) return other;
  const Handle re(H5Tget_member_type(type, 0), H5Tclose), im(H5Tget_member_type(type, 1), H5Tclose);
  if (!re.ok() || !im.ok() || H5Tequal(re.id(), im.id()) <= 0) return other;
  Element element = TRY(element_of(re.id()));
  const std::size_t half = H5Tget_size(re.id());
  if (H5Tget_size(type) != 2 * half || H5Tget_member_offset(type, 0) != 0 ||
      H5Tget_member_offset(type, 1) != half)
    return other;
  if (element.dtype == DType::f32)
    element.dtype = DType::c64;
  else if (element.dtype == DType::f64)
    element.dtype = DType::c128;
  else
    return other;
  return element;
}

Result<Element> array(hid_t type) {
  const Handle base(H5Tget_super(type), H5Tclose);
  Element element = TRY(element_of(base.id()));
  const int rank = H5Tget_array_ndims(type);
  if (rank < 0 || static_cast<std::size_t>(rank) > kRankMaxHdf5 || !element.inner.empty())
    return Error("elements that are arrays of arrays");
  hsize_t sizes[kRankMaxHdf5] = {};
  if (H5Tget_array_dims2(type, sizes) < 0) return Error("an array type without sizes");
  element.inner.assign(sizes, sizes + rank);
  return element;
}

}  // namespace

Result<Element> element_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return integer(type, H5Tget_sign(type) == H5T_SGN_2);
    case H5T_BITFIELD:
      return integer(type, false);
    case H5T_FLOAT:
      return real(type);
    case H5T_ENUM:
      return enumeration(type);
    case H5T_COMPOUND:
      return compound(type);
    case H5T_ARRAY:
      return array(type);
    case H5T_STRING:
      return Element{DType::u8, false, {}, true};
    case H5T_REFERENCE:
      return Error("references to other objects, which are not read");
    case H5T_VLEN:
      return Error("lists of various lengths, which are not read");
    case H5T_OPAQUE:
      return Error("opaque elements, which are not read");
    default:
      return Error("elements of a type that is not known");
  }
}

}  // namespace tensordiff::hdf5
