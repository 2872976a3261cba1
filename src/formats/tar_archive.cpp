// tar: for each file a 512-byte header and its bytes, padded to 512; two blocks of zeros at the
// end.
//
//   name[100] mode[8] uid[8] gid[8] size[12] mtime[12] checksum[8] type link[100]
//   "ustar" version[2] user[32] group[32] major[8] minor[8] prefix[155]
//
// Numbers are octal text, or big-endian binary when the first bit is set (GNU). Longer names come
// in members of their own: GNU type L, or pax records "LENGTH key=value\n" in type x (for the next
// member) and g (for all that follow). Links and devices are never followed, only reported.

#include "formats/tar_archive.h"

#include <algorithm>
#include <map>

#include "base/checked_math.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/member_name.h"

namespace tensordiff {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kExtendedBytesMax = 1 << 20;  // A long name or a set of pax records.

using PaxRecords = std::map<std::string, std::string, std::less<>>;

std::string_view field(ByteView header, std::size_t at, std::size_t size) {
  const std::string_view text = as_text(header).substr(at, size);
  return text.substr(0, text.find('\0'));
}

bool is_zero(ByteView bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

std::optional<uint64_t> parse_digits(std::string_view text, uint64_t base) {
  uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c >= static_cast<char>('0' + base)) return std::nullopt;
    const auto scaled = checked_mul(number, base);
    const auto sum = scaled ? checked_add(*scaled, static_cast<uint64_t>(c - '0')) : std::nullopt;
    if (!sum) return std::nullopt;
    number = *sum;
  }
  return number;
}

std::optional<uint64_t> parse_number(ByteView header, std::size_t at, std::size_t size) {
  const ByteView bytes = header.subspan(at, size);
  const auto first = std::to_integer<uint8_t>(bytes[0]);
  if (first == 0x80) {
    uint64_t number = 0;
    for (const std::byte byte : bytes.subspan(1)) {
      if (number >> 56) return std::nullopt;
      number = number << 8 | std::to_integer<uint8_t>(byte);
    }
    return number;
  }
  std::string_view text = field(header, at, size);
  text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  return parse_digits(text.substr(0, text.find(' ')), 8);  // Nothing for 0xff, a negative number.
}

bool checksum_matches(ByteView header) {
  const std::optional<uint64_t> recorded = parse_number(header, 148, 8);
  int64_t unsigned_sum = 8 * ' ';
  int64_t signed_sum = 8 * ' ';  // As some old writers did it.
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (i >= 148 && i < 156) continue;
    unsigned_sum += std::to_integer<uint8_t>(header[i]);
    signed_sum += static_cast<int8_t>(std::to_integer<uint8_t>(header[i]));
  }
  return recorded && (static_cast<int64_t>(*recorded) == unsigned_sum ||
                      static_cast<int64_t>(*recorded) == signed_sum);
}

Result<PaxRecords> parse_pax(std::string_view text, PaxRecords records) {
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::optional<uint64_t> length = space == std::string_view::npos || space == 0
                                               ? std::nullopt
                                               : parse_digits(text.substr(0, space), 10);
    if (!length || *length <= space + 1 || *length > text.size() || text[*length - 1] != '\n')
      return Error("a pax record is malformed");
    const std::string_view record = text.substr(space + 1, *length - space - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) return Error("a pax record is malformed");
    records[std::string(record.substr(0, equals))] = record.substr(equals + 1);
    text.remove_prefix(*length);
  }
  return records;
}

std::string_view refused_because(char type) {
  switch (type) {
    case '1':
      return "a hard link: not followed";
    case '2':
      return "a symbolic link: not followed";
    case '3':
    case '4':
      return "a device: not opened";
    case '6':
      return "a pipe: not opened";
    case 'S':
      return "a sparse file, which is not read";
    case 'M':
      return "a part of a file that another volume starts, which is not read";
    default:
      return "a member of an unknown type, which is not read";
  }
}

class TarReader {
 public:
  TarReader(Bytes file, const Limits& limits) : file_(std::move(file)), limits_(limits) {}

  // Walks the members. What is read before something goes wrong stays.
  Result<Archive> read() {
    while (true) {
      if (left() < kBlock) return stop("no end marker: it may be cut short");
      const ByteView header = file_.view.subspan(at_, kBlock);
      if (is_zero(header)) break;
      if (!checksum_matches(header))
        return stop(fmt::format("damaged at byte {}: the header's checksum does not match", at_));
      if (Result<void> member = read_member(header); !member.ok())
        return stop(fmt::format("at byte {}: {}", at_, member.error().message()));
      if (archive_.files.size() > limits_.members_max)
        return limit_hit("members", fmt::format("tar: more than {} members", limits_.members_max));
    }
    if (left() < 2 * kBlock) archive_.problems.push_back({"tar", "its end marker is cut short"});
    if (!is_zero(file_.view.subspan(at_)))
      archive_.problems.push_back({"tar", "bytes that are not zero follow its end"});
    return std::move(archive_);
  }

