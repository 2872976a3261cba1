#include "formats/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "formats/config.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::string_view kFile = "trace.json";
constexpr std::string_view kSchema = "tensordiff.trace/";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kRank = "rank_";

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

// The folders of ranks, "rank_0/", as the names of tensors begin.
std::set<std::string> rank_folders(const Catalog& catalog) {
  std::set<std::string> folders;
  for (const Tensor& tensor : catalog.tensors) {
    const std::size_t end = tensor.name.find('/');
    if (end == std::string::npos || !tensor.name.starts_with(kRank)) continue;
    if (all_digits(std::string_view(tensor.name).substr(kRank.size(), end - kRank.size())))
      folders.insert(tensor.name.substr(0, end + 1));
  }
  return folders;
}

std::map<std::string, std::vector<std::string>> other_names(const Json& rows, std::string_view name,
                                                            std::string_view others) {
  std::map<std::string, std::vector<std::string>> found;
  for (const Json& row : rows.array())
    for (const Json& other : row[others].array())
      found[std::string(row[name].string())].emplace_back(other.string());
  return found;
}

void add_problem(Catalog& catalog, const std::string& folder, std::string message,
                 Severity severity) {
  catalog.problems.push_back({folder + std::string(kFile), std::move(message), severity});
}

void use_trace(const Trace& file, Catalog& catalog) {
  const Json& trace = file.json;
  if (file.folder.empty()) sort_tensors(Dataflow(trace).order(), catalog);
  if (trace["complete"].boolean() == false) {
    const std::string_view why = trace["errors"][0]["error"].string();
    add_problem(
        catalog, file.folder,
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

// The trace in a folder of the input, if there is one and it is of this version.
std::optional<Trace> read_trace(const std::string& folder, const Limits& limits, Catalog& catalog) {
  const Result<Bytes> bytes = catalog.beside(folder + std::string(kFile));
  if (!bytes.ok()) return std::nullopt;
  const auto problem = [&](std::string message, Severity severity) {
    add_problem(catalog, folder, std::move(message), severity);
    return std::nullopt;
  };
  if (bytes.value().size() > limits.json_bytes_max)
    return problem(fmt::format("longer than {}: not read", human_bytes(limits.json_bytes_max)),
                   Severity::note);
  Result<Json> trace = Json::parse(as_text(bytes.value().view));
  if (!trace.ok()) return problem(trace.error().message(), Severity::suspicious);
  switch (schema_of(trace.value())) {
    case Schema::none:
      return std::nullopt;
    case Schema::newer:
      return problem(fmt::format("schema '{}' is not read; this version reads '{}{}'",
                                 printable(trace.value()["schema"].string()), kSchema, kVersion),
                     Severity::suspicious);
    case Schema::ours:
      break;
  }
  return Trace{folder, std::move(trace).value()};
}

}  // namespace

std::vector<Trace> add_traces(const Limits& limits, Catalog& catalog) {
  std::vector<Trace> traces;
  if (!catalog.beside) return traces;
  if (std::optional<Trace> trace = read_trace("", limits, catalog))
    traces.push_back(std::move(*trace));
  const std::set<std::string> ranks = rank_folders(catalog);
  std::vector<std::string> without;
  for (const std::string& folder : ranks) {
    const std::size_t problems = catalog.problems.size();
    if (std::optional<Trace> trace = read_trace(folder, limits, catalog))
      traces.push_back(std::move(*trace));
    else if (catalog.problems.size() == problems)
      without.push_back(folder);
  }
  for (const Trace& trace : traces) use_trace(trace, catalog);
  // The trace is written last. Where no rank has one, it is a dump of another program.
  if (without.size() < ranks.size())
    for (const std::string& folder : without)
      add_problem(catalog, folder, "there is none: the capture is not finished", Severity::missing);
  return traces;
}

RecordedRun recorded_run(const Catalog& catalog) {
  if (!catalog.beside) return {};
  for (const char* folder : {"", "rank_0/"}) {
    Catalog input;  // Its problems were told when it was opened.
    input.beside = catalog.beside;
    const std::optional<Trace> trace = read_trace(folder, Limits(), input);
    if (!trace) continue;
    const Dataflow flow(trace->json);
    return {flow.order(), flow.inputs(), other_names(trace->json["parameters"], "name", "tied"),
            other_names(trace->json["modules"], "path", "aliases")};
  }
  return {};
}

}  // namespace tensordiff
