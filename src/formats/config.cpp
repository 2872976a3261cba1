#include "formats/config.h"

#include <algorithm>
#include <filesystem>

#include "base/remote_files.h"
#include "base/text.h"
#include "formats/shards.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kListMax = 16;  // Values of a list that are written out.

std::string text_of(const Json& value) {
  if (value.is_string()) return std::string(value.string());
  if (value.u64()) return fmt::format("{}", *value.u64());
  if (value.number()) return fmt::format("{}", *value.number());
  if (value.is_null()) return "null";
  if (value.boolean()) return *value.boolean() ? "true" : "false";
  if (value.is_object()) return "{…}";
  std::string list;
  for (std::size_t i = 0; i < value.array().size() && i < kListMax; ++i)
    list += (i ? ", " : "") + text_of(value.array()[i]);
  const bool more = value.array().size() > kListMax;
  return fmt::format("[{}{}]", list, more ? fmt::format(", … {}", value.array().size()) : "");
}

// As deep as the parser lets JSON be.
void add(const Json& value, const std::string& key, std::vector<Metadata>& settings) {
  for (const Json::Member& member : value.object()) {
    const std::string inner = key + member.key;
    if (member.value.is_object())
      add(member.value, inner + ".", settings);
    else
      settings.push_back({inner, text_of(member.value)});
  }
}

// What Hugging Face's tools call the weights, and the trainer its own state, of one folder.
constexpr std::string_view kStems[] = {
    "model",         "pytorch_model", "tf_model",  "flax_model", "diffusion_pytorch_model",
    "adapter_model", "optimizer",     "scheduler", "rng_state"};

constexpr std::size_t kEntriesMax = 10'000;      // Of a folder, looked at for an index.
constexpr uint64_t kIndexBytesMax = 64UL << 20;  // One of a million tensors has 100 MB.

// Whether an index in the folder names the file.
bool is_indexed(const fs::path& file) {
  std::error_code fault;
  const fs::path folder = file.parent_path();
  fs::directory_iterator entries(folder.empty() ? "." : folder, fault);
  for (std::size_t i = 0; !fault && entries != fs::directory_iterator() && i < kEntriesMax; ++i) {
    const fs::path path = entries->path();
    std::error_code ignored;
    if (is_shard_index(path.string()) && fs::file_size(path, ignored) <= kIndexBytesMax) {
      const Result<Bytes> bytes = map_file(path.string());
      if (bytes.ok()) {
        const Result<ShardIndex> index =
            ShardIndex::parse(path.filename().string(), as_text(bytes.value().view));
        if (index.ok() && index.value().shards.contains(file.filename().string())) return true;
      }
    }
    entries.increment(fault);
  }
  return false;
}

}  // namespace

std::optional<std::string> remote_companion(const std::string& input, bool folder,
                                            std::string_view file) {
  if (folder) return remote_child(input, file);
  const std::string stem = fs::path(shown_input(input)).stem().string();
  const bool belongs = is_shard_index(shown_input(input)) || model_of_shard(stem) ||
                       std::ranges::find(kStems, stem) != std::end(kStems);
  return belongs ? std::optional(remote_child(remote_parent(input), file)) : std::nullopt;
}

std::optional<std::string> companion(const std::string& input, std::string_view file) {
  std::error_code fault;
  const fs::path path(input);
  const bool whole = fs::is_directory(path, fault);
  const fs::path beside = (whole ? path : path.parent_path()) / file;
  if (!fs::is_regular_file(beside, fault)) return std::nullopt;
  const std::string stem = path.stem().string();
  const bool belongs = whole || is_shard_index(input) || model_of_shard(stem) ||
                       std::ranges::find(kStems, stem) != std::end(kStems) || is_indexed(path);
  return belongs ? std::optional(beside.string()) : std::nullopt;
}

std::vector<Metadata> settings_in(const Json& json) {
  std::vector<Metadata> settings;
  add(json, "", settings);
  return settings;
}

void add_config(const ByteSource& json, const Limits& limits, Catalog& catalog) {
  const auto unread = [&](std::string_view why) {
    catalog.metadata.push_back({"config.json", fmt::format("not read: {}", why)});
  };
  if (json.size() > limits.json_bytes_max)
    return unread(fmt::format("longer than {}", human_bytes(limits.json_bytes_max)));
  const Result<Bytes> bytes = json.open();
  if (!bytes.ok()) return unread(bytes.error().message());
  const Result<Json> parsed = Json::parse(as_text(bytes.value().view));
  if (!parsed.ok()) return unread(parsed.error().message());
  for (Metadata& setting : settings_in(parsed.value()))
    catalog.metadata.push_back(
        {std::string(kConfigPrefix) + setting.key, std::move(setting.value)});
}

}  // namespace tensordiff
