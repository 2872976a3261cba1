#include "align/cut.h"

#include <algorithm>
#include <numeric>

#include "align/view.h"
#include "base/checked_math.h"

namespace tensordiff {
namespace {

// Groups in which query, key and value may be interleaved.
constexpr uint64_t kGroupsMax = 256;

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

// The section as each rank has it, for every number of groups of ranks that may repeat each other.
// Where a group holds more than the whole, it is because all but the first part, the keys and
// values of few heads, are on several of its ranks.
std::vector<Section> on_each_rank(const Operand& operand) {
  const Section& whole = *operand.section;
  uint64_t held = 0, total = 0;
  for (const View& shard : operand.shards) held += shard.elements();
  for (const uint64_t elements : whole.elements) total += elements;
  const uint64_t first = whole.elements[0];
  std::vector<Section> sections;
  for (uint64_t groups = 1; groups <= operand.shards.size() && total > first; ++groups) {
    const uint64_t ranks = operand.shards.size() / groups;
    if (groups * ranks != operand.shards.size() || held / groups <= first) continue;
    const uint64_t copies = (held / groups - first) / (total - first);
    if (groups * (first + copies * (total - first)) != held || copies == 0 || ranks % copies != 0)
      continue;
    Section section = whole;
    for (std::size_t i = 1; i < section.elements.size(); ++i) section.elements[i] *= copies;
    if (std::ranges::find(sections, section.elements, &Section::elements) == sections.end())
      sections.push_back(std::move(section));
  }
  // Or else they do not fit together.
  if (std::ranges::find(sections, whole.elements, &Section::elements) == sections.end())
    sections.push_back(whole);
  return sections;
}

// A section of every shard along one axis.
std::optional<Cut> cut_along(char side, const Operand& operand, const Section& section,
                             std::size_t axis) {
  Cut cut;
  for (const View& shard : operand.shards) {
    const std::optional<Range> range = range_of(section, shard.shape[axis]);
    if (!range) return std::nullopt;
    const Step step{side, Op::select, {axis, range->first, range->size}};
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
  const Step choose{side, Op::select, {axis, section.index / each, 1}};
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
    cut.steps = {{side, Op::split, {axis, groups, size}},
                 {side, Op::select, {axis + 1, range->first, range->size}}};
    for (const Step& step : cut.steps) shard = apply(step, std::move(shard));
    cut.shards.push_back(std::move(shard));
  }
  return cut;
}

}  // namespace

std::vector<Cut> cuts_of(char side, const Operand& operand) {
  if (!operand.section) return {{operand.shards, {}, false, std::nullopt}};
  std::vector<Cut> cuts;
  const View& first = operand.shards[0];
  const std::size_t rank = first.shape.size();
  for (const Section& section : on_each_rank(operand))
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

}  // namespace tensordiff
