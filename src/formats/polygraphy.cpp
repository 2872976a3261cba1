// Polygraphy's RunResults, as --save-outputs writes them: JSON with the arrays in it.
//
//   {"lst": [[runner, [iteration, …]], …], "polygraphy_class": "RunResults"}
//   iteration  {"outputs": {name: array, …}, "runtime": 0.1, "runner_name": "…", …}
//   array      {"array": base64 of an npy file, …}, {"tensor": base64 of a torch file, …},
//              or {"values": array, …}
//
// "outputs" may be wrapped in {"dct": …} and the iteration in a class of its own. Old files mark
// classes with keys "__polygraphy_encoded_…". So arrays are found by "array" and "tensor", wherever
// they stand below "outputs". Names of runners hold dates: where there are several runners or
// iterations, their numbers stand before the name.

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLooked = 4096;  // Bytes at each end: the marker stands at one of them.
constexpr int kWrappersMax = 8;        // Around an array: two in files of today.

bool recognises(const Bytes& file) {
  const std::string_view text = as_text(file.view);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  const std::string_view tail = text.substr(text.size() - std::min(text.size(), kLooked));
  for (const std::string_view end : {text.substr(0, kLooked), tail})
    if (end.find("\"polygraphy_class\"") != std::string_view::npos ||
        end.find("\"__polygraphy_encoded_") != std::string_view::npos)
      return true;
  return false;
}

// The value under a key, or under it inside of wrappers that have one member for their content.
const Json& inside(const Json& value, std::string_view key) {
  const Json* at = &value;
  for (int depth = 0; depth < kWrappersMax && at->is_object(); ++depth) {
    if (const Json& found = (*at)[key]; !found.is_null()) return found;
    const Json* next = nullptr;
    for (const Json::Member& member : at->object())
      if (member.value.is_object() || member.value.is_array()) next = &member.value;
    if (!next) break;
    at = next;
  }
  static const Json kNothing;
  return kNothing;
}

class Results {
 public:
  explicit Results(const Input& input) : input_(input) {}

  Result<Catalog> read(const Json& file) {
    const Json& runners = inside(file, "lst");
    if (!runners.is_array()) return Error("no list of runners ('lst'): not results of a run");
    const std::size_t several = runners.array().size();
    for (std::size_t i = 0; i < several; ++i) {
      const std::string prefix = several > 1 ? fmt::format("runner_{}/", i) : "";
      const std::span<const Json> runner = runners[i].array();
      if (runner.size() != 2) return Error("runner {}: not a pair of a name and iterations", i);
      TRY(read_iterations(runner[1], prefix).in(fmt::format("runner {}", i)));
    }
    if (catalog_.tensors.empty()) return Error("no outputs in it");
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

 private:
  Result<void> read_iterations(const Json& list, const std::string& prefix) {
    const std::span<const Json> iterations = list.is_array() ? list.array() : list["lst"].array();
    for (std::size_t i = 0; i < iterations.size(); ++i) {
      const std::string before =
          iterations.size() > 1 ? fmt::format("{}iteration_{}/", prefix, i) : prefix;
      const Json& outputs = iterations[i]["outputs"];
      const Json& wrapped = outputs["dct"];
      for (const Json::Member& output : (wrapped.is_object() ? wrapped : outputs).object())
        if (output.value.is_object()) TRY(add(before + output.key, output.value));
    }
    return {};
  }

  // What is wrong with one array spoils its own tensor.
  Result<void> add(std::string name, const Json& value) {
    if (catalog_.tensors.size() >= input_.limits.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} tensors", input_.limits.tensors_max));
    Result<Catalog> array = decoded(value);
    if (!array.ok()) {
      catalog_.tensors.push_back(broken_tensor(std::move(name), array.error().message()));
      return {};
    }
    for (Tensor& tensor : array.value().tensors) {
      tensor.name = tensor.name.empty() ? name : fmt::format("{}.{}", name, tensor.name);
      catalog_.tensors.push_back(std::move(tensor));
    }
    for (const Problem& problem : array.value().problems)
      catalog_.problems.push_back({name, problem.message, problem.severity});
    return {};
  }

  Result<Catalog> decoded(const Json& value) const {
    const Json& array = inside(value, "array");
    const Json& text = array.is_string() ? array : inside(value, "tensor");
    if (!text.is_string()) return Error("no 'array' and no 'tensor' in it");
    std::optional<std::string> bytes = from_base64(text.string());
    if (!bytes) return Error("not base64");
    Input input = input_;
    input.source = ByteSource(bytes_of(std::move(*bytes)));
    if (array.is_string()) return formats::npy.open(input);
    const Bytes file = TRY(input.source.open());
    return formats::torch_zip.recognises(file) ? formats::torch_zip.open(input)
                                               : formats::torch_legacy.open(input);
  }

  const Input& input_;
  Catalog catalog_;
};

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!recognises(file)) return Error("no mark of Polygraphy at its start or end");
  // Read as a whole, with the arrays in it: as text they are no more than JSON.
  if (file.size() > input.limits.json_bytes_max)
    return limit_hit("json", fmt::format("{} of JSON", human_bytes(file.size())));
  const Json json = TRY(Json::parse(as_text(file.view)));
  return Results(input).read(json);
}

}  // namespace

constinit const Format formats::polygraphy = {
    .name = "polygraphy",
    .summary = "outputs that Polygraphy saved (RunResults, as JSON)",
    .extensions = ".json",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
