// Pairs parameters with their place in a flat one: FSDP keeps all parameters of a module in one row
// of numbers, "layers.0._flat_param", and its local checkpoints do not say which are in it.
//
// The other side tells: from the start of the row on, one of its tensors must have the values that
// come next. Where several do (norms that are all ones), the name decides, and where a choice leads
// nowhere, the next is tried. Behind a parameter there may be a few elements of padding.

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "match/flat_name.h"
#include "match/matcher.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 16;        // Values at the start, in the middle and at the end.
constexpr uint64_t kPaddingMax = 16;       // FSDP aligns parameters to 16 bytes.
constexpr uint64_t kRestMax = 4096;        // Behind the last: less than one for each rank.
constexpr double kRounding = 1.0 / 64;     // Relative: twice what bf16 loses.
constexpr std::size_t kTriesMax = 20'000;  // Of one row. One try for each of its parts is usual.
constexpr std::size_t kUnknownMax = 2;     // Parts of a row whose values fit nothing.

struct Candidate {
  std::size_t tensor = 0;
  uint64_t elements = 0;
  std::vector<double> sample;
};

std::vector<uint64_t> sample_at(uint64_t elements) {
  std::vector<uint64_t> at;
  const uint64_t count = std::min<uint64_t>(kSample, elements);
  for (const uint64_t first : {uint64_t{0}, (elements - count) / 2, elements - count})
    for (uint64_t i = 0; i < count; ++i) at.push_back(first + i);
  return at;
}

std::vector<double> values_from(const Reader& reader, uint64_t first, uint64_t elements) {
  std::vector<double> values;
  for (const uint64_t at : sample_at(elements)) {
    double value = 0;
    reader.values(first + at, 1, &value);
    values.push_back(value);
  }
  return values;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (!(std::abs(a[i] - b[i]) <= kRounding * std::max(std::abs(a[i]), std::abs(b[i]))))
      return false;
  }
  return true;
}

// One row and the parts that were found in it so far.
class Cutting {
 public:
  Cutting(const Reader& row, const std::vector<Candidate>& candidates, bool all_named)
      : row_(row),
        size_(row.view().elements()),
        candidates_(candidates),
        used_(candidates.size()),
        all_named_(all_named) {}

  struct Piece {
    std::optional<std::size_t> candidate;  // None: padding.
    uint64_t elements = 0;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

  bool cut(uint64_t first, std::size_t unknown = 0) {
    if (size_ - first <= kRestMax && !pieces_.empty() && is_rest(first)) {
      if (first < size_) pieces_.push_back({{}, size_ - first});
      return true;
    }
    for (uint64_t padding = 0; padding <= kPaddingMax; ++padding) {
      const bool any = try_at(first, padding, unknown);
      if (any || tries_ > kTriesMax) return any;
    }
    if (!all_named_ || unknown == kUnknownMax) return false;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (fits(i, first) && take(i, first, 0, unknown + 1)) return true;
    return false;
  }

 private:
  // Nothing is left but zeros, or all that could follow is used.
  bool is_rest(uint64_t first) const {
    if (first == size_) return true;
    if (std::ranges::all_of(used_, [](char used) { return used != 0; })) return true;
    std::vector<double> values(size_ - first);
    row_.values(first, values.size(), values.data());
    return !all_named_ && std::ranges::all_of(values, [](double value) { return value == 0; });
  }

  bool fits(std::size_t i, uint64_t first) const {
    return !used_[i] && first <= size_ && candidates_[i].elements <= size_ - first;
  }

  bool try_at(uint64_t first, uint64_t padding, std::size_t unknown) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!fits(i, first + padding) || ++tries_ > kTriesMax) continue;
      const Candidate& candidate = candidates_[i];
      if (same(values_from(row_, first + padding, candidate.elements), candidate.sample) &&
          take(i, first, padding, unknown))
        return true;
    }
    return false;
  }

  bool take(std::size_t i, uint64_t first, uint64_t padding, std::size_t unknown) {
    const std::size_t before = pieces_.size();
    if (padding > 0) pieces_.push_back({{}, padding});
    pieces_.push_back({i, candidates_[i].elements});
    used_[i] = 1;
    if (cut(first + padding + candidates_[i].elements, unknown)) return true;
    used_[i] = 0;
    pieces_.resize(before);
    return false;
  }

  const Reader& row_;
  uint64_t size_;
  const std::vector<Candidate>& candidates_;
  std::vector<char> used_;
  bool all_named_;  // The candidates are those that names say are in it.
  std::vector<Piece> pieces_;
  std::size_t tries_ = 0;
};

