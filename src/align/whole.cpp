// Tensor parallel code gives each rank a part of a tensor, and a dump has what each rank saw:
//   - the same on all ranks (activations between blocks, norms),
//   - consecutive pieces along one axis (heads, features); where there are fewer heads of keys and
//     values than ranks, each piece on as many neighbouring ranks as it takes,
//   - pieces of several tensors that are fused on each rank, [q|k|v] or [gate|up], so that the
//     whole is all q, then all k, then all v,
//   - summands (outputs of row-parallel layers before they are reduced),
//   - with data parallel ranks beside tensor parallel ones, copies of any of these, or pieces of a
//     batch, of which all tensor parallel ranks have the same or, along another axis, pieces.
// Shapes leave more than one of these open, and the caller lets the values decide. Ranks are always
// taken in the order of their numbers: a wrong order is a mistake, and stays one.

#include "align/whole.h"

#include <algorithm>
#include <numeric>

#include "align/evidence.h"
#include "align/view.h"
#include "base/text.h"
#include "tensor/shards.h"

namespace tensordiff {
namespace {

// How many heads of queries share one of keys and values, in models that exist, and 1 for none.
constexpr uint64_t kQueriesPerKey[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32};
// Groups in which query, key and value may be interleaved.
constexpr uint64_t kGroupsMax = 256;

using Shards = std::vector<View>;

// Shards of one section along one axis, with what was done to each of them.
struct Cut {
  Shards shards;
  Plan steps;
  bool guess = false;
  std::optional<std::size_t> axis = std::nullopt;  // The only one they are put together along.
};

Result<void> check(const Shards& shards) {
  for (std::size_t rank = 1; rank < shards.size(); ++rank) {
    const View& first = shards[0];
    const View& view = shards[rank];
    if (view.dtype != first.dtype)
      return Error("rank 0 has {}, rank {} has {}", name_of(first.dtype), rank,
                   name_of(view.dtype));
    if (view.shape.size() != first.shape.size() || view.swapped != first.swapped)
      return Error("ranks do not fit together: rank 0 has {}, rank {} has {}",
                   shape_text(first.shape), rank, shape_text(view.shape));
  }
  return {};
}

bool same_shapes(const Shards& shards) {
  return std::ranges::all_of(shards, [&](const View& v) { return v.shape == shards[0].shape; });
}

// Also where the values are too few, or too much the same, to correlate.
bool look_alike(const View& a, const View& b) {
  const AlignedPair pair{a, b, {}, ""};
  return sampled_disagreement(pair) <= disagreement_max(a.elements(), 1) || samples_equal(pair);
}

class Gathering {
 public:
  Gathering(char side, const Cut& cut, std::vector<Whole>& wholes)
      : side_(side), cut_(cut), shards_(cut.shards), ranks_(shards_.size()), wholes_(wholes) {}

  void all() {
    if (ranks_ == 1) {
      add(shards_[0], {});
      return;
    }
    if (cut_.axis) {
      if (fit_along(shards_, *cut_.axis)) concat(*cut_.axis);
      return;
    }
    const bool same = same_shapes(shards_);
    const bool alike = same && std::ranges::all_of(shards_, [&](const View& view) {
                         return &view == &shards_[0] || look_alike(shards_[0], view);
                       });
    if (alike) replica();
    for (std::size_t axis = 0; axis < shards_[0].shape.size(); ++axis)
      if (fit_along(shards_, axis)) along(axis);
    for (std::size_t count = 2; same && !alike && count < ranks_; ++count)
      if (ranks_ % count == 0) neighbours(count);
    // What is the same on all ranks is no summand.
    if (same && !alike && can_encode(shards_[0].dtype))
      add(summed(shards_), {side_, ops::kSum, {ranks_}});
    // Copies that are not alike are still copies, if nothing else explains what they are.
    if (same && !alike) replica();
  }

 private:
  void replica() {
    Whole& whole = add(shards_[0], {side_, ops::kReplica, {ranks_}});
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      whole.copies.push_back({side_, rank, 0, shards_[rank], shards_[0]});
      whole.substitutes.push_back(shards_[rank]);
    }
  }

  void along(std::size_t axis) {
    concat(axis);
    if (!same_shapes(shards_)) return;
    for (std::size_t copies = 2; copies < ranks_; ++copies)
      if (ranks_ % copies == 0) copied(axis, copies);
    const uint64_t size = shards_[0].shape[axis];
    if (size % 2 == 0) in_parts(axis, {size / 2, size / 2});
    for (const uint64_t queries : kQueriesPerKey) {
      const uint64_t share = size / (queries + 2);
      if (share * (queries + 2) != size) continue;
      in_parts(axis, {queries * share, share, share});
      for (std::size_t copies = 2; copies <= ranks_; ++copies)
        if (ranks_ % copies == 0) in_parts(axis, {queries * share, share, share}, copies);
    }
  }

