#include "base/roots.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/remote_files.h"
#include "base/text.h"

namespace fs = std::filesystem;

namespace tensordiff {

// An open file or folder, closed at the end.
class Roots::Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Descriptor() {
    const int fault = errno;
    if (file_ >= 0) close(file_);
    errno = fault;
  }
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

namespace {

constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int kPassFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr int kLookFlags = O_PATH | O_CLOEXEC;
constexpr std::string_view kOutside = "it lies outside the folders that may be read";

// The walk of open_beneath() for a kernel without openat2 (before 5.6, or kept from us by a
// container): folder by folder, so that none on the way can be a link.
int walk_beneath(int folder, std::string_view path, int flags) {
  Roots::Descriptor at(dup(folder));
  for (const std::string_view each : split(path, '/')) {
    const bool last = each.data() + each.size() == path.data() + path.size();
    const std::string name(each);
    struct stat facts = {};
    if (name == ".." || fstatat(at.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        S_ISLNK(facts.st_mode)) {
      if (name == ".." || S_ISLNK(facts.st_mode)) errno = ELOOP;
      return -1;
    }
    // Not the one that was looked at, where somebody swapped it for a link: that fails here.
    at =
        Roots::Descriptor(openat(at.get(), name.c_str(), (last ? flags : kPassFlags) | O_NOFOLLOW));
    if (at.get() < 0) return -1;
  }
  struct stat facts = {};
  if (fstat(at.get(), &facts) == 0 && !S_ISLNK(facts.st_mode)) return at.release();
  errno = ELOOP;  // With O_PATH a link at the end is opened itself.
  return -1;
}

// Opens what lies beneath a folder, through no link and no "..". -1 and errno where it fails.
int open_beneath(int folder, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long file = syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
  if (file >= 0) return static_cast<int>(file);
  // EPERM is what older container runtimes answer to a call that they do not know.
  if (errno != ENOSYS && errno != EPERM && errno != EAGAIN) return -1;
  return walk_beneath(folder, path, flags);
}

Error open_error(int fault) {
  if (fault == ENOENT) return Error("no such file or folder");
  if (fault == ELOOP || fault == EXDEV) return Error("a link, not followed");
  return Error("cannot open it: {}", std::strerror(fault));
}

bool is_beneath(const fs::path& path, const fs::path& folder) {
  const auto [end, _] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

// The file that a path means, whether or not it is there; empty where it cannot be told.
fs::path canonical_of(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) return {};
  std::error_code fault;
  const fs::path whole = fs::absolute(path, fault);
  if (fault) return {};
  fs::path canonical = fs::weakly_canonical(whole, fault);
  return fault ? fs::path() : canonical;
}

Roots::Entry entry_of(const struct stat& facts) {
  Roots::Entry entry;
  entry.folder = S_ISDIR(facts.st_mode);
  entry.bytes = S_ISREG(facts.st_mode) ? static_cast<uint64_t>(facts.st_size) : 0;
  entry.time = static_cast<uint64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 +
               static_cast<uint64_t>(facts.st_mtim.tv_nsec);
  return entry;
}

struct Child {
  std::string name;
  struct stat facts;
};

// What is in an open folder, which is closed; links are told as links.
Result<std::vector<Child>> children_of(int folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(folder), closedir);
  if (!entries) return Error("cannot list the folder: {}", std::strerror(errno));
  std::vector<Child> children;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(entries.get());
    if (!entry && errno != 0) return Error("cannot list the folder: {}", std::strerror(errno));
    if (!entry) return children;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    Child child{std::string(name), {}};
    if (fstatat(folder, child.name.c_str(), &child.facts, AT_SYMLINK_NOFOLLOW) == 0)
      children.push_back(std::move(child));
  }
}

}  // namespace

Result<Roots> Roots::make(const std::vector<std::string>& paths) {
  Roots roots;
  roots.bounded_ = true;
  for (const std::string& path : paths) {
    if (is_remote(path))
      continue;  // Nothing of this machine; whether it may be opened is remote/'s.
    std::error_code fault;
    fs::path folder = fs::canonical(path, fault);
    if (fault) return Error("{}: {}", printable(path), fault.message());
    if (!fs::is_directory(folder, fault)) folder = folder.parent_path();
    if (std::ranges::find(roots.folders_, folder) == roots.folders_.end())
      roots.folders_.push_back(folder);
  }
  return roots;
}

bool Roots::contains(const fs::path& canonical) const {
  return !bounded_ || std::ranges::any_of(folders_, [&](const fs::path& root) {
    return is_beneath(canonical, root);
  });
}

