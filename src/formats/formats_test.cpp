// All formats at once: the list itself, detection, and files that were damaged in every place. A
// new format is in all of these by being in the list.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "base/base64.h"
#include "formats/audit.h"
#include "formats/format.h"
#include "formats/tar_archive.h"
#include "formats/test_files.h"
#include "formats/test_gguf.h"
#include "formats/test_proto.h"

namespace tensordiff {
namespace {

using namespace test_files;

// Two outputs of one run, as Polygraphy saves them.
std::string polygraphy(const std::string& array) {
  const std::string coded = base64(array);
  return R"({"lst": [["onnxrt-runner-N0-11/17/26-10:00:00", [{"outputs": {"a": {"values": )"
         R"({"array": ")" +
         coded + R"(", "polygraphy_class": "ndarray"}, "polygraphy_class": "LazyArray"}, "b": )" +
         R"({"array": ")" + coded + R"("}}, "runtime": 0.1}]]], "polygraphy_class": "RunResults"})";
}

// What llama.cpp prints of one tensor of [2, 8] and of one that is quantized.
std::string eval_log() {
  return "llama_model_loader: loaded\n"
         "common_debug_cb_eval:             norm-0 = (f32)   RMS_NORM(embd{8, 2, 1, 1}, }) = "
         "{8, 2, 1, 1}\n    [\n        [\n"
         "            [      0.1000,      -0.2000,       0.3000,    ...,       0.4000,"
         "       0.5000,       0.6000  ],\n"
         "            [      1.1000,      -1.2000,       1.3000,    ...,       1.4000,"
         "       1.5000,       1.6000  ],\n"
         "        ],\n    ]\n    sum = 5.100000\n"
         "common_debug_cb_eval:             k-0 = (q8_0)   CPY(x{8, 2, 1, 1}, }) = {8, 2, 1, 1}\n";
}

// A small good file of each format. Formats of one row each; a new format adds its own.
std::string example_of(const Format& format) {
  const std::string array = npy_f32({1, 2, 3});
  const std::map<std::string_view, std::function<std::string()>> made = {
      {"npy", [&] { return array; }},
      {"npz",
       [&] {
         return zip({deflated("a.npy", array), stored("b.npy", array)});
       }},
      {"zip",
       [&] {
         return zip({deflated("d/a.npy", array), stored("d/b.npy", array)});
       }},
      {"tar",
       [&] {
         return tar({{"d/a.npy", array}, {"d/b.npy", array}});
       }},
      {"gzip",
       [&] {
         return gzip(tar({{"a.npy", array}}));
       }},
      {"zstd",
       [&] {
         return zstd(tar({{"a.npy", array}}));
       }},
      {"xz",
       [&] {
         return xz(tar({{"a.npy", array}}));
       }},
      {"bzip2", [&] { return bzip2(array); }},
      {"safetensors",
       [&] {
         return safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})",
                            f32(1) + f32(2) + "\3");
       }},
      {"gguf",
       [&] {
         Gguf file;
         file.text("general.name", "n").tensor({"a", {2}, 0, f32(1) + f32(2)});
         return file.tensor({"b", {32}, 8, u16(0x3c00) + std::string(32, 'x')}).file();
       }},
      {"onnx",
       [&] {
         const std::string tensor = proto(1, 1) + proto(2, 1) + proto(8, "w") + proto(9, f32(1));
         return proto(1, 8) + proto(7, proto(5, tensor)) + proto(8, proto(2, 17));
       }},
      {"tf-checkpoint", [] { return read_file(data_path("../tensorflow/v1.ckpt")); }},
      {"tf-graph",
       [&] {
         const std::string tensor = proto(1, 1) + proto(4, f32(1));
         const std::string value = proto(1, "value") + proto(2, proto(8, tensor));
         return proto(1, proto(1, "c") + proto(2, "Const") + proto(5, value)) + proto(3, 9);
       }},
      {"torch-zip", [] { return read_file(data_path("single_tensor.pth")); }},
      {"torch-legacy", [] { return read_file(data_path("legacy_scalar.pth")); }},
      {"torch-tar",
       [] {
         // Without the zeros that fill the last record of a tape.
         std::string file = read_file(data_path("../torch/torch_0_1.tar"));
         file.resize((file.find_last_not_of('\0') / 512 + 3) * 512);
         return file;
       }},
      {"torch-export", [] { return read_file(data_path("../torch/export.pt2")); }},
      {"matlab",
       [] {
         return u32(10) + u32(1) + u32(2) + u32(0) + u32(2) + std::string("w\0", 2) + f32(1) +
                f32(2);
       }},
      {"msgpack", [] { return read_file(data_path("../flax/chunked.msgpack")); }},
      {"hdf5", [] { return read_file(data_path("../hdf5/small.h5")); }},
      {"pickle", [] { return read_file(data_path("scalar.pkl")); }},
      {"llama-logits",
       [&] {
         std::string file = "_logits_" + u32(4) + u32(2) + u32(1);
         for (uint32_t token = 0; token < 4; ++token) file += u32(token);
         return file + f32(0.5F) + f32(-8) + u16(0) + u16(16);
       }},
      {"log-probs",
       [] { return std::string(R"({"log_probs": [-1.5, -2], "token_ids": [3, 4]})"); }},
      {"polygraphy", [&] { return polygraphy(array); }},
      {"eval-callback", [] { return eval_log(); }},
      {"statistics",
       [] {
         return std::string(
             R"({"task": "statistics", "data": {"Module.norm.RMSNorm.forward.0": {"output": [)"
             R"({"Max": 1.5, "Min": -1, "Mean": 0.25, "Norm": 9}]}}})");
       }},
      {"stats-table", [] { return std::string("name,mean,max\nmodel.norm,0.25,1.5\n"); }},
  };
  const auto found = made.find(format.name);
  return found == made.end() ? "" : found->second();
}

