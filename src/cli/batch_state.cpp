#include "cli/batch_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/base64.h"
#include "base/build_info.h"
#include "base/byte_source.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "tensordiff.batch-state/1";
constexpr std::size_t kOptionFileMax = 1 << 20;

void stamp_file(const fs::path& path, std::string& out) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  const auto time = fs::last_write_time(path, error).time_since_epoch().count();
  out += fmt::format("{}\n{} {}\n", path.string(), error ? 0 : size, time);
}

void stamp_input(const std::string& path, std::string& out) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return stamp_file(path, out);
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator each(path, error), end; !error && each != end;
       each.increment(error))
    files.push_back(each->path());
  std::ranges::sort(files);
  for (const fs::path& file : files) stamp_file(file, out);
}

// The value, and what a file of that name holds: a changed tolerance file is a changed option.
void stamp_option(std::string_view name, const std::string& value, std::string& out) {
  out += fmt::format("{}={}\n", name, value);
  const Option* option = find_option(commands::compare, name);
  std::error_code error;
  if (!option || option->argument != "FILE" || !fs::is_regular_file(value, error)) return;
  const Result<Bytes> bytes = map_file(value);
  if (bytes.ok() && bytes.value().view.size() <= kOptionFileMax) out += as_text(bytes.value().view);
}

}  // namespace

std::string stamp_of(const BatchRun& run, const std::vector<Settings::Given>& given) {
  std::string text = fmt::format("{}\n", kVersion);
  stamp_input(run.a, text);
  stamp_input(run.b, text);
  for (const ConfigEntry& entry : run.options) {
    text += fmt::format("{}{}\n", entry.off ? "no-" : "", entry.key);
    for (const std::string& value : entry.values) stamp_option(entry.key, value, text);
  }
  // How the table is shown changes nothing in it.
  constexpr std::string_view kShown[] = {"output", "out", "resume", "color", "quiet", "threads"};
  for (const Settings::Given& each : given)
    if (std::ranges::find(kShown, each.name) == std::end(kShown))
      stamp_option(each.name, each.value, text);
  return base64(sha256(text));
}

Result<BatchState> BatchState::open(std::string path) {
  BatchState state;
  state.path_ = std::move(path);
  std::error_code error;
  if (state.path_.empty() || !fs::exists(state.path_, error)) return state;
  const Bytes bytes = TRY(map_file(state.path_));
  const Json json = TRY(Json::parse(as_text(bytes.view)));
  if (json["schema"].string() != kSchema) return Error("not the state of a batch");
  for (const Json& each : json["done"].array()) {
    BatchRow row = TRY(read_row(each["row"]));
    const std::string name = row.name;
    state.done_[name] = {std::string(each["stamp"].string()), std::move(row)};
  }
  return state;
}

std::optional<BatchRow> BatchState::find(const std::string& name, const std::string& stamp) const {
  const auto found = done_.find(name);
  if (found == done_.end() || found->second.stamp != stamp) return std::nullopt;
  if (found->second.row.status > 1) return std::nullopt;
  return found->second.row;
}

Result<void> BatchState::add(const std::string& stamp, const BatchRow& row) {
  if (path_.empty()) return {};
  done_[row.name] = {stamp, row};
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", kSchema).key("done").begin_array();
  for (const auto& [name, done] : done_) {
    json.begin_object().member("stamp", done.stamp).key("row");
    write_row(json, done.row);
    json.end_object();
  }
  json.end_array().end_object();
  return write_whole(path_, json.take() + "\n");
}

Result<void> write_whole(const std::string& path, std::string_view text) {
  const std::string draft = fmt::format("{}.{}.tmp", path, getpid());
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const auto failed = [&] {
    const int reason = errno;
    if (file >= 0) ::unlink(draft.c_str());
    return Error("{}: cannot write it: {}", printable(path), std::strerror(reason));
  };
  if (file < 0) return failed();
  bool written = true;
  while (written && !text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    written = count >= 0 || errno == EINTR;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  // On the disk before it gets its name: a crash must not leave an empty file under it.
  written = written && ::fsync(file) == 0;
  written = ::close(file) == 0 && written;
  if (!written || std::rename(draft.c_str(), path.c_str()) != 0) return failed();
  return {};
}

}  // namespace tensordiff
