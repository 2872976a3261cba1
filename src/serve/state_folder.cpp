#include "serve/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "serve/guard.h"

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

constexpr const char* kLock = "lock";
constexpr const char* kToken = "token";
constexpr const char* kRedirect = "open.html";
constexpr std::string_view kPassing = "tensordiff-state-";
constexpr std::size_t kTokenLength = 32;
// A server that starts has its lock by then.
constexpr std::chrono::minutes kStarting{1};

fs::path default_path() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return fs::path(state) / "tensordiff";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".local" / "state" / "tensordiff";
  return {};
}

Error cannot_keep(const fs::path& path, std::string_view why) {
  return Error("cannot keep sessions in '{}': {}; --state names another folder",
               printable(path.string()), why);
}

// Makes it for us alone where it is not there.
Result<void> make_folder(const fs::path& path) {
  std::error_code fault;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), fault);
  if (fault) return cannot_keep(path, fault.message());
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return cannot_keep(path, std::strerror(errno));
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return cannot_keep(path, std::strerror(errno));
  if (!S_ISDIR(facts.st_mode)) return cannot_keep(path, "it is not a folder");
  // Whoever can put files there could choose our token and our sessions.
  if (facts.st_mode & S_IWOTH) return cannot_keep(path, "everybody may write there");
  return {};
}

// The lock of a folder, -1 while somebody else has it.
Result<int> lock_of(const fs::path& path) {
  const int file =
      ::open((path / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return cannot_keep(path, std::strerror(errno));
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  const int fault = errno;
  close(file);
  if (fault == EWOULDBLOCK) return -1;
  return cannot_keep(path, std::strerror(fault));
}

// Folders that servers which were killed could not remove.
void sweep_passing(const fs::path& place) {
  std::error_code fault;
  fs::directory_iterator entries(place, fault);
  for (; !fault && entries != fs::directory_iterator(); entries.increment(fault)) {
    const fs::path path = entries->path();
    struct stat facts {};
    if (!path.filename().string().starts_with(kPassing) || lstat(path.c_str(), &facts) != 0 ||
        !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid())
      continue;
    std::error_code ignored;
    const auto made = fs::last_write_time(path / kLock, ignored);
    if (ignored || fs::file_time_type::clock::now() - made < kStarting) continue;
    const Result<int> lock = lock_of(path);
    if (!lock.ok() || lock.value() < 0) continue;
    fs::remove_all(path, ignored);
    close(lock.value());
  }
}

// For nobody else to read, and whole or not at all.
Result<void> write_private(const fs::path& path, std::string_view text) {
  const fs::path fresh = path.string() + ".new";
  unlink(fresh.c_str());
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                          S_IRUSR | S_IWUSR);
  if (file < 0) return Error("{}: {}", fresh.string(), std::strerror(errno));
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int fault = errno;
  close(file);
  if (!written) return Error("{}: {}", fresh.string(), std::strerror(fault));
  if (rename(fresh.c_str(), path.c_str()) != 0)
    return Error("{}: {}", path.string(), std::strerror(errno));
  return {};
}

// What is kept, unless somebody else could have read or written it.
std::optional<std::string> read_token(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat facts {};
  const bool ours = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
                    facts.st_uid == geteuid() && (facts.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  std::string token(kTokenLength + 1, '\0');
  const ssize_t count = ours ? read(file, token.data(), token.size()) : -1;
  close(file);
  if (count != static_cast<ssize_t>(kTokenLength)) return std::nullopt;
  token.resize(kTokenLength);
  const bool plain = std::ranges::all_of(
      token, [](unsigned char letter) { return letter < 128 && std::isalnum(letter); });
  return plain ? std::optional(token) : std::nullopt;
}

}  // namespace

Result<StateFolder> StateFolder::make_passing(std::string why) {
  std::error_code fault;
  const fs::path place = fs::temp_directory_path(fault);
  if (fault)
    return Error("there is no folder for temporary files: {}; TMPDIR names one", fault.message());
  sweep_passing(place);
  std::string name = (place / (std::string(kPassing) + "XXXXXX")).string();
  if (!mkdtemp(name.data())) return cannot_keep(place, std::strerror(errno));
  const int lock = TRY(lock_of(name));
  return StateFolder(name, lock, std::move(why));
}

Result<StateFolder> StateFolder::open(const std::string& named) {
  const fs::path path = named.empty() ? default_path() : fs::path(named);
  if (path.empty()) return make_passing("neither XDG_STATE_HOME nor HOME is set");
  Result<void> made = make_folder(path);
  Result<int> lock = made.ok() ? lock_of(path) : Result<int>(std::move(made).error());
  if (!lock.ok() && !named.empty()) return std::move(lock).error();
  if (!lock.ok()) return make_passing(lock.error().message());
  if (lock.value() >= 0) return StateFolder(path, lock.value(), "");
  return make_passing(fmt::format("another server has '{}'", printable(path.string())));
}

StateFolder::~StateFolder() {
  if (lock_ < 0) return;
  std::error_code ignored;
  fs::remove(path_ / kRedirect, ignored);
  if (passing()) fs::remove_all(path_, ignored);
  close(lock_);
}

Result<std::string> StateFolder::token() const {
  if (std::optional<std::string> kept = read_token(path_ / kToken)) return std::move(*kept);
  std::string token = random_token();
  TRY(write_private(path_ / kToken, token));
  return token;
}

Result<fs::path> StateFolder::write_redirect(const std::string& address) const {
  std::string escaped;
  for (const char letter : address) escaped += letter == '&' ? "&amp;" : std::string(1, letter);
  const std::string page = fmt::format(
      "<!doctype html>\n<meta charset=\"utf-8\">\n<title>tensordiff</title>\n"
      "<meta http-equiv=\"refresh\" content=\"0;url={0}\">\n"
      "<p>The debugger is at <a href=\"{0}\">this address</a>.\n",
      escaped);
  TRY(write_private(path_ / kRedirect, page));
  return path_ / kRedirect;
}

}  // namespace tensordiff::serve
