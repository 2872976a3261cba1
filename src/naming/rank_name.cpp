#include "naming/rank_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 10> kTensorParallel = {
    "tensor_model_parallel_rank",
    "tensor_parallel_rank",
    "model_parallel_rank",
    "tp_rank",
    "mp_rank",
    "tensor_rank",
    "tp",
    "mp",
    "consolidated",  // consolidated.00.pth of Meta's Llama.
    "model",         // layer_02-model_00-model_states.pt, and no other.
};
constexpr std::string_view kStates = "-model_states";
constexpr std::array<std::string_view, 4> kPlain = {"data_parallel_rank", "dp_rank", "dp", "rank"};
constexpr std::array<std::string_view, 4> kPipeline = {"pipeline_model_parallel_rank",
                                                       "pipeline_parallel_rank", "pp_rank", "pp"};
constexpr std::array<std::string_view, 4> kOtherKinds = {"pp_", "ep_", "cp_", "lora_"};
constexpr std::size_t kDigitsMax = 6;

bool is_separator(char c) { return c == '/' || c == '.' || c == '_' || c == '-'; }

bool ends_at(std::string_view text, std::size_t at) {
  return at == text.size() || is_separator(text[at]);
}

// The digits from `at` on, which must end as a word ends.
std::string_view number_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  if (end == at || end - at > kDigitsMax || !ends_at(text, end)) return {};
  return text.substr(at, end - at);
}

uint64_t value_of(std::string_view digits) {
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The name without [first, end) and without a separator that it then has twice or at an end.
std::string without(std::string_view name, std::size_t first, std::size_t end) {
  std::string_view before = name.substr(0, first);
  std::string_view after = name.substr(end);
  const bool stronger = !after.empty() && after[0] == '.' && before.ends_with('_');
  const bool keeps = !after.empty() && (after[0] == '/' || before.ends_with('-') || stronger);
  if (!after.empty() && (before.empty() || !keeps))
    after.remove_prefix(1);
  else if (!before.empty())
    before.remove_suffix(1);
  return std::string(before) + std::string(after);
}

std::optional<RankName> word_at(std::string_view name, std::string_view text, std::size_t at,
                                std::string_view word) {
  if (!text.substr(at).starts_with(word)) return std::nullopt;
  std::size_t digits = at + word.size();
  const bool dotted = word == "consolidated" && text.substr(digits).starts_with('.');
  if (digits < text.size() && (text[digits] == '_' || text[digits] == '-' || dotted)) ++digits;
  const std::string_view number = number_at(text, digits);
  if (number.empty()) return std::nullopt;
  std::size_t end = digits + number.size();

  const bool states = text.substr(end).starts_with(kStates);
  if (word == "model" && !states) return std::nullopt;
  if (word == "model") end += kStates.size();
  RankName found{"", value_of(number)};
  std::string stage;
  if (word.ends_with("_rank") && end < text.size() && text[end] == '_') {
    const std::string_view second = number_at(text, end + 1);
    if (value_of(second) > 0) stage = fmt::format("pp_{}/", value_of(second));
    if (!second.empty()) end += 1 + second.size();
  }
  found.rest = stage + without(name, at, end);
  return found;
}

bool is_other_kind(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  return std::ranges::any_of(kOtherKinds, [&](auto kind) { return before.ends_with(kind); });
}

std::optional<RankName> find_word(std::string_view name, std::string_view text,
                                  std::span<const std::string_view> words) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && !is_separator(text[at - 1])) continue;
    if (is_other_kind(text, at)) continue;
    for (const std::string_view word : words) {
      std::optional<RankName> found = word_at(name, text, at, word);
      if (found && !found->rest.empty()) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<RankName> parse_rank(std::string_view name) {
  const std::string text = lower(name);
  if (text.find("rank") == std::string::npos && text.find("tp") == std::string::npos &&
      text.find("mp") == std::string::npos && text.find("dp") == std::string::npos &&
      text.find("consolidated") == std::string::npos && text.find(kStates) == std::string::npos)
    return std::nullopt;
  if (std::optional<RankName> found = find_word(name, text, kTensorParallel)) return found;
  return find_word(name, text, kPlain);
}

std::optional<RankName> parse_stage(std::string_view name) {
  const std::string text = lower(name);
  if (text.find("pp") == std::string::npos && text.find("pipeline") == std::string::npos)
    return std::nullopt;
  return find_word(name, text, kPipeline);
}

}  // namespace tensordiff