struct FreeSide {
  const Catalog& catalog;
  const std::vector<std::string>& names;
  const std::vector<std::size_t>& free;
};

// Whether a name is of the module of a row and of none that has a row of its own.
bool is_inside(const std::string& name, const std::string& module,
               const std::vector<std::string>& modules) {
  if (!name.starts_with(module)) return false;
  return std::ranges::none_of(modules, [&](const std::string& other) {
    return other.size() > module.size() && name.starts_with(other);
  });
}

// The tensors of the other side that may be in a row: those its name speaks of, or else all.
std::vector<Candidate> candidates_for(const FreeSide& side, const std::string& module,
                                      const std::vector<std::string>& modules, bool& named) {
  std::vector<std::size_t> wanted;
  for (const std::size_t i : side.free)
    if (is_inside(without_fsdp(side.names[i]), module, modules)) wanted.push_back(i);
  named = !wanted.empty();
  if (!named) wanted = side.free;
  std::vector<Candidate> candidates;
  for (const std::size_t i : wanted) {
    const Tensor& tensor = side.catalog.tensors[i];
    if (!tensor.fault.empty() || !tensor.shards.empty() || tensor.elements() == 0) continue;
    const Result<Reader> reader = Reader::open(tensor.view);
    if (reader.ok())
      candidates.push_back(
          {i, tensor.elements(), values_from(reader.value(), 0, tensor.elements())});
  }
  return candidates;
}

// Pairs the parts of all rows of one side. `flipped`: that side is b.
void cut_rows(const FreeSide& rows, FreeSide others, bool flipped, Proposal& proposal) {
  std::vector<std::size_t> wholes, free = others.free;
  std::vector<std::string> modules;
  for (const std::size_t i : rows.free)
    if (const auto module = module_of_flat(rows.names[i]);
        module && !rows.catalog.tensors[i].view.shape.empty()) {
      wholes.push_back(i);
      modules.push_back(*module);
    }
  for (std::size_t w = 0; w < wholes.size(); ++w) {
    const Tensor& whole = rows.catalog.tensors[wholes[w]];
    const Result<Reader> reader = Reader::open(whole.view);
    if (!whole.fault.empty() || !whole.shards.empty() || whole.view.shape.size() != 1 ||
        !reader.ok())
      continue;
    bool named = false;
    const std::vector<Candidate> candidates =
        candidates_for({others.catalog, others.names, free}, modules[w], modules, named);
    Cutting cutting(reader.value(), candidates, named);
    if (candidates.empty() || !cutting.cut(0)) {
      proposal.notes.push_back(
          fmt::format("'{}' holds several parameters, and the other side does not tell which",
                      printable(whole.name)));
      continue;
    }
    std::vector<uint64_t> elements;
    for (const Cutting::Piece& piece : cutting.pieces()) elements.push_back(piece.elements);
    for (std::size_t at = 0; at < elements.size(); ++at) {
      if (!cutting.pieces()[at].candidate) continue;
      const std::size_t part = candidates[*cutting.pieces()[at].candidate].tensor;
      const std::string name = without_fsdp(others.names[part]);
      const std::string label =
          name.starts_with(modules[w]) ? name.substr(modules[w].size()) : name;
      Pair pair;
      pair.a = flipped ? part : wholes[w];
      pair.b = flipped ? wholes[w] : part;
      (flipped ? pair.section_b : pair.section_a) = Section{label, elements, at};
      proposal.pairs.push_back(std::move(pair));
      std::erase(free, part);
    }
  }
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  if (!input.options.read_values) return proposal;
  const FreeSide a{input.a, input.side_a.names, input.free_a},
      b{input.b, input.side_b.names, input.free_b};
  const auto has_row = [](const FreeSide& side) {
    const auto is_row = [&](std::size_t i) { return module_of_flat(side.names[i]).has_value(); };
    return std::ranges::any_of(side.free, is_row);
  };
  const bool rows_a = has_row(a), rows_b = has_row(b);
  if (rows_a && !rows_b) cut_rows(a, b, false, proposal);
  if (rows_b && !rows_a) cut_rows(b, a, true, proposal);
  return proposal;
}

}  // namespace

constinit const Matcher matchers::flat = {
    .name = "flat",
    .summary = "a parameter and its place in FSDP's flat one, by the values",
    .propose = propose,
};

}  // namespace tensordiff
