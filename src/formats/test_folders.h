// For tests: folders made in memory, and what is told of them.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/archive.h"
#include "formats/pickle/test_pickles.h"

namespace tensordiff::test_folders {

using namespace test_pickles;

using Files = std::vector<std::pair<std::string, std::string>>;

// "w [2] ok; v: its fault | problem" or "! error".
inline std::string told_folder(const Files& files) {
  Archive archive;
  for (const auto& [path, data] : files)
    archive.files.push_back({path, ByteSource(bytes_of(data))});
  const Result<Catalog> catalog = open_files(std::move(archive), Limits(), 0);
  if (!catalog.ok()) return "! " + catalog.error().message();
  std::string out;
  for (const Tensor& t : catalog.value().tensors) {
    out += (out.empty() ? "" : "; ") + t.name;
    if (!t.fault.empty()) {
      out += ": " + t.fault;
      continue;
    }
    std::vector<double> values(t.elements());
    Reader::open(t.view).value().values(0, values.size(), values.data());
    for (const double value : values) out += fmt::format(" {:g}", value);
  }
  for (const Problem& problem : catalog.value().problems)
    out += " | " + problem.where + ": " + problem.message;
  return out;
}

// Whether all of it can be read, and nothing is said against it.
inline bool reads(const Files& files) {
  Archive archive;
  for (const auto& [path, data] : files)
    archive.files.push_back({path, ByteSource(bytes_of(data))});
  const Result<Catalog> catalog = open_files(std::move(archive), Limits(), 0);
  return catalog.ok() && catalog.value().problems.empty() && test_files::read_all(catalog.value());
}

// Every file cut at every place, which somebody must notice, and every byte of it changed, which
// all must survive.
inline void damage_everywhere(const Files& whole) {
  ASSERT_TRUE(reads(whole));
  for (std::size_t file = 0; file < whole.size(); ++file) {
    for (std::size_t at = 0; at < whole[file].second.size(); ++at) {
      Files cut = whole;
      cut[file].second.resize(at);
      EXPECT_FALSE(reads(cut)) << cut[file].first << " cut to " << at;
      for (const char change : {'\x01', '\x80', '\xff'}) {
        Files changed = whole;
        char& byte = changed[file].second[at];
        byte = static_cast<char>(byte ^ change);
        reads(changed);
      }
    }
  }
}

inline std::string size(const std::vector<int32_t>& sizes) {
  return call(global("torch", "Size"), {numbers(sizes)});
}
}  // namespace tensordiff::test_folders
