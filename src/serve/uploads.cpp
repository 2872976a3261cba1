#include "serve/uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "serve/guard.h"
#include "serve/session.h"

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

constexpr std::size_t kNameMax = 100;
// What an upload leaves free, for the database and everybody else.
constexpr uint64_t kSpareBytes = 64 << 20;

std::string received_text(const std::vector<bool>& received) {
  std::string text;
  for (const bool chunk : received) text += chunk ? '1' : '0';
  return text;
}

}  // namespace

std::string harmless_name(std::string_view name) {
  name = name.substr(name.find_last_of("/\\") + 1);
  std::string out;
  for (const char letter : name) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' ||
                       (letter == '.' && !out.empty());
    out += plain ? letter : '_';
  }
  // The end tells the format.
  if (out.size() > kNameMax) out.replace(0, out.size() - kNameMax + 1, "_");
  return out.empty() ? "file" : out;
}

Result<BodyFile> BodyFile::open(const fs::path& path, uint64_t offset) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return Error("cannot keep the upload: {}", std::strerror(errno));
  return BodyFile(file, offset);
}

BodyFile::BodyFile(BodyFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), offset_(other.offset_), written_(other.written_) {}

BodyFile::~BodyFile() {
  if (file_ >= 0) close(file_);
}

Result<void> BodyFile::append(std::string_view piece) {
  while (!piece.empty()) {
    const auto place = static_cast<off_t>(offset_ + written_);
    const ssize_t count = pwrite(file_, piece.data(), piece.size(), place);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error("cannot keep the upload: {}", std::strerror(errno));
    written_ += static_cast<uint64_t>(count);
    piece.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> BodyFile::sync() const {
  if (fdatasync(file_) != 0) return Error("cannot keep the upload: {}", std::strerror(errno));
  return {};
}

uint64_t Upload::chunk_bytes(uint64_t which) const { return std::min(chunk, size - which * chunk); }

bool Upload::complete() const { return std::ranges::find(received, false) == received.end(); }

uint64_t Upload::missing_bytes() const {
  uint64_t bytes = 0;
  for (uint64_t which = 0; which < received.size(); ++which)
    if (!received[which]) bytes += chunk_bytes(which);
  return bytes;
}

Result<void> Uploads::load() {
  const std::lock_guard lock(mutex_);
  if (mkdir(folder_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return Error("{}: {}", folder_.string(), std::strerror(errno));
  return store_.read("SELECT id, name, size, chunk, received, source, created FROM uploads", {},
                     [&](const Store::Row& row) {
                       Upload upload;
                       upload.id = row.text(0);
                       upload.name = row.text(1);
                       upload.size = static_cast<uint64_t>(row.number(2));
                       upload.chunk = static_cast<uint64_t>(row.number(3));
                       for (const char mark : row.text(4)) upload.received.push_back(mark == '1');
                       upload.source = row.text(5);
                       upload.created = row.number(6);
                       upload.path = folder_ / upload.id / harmless_name(upload.name);
                       uploads_[upload.id] = std::move(upload);
                     });
}

bool Uploads::has_room(uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return has_room_unlocked(bytes);
}

bool Uploads::has_room_unlocked(uint64_t bytes) const {
  std::error_code fault;
  const fs::space_info space = fs::space(folder_, fault);
  if (fault) return false;
  uint64_t taken = kSpareBytes + promised_;
  for (const auto& [id, upload] : uploads_) taken += upload.missing_bytes();
  return space.available >= taken && space.available - taken >= bytes;
}

std::shared_ptr<void> Uploads::promise(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_room_unlocked(bytes)) return nullptr;
    promised_ += bytes;
  }
  return {this, [this, bytes](void*) {
            const std::lock_guard lock(mutex_);
            promised_ -= bytes;
          }};
}

Result<Upload> Uploads::begin(const std::string& name, uint64_t size) {
  Upload upload;
  upload.id = random_id();
  upload.name = printable(name, 300);
  upload.size = size;
  upload.chunk = kChunkBytes;
  upload.received.assign((size + kChunkBytes - 1) / kChunkBytes, false);
  upload.created = now_ms();
  upload.path = folder_ / upload.id / harmless_name(upload.name);
  const std::lock_guard lock(mutex_);
  if (!has_room_unlocked(size))
    return Error("the disk has no room for {} ({})", upload.name, human_bytes(size));
  if (mkdir(upload.path.parent_path().c_str(), S_IRWXU) != 0)
    return Error("cannot keep the upload: {}", std::strerror(errno));
  TRY(BodyFile::open(upload.path, 0));
  TRY(store_.run(
      "INSERT INTO uploads VALUES(?,?,?,?,?,?,?)",
      {upload.id, upload.name, static_cast<int64_t>(size), static_cast<int64_t>(kChunkBytes),
       received_text(upload.received), "", upload.created}));
  return uploads_[upload.id] = upload;
}

std::optional<Upload> Uploads::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = uploads_.find(id);
  return found == uploads_.end() ? std::nullopt : std::optional(found->second);
}

Result<void> Uploads::received(const std::string& id, uint64_t chunk) {
  const std::lock_guard lock(mutex_);
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return Error("the upload is gone");
  found->second.received[chunk] = true;
  return store_.run("UPDATE uploads SET received=? WHERE id=?",
                    {received_text(found->second.received), id});
}

Result<void> Uploads::set_source(const std::string& id, const std::string& source) {
  const std::lock_guard lock(mutex_);
  if (const auto found = uploads_.find(id); found != uploads_.end()) found->second.source = source;
  return store_.run("UPDATE uploads SET source=? WHERE id=?", {source, id});
}

void Uploads::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return;
  std::error_code ignored;
  fs::remove_all(found->second.path.parent_path(), ignored);
  uploads_.erase(found);
  // Where this fails, the next start finds a row without a file and removes it.
  static_cast<void>(store_.run("DELETE FROM uploads WHERE id=?", {id}).ok());
}

void Uploads::remove_of_source(const std::string& source) {
  std::vector<std::string> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, upload] : uploads_)
      if (upload.source == source) ids.push_back(id);
  }
  for (const std::string& id : ids) remove(id);
}

std::vector<std::string> Uploads::sweep(int64_t before, const Used& used) {
  std::vector<std::string> ids, sources;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, upload] : uploads_) {
      std::error_code fault;
      const bool there = fs::exists(upload.path, fault);
      const bool unused = upload.created < before && !(upload.source.size() && used(upload.source));
      if (there && !unused) continue;
      ids.push_back(id);
      if (!upload.source.empty() && unused) sources.push_back(upload.source);
    }
  }
  for (const std::string& id : ids) remove(id);
  remove_strays();
  return sources;
}

// Files and folders of ours that no row of the database knows.
void Uploads::remove_strays() {
  const std::lock_guard lock(mutex_);
  std::error_code fault;
  std::vector<fs::path> strays;
  fs::directory_iterator entries(folder_, fault);
  for (; !fault && entries != fs::directory_iterator(); entries.increment(fault))
    if (!uploads_.contains(entries->path().filename().string())) strays.push_back(entries->path());
  for (const fs::path& stray : strays) fs::remove_all(stray, fault);
}

fs::path Uploads::scratch() const { return folder_ / ("body-" + random_id()); }

}  // namespace tensordiff::serve
