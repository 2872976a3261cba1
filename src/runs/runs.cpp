#include "runs/runs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "align/view.h"
#include "base/text.h"
#include "dumps/layout.h"
#include "formats/trace_file.h"
#include "match/filter.h"
#include "naming/naming.h"
#include "report/wording.h"
#include "tensor/reader.h"
#include "tensor/sample.h"
#include "tensor/stored.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTensorsTried = 8;  // That decide which of a batch is the prompt.
constexpr std::size_t kSample = 256;

// 128 bits of all elements, in order. Two tensors that differ share them once in 2^128.
using Digest = std::array<uint64_t, 2>;

Result<Digest> digest_of(const View& view) {
  constexpr std::size_t kPiece = 8192;
  const Reader reader = TRY(Reader::open(view));
  Digest digest = {0x9e3779b97f4a7c15ULL, 0xc2b2ae3d27d4eb4fULL};
  const std::size_t item = item_bytes(view.dtype);
  std::vector<std::byte> buffer;
  const auto mix = [&](uint64_t word) {
    digest[0] = (digest[0] ^ word) * 0xff51afd7ed558ccdULL;
    digest[0] ^= digest[0] >> 32;
    digest[1] = (digest[1] + word) * 0xc4ceb9fe1a85ec53ULL;
    digest[1] ^= digest[1] >> 29;
  };
  const uint64_t elements = view.elements();
  for (uint64_t first = 0; first < elements; first += kPiece) {
    const std::size_t count = std::min<uint64_t>(kPiece, elements - first);
    const std::byte* bytes = reader.raw(first, count, buffer);
    for (std::size_t at = 0; at < count * item; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, std::min<std::size_t>(8, count * item - at));
      mix(word);
    }
  }
  if (!reader.intact()) return Error("{}", damage_of(reader.view()));
  mix(static_cast<uint64_t>(view.dtype));
  return digest;
}

// Tensors of a batch whose other axes are those of a run of one prompt, as pairs of indexes.
std::vector<std::pair<std::size_t, std::size_t>> batched(const Catalog& alone, const Catalog& run,
                                                         uint64_t batch) {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < alone.tensors.size(); ++i)
    by_name.emplace(alone.tensors[i].pairing_name(), i);
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < run.tensors.size(); ++i) {
    const auto at = by_name.find(run.tensors[i].pairing_name());
    const Shape& shape = run.tensors[i].view.shape;
    if (at == by_name.end() || shape.empty() || shape[0] != batch) continue;
    Shape expected = alone.tensors[at->second].view.shape;
    if (expected.empty() || expected[0] != 1) continue;
    expected[0] = batch;
    if (expected == shape) found.emplace_back(at->second, i);
  }
  return found;
}

double distance(const View& a, const View& b) {
  const Result<Reader> x = Reader::open(a), y = Reader::open(b);
  if (!x.ok() || !y.ok()) return 0;
  const std::vector<uint64_t> positions = sample_positions(a.elements(), kSample);
  return unexplained(values_at(x.value(), positions), values_at(y.value(), positions));
}

// A run of a batch against one of a single prompt: takes the sequence of the batch that is the
// prompt, the same one in all tensors.
void take_prompt(const Catalog& alone, Catalog& run, std::vector<std::string>& notes) {
  std::map<uint64_t, std::size_t> sizes;
  for (const Tensor& tensor : run.tensors)
    if (!tensor.view.shape.empty() && tensor.view.shape[0] > 1) ++sizes[tensor.view.shape[0]];
  std::vector<std::pair<std::size_t, std::size_t>> found;
  uint64_t batch = 0;
  for (const auto& [size, count] : sizes) {
    auto pairs = batched(alone, run, size);
    if (pairs.size() <= found.size()) continue;
    found = std::move(pairs);
    batch = size;
  }
  if (2 * found.size() < alone.tensors.size()) return;
  uint64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (uint64_t row = 0; row < batch; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < std::min(found.size(), kTensorsTried); ++i)
      sum += distance(alone.tensors[found[i].first].view,
                      narrowed(run.tensors[found[i].second].view, 0, row, 1));
    if (sum < least) best = row;
    least = std::min(least, sum);
  }
  for (const auto& [unused, tensor] : found)
    run.tensors[tensor].view = narrowed(run.tensors[tensor].view, 0, best, 1);
  notes.push_back(fmt::format("{}: a batch of {}; sequence {} is the prompt of the first run",
                              printable(run.path), batch, best));
}

class Comparing {
 public:
  explicit Comparing(Request request) : request_(std::move(request)) {
    request_.diagnose.enabled = false;
    request_.require_all = false;
  }

