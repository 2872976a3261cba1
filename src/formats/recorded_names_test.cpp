#include "formats/recorded_names.h"

#include <gtest/gtest.h>

#include <map>

#include "naming/naming.h"

namespace tensordiff {
namespace {

Catalog captured(std::string json, const std::vector<std::string>& names) {
  Catalog catalog;
  for (const std::string& name : names) catalog.tensors.push_back({name, {}, ""});
  catalog.beside = [text = std::move(json)](std::string_view name) -> Result<Bytes> {
    if (name != "trace.json") return Error("none");
    return Bytes{as_bytes(text), {}};
  };
  read_places(catalog);
  return catalog;
}

std::string known_as(const Catalog& catalog) {
  std::string text;
  for (const Tensor& tensor : catalog.tensors) text += tensor.pairing_name() + " ";
  return text;
}

TEST(RecordedNames, ClassesTellWhatNamesDoNot) {
  Catalog catalog = captured(R"({"schema": "tensordiff.trace/1",
    "tensors": [{"name": "0"}, {"name": "1"}, {"name": "layers.0.mlp.act_fn"}, {"name": "2"}, {}],
    "calls": [
      {"kind": "module", "name": "Sequential", "end": 9, "out": {"t": 1}},
      {"kind": "module", "name": "Embedding", "end": 0, "out": {"t": 0}},
      {"kind": "function", "name": "ReLU", "end": 1, "out": {"t": 3}},
      {"kind": "module", "name": "NewGELUActivation", "end": 3, "out": {"t": 1}},
      {"kind": "module", "name": "Embedding", "end": 4, "out": {"t": 2}},
      {"kind": "module", "name": "ReLU", "end": 5, "out": {"t": 77}},
      {"kind": "module", "name": "ReLU", "end": 6, "out": {"t": 4}}]})",
                             {"0", "1", "layers.0.mlp.act_fn", "2"});
  read_classes(add_traces({}, catalog), catalog);
  std::map<std::string, Role> roles;
  for (const Tensor& tensor : catalog.tensors) roles[tensor.name] = tensor.place.step;
  EXPECT_EQ(roles["0"], Role::embedding);
  EXPECT_EQ(roles["1"], Role::activation);                    // Not of what hands it on.
  EXPECT_EQ(roles["layers.0.mlp.act_fn"], Role::activation);  // Its name is understood.
  EXPECT_EQ(roles["2"], read_place("2").step);                // No module gave it.
}

constexpr const char* kAliased = R"({"schema": "tensordiff.trace/1",
    "modules": [{"path": "gru", "aliases": ["other", "same"]}, {"path": "head"}]})";

TEST(RecordedNames, CapturesMeetByAnyNameOfAModule) {
  Catalog a = captured(kAliased, {"gru.0", "gru@1", "gruel", "head"});
  Catalog b = captured("{}", {"same.0", "same@1", "samel", "head"});
  meet_by_aliases(a, b);
  EXPECT_EQ(known_as(a), "same.0 same@1 gruel head ");
  EXPECT_EQ(known_as(b), "same.0 same@1 samel head ");
  // B's record serves as well; A keeps its names.
  Catalog c = captured("{}", {"same.0"}), d = captured(kAliased, {"gru.0"});
  meet_by_aliases(c, d);
  EXPECT_EQ(known_as(c) + known_as(d), "same.0 same.0 ");
}

TEST(RecordedNames, ANameThatBothHaveStays) {
  Catalog a = captured(kAliased, {"gru", "same"}), b = captured("{}", {"gru", "same"});
  meet_by_aliases(a, b);
  EXPECT_EQ(known_as(a), "gru same ");
  Catalog c = captured(kAliased, {"gru", "same"}), d = captured("{}", {"same"});
  meet_by_aliases(c, d);
  EXPECT_EQ(known_as(c), "gru same ");
}

TEST(RecordedNames, TiedParametersAreAddedUnderTheirOtherNames) {
  const RecordedRun run = recorded_run(captured(R"({"schema": "tensordiff.trace/1", "parameters": [
    {"name": "model.embed_tokens.weight", "tied": ["lm_head.weight", "there"]}, {"name": "x"}]})",
                                                {}));
  Catalog weights = captured("{}", {"model.embed_tokens.weight", "there"});
  add_tied(run, weights);
  ASSERT_EQ(weights.tensors.size(), 3u);
  EXPECT_EQ(weights.tensors[2].name, "lm_head.weight");
  EXPECT_EQ(weights.tensors[2].place.step, Role::logits);
}

}  // namespace
}  // namespace tensordiff
