// Finds by the values alone that one tensor holds several of the other side, where the names do not
// say so: query, key and value, gate and up, all experts of a layer.
//
// The moments of a tensor are taken at each index of an axis, so that those of any range of it are
// sums. A range whose signature is that of a tensor of the other side is taken for that tensor, and
// the next one starts where it ends; the ranges must fill the axis. The axis may also be a number
// of groups that hold some of each, as where every head has its own query, key and value. What is
// found so in one layer is then read as a rule for the others, as in the value strategy.

#include <algorithm>
#include <map>
#include <set>

#include "base/parallel.h"
#include "base/text.h"
#include "match/fusion.h"
#include "match/matcher.h"
#include "match/signature.h"

namespace tensordiff {
namespace {

constexpr uint64_t kElementsMin = 16;       // A part of a bias. Fewer numbers agree by chance.
constexpr uint64_t kReadMax = 1 << 24;      // Larger ones are not read just to find a partner.
constexpr std::size_t kTensorsMax = 2'000;  // Of one side; more would take too long.
constexpr uint64_t kGroupsMax = 256;
// In standard errors. Two parts of one distribution come so near to the wrong tensor about once in
// a million; rounding to bf16 stays well below.
constexpr double kNear = 0.05;
constexpr double kClearlyNearer = 4;

struct PartSignature {
  std::size_t tensor = 0;
  Signature signature;
};
using BySize = std::map<uint64_t, std::vector<PartSignature>>;

BySize signatures_of(const FreeSide& side) {
  std::vector<PartSignature> parts(side.free.size());
  for_each_index(parts.size(), [&](std::size_t i) {
    const Tensor& tensor = side.catalog.tensors[side.free[i]];
    parts[i].tensor = side.free[i];
    if (tensor.elements() >= kElementsMin && tensor.shards.empty())
      parts[i].signature = signature_of(tensor, kReadMax);
  });
  BySize result;
  for (const PartSignature& part : parts)
    if (part.signature.varied) result[part.signature.elements].push_back(part);
  return result;
}

// Cuts one axis of a tensor into parts.
class Cutting {
 public:
  Cutting(const BySize& parts, const std::vector<ValueMoments>& axis)
      : parts_(parts), axis_(axis), row_(axis[0].elements) {}

  std::vector<std::size_t> cut() const {
    for (uint64_t groups = 1; groups <= std::min<uint64_t>(axis_.size() / 2, kGroupsMax); ++groups)
      if (axis_.size() % groups == 0)
        if (std::vector<std::size_t> found = cut_in(groups); found.size() > 1) return found;
    return {};
  }

 private:
  std::vector<std::size_t> cut_in(uint64_t groups) const {
    std::vector<std::size_t> found;
    std::set<std::size_t> used;
    const uint64_t size = axis_.size() / groups;
    for (uint64_t first = 0; first < size;) {
      const PartSignature* part = part_at(groups, first, used);
      if (!part) return {};
      found.push_back(part->tensor);
      used.insert(part->tensor);
      first += part->signature.elements / row_ / groups;
    }
    return found;
  }

  const PartSignature* part_at(uint64_t groups, uint64_t first,
                               const std::set<std::size_t>& used) const {
    const uint64_t size = axis_.size() / groups;
    const PartSignature* best = nullptr;
    double nearest = kNear, next = std::numeric_limits<double>::infinity();
    for (const auto& [elements, parts] : parts_) {
      if (elements % (row_ * groups) != 0) continue;
      const uint64_t width = elements / row_ / groups;
      if (first + width > size || width == size) continue;
      const Signature here = signature_of(moments_of(groups, first, width));
      for (const PartSignature& part : parts) {
        if (used.contains(part.tensor)) continue;
        const double apart = distance(here, part.signature);
        if (apart <= nearest) {
          next = best ? nearest : next;
          nearest = apart, best = &part;
        } else {
          next = std::min(next, apart);
        }
      }
    }
    return best && nearest * kClearlyNearer < next ? best : nullptr;
  }

  ValueMoments moments_of(uint64_t groups, uint64_t first, uint64_t width) const {
    ValueMoments sum;
    const uint64_t size = axis_.size() / groups;
    for (uint64_t group = 0; group < groups; ++group)
      for (uint64_t i = first; i < first + width; ++i) sum.add(axis_[group * size + i]);
    return sum;
  }

