#include "serve/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

fs::path default_path() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return fs::path(state) / "tensordiff";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".local" / "state" / "tensordiff";
  return {};
}

// Nobody else may look in.
Result<void> make_private(const fs::path& path) {
  std::error_code fault;
  fs::create_directories(path, fault);
  if (fault) return Error("{}: {}", path.string(), fault.message());
  if (chmod(path.c_str(), S_IRWXU) != 0)
    return Error("{}: {}", path.string(), std::strerror(errno));
  return {};
}

Result<fs::path> passing_folder() {
  std::string name = (fs::temp_directory_path() / "tensordiff-XXXXXX").string();
  if (!mkdtemp(name.data())) return Error("{}: {}", name, std::strerror(errno));
  return fs::path(name);
}

}  // namespace

Result<StateFolder> StateFolder::open(const std::string& named) {
  const fs::path path = named.empty() ? default_path() : fs::path(named);
  if (!path.empty()) {
    TRY(make_private(path));
    const int lock = ::open((path / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) return Error("{}: {}", path.string(), std::strerror(errno));
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) return StateFolder(path, lock, false);
    close(lock);
  }
  return StateFolder(TRY(passing_folder()), -1, true);
}

StateFolder::~StateFolder() {
  if (lock_ >= 0) close(lock_);
  std::error_code ignored;
  if (passing_) fs::remove_all(path_, ignored);
}

}  // namespace tensordiff::serve
