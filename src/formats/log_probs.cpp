// log-probs: log-probabilities of tokens as servers and trainers write them, one JSON object a line
// (or one object, or an array of them, as the whole file).
//
//   OpenAI completions  choices[].logprobs {token_logprobs, tokens, top_logprobs}, token_ids
//   OpenAI chat         choices[].logprobs.content[] {token, logprob, top_logprobs}
//   vLLM                prompt_logprobs [null, {"id": {logprob, ...}}, ...], prompt_token_ids
//   trainers            old_log_probs, rollout_log_probs ... beside response_ids, response_mask
//
// Each sequence gives "sequence_N/log_probs", and beside it the ids of its tokens and the
// alternatives. Tokens without a log-probability (null, -9999, masked) are left out. A token
// whose id is not told is known by a hash of its text, written as a negative number.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "formats/format.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::string_view kKeys[] = {"logprobs\"", "log_probs\""};
constexpr std::size_t kLookedAt = 1 << 16;  // Bytes in which one of the keys has to be.
constexpr double kNone = -9999;             // What vLLM writes for "not known".
constexpr std::size_t kTopMax = 20;         // More alternatives no server gives.

bool recognises(const Bytes& file) {
  const std::string_view text = as_text(file.view).substr(0, kLookedAt);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) return false;
  return std::ranges::any_of(
      kKeys, [&](std::string_view key) { return text.find(key) != std::string_view::npos; });
}

struct TopToken {
  int64_t id = 0;
  double log_prob = 0;
};

struct Sequence {
  std::string key;  // The list that it was read from.
  std::vector<int64_t> ids;
  std::vector<double> log_probs;
  std::vector<std::vector<TopToken>> top;
};

// FNV-1a, as a negative number that no id can be.
int64_t hashed(std::string_view text) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 1099511628211ULL;
  return -static_cast<int64_t>(hash >> 1) - 1;
}

std::optional<int64_t> number_in(std::string_view text) {
  int64_t id = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), id);
  return fault == std::errc() && end == text.data() + text.size() ? std::optional(id)
                                                                  : std::nullopt;
}

// The id of a token by its text; vLLM writes "token_id:176" when it is asked to.
int64_t id_of(std::string_view token) {
  constexpr std::string_view kPrefix = "token_id:";
  if (token.starts_with(kPrefix))
    if (const auto id = number_in(token.substr(kPrefix.size()))) return *id;
  return hashed(token);
}

bool is_number_list(const Json& json) {
  return json.is_array() && !json.array().empty() &&
         std::ranges::all_of(json.array(), [](const Json& each) {
           return each.is_null() || each.number().has_value();
         });
}

bool is_told(const Json& log_prob) { return log_prob.number() && *log_prob.number() > kNone; }

const Json& first_of(const Json& record, std::span<const std::string_view> keys) {
  static const Json kNothing;
  for (const std::string_view key : keys)
    if (is_number_list(record[key])) return record[key];
  return kNothing;
}

constexpr std::string_view kIds[] = {"response_ids", "responses",      "token_ids",
                                     "output_ids",   "completion_ids", "output_token_ids"};
constexpr std::string_view kMasks[] = {"response_mask", "loss_mask", "completion_mask"};

class Reading {
 public:
  Result<void> record(const Json& json) {
    if (!json.is_object()) return Error("not an object");
    for (const Json& choice : json["choices"].array()) {
      const std::size_t before = sequences.size();
      completion(choice["logprobs"], choice["token_ids"]);
      chat(choice["logprobs"]["content"]);
      const Json& prompt = choice["prompt_logprobs"].is_array() ? choice["prompt_logprobs"]
                                                                : json["prompt_logprobs"];
      if (sequences.size() == before)
        of_prompt(prompt, choice["prompt_token_ids"].is_array() ? choice["prompt_token_ids"]
                                                                : json["prompt_token_ids"]);
    }
    if (json["choices"].array().empty()) {
      const std::size_t before = sequences.size();
      completion(json["logprobs"], json["token_ids"]);
      chat(json["logprobs"]["content"]);
      of_prompt(json["prompt_logprobs"], json["prompt_token_ids"]);
      if (sequences.size() == before) trainer(json);
    }
    return {};
  }

