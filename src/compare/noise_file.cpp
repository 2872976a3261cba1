#include "compare/noise_file.h"

#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::string_view kSchema = "tensordiff.noise/1";

}  // namespace

std::string noise_text(const NoiseFloor& floor, std::size_t runs) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("schema", kSchema).member("runs", uint64_t{runs});
  json.key("tensors").begin_array();
  for (const auto& [name, level] : floor)
    json.begin_object().member("name", name).member("rel_l2", level).end_object();
  json.end_array().end_object();
  return json.take() + "\n";
}

bool is_noise_text(std::string_view text) {
  constexpr std::size_t kLookedAt = 256;  // The schema is the first member.
  return text.starts_with('{') && text.substr(0, kLookedAt).find(kSchema) != std::string_view::npos;
}

Result<NoiseFloor> read_noise(std::string_view text) {
  const Json json = TRY(Json::parse(text));
  if (json["schema"].string() != kSchema)
    return Error("not a noise floor: its schema is not {}", kSchema);
  NoiseFloor floor;
  for (const Json& tensor : json["tensors"].array()) {
    const std::optional<double> level = tensor["rel_l2"].number();
    if (!tensor["name"].is_string() || !level || !std::isfinite(*level) || *level < 0)
      return Error("tensor '{}': rel_l2 is not a number from 0 on",
                   printable(tensor["name"].string()));
    floor[std::string(tensor["name"].string())] = *level;
  }
  return floor;
}

Result<std::optional<NoiseFloor>> open_noise(const std::string& path, const Roots& roots) {
  if (path.empty()) return std::optional<NoiseFloor>();
  const Result<Bytes> file = roots.map(path);
  if (!file.ok() || !is_noise_text(as_text(file.value().view))) return std::optional<NoiseFloor>();
  return std::optional(TRY(read_noise(as_text(file.value().view)).in(printable(path))));
}

}  // namespace tensordiff
