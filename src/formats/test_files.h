// For tests: files written byte by byte in memory, good ones and ones with a chosen fault.

#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.h"

namespace tensordiff::test_files {

// A number as it lies in a little-endian file.
template <class T>
std::string le(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
inline std::string u16(uint16_t value) { return le(value); }
inline std::string u32(uint32_t value) { return le(value); }
inline std::string u64(uint64_t value) { return le(value); }
inline std::string f32(float value) { return le(value); }

struct ZipFile {
  std::string name;
  std::string data;  // As it lies in the archive.
  uint16_t method = 0;
  uint64_t bytes = 0;           // Once inflated; 0: as many as `data`.
  uint32_t crc32 = 0;           // 0: the checksum of `data`.
  std::string local_name = {};  // Empty: the same as `name`.
  uint16_t flags = 0;
  uint32_t attributes = 0;
  std::function<void(std::string& entry)> spoil = {};  // Changes its entry in the directory.
};

std::string zip(const std::vector<ZipFile>& files, std::string_view comment = {});
ZipFile stored(std::string name, std::string data);
ZipFile deflated(std::string name, std::string_view plain);
std::string gzip(std::string_view plain);
std::string zstd(std::string_view plain);
std::string xz(std::string_view plain);
std::string bzip2(std::string_view plain);

struct TarFile {
  std::string name;
  std::string data;
  char type = '0';
  std::string link = {};
};

std::string tar(const std::vector<TarFile>& files);

std::string safetensors(std::string_view header, std::string_view data);
std::string npy(std::string_view header, std::string_view data);

// A small array of float32 as an .npy file.
std::string npy_f32(const std::vector<float>& values);

// A file of tests/data/formats, and what it holds.
std::filesystem::path data_path(std::string_view name);
std::string read_file(const std::filesystem::path& path);

// The program that the tests belong to, for readers that start it.
std::string program();

// Reads every element of every tensor; whether all could be read.
bool read_all(const Catalog& catalog);

Input input(std::string bytes, std::string name = "file");

// The error of opening these bytes with a format; empty when it opened.
std::string error_of(const Format& format, std::string bytes);

}  // namespace tensordiff::test_files
