// tensordiff config: which settings are in force here, and where each of them comes from.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "cli/config.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "report/table.h"

namespace tensordiff {
namespace {

constexpr Option kOptions[] = {
    {"-o,--output", "FORMAT", "text (default) or json", set_text_or_json},
};
constexpr OptionGroup kGroup = {"output", kOptions};
// Other options may be given, to see what they override.
constexpr const OptionGroup* kGroups[] = {&kGroup,
                                          &option_groups::input,
                                          &option_groups::pairing,
                                          &option_groups::tolerance,
                                          &option_groups::what,
                                          &option_groups::diagnosis,
                                          &option_groups::analyses,
                                          &option_groups::speed};

struct Line {
  std::string key, value, origin;
  bool overridden = false;
  bool ignored = false;
};

std::vector<Line> lines_of(const Config& config, const Settings& settings) {
  std::vector<Line> lines;
  for (const ConfigEntry& entry : config.entries) {
    const std::string value = entry.values.empty()
                                  ? (entry.off ? "false" : "true")
                                  : fmt::format("{}", fmt::join(entry.values, ", "));
    lines.push_back(
        {entry.key, value, fmt::format("{}:{}", entry.file, entry.line), false, entry.ignored});
  }
  for (const Settings::Given& given : settings.given)
    if (given.origin.empty() && given.name != "output")
      lines.push_back({given.name, given.value.empty() ? "true" : given.value, "command line"});
  // Those that may be repeated add up; of the others the last one wins.
  constexpr std::string_view kRepeatable[] = {"path", "threshold"};
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::ranges::find(kRepeatable, lines[i].key) != std::end(kRepeatable)) continue;
    if (!lines[i].ignored) last[lines[i].key] = i;
  }
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (const auto found = last.find(lines[i].key); found != last.end())
      lines[i].overridden = found->second != i && !lines[i].ignored;
  return lines;
}

std::string text_of(const Config& config, const std::vector<Line>& lines,
                    const Settings& settings) {
  const Style style(wants_color(settings));
  std::string out;
  for (const Config::File& file : config.files)
    out +=
        fmt::format("{}  {}{}\n", style(Tone::dim, file.found ? "read   " : "no file"),
                    printable(file.path, 1000),
                    file.found && !file.trusted ? "  (not trusted: tensordiff config trust)" : "");
  if (lines.empty()) return out + "Nothing is set: every option has its default.\n";
  Table table({{"option"}, {"value"}, {"from"}, {""}});
  for (const Line& line : lines) {
    const bool in_force = !line.overridden && !line.ignored;
    table.add({{printable(line.key), in_force ? Tone::bold : Tone::dim},
               {printable(line.value), in_force ? Tone::plain : Tone::dim},
               {printable(line.origin, 1000), Tone::dim},
               {line.ignored      ? "ignored: not trusted"
                : line.overridden ? "overridden"
                                  : "",
                Tone::dim}});
  }
  return out + "\n" + table.render(style, output_width());
}

std::string json_of(const Config& config, const std::vector<Line>& lines) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("files").begin_array();
  for (const Config::File& file : config.files)
    json.begin_object()
        .member("path", file.path)
        .member("found", file.found)
        .member("trusted", file.trusted)
        .end_object();
  json.end_array().key("settings").begin_array();
  for (const Line& line : lines)
    json.begin_object()
        .member("option", line.key)
        .member("value", line.value)
        .member("from", line.origin)
        .member("overridden", line.overridden)
        .member("ignored", line.ignored)
        .end_object();
  json.end_array().end_object();
  return json.take() + "\n";
}

// config trust [FOLDER], config untrust [FOLDER]
int run_trust(const std::vector<std::string>& words, const Settings& settings) {
  constexpr std::string_view kActions[] = {"trust", "untrust"};
  const Result<std::size_t> action = parse_word(words[0], kActions);
  if (!action.ok()) return fail(action.error());
  if (words.size() > 2) return fail(Error("config {} takes one folder", words[0]));
  const bool trusted = action.value() == 0;
  const Result<std::string> file = set_trust(words.size() == 2 ? words[1] : "", trusted);
  if (!file.ok()) return fail(file.error());
  const Result<void> written =
      deliver(fmt::format("{}: {}\n", printable(file.value(), 1000),
                          trusted ? "trusted as it is now" : "not trusted"),
              settings);
  return written.ok() ? kSame : fail(written.error());
}

int run(const Settings& settings, const std::vector<std::string>& inputs) {
  if (!inputs.empty()) return run_trust(inputs, settings);
  const Result<Config> config = settings.config ? load_config() : Config();
  if (!config.ok()) return fail(config.error());
  const std::vector<Line> lines = lines_of(config.value(), settings);
  const Result<void> written =
      deliver(settings.output == "json" ? json_of(config.value(), lines)
                                        : text_of(config.value(), lines, settings),
              settings);
  return written.ok() ? kSame : fail(written.error());
}

}  // namespace

constinit const Command commands::config = {
    .name = "config",
    .usage = "tensordiff config [options] | trust [FOLDER] | untrust [FOLDER]",
    .summary = "show the settings in effect; trust those of a folder",
    .groups = kGroups,
    .run = run,
};

}  // namespace tensordiff
