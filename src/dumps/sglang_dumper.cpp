// sglang's dumper (DUMPER_ENABLE=1), also used with Megatron: one file a tensor,
//
//   {experiment}/step=0___rank=0___dump_index=7___name=attn_q___recompute_status=disabled
//   ___layer_id=3.pt (one line)
//
// with {"value": tensor, "meta": dict}, or the bare tensor in older versions. dump_index counts the
// tensors of a process: the order of computing, and no part of the name. "meta" repeats the tags
// and tells the ranks; its numbers are facts, no tensors.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "dumps/grammar.h"
#include "naming/naming.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::string_view kTags = "___";
constexpr std::string_view kNonIntrusive = "non_intrusive__";

struct DumperName {
  std::string_view folder;  // Of the experiment, where there are several.
  std::string_view file;    // All tags, as a key.
  std::string_view name;
  std::string_view key;   // What of the file: "value", "meta.rank".
  std::string more = {};  // Tags of the call: ".chunk=1".
  int32_t step = 0, rank = Place::kNone;
  int64_t index = 0;
  std::optional<int32_t> layer = std::nullopt;
};

// Cuts what stands behind the tags off: "….value", "….meta.tp_rank". Names may hold dots.
std::string_view take_key(std::string_view& tags) {
  const std::size_t meta = tags.rfind(".meta.");
  std::size_t at = meta;
  if (meta == std::string_view::npos) {
    at = tags.rfind(".value");
    const bool last =
        at != std::string_view::npos && (at + 6 == tags.size() || tags[at + 6] == '.');
    if (!last) return {};
  }
  const std::string_view key = tags.substr(at + 1);
  tags = tags.substr(0, at);
  return key;
}

bool is_tag_of_run(std::string_view tag) {
  return tag.ends_with("_rank") || tag.ends_with("_size") || tag == "recompute_pseudo_rank";
}

void read_tag(std::string_view tag, std::string_view value, DumperName& found) {
  const std::optional<int32_t> number = whole_number(value);
  if (tag == "step" && number)
    found.step = *number;
  else if (tag == "rank" && number)
    found.rank = *number;
  else if (tag == "dump_index" && number)
    found.index = *number;
  else if (tag == "name")
    found.name = value;
  else if ((tag == "layer_id" || tag == "layer_number") && number)
    found.layer = number;
  else if (tag == "recompute_status") {
    if (value == "recompute") found.more += ".recompute";
  } else if (!is_tag_of_run(tag))
    found.more += fmt::format(".{}={}", tag, value);
}

std::optional<DumperName> parse(std::string_view name) {
  DumperName found;
  const std::size_t start = name.find("step=");
  if (start == std::string_view::npos || name.find(kTags) == std::string_view::npos)
    return std::nullopt;
  if (start > 0 && name[start - 1] != '/') return std::nullopt;
  found.folder = name.substr(0, start);
  std::string_view tags = name.substr(start);
  found.key = take_key(tags);
  found.file = name.substr(0, start + tags.size());
  while (!tags.empty()) {
    std::string_view value = take_until(tags, kTags);
    const std::string_view tag = take_until(value, "=");
    read_tag(tag, value, found);
  }
  if (found.name.empty()) return std::nullopt;
  return found;
}

bool recognises(const Catalog& catalog) {
  return mostly(catalog, [](std::string_view name) { return parse(name).has_value(); });
}

// How the processes share the work, as each file says.
struct Parallel {
  std::optional<int32_t> tp_rank, tp_size, ep_rank, ep_size, cp_rank, cp_size;

  // Of those that hold parts, or summands, of one tensor.
  std::optional<int32_t> rank() const {
    const bool experts_only = tp_size.value_or(1) < 2 && ep_size.value_or(1) > 1;
    return experts_only && ep_rank ? ep_rank : tp_rank;
  }

  TokenShare share() const {
    const int32_t count = cp_size.value_or(1), index = cp_rank.value_or(0);
    return index < count && count <= kSharesMax ? TokenShare{index, count} : TokenShare{};
  }
  static constexpr int32_t kSharesMax = 1024;
};

using ParallelOf = std::map<std::string_view, Parallel>;  // By file.

ParallelOf parallel_of(const Catalog& catalog) {
  constexpr std::pair<std::string_view, std::optional<int32_t> Parallel::*> kNumbers[] = {
      {"tp_rank", &Parallel::tp_rank}, {"tp_size", &Parallel::tp_size},
      {"ep_rank", &Parallel::ep_rank}, {"ep_size", &Parallel::ep_size},
      {"cp_rank", &Parallel::cp_rank}, {"cp_size", &Parallel::cp_size}};
  ParallelOf result;
  for (const Tensor& tensor : catalog.tensors) {
    const std::optional<DumperName> name = parse(tensor.name);
    if (!name || tensor.elements() != 1) continue;
    const std::size_t info = name->key.rfind("_parallel_info.");
    if (info == std::string_view::npos) continue;
    const std::string_view key = name->key.substr(name->key.rfind('.') + 1);
    const auto found =
        std::ranges::find(kNumbers, key, [](const auto& each) { return each.first; });
    if (found == std::end(kNumbers)) continue;
    const Result<Reader> reader = Reader::open(tensor.view);
    if (!reader.ok()) continue;
    const double number = reader.value().value(0);
    if (number >= 0 && number < 1e6)
      result[name->file].*(found->second) = static_cast<int32_t>(number);
  }
  return result;
}