// HDF5 files are opened by a process of its own, which takes a while: not every place is tried.
std::size_t step_of(const Format& format) { return &format == &formats::hdf5 ? 61 : 1; }

TEST(Formats, AreListedOnceAndHaveAnExample) {
  std::set<std::string_view> names;
  for (const Format* format : formats::kAll) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_FALSE(format->summary.empty()) << format->name;
    EXPECT_FALSE(format->extensions.empty()) << format->name;
    const std::string example = example_of(*format);
    ASSERT_FALSE(example.empty()) << "no example of " << format->name;
    const Result<Catalog> catalog = format->open(input(example));
    ASSERT_TRUE(catalog.ok()) << format->name << ": " << catalog.error().message();
    EXPECT_FALSE(catalog.value().tensors.empty()) << format->name;
    EXPECT_TRUE(read_all(catalog.value())) << format->name;
  }
}

// Detection finds each example's own format, because the particular stand before the general.
TEST(Formats, FindTheirOwnFiles) {
  for (const Format* format : formats::kAll) {
    const Bytes file = bytes_of(example_of(*format));
    const auto* first =
        std::ranges::find_if(formats::kAll, [&](const Format* f) { return f->recognises(file); });
    ASSERT_NE(first, std::end(formats::kAll)) << format->name;
    EXPECT_EQ((*first)->name, format->name);
  }
}

// Containers that are special cases of another: the general one reads them too.
bool is_kind_of(const Format& special, const Format& general) {
  if (&general == &formats::tar) return is_tar(bytes_of(example_of(special)));
  return &general == &formats::zip && as_text(bytes_of(example_of(special)).view).starts_with("PK");
}

TEST(Formats, RefuseTheFilesOfOthers) {
  for (const Format* format : formats::kAll) {
    for (const Format* other : formats::kAll) {
      if (format == other || is_kind_of(*other, *format) || is_kind_of(*format, *other)) continue;
      const std::string error = error_of(*format, example_of(*other));
      EXPECT_FALSE(error.empty()) << format->name << " opened a file of " << other->name;
    }
  }
}

