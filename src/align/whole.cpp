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
#include <map>

#include "align/cut.h"
#include "align/evidence.h"
#include "align/view.h"
#include "base/text.h"
#include "tensor/sample.h"
#include "tensor/shards.h"

namespace tensordiff {
namespace {

// How many heads of queries share one of keys and values, in models that exist, and 1 for none.
constexpr uint64_t kQueriesPerKey[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32};

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

// Copies may differ by rounding. What has more to itself is no copy: the heads of queries beside
// keys that all ranks share.
constexpr double kRounding = 0.01;

// Nothing where it cannot be read.
using Sample = std::optional<std::vector<double>>;

class Gathering {
 public:
  Gathering(char side, const Cut& cut, RankFacts facts, std::vector<Whole>& wholes)
      : side_(side),
        cut_(cut),
        shards_(cut.shards),
        ranks_(shards_.size()),
        facts_(facts),
        wholes_(wholes) {}

  void all() {
    if (ranks_ == 1) {
      add(shards_[0], std::nullopt);
      return;
    }
    if (cut_.axis) {
      if (fit_along(shards_, *cut_.axis)) concat(*cut_.axis);
      return;
    }
    const bool same = same_shapes(shards_);
    const bool alike = same && all_alike();
    if (alike) replica();
    for (std::size_t axis = 0; axis < shards_[0].shape.size(); ++axis)
      if (fit_along(shards_, axis)) along(axis);
    bool copied = alike;
    for (std::size_t count = 2; same && !alike && count < ranks_; ++count)
      if (ranks_ % count == 0) {
        copied = neighbours(count) || copied;
        if (!facts_.all) copied = repeated(count) || copied;
      }
    // What several ranks have the same is no summand of theirs.
    if (same && !copied && can_encode(shards_[0].dtype))
      add(summed(shards_), Step{side_, Op::sum, {ranks_}});
    // Copies that are not alike are still copies, if nothing else explains what they are.
    if (same && !alike) replica().unlike = true;
  }

 private:
  // Whether two ranks hold the same but for rounding. Each rank is sampled once. Also where the
  // values are too few, or too much the same, to correlate.
  bool look_alike(std::size_t a, std::size_t b) {
    const auto &of_a = sample(a), &of_b = sample(b);
    if (!of_a || !of_b) return false;
    const double most = std::min(kRounding, disagreement_max(shards_[a].elements(), 1));
    return unexplained(*of_a, *of_b) <= most || equal_samples(*of_a, *of_b);
  }

  const Sample& sample(std::size_t rank) {
    samples_.resize(ranks_);
    if (!samples_[rank]) samples_[rank] = sample_of(shards_[rank]);
    return *samples_[rank];
  }

  bool all_alike() {
    if (!all_alike_) {
      all_alike_ = true;
      for (std::size_t rank = 1; *all_alike_ && rank < ranks_; ++rank)
        all_alike_ = look_alike(0, rank);
    }
    return *all_alike_;
  }

  // Whether all ranks of groups of so many neighbours hold the same.
  bool neighbours_alike(std::size_t count) {
    if (all_alike()) return true;
    const auto [found, is_new] = neighbours_alike_.try_emplace(count, true);
    for (std::size_t rank = 0; is_new && found->second && rank < ranks_; ++rank)
      if (rank % count != 0) found->second = look_alike(rank - rank % count, rank);
    return found->second;
  }

  Whole& replica() {
    Whole& whole = add(shards_[0], Step{side_, Op::replica, {ranks_}});
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      whole.copies.push_back({side_, rank, 0, shards_[rank], shards_[0]});
      whole.substitutes.push_back(shards_[rank]);
    }
    return whole;
  }

  void along(std::size_t axis) {
    concat(axis);
    if (!same_shapes(shards_)) return;
    for (std::size_t copies = 2; copies < ranks_; ++copies)
      if (ranks_ % copies == 0) copied(axis, copies);
    if (facts_.is_one) return;
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
  // of what all groups have copies of, or of what are pieces along another axis. Whether copies.
  bool neighbours(std::size_t count) {
    Shards distinct;
    std::vector<Copy> copies;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::size_t like = rank - rank % count;
      if (rank == like)
        distinct.push_back(shards_[rank]);
      else
        copies.push_back({side_, rank, like, shards_[rank], shards_[like]});
    }
    const bool alike = neighbours_alike(count);
    if (alike)
      copies_of(distinct, copies);
    else if (!facts_.all)
      for (std::size_t axis = 0; axis < shards_[0].shape.size(); ++axis) pieces_of(count, axis);
    return alike;
  }

