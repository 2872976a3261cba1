// The words for passes: chunks of a prompt and steps of decoding, as those count who made the run.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "report/token_reach.h"

namespace tensordiff {
namespace {

std::string ordinal(std::size_t index) {
  constexpr std::array<std::string_view, 10> kWords = {"first", "second", "third",   "fourth",
                                                       "fifth", "sixth",  "seventh", "eighth",
                                                       "ninth", "tenth"};
  if (index < kWords.size()) return std::string(kWords[index]);
  const std::size_t number = index + 1, last = number % 10;
  const bool teen = number % 100 >= 11 && number % 100 <= 13;
  const char* end = teen ? "th" : last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
  return fmt::format("{}{}", number, end);
}

// What one pass computed of a sequence.
struct InPass {
  std::size_t tokens = 0, apart = 0;

  bool all() const { return apart == tokens; }
};

// The passes of one sequence: chunks of its prompt, then single tokens.
struct Timeline {
  std::vector<InPass> parts;
  std::size_t chunks = 0;

  // "second chunk", "third decode step".
  std::string name(std::size_t part) const {
    return part < chunks ? fmt::format("{} chunk", ordinal(part))
                         : fmt::format("{} decode step", ordinal(part - chunks));
  }

  // Empty where nothing of it differs, or no words fit.
  std::string text() const {
    const auto differs = [](const InPass& part) { return part.apart > 0; };
    const auto first = std::ranges::find_if(parts, differs);
    if (parts.size() < 2 || first == parts.end()) return "";
    const auto at = static_cast<std::size_t>(first - parts.begin());
    const bool alone = std::none_of(first + 1, parts.end(), differs);
    const std::string prompt = chunks == 1 ? "the prompt" : "the " + name(at);
    if (alone) return (first->all() ? "" : "in ") + (at < chunks ? prompt : "the " + name(at));
    if (!std::all_of(first, parts.end(), [](const InPass& part) { return part.all(); })) return "";
    if (at == chunks) return "all decode steps";
    return at == 0 ? "" : fmt::format("from the {} on", name(at));
  }
};

std::map<int32_t, Timeline> timelines_of(const TokenRows& rows,
                                         const std::vector<RunToken>& tokens) {
  std::map<int32_t, std::map<int32_t, InPass>> by_pass;
  for (uint64_t row = 0; row < tokens.size(); ++row) {
    InPass& part = by_pass[tokens[row].sequence][tokens[row].pass];
    ++part.tokens;
    part.apart += rows.contains(row);
  }
  std::map<int32_t, Timeline> timelines;
  for (const auto& [sequence, parts] : by_pass) {
    Timeline& timeline = timelines[sequence];
    for (const auto& [pass, part] : parts) {
      // A prompt has one chunk at least; what follows with one token each is decoding.
      if (timeline.parts.empty() || part.tokens > 1) timeline.chunks = timeline.parts.size() + 1;
      timeline.parts.push_back(part);
    }
  }
  return timelines;
}

}  // namespace

std::string passes_text(const TokenRows& rows, const std::vector<RunToken>& tokens) {
  // Without positions, passes are all that is known, and reach_text() names them.
  if (!std::ranges::all_of(tokens, &RunToken::placed)) return "";
  std::string found;
  for (const auto& [sequence, timeline] : timelines_of(rows, tokens)) {
    const bool differs =
        std::ranges::any_of(timeline.parts, [](const InPass& p) { return p.apart; });
    if (!differs) continue;
    const std::string text = timeline.text();
    if (text.empty() || (!found.empty() && text != found)) return "";
    found = text;
  }
  return found;
}

}  // namespace tensordiff
