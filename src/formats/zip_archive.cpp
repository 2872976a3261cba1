// The zip container (APPNOTE 6.3): members, then a central directory that lists them, then an end
// record that says where the directory is.
//
//   PK\3\4 local header, name, extra, data ...   PK\1\2 entry ...   [PK\6\6 PK\6\7]   PK\5\6 end
//
// The directory is the only authority: torch writes zero sizes into its local headers. A local
// header is read for the place of the data, and to see that it does not tell another story.

#include "formats/zip_archive.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/inflate.h"
#include "formats/limits.h"
#include "formats/member_name.h"

namespace tensordiff {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kCommentBytesMax = 0xffff;

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kEncryptedFlags = 0x2041;  // Bits 0, 6 and 13: the three ways to say it.
constexpr uint64_t kDeflateRatioMax = 1100;   // No deflate stream expands more than 1032-fold.

struct Directory {
  uint64_t offset;
  uint64_t bytes;
  uint64_t entries;
  uint64_t end;  // Where the record that describes it starts: no member may reach beyond.
};

struct Entry {
  std::string name;
  uint16_t made_by = 0;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc32 = 0;
  uint32_t attributes = 0;
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;
  uint64_t header_offset = 0;
  uint64_t data_offset = 0;
  std::string fault;

  uint64_t data_end() const { return data_offset + packed_bytes; }
  bool is_folder() const { return name.ends_with('/'); }
  bool is_link() const {
    constexpr uint32_t kUnix = 3, kTypeMask = 0170000, kLink = 0120000;
    return made_by >> 8 == kUnix && (attributes >> 16 & kTypeMask) == kLink;
  }
};

std::string method_name(uint16_t method) {
  constexpr std::pair<uint16_t, std::string_view> kNames[] = {
      {1, "shrink"}, {6, "implode"}, {9, "deflate64"}, {12, "bzip2"}, {14, "lzma"},
      {93, "zstd"},  {95, "xz"},     {97, "wavpack"},  {98, "ppmd"},  {99, "AES encryption"},
  };
  for (const auto& [number, name] : kNames)
    if (number == method) return fmt::format("method {} ({})", method, name);
  return fmt::format("method {}", method);
}

// The end record is last, but for a comment of any length up to 64 KiB. One that ends just where
// the file does is preferred to one with bytes after it.
std::optional<uint64_t> find_end(ByteView file) {
  if (file.size() < kEndBytes) return std::nullopt;
  const uint64_t last = file.size() - kEndBytes;
  const uint64_t first = last > kCommentBytesMax ? last - kCommentBytesMax : 0;
  std::optional<uint64_t> second_best;
  for (uint64_t at = last + 1; at-- > first;) {
    ByteCursor cursor(file.subspan(at));
    if (cursor.u32() != kEndSignature) continue;
    cursor.skip(16);
    const uint16_t comment_bytes = cursor.u16();
    if (comment_bytes == cursor.remaining()) return at;
    if (comment_bytes < cursor.remaining() && !second_best) second_best = at;
  }
  return second_best;
}

// The 64-bit end record, when there is one; torch always writes it. A locator that points at none
// is no locator: the end of a member's name can look like one.
Result<std::optional<Directory>> read_end64(ByteView file, uint64_t end) {
  if (end < kLocator64Bytes) return std::optional<Directory>();
  ByteCursor locator(file.subspan(end - kLocator64Bytes, kLocator64Bytes));
  if (locator.u32() != kLocator64Signature) return std::optional<Directory>();
  locator.skip(4);
  const uint64_t record = locator.u64();
  const uint32_t disks = locator.u32();

  ByteCursor cursor(file);
  cursor.seek(record);
  if (cursor.u32() != kEnd64Signature || record >= end) return std::optional<Directory>();
  cursor.skip(8 + 2 + 2);
  const uint32_t disk = cursor.u32();
  const uint32_t directory_disk = cursor.u32();
  cursor.skip(8);
  const uint64_t entries = cursor.u64();
  const uint64_t bytes = cursor.u64();
  const uint64_t offset = cursor.u64();
  if (!cursor.ok()) return Error("zip: the 64-bit end record is cut short");
  if (disks > 1 || disk != 0 || directory_disk != 0)
    return Error("zip: this is one volume of several, which are not read");
  return std::optional(Directory{offset, bytes, entries, record});
}

Result<Directory> read_end(ByteView file, std::vector<Problem>& problems) {
  const std::optional<uint64_t> end = find_end(file);
  if (!end) return Error("zip: no end record: cut short, or not a zip file");
  ByteCursor cursor(file.subspan(*end + 4));
  const uint16_t disk = cursor.u16();
  const uint16_t directory_disk = cursor.u16();
  cursor.skip(2);
  const uint16_t entries = cursor.u16();
  const uint32_t bytes = cursor.u32();
  const uint32_t offset = cursor.u32();
  const uint16_t comment_bytes = cursor.u16();
  if (const uint64_t surplus = cursor.remaining() - comment_bytes; surplus > 0)
    problems.push_back({"zip", fmt::format("{} bytes follow its end", surplus)});

  const std::optional<Directory> wide = TRY(read_end64(file, *end));
  if (!wide && (disk != 0 || directory_disk != 0))
    return Error("zip: this is one volume of several, which are not read");
  const Directory directory = wide.value_or(Directory{offset, bytes, entries, *end});
  if (!range_fits(directory.offset, directory.bytes, directory.end))
    return Error("zip: the central directory, {} bytes at {}, lies outside the file",
                 directory.bytes, directory.offset);
  return directory;
}

// Numbers that do not fit 32 bits are all ones in the entry, and follow here in this order.
bool read_extra64(ByteView extra, Entry& entry) {
  constexpr uint16_t kZip64 = 1;
  ByteCursor fields(extra);
  while (fields.remaining() >= 4) {
    const uint16_t id = fields.u16();
    ByteCursor field(fields.take(fields.u16()));
    if (!fields.ok()) return true;  // Padding that only looks like a field.
    if (id != kZip64) continue;
    for (uint64_t* number : {&entry.bytes, &entry.packed_bytes, &entry.header_offset})
      if (*number == UINT32_MAX) *number = field.u64();
    return field.ok();
  }
  return true;
}

Result<Entry> read_entry(ByteCursor& cursor) {
  Entry entry;
  if (cursor.u32() != kEntrySignature)
    return Error("zip: the central directory is damaged {} bytes in", cursor.position());
  entry.made_by = cursor.u16();
  cursor.skip(2);
  entry.flags = cursor.u16();
  entry.method = cursor.u16();
  cursor.skip(4);
  entry.crc32 = cursor.u32();
  entry.packed_bytes = cursor.u32();
  entry.bytes = cursor.u32();
  const uint16_t name_bytes = cursor.u16();
  const uint16_t extra_bytes = cursor.u16();
  const uint16_t comment_bytes = cursor.u16();
  cursor.skip(4);
  entry.attributes = cursor.u32();
  entry.header_offset = cursor.u32();
  entry.name = as_text(cursor.take(name_bytes));
  const ByteView extra = cursor.take(extra_bytes);
  cursor.skip(comment_bytes);
  if (!cursor.ok()) return Error("zip: the central directory is cut short");
  if (!read_extra64(extra, entry)) entry.fault = "its 64-bit sizes are cut short";
  return entry;
}

Result<std::vector<Entry>> read_directory(ByteView file, const Directory& directory,
                                          const Limits& limits) {
  if (directory.entries > limits.members_max)
    return limit_hit("members", fmt::format("zip: more than {} members", limits.members_max));
  std::vector<Entry> entries;
  ByteCursor cursor(file.subspan(directory.offset, directory.bytes));
  while (!cursor.at_end() && entries.size() < directory.entries)
    entries.push_back(TRY(read_entry(cursor)));
  if (entries.size() != directory.entries || !cursor.at_end())
    return Error("zip: {} entries in the central directory, but {} announced", entries.size(),
                 directory.entries);
  return entries;
}

// Finds the data of an entry through its local header, or says what is wrong with it.
std::string locate(ByteView file, const Directory& directory, Entry& entry) {
  ByteCursor cursor(file.first(directory.offset));
  cursor.seek(entry.header_offset);
  if (cursor.u32() != kLocalSignature) return "no local header where the directory points";
  cursor.skip(4);
  const uint16_t method = cursor.u16();
  cursor.skip(16);
  const uint16_t name_bytes = cursor.u16();
  const uint16_t extra_bytes = cursor.u16();
  const std::string_view name = as_text(cursor.take(name_bytes));
  cursor.skip(extra_bytes);
  if (!cursor.ok()) return "its local header is cut short";
  entry.data_offset = cursor.position();
  if (name != entry.name) return fmt::format("its local header calls it '{}'", printable(name, 80));
  if (method != entry.method)
    return fmt::format("its local header says {}, the directory {}", method_name(method),
                       method_name(entry.method));
  if (entry.packed_bytes > cursor.remaining())
    return "its data reaches past the end of the members";
  if (entry.method == kStored && entry.packed_bytes != entry.bytes)
    return fmt::format("stored in {} bytes, but {} recorded", entry.packed_bytes, entry.bytes);
  if (entry.method != kStored && entry.method != kDeflated)
    return fmt::format("compressed with {}, which is not read", method_name(entry.method));
  if (entry.bytes / kDeflateRatioMax > entry.packed_bytes)
    return fmt::format("it claims to expand from {} to {} bytes, more than deflate can",
                       entry.packed_bytes, entry.bytes);
  return {};
}

// Members that share bytes are how a small file expands without end.
void mark_overlaps(std::vector<Entry>& entries) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return entries[i].header_offset; });
  Entry* furthest = nullptr;
  for (const std::size_t i : order) {
    Entry& entry = entries[i];
    if (!entry.fault.empty()) continue;
    if (furthest && entry.header_offset < furthest->data_end()) {
      furthest->fault = fmt::format("it shares bytes with '{}'", printable(entry.name, 80));
      entry.fault = fmt::format("it shares bytes with '{}'", printable(furthest->name, 80));
    }
    if (!furthest || entry.data_end() > furthest->data_end()) furthest = &entry;
  }
}

