// Every limit: it holds, its message says which it is, and raising it is enough.

#include "formats/limits.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "formats/test_writers.h"

namespace tensordiff {
namespace {

using namespace test_writers;

// A file that goes beyond a limit of 1 (depth: of 1 level), and the format that reads it.
struct Excess {
  const Format* format;
  std::string file;
  uint64_t limit = 1;
};

const Arrays kTwo = {{"first", {2}, {1, 2}}, {"second", {2}, {3, 4}}};

// For each limit: what meets it.
std::map<std::string_view, std::function<Excess()>> excesses() {
  using namespace test_pickles;
  const std::string pickle = kProto2 +
                             "](K\x01K\x02"
                             "e.";
  const std::string deep = kProto2 +
                           "](](](K\x01"
                           "eee.";
  return {
      {"pickle",
       [=] {
         return Excess{&formats::pickle, pickle};
       }},
      {"opcodes",
       [=] {
         return Excess{&formats::pickle, pickle};
       }},
      {"values",
       [=] {
         return Excess{&formats::pickle, pickle};
       }},
      {"stack",
       [=] {
         return Excess{&formats::pickle, pickle};
       }},
      {"structure",
       [=] {
         return Excess{&formats::pickle, pickle};
       }},
      {"names",
       [=] {
         return Excess{&formats::pickle,
                       kProto2 + dict({{"one", "K\x01"}, {"two", "K\x02"}}) + "."};
       }},
      {"repeats",
       [=] {
         const std::string shared = std::string("](K\x01K\x02\x65q\x01");
         return Excess{&formats::pickle, kProto2 + "](" + shared + "h\x01h\x01h\x01\x65."};
       }},
      {"depth",
       [=] {
         return Excess{&formats::pickle, deep};
       }},
      {"json",
       [] {
         return Excess{&formats::zip, as_zarr(kTwo)};
       }},
      {"header",
       [] {
         return Excess{&formats::safetensors, as_safetensors(kTwo)};
       }},
      {"members",
       [] {
         return Excess{&formats::zip, as_npz(kTwo)};
       }},
      {"tensors",
       [] {
         return Excess{&formats::safetensors, as_safetensors(kTwo)};
       }},
      {"entries",
       [] {
         return Excess{&formats::gguf, as_gguf(kTwo)};
       }},
      {"string",
       [] {
         return Excess{&formats::gguf, as_gguf(kTwo)};
       }},
      {"name",
       [] {
         return Excess{&formats::gguf, as_gguf(kTwo)};
       }},
      {"npy-header",
       [] {
         return Excess{&formats::npy, as_npy(kTwo[0])};
       }},
      {"expanded",
       [] {
         return Excess{&formats::npz, as_npz(kTwo)};
       }},
      {"dense",
       [] {
         return Excess{&formats::torch_zip,
                       test_files::read_file(test_files::data_path("sparse_coo.pth"))};
       }},
      {"nesting",
       [] {
         return Excess{&formats::zip,
                       zip({stored("x.zip", as_npz(kTwo)),
                            stored("y.zip", zip({stored("a/b.npy", as_npy(kTwo[0]))}))})};
       }},
  };
}

std::string words_of(const Excess& excess, const Limits& limits) {
  Input input = test_files::input(excess.file);
  input.limits = limits;
  const Result<Catalog> catalog = excess.format->open(input);
  if (!catalog.ok()) return catalog.error().message();
  std::string words;
  for (const Problem& problem : catalog.value().problems) words += problem.message;
  for (const Tensor& tensor : catalog.value().tensors) words += tensor.fault;
  return words;
}

// The others have tests of their own: growth needs 64 MiB (compressed_test.cpp), input a file on
// disk (open_test.cpp), and the two of HDF5 a slow file (hdf5_test.cpp).
TEST(Limits, HoldAndSayWhichTheyAre) {
  const auto cases = excesses();
  for (const LimitRow& row : kLimitRows) {
    if (row.name == "growth" || row.name == "input" || row.name.starts_with("hdf5")) continue;
    ASSERT_TRUE(cases.contains(row.name)) << row.name;
    const Excess excess = cases.at(row.name)();
    EXPECT_EQ(words_of(excess, Limits()), "") << row.name;
    Limits limits;
    ASSERT_TRUE(set_limit(limits, row.name, excess.limit).ok());
    const std::string words = words_of(excess, limits);
    const std::string advice = fmt::format("the limit; --limit {}=N raises it", row.name);
    EXPECT_NE(words.find(advice), std::string::npos) << row.name << ": " << words;
  }
}

TEST(Limits, OfDepthHaveABoundThemselves) {
  Limits limits;
  EXPECT_TRUE(set_limit(limits, "depth", 1000).ok());
  EXPECT_EQ(limits.depth_max, 1000U);
  EXPECT_EQ(set_limit(limits, "depth", 1001).error().message(), "limit depth: at most 1000");
  EXPECT_EQ(set_limit(limits, "dept", 1).error().message(),
            "no limit 'dept'; did you mean 'depth'?");
}

}  // namespace
}  // namespace tensordiff
