#include "analyze/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/byte_source.h"
#include "base/text.h"
#include "formats/config.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kFactsMax = 100'000;
constexpr uint64_t kJsonBytesMax = 32UL << 20;

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> value_of(const Tensor& tensor) {
  if (!tensor.fault.empty() || tensor.elements() != 1 || !tensor.shards.empty())
    return std::nullopt;
  // A weight of one element is still a weight: only true scalars, and [1] for counters, are facts.
  if (tensor.view.shape.size() > 1) return std::nullopt;
  const Result<Reader> reader = Reader::open(tensor.view);
  if (!reader.ok()) return std::nullopt;
  return reader.value().value(0);
}

// Trainers keep the settings of the model in one of these, or beside the weights.
bool is_of_model(std::string_view name) {
  constexpr std::string_view kPlaces[] = {"config",  "cfg",        "args",
                                          "hparams", "model_args", "hyper_parameters"};
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ||
         std::ranges::find(kPlaces, name.substr(0, dot)) != std::end(kPlaces);
}

// What the metadata says of the model, and before it what the checkpoint holds as numbers.
Catalog described(const Catalog& catalog, const std::vector<Fact>& scalars) {
  Catalog result;
  for (const Fact& fact : scalars)
    if (is_of_model(fact.name))
      result.metadata.push_back({fmt::format("{}{}", kConfigPrefix, last_word(fact.name)),
                                 fmt::format("{}", fact.value)});
  result.metadata.insert(result.metadata.end(), catalog.metadata.begin(), catalog.metadata.end());
  return result;
}

// Python writes numbers that are none as bare words, which JSON does not know: they become text.
std::string with_quoted_words(std::string_view text) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 1;
    const std::string_view rest = text.substr(at);
    const auto* word =
        quoted ? std::end(kWords)
               : std::ranges::find_if(kWords, [&](auto each) { return rest.starts_with(each); });
    if (word != std::end(kWords)) {
      out += fmt::format("\"{}\"", *word);
      at += word->size();
      continue;
    }
    if (quoted && text[at] == '\\') length = std::min<std::size_t>(2, rest.size());
    if (text[at] == '"') quoted = !quoted;
    out += rest.substr(0, length);
    at += length;
  }
  return out;
}

// A number, or one of the words that stand for one.
std::optional<double> number_of(const Json& value) {
  if (const std::optional<double> number = value.number()) return number;
  const std::string_view word = value.string();
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace

std::string_view last_word(std::string_view name) {
  const std::size_t dot = name.find_last_of("./");
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

Json json_beside(const Catalog& catalog, std::string_view file) {
  if (!catalog.beside) return {};
  const Result<Bytes> bytes = catalog.beside(file);
  if (!bytes.ok() || bytes.value().size() > kJsonBytesMax) return {};
  Result<Json> json = Json::parse(as_text(bytes.value().view));
  if (!json.ok()) json = Json::parse(with_quoted_words(as_text(bytes.value().view)));
  if (!json.ok() || !bytes.value().intact()) return {};
  return std::move(json).value();
}

void Facts::add(std::string name, double value) {
  if (facts_.size() < kFactsMax) facts_.push_back({std::move(name), value});
}

Facts Facts::of(const Catalog& catalog) {
  Facts facts;
  for (const Tensor& tensor : catalog.tensors)
    if (const std::optional<double> value = value_of(tensor)) facts.add(tensor.name, *value);
  const std::vector<Fact> scalars = facts.facts_;
  for (const Metadata& entry : catalog.metadata)
    if (!entry.key.starts_with(kConfigPrefix))  // config() has them.
      if (const std::optional<double> value = number_in(entry.value)) facts.add(entry.key, *value);
  facts.model_ = model_config_of(described(catalog, scalars));
  facts.config_ = json_beside(catalog, "config.json");
  const Json state = json_beside(catalog, "trainer_state.json");
  if (const auto step = state["global_step"].number())
    facts.add("trainer_state.global_step", *step);
  if (const auto epoch = state["epoch"].number()) facts.add("trainer_state.epoch", *epoch);
  // The last that was logged of each kind.
  for (const std::string_view key : {"loss", "eval_loss", "learning_rate", "grad_norm"}) {
    std::optional<double> last;
    for (const Json& entry : state["log_history"].array())
      if (const auto number = number_of(entry[key])) last = number;
    if (last) facts.add("trainer_state." + std::string(key), *last);
  }
  return facts;
}

std::optional<double> Facts::named(std::string_view name) const {
  const auto found = std::ranges::find(facts_, name, &Fact::name);
  return found == facts_.end() ? std::nullopt : std::optional(found->value);
}

const Fact* Facts::find(std::initializer_list<std::string_view> words) const {
  for (const std::string_view word : words)
    for (const Fact& fact : facts_)
      if (lower(last_word(fact.name)) == word) return &fact;
  return nullptr;
}

std::vector<const Fact*> Facts::every(std::string_view word) const {
  std::vector<const Fact*> found;
  for (const Fact& fact : facts_)
    if (last_word(fact.name) == word) found.push_back(&fact);
  return found;
}

Progress progress_of(const Facts& facts) {
  Progress progress;
  progress.step =
      facts.find({"global_step", "step", "steps", "iteration", "iter", "num_updates", "epoch"});
  progress.loss =
      facts.find({"val_loss", "valid_loss", "validation_loss", "eval_loss", "loss", "train_loss",
                  "training_loss", "best_loss", "best_val_loss", "perplexity", "ppl"});
  progress.score = facts.find({"val_acc", "val_accuracy", "eval_accuracy", "accuracy", "acc",
                               "best_acc", "best_accuracy", "best_acc1", "f1", "bleu"});
  return progress;
}

}  // namespace tensordiff
