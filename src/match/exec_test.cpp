#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// What a program with this body, a shell script, pairs.
class Exec : public testing::Test {
 protected:
  Exec() : path_(testing::TempDir() + "tensordiff_matcher_XXXXXX") { close(mkstemp(path_.data())); }
  ~Exec() override { std::remove(path_.c_str()); }

  Result<Matching> run(const std::string& body) {
    std::ofstream(path_) << "#!/bin/sh\n" << body << "\n";
    chmod(path_.c_str(), 0700);
    MatchOptions options;
    options.strategies = {"exec"};
    options.program = path_;
    return match(a_, b_, options);
  }

  std::string path_;
  Catalog a_ = catalog_of({{"x", {2, 3}, 1}, {"we\"ird", {4}, 2}});
  Catalog b_ = catalog_of({{"p", {2, 3}, 1}, {"$(touch /tmp/never)", {4}, 2}});
};

TEST_F(Exec, PairsWhatTheProgramSays) {
  const Result<Matching> matching = run(R"sh(cat > /dev/null
    echo '{"a": "x", "b": "$(touch /tmp/never)"}'
    echo
    echo '["we\"ird", "p"]')sh");
  ASSERT_TRUE(matching.ok()) << matching.error().message();
  EXPECT_EQ(pairs_text(matching.value(), a_, b_), (Names{"x=$(touch /tmp/never)", "we\"ird=p"}));
  EXPECT_EQ(matching.value().pairs[0].matched_by, &matchers::exec);
  EXPECT_NE(access("/tmp/never", F_OK), 0);
}

TEST_F(Exec, TellsTheProgramNamesAndShapes) {
  const std::string seen = path_ + ".seen";
  ASSERT_TRUE(run("cat > '" + seen + "'").ok());
  std::ifstream file(seen);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::remove(seen.c_str());
  EXPECT_EQ(text, R"lines({"side":"a","name":"x","dtype":"f32","shape":[2,3]}
{"side":"a","name":"we\"ird","dtype":"f32","shape":[4]}
{"side":"b","name":"p","dtype":"f32","shape":[2,3]}
{"side":"b","name":"$(touch /tmp/never)","dtype":"f32","shape":[4]}
)lines");
}

TEST_F(Exec, SaysWhatIsWrongWithTheOutput) {
  const auto message = [&](const std::string& body) {
    const Result<Matching> matching = run(body);
    return matching.ok() ? "none" : matching.error().message();
  };
  EXPECT_EQ(message("echo '{\"a\": \"x\"}'"),
            path_ + ": line 1 of its output: not a pair like {\"a\": \"name\", \"b\": \"name\"}");
  EXPECT_EQ(message("echo; echo '[\"x\", \"p\", \"q\"]'"),
            path_ + ": line 2 of its output: not a pair like {\"a\": \"name\", \"b\": \"name\"}");
  EXPECT_TRUE(message("echo nonsense").starts_with(path_ + ": line 1 of its output: "));
  EXPECT_EQ(message("exit 3"), path_ + ": ended with status 3");
  const Result<Matching> unknown = run(R"(echo '["x", "gone"]')");
  EXPECT_EQ(unknown.value().notes, Names{"the pair 'x' and 'gone' was not made: B has no such "
                                         "tensor, or it is in another pair"});
}

TEST_F(Exec, RunsNothingWhereNoProgramWasNamed) {
  EXPECT_EQ(pairs_of(matchers::exec, a_, b_), Names{});
}

}  // namespace
}  // namespace tensordiff
