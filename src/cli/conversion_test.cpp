#include <fstream>

#include "cli/test_command.h"

namespace tensordiff {
namespace {

const std::vector<std::string> kPort = {data("gguf/port_hf.safetensors"),
                                        data("gguf/port_f16.gguf")};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(ConversionCommand, ListsARuleForEachKind) {
  const Ran ran = run(commands::conversion, kPort);
  EXPECT_EQ(ran.status, kSame) << ran.err;
  EXPECT_TRUE(ran.says("blk.#.attn_q.weight"));
  EXPECT_TRUE(ran.says("rows in the other RoPE order (heads of 16, halves in A)"));
}

// What one run wrote, the next is held to.
TEST(ConversionCommand, SaysWhenARuleIsNoLongerWhatItWas) {
  const std::string file = testing::TempDir() + "conversion_rules.json";
  EXPECT_EQ(run(commands::conversion, with(kPort, {"-o", "json", "--out", file})).status, kSame);
  EXPECT_EQ(run(commands::conversion, with(kPort, {"--conversion", file})).status, kSame);

  std::ofstream(file) << R"({"schema": "tensordiff.conversion/1", "rules": [)"
                      << R"({"a": "gone.#", "b": "away.#", "rule": "transposed"}]})";
  const Ran ran = run(commands::conversion, with(kPort, {"--conversion", file}));
  EXPECT_EQ(ran.status, kDifferent);
  EXPECT_TRUE(ran.says("gone.# → away.#: gone, was transposed")) << ran.out;

  std::ofstream(file) << "{}";
  EXPECT_TRUE(run(commands::conversion, with(kPort, {"--conversion", file}))
                  .complains("its schema is not tensordiff.conversion/1"));
}

TEST(ConversionCommand, NeedsTwoCheckpoints) {
  EXPECT_EQ(run(commands::conversion, {"a"}).err,
            "tensordiff: conversion needs two checkpoints, A and B\n");
}

}  // namespace
}  // namespace tensordiff