void mark_duplicates(std::vector<Entry>& entries) {
  std::unordered_map<std::string_view, Entry*> seen;
  for (Entry& entry : entries) {
    const auto [other, fresh] = seen.try_emplace(entry.name, &entry);
    if (fresh) continue;
    entry.fault = other->second->fault = "two members have this name";
  }
}

ByteSource source_of(const Bytes& file, const Entry& entry) {
  if (!entry.fault.empty())
    return ByteSource(entry.bytes,
                      [fault = entry.fault]() -> Result<Bytes> { return Error("{}", fault); });
  const Bytes packed = file.slice(entry.data_offset, entry.packed_bytes);
  if (entry.method == kStored) return ByteSource(packed);
  return ByteSource(entry.bytes, [packed, expected = Inflated{entry.bytes, entry.crc32}] {
    return inflate_raw(packed.view, expected);
  });
}

// After the data of a member whose sizes were not known when its header was written, they follow:
// 12 bytes, 8 more where they are wide, 4 more with a signature. Found by what must come next.
uint64_t descriptor_bytes(ByteView file, const Entry& entry) {
  constexpr uint16_t kHasDescriptor = 8;
  if (!(entry.flags & kHasDescriptor)) return 0;
  for (const uint64_t bytes : {16, 24, 12, 20})
    if (range_fits(entry.data_end() + bytes, 2, file.size()) &&
        as_text(file).substr(entry.data_end() + bytes, 2) == "PK")
      return bytes;
  return 0;
}

