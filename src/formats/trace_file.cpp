#include "formats/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

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

// The numbers of all tensors of arguments or of a result: a tree of {"t": id}, {"l": [...]} and
// {"d": {...}}. The reader of JSON limits its depth.
void add_tensors(const Json& tree, uint64_t count, std::vector<std::size_t>& ids) {
  if (const std::optional<uint64_t> id = tree["t"].u64(); id && *id < count) ids.push_back(*id);
  for (const Json& each : tree["l"].array()) add_tensors(each, count, ids);
  for (const Json::Member& each : tree["d"].object()) add_tensors(each.value, count, ids);
}

// The dataflow: which call made each tensor, from which others.
class Dataflow {
 public:
  explicit Dataflow(const Json& trace)
      : tensors_(trace["tensors"].array()), maker_(tensors_.size(), kNone) {
    for (const Json& call : trace["calls"].array())
      if (const std::optional<uint64_t> end = call["end"].u64()) calls_.emplace_back(*end, &call);
    std::ranges::stable_sort(calls_, {}, &std::pair<uint64_t, const Json*>::first);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      // What ends first made it; modules around that only hand it on.
      std::vector<std::size_t> out;
      add_tensors((*calls_[i].second)["out"], tensors_.size(), out);
      for (const std::size_t id : out) {
        if (maker_[id] != kNone) continue;
        maker_[id] = i;
        made_.push_back(id);
      }
    }
  }

  // Each name once, where it first appears.
  std::vector<std::string> order() const {
    std::vector<std::string> names;
    std::unordered_set<std::string_view> seen;
    for (const std::size_t id : made_)
      if (!name_of(id).empty() && seen.insert(name_of(id)).second) names.emplace_back(name_of(id));
    return names;
  }

  std::map<std::string, std::vector<std::string>> inputs() const {
    std::map<std::string, std::vector<std::string>> found;
    std::vector<std::size_t> visited(tensors_.size(), kNone);  // For which tensor, last.
    for (const std::size_t id : made_)
      if (!name_of(id).empty()) found.emplace(name_of(id), sources_of(id, visited));
    return found;
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  std::string_view name_of(std::size_t id) const { return tensors_[id]["name"].string(); }

  // The nearest saved tensors on all ways back.
  std::vector<std::string> sources_of(std::size_t id, std::vector<std::size_t>& visited) const {
    std::vector<std::string> names;
    std::vector<std::size_t> open = {id};
    visited[id] = id;
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      if (at != id && !name_of(at).empty()) {
        names.emplace_back(name_of(at));
        continue;
      }
      if (maker_[at] == kNone) continue;
      const Json& call = *calls_[maker_[at]].second;
      std::vector<std::size_t> from;
      for (const Json& each : call["args"].array()) add_tensors(each, tensors_.size(), from);
      for (const Json::Member& each : call["kwargs"].object())
        add_tensors(each.value, tensors_.size(), from);
      for (const std::size_t source : from)
        if (std::exchange(visited[source], id) != id) open.push_back(source);
    }
    return names;
  }

  std::span<const Json> tensors_;
  std::vector<std::pair<uint64_t, const Json*>> calls_;  // By their ends.
  std::vector<std::size_t> maker_;                       // Of each tensor; kNone: an input.
  std::vector<std::size_t> made_;                        // Tensors in the order of their making.
};

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
  sort_tensors(Dataflow(trace).order(), catalog);
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

RecordedRun recorded_run(const Catalog& catalog) {
  if (!catalog.beside) return {};
  const Result<Bytes> bytes = catalog.beside(kFile);
  if (!bytes.ok() || bytes.value().view.size() > Limits().json_bytes_max) return {};
  const Result<Json> trace = Json::parse(as_text(bytes.value().view));
  if (!trace.ok() || schema_of(trace.value()) != Schema::ours) return {};
  const Dataflow flow(trace.value());
  return {flow.order(), flow.inputs()};
}

}  // namespace tensordiff
