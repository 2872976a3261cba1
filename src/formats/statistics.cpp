// Statistics of tensors as text, where a program wrote those in place of the tensors.
//
//   TransformerEngine, LogTensorStats (nvdlfw_inspect_globalrank-0.log), a line each:
//     INFO - decoder.layers.3.mlp.linear_fc1_activation_max      iteration=000002   value=4.3188
//   msprobe, dump.json with "task": "statistics":
//     {"task": "statistics", "data": {"Module.norm.RMSNorm.forward.0": {"output": [
//        {"type": "torch.Tensor", "shape": [..], "Max": 1.5, "Min": -1, "Mean": 0.1, "Norm": 9}]}}}
//
// The statistics of one tensor are one vector: a mean near zero is as exact as the norm beside it.
// Of a log they stand in the order of their names, "iter_000002/{layer}_{tensor}.statistics".

#include "formats/statistics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLooked = 64 << 10;  // What logs say before the first value.
constexpr std::size_t kDepthMax = 16;      // Lists in lists: tuples that modules give.
constexpr double kLargestHalf = 65504;

// One line of a log.
struct Logged {
  std::string_view tensor, statistic, iteration;
  double value = 0;
};

// "{name} iteration=000002 value=4.3": the word behind a mark.
std::optional<std::string_view> word_behind(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + mark.size());
  return rest.substr(0, rest.find_first_of(" \t"));
}

std::optional<Logged> logged(std::string_view line) {
  static constexpr std::string_view kTensors[] = {"_activation_", "_weight_", "_output_",
                                                  "_gradient_",   "_wgrad_",  "_dgrad_"};
  const auto iteration = word_behind(line, " iteration="), value = word_behind(line, " value=");
  if (!iteration || !value || !all_digits(*iteration)) return std::nullopt;
  const std::optional<double> number = number_in(*value);
  std::string_view name = line.substr(0, line.find(" iteration="));
  name = name.substr(0, name.find_last_not_of(" \t") + 1);
  if (const std::size_t at = name.find_last_of(" \t"); at != std::string_view::npos)
    name = name.substr(at + 1);
  for (const std::string_view tensor : kTensors)
    if (const std::size_t at = name.rfind(tensor); number && at != std::string_view::npos && at > 0)
      return Logged{name.substr(0, at + tensor.size() - 1), name.substr(at + tensor.size()),
                    *iteration, *number};
  return std::nullopt;
}

bool is_log(std::string_view text) {
  text = text.substr(0, kLooked);
  while (!text.empty())
    if (logged(take_line(text))) return true;
  return false;
}

bool is_probe(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  text = text.substr(0, kLooked);
  const std::size_t task = text.find("\"task\"");
  if (task == std::string_view::npos) return false;
  const std::string_view behind = text.substr(task + 6);
  const std::size_t value = behind.find_first_not_of(" \t\r\n:");
  return value != std::string_view::npos && behind.substr(value).starts_with("\"statistics\"");
}

bool recognises(const Bytes& file) {
  const std::string_view text = as_text(file.view);
  constexpr std::size_t kHead = 64;
  const auto is_control = [](char c) {
    return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t';
  };
  if (std::ranges::any_of(text.substr(0, kHead), is_control)) return false;
  return is_probe(text) || is_log(text);
}

class Statistics {
 public:
  explicit Statistics(const Input& input) : list_(input.limits) {}

  Result<Catalog> read_log(std::string_view text) {
    struct Values {
      std::map<std::string_view, double> by_statistic;
    };
    std::map<std::string, std::size_t> places;
    std::vector<std::pair<std::string, Values>> tensors;  // In the order of the log.
    while (!text.empty()) {
      const std::optional<Logged> line = logged(take_line(text));
      if (!line) continue;
      std::string name = fmt::format("iter_{}/{}.statistics", line->iteration, line->tensor);
      const auto [at, is_new] = places.emplace(name, tensors.size());
      if (is_new) TRY(list_.make_room(tensors.size()));
      if (is_new) tensors.emplace_back(std::move(name), Values{});
      tensors[at->second].second.by_statistic[line->statistic] = line->value;
    }
    for (const auto& [name, values] : tensors) {
      std::vector<double> numbers;
      std::string labels;
      for (const auto& [label, value] : values.by_statistic) {
        numbers.push_back(value);
        labels += fmt::format("{}{}", labels.empty() ? "" : ", ", label);
      }
      TRY(list_.add(name, numbers, labels));
    }
    return list_.take();
  }

