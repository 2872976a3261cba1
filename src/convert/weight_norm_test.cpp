// Direction and length as one weight.

#include <gtest/gtest.h>

#include <cmath>

#include "convert/test_merges.h"

namespace tensordiff {
namespace {

// g · v / |v|, where the length is that of all but one axis.
View with_length(const View& v, const View& g, std::size_t axis) {
  std::vector<float> values = values_of(v);
  uint64_t inner = 1;
  for (std::size_t i = axis + 1; i < v.shape.size(); ++i) inner *= v.shape[i];
  std::vector<double> squares(v.shape[axis]);
  const auto entry = [&](std::size_t i) { return i / inner % v.shape[axis]; };
  for (std::size_t i = 0; i < values.size(); ++i) squares[entry(i)] += values[i] * values[i];
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] *= values_of(g)[entry(i)] / static_cast<float>(std::sqrt(squares[entry(i)]));
  return f32_view(v.shape, values);
}

TEST(Merge, OfDirectionAndLengthTakesTheAxisOfTheLength) {
  for (const bool is_new : {false, true})
    for (const std::size_t axis : {std::size_t{0}, std::size_t{2}}) {
      std::vector<Tensor> a, b;
      for (int i = 0; i < 3; ++i) {
        const auto seed = static_cast<unsigned>(200 + 10 * i);
        const View v = noise_view({6, 4, 6}, seed);
        const Shape shape = axis == 0 ? Shape{6, 1, 1} : Shape{1, 1, 6};
        const View g = positive(noise_view(shape, seed + 1));
        const std::string path = "layers." + std::to_string(i) + ".";
        a.push_back(tensor(path + (is_new ? "parametrizations.weight.original0" : "weight_g"), g));
        a.push_back(tensor(path + (is_new ? "parametrizations.weight.original1" : "weight_v"), v));
        b.push_back(tensor(path + "weight", with_length(v, g, axis)));
      }
      const Inferred found = infer(catalog_of(a), catalog_of(b));
      EXPECT_EQ(found.rules(), std::vector<std::string>{"weight norm of A merged: 3"});
      b[1].view = a[3].view;  // The direction alone.
      const Inferred mistaken = infer(catalog_of(a), catalog_of(b));
      EXPECT_EQ(mistaken.conversion.exceptions.size(), 1U);
    }
}

}  // namespace
}  // namespace tensordiff