 private:
  uint64_t left() const { return file_.size() - at_; }

  Result<Archive> stop(std::string reason) {
    if (archive_.files.empty()) return Error("tar: {}", reason);
    archive_.problems.push_back({"tar", std::move(reason)});
    return std::move(archive_);
  }

  // An old GNU sparse member continues its map in more blocks; each says whether one follows.
  uint64_t header_bytes(ByteView header) const {
    uint64_t bytes = kBlock;
    bool more = header[156] == std::byte{'S'} && header[482] != std::byte{0};
    while (more && left() - bytes >= kBlock) {
      more = file_.view[at_ + bytes + 504] != std::byte{0};
      bytes += kBlock;
    }
    return bytes;
  }

  Result<void> read_member(ByteView header) {
    const char type = static_cast<char>(header[156]);
    const bool describes_next = std::string_view("xgLK").find(type) != std::string_view::npos;
    std::optional<uint64_t> size = parse_number(header, 124, 12);
    if (const auto pax = pax_.find("size"); pax != pax_.end() && !describes_next)
      size = parse_digits(pax->second, 10);
    if (!size) return Error("the size of the member is not a number");
    const bool has_data =
        describes_next || std::string_view("123456").find(type) == std::string_view::npos;
    const uint64_t stored = has_data ? *size : 0;
    const uint64_t data_offset = at_ + header_bytes(header);
    const uint64_t stored_max = file_.size() - data_offset;
    if (stored > stored_max)
      return Error("'{}' has {} bytes, but {} are left in the file", printable(name_of(header)),
                   *size, stored_max);
    const Bytes data = file_.slice(data_offset, stored);
    if (describes_next) {
      TRY(read_extension(type, data.view));
    } else {
      add(type, name_of(header), data);
      pax_ = global_pax_;
      long_name_.clear();
    }
    // The padding after the last member may be missing; the size was checked, so this cannot wrap.
    at_ = std::min(data_offset + (stored + kBlock - 1) / kBlock * kBlock, file_.size());
    return {};
  }

  Result<void> read_extension(char type, ByteView data) {
    if (data.size() > kExtendedBytesMax)
      return Error("an extended header of {} bytes, the limit is {}", data.size(),
                   kExtendedBytesMax);
    const std::string_view text = as_text(data);
    if (type == 'L') long_name_ = text.substr(0, text.find('\0'));
    if (type == 'g') pax_ = global_pax_ = TRY(parse_pax(text, global_pax_));
    if (type == 'x') pax_ = TRY(parse_pax(text, global_pax_));
    return {};
  }

  std::string name_of(ByteView header) const {
    if (const auto path = pax_.find("path"); path != pax_.end()) return path->second;
    if (!long_name_.empty()) return long_name_;
    const std::string name(field(header, 0, 100));
    // Only POSIX "ustar\0" has a prefix; GNU's "ustar " keeps other things there.
    const bool posix = as_text(header).substr(257, 6) == std::string_view("ustar\0", 6);
    const std::string_view prefix = posix ? field(header, 345, 155) : std::string_view();
    return prefix.empty() ? name : std::string(prefix) + "/" + name;
  }

  void add(char type, std::string name, const Bytes& data) {
    while (name.starts_with("./")) name.erase(0, 2);
    const bool file = type == '0' || type == '\0' || type == '7';
    if (type == '5' || type == 'V' || (file && (name.empty() || name.ends_with('/')))) return;
    std::string_view reason = file ? member_name_fault(name) : refused_because(type);
    const auto sparse = pax_.lower_bound("GNU.sparse.");
    if (sparse != pax_.end() && sparse->first.starts_with("GNU.sparse."))
      reason = refused_because('S');
    if (!reason.empty()) return archive_.problems.push_back({std::move(name), std::string(reason)});
    archive_.files.push_back({std::move(name), ByteSource(data)});
  }

  Bytes file_;
  const Limits& limits_;
  Archive archive_;
  uint64_t at_ = 0;
  PaxRecords pax_;
  PaxRecords global_pax_;
  std::string long_name_;
};

}  // namespace

bool is_tar(const Bytes& file) {
  return file.size() >= kBlock && !is_zero(file.view.first(kBlock)) &&
         (as_text(file.view).substr(257, 5) == "ustar" ||
          checksum_matches(file.view.first(kBlock)));
}

Result<Archive> read_tar(const Bytes& file, const Limits& limits) {
  return TarReader(file, limits).read();
}

}  // namespace tensordiff
