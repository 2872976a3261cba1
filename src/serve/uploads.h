// Files that come in over HTTP: in chunks, in any order, kept in a private folder.
//
// A chunk is written to its place in the file and then marked in the database; one that was cut
// short is simply sent again. The name that a client gives is for people: the file lies in a folder
// of its own under a name made of its harmless letters.

#pragma once

#include <filesystem>
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
};

class Uploads {
 public:
  static constexpr uint64_t kChunkBytes = 32 << 20;

  Uploads(Store& store, std::filesystem::path folder, uint64_t limit)
      : store_(store), folder_(std::move(folder)), limit_(limit) {}

  // Those of earlier runs.
  Result<void> load();

  uint64_t limit() const { return limit_; }
  // Whether the disk has room for so many bytes more.
  bool has_room(uint64_t bytes) const;

  Result<Upload> begin(const std::string& name, uint64_t size);
  std::optional<Upload> find(const std::string& id) const;
  Result<void> received(const std::string& id, uint64_t chunk);
  Result<void> set_source(const std::string& id, const std::string& source);
  // Removes the file and what is known of it.
  void remove(const std::string& id);
  void remove_of_source(const std::string& source);
  // Removes what was begun and not used for so long.
  void remove_unused(int64_t before);

  // A new private file for a body that is no chunk.
  std::filesystem::path scratch() const;

 private:
  Store& store_;
  std::filesystem::path folder_;
  uint64_t limit_;
  mutable std::mutex mutex_;
  std::map<std::string, Upload> uploads_;
};

// Letters, digits, dots, dashes and underscores of the last part of a name; never empty.
std::string harmless_name(std::string_view name);

}  // namespace tensordiff::serve