  Result<Catalog> read_probe(const Json& file) {
    for (const Json::Member& call : file["data"].object())
      for (const auto& [key, way] :
           {std::pair("input_args", "input"), std::pair("output", "output"),
            std::pair("parameters", "parameters")})
        TRY(read_values(call.value[key], fmt::format("{}.{}", call.key, way), 0));
    return list_.take();
  }

 private:
  // A tensor, or what lists and dicts hold of them, each under its number or key.
  Result<void> read_values(const Json& value, const std::string& name, std::size_t depth) {
    if (depth > kDepthMax) return Error("{}: lists nested too deeply", printable(name));
    for (std::size_t i = 0; i < value.array().size(); ++i)
      TRY(read_values(value[i], fmt::format("{}.{}", name, i), depth + 1));
    if (!value.is_object()) return {};
    if (value["Max"].is_null() && value["Norm"].is_null()) {
      for (const Json::Member& member : value.object())
        if (member.value.is_object())
          TRY(read_values(member.value, fmt::format("{}.{}", name, member.key), depth + 1));
      return {};
    }
    std::vector<double> numbers;
    for (const std::string_view key : {"Max", "Min", "Mean", "Norm"}) {
      const std::optional<double> number = value[key].number();
      const std::optional<bool> flag = value[key].boolean();  // Of tensors of booleans.
      if (!number && !flag) return {};                        // Null: nothing was measured.
      numbers.push_back(number ? *number : static_cast<double>(*flag));
    }
    return list_.add(name, numbers, kProbeStatistics,
                     type_of_statistics(value["dtype"].string(), numbers));
  }

  StatisticsList list_;
};

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!recognises(file)) return Error("no statistics of TransformerEngine or msprobe in it");
  const std::string_view text = as_text(file.view);
  if (!is_probe(text)) return Statistics(input).read_log(text);
  if (file.size() > input.limits.json_bytes_max)
    return limit_hit("json", fmt::format("{} of JSON", human_bytes(file.size())));
  return Statistics(input).read_probe(TRY(Json::parse(text)));
}

}  // namespace

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

DType type_of_statistics(std::string_view dtype, const std::vector<double>& numbers) {
  const std::string text = lower(dtype);
  if (text.ends_with("bfloat16")) return DType::bf16;
  const auto fits = [](double number) { return std::abs(number) < kLargestHalf; };
  return text.ends_with("float16") && std::ranges::all_of(numbers, fits) ? DType::f16 : DType::f32;
}

Result<void> StatisticsList::make_room(std::size_t tensors) const {
  if (tensors < limits_.tensors_max) return {};
  return limit_hit("tensors", fmt::format("more than {} tensors", limits_.tensors_max));
}

Result<void> StatisticsList::add(const std::string& name, const std::vector<double>& numbers,
                                 std::string_view labels, DType dtype) {
  TRY(make_room(catalog_.tensors.size()));
  std::string bytes(numbers.size() * item_bytes(dtype), '\0');
  encode(dtype, numbers.data(), numbers.size(), reinterpret_cast<std::byte*>(bytes.data()));
  Tensor tensor;
  tensor.name = name;
  tensor.view =
      TRY(contiguous_view(dtype, {numbers.size()}, ByteSource(bytes_of(std::move(bytes)))));
  tensor.made_from = fmt::format("{}{}", kStatisticsMark, labels);
  catalog_.tensors.push_back(std::move(tensor));
  return {};
}

Result<Catalog> StatisticsList::take() {
  if (catalog_.tensors.empty()) return Error("no statistics of tensors in it");
  make_names_unique(catalog_);
  catalog_.problems.push_back(
      {"", "statistics in place of tensors: a difference that they do not show is not seen",
       Severity::note});
  return std::move(catalog_);
}

constinit const Format formats::statistics = {
    .name = "statistics",
    .summary = "statistics of tensors that TransformerEngine or msprobe wrote in place of them",
    .extensions = ".log .json",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
