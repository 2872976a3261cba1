#include "layout/peer_layouts.h"

#include <fmt/format.h>

#include "base/text.h"
#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

constexpr std::size_t kAskedMax = 16;

std::string part_text(const std::optional<Section>& section) {
  return section ? fmt::format("{} of {}", section->index, section->elements.size()) : "all";
}

bool is_plain(const Tensor& tensor) { return tensor.fault.empty() && tensor.shards.empty(); }

}  // namespace

PeerLayouts::PeerLayouts(const Catalog& a, const Catalog& b, const Matching& matching)
    : a_(a), b_(b), matching_(matching) {}

std::vector<std::string> PeerLayouts::keys_of(const Pair& pair) const {
  const Tensor &a = a_.tensors[pair.a], &b = b_.tensors[pair.b];
  if (!is_plain(a) || !is_plain(b)) return {};
  const std::string shapes = shape_text(a.view.shape) + shape_text(b.view.shape);
  const std::string kin = fmt::format("{} {} {}", shapes, numbered_name(a.pairing_name()).pattern,
                                      numbered_name(b.pairing_name()).pattern);
  // A part of a fused tensor is cut as the same part in other layers.
  if (pair.section_a || pair.section_b)
    return {fmt::format("{} {}/{}", kin, part_text(pair.section_a), part_text(pair.section_b))};
  return {kin, shapes, fmt::format("{} {}", a.view.shape.size(), b.view.shape.size())};
}

std::optional<Plan> PeerLayouts::confirmed_plan(const Group& group,
                                                const AlignOptions& options) const {
  std::optional<Plan> of_part;  // Told as well, but a plan that leaves nothing out fits more pairs.
  for (const Pair* pair : group.first) {
    Result<AlignedPair> aligned =
        align(Operand{{a_.tensors[pair->a].view}, pair->section_a},
              Operand{{b_.tensors[pair->b].view}, pair->section_b}, options);
    if (!aligned.ok() || !is_told(aligned.value().notes)) continue;
    if (!leaves_out(aligned.value().notes)) return std::move(aligned).value().steps;
    if (!of_part) of_part = std::move(aligned).value().steps;
  }
  return of_part;
}

std::vector<Plan> PeerLayouts::plans_for(const Pair& which, const AlignOptions& options) {
  std::unique_lock lock(mutex_);
  if (groups_.empty()) {
    for (const Pair& pair : matching_.pairs)
      for (const std::string& key : keys_of(pair))
        if (Group& group = groups_[key]; group.first.size() < kAskedMax)
          group.first.push_back(&pair);
  }
  std::vector<Plan> plans;
  for (const std::string& key : keys_of(which)) {
    Group& group = groups_[key];
    if (!group.asked) {
      // Not while others wait: two that ask at once find the same.
      lock.unlock();
      std::optional<Plan> plan = confirmed_plan(group, options);
      lock.lock();
      group.asked = true;
      group.plan = std::move(plan);
    }
    if (group.plan) plans.push_back(*group.plan);
  }
  return plans;
}

}  // namespace tensordiff
