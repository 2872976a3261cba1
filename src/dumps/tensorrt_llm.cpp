// TensorRT-LLM's debug hook: a bare tensor a file,
//
//   rank{r}/1.LlamaModel-3.LlamaDecoderLayer-1.LlamaAttention-2.Linear-output.1.pt
//
// where the numbers count the calls at that depth under one parent; the first counts passes. What a
// call gives stands behind its inputs under the names of forward's arguments, so the true outputs
// are those "output." that are no "input.". What a module is follows from its class and from what
// stands before and behind it: numbers differ between versions, and the norm of the next layer may
// run at the end of a layer.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "dumps/grammar.h"

namespace tensordiff {
namespace {

struct HookName {
  int32_t rank = Place::kNone;
  std::string_view path;      // "1.LlamaModel-3.LlamaDecoderLayer".
  std::string_view argument;  // "1", "hidden_states".
  bool is_input = false;
};

// "3.LlamaDecoderLayer"
std::optional<std::pair<int32_t, std::string_view>> call_in(std::string_view part) {
  const std::optional<int32_t> number = whole_number(take_until(part, "."));
  return number && !part.empty() ? std::optional(std::pair(*number, part)) : std::nullopt;
}

std::optional<HookName> parse(std::string_view name) {
  HookName found;
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) {
    const std::string_view above = name.substr(0, slash);
    found.rank = number_after(above.substr(above.rfind('/') + 1), "rank").value_or(Place::kNone);
    name = name.substr(slash + 1);
  }
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::string_view end = name.substr(dash + 1);
  const std::string_view way = take_until(end, ".");
  if ((way != "input" && way != "output") || end.empty()) return std::nullopt;
  found.is_input = way == "input";
  found.argument = end;
  found.path = name.substr(0, dash);
  for (const std::string_view part : split(found.path, '-'))
    if (!call_in(part)) return std::nullopt;
  return found;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

enum class Kind : uint8_t { layer, attention, mlp, norm, linear, embedding, rotary, head, other };

Kind kind_of(std::string_view name) {
  struct Word {
    std::string_view text;
    Kind kind;
  };
  static constexpr Word kWords[] = {
      {"decoderlayer", Kind::layer},
      {"encoderlayer", Kind::layer},
      {"block", Kind::layer},
      {"norm", Kind::norm},
      {"rotary", Kind::rotary},
      {"lmhead", Kind::head},
      {"logits", Kind::head},
      {"attention", Kind::attention},
      {"mlp", Kind::mlp},
      {"moe", Kind::mlp},
      {"feedforward", Kind::mlp},
      {"embedding", Kind::embedding},
      {"linear", Kind::linear},
  };
  const std::string text = lower(name);
  for (const Word& word : kWords)
    if (text.find(word.text) != std::string::npos) return word.kind;
  return Kind::other;
}

// A call and those it makes, by their numbers.
struct Call {
  Kind kind = Kind::other;
  std::map<int32_t, Call> calls;
  std::string known_as;  // The module it is, in the words of Hugging Face; empty: not known.
  bool repeats = false;  // Its outputs are those of a call in it.
};

class Naming {
 public:
  void add(std::string_view path) {
    Call* call = nullptr;
    for (const std::string_view part : split(path, '-')) {
      const auto [number, name] = *call_in(part);
      call = call ? &call->calls[number] : &top_[number];
      call->kind = kind_of(name);
    }
  }

  void name_all() {
    for (auto& [pass, model] : top_) name_model(model);
  }

  const Call* find(std::string_view path) const {
    const std::map<int32_t, Call>* calls = &top_;
    const Call* call = nullptr;
    for (const std::string_view part : split(path, '-')) {
      call = &calls->at(call_in(part)->first);
      calls = &call->calls;
    }
    return call;
  }

 private:
  static std::string layer_path(int64_t layer) { return fmt::format("model.layers.{}", layer); }

  static void name_model(Call& model) {
    const int64_t layers = std::ranges::count_if(
        model.calls, [](const auto& call) { return call.second.kind == Kind::layer; });
    int64_t layer = 0;
    for (auto& [number, call] : model.calls) {
      if (call.kind == Kind::embedding)
        call.known_as = "model.embed_tokens";
      else if (call.kind == Kind::layer)
        name_layer(call, layer++, layers);
      else if (call.kind == Kind::norm)
        call.known_as = "model.norm";
      else if (call.kind == Kind::head || call.kind == Kind::linear)
        call.known_as = "lm_head";
      else
        name_model(call);  // A model in a model: "1.LlamaForCausalLM-1.LlamaModel".
    }
  }

  static void name_layer(Call& layer, int64_t number, int64_t layers) {
    const std::string path = layer_path(number);
    layer.known_as = path;
    bool attended = false, fed = false;
    for (auto& [i, call] : layer.calls) {
      if (call.kind == Kind::attention) {
        attended = true;
        name_attention(call, path + ".self_attn");
      } else if (call.kind == Kind::mlp) {
        fed = true;
        name_mlp(call, path + ".mlp");
      } else if (call.kind == Kind::norm) {
        call.known_as = fed ? next_norm(number, layers)
                            : path + (attended ? ".post_attention_layernorm" : ".input_layernorm");
        layer.repeats = fed;
      }
    }
  }

  static std::string next_norm(int64_t layer, int64_t layers) {
    return layer + 1 < layers ? layer_path(layer + 1) + ".input_layernorm" : "model.norm";
  }

  static std::vector<Call*> linears_in(Call& call) {
    std::vector<Call*> found;
    for (auto& [i, each] : call.calls)
      if (each.kind == Kind::linear) found.push_back(&each);
    return found;
  }

