// The writers of test_files.h. A file of tests only by its name: that keeps it out of the program.

#include "formats/test_files.h"

#include <bzlib.h>
#include <libdeflate.h>
#include <lzma.h>
#include <zstd.h>

#include <fstream>
#include <iterator>

#include "base/sandbox.h"
#include "formats/inflate.h"
#include "tensor/reader.h"

namespace tensordiff::test_files {
namespace {

// The real program, for readers that start a process of their own.
[[maybe_unused]] const bool program_is_known = (set_sandbox_program(TENSORDIFF_PROGRAM), true);

std::string deflate(std::string_view plain) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  std::string packed(libdeflate_deflate_compress_bound(compressor, plain.size()), '\0');
  packed.resize(libdeflate_deflate_compress(compressor, plain.data(), plain.size(), packed.data(),
                                            packed.size()));
  libdeflate_free_compressor(compressor);
  return packed;
}

std::string octal(uint64_t number, int width) { return fmt::format("{:0{}o}", number, width); }

void put(std::string& header, std::size_t at, std::string_view text) {
  header.replace(at, text.size(), text);
}

std::string tar_header(const TarFile& file) {
  std::string header(512, '\0');
  put(header, 0, file.name.substr(0, 100));
  put(header, 100, "0000644");
  put(header, 124, octal(file.data.size(), 11));
  put(header, 136, octal(0, 11));
  put(header, 148, "        ");
  header[156] = file.type;
  put(header, 157, file.link);
  put(header, 257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(header, 148, octal(sum, 6));
  header[154] = '\0';
  return header;
}

}  // namespace

std::string zip(const std::vector<ZipFile>& files, std::string_view comment) {
  std::string members;
  std::string directory;
  for (const ZipFile& file : files) {
    const std::string local_name = file.local_name.empty() ? file.name : file.local_name;
    const uint32_t crc = file.crc32 ? file.crc32 : crc32_of(as_bytes(file.data));
    const auto packed = static_cast<uint32_t>(file.data.size());
    const auto bytes = file.bytes ? static_cast<uint32_t>(file.bytes) : packed;
    const auto name_bytes = static_cast<uint16_t>(file.name.size());
    const std::string common =
        u16(file.flags) + u16(file.method) + u32(0) + u32(crc) + u32(packed) + u32(bytes);
    std::string entry = "PK\1\2" + u16(3 << 8) + u16(20) + common + u16(name_bytes) + u16(0) +
                        u16(0) + u16(0) + u16(0) + u32(file.attributes) +
                        u32(static_cast<uint32_t>(members.size())) + file.name;
    if (file.spoil) file.spoil(entry);
    directory += entry;
    members += "PK\3\4" + u16(20) + common + u16(static_cast<uint16_t>(local_name.size()));
    members += u16(0) + local_name + file.data;
  }
  const auto count = static_cast<uint16_t>(files.size());
  return members + directory + "PK\5\6" + u32(0) + u16(count) + u16(count) +
         u32(static_cast<uint32_t>(directory.size())) + u32(static_cast<uint32_t>(members.size())) +
         u16(static_cast<uint16_t>(comment.size())) + std::string(comment);
}

ZipFile stored(std::string name, std::string data) {
  return {.name = std::move(name), .data = std::move(data)};
}

ZipFile deflated(std::string name, std::string_view plain) {
  return {.name = std::move(name),
          .data = deflate(plain),
          .method = 8,
          .bytes = plain.size(),
          .crc32 = crc32_of(as_bytes(plain))};
}

std::string gzip(std::string_view plain) {
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + deflate(plain) +
         u32(crc32_of(as_bytes(plain))) + u32(static_cast<uint32_t>(plain.size()));
}

std::string zstd(std::string_view plain) {
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  return packed;
}

std::string xz(std::string_view plain) {
  std::string packed(lzma_stream_buffer_bound(plain.size()), '\0');
  std::size_t bytes = 0;
  if (lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                              reinterpret_cast<const uint8_t*>(plain.data()), plain.size(),
                              reinterpret_cast<uint8_t*>(packed.data()), &bytes,
                              packed.size()) != LZMA_OK)
    return "";
  packed.resize(bytes);
  return packed;
}

std::string bzip2(std::string_view plain) {
  std::string packed(plain.size() * 2 + 1024, '\0');
  auto bytes = static_cast<unsigned>(packed.size());
  std::string copy(plain);  // libbz2's interface predates const.
  BZ2_bzBuffToBuffCompress(packed.data(), &bytes, copy.data(), static_cast<unsigned>(copy.size()),
                           9, 0, 0);
  packed.resize(bytes);
  return packed;
}

std::string tar(const std::vector<TarFile>& files) {
  std::string archive;
  for (const TarFile& file : files) {
    archive += tar_header(file) + file.data;
    archive.resize((archive.size() + 511) / 512 * 512);
  }
  return archive + std::string(1024, '\0');
}

std::string safetensors(std::string_view header, std::string_view data) {
  return u64(header.size()) + std::string(header) + std::string(data);
}

std::string npy(std::string_view header, std::string_view data) {
  return "\x93NUMPY" + std::string("\1\0", 2) + u16(static_cast<uint16_t>(header.size())) +
         std::string(header) + std::string(data);
}

std::string npy_f32(const std::vector<float>& values) {
  std::string data;
  for (const float value : values) data += f32(value);
  return npy(
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}\n", values.size()),
      data);
}

std::filesystem::path data_path(std::string_view name) {
  return std::filesystem::path(TENSORDIFF_SOURCE_DIR) / "tests/data/formats" / name;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string program() { return TENSORDIFF_PROGRAM; }

bool read_all(const Catalog& catalog) {
  constexpr uint64_t kPiece = 1024;
  bool whole = true;
  std::vector<double> values(2 * kPiece);  // Complex elements give two each.
  for (const Tensor& tensor : catalog.tensors) {
    const Result<Reader> reader = Reader::open(tensor.view);
    whole = whole && tensor.fault.empty() && reader.ok();
    if (!tensor.fault.empty() || !reader.ok()) continue;
    const uint64_t count = std::min<uint64_t>(tensor.elements(), 65536);  // A shape may lie.
    for (uint64_t first = 0; first < count; first += kPiece)
      reader.value().components(first, std::min(kPiece, count - first), values.data());
  }
  return whole;
}

Input input(std::string bytes, std::string name) {
  Input made;
  made.name = std::move(name);
  made.source = ByteSource(bytes_of(std::move(bytes)));
  return made;
}

std::string error_of(const Format& format, std::string bytes) {
  const Result<Catalog> catalog = format.open(input(std::move(bytes)));
  return catalog.ok() ? "" : catalog.error().message();
}

}  // namespace tensordiff::test_files
