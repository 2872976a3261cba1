// Folders of several checkpoints.

#include "formats/folder.h"

#include <gtest/gtest.h>

#include "formats/test_folders.h"

namespace tensordiff {
namespace {

using namespace test_folders;

TEST(Folder, ReadsTheLatestCheckpointOnly) {
  const std::string array = test_files::npy_f32({1});
  EXPECT_EQ(told_folder({{"latest", "global_step20\n"},
                         {"global_step10/w.npy", array},
                         {"global_step20/w.npy", array},
                         {"eval/v.npy", array}}),
            "global_step20/w 1; eval/v 1 | global_step10/: left out: it is not the latest "
            "checkpoint in its folder");
  EXPECT_EQ(told_folder({{"latest_checkpointed_iteration.txt", "7"},
                         {"iter_0000007/mp_rank_00/w.npy", array}}),
            "w 1");
  EXPECT_EQ(told_folder({{"latest", "global_step30"}, {"global_step10/w.npy", array}}),
            "w 1 | latest: it names 'global_step30', which is not there");
}

}  // namespace
}  // namespace tensordiff
