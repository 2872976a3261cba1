#include "digest/against.h"

#include <algorithm>
#include <map>

#include "base/parallel.h"
#include "base/text.h"

namespace tensordiff {
namespace {

// A tensor that is known by its digest only. Nothing asks for its values.
Result<Tensor> tensor_of(const DigestEntry& entry) {
  if (!entry.fault.empty()) return broken_tensor(entry.name, entry.fault);
  const uint64_t bytes = stored_bytes(entry.dtype, element_count(entry.shape).value_or(0));
  const ByteSource nothing(bytes,
                           []() -> Result<Bytes> { return Error("a digest has no values"); });
  Tensor tensor;
  tensor.name = entry.name;
  tensor.view = TRY(contiguous_view(entry.dtype, entry.shape, nothing));
  if (entry.ranks.size() > 1) tensor.shards.assign(entry.ranks.size(), tensor.view);
  return tensor;
}

Result<Catalog> catalog_of(const Digest& digest) {
  Catalog catalog;
  catalog.path = digest.model;
  catalog.format = digest.format;
  for (const DigestEntry& entry : digest.tensors)
    catalog.tensors.push_back(
        TRY(tensor_of(entry).in(fmt::format("tensor '{}'", printable(entry.name)))));
  make_names_unique(catalog);
  return catalog;
}

// The hash of a tensor that may lie on several ranks, and its shape.
struct Whole {
  LinearHash hash;
  Shape shape;
};

Result<Whole> gathered(const DigestEntry& entry, const std::vector<Step>& steps) {
  Whole whole{entry.ranks[0], entry.shape};
  if (entry.ranks.size() == 1) return whole;
  for (const Step& step : steps) {
    if (step.side != 'a') continue;
    if (step.op == Op::replica) {
      const bool same = std::ranges::all_of(
          entry.ranks, [&](const LinearHash& hash) { return hash == entry.ranks[0]; });
      if (!same) return Error("ranks of A that should be the same differ");
      return whole;
    }
    if (step.op != Op::concat || step.argument[0] > 1 || step.argument[0] >= entry.shape.size())
      continue;
    const std::size_t axis = step.argument[0];
    const std::size_t copies =
        step.argument.size() > 2 ? std::max<uint64_t>(step.argument[2], 1) : 1;
    const uint64_t columns =
        element_count(entry.shape).value_or(0) / std::max<uint64_t>(entry.shape[0], 1);
    uint64_t done = 1;
    for (std::size_t rank = copies; rank < entry.ranks.size(); rank += copies, ++done) {
      if (axis == 0)
        whole.hash.append_rows(entry.ranks[rank], done * entry.shape[0]);
      else
        whole.hash.append_columns(entry.ranks[rank], done * columns);
    }
    whole.shape[axis] *= done;
    return whole;
  }
  return Error("a digest does not tell how the ranks of A fit together");
}

View permuted(const View& view, const std::vector<uint64_t>& order) {
  View result = view;
  for (std::size_t axis = 0; axis < order.size(); ++axis) {
    result.shape[axis] = view.shape[order[axis]];
    for (std::size_t part = 0; part < view.parts.size(); ++part) {
      result.parts[part].origin[axis] = view.parts[part].origin[order[axis]];
      result.parts[part].shape[axis] = view.parts[part].shape[order[axis]];
      result.parts[part].strides[axis] = view.parts[part].strides[order[axis]];
    }
  }
  return result;
}

// B in the layout of A: what was done to the axes of A is undone.
Result<View> in_layout_of_a(const AlignedPair& pair, bool section = false) {
  View view = pair.b;
  for (auto step = pair.steps.rbegin(); step != pair.steps.rend(); ++step) {
    if (step->side != 'a') continue;
    switch (step->op) {
      case Op::permute: {
        std::vector<uint64_t> inverse(step->argument.size());
        for (std::size_t i = 0; i < inverse.size(); ++i) inverse[step->argument[i]] = i;
        if (inverse.size() != view.shape.size()) return Error("the layouts are too different");
        view = permuted(view, inverse);
        break;
      }
      case Op::squeeze:
      case Op::split:
      case Op::flatten:
      case Op::replica:
      case Op::concat:
        break;  // The elements stay in order.
      case Op::select:
        if (section) break;  // Whoever asked for a section knows where it lies.
        return Error("a digest has no hash of a part of a tensor");
      default:
        return Error("a digest has no hash of a part of a tensor");
    }
  }
  return view;
}

class Judge {
 public:
  Judge(const Digest& a, const Digest* earlier, const Pairing& pairing, const Request& request)
      : pairing_(pairing), request_(request) {
    for (const DigestEntry& entry : a.tensors) now_[entry.name] = &entry;
    if (earlier)
      for (const DigestEntry& entry : earlier->tensors) before_[entry.name] = &entry;
  }

  // One tensor of A, with all pairs that it is in: more than one where B keeps its parts apart.
  TensorState judge(const std::vector<std::size_t>& pairs) const {
    const Pair& first = pairing_.matching.pairs[pairs[0]];
    TensorState state;
    state.a = pairing_.a.tensors[first.a].name;
    state.b = pairing_.b.tensors[first.b].name;
    const Result<void> done = settle(pairs, state);
    if (!done.ok()) state.state = Freshness::unknown, state.note = done.error().message();
    return state;
  }

 private:
  static const DigestEntry* find(const std::map<std::string, const DigestEntry*>& entries,
                                 const std::string& name) {
    const auto found = entries.find(name);
    return found == entries.end() || !found->second->fault.empty() ? nullptr : found->second;
  }