// "model.layers.0.mlp.output.1": the second output of a module.
void take_end(std::string_view& path, Record& record, std::string& more) {
  std::string_view shorter = path;
  const std::optional<int32_t> output = take_output(shorter);
  if (shorter.ends_with(".output")) {
    record.output = output.value_or(Place::kNone);
    path = shorter.substr(0, shorter.size() - std::string_view(".output").size());
    return;
  }
  const std::size_t inputs = path.rfind(".inputs.");
  const std::size_t output_name = path.rfind(".output.");
  const std::size_t at = inputs != std::string_view::npos ? inputs : output_name;
  if (at == std::string_view::npos) return;
  more = fmt::format("{}{}", path.substr(at), more);
  path = path.substr(0, at);
}

// Megatron counts its layers from 1: where a dump of it has that one and no layer 0.
int32_t first_layer(const Catalog& catalog) {
  bool megatron = false;
  int32_t first = INT32_MAX;
  for (const Tensor& tensor : catalog.tensors) {
    const std::optional<DumperName> name = parse(tensor.name);
    if (!name) continue;
    megatron = megatron || name->key.find("megatron_parallel_info.") != std::string_view::npos;
    if (name->layer) first = std::min(first, *name->layer);
  }
  return megatron && first == 1 ? 1 : 0;
}

// The layer of the tag, also where a module that all layers share has the name of the first.
std::string path_in(std::string_view path, std::optional<int32_t> layer) {
  if (!layer) return std::string(path);
  const Place place = read_place(path);
  if (place.layer == Place::kNone || !place.layer_named)
    return fmt::format("layers.{}.{}", *layer, path);
  return fmt::format("{}{}{}", path.substr(0, place.layer_at.first), *layer,
                     path.substr(place.layer_at.first + place.layer_at.size));
}

Record record_of(const DumperName& name, std::size_t tensor, const Tensor& of) {
  Record record{.tensor = tensor, .path = {}};
  record.pass = name.step;
  record.rank = name.rank;
  record.order = name.index;
  std::string_view path = name.name;
  std::string more = name.more;
  if (path.starts_with(kNonIntrusive)) {
    path.remove_prefix(kNonIntrusive.size());
    take_end(path, record, more);
  }
  record.fact = name.key.starts_with("meta") ? RunFact::other : fact_in(of, path);
  // Positions and the like that modules were given.
  if (!more.empty() && is_integer(of.view.dtype)) record.fact = RunFact::other;
  record.path = path_in(path, name.layer) + more;
  if (path == "logits_processor") record.path = path;  // Its output has a name and is one.
  if (name.key.starts_with("value.")) record.path += name.key.substr(5);
  return record;
}

Dump read(const Catalog& catalog) {
  Dump dump;
  const ParallelOf parallel = parallel_of(catalog);
  const int32_t first = first_layer(catalog);
  if (first != 0) dump.notes.push_back("layers are counted from 1, as Megatron does");
  std::set<std::string_view> folders;
  for (const Tensor& tensor : catalog.tensors)
    if (const auto name = parse(tensor.name)) folders.insert(name->folder);
  std::map<std::tuple<int32_t, int32_t, std::string, int32_t>, std::vector<std::size_t>> same;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    std::optional<DumperName> name = parse(catalog.tensors[i].name);
    if (!name) continue;
    if (name->layer) *name->layer -= first;
    Record record = record_of(*name, i, catalog.tensors[i]);
    if (record.fact == RunFact::other) continue;
    if (const auto found = parallel.find(name->file); found != parallel.end()) {
      record.rank = found->second.rank().value_or(record.rank);
      record.share = found->second.share();
      constexpr int32_t kStepsMax = INT32_MAX / Parallel::kSharesMax;
      if (record.share.count > 1)  // A pass for each share.
        record.pass =
            std::min(record.pass, kStepsMax - 1) * Parallel::kSharesMax + record.share.index;
    }
    if (folders.size() > 1) record.path = std::string(name->folder) + record.path;
    same[{record.rank, record.pass, record.path, record.output}].push_back(dump.records.size());
    dump.records.push_back(std::move(record));
  }
  // What was dumped several times in one step, by its order.
  for (auto& [key, records] : same) {
    std::ranges::sort(records, {}, [&](std::size_t i) { return dump.records[i].order; });
    for (std::size_t call = 1; call < records.size(); ++call)
      dump.records[records[call]].path += fmt::format("@{}", call);
  }
  return dump;
}

}  // namespace

constinit const Layout layouts::sglang_dumper = {
    .name = "sglang-dumper",
    .summary = "sglang's dumper: step=0___rank=0___dump_index=1___name=x.pt",
    .recognises = recognises,
    .read = read,
};

}  // namespace tensordiff
