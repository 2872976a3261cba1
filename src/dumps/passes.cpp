#include "dumps/passes.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "tensor/reader.h"

namespace tensordiff {
namespace {

// More tokens than a dump can hold of any use; facts are read into memory.
constexpr uint64_t kTokensMax = 1 << 22;

std::vector<int64_t> integers_of(const Tensor& tensor) {
  const uint64_t count = tensor.elements();
  if (!tensor.fault.empty() || count == 0 || count > kTokensMax) return {};
  const Result<Reader> reader = Reader::open(tensor.view);
  if (!reader.ok()) return {};
  std::vector<double> values(count);
  reader.value().values(0, values.size(), values.data());
  // Larger than any token, position or length, and exact in float64.
  constexpr double kMost = 1LL << 52;
  std::vector<int64_t> integers;
  for (const double value : values) {
    if (!(value >= -kMost && value <= kMost)) return {};
    integers.push_back(static_cast<int64_t>(value));
  }
  return integers;
}

// Some tokens of one pass that follow each other in one sequence.
struct Run {
  uint64_t first = 0, count = 0;
  int64_t position = 0;
};

// A sequence ends where its length says, or where the next position does not follow.
std::vector<Run> runs_of(const PassFacts& facts, uint64_t count) {
  std::vector<Run> runs;
  const bool told = facts.positions.size() >= count && !facts.positions.empty();
  const uint64_t all = std::accumulate(
      facts.lengths.begin(), facts.lengths.end(), uint64_t{0}, [](uint64_t sum, int64_t length) {
        return sum + static_cast<uint64_t>(std::max<int64_t>(0, length));
      });
  std::size_t sequence = 0;
  for (uint64_t row = 0; row < count; ++row) {
    bool starts = runs.empty();
    if (!starts && told) {
      const int64_t last = facts.positions[row - 1];
      starts = facts.positions[row] != last + 1 ||
               (sequence < facts.lengths.size() && last + 1 == facts.lengths[sequence]);
    } else if (!starts && all == count) {
      starts = runs.back().count == static_cast<uint64_t>(facts.lengths[sequence]);
    }
    if (starts && !runs.empty()) ++sequence;
    if (starts) runs.push_back({row, 0, told ? facts.positions[row] : 0});
    ++runs.back().count;
  }
  return runs;
}

// CUDA graphs add rows behind the tokens, whose positions are 0. One such row may be a sequence of
// one token; several behind longer sequences are padding.
uint64_t padding_of(const PassFacts& facts) {
  const std::vector<int64_t>& positions = facts.positions;
  uint64_t zeros = 0;
  while (zeros < positions.size() && positions[positions.size() - 1 - zeros] == 0) ++zeros;
  if (!facts.lengths.empty() || zeros == positions.size()) return 0;
  // The first of them starts a sequence where the one before it was its end.
  return zeros > 1 ? zeros : 0;
}

struct Sequence {
  int64_t next = 0;   // The position that would continue it.
  int32_t pass = 0;   // That continued it last.
  bool told = false;  // Positions were dumped.
  std::vector<std::pair<Token, TokenRow>> tokens;
  PassParts parts = {};
};

// One pass, and how many tokens it has.
struct Tokens {
  int32_t pass = 0;
  const PassFacts* facts = nullptr;
  uint64_t count = 0;

  bool told() const { return facts->positions.size() >= count && !facts->positions.empty(); }
};

class Joining {
 public:
  // The passes of one step: several where processes share its tokens.
  void add(const std::vector<Tokens>& step) {
    if (step.empty()) return;
    ++steps_;
    std::vector<std::pair<Tokens, Run>> runs;
    for (const Tokens& tokens : step)
      for (const Run& run : runs_of(*tokens.facts, tokens.count)) runs.emplace_back(tokens, run);
    if (step.size() > 1)
      std::ranges::stable_sort(runs, {}, [](const auto& each) { return each.second.position; });
    for (const auto& [tokens, run] : runs) {
      Sequence& sequence = continued(run, tokens.pass, tokens.told());
      const int64_t start = std::min<int64_t>(sequence.next, INT32_MAX);
      sequence.parts.push_back({.position = static_cast<int32_t>(start), .pass = step[0].pass});
      for (uint64_t i = 0; i < run.count; ++i) {
        const uint64_t row = run.first + i;
        Token token{0, static_cast<int32_t>(std::min<int64_t>(sequence.next++, INT32_MAX)), -1};
        if (tokens.facts->ids.size() >= tokens.count) token.id = tokens.facts->ids[row];
        sequence.tokens.emplace_back(token, TokenRow{tokens.pass, row});
      }
      sequence.pass = tokens.pass;
    }
  }

