// tensordiff git install|uninstall|diff|textconv: tensor files in git.
//
// `diff` and `textconv` are what git calls. Neither may fail for a file that is no tensor file (a
// pointer of git-lfs, say): git would stop the whole diff, so they say what is wrong instead.

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/git_setup.h"
#include "cli/terminal.h"
#include "compare/comparison.h"
#include "formats/format.h"
#include "report/wording.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr Option kOptions[] = {
    {"--global", "", "configure git for all repositories of the user",
     [](Settings& settings, std::string_view) -> Result<void> {
       settings.global = true;
       return {};
     }},
};
constexpr OptionGroup kGroup = {"git", kOptions};
constexpr const OptionGroup* kGroups[] = {&kGroup, &option_groups::tolerance};

// Of the values of all elements in their order: what mean and std do not see changes it.
std::string checksum(const Tensor& tensor) {
  const Result<Reader> reader = Reader::open(tensor.view);
  if (!reader.ok()) return "unreadable";
  constexpr uint64_t kBlock = 1 << 15;
  const uint64_t elements = element_count(tensor.view.shape).value_or(0);
  const std::size_t parts = is_complex(tensor.view.dtype) ? 2 : 1;
  std::vector<double> values(kBlock * parts);
  uint32_t crc = 0;
  for (uint64_t at = 0; at < elements; at += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, elements - at));
    reader.value().components(at, count, values.data());
    crc = libdeflate_crc32(crc, values.data(), count * parts * sizeof(double));
  }
  return reader.value().intact() ? fmt::format("{:08x}", crc) : "cut short";
}

// A line for each tensor, the same for the same content wherever the file lies.
std::string textconv(const std::string& file, const Settings& settings) {
  const Result<Catalog> catalog = open_model(file, settings.open);
  if (!catalog.ok()) return "no tensors: " + printable(catalog.error().message(), 1000) + "\n";
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : catalog.value().tensors) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {}, [](const Tensor* tensor) { return tensor->name; });
  std::string out;
  for (const Tensor* tensor : tensors) {
    out += fmt::format("{}  {} {}", printable(tensor->name), name_of(tensor->view.dtype),
                       shape_text(tensor->view.shape));
    const Result<Stats> stats = statistics(tensor->view);
    if (!tensor->fault.empty() || !stats.ok()) {
      out += "  unreadable\n";
      continue;
    }
    const Stats& s = stats.value();
    out += fmt::format("  mean {}  std {}  min {}  max {}", number_or_dash(s.mean),
                       number_or_dash(s.std), number_or_dash(s.min), number_or_dash(s.max));
    if (s.nan + s.inf > 0) out += fmt::format("  nan {}  inf {}", s.nan, s.inf);
    out += fmt::format("  crc {}\n", checksum(*tensor));
  }
  return out;
}

// As git calls a diff driver: path old-file old-hex old-mode new-file new-hex new-mode.
std::string diff(const std::vector<std::string>& words, const Settings& settings) {
  const std::string path = printable(words[0], 1000), &before = words[1], &after = words[4];
  std::string out = fmt::format("tensordiff a/{} b/{}\n", path, path);
  if (before == "/dev/null" || after == "/dev/null") {
    const bool added = before == "/dev/null";
    const std::string text = textconv(added ? after : before, settings);
    for (const std::string_view line : split(text, '\n'))
      if (!line.empty()) out += fmt::format("{}{}\n", added ? '+' : '-', line);
    return out;
  }
  const Result<Report> report = compare_inputs(settings, {before, after}, {});
  if (!report.ok())
    return out + "not compared: " + printable(report.error().message(), 1000) + "\n";
  Report shown = report.value();
  shown.a.path = "a/" + words[0];
  shown.b.path = "b/" + words[0];
  RenderOptions options = settings.render;
  options.color = wants_color(settings);
  options.width = output_width();
  return out + renderers::text.render(shown, options);
}

Result<std::string> answer(const Settings& settings, const std::vector<std::string>& words) {
  const std::string action = words.empty() ? "" : words[0];
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (action == "install" && rest.empty()) return git_install(settings.global);
  if (action == "uninstall" && rest.empty()) return git_uninstall(settings.global);
  if (action == "textconv" && rest.size() == 1) return textconv(rest[0], settings);
  // A file that was renamed comes with two more.
  if (action == "diff" && (rest.size() == 7 || rest.size() == 9)) return diff(rest, settings);
  return Error("git needs install or uninstall; diff and textconv are for git itself");
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  const Result<std::string> text = answer(settings, inputs);
  if (!text.ok()) return fail(text.error());
  const Result<void> written = deliver(text.value(), settings);
  return written.ok() ? kSame : fail(written.error());
}

}  // namespace

constinit const Command commands::git = {
    .name = "git",
    .usage = "tensordiff git install|uninstall [--global]",
    .summary = "make git diff, git log -p and git difftool compare tensors",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
