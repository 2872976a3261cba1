#include "logits/rename.h"

#include <gtest/gtest.h>

#include "formats/test_files.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Catalog lists(const std::string& text) {
  Catalog catalog = formats::log_probs.open(test_files::input(text)).value();
  read_places(catalog);
  return catalog;
}

std::string names_of(const Catalog& catalog) {
  std::string names;
  for (const Tensor& tensor : catalog.tensors)
    if (tensor.auxiliary.empty()) names += tensor.name + " ";
  return names;
}

TEST(Rename, GivesSequencesOfTheSameTokensOneName) {
  Catalog a = lists(
      "{\"log_probs\": [-1], \"token_ids\": [1]}\n"
      "{\"log_probs\": [-2], \"token_ids\": [2]}");
  Catalog b = lists(
      "{\"log_probs\": [-2], \"token_ids\": [2]}\n"
      "{\"log_probs\": [-3], \"token_ids\": [3]}\n"
      "{\"log_probs\": [-1], \"token_ids\": [1]}");
  std::vector<std::string> notes;
  name_sequences_alike(a, b, notes);
  EXPECT_EQ(names_of(b), "sequence_1/log_probs other_sequence_1/log_probs sequence_0/log_probs ");
  EXPECT_EQ(notes.size(), 1U);
}

TEST(Rename, LeavesWhatStandsInOrderAlone) {
  Catalog a = lists("{\"log_probs\": [-1], \"token_ids\": [1]}");
  Catalog b = a;
  std::vector<std::string> notes;
  name_sequences_alike(a, b, notes);
  EXPECT_EQ(names_of(b), "sequence_0/log_probs ");
  EXPECT_TRUE(notes.empty());
}

// Logits that are all there is are compared, whatever their names and files are.
TEST(Rename, LogitsThatAreAllThereIsAreAPair) {
  Catalog a, b;
  a.tensors.push_back({"lm_head.logits", noise_view({3, 40}, 1), ""});
  b.path = "out/logits.npy";
  b.tensors.push_back({"", noise_view({1, 3, 40}, 1), ""});
  std::vector<std::string> notes;
  name_sequences_alike(a, b, notes);
  EXPECT_EQ(a.tensors[0].pairing_name(), b.tensors[0].pairing_name());
  b.tensors.push_back({"model.norm", noise_view({3, 40}, 1), ""});
  b.tensors[0].known_as.clear();
  name_sequences_alike(a, b, notes);
  EXPECT_NE(a.tensors[0].pairing_name(), b.tensors[0].pairing_name());
}

}  // namespace
}  // namespace tensordiff
