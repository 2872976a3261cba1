#include "diagnose/verdict/input_notes.h"

#include <gtest/gtest.h>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

TEST(InputNotes, CountTheStepsThatWeightsFit) {
  Insight insight;
  EXPECT_EQ(weights_note(insight),
            "warning: --weights has no effect: A and B are not dumps of what layers compute");
  insight.judged = true;
  EXPECT_EQ(weights_note(insight),
            "warning: --weights has no effect: no step of the dumps multiplies by a weight");
  insight.weight_use = {3, 8};
  EXPECT_EQ(weights_note(insight), "--weights: 3 of 8 steps can be computed again");
  insight.weight_use = {0, 8};
  EXPECT_EQ(
      weights_note(insight),
      "warning: --weights: 0 of 8 steps can be computed again; none of its names and sizes fit "
      "the dumps");
}

TEST(InputNotes, TellADumpFromAModel) {
  const Catalog dump = catalog_of(Names{"0_query", "0_key"});
  const Catalog model = catalog_of(Names{"layers.0.q.weight", "layers.0.k.weight"});
  std::vector<std::string> notes;
  note_mixed_kinds(dump, dump, notes);
  note_mixed_kinds(model, model, notes);
  EXPECT_TRUE(notes.empty());
  note_mixed_kinds(dump, model, notes);
  note_mixed_kinds(model, dump, notes);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_TRUE(notes[0].starts_with("A looks like a dump")) << notes[0];
  EXPECT_TRUE(notes[1].starts_with("B looks like a dump")) << notes[1];
}

}  // namespace
}  // namespace tensordiff
