#include "parts/fingerprint.h"

#include <algorithm>

#include "base/build_info.h"
#include "base/sha256.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// Two checkpoints of one run differ in all of their weights, so a few elements tell them apart; of
// a remote or compressed input each of these tensors costs a request or an unpacking.
constexpr std::size_t kTensorsRead = 32;
constexpr uint64_t kElementsRead = 64;

// A hash over a text that is too long to be kept.
class LongHash {
 public:
  void add(std::string_view text) {
    pending_ += text;
    pending_ += '\n';
    if (pending_.size() > kPendingMax) fold();
  }
  std::string take() {
    fold();
    return state_;
  }

 private:
  static constexpr std::size_t kPendingMax = 1 << 20;

  void fold() {
    state_ = sha256(state_ + pending_);
    pending_.clear();
  }

  std::string state_, pending_;
};

void add_section(const std::optional<Section>& section, LongHash& hash) {
  if (section)
    hash.add(fmt::format("{} {} of {}", section->label, section->index, section->elements.size()));
}

void add_elements(const View& view, LongHash& hash) {
  const uint64_t elements = view.elements();
  if (elements == 0 || is_undecoded(view.dtype)) return;
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return hash.add("unreadable");
  const uint64_t count = std::min(elements, kElementsRead);
  std::vector<std::byte> buffer;
  const std::byte* at = reader.value().raw((elements - count) / 2, count, buffer);
  hash.add(as_text({at, count * item_bytes(view.dtype)}));
}

void add_side(const Catalog& side, LongHash& hash) {
  hash.add(fmt::format("{} {}", side.format, side.tensors.size()));
  for (const Tensor& tensor : side.tensors) {
    hash.add(tensor.name);
    hash.add(fmt::format("{} {}", name_of(tensor.view.dtype), tensor.shards.size()));
    for (const uint64_t size : tensor.view.shape) hash.add(fmt::format("{}", size));
  }
  const std::size_t step = std::max<std::size_t>(1, side.tensors.size() / kTensorsRead);
  for (std::size_t i = 0; i < side.tensors.size(); i += step)
    if (side.tensors[i].fault.empty()) add_elements(side.tensors[i].view, hash);
}

}  // namespace

std::string fingerprint_of(const Pairing& pairing, std::span<const GivenOption> options) {
  LongHash hash;
  hash.add(kVersion);
  for (const GivenOption& option : options) hash.add(option.name), hash.add(option.value);
  add_side(pairing.a, hash);
  if (!pairing.alone) add_side(pairing.b, hash);
  for (const Pair& pair : pairing.matching.pairs) {
    hash.add(fmt::format("{} {}", pair.a, pair.b));
    add_section(pair.section_a, hash);
    add_section(pair.section_b, hash);
  }
  return hash.take();
}

}  // namespace tensordiff
