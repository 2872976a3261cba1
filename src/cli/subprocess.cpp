#include "cli/subprocess.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace tensordiff {

Result<Finished> run_program(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) return Error("cannot make a pipe: {}", std::strerror(errno));
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);

  Finished finished;
  char buffer[4096];
  while (fault == 0) {
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count > 0) finished.output.append(buffer, static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) break;
  }
  close(ends[0]);
  if (fault != 0) return Error("{}: cannot run it: {}", arguments[0], std::strerror(fault));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return finished;
}

}  // namespace tensordiff
