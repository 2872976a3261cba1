#include "cli/serving.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "cli/command.h"
#include "cli/terminal.h"
#include "serve/guard.h"
#include "serve/server.h"

extern char** environ;

namespace tensordiff {
namespace {

bool has_screen() {
  return std::getenv("DISPLAY") || std::getenv("WAYLAND_DISPLAY") || std::getenv("BROWSER");
}

// Asks the desktop to open it. Whether somebody could be asked.
bool open_in_browser(const std::string& url) {
  if (!has_screen()) return false;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_RDWR, 0);
  std::string program = "xdg-open";
  std::string address = url;
  char* arguments[] = {program.data(), address.data(), nullptr};
  pid_t child = 0;
  const int fault = posix_spawnp(&child, program.c_str(), &quiet, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (fault != 0) return false;
  std::thread([child] { waitpid(child, nullptr, 0); }).detach();
  return true;
}

Result<void> announce(const serve::Server& server, const Settings& settings) {
  // The address alone on stdout, where a script finds it.
  TRY(deliver(server.url() + "\n", {}));
  if (settings.quiet) return {};
  const serve::ServeOptions& options = server.app().options;
  if (server.app().folder.passing())
    say("another server keeps the sessions; those of this one end with it\n");
  if (!serve::is_loopback(options.listen))
    say(fmt::format(
        "listening on {}: others on the network can connect; whoever has the token in the "
        "address can read the files beneath the roots\n",
        options.listen));
  say("Ctrl-C stops the server\n");
  return {};
}

}  // namespace

int serve_until_stopped(const serve::ServeOptions& options, const Settings& settings) {
  // Blocked before any thread starts, so that the signals come to sigwait() below and nowhere else.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Result<serve::Server> server = serve::Server::start(options);
  if (!server.ok()) return fail(server.error());
  if (const Result<void> said = announce(server.value(), settings); !said.ok())
    return fail(said.error());
  if (settings.open_browser) open_in_browser(server.value().url());

  int signal = 0;
  sigwait(&signals, &signal);
  // Whoever asks again does not want to wait.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  server.value().stop();
  return kSame;
}

}  // namespace tensordiff
