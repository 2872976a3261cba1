#include "cli/trust.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/byte_source.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/terminal.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// "" where the environment does not tell where the user keeps such things.
std::string store_path() {
  std::string folder = variable("XDG_STATE_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.local/state";
  return folder.empty() ? "" : folder + "/tensordiff/trusted";
}

std::string hex_digest(std::string_view bytes) {
  std::string out;
  for (const char byte : sha256(bytes)) out += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return out;
}

// Of the path without links, so that a file is one file whichever way leads to it.
std::string key_of(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return hex_digest(error ? path : real.string());
}

// Of the file and of what it names. What is not a plain file is told by its name alone: nobody
// waits for a pipe.
Result<std::string> digest_of(const TrustedFile& file) {
  std::string all = hex_digest(file.content);
  for (const std::string& name : file.named) {
    all += hex_digest(name);
    std::error_code ignored;
    if (!fs::is_regular_file(name, ignored)) continue;
    const Bytes bytes = TRY(map_file(name).in(printable(name)));
    all += hex_digest(as_text(bytes.view));
  }
  return hex_digest(all);
}

struct Line {
  std::string_view digest, key, text;
};

// A store that is damaged trusts nobody.
std::vector<Line> lines_in(std::string_view store) {
  std::vector<Line> lines;
  for (const std::string_view text : split(store, '\n')) {
    const std::vector<std::string_view> words = split(text, ' ');
    if (words.size() >= 3 && words[0].size() == 64 && words[1].size() == 64)
      lines.push_back({words[0], words[1], text});
  }
  return lines;
}

Bytes read_store(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !fs::is_regular_file(path, ignored)) return {};
  Result<Bytes> bytes = map_file(path);
  return bytes.ok() ? std::move(bytes).value() : Bytes();
}

// Writes the store anew without what it said of a file, and with `added` instead.
Result<void> rewrite(const std::string& key, const std::string& added) {
  const std::string path = store_path();
  if (path.empty()) return Error("set XDG_STATE_HOME or HOME: there is no folder to keep it in");
  const Bytes store = read_store(path);
  std::string text;
  for (const Line& line : lines_in(as_text(store.view)))
    if (line.key != key) text += fmt::format("{}\n", line.text);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return Error("{}: {}", printable(path), error.message());
  // As a whole or not at all.
  Settings to_file;
  to_file.out = path + ".new";
  TRY(deliver(text + added, to_file));
  fs::permissions(to_file.out, fs::perms::owner_read | fs::perms::owner_write, error);
  if (!error) fs::rename(to_file.out, path, error);
  if (error) return Error("{}: {}", printable(path), error.message());
  return {};
}

}  // namespace

bool is_trusted(const TrustedFile& file) {
  const Bytes store = read_store(store_path());
  const std::string key = key_of(file.path);
  for (const Line& line : lines_in(as_text(store.view))) {
    if (line.key != key) continue;
    // Read only now: what nobody trusts does not choose which files are read.
    const Result<std::string> digest = digest_of(file);
    return digest.ok() && digest.value() == line.digest;
  }
  return false;
}

Result<void> trust(const TrustedFile& file) {
  const std::string key = key_of(file.path);
  const std::string digest = TRY(digest_of(file));
  return rewrite(key, fmt::format("{} {} {}\n", digest, key, printable(file.path, 4096)));
}

Result<void> distrust(const std::string& path) { return rewrite(key_of(path), ""); }

}  // namespace tensordiff