// A cut file is refused, or says that something is missing, or its tensors cannot be read.
TEST(Formats, NoticeEveryTruncation) {
  for (const Format* format : formats::kAll) {
    const std::string whole = example_of(*format);
    for (std::size_t size = 0; size < whole.size(); size += step_of(*format)) {
      const Result<Catalog> catalog = format->open(input(whole.substr(0, size)));
      if (!catalog.ok()) {
        EXPECT_FALSE(catalog.error().message().empty());
        continue;
      }
      EXPECT_TRUE(!read_all(catalog.value()) || !catalog.value().problems.empty())
          << format->name << " cut to " << size << " of " << whole.size() << " bytes";
    }
  }
}

// Bytes behind the end are how one file hides in another: somebody says so.
TEST(Formats, NoticeBytesBehindTheEnd) {
  for (const Format* format : formats::kAll) {
    const Input longer = input(example_of(*format) + "\x01nothing");
    const Result<Catalog> catalog = format->open(longer);
    const bool audited = !audit_input(longer, format->name).empty();
    EXPECT_TRUE(!catalog.ok() || !catalog.value().problems.empty() || !read_all(catalog.value()) ||
                audited)
        << format->name;
    const std::vector<Problem> found = audit_input(input(example_of(*format)), format->name);
    EXPECT_TRUE(found.empty()) << format->name << ": " << found[0].message;
  }
}

TEST(Formats, SurviveEveryChangedByte) {
  for (const Format* format : formats::kAll) {
    const std::string whole = example_of(*format);
    for (std::size_t at = 0; at < whole.size(); at += step_of(*format)) {
      for (const unsigned change : {0x01U, 0x80U, 0xffU}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ change);
        const Result<Catalog> catalog = format->open(input(changed));
        if (catalog.ok()) {
          read_all(catalog.value());
        } else {
          EXPECT_FALSE(catalog.error().message().empty());
        }
      }
    }
  }
}

// What the fuzzer starts from. They are made by --gtest_also_run_disabled_tests.
std::filesystem::path seed_of(const Format& format) {
  return data_path("../../fuzz/corpus") / std::string(format.name);
}

TEST(Seeds, DISABLED_AreWritten) {
  for (const Format* format : formats::kAll)
    std::ofstream(seed_of(*format), std::ios::binary) << example_of(*format);
}

TEST(Seeds, OpenWithTheirFormat) {
  for (const Format* format : formats::kAll) {
    const Result<Catalog> catalog = format->open(input(read_file(seed_of(*format))));
    EXPECT_TRUE(catalog.ok()) << format->name;
  }
}

// Uncompressed tensors are read where they lie in the mapped file: nothing is copied.
TEST(Formats, LeaveStoredTensorsInPlace) {
  for (const Format* format : formats::kAll) {
    constexpr const Format* kMade[] = {&formats::gzip,
                                       &formats::zstd,
                                       &formats::xz,
                                       &formats::bzip2,
                                       &formats::pickle,
                                       &formats::polygraphy,
                                       &formats::eval_callback,
                                       &formats::log_probs,
                                       &formats::statistics,
                                       &formats::statistics_table};
    if (std::ranges::find(kMade, format) != std::end(kMade)) continue;
    const Bytes file = bytes_of(example_of(*format));
    Input input;
    input.source = ByteSource(file);
    const Result<Catalog> catalog = format->open(input);
    ASSERT_TRUE(catalog.ok());
    int in_place = 0;
    for (const Tensor& tensor : catalog.value().tensors) {
      for (const Part& part : tensor.view.parts) {
        if (!part.source.ready()) continue;  // A deflated member.
        const ByteView bytes = part.source.open().value().view;
        EXPECT_GE(bytes.data(), file.view.data()) << format->name << " " << tensor.name;
        EXPECT_LE(bytes.data() + bytes.size(), file.view.data() + file.size()) << format->name;
        ++in_place;
      }
    }
    EXPECT_GT(in_place, 0) << format->name;
  }
}

}  // namespace
}  // namespace tensordiff