  // All groups of so many ranks hold the same, if they do.
  bool repeated(std::size_t count) {
    std::vector<Copy> copies;
    for (std::size_t rank = count; rank < ranks_; ++rank)
      copies.push_back({side_, rank, rank % count, shards_[rank], shards_[rank % count]});
    if (!std::ranges::all_of(copies, [&](const Copy& c) { return look_alike(c.like, c.rank); }))
      return false;
    const std::size_t first = wholes_.size();
    copies_of(Shards(shards_.begin(), shards_.begin() + static_cast<ptrdiff_t>(count)), copies);
    for (std::size_t i = first; i < wholes_.size(); ++i)
      wholes_[i].regrouping |= regrouped::kRepeated;
    return true;
  }

  void copies_of(const Shards& distinct, const std::vector<Copy>& copies) {
    const Step step{side_, Op::replica, {ranks_ / distinct.size()}};
    Cut cut{distinct, cut_.steps, true, std::nullopt};
    cut.steps.push_back(step);
    const std::size_t first = wholes_.size();
    Gathering(side_, cut, facts_, wholes_).all();
    for (std::size_t i = first; i < wholes_.size(); ++i)
      wholes_[i].copies.insert(wholes_[i].copies.end(), copies.begin(), copies.end());
  }

  void pieces_of(std::size_t count, std::size_t axis) {
    Shards rows;
    for (std::size_t first = 0; first < ranks_; first += count)
      rows.push_back(concatenated(std::span(shards_).subspan(first, count), axis));
    Cut cut{rows, cut_.steps, true, std::nullopt};
    cut.steps.push_back({side_, Op::concat, {axis, count, 1}});
    Gathering groups(side_, cut, facts_, wholes_);
    Whole& repeated = groups.replica();
    repeated.regrouping |= regrouped::kRepeated;
    repeated.unlike = !groups.all_alike();
    for (std::size_t other = 0; other < shards_[0].shape.size(); ++other)
      if (other != axis) groups.concat(other).regrouping |= regrouped::kGrid;
  }

  Whole& concat(std::size_t axis) {
    return add(concatenated(shards_, axis), Step{side_, Op::concat, {axis, ranks_, 1}});
  }

  // Each piece on `copies` neighbouring ranks.
  void copied(std::size_t axis, std::size_t copies) {
    Shards distinct;
    for (std::size_t rank = 0; rank < ranks_; rank += copies) distinct.push_back(shards_[rank]);
    Whole& whole =
        add(concatenated(distinct, axis), Step{side_, Op::concat, {axis, ranks_, copies}});
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::size_t like = rank - rank % copies;
      if (rank != like) whole.copies.push_back({side_, rank, like, shards_[rank], shards_[like]});
    }
    whole.unlike = !neighbours_alike(copies);
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
    Step step{side_, Op::concat_parts, {axis, ranks_}};
    step.argument.insert(step.argument.end(), sizes.begin(), sizes.end());
    Whole& whole = add(concatenated(parts, axis), step);
    whole.guess = true;
    whole.regrouping |= regrouped::kParts;
    whole.copies = std::move(same);
  }

  Whole& add(View view, const std::optional<Step>& step) {
    Plan steps = cut_.steps;
    if (step) steps.push_back(*step);
    wholes_.push_back({std::move(view), std::move(steps), {}, {}, cut_.guess, 0, false, 0});
    return wholes_.back();
  }

  char side_;
  const Cut& cut_;
  const Shards& shards_;
  std::size_t ranks_;
  RankFacts facts_;
  std::vector<Whole>& wholes_;
  std::vector<std::optional<Sample>> samples_;  // By rank, once it was read.
  std::optional<bool> all_alike_;
  std::map<std::size_t, bool> neighbours_alike_;  // By how many.
};

}  // namespace

bool fit_along(std::span<const View> shards, std::size_t axis) {
  return std::ranges::all_of(shards, [&](const View& view) {
    Shape shape = view.shape;
    if (shape.size() != shards[0].shape.size() || view.dtype != shards[0].dtype) return false;
    shape[axis] = shards[0].shape[axis];
    return shape == shards[0].shape && view.swapped == shards[0].swapped &&
           view.terms == shards[0].terms;
  });
}

Result<std::vector<Whole>> wholes_of(char side, const Operand& operand) {
  TRY(check(operand.shards));
  std::vector<Whole> wholes;
  for (const Cut& cut : cuts_of(side, operand)) {
    const std::size_t first = wholes.size();
    Gathering(side, cut, operand.facts, wholes).all();
    for (std::size_t i = first; i < wholes.size(); ++i)
      wholes[i].on_rank = cut.shards[0].elements();
  }
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
