// Quantised tensors: integers q that stand for (q - zero point) * scale.

#include <cstring>
#include <memory>

#include "formats/pickle/derived.h"
#include "tensor/reader.h"

namespace tensordiff::pickle {
namespace {

// A longer axis than this, a view that repeats a few elements without end, is an attack.
constexpr uint64_t kChannelsMax = 1ULL << 27;

// As torch does it: the difference is exact, the product that of two f32.
float value_of(double q, double scale, double zero_point) {
  return static_cast<float>(q - zero_point) * static_cast<float>(scale);
}

Result<std::vector<double>> all_values(const View& view) {
  const Reader reader = TRY(Reader::open(view));
  std::vector<double> values(view.elements());
  if (!values.empty()) reader.values(0, values.size(), values.data());
  return values;
}

Result<void> check_stored(const View& stored) {
  if (!is_integer(stored.dtype)) return Error("a quantized tensor of {}", name_of(stored.dtype));
  return {};
}

}  // namespace

Result<View> dequantized(View stored, double scale, double zero_point) {
  TRY(check_stored(stored));
  const Shape shape = stored.shape;
  const auto open = [stored = std::move(stored), scale, zero_point]() -> Result<Fill> {
    const auto reader = std::make_shared<const Reader>(TRY(Reader::open(stored)));
    return Fill([=](uint64_t first, std::size_t count, std::byte* out) {
      std::vector<double> q(count);
      reader->values(first, count, q.data());
      for (std::size_t i = 0; i < count; ++i) {
        const float value = value_of(q[i], scale, zero_point);
        std::memcpy(out + i * sizeof value, &value, sizeof value);
      }
    });
  };
  return made_in_order(DType::f32, shape, open);
}

Result<View> dequantized(View stored, ChannelScales channels) {
  TRY(check_stored(stored));
  const Shape shape = stored.shape;
  const uint64_t size = shape[channels.axis];
  for (const View* each : {&channels.scales, &channels.zero_points})
    if (each->elements() != size || is_complex(each->dtype))
      return Error("{} scales and {} zero points for an axis of {}", channels.scales.elements(),
                   channels.zero_points.elements(), size);
  if (size > kChannelsMax) return Error("more than {} scales", kChannelsMax);

  uint64_t inner = 1;  // Elements between one index of the axis and the next.
  for (std::size_t axis = channels.axis + 1; axis < shape.size(); ++axis) inner *= shape[axis];
  const auto open = [stored = std::move(stored), channels, inner, size]() -> Result<Fill> {
    const auto reader = std::make_shared<const Reader>(TRY(Reader::open(stored)));
    const std::vector<double> scales = TRY(all_values(channels.scales));
    const std::vector<double> zero_points = TRY(all_values(channels.zero_points));
    return Fill([=](uint64_t first, std::size_t count, std::byte* out) {
      std::vector<double> q(count);
      reader->values(first, count, q.data());
      for (std::size_t i = 0; i < count; ++i) {
        const uint64_t channel = (first + i) / inner % size;
        const float value = value_of(q[i], scales[channel], zero_points[channel]);
        std::memcpy(out + i * sizeof value, &value, sizeof value);
      }
    });
  };
  return made_in_order(DType::f32, shape, open);
}

}  // namespace tensordiff::pickle
