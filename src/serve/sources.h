// The inputs that the server has open: files and folders beneath the roots, and uploads.
//
// A source is a path. What it holds is read when it is needed and kept; when the files change on
// disk the source is stale until somebody asks to open it again. Whatever is read is read beneath
// the roots of this run, also where an earlier run with other roots made the source.

#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "formats/format.h"
#include "serve/store.h"

namespace tensordiff::serve {

// Very many tensors leave freed memory in pieces everywhere: back to the system with it.
void give_back_memory();

// A short text that is another one for other input, as far as chance allows.
class Hash {
 public:
  void add(std::string_view text);
  void add(uint64_t number);
  std::string text() const;

 private:
  uint64_t state_ = 14695981039346656037ULL;
};

class Source {
 public:
  Source(std::string id, std::string name, std::string path, bool upload)
      : id_(std::move(id)), name_(std::move(name)), path_(std::move(path)), upload_(upload) {}

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  bool upload() const { return upload_; }

  struct Opened {
    std::shared_ptr<const Catalog> catalog;  // Never nothing, but in facts().
    std::string fingerprint;                 // Of the files when they were opened.
    std::string format;
    uint64_t files = 0, tensors = 0, bytes = 0, elements = 0;
    std::vector<Problem> problems;
  };
  // What it holds; opens it where that was not done yet.
  Result<Opened> open(const OpenOptions& options);
  // Opens it again if its files changed.
  Result<Opened> reopen(const OpenOptions& options);
  // What is known of it without its tensors, which may be gone: `catalog` may be nothing.
  Result<Opened> facts(const OpenOptions& options);
  // Somebody has a copy of its tensors. Where there are very many, one is enough.
  void let_go();
  // Its files as they are now; looks at the disk at most once a second.
  std::string fingerprint(const Roots& roots);
  enum class State { ready, stale, gone };  // Stale: its files changed since they were opened.
  State state(const Roots& roots);

 private:
  Result<Opened> load(const OpenOptions& options);

  const std::string id_, name_, path_;
  const bool upload_;
  std::mutex mutex_;
  Opened opened_;
  std::string seen_;
  std::chrono::steady_clock::time_point seen_at_{};
};

std::string_view name_of(Source::State state);

using SourcePtr = std::shared_ptr<Source>;

class Sources {
 public:
  Sources(Store& store, OpenOptions options) : store_(store), options_(std::move(options)) {}

  // Those of earlier runs; none is opened.
  Result<void> load();

  // The source of a path, opened. The caller has checked that the path may be read.
  Result<SourcePtr> open(const std::string& path, const std::string& name, bool upload);
  SourcePtr find(const std::string& id) const;
  std::vector<SourcePtr> all() const;
  Result<void> remove(const std::string& id);

  const OpenOptions& options() const { return options_; }

 private:
  Store& store_;
  OpenOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, SourcePtr> sources_;
};

void write_source(JsonWriter& json, Source& source, const OpenOptions& options);

// The tensors of several sources as one input.
Catalog merged(const std::vector<Source::Opened>& parts);

}  // namespace tensordiff::serve