  Result<RunsComparison> run(const std::vector<std::string>& paths) {
    result_.paths = paths;
    const Catalog first = TRY(open(paths[0]));
    for (const Tensor& tensor : first.tensors) {
      if (!tensor.fault.empty()) return Error("{}: {}", printable(tensor.name), tensor.fault);
      index_.emplace(tensor.name, result_.tensors.size());
      result_.tensors.push_back({tensor.name, std::vector<std::size_t>(paths.size(), 0), 1, 0, 0});
      const Digest digest = TRY(digest_of(tensor.view));
      digests_.push_back({{digest, 0}});
    }
    for (std::size_t i = 1; i < paths.size(); ++i) TRY(add(first, i));
    order(first);
    classify();
    return std::move(result_);
  }

 private:
  Result<Catalog> open(const std::string& path) const {
    Catalog catalog = TRY(open_model(path, request_.open));
    TRY(arrange(catalog, request_.layout));
    const NameFilter filter = TRY(NameFilter::make(request_.paths, request_.ignore_regex));
    TRY(filter.apply(catalog));
    read_missing_places(catalog);
    if (catalog.tensors.empty()) return Error("{}: 0 tensors selected", printable(path));
    return catalog;
  }

  Result<void> add(const Catalog& first, std::size_t number) {
    Catalog other = TRY(open(result_.paths[number]));
    take_prompt(first, other, result_.notes);
    Request request = request_;
    request.layout = "none";  // Both are arranged already.
    Pairing pairing = TRY(pair_up(first, std::move(other), request));
    Report report = std::move(pairing.report);
    const Report compared = TRY(compare_pairs(pairing, std::move(report), request));
    for (const PairRow& row : compared.pairs) TRY(take(pairing, row, number, request));
    for (const Report::Unpaired& only : compared.only_a)
      result_.missing.push_back(fmt::format("run {}: no {}", number + 1, printable(only.id.name)));
    return {};
  }

  Result<void> take(const Pairing& pairing, const PairRow& row, std::size_t number,
                    const Request& request) {
    const std::size_t at = index_.at(pairing.a.tensors[pairing.matching.pairs[row.index].a].name);
    RunsTensor& tensor = result_.tensors[at];
    if (row.comparison.status >= Status::incomparable)
      return Error("run {}: {}: {}", number + 1, printable(row.a.name), message_of(row));
    tensor.rel_l2 = std::max(tensor.rel_l2, row.comparison.diff.rel_l2.value_or(0));
    tensor.max_abs = std::max(tensor.max_abs, row.comparison.diff.max_abs.value_or(0));
    if (row.comparison.status == Status::identical || row.comparison.status == Status::equal)
      return {};
    const AlignedPair pair = TRY(align_pair(pairing, row.index, request));
    auto& known = digests_[at];
    const Digest digest = TRY(digest_of(pair.b));
    tensor.classes[number] = known.try_emplace(digest, known.size()).first->second;
    return {};
  }

  // As the first run recorded it, else as its names tell.
  void order(const Catalog& first) {
    const std::vector<std::string> recorded = recorded_run(first).order;
    if (recorded.empty()) return;
    std::map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < recorded.size(); ++i) place.emplace(recorded[i], i);
    std::ranges::stable_sort(result_.tensors, {}, [&](const RunsTensor& tensor) {
      const auto at = place.find(tensor.name);
      return at == place.end() ? recorded.size() : at->second;
    });
  }

  void classify() {
    std::map<std::vector<std::size_t>, std::size_t> seen;
    for (std::size_t run = 0; run < result_.paths.size(); ++run) {
      std::vector<std::size_t> all;
      for (const RunsTensor& tensor : result_.tensors) all.push_back(tensor.classes[run]);
      result_.class_of.push_back(seen.try_emplace(std::move(all), seen.size()).first->second);
    }
    result_.classes = seen.size();
    for (std::size_t i = 0; i < result_.tensors.size(); ++i) {
      RunsTensor& tensor = result_.tensors[i];
      tensor.distinct = *std::ranges::max_element(tensor.classes) + 1;
      if (!result_.first_split && tensor.distinct > 1) result_.first_split = i;
    }
  }

  Request request_;
  RunsComparison result_;
  std::map<std::string, std::size_t> index_;
  std::vector<std::map<Digest, std::size_t>> digests_;  // Of each tensor: its distinct results.
};

}  // namespace

NoiseFloor RunsComparison::floor() const {
  NoiseFloor floor;
  for (const RunsTensor& tensor : tensors) floor[tensor.name] = tensor.rel_l2;
  return floor;
}

Result<RunsComparison> compare_runs(const std::vector<std::string>& paths, const Request& request) {
  if (paths.size() < 2) return Error("runs needs two runs or more");
  return Comparing(request).run(paths);
}

}  // namespace tensordiff
