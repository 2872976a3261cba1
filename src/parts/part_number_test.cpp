#include "parts/part_number.h"

#include <gtest/gtest.h>

#include <map>

namespace tensordiff {
namespace {

std::string parsed(std::string_view text) {
  const Result<PartNumber> number = parse_part(text);
  return number.ok() ? fmt::format("{} of {}", number.value().part, number.value().of)
                     : number.error().message();
}

std::string told_by(const std::map<std::string, std::string>& variables) {
  const Result<PartNumber> number = part_of_job([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
  return number.ok() ? fmt::format("{} of {}", number.value().part, number.value().of)
                     : number.error().message();
}

TEST(PartNumber, IsKOfN) {
  EXPECT_EQ(parsed("1/1"), "1 of 1");
  EXPECT_EQ(parsed("3/16"), "3 of 16");
  for (const char* text : {"", "3", "3/", "/3", "a/b", "1/2/3", "-1/2", " 1/2", "1.0/2"})
    EXPECT_TRUE(parsed(text).ends_with("is not K/N, such as 3/16, nor auto")) << parsed(text);
  EXPECT_EQ(parsed("0/4"), "parts are numbered from 1/4 to 4/4");
  EXPECT_EQ(parsed("5/4"), "parts are numbered from 1/4 to 4/4");
  EXPECT_EQ(parsed("1/0"), "the number of parts must be 1 to 1048576");
  EXPECT_EQ(parsed("1/99999999"), "the number of parts must be 1 to 1048576");
}

TEST(PartNumber, IsToldByTheJob) {
  EXPECT_EQ(told_by({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "16"}}), "4 of 16");
  EXPECT_EQ(told_by({{"RANK", "0"}, {"WORLD_SIZE", "8"}}), "1 of 8");
  EXPECT_EQ(told_by({{"OMPI_COMM_WORLD_RANK", "7"}, {"OMPI_COMM_WORLD_SIZE", "8"}}), "8 of 8");
  EXPECT_EQ(told_by({{"JOB_COMPLETION_INDEX", "2"}, {"JOB_COMPLETIONS", "4"}}), "3 of 4");
}

TEST(PartNumber, OfAnArrayJobCountsFromItsFirstTask) {
  // A task of an array is a job step of one process, too.
  std::map<std::string, std::string> task = {{"SLURM_PROCID", "0"},
                                             {"SLURM_NTASKS", "1"},
                                             {"SLURM_ARRAY_TASK_ID", "5"},
                                             {"SLURM_ARRAY_TASK_MIN", "1"},
                                             {"SLURM_ARRAY_TASK_COUNT", "16"}};
  EXPECT_EQ(told_by(task), "5 of 16");
  task["SLURM_ARRAY_TASK_MIN"] = "0";
  EXPECT_EQ(told_by(task), "6 of 16");
}

TEST(PartNumber, IsAnErrorWhereVariablesAreMissingOrWrong) {
  EXPECT_TRUE(told_by({}).starts_with("no job is recognized"));
  EXPECT_EQ(told_by({{"JOB_COMPLETION_INDEX", "2"}}),
            "JOB_COMPLETION_INDEX is set, but JOB_COMPLETIONS is not");
  for (const char* rank : {"8", "x", "-1"})
    EXPECT_TRUE(told_by({{"RANK", rank}, {"WORLD_SIZE", "8"}}).ends_with("parts of a job")) << rank;
  // Every third task of an array: the numbers have gaps.
  EXPECT_TRUE(told_by({{"SLURM_ARRAY_TASK_ID", "9"},
                       {"SLURM_ARRAY_TASK_MIN", "0"},
                       {"SLURM_ARRAY_TASK_COUNT", "4"}})
                  .ends_with("parts of a job"));
}

}  // namespace
}  // namespace tensordiff
