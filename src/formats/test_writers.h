// For tests: the same float32 arrays as a file of each format that is easily written.

#pragma once

#include <string>
#include <vector>

#include "formats/pickle/test_pickles.h"
#include "formats/test_gguf.h"
#include "formats/test_proto.h"

namespace tensordiff::test_writers {

using namespace test_files;

struct NamedArray {
  std::string name;
  std::vector<uint64_t> shape;
  std::vector<float> values;

  std::string bytes() const {
    std::string out;
    for (const float value : values) out += f32(value);
    return out;
  }
  std::vector<int32_t> sizes() const { return {shape.begin(), shape.end()}; }
};
using Arrays = std::vector<NamedArray>;

inline std::string list_text(const std::vector<uint64_t>& shape, std::string_view last = "") {
  std::string out;
  for (const uint64_t size : shape) out += (out.empty() ? "" : ",") + std::to_string(size);
  return out + std::string(last);
}

inline std::string as_safetensors(const Arrays& arrays) {
  std::string header = "{", data;
  for (const NamedArray& array : arrays) {
    const std::size_t begin = data.size();
    data += array.bytes();
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", array.name, list_text(array.shape), begin,
                          data.size());
  }
  return safetensors(header + "}", data);
}

inline std::string as_npy(const NamedArray& array) {
  return npy(fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}\n",
                         list_text(array.shape, ",")),
             array.bytes());
}
inline std::string as_npz(const Arrays& arrays) {
  std::vector<ZipFile> files;
  for (const NamedArray& array : arrays)
    files.push_back(deflated(array.name + ".npy", as_npy(array)));
  return zip(files);
}
inline std::string as_tar_gz(const Arrays& arrays) {
  std::vector<TarFile> files;
  for (const NamedArray& array : arrays) files.push_back({array.name + ".npy", as_npy(array)});
  return gzip(tar(files));
}

// Each array by rows in a storage of its own.
inline std::string torch_root(const Arrays& arrays) {
  using namespace test_pickles;
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::vector<int32_t> strides(arrays[i].shape.size(), 1);
    for (std::size_t axis = strides.size(); axis-- > 1;)
      strides[axis - 1] = strides[axis] * static_cast<int32_t>(arrays[i].shape[axis]);
    const auto count = static_cast<int32_t>(arrays[i].values.size());
    entries.emplace_back(arrays[i].name,
                         tensor({test_pickles::storage("FloatStorage", std::to_string(i), count), 0,
                                 arrays[i].sizes(), strides}));
  }
  return dict(entries);
}
inline std::string as_torch_zip(const Arrays& arrays) {
  std::vector<std::pair<std::string, std::string>> storages;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    storages.emplace_back(std::to_string(i), arrays[i].bytes());
  return test_pickles::torch_zip(torch_root(arrays), storages);
}
inline std::string as_torch_legacy(const Arrays& arrays) {
  using namespace test_pickles;
  std::string file = kProto2 + "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + kProto2 +
                     "M\xe9\x03." + kProto2 + "}." + kProto2 + torch_root(arrays) + "." + kProto2 +
                     "](";
  for (std::size_t i = 0; i < arrays.size(); ++i) file += test_pickles::text(std::to_string(i));
  file += "e.";
  for (const NamedArray& array : arrays) file += u64(array.values.size()) + array.bytes();
  return file;
}

inline std::string as_pickle(const Arrays& arrays) {
  using namespace test_pickles;
  const std::string type =
      call(global("numpy", "dtype"), {text("f4"), "\x89", "\x88"}) +
      tuple({number(3), text("<"), "N", "N", "N", number(-1), number(-1), number(0)}) + "b";
  std::vector<std::pair<std::string, std::string>> entries;
  for (const NamedArray& array : arrays)
    entries.emplace_back(
        array.name,
        call(global("numpy.core.multiarray", "_reconstruct"),
             {global("numpy", "ndarray"), numbers({0}), blob("b")}) +
            tuple({number(1), numbers(array.sizes()), type, "\x89", blob(array.bytes())}) + "b");
  return kProto2 + dict(entries) + ".";
}

inline std::string as_gguf(const Arrays& arrays) {
  Gguf file;
  for (const NamedArray& array : arrays)
    file.tensor({array.name, {array.shape.rbegin(), array.shape.rend()}, 0, array.bytes()});
  return file.file();
}

