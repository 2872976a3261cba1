#include "formats/shared_bytes.h"

#include <gtest/gtest.h>

#include "formats/pickle/test_pickles.h"

namespace tensordiff {
namespace {

using namespace test_pickles;

std::string shared_in(const std::string& root) {
  const std::string file =
      torch_zip(root, {{"0", f32(1) + f32(2) + f32(3) + f32(4)}, {"1", f32(5)}});
  std::string out;
  const Result<Catalog> catalog = formats::torch_zip.open(input(file));
  if (!catalog.ok()) return "! " + catalog.error().message();
  for (const Problem& found : shared_bytes(catalog.value()))
    out += found.where + ": " + found.message + ";";
  return out;
}

TEST(SharedBytes, AreThoseOfTiedWeightsAndViews) {
  const std::string four = storage("FloatStorage", "0", 4);
  const std::string one = storage("FloatStorage", "1", 1);
  EXPECT_EQ(
      shared_in(dict({{"a", tensor({four, 0, {4}, {1}})}, {"b", tensor({one, 0, {1}, {1}})}})), "");
  EXPECT_EQ(shared_in(dict(
                {{"a", tensor({four, 0, {4}, {1}})}, {"b", tensor({four, 0, {2, 2}, {2, 1}})}})),
            "b: the same bytes as 'a';");
  EXPECT_EQ(
      shared_in(dict({{"a", tensor({four, 0, {3}, {1}})}, {"b", tensor({four, 2, {2}, {1}})}})),
      "b: shares bytes with 'a';");
  EXPECT_EQ(
      shared_in(dict({{"a", tensor({four, 0, {2}, {1}})}, {"b", tensor({four, 2, {2}, {1}})}})),
      "");
}

}  // namespace
}  // namespace tensordiff
