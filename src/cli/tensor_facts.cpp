#include "cli/tensor_facts.h"
#include "tensor/stored.h"

#include <algorithm>

namespace tensordiff {
namespace {

constexpr std::size_t kFoundMax = 20;       // Positions that are told; all are counted.
constexpr uint64_t kBlockElements = 65536;  // Read at once.

// Calls visit(position, element) for each element of the box until it returns false.
template <class Visit>
void for_each_element(const Reader& reader, const Box& box, Visit visit) {
  const std::size_t size = item_bytes(reader.view().dtype);
  std::vector<std::byte> buffer;
  for_each_run(box, reader.view().shape, [&](uint64_t position, uint64_t count) {
    for (uint64_t done = 0; done < count;) {
      const uint64_t block = std::min(kBlockElements, count - done);
      const std::byte* elements = reader.raw(position + done, block, buffer);
      for (uint64_t i = 0; i < block; ++i)
        if (!visit(position + done + i, elements + i * size)) return false;
      done += block;
    }
    return true;
  });
}

void take_values(const Reader& reader, uint64_t count, TensorFacts& facts) {
  const std::size_t size = item_bytes(reader.view().dtype);
  count = std::min(count, facts.box.elements());
  if (count == 0) return;
  for_each_element(reader, facts.box, [&](uint64_t, const std::byte* element) {
    facts.values.insert(facts.values.end(), element, element + size);
    return --count > 0;
  });
}

void find_elements(const Reader& reader, const Condition& condition, TensorFacts& facts) {
  const DType dtype = reader.view().dtype;
  const std::size_t size = item_bytes(dtype);
  for_each_element(reader, facts.box, [&](uint64_t position, const std::byte* element) {
    if (!holds(condition, dtype, element)) return true;
    if (++facts.found > kFoundMax) return true;
    facts.found_positions.push_back(position);
    facts.found_values.insert(facts.found_values.end(), element, element + size);
    return true;
  });
}

Result<void> gather(const FactsWanted& wanted, TensorFacts& facts) {
  const View& view = facts.tensor->view;
  if (!facts.tensor->fault.empty()) return Error("{}", facts.tensor->fault);
  if (wanted.stats) facts.stats = TRY(statistics(view));
  facts.box = TRY(parse_slice(wanted.slice, view.shape));
  if (wanted.values == 0 && !wanted.find) return {};
  const Reader reader = TRY(Reader::open(view));
  take_values(reader, wanted.values, facts);
  if (wanted.find) find_elements(reader, *wanted.find, facts);
  if (!reader.intact()) return Error("{}", damage_of(reader.view()));
  return {};
}

}  // namespace

TensorFacts gather_facts(const Tensor& tensor, const FactsWanted& wanted) {
  TensorFacts facts;
  facts.tensor = &tensor;
  if (const Result<void> gathered = gather(wanted, facts); !gathered.ok())
    facts.fault = gathered.error().message();
  return facts;
}

}  // namespace tensordiff