// Bytes of the file that belong to no member and to no part of the directory.
void report_gaps(ByteView file, const Directory& directory, std::vector<Entry> entries,
                 std::vector<Problem>& problems) {
  std::ranges::sort(entries, {}, &Entry::header_offset);
  uint64_t covered = 0;
  const auto upto = [&](uint64_t begin, std::string_view what) {
    if (begin > covered)
      problems.push_back(
          {"zip", fmt::format("{} bytes before {} belong to no member", begin - covered, what)});
  };
  for (const Entry& entry : entries) {
    if (entry.data_offset == 0) return;  // A damaged one: where it ends is not known.
    upto(entry.header_offset, fmt::format("'{}'", printable(entry.name, 80)));
    covered = std::max(covered, entry.data_end() + descriptor_bytes(file, entry));
  }
  upto(directory.offset, "the directory");
  covered = directory.offset + directory.bytes;
  upto(directory.end, "its end record");
}

// Why an entry is no member to be read at all; empty when it is one.
std::string_view left_out_because(const Entry& entry) {
  if (entry.is_link()) return "a symbolic link: not followed";
  // numpy names members as the arrays are called: "/model/layers.0/Add_output_0.npy" is a value of
  // an ONNX graph. It is no path to us.
  std::string_view name = entry.name;
  if (name.starts_with('/') && name.ends_with(".npy")) name.remove_prefix(1);
  return member_name_fault(name);
}

}  // namespace