  // Groups of neighbouring ranks that hold copies of what the groups then make together, or pieces
  // of what all groups have copies of, or of what are pieces along another axis.
  void neighbours(std::size_t count) {
    Shards distinct;
    std::vector<Copy> copies;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::size_t like = rank - rank % count;
      if (rank == like)
        distinct.push_back(shards_[rank]);
      else
        copies.push_back({side_, rank, like, shards_[rank], shards_[like]});
    }
    if (std::ranges::all_of(copies, [](const Copy& c) { return look_alike(c.like_view, c.view); }))
      copies_of(distinct, copies);
    else
      for (std::size_t axis = 0; axis < shards_[0].shape.size(); ++axis)
        pieces_of(count, axis);
  }

  void copies_of(const Shards& distinct, const std::vector<Copy>& copies) {
    const Step step{side_, ops::kReplica, {ranks_ / distinct.size()}};
    Cut cut{distinct, cut_.steps, true, std::nullopt};
    cut.steps.push_back(step);
    const std::size_t first = wholes_.size();
    Gathering(side_, cut, wholes_).all();
    for (std::size_t i = first; i < wholes_.size(); ++i)
      wholes_[i].copies.insert(wholes_[i].copies.end(), copies.begin(), copies.end());
  }

  void pieces_of(std::size_t count, std::size_t axis) {
    Shards rows;
    for (std::size_t first = 0; first < ranks_; first += count)
      rows.push_back(concatenated(std::span(shards_).subspan(first, count), axis));
    Cut cut{rows, cut_.steps, true, std::nullopt};
    cut.steps.push_back({side_, ops::kConcat, {axis, count, 1}});
    Gathering groups(side_, cut, wholes_);
    groups.replica();
    for (std::size_t other = 0; other < shards_[0].shape.size(); ++other)
      if (other != axis) groups.concat(other);
  }

  void concat(std::size_t axis) {
    add(concatenated(shards_, axis), {side_, ops::kConcat, {axis, ranks_, 1}});
  }

  // Each piece on `copies` neighbouring ranks.
  void copied(std::size_t axis, std::size_t copies) {
    Shards distinct;
    for (std::size_t rank = 0; rank < ranks_; rank += copies) distinct.push_back(shards_[rank]);
    Whole& whole = add(concatenated(distinct, axis), {side_, ops::kConcat, {axis, ranks_, copies}});
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::size_t like = rank - rank % copies;
      if (rank != like) whole.copies.push_back({side_, rank, like, shards_[rank], shards_[like]});
    }
  }

  // Each rank has several parts; of all but the first, `copies` neighbouring ranks have the same.
  void in_parts(std::size_t axis, const std::vector<uint64_t>& sizes, std::size_t copies = 1) {
    Shards parts;
    std::vector<Copy> same;
    uint64_t first = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto part_of = [&](std::size_t rank) {
        return narrowed(shards_[rank], axis, first, sizes[i]);
      };
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        const std::size_t like = i == 0 ? rank : rank - rank % copies;
        if (rank == like)
          parts.push_back(part_of(rank));
        else
          same.push_back({side_, rank, like, part_of(rank), part_of(like)});
      }
      first += sizes[i];
    }
    Step step{side_, ops::kConcatParts, {axis, ranks_}};
    step.argument.insert(step.argument.end(), sizes.begin(), sizes.end());
    Whole& whole = add(concatenated(parts, axis), step);
    whole.guess = true;
    whole.copies = std::move(same);
  }

  Whole& add(View view, const Step& step) {
    Plan steps = cut_.steps;
    if (!step.op.empty()) steps.push_back(step);
    wholes_.push_back({std::move(view), std::move(steps), {}, {}, cut_.guess});
    return wholes_.back();
  }

  char side_;
  const Cut& cut_;
  const Shards& shards_;
  std::size_t ranks_;
  std::vector<Whole>& wholes_;
};

// Where a section of an axis of this size lies, if its share of the elements is a share of the
// axis.
struct Range {
  uint64_t first = 0, size = 0;
};
std::optional<Range> range_of(const Section& section, uint64_t axis_size) {
  const uint64_t total =
      std::accumulate(section.elements.begin(), section.elements.end(), uint64_t{0});
  Range range;
  for (std::size_t i = 0; i < section.elements.size(); ++i) {
    const std::optional<uint64_t> scaled = checked_mul(axis_size, section.elements[i]);
    if (total == 0 || !scaled || *scaled % total != 0) return std::nullopt;
    if (i < section.index) range.first += *scaled / total;
    if (i == section.index) range.size = *scaled / total;
  }
  return range;
}

// The section as each rank has it. Where ranks hold more than the whole, it is because all but the
// first part, the keys and values of few heads, are on several of them.
Section on_each_rank(const Operand& operand) {
  Section section = *operand.section;
  uint64_t held = 0, total = 0;
  for (const View& shard : operand.shards) held += shard.elements();
  for (const uint64_t elements : section.elements) total += elements;
  const uint64_t first = section.elements[0];
  if (held <= total || total <= first || held <= first) return section;
  const uint64_t copies = (held - first) / (total - first);
  if (copies * (total - first) != held - first || operand.shards.size() % copies != 0)
    return section;
  for (std::size_t i = 1; i < section.elements.size(); ++i) section.elements[i] *= copies;
  return section;
}

