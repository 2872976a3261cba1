#include "cli/git_setup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/batch_state.h"
#include "cli/subprocess.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "# tensordiff begin: written by `tensordiff git install`\n";
constexpr std::string_view kEnd = "# tensordiff end\n";
constexpr std::string_view kPatterns[] = {"*.pt",  "*.pth",  "*.safetensors", "*.npy",
                                          "*.npz", "*.gguf", "*.ckpt",        "*.onnx"};

// In quotes for the shell that git starts.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// This very program, wherever it lies.
std::string program() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return shell_quoted(error ? "tensordiff" : self.string());
}

Result<std::string> git(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "git");
  Finished finished = TRY(run_program(arguments));
  if (finished.exit != 0) return Error("git {} failed", arguments[1]);
  while (finished.output.ends_with('\n')) finished.output.pop_back();
  return finished.output;
}

Result<std::string> attributes_file(bool global) {
  if (!global) return git({"rev-parse", "--git-path", "info/attributes"});
  const Finished set =
      TRY(run_program({"git", "config", "--global", "--type=path", "core.attributesFile"}));
  if (set.exit == 0) return set.output.substr(0, set.output.find('\n'));
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (folder && *folder) return std::string(folder) + "/git/attributes";
  if (home && *home) return std::string(home) + "/.config/git/attributes";
  return Error("neither XDG_CONFIG_HOME nor HOME is set");
}

Result<std::string> text_of(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return std::string();
  const Bytes bytes = TRY(map_file(file));
  return std::string(as_text(bytes.view));
}

struct Setting {
  std::string name, value;
};

std::vector<Setting> settings() {
  return {{"diff.tensordiff.command", program() + " git diff --"},
          {"diff.tensordiff.textconv", program() + " git textconv --"},
          {"diff.tensordiff.cachetextconv", "true"},
          {"diff.tensordiff.binary", "true"},
          {"difftool.tensordiff.cmd", program() + " --exit-zero -- \"$LOCAL\" \"$REMOTE\""}};
}

std::string_view scope(bool global) { return global ? "--global" : "--local"; }

}  // namespace

std::string without_attributes(std::string_view text) {
  const std::size_t begin = text.find(kBegin);
  if (begin == std::string_view::npos) return std::string(text);
  const std::size_t end = text.find(kEnd, begin);
  if (end == std::string_view::npos) return std::string(text);
  return std::string(text.substr(0, begin)) + std::string(text.substr(end + kEnd.size()));
}

std::string with_attributes(std::string_view text) {
  std::string out = without_attributes(text);
  if (!out.empty() && !out.ends_with('\n')) out += '\n';
  out += kBegin;
  for (const std::string_view pattern : kPatterns)
    out += fmt::format("{} diff=tensordiff\n", pattern);
  return out + std::string(kEnd);
}

Result<std::string> git_install(bool global) {
  const std::string file = TRY(attributes_file(global));
  const std::string before = TRY(text_of(file).in(printable(file)));
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  TRY(write_whole(file, with_attributes(before)));
  std::string told = fmt::format("{}: {}\n", printable(file), fmt::join(kPatterns, " "));
  for (const Setting& setting : settings()) {
    TRY(git({"config", std::string(scope(global)), setting.name, setting.value}));
    told += fmt::format("git config {} = {}\n", setting.name, printable(setting.value, 1000));
  }
  return told +
         "git diff, git log -p --ext-diff and git difftool -t tensordiff now compare tensors\n";
}

Result<std::string> git_uninstall(bool global) {
  const std::string file = TRY(attributes_file(global));
  const std::string before = TRY(text_of(file).in(printable(file)));
  const std::string after = without_attributes(before);
  if (after != before) TRY(write_whole(file, after));
  // A section that is not there is what was asked for.
  for (const std::string_view section : {"diff.tensordiff", "difftool.tensordiff"}) {
    const Finished found = TRY(run_program({"git", "config", std::string(scope(global)),
                                            "--get-regexp", fmt::format("^{}\\.", section)}));
    if (found.exit == 0)
      TRY(git({"config", std::string(scope(global)), "--remove-section", std::string(section)}));
  }
  return std::string("Removed tensordiff from the git config\n");
}

}  // namespace tensordiff
