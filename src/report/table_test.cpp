#include "report/table.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(Table, LeavesOutTheColumnsThatMatterLeast) {
  Table table({{"name"}, {"dtype", Column::Side::left, 1}, {"rel L2", Column::Side::right, 2}});
  table.add({{"attention"}, {"f32"}, {"0.5"}});
  EXPECT_EQ(table.render(Style(false), 40),
            "  name       dtype  rel L2\n"
            "  attention  f32       0.5\n");
  EXPECT_EQ(table.render(Style(false), 18),
            "  name       dtype\n"
            "  attention  f32\n");
  EXPECT_EQ(table.render(Style(false), 12),
            "  name\n"
            "  attention\n");
}

TEST(Table, ShortensNamesButKeepsTheLayerAndTheLastPart) {
  Table table({{"tensor", Column::Side::left, 0, true}, {"bits", Column::Side::right}});
  table.add({{"model.layers.17.self_attn.q_proj.weight"}, {"4.5"}});
  EXPECT_EQ(table.render(Style(false), 36),
            "  tensor                        bits\n"
            "  …layers.17.…q_proj.weight      4.5\n");
}

TEST(Table, HeadingsStandAboveTheirRowsAndTakeNoColumns) {
  Table table({{"A → B"}, {"tensors", Column::Side::right}});
  table.add_heading("transposed, in all layers of both models");
  table.add({{"w → v"}, {"12"}}, {"not layer 3"});
  EXPECT_EQ(table.render(Style(false), 24),
            "  A → B  tensors\n"
            "transposed, in all layers of both models\n"
            "  w → v       12\n"
            "    └ not layer 3\n");
}

}  // namespace
}  // namespace tensordiff
