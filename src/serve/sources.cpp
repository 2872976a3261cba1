#include "serve/sources.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "naming/naming.h"
#include "report/json_values.h"
#include "serve/guard.h"
#include "serve/session.h"

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

constexpr std::chrono::seconds kLookAgain{1};
constexpr std::size_t kProblemsMax = 1000;
constexpr std::size_t kTensorsKept = 20'000;  // They take some 10 MB, and a moment to open again.

struct FileFacts {
  std::string name;
  uint64_t size = 0;
  uint64_t time = 0;

  auto operator<=>(const FileFacts&) const = default;
};

std::vector<FileFacts> files_of(const std::string& path, const Roots& roots) {
  std::vector<FileFacts> files;
  const Result<Roots::Entry> entry = roots.look(path);
  if (!entry.ok()) return files;
  if (!entry.value().folder) return {{"", entry.value().bytes, entry.value().time}};
  const Result<void> walked = roots.walk(path, [&](Roots::Entry file) {
    files.push_back({std::move(file.name), file.bytes, file.time});
    return true;
  });
  if (!walked.ok()) return {};
  std::ranges::sort(files);
  return files;
}

// Tells whether files changed: their names, sizes and times. Empty where there is nothing.
std::string fingerprint_of(const std::string& path, const Roots& roots) {
  const std::vector<FileFacts> files = files_of(path, roots);
  if (files.empty()) return "";
  Hash hash;
  for (const FileFacts& file : files) {
    hash.add(file.name);
    hash.add(file.size);
    hash.add(file.time);
  }
  return hash.text();
}

}  // namespace

void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void Hash::add(std::string_view text) {
  for (const char letter : text) {
    state_ ^= static_cast<unsigned char>(letter);
    state_ *= 1099511628211ULL;
  }
  add(uint64_t{text.size()});
}

void Hash::add(uint64_t number) {
  for (int i = 0; i < 8; ++i) {
    state_ ^= (number >> (8 * i)) & 0xff;
    state_ *= 1099511628211ULL;
  }
}

std::string Hash::text() const { return fmt::format("{:016x}", state_); }

Result<Source::Opened> Source::load(const OpenOptions& options) {
  Opened opened;
  opened.files = files_of(path_, options.roots).size();
  opened.fingerprint = fingerprint_of(path_, options.roots);
  Result<Catalog> read = open_model(path_, options);
  if (!read.ok()) {
    // Errors speak of the name that the user knows, not of where an upload lies.
    std::string message = read.error().message();
    if (upload_ && message.starts_with(path_)) message.replace(0, path_.size(), name_);
    return Error("{}", message);
  }
  Catalog catalog = std::move(read).value();
  catalog.path = name_;
  opened.format = catalog.format;
  opened.tensors = catalog.tensors.size();
  opened.bytes = catalog.bytes();
  opened.elements = catalog.elements();
  opened.problems = catalog.problems;
  if (opened.problems.size() > kProblemsMax) opened.problems.resize(kProblemsMax);
  opened.catalog = std::make_shared<const Catalog>(std::move(catalog));
  give_back_memory();
  Opened copy = opened;
  opened_ = std::move(copy);
  return opened;
}

Result<Source::Opened> Source::open(const OpenOptions& options) {
  const std::lock_guard lock(mutex_);
  if (opened_.catalog) return opened_;
  return load(options);
}

Result<Source::Opened> Source::reopen(const OpenOptions& options) {
  const std::lock_guard lock(mutex_);
  if (opened_.catalog && opened_.fingerprint == fingerprint_of(path_, options.roots))
    return opened_;
  seen_at_ = {};
  return load(options);
}

Result<Source::Opened> Source::facts(const OpenOptions& options) {
  const std::lock_guard lock(mutex_);
  if (!opened_.fingerprint.empty()) return opened_;
  return load(options);
}

void Source::let_go() {
  const std::lock_guard lock(mutex_);
  if (opened_.tensors > kTensorsKept) opened_.catalog.reset();
}

std::string Source::fingerprint(const Roots& roots) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - seen_at_ > kLookAgain) {
    seen_ = fingerprint_of(path_, roots);
    seen_at_ = now;
  }
  return seen_;
}

Source::State Source::state(const Roots& roots) {
  const std::string now = fingerprint(roots);
  if (now.empty()) return State::gone;
  const std::lock_guard lock(mutex_);
  return !opened_.fingerprint.empty() && opened_.fingerprint != now ? State::stale : State::ready;
}