const ZipMember* ZipArchive::find(const std::string& name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &members[found->second];
}

Result<ZipArchive> read_zip(const Bytes& file, const Limits& limits) {
  ZipArchive archive;
  const Directory directory = TRY(read_end(file.view, archive.problems));
  std::vector<Entry> entries = TRY(read_directory(file.view, directory, limits));
  for (Entry& entry : entries)
    if (entry.fault.empty()) entry.fault = locate(file.view, directory, entry);
  mark_overlaps(entries);
  mark_duplicates(entries);
  for (Entry& entry : entries)
    if (entry.fault.empty() && grows_too_much(entry.bytes, entry.packed_bytes, limits))
      entry.fault = limit_hit("growth", fmt::format("it unpacks to more than {} times its size",
                                                    limits.growth_max))
                        .message();

  uint64_t expanded = 0;
  for (const Entry& entry : entries) {
    if (entry.is_folder()) continue;
    if (const std::string_view reason = left_out_because(entry); !reason.empty()) {
      archive.problems.push_back({entry.name, std::string(reason)});
      continue;
    }
    if ((entry.flags & kEncryptedFlags) && entry.fault.empty())
      archive.problems.push_back(
          {entry.name, "its flags say that it is encrypted; it is read as if it were not"});
    if (entry.method != kStored && entry.fault.empty()) expanded += entry.bytes;
    if (grows_too_much(expanded, file.size(), limits))
      return limit_hit(
          "growth",
          fmt::format("zip: its members unpack to more than {} times its size", limits.growth_max));
    if (expanded > limits.expanded_bytes_max)
      return limit_hit("expanded", fmt::format("zip: its members expand to more than {}",
                                               human_bytes(limits.expanded_bytes_max)));
    archive.by_name.try_emplace(entry.name, archive.members.size());
    archive.members.push_back({entry.name, source_of(file, entry), entry.method == kStored,
                               entry.packed_bytes, entry.crc32});
  }
  return archive;
}

std::vector<Problem> audit_zip(const Bytes& file, const Limits& limits) {
  const Result<ZipArchive> archive = read_zip(file, limits);
  if (!archive.ok()) return {};
  std::vector<Problem> problems;
  for (const ZipMember& member : archive.value().members)
    if (const Result<void> sum = verify_checksum(member); !sum.ok())
      problems.push_back({member.name, sum.error().message(), Severity::unreadable});
  std::vector<Problem> known;  // Opening says these.
  const Result<Directory> directory = read_end(file.view, known);
  Result<std::vector<Entry>> entries = read_directory(file.view, directory.value(), limits);
  for (Entry& entry : entries.value()) locate(file.view, directory.value(), entry);
  report_gaps(file.view, directory.value(), std::move(entries).value(), problems);
  return problems;
}

Result<void> verify_checksum(const ZipMember& member) {
  const Bytes bytes = TRY(member.source.open());
  if (member.stored && member.crc32 == 0) return {};  // None was recorded.
  const uint32_t found = crc32_of(bytes.view);
  if (found == member.crc32) return {};
  return Error("its checksum is {:08x}, but {:08x} was recorded", found, member.crc32);
}

}  // namespace tensordiff