  static void name_in_order(const std::vector<Call*>& calls, const std::string& path,
                            std::initializer_list<std::string_view> names) {
    if (calls.size() != names.size()) return;
    std::size_t i = 0;
    for (const std::string_view name : names)
      calls[i++]->known_as = fmt::format("{}.{}", path, name);
  }

  static void name_attention(Call& attention, const std::string& path) {
    attention.known_as = path;
    const std::vector<Call*> linears = linears_in(attention);
    name_in_order(linears, path, {"qkv_proj", "o_proj"});
    name_in_order(linears, path, {"q_proj", "k_proj", "v_proj", "o_proj"});
    for (auto& [i, call] : attention.calls) {
      if (call.kind == Kind::rotary) call.known_as = path + ".rotary_emb";
      if (call.kind == Kind::attention) call.known_as = path + ".attn";
    }
  }

  static void name_mlp(Call& mlp, const std::string& path) {
    mlp.known_as = path;
    const std::vector<Call*> linears = linears_in(mlp);
    name_in_order(linears, path, {"gate_up_proj", "down_proj"});
    name_in_order(linears, path, {"gate_proj", "up_proj", "down_proj"});
  }

  std::map<int32_t, Call> top_;
};

// Numbers stand behind the arguments, and of the arguments of a layer hidden states come last.
bool before(std::string_view x, std::string_view y) {
  static constexpr std::array<std::string_view, 5> kArguments = {"input", "x", "position_ids",
                                                                 "hidden_states", "residual"};
  const auto rank = [](std::string_view name) {
    const std::optional<int32_t> number = whole_number(name);
    const auto at = std::ranges::find(kArguments, name) - kArguments.begin();
    return std::pair(number ? 1 : 0, number ? *number : static_cast<int32_t>(at));
  };
  return std::pair(rank(x), x) < std::pair(rank(y), y);
}

// What attention and the MLP hand to their last projection; no module gives it.
std::string_view role_of_input(std::string_view module) {
  if (module.ends_with(".self_attn.o_proj")) return ".attn";
  if (module.ends_with(".mlp.down_proj")) return ".gated";
  return {};
}

class Reading {
 public:
  explicit Reading(const Catalog& catalog) {
    for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
      const std::optional<HookName> name = parse(catalog.tensors[i].name);
      if (!name) continue;
      naming_.add(name->path);
      Arguments& of = calls_[{name->rank, name->path}];
      (name->is_input ? of.inputs : of.outputs).emplace(name->argument, i);
    }
    naming_.name_all();
  }

  Dump dump(const Catalog& catalog) {
    Dump result;
    for (const auto& [key, arguments] : calls_) {
      const auto& [rank, path] = key;
      const Call& call = *naming_.find(path);
      if (call.repeats) continue;
      int32_t output = 0;
      const std::vector<std::string_view> outputs = true_outputs(arguments);
      for (const std::string_view argument : outputs) {
        const std::size_t tensor = arguments.outputs.at(argument);
        Record record = record_of(catalog, tensor, rank, path);
        record.path = call.known_as.empty() ? record.name : call.known_as;
        if (outputs.size() > 1) record.output = output++;
        result.records.push_back(std::move(record));
      }
      add_input(catalog, rank, path, arguments, call, result);
    }
    return result;
  }

 private:
  struct Arguments {
    std::map<std::string_view, std::size_t> inputs, outputs;
  };

  static std::vector<std::string_view> true_outputs(const Arguments& arguments) {
    std::vector<std::string_view> outputs;
    for (const auto& [name, tensor] : arguments.outputs)
      if (!arguments.inputs.contains(name)) outputs.push_back(name);
    std::ranges::sort(outputs, before);
    return outputs;
  }

  static Record record_of(const Catalog& catalog, std::size_t tensor, int32_t rank,
                          std::string_view path) {
    Record record{.tensor = tensor, .path = {}};
    const std::string_view name = catalog.tensors[tensor].name;
    const std::size_t slash = name.rfind('/');
    record.name = name.substr(slash == std::string_view::npos ? 0 : slash + 1);
    record.name.erase(0, record.name.find('.') + 1);  // The pass.
    record.rank = rank;
    record.pass = call_in(split(path, '-')[0])->first;
    // As the numbers of the calls have it, but that what a call makes ends before it.
    for (const std::string_view part : split(path, '-'))
      record.order = (record.order * 512 + std::min(call_in(part)->first, 511)) & ((1LL << 54) - 1);
    for (std::size_t depth = split(path, '-').size(); depth < 6; ++depth)
      record.order = (record.order * 512 + 511) & ((1LL << 54) - 1);
    return record;
  }

  void add_input(const Catalog& catalog, int32_t rank, std::string_view path,
                 const Arguments& arguments, const Call& call, Dump& result) const {
    const std::string_view role = role_of_input(call.known_as);
    if (role.empty() || arguments.inputs.size() != 1) return;
    Record record = record_of(catalog, arguments.inputs.begin()->second, rank, path);
    record.order -= 1;
    record.path = call.known_as.substr(0, call.known_as.rfind('.')) + std::string(role);
    result.records.push_back(std::move(record));
  }

  Naming naming_;
  std::map<std::pair<int32_t, std::string_view>, Arguments> calls_;
};

Dump read(const Catalog& catalog) { return Reading(catalog).dump(catalog); }

}  // namespace

constinit const Layout layouts::tensorrt_llm = {
    .name = "tensorrt-llm",
    .summary = "TensorRT-LLM's debug hook: rank0/1.LlamaModel-2.LlamaDecoderLayer-output.0.pt",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
