#include "align/dims.h"

#include "align/view.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Dims dims_of(std::string_view text) {
  Result<Dims> dims = parse_dims(text);
  EXPECT_TRUE(dims.ok()) << (dims.ok() ? "" : dims.error().message());
  return dims.ok() ? std::move(dims).value() : Dims{};
}

Result<AlignedPair> aligned(std::string_view text, const Operand& a, const Operand& b) {
  return align_named(a, b, dims_of(text));
}

std::string trouble(std::string_view text, const Shape& a, const Shape& b) {
  const Result<AlignedPair> pair =
      aligned(text, Operand{{noise_view(a, 1)}}, Operand{{noise_view(b, 2)}});
  return pair.ok() ? "none" : pair.error().message();
}

View stored(const View& view) { return stored_as(view, view.shape); }

TEST(Dims, SplitsDropsAndMovesAxes) {
  const View a = noise_view({1, 5, 12}, 1);
  const View heads = split(stored_as(a, {5, 12}), 1, std::vector<uint64_t>{3, 4});
  const View b = stored(permuted(heads, std::vector<uint64_t>{1, 0, 2}));
  const Result<AlignedPair> pair = aligned("b s (h d) -> h s d", {{a}}, {{b}});
  ASSERT_TRUE(pair.ok()) << pair.error().message();
  EXPECT_EQ(values_of(pair.value().a), values_of(pair.value().b));
  EXPECT_EQ(pair.value().a.shape, (Shape{5, 3, 4}));
  EXPECT_EQ(
      pair.value().steps,
      (Plan{{'a', Op::split, {2, 3, 4}}, {'a', Op::squeeze, {0}}, {'b', Op::permute, {1, 0, 2}}}));
}

// Where the shapes agree, nothing would be inferred; what the user says is done all the same.
TEST(Dims, OverrulesInference) {
  const View a = noise_view({6, 6}, 1);
  const View b = stored(permuted(a, std::vector<uint64_t>{1, 0}));
  const Result<AlignedPair> pair = aligned("in out -> out in", {{a}}, {{b}});
  EXPECT_EQ(values_of(pair.value().a), values_of(pair.value().b));
  EXPECT_NE(values_of(align(a, b).value().a), values_of(align(a, b).value().b));
}

TEST(Dims, FindsSizesOnEitherSide) {
  const View a = noise_view({2, 3, 4, 5}, 1);
  for (const auto& [text, shape] : {std::pair("a b c d -> (a b) (c d)", Shape{6, 20}),
                                    std::pair("a b c d -> a 1 (b c d)", Shape{2, 1, 60}),
                                    std::pair("a b c d -> (a b c d)", Shape{120})}) {
    const View b = stored_as(a, shape);
    const Result<AlignedPair> pair = aligned(text, {{a}}, {{b}});
    ASSERT_TRUE(pair.ok()) << text << ": " << pair.error().message();
    EXPECT_EQ(values_of(pair.value().a), values_of(pair.value().b)) << text;
    EXPECT_EQ(pair.value().a.shape, a.shape) << text;
  }
}

TEST(Dims, PutsRanksTogetherAlongTheMarkedAxis) {
  const View whole = noise_view({5, 12}, 1);
  const Operand ranks{{stored(narrowed(whole, 1, 0, 8)), stored(narrowed(whole, 1, 8, 4))}};
  const View heads = stored_as(whole, {5, 3, 4});
  const Result<AlignedPair> pair = aligned("s h d -> s (h[tp] d)", {{heads}}, ranks);
  ASSERT_TRUE(pair.ok()) << pair.error().message();
  EXPECT_EQ(values_of(pair.value().a), values_of(pair.value().b));
  EXPECT_EQ(pair.value().steps[0], (Step{'b', Op::concat, {1, 2, 1}}));

  const Result<AlignedPair> copies = aligned("s h -> s h", {{whole}}, {{whole, whole}});
  ASSERT_TRUE(copies.ok());
  EXPECT_EQ(copies.value().copies.size(), 1U);
  EXPECT_EQ(copies.value().steps, (Plan{{'b', Op::replica, {2}}}));
}

TEST(Dims, SaysWhyTheyDoNotFit) {
  EXPECT_EQ(trouble("b s d -> s d", {4, 4}, {4, 4}), "A has 2 axes, [4, 4], but 3 are named");
  EXPECT_EQ(trouble("s d -> s d", {4, 4}, {5, 4}), "axis s has 4 entries, but 5 of B");
  EXPECT_EQ(trouble("s (h d) -> s h d", {4, 10}, {4, 3, 3}),
            "axis (h d) of A has 10 entries, which h = 3 does not divide");
  EXPECT_EQ(trouble("s (h d) -> s h d", {4, 18}, {4, 3, 3}),
            "axis (h d) of A has 18 entries, 2 times as many as its parts");
  EXPECT_EQ(trouble("b s d -> s d", {2, 4, 4}, {4, 4}),
            "axis b of A has 2 entries, and B has no such axis");
  EXPECT_EQ(trouble("s (h d) -> s (d h)", {4, 12}, {4, 12}),
            "the size of axis h does not follow from the shapes");
  EXPECT_EQ(trouble("1 s -> s", {2, 4}, {4}), "A has size 2 where the axes say 1");
  EXPECT_EQ(trouble("s d -> s d", {0, 4}, {0, 4}), "a has no elements");
  const View rank = noise_view({4, 4}, 1);
  EXPECT_EQ(aligned("s d -> s (h d[tp])", {{rank}}, {{rank, rank}}).error().message(),
            "[tp] is on d, which is not the first of (h d)");
  EXPECT_EQ(aligned("s d -> s d[tp]", {{rank}}, {{rank, noise_view({3, 4}, 1)}}).error().message(),
            "the ranks of B do not fit together along d");
  EXPECT_EQ(aligned("s d -> s d", {{rank}}, {{rank, noise_view({3, 4}, 1)}}).error().message(),
            "the ranks of B have other shapes, and no axis has [tp]");
}

TEST(ParseDims, SaysWhatIsWrong) {
  const auto message = [](std::string_view text) { return parse_dims(text).error().message(); };
  for (const char* text : {"a b", "a -> b -> c", ""})
    EXPECT_EQ(message(text), fmt::format("'{}' is not of the form \"b s (h d) -> s h d\"", text));
  EXPECT_EQ(message("-> a"), "before the arrow: no axes");
  EXPECT_EQ(message("a -> (b"), "after the arrow: a bracket is not closed");
  EXPECT_EQ(message("(a (b)) -> c"), "before the arrow: brackets within brackets");
  EXPECT_EQ(message("() -> c"), "before the arrow: empty brackets");
  EXPECT_EQ(message("a a -> a"), "before the arrow: axis a is named twice");
  EXPECT_EQ(message("a, b -> a b"), "before the arrow: ',' is not the name of an axis");
  EXPECT_EQ(message("3 -> a"), "before the arrow: '3': an axis has a name, or is 1");
  EXPECT_EQ(message("a[pp] -> a"), "before the arrow: '[pp' after axis a: only [tp] is known");
  EXPECT_EQ(message("a[tp] b[tp] -> a b"), "before the arrow: two axes have [tp]");
}

}  // namespace
}  // namespace tensordiff