// A section of every shard along one axis.
std::optional<Cut> cut_along(char side, const Operand& operand, const Section& section,
                             std::size_t axis) {
  Cut cut;
  for (const View& shard : operand.shards) {
    const std::optional<Range> range = range_of(section, shard.shape[axis]);
    if (!range) return std::nullopt;
    const Step step{side, ops::kSelect, {axis, range->first, range->size}};
    if (cut.steps.empty()) cut.steps.push_back(step);
    cut.shards.push_back(apply(step, shard));
  }
  return cut;
}

// The section where one axis has an entry for each of several owners, which have some sections
// each: the experts of a layer with their gate and up, [experts, gate and up, features].
std::vector<Cut> cuts_by_owner(char side, const Operand& operand, std::size_t axis) {
  const uint64_t owners = operand.shards[0].shape[axis];
  const Section& section = *operand.section;
  const std::size_t each = section.elements.size() / std::max<uint64_t>(owners, 1);
  if (each < 2 || each * owners != section.elements.size()) return {};
  for (std::size_t i = each; i < section.elements.size(); ++i)
    if (section.elements[i] != section.elements[i - each]) return {};
  const Step choose{side, ops::kSelect, {axis, section.index / each, 1}};
  Operand owned{operand.shards, section};
  owned.section->index %= each;
  owned.section->elements.resize(each);
  for (View& shard : owned.shards) {
    if (shard.shape.size() != operand.shards[0].shape.size() || shard.shape[axis] != owners)
      return {};
    shard = apply(choose, std::move(shard));
  }
  std::vector<Cut> cuts;
  for (std::size_t inner = 0; inner < owned.shards[0].shape.size(); ++inner) {
    if (inner == axis) continue;
    std::optional<Cut> cut = cut_along(side, owned, *owned.section, inner);
    if (!cut) continue;
    cut->steps.insert(cut->steps.begin(), choose);
    cuts.push_back(std::move(*cut));
  }
  return cuts;
}

// The section where the axis is a number of groups that each hold some of all sections.
std::optional<Cut> cut_in_groups(char side, const Operand& operand, std::size_t axis,
                                 uint64_t groups) {
  Cut cut;
  cut.guess = true;
  if (operand.shards.size() > 1) cut.axis = axis;
  for (View shard : operand.shards) {
    const uint64_t size = shard.shape[axis] / groups;
    const std::optional<Range> range = range_of(*operand.section, size);
    if (!range || size * groups != shard.shape[axis]) return std::nullopt;
    cut.steps = {{side, ops::kSplit, {axis, groups, size}},
                 {side, ops::kSelect, {axis + 1, range->first, range->size}}};
    for (const Step& step : cut.steps) shard = apply(step, std::move(shard));
    cut.shards.push_back(std::move(shard));
  }
  return cut;
}

std::vector<Cut> cuts_of(char side, const Operand& operand) {
  if (!operand.section) return {{operand.shards, {}, false, std::nullopt}};
  std::vector<Cut> cuts;
  const View& first = operand.shards[0];
  const std::size_t rank = first.shape.size();
  const Section on_rank = on_each_rank(operand);
  std::vector<Section> sections = {on_rank};
  // Or else ranks hold more because some are copies of others.
  if (on_rank.elements != operand.section->elements) sections.push_back(*operand.section);
  for (const Section& section : sections)
    for (std::size_t axis = 0; axis < rank; ++axis)
      if (std::optional<Cut> cut = cut_along(side, operand, section, axis))
        cuts.push_back(std::move(*cut));
  for (std::size_t axis = 0; axis < rank; ++axis)
    for (Cut& cut : cuts_by_owner(side, operand, axis)) cuts.push_back(std::move(cut));
  for (std::size_t axis = 0; axis < rank; ++axis)
    for (uint64_t groups = 2; groups <= std::min(first.shape[axis] / 2, kGroupsMax); ++groups)
      if (std::optional<Cut> cut = cut_in_groups(side, operand, axis, groups))
        cuts.push_back(std::move(*cut));
  return cuts;
}

}  // namespace

bool fit_along(std::span<const View> shards, std::size_t axis) {
  return std::ranges::all_of(shards, [&](const View& view) {
    Shape shape = view.shape;
    if (shape.size() != shards[0].shape.size() || view.dtype != shards[0].dtype) return false;
    shape[axis] = shards[0].shape[axis];
    return shape == shards[0].shape && view.swapped == shards[0].swapped && view.terms == 1;
  });
}

Result<std::vector<Whole>> wholes_of(char side, const Operand& operand) {
  TRY(check(operand.shards));
  std::vector<Whole> wholes;
  for (const Cut& cut : cuts_of(side, operand)) Gathering(side, cut, wholes).all();
  return wholes;
}

View all_shards_of(const Tensor& tensor) {
  const Shards shards = distinct_shards(tensor);
  if (shards.size() > 1 && check(shards).ok())
    for (std::size_t axis = 0; axis < shards[0].shape.size(); ++axis)
      if (fit_along(shards, axis)) return concatenated(shards, axis);
  return shards[0];
}

}  // namespace tensordiff
