// What a tensor's name says of its place in a model.

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "match/matcher.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 13> kStages = {
    "post_ln_pre_attn", "query",     "query_final", "key",     "key_final",           "value",
    "value_final",      "post_attn", "scaling",     "sliding", "post_attn_pre_resid", "pre_mlp",
    "post_mlp",
};

// Endings of file names, where one came along with the name of the tensor in it.
constexpr std::array<std::string_view, 7> kExtensions = {
    ".safetensors", ".pth", ".pt", ".bin", ".npy", ".npz", ".pkl",
};

std::string_view without_extension(std::string_view name) {
  for (const std::string_view extension : kExtensions)
    if (name.ends_with(extension)) return name.substr(0, name.size() - extension.size());
  return name;
}

// "12_query" as it stands, with nothing before it.
std::optional<LayerStage> parse_plain(std::string_view text) {
  int64_t layer = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, layer);
  const bool has_stage = end - after >= 2 && *after == '_';
  if (error != std::errc() || layer < 0 || !has_stage || text[0] == '-') return std::nullopt;
  return LayerStage{layer, std::string(after + 1, end), ""};
}

}  // namespace

std::span<const std::string_view> known_stages() { return kStages; }

std::optional<LayerStage> parse_layer_stage(std::string_view name) {
  name = without_extension(name);
  // In the last component of the path: at its start, or after a dot in it.
  const std::size_t slash = name.rfind('/');
  std::size_t start = slash == std::string_view::npos ? 0 : slash + 1;
  while (true) {
    if (std::optional<LayerStage> found = parse_plain(name.substr(start))) {
      found->folder = name.substr(0, start == 0 ? 0 : start - 1);
      return found;
    }
    const std::size_t dot = name.find('.', start);
    if (dot == std::string_view::npos) return std::nullopt;
    start = dot + 1;
  }
}

std::optional<LayerStage> place_of(std::string_view name, const MatchOptions& options) {
  return options.pattern ? options.pattern->place(name) : parse_layer_stage(name);
}

}  // namespace tensordiff
