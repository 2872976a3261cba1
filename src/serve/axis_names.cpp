#include "serve/axis_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace tensordiff::serve {
namespace {

// Nearly every tensor of a dump has an axis of tokens before its last one: as diagnose/ has it.
constexpr std::size_t kNearlyAllOf = 10, kNearlyAll = 9;

// The number of tokens of a run of a model, or 0.
uint64_t tokens_of(const Report& report) {
  std::map<uint64_t, std::size_t> seen;
  std::size_t tensors = 0;
  for (const PairRow& pair : report.pairs) {
    if (!pair.verdict || pair.shape.size() < 2) continue;  // Only steps of a dump are judged.
    ++tensors;
    for (const uint64_t size : std::set<uint64_t>(pair.shape.begin(), pair.shape.end() - 1))
      ++seen[size];
  }
  uint64_t tokens = 0;
  for (const auto& [size, count] : seen)
    if (size > 1 && count * kNearlyAllOf >= tensors * kNearlyAll) tokens = size;
  return tokens;
}

}  // namespace

std::vector<std::string> axis_names(const Report& report, const PairRow& pair) {
  const Shape& shape = pair.shape;
  if (!pair.verdict || shape.size() < 2 || shape.size() > 4) return {};
  const uint64_t tokens = tokens_of(report);
  const auto axis = tokens == 0 ? shape.end() : std::find(shape.begin(), shape.end() - 1, tokens);
  if (tokens == 0 || axis == shape.end() - 1) return {};
  const auto at = static_cast<std::size_t>(axis - shape.begin());
  std::vector<std::string> names(shape.size());
  names[at] = "token";
  // What is left: [hidden], [head, channel] or [batch, head, channel].
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != at) rest.push_back(i);
  static const std::vector<std::vector<std::string>> kRest = {
      {}, {"hidden"}, {"head", "channel"}, {"batch", "head", "channel"}};
  for (std::size_t i = 0; i < rest.size(); ++i) names[rest[i]] = kRest[rest.size()][i];
  // Of three axes, the first may be the batch or the heads; of queries and the like it is known.
  const auto is = [&](std::string_view stage) { return pair.stage.starts_with(stage); };
  if (shape.size() == 3 && at == 1 && !is("query") && !is("key") && !is("value")) {
    names[0] = "";
    names[2] = "hidden";
  }
  if (shape.back() == tokens && at + 2 == shape.size()) names.back() = "key token";
  return names;
}

}  // namespace tensordiff::serve