inline std::string as_onnx(const Arrays& arrays) {
  std::string graph;
  for (const NamedArray& array : arrays) {
    std::string dims;
    for (const uint64_t size : array.shape) dims += proto(1, size);
    graph += proto(5, dims + proto(2, 1) + proto(8, array.name) + proto(9, array.bytes()));
  }
  return proto(1, 8) + proto(7, graph) + proto(8, proto(2, 17));
}

inline std::string as_tf_graph(const Arrays& arrays) {
  std::string nodes;
  for (const NamedArray& array : arrays) {
    std::string shape;
    for (const uint64_t size : array.shape) shape += proto(2, proto(1, size));
    const std::string value = proto(1, 1) + proto(2, shape) + proto(4, array.bytes());
    nodes += proto(1, proto(1, array.name) + proto(2, "Const") +
                          proto(5, proto(1, "value") + proto(2, proto(8, value))));
  }
  return nodes + proto(3, 9);
}

inline std::string big16(std::size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}
inline std::string as_msgpack(const Arrays& arrays) {
  std::string map = "\xde" + big16(arrays.size());
  for (const NamedArray& array : arrays) {
    std::string inner = std::string("\x93") + static_cast<char>(0x90 | array.shape.size());
    for (const uint64_t size : array.shape) inner += "\xcd" + big16(size);
    inner +=
        "\xa7"
        "float32\xc5" +
        big16(array.bytes().size()) + array.bytes();
    map += "\xda" + big16(array.name.size()) + array.name + "\xc8" + big16(inner.size()) + "\x01" +
           inner;
  }
  return map;
}

// By columns, and an array of one axis as a row.
inline std::string as_matlab(const Arrays& arrays) {
  const auto element = [](uint32_t type, std::string data) {
    const std::string head = u32(type) + u32(static_cast<uint32_t>(data.size()));
    data.resize((data.size() + 7) / 8 * 8);
    return head + data;
  };
  std::string file = "MATLAB 5.0 MAT-file";
  file.resize(124, ' ');
  file += u16(0x0100) + "IM";
  for (const NamedArray& array : arrays) {
    const uint64_t rows = array.shape.size() > 1 ? array.shape[0] : 1;
    const uint64_t columns = array.values.size() / rows;
    std::string turned;
    for (uint64_t column = 0; column < columns; ++column)
      for (uint64_t row = 0; row < rows; ++row) turned += f32(array.values[row * columns + column]);
    const std::string sizes =
        u32(static_cast<uint32_t>(rows)) + u32(static_cast<uint32_t>(columns));
    const std::string matrix = element(6, u32(7) + u32(0)) + element(5, sizes) +
                               element(1, array.name) + element(7, turned);
    file += u32(14) + u32(static_cast<uint32_t>(matrix.size())) + matrix;
  }
  return file;
}

inline std::string as_zarr(const Arrays& arrays) {
  std::vector<ZipFile> files = {stored("m/.zgroup", R"({"zarr_format":2})")};
  for (const NamedArray& array : arrays) {
    const std::string sizes = list_text(array.shape), folder = "m/" + array.name + "/";
    files.push_back(stored(
        folder + ".zarray",
        fmt::format(R"({{"zarr_format":2,"shape":[{}],"chunks":[{}],"dtype":"<f4","order":"C",)"
                    R"("compressor":{{"id":"gzip"}},"fill_value":0,"filters":null}})",
                    sizes, sizes)));
    std::string key = "0";
    for (std::size_t axis = 1; axis < array.shape.size(); ++axis) key += ".0";
    files.push_back(stored(folder + key, gzip(array.bytes())));
  }
  return zip(files);
}

struct FileWriter {
  std::string_view file;
  std::string (*write)(const Arrays& arrays);
};
inline constexpr FileWriter kWriters[] = {
    {"m.safetensors", as_safetensors},
    {"m.npz", as_npz},
    {"m.tar.gz", as_tar_gz},
    {"m.pt", as_torch_zip},
    {"m.bin", as_torch_legacy},
    {"m.pkl", as_pickle},
    {"m.gguf", as_gguf},
    {"m.onnx", as_onnx},
    {"m.pb", as_tf_graph},
    {"m.msgpack", as_msgpack},
    {"m.mat", as_matlab},
    {"m.zarr.zip", as_zarr},
};

}  // namespace tensordiff::test_writers
