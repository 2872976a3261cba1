#include "parts/parts.h"

#include <gtest/gtest.h>

#include "base/build_info.h"
#include "parts/fingerprint.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

NamedPartial part(uint64_t number, uint64_t of, char fingerprint = 'f') {
  NamedPartial part;
  part.name = fmt::format("p{}", number);
  part.partial.head = {kVersion, "avx2", {number, of}, std::string(32, fingerprint), {"a"}, {}};
  return part;
}

std::string fault_of(const std::vector<NamedPartial>& parts) {
  const Result<void> fit = check_parts(parts);
  return fit.ok() ? "none" : fit.error().message();
}

TEST(Parts, AreAllThereInAnyOrder) {
  EXPECT_EQ(fault_of({part(1, 1)}), "none");
  EXPECT_EQ(fault_of({part(3, 3), part(1, 3), part(2, 3)}), "none");
  EXPECT_EQ(fault_of({}), "needs partial results, which compare --part writes");
}

TEST(Parts, ThatAreMissingAreNamed) {
  EXPECT_EQ(fault_of({part(1, 3), part(3, 3)}),
            "part 2 of 3 is missing: run it again with --part 2/3");
  EXPECT_EQ(fault_of({part(2, 4)}), "parts 1, 3, 4 of 4 are missing: run it again with --part 1/4");
  EXPECT_EQ(fault_of({part(1, 100)}),
            "parts 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, … of "
            "100 are missing: run it again with --part 2/100");
}

TEST(Parts, ThatDoNotBelongAreNamed) {
  EXPECT_EQ(fault_of({part(1, 2), part(2, 2), part(2, 2)}),
            "p2: part 2 of 2, as is p2; pass only one of them");
  EXPECT_EQ(fault_of({part(1, 3), part(2, 3, 'x'), part(3, 3)}),
            "p2: part of another comparison: its inputs or options differ from the others");
  EXPECT_EQ(fault_of({part(1, 2), part(2, 3)}), "p1: part 1 of 2, but the others are parts of 3");
  std::vector<NamedPartial> old = {part(1, 1)};
  old[0].partial.head.version = "0.1.0";
  EXPECT_EQ(fault_of(old), fmt::format("p1: made by tensordiff 0.1.0, but this is {}", kVersion));
}

Pairing pairing_of(const View& a, const View& b) {
  Pairing pairing;
  pairing.a.tensors.push_back({"w", a, ""});
  pairing.b.tensors.push_back({"w", b, ""});
  pairing.matching.pairs.push_back({0, 0, std::nullopt, ""});
  return pairing;
}

TEST(Fingerprint, TellsInputsAndOptionsApart) {
  const View a = noise_view({100, 10}, 1), b = noise_view({100, 10}, 2);
  const std::string same = fingerprint_of(pairing_of(a, b), {});
  EXPECT_EQ(same.size(), 32U);
  EXPECT_EQ(fingerprint_of(pairing_of(noise_view({100, 10}, 1), b), {}), same);
  EXPECT_NE(fingerprint_of(pairing_of(a, a), {}), same) << "values";
  EXPECT_NE(fingerprint_of(pairing_of(a, noise_view({10, 100}, 2)), {}), same) << "shape";
  const std::vector<GivenOption> options = {{"atol", "1"}};
  EXPECT_NE(fingerprint_of(pairing_of(a, b), options), same);
  Pairing renamed = pairing_of(a, b);
  renamed.b.tensors[0].name = "v";
  EXPECT_NE(fingerprint_of(renamed, {}), same);
  Pairing section = pairing_of(a, b);
  section.matching.pairs[0].section_a = Section{"q", {500, 500}, 0};
  EXPECT_NE(fingerprint_of(section, {}), same);
}

}  // namespace
}  // namespace tensordiff
