// llama-logits: the file that llama.cpp's perplexity tool writes with --kl-divergence-base and
// compares with later. Little endian:
//
//   "_logits_"  u32 n_ctx  i32 n_vocab  i32 n_chunk  i32 tokens[n_chunk * n_ctx]
//   for each chunk n_ctx - 1 - n_ctx / 2 rows:
//     f32 scale  f32 least  u16 levels[n_vocab]  (one more where n_vocab is odd)
//
// log p = scale * level + least. Row j of a chunk stands at position n_ctx / 2 + j and predicts the
// token after it. Values more than 16 below the largest are stored as the least one.

#include "base/byte_cursor.h"
#include "base/checked_math.h"
#include "formats/format.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

constexpr std::string_view kMagic = "_logits_";
constexpr uint64_t kHeaderBytes = 20;
constexpr uint64_t kRowHead = 4;  // Two float32 in units of the levels, which are u16.

struct Header {
  uint64_t context = 0, vocabulary = 0, chunks = 0;
  uint64_t rows = 0;       // Of each chunk.
  uint64_t row_words = 0;  // u16 that a row takes.
  uint64_t tokens = 0;     // Bytes.
  uint64_t data = 0;       // Bytes.
};

bool recognises(const Bytes& file) { return as_text(file.view).starts_with(kMagic); }

Result<Header> header_of(ByteView file) {
  ByteCursor cursor(file);
  cursor.skip(kMagic.size());
  Header header;
  header.context = cursor.u32();
  const int32_t vocabulary = cursor.i32(), chunks = cursor.i32();
  if (!cursor.ok()) return Error("the header is cut short: {} bytes", file.size());
  if (header.context < 4 || vocabulary < 1 || chunks < 1)
    return Error("not a file of logits: contexts of {} tokens, {} words, {} chunks", header.context,
                 vocabulary, chunks);
  header.vocabulary = static_cast<uint64_t>(vocabulary);
  header.chunks = static_cast<uint64_t>(chunks);
  header.rows = header.context - 1 - header.context / 2;
  header.row_words = 2 * ((header.vocabulary + 1) / 2) + kRowHead;
  const auto tokens = element_count({header.chunks, header.context, 4});
  const auto data = element_count({header.chunks, header.rows, header.row_words, 2});
  const auto both = tokens && data ? checked_add(*tokens, *data) : std::nullopt;
  const auto all = both ? checked_add(*both, kHeaderBytes) : std::nullopt;
  if (!all || *all != file.size())
    return Error("{} bytes, but {} chunks of {} rows with {} words need {}", file.size(),
                 header.chunks, header.rows, header.vocabulary,
                 all ? fmt::format("{}", *all) : "more than 2^40");
  header.tokens = *tokens;
  header.data = *data;
  return header;
}

// Log-probabilities as they are meant, decoded when they are read.
Result<View> log_probs(const Header& header, const ByteSource& data) {
  const uint64_t rows = header.chunks * header.rows;
  const auto step = static_cast<int64_t>(header.row_words);
  Packed packed;
  packed.inputs.push_back(
      TRY(strided_view(DType::u16, {rows, header.vocabulary}, {step, 1}, kRowHead, data)));
  packed.inputs.push_back(TRY(strided_view(DType::f32, {rows, 2}, {step / 2, 1}, 0, data)));
  packed.decode = [words = header.vocabulary](std::span<const Reader> in, uint64_t first,
                                              int64_t apart, std::size_t count, float* out) {
    Window levels(in[0], apart);
    uint64_t row = UINT64_MAX;
    double scale[2] = {};  // And the least value.
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t at = first + i * static_cast<uint64_t>(apart);
      if (at / words != row) in[1].values(2 * (row = at / words), 2, scale);
      out[i] = static_cast<float>(scale[0] * levels.at(at) + scale[1]);
    }
  };
  View view = TRY(
      packed_view(DType::f32, {header.chunks, header.rows, header.vocabulary}, std::move(packed)));
  view.parts[0].source = data;
  return view;
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!recognises(file)) return Error("it does not start with '{}'", kMagic);
  const Header header = TRY(header_of(file.view));
  Catalog catalog;
  catalog.format = formats::llama_logits.name;
  const ByteSource all(file);
  View tokens = TRY(contiguous_view(DType::i32, {header.chunks, header.context},
                                    all.slice(kHeaderBytes, header.tokens)));
  View values = TRY(log_probs(header, all.slice(kHeaderBytes + header.tokens, header.data)));
  catalog.tensors.push_back({"tokens", std::move(tokens), ""});
  catalog.tensors.back().auxiliary = "ids of the tokens";
  catalog.tensors.push_back({"log_probs", std::move(values), ""});
  catalog.tensors.back().made_from = "levels of 16 bits, with a scale for each row";
  return catalog;
}

}  // namespace

constinit const Format formats::llama_logits = {
    .name = "llama-logits",
    .summary = "log-probabilities of llama.cpp's --kl-divergence-base",
    .extensions = ".kld .bin",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