  void write(RunTokens& out) const {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      for (PassPart part : sequences_[i].parts) {
        part.sequence = static_cast<int32_t>(i);
        part.placed = sequences_[i].told || steps_ == 1;
        out.parts.push_back(part);
      }
      for (auto [token, row] : sequences_[i].tokens) {
        token.sequence = static_cast<int32_t>(i);
        out.tokens.push_back(token);
        out.rows.push_back(row);
      }
    }
  }

 private:
  // Without positions a pass is taken for a sequence of its own: only values can tell more.
  Sequence& continued(const Run& run, int32_t pass, bool told) {
    Sequence* best = nullptr;
    if (told && run.position > 0)
      for (Sequence& sequence : sequences_)
        if (sequence.told && sequence.next == run.position && sequence.pass != pass &&
            (!best || sequence.pass > best->pass))
          best = &sequence;
    if (best) return *best;
    sequences_.push_back({run.position, pass, told, {}, {}});
    return sequences_.back();
  }

  std::vector<Sequence> sequences_;
  std::size_t steps_ = 0;
};

}  // namespace

RunTokens tokens_of(const std::map<int32_t, PassFacts>& passes) {
  RunTokens result;
  Joining joining;
  std::vector<Tokens> step;
  for (const auto& [pass, facts] : passes) {
    const uint64_t told = std::max(facts.ids.size(), facts.positions.size());
    const uint64_t all = std::min(told > 0 ? told : facts.rows, kTokensMax);
    const uint64_t count = all - std::min(all, padding_of(facts));
    // The first share of a step starts it.
    if (facts.share.index == 0) joining.add(std::exchange(step, {}));
    step.push_back({pass, &facts, count});
    result.tokens_of[pass] = count;
    result.rows_of[pass] = facts.rows;
  }
  joining.add(step);
  joining.write(result);
  return result;
}

void keep_passes(const PassParts& parts, Catalog& catalog) {
  std::string bytes(parts.size() * sizeof(PassPart), '\0');
  if (!parts.empty()) std::memcpy(bytes.data(), parts.data(), bytes.size());
  catalog.documents.push_back({"", ByteSource(bytes_of(std::move(bytes)))});
}

PassParts passes_in(const Catalog& catalog) {
  const auto kept = std::ranges::find(catalog.documents, "", &Document::path);
  if (kept == catalog.documents.end()) return {};
  const Result<Bytes> bytes = kept->source.open();
  if (!bytes.ok()) return {};
  PassParts parts(bytes.value().size() / sizeof(PassPart));
  if (!parts.empty())
    std::memcpy(parts.data(), bytes.value().view.data(), parts.size() * sizeof(PassPart));
  return parts;
}

void take_share(PassFacts& facts) {
  const auto [index, count] = facts.share;
  if (count < 2) return;
  for (std::vector<int64_t>* list : {&facts.ids, &facts.positions}) {
    const uint64_t pieces = 2 * static_cast<uint64_t>(count), size = list->size() / pieces;
    if (facts.rows == 0 || list->size() != facts.rows * static_cast<uint64_t>(count)) continue;
    if (list->size() % pieces != 0) continue;
    std::vector<int64_t> own;
    for (const uint64_t piece :
         {static_cast<uint64_t>(index), pieces - 1 - static_cast<uint64_t>(index)})
      for (uint64_t i = 0; i < size; ++i) own.push_back((*list)[piece * size + i]);
    *list = std::move(own);
  }
}

std::map<int32_t, PassFacts> facts_of(const Catalog& catalog, const Dump& dump) {
  std::map<int32_t, PassFacts> passes;
  for (const Record& record : dump.records) {
    PassFacts& facts = passes[record.pass];
    facts.share = record.share;
    std::vector<int64_t>* list = record.fact == RunFact::ids         ? &facts.ids
                                 : record.fact == RunFact::positions ? &facts.positions
                                 : record.fact == RunFact::lengths   ? &facts.lengths
                                                                     : nullptr;
    // All ranks have the same.
    if (list && list->empty()) *list = integers_of(catalog.tensors[record.tensor]);
  }
  return passes;
}

}  // namespace tensordiff
