// What llama.cpp's llama-debug --save-logits leaves in a folder: files without a header.
//
//   llamacpp-{model}.bin               float32, the logits of the last token; or -embeddings.bin
//   llamacpp-{model}-tokens.bin        int32, the tokens of the prompt
//   llamacpp-{model}.txt, llamacpp-{model}-prompt.txt
//
// Nothing in the files says what they are: their names do.

#include <string>

#include "formats/folder.h"

namespace tensordiff {
namespace {

constexpr std::string_view kTokens = "-tokens.bin", kBin = ".bin";
constexpr std::string_view kEmbeddings = "-embeddings.bin";

bool is_part(std::string_view path) {
  return path.starts_with("llamacpp-") && path.find('/') == std::string_view::npos;
}

bool starts(std::string_view file) { return is_part(file) && file.ends_with(kTokens); }

bool owns(std::string_view path) {
  return is_part(path) && (path.ends_with(kBin) || path.ends_with(".txt"));
}

Result<void> add(const Folder& folder, const std::string& file, DType dtype, std::string name,
                 Catalog& catalog) {
  const auto found = folder.files.find(file);
  if (found == folder.files.end()) return {};
  const uint64_t bytes = found->second.size();
  if (bytes == 0 || bytes % item_bytes(dtype) != 0)
    return Error("{}: {} bytes are not an array of {}", file, bytes, name_of(dtype));
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.view = TRY(contiguous_view(dtype, {bytes / item_bytes(dtype)}, found->second));
  catalog.tensors.push_back(std::move(tensor));
  return {};
}

Result<Catalog> open(const Folder& folder) {
  Catalog catalog;
  for (const auto& [path, source] : folder.files) {
    if (!starts(path)) continue;
    const std::string model = path.substr(0, path.size() - kTokens.size());
    const std::string prefix = catalog.tensors.empty() ? "" : model + "/";
    TRY(add(folder, model + std::string(kBin), DType::f32, prefix + "logits", catalog));
    TRY(add(folder, model + std::string(kEmbeddings), DType::f32, prefix + "embeddings", catalog));
    // All of them were seen; the logits are of the last one.
    TRY(add(folder, path, DType::i32, prefix + "prompt_tokens", catalog));
  }
  return catalog;
}

}  // namespace

constinit const FolderFormat folders::llama_debug = {
    .name = "llama-debug",
    .summary = "logits of the last token, as llama.cpp's llama-debug saves them",
    .starts = starts,
    .owns = owns,
    .open = open,
};

}  // namespace tensordiff