  const BySize& parts_;
  const std::vector<ValueMoments>& axis_;
  uint64_t row_;  // Elements at one index of the axis.
};

std::vector<std::size_t> parts_in(const Tensor& whole, const BySize& parts) {
  const uint64_t count = whole.elements();
  const bool readable = whole.fault.empty() && whole.shards.empty();
  if (!readable || count < 2 * kElementsMin || count > kReadMax) return {};
  if (parts.empty() || parts.begin()->first > count / 2) return {};
  for (std::size_t axis = 0; axis < whole.view.shape.size(); ++axis) {
    if (whole.view.shape[axis] < 2) continue;
    const std::vector<ValueMoments> along = moments_along(whole.view, axis);
    if (along.empty()) return {};
    if (std::vector<std::size_t> found = Cutting(parts, along).cut(); !found.empty()) return found;
  }
  return {};
}

// Fusions that share a part contradict each other: none of them stands.
std::vector<Fusion> without_conflicts(const std::vector<Fusion>& fusions) {
  std::map<std::size_t, std::size_t> claims;
  for (const Fusion& fusion : fusions)
    for (const std::size_t part : fusion.parts) ++claims[part];
  std::vector<Fusion> result;
  for (const Fusion& fusion : fusions)
    if (std::ranges::all_of(fusion.parts, [&](std::size_t part) { return claims[part] == 1; }))
      result.push_back(fusion);
  return result;
}

// The name of the bias beside a weight.
std::optional<std::string> of_bias(const std::string& weight) {
  constexpr std::string_view kWeight = "weight";
  if (!weight.ends_with(kWeight)) return std::nullopt;
  return weight.substr(0, weight.size() - kWeight.size()) + "bias";
}

// Biases are fused as the weights beside them are, and may be too small to show it.
void add_biases(const FreeSide& wholes, const FreeSide& separate, std::vector<Fusion>& fusions) {
  const auto by_name = [](const FreeSide& side) {
    std::map<std::string_view, std::size_t> tensors;
    for (const std::size_t each : side.free) tensors.emplace(side.names[each], each);
    return tensors;
  };
  const auto of_wholes = by_name(wholes), of_parts = by_name(separate);
  std::set<std::size_t> used_wholes, used_parts;
  for (const Fusion& fusion : fusions) {
    used_wholes.insert(fusion.whole);
    used_parts.insert(fusion.parts.begin(), fusion.parts.end());
  }
  const auto bias_of = [](const FreeSide& side, const auto& tensors, const auto& used,
                          std::size_t weight) -> std::optional<std::size_t> {
    const std::optional<std::string> name = of_bias(side.names[weight]);
    const auto found = name ? tensors.find(*name) : tensors.end();
    if (found == tensors.end() || used.contains(found->second)) return std::nullopt;
    return found->second;
  };
  for (std::size_t i = 0, count = fusions.size(); i < count; ++i) {
    const auto whole = bias_of(wholes, of_wholes, used_wholes, fusions[i].whole);
    if (!whole) continue;
    Fusion fusion{*whole, {}};
    uint64_t elements = 0;
    for (const std::size_t part : fusions[i].parts)
      if (const auto bias = bias_of(separate, of_parts, used_parts, part)) {
        fusion.parts.push_back(*bias);
        elements += separate.catalog.tensors[*bias].elements();
      }
    if (fusion.parts.size() == fusions[i].parts.size() &&
        elements == wholes.catalog.tensors[*whole].elements())
      fusions.push_back(std::move(fusion));
  }
}

std::vector<Fusion> find(const FreeSide& wholes, const FreeSide& separate,
                         std::vector<std::string>& notes) {
  const BySize parts = signatures_of(separate);
  std::vector<Fusion> found(wholes.free.size());
  for_each_index(found.size(), [&](std::size_t i) {
    found[i] = {wholes.free[i], parts_in(wholes.catalog.tensors[wholes.free[i]], parts)};
  });
  std::erase_if(found, [](const Fusion& fusion) { return fusion.parts.empty(); });
  found = without_conflicts(found);
  follow_rules(wholes, separate, found);
  add_biases(wholes, separate, found);
  put_in_order(wholes, separate, found, notes);
  return found;
}

void add(const Fusion& fusion, const Catalog& separate, bool a_is_whole, Proposal& proposal) {
  Section section;
  for (const std::size_t part : fusion.parts)
    section.elements.push_back(separate.tensors[part].elements());
  for (std::size_t i = 0; i < fusion.parts.size(); ++i) {
    section.index = i;
    section.label = std::to_string(i);
    Pair pair;
    pair.a = a_is_whole ? fusion.whole : fusion.parts[i];
    pair.b = a_is_whole ? fusion.parts[i] : fusion.whole;
    (a_is_whole ? pair.section_a : pair.section_b) = section;
    proposal.pairs.push_back(std::move(pair));
  }
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  if (!input.options.read_values || input.free_a.empty() || input.free_b.empty()) return proposal;
  if (std::max(input.free_a.size(), input.free_b.size()) > kTensorsMax) {
    proposal.notes.push_back(
        fmt::format("more than {} tensors have no partner: whether one holds several of the other "
                    "side was not searched by their values",
                    human_count(kTensorsMax)));
    return proposal;
  }
  const FreeSide a{input.a, input.side_a.names, input.free_a};
  const std::vector<Fusion> in_a =
      find(a, {input.b, input.side_b.names, input.free_b}, proposal.notes);
  std::set<std::size_t> used_a, used_b;
  for (const Fusion& fusion : in_a) {
    add(fusion, input.b, true, proposal);
    used_a.insert(fusion.whole);
    used_b.insert(fusion.parts.begin(), fusion.parts.end());
  }
  std::vector<std::size_t> free_a = input.free_a, free_b = input.free_b;
  std::erase_if(free_a, [&](std::size_t tensor) { return used_a.contains(tensor); });
  std::erase_if(free_b, [&](std::size_t tensor) { return used_b.contains(tensor); });
  for (const Fusion& fusion : find({input.b, input.side_b.names, free_b},
                                   {input.a, input.side_a.names, free_a}, proposal.notes))
    add(fusion, input.a, false, proposal);
  return proposal;
}

}  // namespace

constinit const Matcher matchers::fused_value = {
    .name = "fused-value",
    .summary = "the values of one tensor are those of several of the other side",
    .propose = propose,
};

}  // namespace tensordiff
