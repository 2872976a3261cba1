#include "formats/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"
#include "formats/config.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::string_view kFile = "trace.json";
constexpr std::string_view kSchema = "tensordiff.trace/";
constexpr std::string_view kVersion = "1";

// Which traces this program can read: "tensordiff.trace/1", and 1.2 of a later version.
enum class Schema { none, ours, newer };

Schema schema_of(const Json& trace) {
  std::string_view schema = trace["schema"].string();
  if (!schema.starts_with(kSchema)) return Schema::none;
  schema.remove_prefix(kSchema.size());
  const std::string_view major = schema.substr(0, schema.find('.'));
  return major == kVersion ? Schema::ours : Schema::newer;
}

// The names of all saved tensors of a result, which is a tree of {"t": id}, {"l": [...]} and
// {"d": {...}}. The reader of JSON limits its depth.
void add_names(const Json& tree, const Json& tensors, std::vector<std::string>& names) {
  if (const std::optional<uint64_t> id = tree["t"].u64()) {
    const std::span<const Json> all = tensors.array();
    const std::string_view name = *id < all.size() ? all[*id]["name"].string() : "";
    if (!name.empty()) names.emplace_back(name);
  }
  for (const Json& each : tree["l"].array()) add_names(each, tensors, names);
  for (const Json::Member& each : tree["d"].object()) add_names(each.value, tensors, names);
}

// Each name once, where it first appears.
std::vector<std::string> order_in(const Json& trace) {
  std::vector<std::pair<uint64_t, const Json*>> calls;
  for (const Json& call : trace["calls"].array())
    if (const std::optional<uint64_t> end = call["end"].u64()) calls.emplace_back(*end, &call);
  std::ranges::stable_sort(calls, {}, &std::pair<uint64_t, const Json*>::first);
  std::vector<std::string> names, order;
  for (const auto& [end, call] : calls) add_names((*call)["out"], trace["tensors"], names);
  std::unordered_map<std::string_view, bool> seen;
  for (const std::string& name : names)
    if (seen.try_emplace(name, true).second) order.push_back(name);
  return order;
}

// Tensors that the trace does not know keep their order, behind the others.
void sort_tensors(const std::vector<std::string>& order, Catalog& catalog) {
  std::unordered_map<std::string_view, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place.emplace(order[i], i);
  std::ranges::stable_sort(catalog.tensors, {}, [&](const Tensor& tensor) {
    const auto found = place.find(tensor.name);
    return found == place.end() ? order.size() : found->second;
  });
}

void add_problem(Catalog& catalog, std::string message, Severity severity) {
  catalog.problems.push_back({std::string(kFile), std::move(message), severity});
}

void use_trace(const Json& trace, Catalog& catalog) {
  sort_tensors(order_in(trace), catalog);
  if (trace["complete"].boolean() == false) {
    const std::string_view why = trace["errors"][0]["error"].string();
    add_problem(
        catalog,
        fmt::format("the capture is not complete{}{}", why.empty() ? "" : ": ", printable(why)),
        Severity::missing);
  }
  const bool configured = std::ranges::any_of(
      catalog.metadata, [](const Metadata& each) { return each.key.starts_with(kConfigPrefix); });
  if (configured) return;
  for (Metadata& setting : settings_in(trace["model"]["config"]))
    catalog.metadata.push_back(
        {std::string(kConfigPrefix) + setting.key, std::move(setting.value)});
}

}  // namespace

void add_trace(const ByteSource& json, const Limits& limits, Catalog& catalog) {
  if (json.size() > limits.json_bytes_max) {
    const std::string limit = human_bytes(limits.json_bytes_max);
    return add_problem(catalog, fmt::format("longer than {}: not read", limit), Severity::note);
  }
  const Result<Bytes> bytes = json.open();
  const Result<Json> trace =
      bytes.ok() ? Json::parse(as_text(bytes.value().view)) : Result<Json>(bytes.error());
  if (!trace.ok()) return add_problem(catalog, trace.error().message(), Severity::suspicious);
  switch (schema_of(trace.value())) {
    case Schema::none:
      return;
    case Schema::newer:
      return add_problem(
          catalog,
          fmt::format("schema '{}' is not read; this version reads '{}{}'",
                      printable(trace.value()["schema"].string()), kSchema, kVersion),
          Severity::suspicious);
    case Schema::ours:
      return use_trace(trace.value(), catalog);
  }
}

std::vector<std::string> recorded_order(const Catalog& catalog) {
  if (!catalog.beside) return {};
  const Result<Bytes> bytes = catalog.beside(kFile);
  if (!bytes.ok() || bytes.value().view.size() > Limits().json_bytes_max) return {};
  const Result<Json> trace = Json::parse(as_text(bytes.value().view));
  if (!trace.ok() || schema_of(trace.value()) != Schema::ours) return {};
  return order_in(trace.value());
}

}  // namespace tensordiff