void Roots::add(const Roots& others) {
  folders_.insert(folders_.end(), others.folders_.begin(), others.folders_.end());
}

Roots::Found Roots::find(const std::string& path) const {
  Found found;
  const fs::path canonical = canonical_of(path);
  if (canonical.empty()) return found;
  // Says nothing of what lies outside, not even whether it is there.
  found.outside = !contains(canonical);
  std::error_code fault;
  if (!found.outside && fs::exists(canonical, fault)) found.path = canonical;
  return found;
}

Result<Roots::Descriptor> Roots::open(const std::string& path, int flags) const {
  if (path.find('\0') != std::string::npos) return Error("no such file or folder");
  if (!bounded_) {
    Descriptor file(::open(path.c_str(), flags));
    if (file.get() < 0) return open_error(errno);
    return file;
  }
  const fs::path canonical = canonical_of(path);
  if (canonical.empty() || !contains(canonical)) return Error("{}", kOutside);
  const Descriptor top(::open("/", kPassFlags));
  // The canonical path lies beneath a root, so what is reached without a link does too.
  const std::string below = canonical.relative_path().string();
  Descriptor file(open_beneath(top.get(), below.empty() ? "." : below, flags));
  if (file.get() < 0) return open_error(errno);
  return file;
}

Result<Roots::Entry> Roots::look(const std::string& path) const {
  if (is_remote(path)) return TRY(remote_files())->look(path);
  const Descriptor file = TRY(open(path, kLookFlags));
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0) return open_error(errno);
  if (!S_ISDIR(facts.st_mode) && !S_ISREG(facts.st_mode)) return Error("not a regular file");
  return entry_of(facts);
}

Result<Bytes> Roots::map(const std::string& path) const {
  if (is_remote(path)) return TRY(remote_files())->map(path);
  return map_and_close(TRY(open(path, kFileFlags)).release());
}

Result<Bytes> Roots::map_beneath(const std::string& folder, std::string_view name) const {
  for (const std::string_view each : split(name, '/'))
    if (each.empty() || each == "." || each == ".." ||
        each.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos)
      return Error("it is not the name of a file below the folder");
  if (is_remote(folder)) return TRY(remote_files())->map(remote_child(folder, name));
  const Descriptor top = TRY(open(folder.empty() ? "." : folder, kPassFlags));
  const int file = open_beneath(top.get(), std::string(name), kFileFlags);
  if (file < 0) return open_error(errno);
  return map_and_close(file);
}

// Where a link leads, as one that may lead outside.
Result<Roots::Entry> Roots::look_at_link(const std::string& path) const {
  if (contains(canonical_of(path))) return look(path);
  std::error_code fault;
  Entry entry;
  entry.folder = fs::is_directory(path, fault);
  entry.outside = true;
  return entry;
}

Result<void> Roots::list(const std::string& folder, const std::function<bool(Entry)>& take) const {
  Descriptor top = TRY(open(folder, kFolderFlags));
  for (const Child& child : TRY(children_of(top.release()))) {
    Result<Entry> entry = Error("not a regular file");
    if (S_ISLNK(child.facts.st_mode))
      entry = look_at_link((fs::path(folder) / child.name).string());
    if (S_ISREG(child.facts.st_mode) || S_ISDIR(child.facts.st_mode)) entry = entry_of(child.facts);
    if (!entry.ok()) continue;  // Leads nowhere, or is a pipe or a device.
    entry.value().name = child.name;
    if (!take(std::move(entry).value())) return {};
  }
  return {};
}

Result<void> Roots::walk(const std::string& folder, const std::function<bool(Entry)>& take) const {
  if (is_remote(folder)) return TRY(remote_files())->walk(folder, take);
  const Descriptor top = TRY(open(folder, kFolderFlags));
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string below = std::move(folders.back());
    folders.pop_back();
    const int at = open_beneath(top.get(), below.empty() ? "." : below, kFolderFlags);
    if (at < 0) return Error("cannot list '{}': {}", printable(below), std::strerror(errno));
    for (const Child& child : TRY(children_of(at))) {
      const std::string name = below.empty() ? child.name : below + "/" + child.name;
      if (S_ISDIR(child.facts.st_mode)) {
        folders.push_back(name);
        continue;
      }
      Result<Entry> entry = Error("not a regular file");
      if (S_ISLNK(child.facts.st_mode)) entry = look_at_link((fs::path(folder) / name).string());
      if (S_ISREG(child.facts.st_mode)) entry = entry_of(child.facts);
      if (!entry.ok() || entry.value().folder) continue;
      entry.value().name = name;
      if (!take(std::move(entry).value())) return {};
    }
  }
  return {};
}

}  // namespace tensordiff