std::string_view name_of(Source::State state) {
  constexpr std::string_view kNames[] = {"ready", "stale", "gone"};
  return kNames[static_cast<std::size_t>(state)];
}

Result<void> Sources::load() {
  const std::lock_guard lock(mutex_);
  return store_.read("SELECT id, name, path, kind FROM sources", {}, [&](const Store::Row& row) {
    const std::string id = row.text(0);
    sources_[id] = std::make_shared<Source>(id, row.text(1), row.text(2), row.text(3) == "upload");
  });
}

Result<SourcePtr> Sources::open(const std::string& path, const std::string& name, bool upload) {
  SourcePtr source;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, known] : sources_)
      if (known->path() == path) source = known;
  }
  const bool fresh = !source;
  if (fresh) source = std::make_shared<Source>(random_id(), name, path, upload);
  TRY(source->reopen(options_));
  if (!fresh) return source;
  TRY(store_.run("INSERT INTO sources VALUES(?,?,?,?,?)",
                 {source->id(), source->name(), upload ? "upload" : "path", path, now_ms()}));
  const std::lock_guard lock(mutex_);
  sources_[source->id()] = source;
  return source;
}

SourcePtr Sources::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sources_.find(id);
  return found == sources_.end() ? nullptr : found->second;
}

std::vector<SourcePtr> Sources::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<SourcePtr> result;
  for (const auto& [id, source] : sources_) result.push_back(source);
  return result;
}

Result<void> Sources::remove(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    sources_.erase(id);
  }
  return store_.run("DELETE FROM sources WHERE id=?", {id});
}

void write_source(JsonWriter& json, Source& source, const OpenOptions& options) {
  json.begin_object().member("id", source.id()).member("name", source.name());
  json.member("kind", source.upload() ? "upload" : "path").key("path");
  source.upload() ? json.null() : json.value(source.path());
  const Source::State state = source.state(options.roots);
  const Result<Source::Opened> facts = source.facts(options);
  if (!facts.ok()) {
    for (const char* key : {"format", "files", "bytes", "tensors", "elements"})
      json.key(key).null();
    json.member("state", state == Source::State::gone ? name_of(state) : "unreadable")
        .key("problems")
        .begin_array();
    json.begin_object().member("where", "").member("message", facts.error().message());
    json.end_object().end_array().end_object();
    return;
  }
  const Source::Opened& known = facts.value();
  json.member("format", known.format).member("files", known.files).member("bytes", known.bytes);
  json.member("tensors", known.tensors).member("elements", known.elements);
  json.member("state", name_of(state)).key("problems");
  write_problems(json, known.problems);
  json.end_object();
}

namespace {

// A file that holds just one tensor gives it its name, as in a folder.
void name_after_file(Catalog& catalog, std::size_t first, const std::string& path) {
  for (std::size_t i = first; i < catalog.tensors.size(); ++i)
    if (catalog.tensors[i].name.empty()) catalog.tensors[i].name = fs::path(path).stem().string();
}

void append(Catalog& catalog, const Catalog& more) {
  const std::size_t first = catalog.tensors.size();
  catalog.path += (catalog.path.empty() ? "" : ", ") + more.path;
  catalog.tensors.insert(catalog.tensors.end(), more.tensors.begin(), more.tensors.end());
  name_after_file(catalog, first, more.path);
  for (const Problem& problem : more.problems)
    catalog.problems.push_back(
        {more.path + ": " + problem.where, problem.message, problem.severity});
  catalog.metadata.insert(catalog.metadata.end(), more.metadata.begin(), more.metadata.end());
  catalog.documents.insert(catalog.documents.end(), more.documents.begin(), more.documents.end());
}

}  // namespace

Catalog merged(const std::vector<Source::Opened>& parts) {
  // One input is all that it is on the command line, too: with what it says beside its tensors.
  Catalog catalog;
  if (parts.size() == 1) {
    catalog = *parts[0].catalog;
    name_after_file(catalog, 0, catalog.path);
  } else {
    catalog.format = "several";
    for (const Source::Opened& part : parts) append(catalog, *part.catalog);
  }
  make_names_unique(catalog);
  read_places(catalog);
  return catalog;
}

}  // namespace tensordiff::serve
