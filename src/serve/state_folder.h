// The private folder of what lasts: the database and uploads. One server at a time has it.

#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace tensordiff::serve {

class StateFolder {
 public:
  // The folder named, or that of the user: $XDG_STATE_HOME/tensordiff. While another server has it,
  // a folder of our own that ends with us.
  static Result<StateFolder> open(const std::string& named);
  StateFolder(StateFolder&& other) noexcept
      : path_(std::move(other.path_)),
        lock_(std::exchange(other.lock_, -1)),
        passing_(std::exchange(other.passing_, false)) {}
  StateFolder& operator=(StateFolder&&) = delete;
  ~StateFolder();

  const std::filesystem::path& path() const { return path_; }
  bool passing() const { return passing_; }  // It ends with us.

 private:
  StateFolder(std::filesystem::path path, int lock, bool passing)
      : path_(std::move(path)), lock_(lock), passing_(passing) {}

  std::filesystem::path path_;
  int lock_;
  bool passing_;
};

}  // namespace tensordiff::serve
