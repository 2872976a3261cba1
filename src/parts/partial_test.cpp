#include "parts/partial.h"

#include <gtest/gtest.h>

#include "base/sha256.h"

namespace tensordiff {
namespace {

Partial sample() {
  Partial partial;
  partial.head = {"0.2.0", "avx2", {2, 3}, std::string(32, 'f'), {"a.pt", "b.pt"}, {{"atol", "1"}}};
  Piece piece;
  piece.chunks = 4, piece.first = 2, piece.end = 4;
  piece.totals.resize(2);
  piece.totals[0].sums.d_abs = 0.1;
  piece.totals[1].sums.max_abs_at = 77;
  piece.totals[1].beyond.runs = {{3, 5, 2.5, 9}};
  piece.spots = {{77, 1.5, -2}};
  partial.pieces.push_back({7, 0, piece});
  Piece broken;
  broken.error = "A: cut short";
  partial.pieces.push_back({8, 1, broken});
  return partial;
}

Result<Partial> read(std::string_view text) { return read_partial(as_bytes(text)); }

std::string fault_of(std::string_view text) {
  const Result<Partial> partial = read(text);
  return partial.ok() ? "none" : partial.error().message();
}

// A file whose content is this, with the right hash: what a hostile one would have.
std::string with_hash(std::string_view body) {
  return std::string(kPartMagic) + sha256(body) + std::string(body);
}
std::string body_of(std::string_view file) { return std::string(file.substr(8 + 32)); }

TEST(Partial, IsReadAsItWasWritten) {
  const std::string file = write_partial(sample());
  const Result<Partial> partial = read(file);
  ASSERT_TRUE(partial.ok()) << partial.error().message();
  EXPECT_EQ(write_partial(partial.value()), file);
  EXPECT_EQ(partial.value().head.number, (PartNumber{2, 3}));
  EXPECT_EQ(partial.value().head.options, (std::vector<GivenOption>{{"atol", "1"}}));
  EXPECT_EQ(partial.value().pieces[0].piece.totals[1].beyond.runs[0].end, 5U);
  EXPECT_EQ(partial.value().pieces[1].piece.error, "A: cut short");
}

TEST(Partial, ThatIsTornSaysSo) {
  const std::string file = write_partial(sample());
  EXPECT_EQ(fault_of("PK\3\4"), "not a partial result of tensordiff");
  EXPECT_EQ(fault_of(""), "not a partial result of tensordiff");
  EXPECT_EQ(fault_of(std::string_view(file).substr(0, 20)), "cut short: it ends in its header");
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(fault_of(std::string_view(file).substr(0, size)), "none") << size;
}

TEST(Partial, WithAnyByteChangedIsRefused) {
  const std::string file = write_partial(sample());
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    EXPECT_NE(fault_of(changed), "none") << at;
  }
}

TEST(Partial, OfSomebodyWhoKnowsTheHashIsReadWithinItsBytes) {
  const std::string body = body_of(write_partial(sample()));
  for (std::size_t size = 0; size < body.size(); ++size)
    EXPECT_EQ(fault_of(with_hash(body.substr(0, size))),
              "damaged: it does not hold a partial result")
        << size;
  EXPECT_NE(fault_of(with_hash(body + "x")), "none");
  for (std::size_t at = 0; at < body.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = body;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const Result<Partial> partial = read(with_hash(changed));
      EXPECT_TRUE(!partial.ok() || write_partial(partial.value()).size() <= body.size() + 40) << at;
    }
}

TEST(Partial, HasANumberThatCanBe) {
  for (const PartNumber number :
       {PartNumber{0, 3}, PartNumber{4, 3}, PartNumber{1, 0}, PartNumber{1, kPartsMax + 1}}) {
    Partial partial = sample();
    partial.head.number = number;
    EXPECT_EQ(fault_of(write_partial(partial)), "damaged: it does not hold a partial result");
  }
}

}  // namespace
}  // namespace tensordiff
