// bitsandbytes in four bits: two levels in a byte, the first in the high half, that point into a
// table of 16 values; a block of levels shares its largest value.
//
//   X.weight u8 [elements / 2, 1]        X.weight.quant_map f32 [16]
//   X.weight.absmax [blocks]             X.weight.quant_state.bitsandbytes__nf4 (or __fp4), JSON:
//                                        shape, blocksize, nested_blocksize, nested_offset
//
// Where the largest values are packed too, they are levels of 8 bits in blocks of their own:
// nested_quant_map[absmax] * nested_absmax + nested_offset. Integers of 8 bits are in scaled.cpp.

#include <limits>

#include "base/json.h"
#include "base/text.h"
#include "packed/packed.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

constexpr uint64_t kStateBytesMax = 64 << 10;  // Some 200 are usual.
constexpr std::string_view kTypes[] = {"nf4", "fp4"};

struct State {
  Shape shape;
  uint64_t block = 0;
  uint64_t nested_block = 0;
  double nested_offset = 0;
};

Result<State> read_state(const Tensor& tensor) {
  if (tensor.view.dtype != DType::u8 || !tensor.view.contiguous() ||
      tensor.elements() > kStateBytesMax)
    return Error("its quant_state is not a text of at most {} bytes", kStateBytesMax);
  const Reader reader = TRY(Reader::open(tensor.view));
  std::vector<std::byte> buffer;
  const std::byte* bytes = reader.raw(0, tensor.elements(), buffer);
  const Json json = TRY(Json::parse(as_text({bytes, tensor.elements()})).in("quant_state"));
  State state;
  for (const Json& size : json["shape"].array()) {
    if (!size.u64()) return Error("its quant_state has a shape of something else than sizes");
    state.shape.push_back(*size.u64());
  }
  state.block = json["blocksize"].u64().value_or(0);
  state.nested_block = json["nested_blocksize"].u64().value_or(0);
  state.nested_offset = json["nested_offset"].number().value_or(0);
  if (state.block == 0 || !element_count(state.shape))
    return Error("its quant_state has no blocksize or no possible shape");
  return state;
}

uint64_t blocks_of(uint64_t size, uint64_t block) { return (size + block - 1) / block; }

// Value `level` of a table; NaN beyond its end.
double in_table(Window& table, double level, uint64_t size) {
  const auto at = static_cast<uint64_t>(level);
  return at < size ? table.at(at) : std::numeric_limits<double>::quiet_NaN();
}

// The largest values of all blocks, unpacked where they are.
Result<View> largest_of(const Siblings& siblings, const State& state,
                        std::vector<const Tensor*>& with) {
  const std::string& name = siblings.tensor().name;
  const Tensor* absmax = siblings.named(name + ".absmax");
  const uint64_t blocks = blocks_of(*element_count(state.shape), state.block);
  if (!absmax || absmax->elements() != blocks)
    return Error("{} largest values for {} blocks", absmax ? absmax->elements() : 0, blocks);
  with.push_back(absmax);
  if (is_float(absmax->view.dtype)) return absmax->view;
  const Tensor* nested = siblings.named(name + ".nested_absmax");
  const Tensor* table = siblings.named(name + ".nested_quant_map");
  if (!nested || !table || state.nested_block == 0 ||
      nested->elements() != blocks_of(blocks, state.nested_block))
    return Error("its largest values are packed, and what they share does not fit");
  with.insert(with.end(), {nested, table});
  Packed packed{{absmax->view, nested->view, table->view}, {}};
  packed.decode = [state](std::span<const Reader> in, uint64_t first, int64_t step,
                          std::size_t count, float* out) {
    Window level(in[0], step), largest(in[1], 0), values(in[2], 0);
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t at = first + i * static_cast<uint64_t>(step);
      const double value = in_table(values, level.at(at), in[2].view().elements());
      out[i] =
          static_cast<float>(value * largest.at(at / state.nested_block) + state.nested_offset);
    }
  };
  return packed_view(DType::int8_scaled, {blocks}, std::move(packed));
}

Result<std::optional<Unpacked>> unpack(const Siblings& siblings) {
  const Tensor& levels = siblings.tensor();
  if (item_bytes(levels.view.dtype) != 1 || !is_plain(levels.view.dtype))
    return std::optional<Unpacked>();
  const Tensor* stored = nullptr;
  std::string_view type;
  for (const std::string_view each : kTypes)
    if (const Tensor* found =
            siblings.named(fmt::format("{}.quant_state.bitsandbytes__{}", levels.name, each)))
      stored = found, type = each;
  const Tensor* table = siblings.named(levels.name + ".quant_map");
  if (!stored || !table) return std::optional<Unpacked>();
  const State state = TRY(read_state(*stored));
  const uint64_t elements = *element_count(state.shape);
  if (levels.elements() != (elements + 1) / 2 || table->elements() < 16)
    return Error("{} bytes for a shape of {}", levels.elements(), shape_text(state.shape));
  std::vector<const Tensor*> with{stored, table};
  View largest = TRY(largest_of(siblings, state, with));
  View words = levels.view;
  words.dtype = DType::u8;  // It may have been stored as another type of one byte.
  Packed packed{{std::move(words), std::move(largest), table->view}, {}};
  packed.decode = [block = state.block](std::span<const Reader> in, uint64_t first, int64_t step,
                                        std::size_t count, float* out) {
    Window bytes(in[0], step), scale(in[1], 0), values(in[2], 0);
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t at = first + i * static_cast<uint64_t>(step);
      const unsigned level = level_of(bytes.at(at / 2), at % 2 == 0 ? 1 : 0, 4);
      out[i] = static_cast<float>(values.at(level) * scale.at(at / block));
    }
  };
  const DType dtype = type == "nf4" ? DType::nf4 : DType::fp4;
  View view = TRY(packed_view(dtype, state.shape, std::move(packed)));
  return std::optional(Unpacked{std::move(view), levels.name,
                                fmt::format("{} (bitsandbytes, blocks of {})", type, state.block),
                                std::move(with)});
}

}  // namespace

constinit const Packing packings::bitsandbytes = {
    .name = "bitsandbytes",
    .summary = "bitsandbytes nf4 and fp4, with scales that are packed themselves or not",
    .unpack = unpack,
};

}  // namespace tensordiff