  std::vector<Sequence> sequences;

 private:
  void completion(const Json& json, const Json& ids) {
    const std::span<const Json> log_probs = json["token_logprobs"].array();
    const Json& tokens = json["tokens"];
    Sequence sequence{"token_logprobs", {}, {}, {}};
    for (std::size_t i = 0; i < log_probs.size(); ++i) {
      if (!is_told(log_probs[i])) continue;
      const std::optional<int64_t> id = ids[i].i64();
      sequence.ids.push_back(id ? *id : id_of(tokens[i].string()));
      sequence.log_probs.push_back(*log_probs[i].number());
      std::vector<TopToken>& top = sequence.top.emplace_back();
      for (const Json::Member& member : json["top_logprobs"][i].object())
        if (is_told(member.value)) top.push_back({id_of(member.key), *member.value.number()});
    }
    add(std::move(sequence));
  }

  void chat(const Json& content) {
    Sequence sequence{"logprob", {}, {}, {}};
    for (const Json& token : content.array()) {
      if (!is_told(token["logprob"])) continue;
      sequence.ids.push_back(id_of(token["token"].string()));
      sequence.log_probs.push_back(*token["logprob"].number());
      std::vector<TopToken>& top = sequence.top.emplace_back();
      for (const Json& each : token["top_logprobs"].array())
        if (is_told(each["logprob"]))
          top.push_back({id_of(each["token"].string()), *each["logprob"].number()});
    }
    add(std::move(sequence));
  }

  void of_prompt(const Json& prompt, const Json& ids) {
    Sequence sequence{"prompt_logprobs", {}, {}, {}};
    for (std::size_t i = 0; i < prompt.array().size(); ++i) {
      std::vector<TopToken> top;
      std::optional<TopToken> chosen;
      for (const Json::Member& member : prompt[i].object()) {
        const std::optional<int64_t> id = number_in(member.key);
        if (!id || !is_told(member.value["logprob"])) continue;
        top.push_back({*id, *member.value["logprob"].number()});
        // Without ids beside them the first one is the token itself.
        if (ids[i].i64() ? ids[i].i64() == id : !chosen) chosen = top.back();
      }
      if (!chosen) continue;
      sequence.ids.push_back(chosen->id);
      sequence.log_probs.push_back(chosen->log_prob);
      sequence.top.push_back(std::move(top));
    }
    add(std::move(sequence));
  }

  // Any list of numbers whose name says that it is one of log-probabilities.
  void trainer(const Json& json) {
    const Json& ids = first_of(json, kIds);
    const Json& mask = first_of(json, kMasks);
    for (const Json::Member& member : json.object()) {
      const bool named = member.key.ends_with("log_probs") || member.key.ends_with("logprobs");
      if (!named || !is_number_list(member.value)) continue;
      Sequence sequence{member.key, {}, {}, {}};
      for (std::size_t i = 0; i < member.value.array().size(); ++i) {
        if (!is_told(member.value[i]) || mask[i].number() == 0.0) continue;
        if (const auto id = ids[i].i64()) sequence.ids.push_back(*id);
        sequence.log_probs.push_back(*member.value[i].number());
      }
      if (sequence.ids.size() != sequence.log_probs.size()) sequence.ids.clear();
      add(std::move(sequence));
    }
  }

  void add(Sequence sequence) {
    if (!sequence.log_probs.empty()) sequences.push_back(std::move(sequence));
  }
};

template <class T>
View view_of(DType dtype, const Shape& shape, const std::vector<T>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return contiguous_view(dtype, shape, ByteSource(bytes_of(std::move(bytes)))).value();
}