  Result<void> settle(const std::vector<std::size_t>& pairs, TensorState& state) const {
    const DigestEntry* entry = find(now_, state.a);
    if (!entry) return Error("A: its values could not be read");
    state.stats_a = entry->stats;
    const AlignedPair pair = TRY(align_pair(pairing_, pairs[0], request_));
    const Whole whole = TRY(gathered(*entry, pair.steps));
    const LinearHash hash = pairing_.matching.pairs[pairs[0]].section_a
                                ? TRY(hash_of_parts(pairs, whole.shape, state))
                                : TRY(hash_of(pair, whole, state));
    state.state = Freshness::same;
    if (hash == whole.hash) return {};
    state.state = Freshness::changed;
    if (const DigestEntry* old = find(before_, state.a); old && old->shape == entry->shape) {
      const Result<Whole> before = gathered(*old, pair.steps);
      if (before.ok() && before.value().hash == hash) state.state = Freshness::stale;
    }
    return {};
  }

  static Result<LinearHash> hash_of(const AlignedPair& pair, const Whole& whole,
                                    TensorState& state) {
    const View view = TRY(in_layout_of_a(pair));
    const Hashed hashed = TRY(hash_values(view, whole.shape));
    state.stats_b = hashed.stats;
    if (hashed.hash == whole.hash) return hashed.hash;
    // Of a square matrix the shapes do not tell whether it was transposed.
    if (view.shape.size() == 2 && view.shape[0] == view.shape[1] && whole.shape == view.shape) {
      const Hashed turned = TRY(hash_values(permuted(view, {1, 0}), whole.shape));
      if (turned.hash == whole.hash) state.note = "transposed";
      if (turned.hash == whole.hash) return turned.hash;
    }
    return hashed.hash;
  }

  // Adds what B keeps apart at its place in the tensor of A, which has this shape.
  static Result<void> add_part(const AlignedPair& pair, const Shape& shape, LinearHash& hash) {
    const auto is_select = [](const Step& step) {
      return step.side == 'a' && step.op == Op::select;
    };
    const auto select = std::ranges::find_if(pair.steps, is_select);
    if (select == pair.steps.end() || std::ranges::count_if(pair.steps, is_select) != 1 ||
        select->argument.size() != 3 || select->argument[0] > 1 ||
        select->argument[0] >= shape.size())
      return Error("the parts of A are not next to each other");
    const uint64_t axis = select->argument[0], first = select->argument[1];
    Shape as = shape;
    as[axis] = select->argument[2];
    const View view = TRY(in_layout_of_a(pair, true));
    const Hashed hashed = TRY(hash_values(view, as));
    uint64_t behind = 1;  // Elements in one step along the second axis.
    for (std::size_t i = 2; i < shape.size(); ++i) behind *= shape[i];
    if (axis == 0)
      hash.append_rows(hashed.hash, first);
    else
      hash.append_columns(hashed.hash, first * behind);
    return {};
  }

  // A stores as one tensor what B keeps apart, one part behind the other.
  Result<LinearHash> hash_of_parts(std::vector<std::size_t> pairs, const Shape& shape,
                                   TensorState& state) const {
    const auto section = [&](std::size_t pair) -> const Section& {
      return *pairing_.matching.pairs[pair].section_a;
    };
    std::ranges::sort(pairs, {}, [&](std::size_t pair) { return section(pair).index; });
    if (pairs.size() != section(pairs[0]).elements.size())
      return Error("B does not have all parts of what A stores as one");
    LinearHash hash;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (section(pairs[i]).index != i) return Error("B has a part of it twice");
      const AlignedPair pair = TRY(align_pair(pairing_, pairs[i], request_));
      TRY(add_part(pair, shape, hash));
    }
    state.note = fmt::format("A stores {} tensors of B as one", pairs.size());
    return hash;
  }

  const Pairing& pairing_;
  const Request& request_;
  std::map<std::string, const DigestEntry*> now_, before_;
};

}  // namespace

std::array<std::size_t, kFreshnesses> DigestComparison::counts() const {
  std::array<std::size_t, kFreshnesses> counts = {};
  for (const TensorState& each : tensors) ++counts[static_cast<std::size_t>(each.state)];
  return counts;
}

bool DigestComparison::same() const {
  return std::ranges::all_of(tensors,
                             [](const TensorState& each) { return each.state == Freshness::same; });
}

Result<DigestComparison> compare_digest(const Digest& a, Catalog b, const Digest* earlier,
                                        Request request) {
  request.shape_only = true;  // So that nobody asks the digest for values.
  Catalog known = TRY(catalog_of(a));
  const Pairing pairing = TRY(pair_up(std::move(known), std::move(b), request));
  std::map<std::size_t, std::vector<std::size_t>> of_a;
  for (std::size_t i = 0; i < pairing.matching.pairs.size(); ++i)
    of_a[pairing.matching.pairs[i].a].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [tensor, pairs] : of_a) {
    // A tensor that B has twice under two names is two pairs; parts of one are one.
    if (pairing.matching.pairs[pairs[0]].section_a)
      groups.push_back(std::move(pairs));
    else
      for (const std::size_t pair : pairs) groups.push_back({pair});
  }
  DigestComparison result{a.model, pairing.b.path, std::vector<TensorState>(groups.size()),
                          pairing.report.notes};
  const Judge judge(a, earlier, pairing, request);
  for_each_index(groups.size(), [&](std::size_t i) { result.tensors[i] = judge.judge(groups[i]); });
  if (called_off()) return Error("cancelled");
  for (const Leftover& left : pairing.matching.only_a)
    result.tensors.push_back(
        {Freshness::missing, pairing.a.tensors[left.tensor].name, "", {}, {}, ""});
  for (const Leftover& left : pairing.matching.only_b)
    result.tensors.push_back(
        {Freshness::extra, "", pairing.b.tensors[left.tensor].name, {}, {}, ""});
  return result;
}

}  // namespace tensordiff
