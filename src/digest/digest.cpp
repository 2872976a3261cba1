#include "digest/digest.h"

#include <atomic>

#include "base/json.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::string_view kStart = "{\"schema\":\"tensordiff.digest/1\",\"sha256\":\"";
constexpr std::string_view kBody = "\",\n\"digest\":";
constexpr std::string_view kEnd = "}\n";
constexpr std::size_t kHexBytes = 64;
// More tensors than the largest checkpoints have by far.
constexpr std::size_t kRanksMax = 1 << 16;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char each : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return text;
}

void write_stats(JsonWriter& json, const Stats& stats) {
  json.begin_object()
      .member("finite", stats.finite)
      .member("zeros", stats.zeros)
      .member("nan", stats.nan)
      .member("inf", stats.inf)
      .member("mean", stats.mean)
      .member("std", stats.std)
      .member("min", stats.min)
      .member("max", stats.max)
      .member("norm", stats.norm)
      .end_object();
}

Stats stats_in(const Json& json) {
  Stats stats;
  stats.finite = json["finite"].u64().value_or(0);
  stats.zeros = json["zeros"].u64().value_or(0);
  stats.nan = json["nan"].u64().value_or(0);
  stats.inf = json["inf"].u64().value_or(0);
  stats.mean = json["mean"].number();
  stats.std = json["std"].number();
  stats.min = json["min"].number();
  stats.max = json["max"].number();
  stats.norm = json["norm"].number();
  return stats;
}

Result<DigestEntry> entry_in(const Json& json) {
  DigestEntry entry;
  entry.name = json["name"].string();
  const std::optional<DType> dtype = dtype_named(json["dtype"].string());
  if (!dtype) return Error("'{}' is not a dtype", printable(json["dtype"].string()));
  entry.dtype = *dtype;
  entry.fault = json["fault"].string();
  for (const Json& size : json["shape"].array()) {
    if (!size.u64() || entry.shape.size() == kRankMax) return Error("its shape is impossible");
    entry.shape.push_back(*size.u64());
  }
  if (!element_count(entry.shape)) return Error("its shape has too many elements");
  for (const Json& hash : json["ranks"].array()) {
    const std::optional<LinearHash> value = hash_of_hex(hash.string());
    if (!value || entry.ranks.size() == kRanksMax) return Error("its hash is malformed");
    entry.ranks.push_back(*value);
  }
  if (entry.ranks.empty() == entry.fault.empty()) return Error("it has no hash");
  entry.stats = stats_in(json["stats"]);
  return entry;
}

void hash_tensor(const Tensor& tensor, DigestEntry& entry) {
  const std::size_t ranks = std::max<std::size_t>(tensor.shards.size(), 1);
  std::vector<Result<Hashed>> hashed(ranks, Hashed{});
  for_each_index(ranks, [&](std::size_t rank) {
    hashed[rank] = hash_values(tensor.shards.empty() ? tensor.view : tensor.shards[rank]);
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (!hashed[rank].ok()) {
      entry.fault = hashed[rank].error().message();
      entry.ranks.clear();
      return;
    }
    entry.ranks.push_back(hashed[rank].value().hash);
  }
  entry.stats = hashed[0].value().stats;
}

}  // namespace

Result<Digest> make_digest(const Catalog& catalog,
                           const std::function<void(uint64_t done, uint64_t total)>& progress) {
  Digest digest{catalog.path, catalog.format, std::vector<DigestEntry>(catalog.tensors.size())};
  std::atomic<uint64_t> done = 0;
  const uint64_t total = catalog.bytes();
  for_each_index(catalog.tensors.size(), [&](std::size_t i) {
    const Tensor& tensor = catalog.tensors[i];
    DigestEntry& entry = digest.tensors[i];
    entry.name = tensor.name;
    entry.dtype = tensor.view.dtype;
    entry.shape = tensor.view.shape;
    entry.fault = tensor.fault;
    if (entry.fault.empty()) hash_tensor(tensor, entry);
    if (progress) progress(done += tensor.bytes(), total);
  });
  if (called_off()) return Error("cancelled");
  return digest;
}

std::string write_digest(const Digest& digest) {
  JsonWriter json;
  json.begin_object().member("model", digest.model).member("format", digest.format);
  json.key("tensors").begin_array();
  for (const DigestEntry& entry : digest.tensors) {
    json.begin_object().member("name", entry.name).member("dtype", name_of(entry.dtype));
    json.member("shape", entry.shape);
    if (!entry.fault.empty()) json.member("fault", entry.fault);
    json.key("ranks").begin_array();
    for (const LinearHash& hash : entry.ranks) json.value(hex_of(hash));
    json.end_array().key("stats");
    write_stats(json, entry.stats);
    json.end_object();
  }
  json.end_array().end_object();
  const std::string body = json.take();
  return fmt::format("{}{}{}{}{}", kStart, hex(sha256(body)), kBody, body, kEnd);
}

bool is_digest(ByteView bytes) { return as_text(bytes).starts_with(kStart); }

Result<Digest> read_digest(ByteView bytes) {
  std::string_view text = as_text(bytes);
  if (!is_digest(bytes)) return Error("not a digest of tensordiff");
  text.remove_prefix(kStart.size());
  const std::string_view hash = text.substr(0, kHexBytes);
  text.remove_prefix(hash.size());
  if (!text.starts_with(kBody) || !text.ends_with(kEnd))
    return Error("cut short: the end of a digest is missing");
  text.remove_prefix(kBody.size());
  text.remove_suffix(kEnd.size());
  if (hex(sha256(text)) != hash) return Error("damaged: its content does not match its hash");
  const Json json = TRY(Json::parse(text));
  Digest digest{std::string(json["model"].string()), std::string(json["format"].string()), {}};
  for (const Json& each : json["tensors"].array())
    digest.tensors.push_back(
        TRY(entry_in(each).in(fmt::format("tensor '{}'", printable(each["name"].string())))));
  return digest;
}

}  // namespace tensordiff
