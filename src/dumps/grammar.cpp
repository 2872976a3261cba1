#include "dumps/grammar.h"

#include <algorithm>
#include <charconv>

namespace tensordiff {
namespace {

constexpr std::size_t kDigitsMax = 9;  // So that all fit an int32_t.

struct FactName {
  std::string_view ending;
  RunFact fact;
};
constexpr FactName kFacts[] = {
    {"input_ids", RunFact::ids},       {"token_ids", RunFact::ids},
    {"positions", RunFact::positions}, {"position_ids", RunFact::positions},
    {"seq_lens", RunFact::lengths},    {"req_pool_indices", RunFact::other},
    {"rids", RunFact::other},          {"cu_seqlens_q", RunFact::other},
    {"cu_seqlens_kv", RunFact::other}, {"attention_mask", RunFact::other},
    {"qkv_format", RunFact::other},    {"request_ids", RunFact::other},
};

}  // namespace

std::optional<int32_t> whole_number(std::string_view text) {
  int32_t number = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || text.size() > kDigitsMax || text[0] == '-') return std::nullopt;
  const auto [after, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && after == end ? std::optional(number) : std::nullopt;
}

std::optional<int32_t> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return whole_number(text.substr(prefix.size()));
}

std::string_view take_until(std::string_view& text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + separator.size());
  return part;
}

RunFact fact_in(const Tensor& tensor, std::string_view path) {
  if (!is_integer(tensor.view.dtype)) return RunFact::none;
  const std::string_view last = path.substr(path.find_last_of("./") + 1);
  const auto found = std::ranges::find(kFacts, last, &FactName::ending);
  return found == std::end(kFacts) ? RunFact::none : found->fact;
}

bool is_rope_module(std::string_view path) {
  const std::string_view last = path.substr(path.rfind('.') + 1);
  return last == "rotary_emb" || last == "rope" || last == "rotary";
}

int64_t order_by_role(int64_t layer, Role role) {
  return layer * static_cast<int64_t>(kRoles) + static_cast<int64_t>(role);
}

std::optional<int32_t> take_output(std::string_view& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const std::optional<int32_t> number = whole_number(path.substr(dot + 1));
  if (number) path = path.substr(0, dot);
  return number;
}

}  // namespace tensordiff
