// Files that come in over HTTP: in chunks, in any order, kept in a private folder.
//
// A chunk is written to its place in the file and then marked in the database; one that was cut
// short is simply sent again. The name that a client gives is for people: the file lies in a folder
// of its own under a name made of its harmless letters.

#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/store.h"

namespace tensordiff::serve {

// Writes a piece of a body to its place in a file.
class BodyFile {
 public:
  static Result<BodyFile> open(const std::filesystem::path& path, uint64_t offset);
  BodyFile(BodyFile&& other) noexcept;
  BodyFile& operator=(BodyFile&&) = delete;
  ~BodyFile();

  Result<void> append(std::string_view piece);
  uint64_t written() const { return written_; }
  Result<void> sync() const;

 private:
  BodyFile(int file, uint64_t offset) : file_(file), offset_(offset) {}
  int file_;
  uint64_t offset_;
  uint64_t written_ = 0;
};

struct Upload {
  std::string id, name;
  std::filesystem::path path;
  uint64_t size = 0, chunk = 0;
  std::vector<bool> received;
  std::string source;  // Once it is complete.
  int64_t created = 0;

  uint64_t chunk_bytes(uint64_t which) const;
  bool complete() const;
  uint64_t missing_bytes() const;
};

class Uploads {
 public:
  static constexpr uint64_t kChunkBytes = 32 << 20;

  Uploads(Store& store, std::filesystem::path folder, uint64_t limit)
      : store_(store), folder_(std::move(folder)), limit_(limit) {}

  // Those of earlier runs.
  Result<void> load();

  uint64_t limit() const { return limit_; }
  // Whether the disk has room for so many bytes more, beside all that was promised already and has
  // not come yet.
  bool has_room(uint64_t bytes) const;
  // Keeps room for so many bytes as long as the promise lives; nothing where there is none.
  std::shared_ptr<void> promise(uint64_t bytes);

  // Keeps room for the whole of it; an error where there is none.
  Result<Upload> begin(const std::string& name, uint64_t size);
  std::optional<Upload> find(const std::string& id) const;
  Result<void> received(const std::string& id, uint64_t chunk);
  Result<void> set_source(const std::string& id, const std::string& source);
  // Removes the file and what is known of it.
  void remove(const std::string& id);
  void remove_of_source(const std::string& source);
  // At the start: removes what a killed server left behind, and what was begun before `before` and
  // is in no session. Gives back the sources that are gone by that.
  using Used = std::function<bool(const std::string& source)>;
  std::vector<std::string> sweep(int64_t before, const Used& used);

  // A new private file for a body that is no chunk.
  std::filesystem::path scratch() const;

 private:
  bool has_room_unlocked(uint64_t bytes) const;
  void remove_strays();

  Store& store_;
  std::filesystem::path folder_;
  uint64_t limit_;
  mutable std::mutex mutex_;
  std::map<std::string, Upload> uploads_;
  uint64_t promised_ = 0;  // Beside uploads.
};

// Letters, digits, dots, dashes and underscores of the last part of a name; never empty.
std::string harmless_name(std::string_view name);

}  // namespace tensordiff::serve
