// What torch.save wrote before 1.6, and still does on request: five pickles in a row (a magic
// number, a version, facts about the machine, the object, a list of storage keys), then for each
// key of the list the storage: an i64 count of elements and so many elements, little-endian, not
// aligned.

#include <unordered_map>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/audit.h"
#include "formats/pickle/code.h"
#include "formats/pickle/machine.h"
#include "formats/pickle/torch_file.h"
#include "formats/pickle/walk.h"

namespace tensordiff {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::NodeId;
using pickle::StorageId;

// 0x1950a86a20f9469cfc6c, as protocol 2 and later write it and as protocol 0 does.
constexpr std::string_view kMagicBytes("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr std::string_view kMagicDigits = "119547037146038801333356";
constexpr int64_t kVersion = 1001;

// The number must stand there as it is. A call that would compute it is not a number.
bool is_magic(const Graph& graph) {
  const pickle::Node& root = graph.at(graph.root);
  return root.kind == Kind::big_integer && (root.text == kMagicBytes || root.text == kMagicDigits);
}

using StorageIds = std::unordered_map<std::string_view, StorageId>;

// All storages that the object refers to, each by its key. A reference that makes no sense is left
// to the tensor that uses it.
StorageIds described_storages(const Graph& object) {
  StorageIds storages;
  for (NodeId id = 0; id < object.size(); ++id) {
    if (object.kind(id) != Kind::persistent) continue;
    const Result<StorageId> storage = read_storage_id(object, id);
    if (storage.ok()) storages.emplace(storage.value().key, storage.value());
  }
  return storages;
}

using StorageBytes = std::unordered_map<std::string, ByteSource>;

Result<ByteSource> read_storage(ByteCursor& cursor, const StorageIds& described,
                                std::string_view key, const Bytes& file) {
  const auto storage = described.find(key);
  if (storage == described.end()) return Error("its element type is not recorded");
  const int64_t count = cursor.i64();
  if (!cursor.ok()) return Error("the file ends before it");
  if (count < 0 || static_cast<uint64_t>(count) != storage->second.count)
    return Error("{} elements stored, {} expected", count, storage->second.count);
  const auto bytes = checked_mul(storage->second.count, storage->second.item_bytes());
  if (!bytes || *bytes > cursor.remaining())
    return Error("{} elements do not fit in the {} bytes left in the file", count,
                 cursor.remaining());
  const uint64_t begin = cursor.position();
  cursor.skip(*bytes);
  return ByteSource(file.slice(begin, *bytes));
}

bool recognises(const Bytes& file) { return pickle::is_torch_legacy(file); }

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  pickle::TorchFile torch = TRY(pickle::read_torch_legacy(file, input.limits));
  torch.where = input.name;
  return pickle::collect_tensors(std::move(torch), input.limits);
}

std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  if (!file.ok() || open(input).ok()) return {};
  return pickle::code_in(file.value(), 0, input.limits, "");
}

}  // namespace

bool pickle::is_torch_legacy(const Bytes& file) {
  constexpr uint64_t kMagicPickleMax = 64;
  const Bytes head = file.slice(0, std::min(file.size(), kMagicPickleMax));
  const Result<Graph> magic = read_pickle(head, 0, Limits());
  return magic.ok() && is_magic(magic.value());
}

Result<pickle::TorchFile> pickle::read_torch_legacy(const Bytes& file, const Limits& limits) {
  const Graph magic = TRY(read_pickle(file, 0, limits));
  if (!is_magic(magic)) return Error("the magic number of a legacy torch file is missing");
  const Graph version = TRY(read_pickle(file, magic.end, limits));
  if (version.integer(version.root) != kVersion)
    return Error("a legacy torch file of another version than {}", kVersion);
  const Graph machine = TRY(read_pickle(file, version.end, limits));
  Graph object = TRY(read_pickle(file, machine.end, limits));
  const Graph keys = TRY(read_pickle(file, object.end, limits));
  if (keys.kind(keys.root) != Kind::list) return Error("the storage keys are not a list");

  ByteCursor cursor(file.view);
  cursor.seek(keys.end);
  const StorageIds described = described_storages(object);
  auto storages = std::make_shared<StorageBytes>();
  for (const NodeId id : keys.items(keys.root)) {
    const std::optional<std::string_view> key = keys.string(id);
    if (!key) return Error("a storage key that is not a string");
    ByteSource bytes = TRY(read_storage(cursor, described, *key, file)
                               .in(fmt::format("storage '{}'", printable(*key))));
    storages->emplace(*key, std::move(bytes));
  }

  TorchFile torch{std::move(object), {}, "pickle", {}};
  for (const Graph* beside : {&magic, &version, &machine, &keys})
    report_names(*beside, {torch.where}, torch.problems);
  torch.storages.find = [storages](std::string_view key) -> Result<ByteSource> {
    const auto found = storages->find(std::string(key));
    if (found == storages->end()) return Error("storage '{}' is not in the file", printable(key));
    return found->second;
  };
  if (!cursor.at_end())
    torch.problems.push_back(
        {torch.where, fmt::format("{} bytes after the last storage", cursor.remaining())});
  return torch;
}

constinit const Format formats::torch_legacy = {
    .name = "torch-legacy",
    .summary = "PyTorch files of before 1.6, which are not zips",
    .extensions = ".pt .pth .bin",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::torch_legacy = {
    .format = &formats::torch_legacy,
    .audit = audit,
};

}  // namespace tensordiff
