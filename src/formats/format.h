// A file format the tool can open, and the list of them.
//
// To add one: write formats/<name>.cpp and add <name> to the list below. formats_test.cpp will then
// ask for a fixture in tests/data/formats.

#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "base/result.h"
#include "base/roots.h"
#include "tensor/catalog.h"

namespace tensordiff {

// Limits that hold before anything is allocated. Every error that comes of one names it; see
// limits.h for the names that users know them by.
struct Limits {
  uint64_t pickle_bytes_max = 256ULL << 20;
  uint64_t json_bytes_max = 64ULL << 20;      // Index and config files.
  uint64_t header_bytes_max = 100'000'000;    // safetensors header, by its specification.
  uint64_t members_max = 200'000;             // Of one archive: they take some 400 MiB.
  uint64_t tensors_max = 2'000'000;           // Of one file.
  uint64_t entries_max = 1'000'000;           // Keys, and tensors, of a GGUF file.
  uint64_t string_bytes_max = 64ULL << 20;    // Of a GGUF file.
  uint64_t opcodes_max = 200'000'000;         // Of a pickle.
  uint64_t values_max = 16'000'000;           // Of a pickle, and places in its memo.
  uint64_t stack_max = 4'000'000;             // Of a pickle.
  uint64_t structure_bytes_max = 1ULL << 30;  // Of a pickle, as a graph in memory.
  uint64_t repeats_max = 100'000;             // Values of a pickle that are listed again.
  uint64_t names_bytes_max = 256ULL << 20;    // All names of tensors of one pickle.
  uint64_t depth_max = 100;                   // Pickles, msgpack, ONNX, MATLAB: values in values.
  uint64_t npy_header_bytes_max = 1 << 20;    // numpy itself takes 10,000.
  uint64_t name_bytes_max = 4096;             // Of a tensor.
  uint64_t expanded_bytes_max = 64ULL << 30;  // All that is decompressed out of one archive.
  uint64_t input_bytes_max = UINT64_MAX;      // --limit-size
  uint64_t dense_bytes_max = 1ULL << 30;      // Of a sparse tensor, filled out in memory.
  uint64_t growth_max = 1100;                 // Of a compressed file, as deflate can grow at most.
  uint64_t nesting_max = 2;                   // Archive in archive: dumps.zip -> 0_query.pth.
  uint64_t hdf5_seconds_max = 8;              // For the HDF5 library, in its own process.
  uint64_t hdf5_memory_max = 1ULL << 30;
};

// One file as a format sees it.
struct Input {
  std::string name;  // Its path inside the whole input, for messages only: never opened.
  ByteSource source;
  Limits limits;
  int depth = 0;  // How many archives it lies in.
  // Another file beside this one, or in a folder beside it, by a relative name. Refuses anything
  // that leads out of the folder or through a link; nothing is beside a file in memory.
  std::function<Result<ByteSource>(std::string_view name)> sibling;
};

struct Format {
  std::string_view name;
  std::string_view summary;                     // One line for --help and docs/formats.md.
  std::string_view extensions;                  // ".pt .pth": what it usually is called.
  bool (*recognises)(const Bytes& file);        // By content alone, and cheap.
  Result<Catalog> (*open)(const Input& input);  // Parses the index; reads no tensor elements.
};

namespace formats {

extern const Format torch_zip;
extern const Format torch_legacy;
extern const Format torch_tar;
extern const Format torch_export;
extern const Format safetensors;
extern const Format gguf;
extern const Format onnx;
extern const Format tf_checkpoint;
extern const Format tf_graph;
extern const Format npy;
extern const Format npz;
extern const Format pickle;
extern const Format zip;
extern const Format tar;
extern const Format gzip;
extern const Format zstd;
extern const Format xz;
extern const Format bzip2;
extern const Format hdf5;
extern const Format matlab;
extern const Format msgpack;
extern const Format llama_logits;
extern const Format log_probs;
extern const Format polygraphy;
extern const Format eval_callback;
extern const Format statistics;
extern const Format statistics_table;

// Tried in this order: the particular before the general (a torch file and an npz are zips too),
// and formats with a magic number before those without.
inline constexpr const Format* kAll[] = {
    &torch_zip,
    &torch_export,
    &npz,
    &zip,
    &torch_legacy,
    &npy,
    &gguf,
    &llama_logits,
    &hdf5,
    &matlab,
    &gzip,
    &zstd,
    &xz,
    &bzip2,
    &torch_tar,
    &tar,
    &safetensors,
    &polygraphy,
    &log_probs,
    &eval_callback,
    &statistics,
    &statistics_table,
    &msgpack,
    &pickle,
    &tf_checkpoint,
    &onnx,
    &tf_graph,
};

}  // namespace formats

struct OpenOptions {
  std::string_view format;  // Name of a Format to use instead of detection; empty: detect.
  Limits limits;
  Roots roots = {};  // Which files may be opened; all unless said otherwise.
};

// Opens a file, or a folder of files, at a path the user gave.
Result<Catalog> open_model(const std::string& path, const OpenOptions& options = {});

// Opens one file that is already at hand. Tensor names are those of the file itself.
Result<Catalog> open_input(const Input& input, std::string_view format = {});

}  // namespace tensordiff
