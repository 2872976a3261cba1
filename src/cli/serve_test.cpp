// tensordiff serve and demo: that they start, say where, and stop when they are told to.

#include "cli/serving.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "cli/test_command.h"

namespace tensordiff {
namespace {

// The first line that a command prints, until which it runs in a thread of its own; it is then told
// to stop.
struct Served {
  int status = -1;
  std::string line;
};

Served served(const Command& command, const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  std::fflush(stdout);
  const int stdout_before = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  close(ends[1]);
  Served done;
  std::thread runs([&] { done.status = run_command(command, arguments); });
  for (char c = 0; done.line.find('\n') == std::string::npos && read(ends[0], &c, 1) == 1;)
    done.line += c;
  // The command under test takes this signal and ends in good order: nothing is terminated.
  pthread_kill(runs.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  runs.join();
  dup2(stdout_before, STDOUT_FILENO);
  close(stdout_before);
  close(ends[0]);
  return done;
}

TEST(ServeCommand, SaysItsAddressAndStopsWhenTold) {
  const std::string state = testing::TempDir() + "serve_command_test";
  std::filesystem::remove_all(state);
  for (const Command* command : {&commands::serve, &commands::demo}) {
    const Served done =
        served(*command, {"--port", "0", "--no-open", "--quiet", "--state", state, "--no-config"});
    EXPECT_EQ(done.status, kSame) << command->name;
    EXPECT_TRUE(done.line.starts_with("http://127.0.0.1:")) << command->name << " " << done.line;
    EXPECT_NE(done.line.find("#t="), std::string::npos) << done.line;
  }
}

TEST(ServeCommand, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run(commands::serve, {"a", "b", "c"}).err,
            "tensordiff: takes at most two inputs, has 3\n");
  EXPECT_EQ(run(commands::demo, {"a"}).err, "tensordiff: takes no inputs; tensordiff serve does\n");
  EXPECT_TRUE(run(commands::serve, {"--port", "65536"}).complains("is not between 0 and 65535"));
  EXPECT_EQ(run(commands::serve, {"nowhere.pt", "--no-open", "--port", "0"}).status, kTrouble);
}

}  // namespace
}  // namespace tensordiff
