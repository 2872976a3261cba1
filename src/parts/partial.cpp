#include "parts/partial.h"

#include <bit>
#include <cstring>

#include "base/byte_cursor.h"
#include "base/sha256.h"

namespace tensordiff {
namespace {

constexpr std::size_t kHashBytes = 32;
constexpr uint64_t kTextMax = 1 << 20;

class Writer {
 public:
  void number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(value >> shift);
  }
  void number(double value) { number(std::bit_cast<uint64_t>(value)); }
  void text(std::string_view text) {
    const std::string_view kept = text.substr(0, kTextMax);
    number(uint64_t{kept.size()});
    out_ += kept;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Source {
 public:
  explicit Source(ByteView bytes) : cursor_(bytes) {}

  void number(uint64_t& value) { value = cursor_.u64(); }
  void number(double& value) { value = cursor_.f64(); }
  void text(std::string& text) {
    const uint64_t size = cursor_.u64();
    if (size > kTextMax) return cursor_.fail();
    text = as_text(cursor_.take(size));
  }
  void flag(bool& value) {
    const uint64_t number = cursor_.u64();
    if (number > 1) cursor_.fail();
    value = number == 1;
  }
  // How many entries a list has. Each takes `bytes` at least, so that a lie costs nothing.
  std::size_t count(uint64_t bytes) {
    const uint64_t count = cursor_.u64();
    if (count > cursor_.remaining() / bytes) cursor_.fail();
    return cursor_.ok() ? count : 0;
  }
  void fail() { cursor_.fail(); }
  bool ok() const { return cursor_.ok(); }
  bool at_end() const { return cursor_.at_end(); }

 private:
  ByteCursor cursor_;
};

// Every number of the sums, in the order of the file; `stream` writes or reads it.
template <class Stream, class M>
void each_moment(Stream& stream, M& moments) {
  stream.number(moments.count), stream.number(moments.mean), stream.number(moments.m2);
  stream.number(moments.min), stream.number(moments.max);
  stream.number(moments.zeros), stream.number(moments.nan), stream.number(moments.inf);
}

template <class Stream, class S>
void each_sum(Stream& stream, S& sums) {
  each_moment(stream, sums.a), each_moment(stream, sums.b);
  stream.number(sums.count), stream.number(sums.values);
  stream.number(sums.mean_a), stream.number(sums.mean_b);
  stream.number(sums.m2_a), stream.number(sums.m2_b), stream.number(sums.co);
  stream.number(sums.d_abs), stream.number(sums.d_squared), stream.number(sums.d_relative);
  stream.number(sums.equal), stream.number(sums.exceeding);
  stream.number(sums.mismatch), stream.number(sums.agreeing);
  stream.number(sums.mismatch_at), stream.number(sums.agreeing_at);
  stream.number(sums.max_abs), stream.number(sums.max_abs_at);
  stream.number(sums.max_rel), stream.number(sums.rtol_needed), stream.number(sums.ulp);
}
constexpr uint64_t kSumsBytes = 8 * (2 * 8 + 21);
static_assert(sizeof(Sums) == kSumsBytes, "a new sum has to be written, too");

template <class Stream, class R>
void each_run(Stream& stream, R& run) {
  stream.number(run.first), stream.number(run.end);
  stream.number(run.d_squared), stream.number(run.unequal);
}

void write_piece(Writer& out, const PairPiece& each) {
  const Piece& piece = each.piece;
  out.number(each.pair), out.number(each.copy);
  out.number(piece.chunks), out.number(piece.first), out.number(piece.end);
  out.number(uint64_t{piece.by_bytes}), out.number(uint64_t{piece.same_bytes});
  out.text(piece.error);
  out.number(uint64_t{piece.totals.size()});
  for (const Measured& total : piece.totals) {
    each_sum(out, total.sums);
    out.number(uint64_t{total.beyond.all});
    out.number(uint64_t{total.beyond.runs.size()});
    for (const TileRun& run : total.beyond.runs) each_run(out, run);
  }
  out.number(uint64_t{piece.spots.size()});
  for (const Spot& spot : piece.spots)
    out.number(spot.position), out.number(spot.a), out.number(spot.b);
}

void read_total(Source& in, Measured& total) {
  each_sum(in, total.sums);
  in.flag(total.beyond.all);
  const std::size_t runs = in.count(32);
  if (runs > kTileRunsMax) return in.fail();
  total.beyond.runs.resize(runs);
  for (TileRun& run : total.beyond.runs) each_run(in, run);
}

PairPiece read_piece(Source& in) {
  PairPiece each;
  Piece& piece = each.piece;
  in.number(each.pair), in.number(each.copy);
  in.number(piece.chunks), in.number(piece.first), in.number(piece.end);
  in.flag(piece.by_bytes), in.flag(piece.same_bytes);
  in.text(piece.error);
  for (std::size_t left = in.count(kSumsBytes); left > 0 && in.ok(); --left)
    read_total(in, piece.totals.emplace_back());
  for (std::size_t left = in.count(24); left > 0 && in.ok(); --left) {
    Spot& spot = piece.spots.emplace_back();
    in.number(spot.position), in.number(spot.a), in.number(spot.b);
  }
  return each;
}

}  // namespace

std::string write_partial(const Partial& partial) {
  Writer out;
  const PartHead& head = partial.head;
  out.text(head.version), out.text(head.target);
  out.number(head.number.part), out.number(head.number.of);
  out.text(head.fingerprint);
  out.number(uint64_t{head.inputs.size()});
  for (const std::string& input : head.inputs) out.text(input);
  out.number(uint64_t{head.options.size()});
  for (const GivenOption& option : head.options) out.text(option.name), out.text(option.value);
  out.number(uint64_t{partial.pieces.size()});
  for (const PairPiece& piece : partial.pieces) write_piece(out, piece);
  const std::string body = out.take();
  return std::string(kPartMagic) + sha256(body) + body;
}

Result<Partial> read_partial(ByteView bytes) {
  const std::string_view text = as_text(bytes);
  if (!text.starts_with(kPartMagic)) return Error("not a partial result of tensordiff");
  if (text.size() < kPartMagic.size() + kHashBytes)
    return Error("cut short: it ends in its header");
  const std::string_view hash = text.substr(kPartMagic.size(), kHashBytes);
  const ByteView body = bytes.subspan(kPartMagic.size() + kHashBytes);
  if (sha256(as_text(body)) != hash) return Error("damaged: its content does not match its hash");
  Source in(body);
  Partial partial;
  PartHead& head = partial.head;
  in.text(head.version), in.text(head.target);
  in.number(head.number.part), in.number(head.number.of);
  in.text(head.fingerprint);
  for (std::size_t left = in.count(8); left > 0 && in.ok(); --left)
    in.text(head.inputs.emplace_back());
  for (std::size_t left = in.count(16); left > 0 && in.ok(); --left) {
    GivenOption& option = head.options.emplace_back();
    in.text(option.name), in.text(option.value);
  }
  for (std::size_t left = in.count(80); left > 0 && in.ok(); --left)
    partial.pieces.push_back(read_piece(in));
  const PartNumber& number = head.number;
  if (!in.ok() || !in.at_end() || head.inputs.empty() || head.inputs.size() > 2 || number.of == 0 ||
      number.of > kPartsMax || number.part == 0 || number.part > number.of)
    return Error("damaged: it does not hold a partial result");
  return partial;
}

}  // namespace tensordiff