void add_fact(Catalog& catalog, std::string name, View view, std::string_view what) {
  catalog.tensors.push_back({std::move(name), std::move(view), ""});
  catalog.tensors.back().auxiliary = what;
}

void add_alternatives(Catalog& catalog, const std::string& prefix, const Sequence& sequence) {
  std::size_t most = 0;
  for (const std::vector<TopToken>& top : sequence.top) most = std::max(most, top.size());
  most = std::min(most, kTopMax);
  if (most == 0) return;
  std::vector<int64_t> ids;
  std::vector<double> log_probs;
  for (const std::vector<TopToken>& top : sequence.top)
    for (std::size_t i = 0; i < most; ++i) {
      ids.push_back(i < top.size() ? top[i].id : 0);
      log_probs.push_back(i < top.size() ? top[i].log_prob : std::nan(""));
    }
  const Shape shape = {sequence.top.size(), most};
  add_fact(catalog, prefix + "top_ids", view_of(DType::i64, shape, ids), "ids of the alternatives");
  add_fact(catalog, prefix + "top_log_probs", view_of(DType::f64, shape, log_probs),
           "log-probabilities of the alternatives");
}

// Several lists of one record keep their own names.
bool is_alone(const std::vector<Sequence>& sequences, std::size_t first, std::size_t end) {
  return std::ranges::all_of(
      sequences.begin() + static_cast<ptrdiff_t>(first),
      sequences.begin() + static_cast<ptrdiff_t>(end),
      [&](const Sequence& each) { return each.key == sequences[first].key; });
}

class Building {
 public:
  explicit Building(Catalog& catalog, const Limits& limits) : catalog_(catalog), limits_(limits) {}

  Result<void> add(const Json& json) {
    Reading reading;
    TRY(reading.record(json));
    const std::vector<Sequence>& found = reading.sequences;
    const bool alone = found.empty() || is_alone(found, 0, found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (4 * count_ >= limits_.tensors_max)
        return limit_hit("tensors", fmt::format("more than {} sequences", count_));
      const std::string prefix = fmt::format("sequence_{}/", count_);
      const Sequence& each = found[i];
      catalog_.tensors.push_back({prefix + (alone ? "log_probs" : printable(each.key)),
                                  view_of(DType::f64, {each.log_probs.size()}, each.log_probs),
                                  ""});
      if (alone || i + 1 == found.size()) {
        if (!each.ids.empty())
          add_fact(catalog_, prefix + "token_ids", view_of(DType::i64, {each.ids.size()}, each.ids),
                   "ids of the tokens");
        add_alternatives(catalog_, prefix, each);
        ++count_;
      }
    }
    return {};
  }

 private:
  Catalog& catalog_;
  const Limits& limits_;
  std::size_t count_ = 0;
};

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!recognises(file)) return Error("no JSON with log-probabilities");
  Catalog catalog;
  catalog.format = formats::log_probs.name;
  Building building(catalog, input.limits);
  std::string_view text = as_text(file.view);
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    // An object over several lines is the whole file.
    if (line == 1 && !Json::parse(one).ok()) one = text;
    text = one.size() == text.size() || end == std::string_view::npos ? "" : text.substr(end + 1);
    if (one.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
    if (one.size() > input.limits.json_bytes_max)
      return limit_hit("json", fmt::format("line {} has {}", line, human_bytes(one.size())));
    const Json json = TRY(Json::parse(one).in(fmt::format("line {}", line)));
    if (!json.is_array()) {
      TRY(building.add(json).in(fmt::format("line {}", line)));
      continue;
    }
    for (const Json& each : json.array()) TRY(building.add(each).in(fmt::format("line {}", line)));
  }
  if (catalog.tensors.empty()) return Error("no log-probabilities in it");
  return catalog;
}

}  // namespace

constinit const Format formats::log_probs = {
    .name = "log-probs",
    .summary = "log-probabilities of tokens as JSON: OpenAI, vLLM, verl",
    .extensions = ".jsonl .json",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
