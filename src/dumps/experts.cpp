#include "dumps/experts.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.h"
#include "naming/naming.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kChosenMax = 64;         // Experts of one token.
constexpr uint64_t kElementsMax = 1 << 22;  // Of one tensor: they are read into memory.
constexpr double kExpertsMax = 1 << 20;

constexpr std::array<std::string_view, 9> kNumbers = {
    "topk",       "topk_ids",   "topk_indices",   "topk_idx",    "selected_experts",
    "expert_ids", "expert_idx", "expert_indices", "ffn_moe_topk"};
constexpr std::array<std::string_view, 6> kWeights = {"topk_weights",   "topk_weight",
                                                      "topk_scores",    "routing_weights",
                                                      "expert_weights", "ffn_moe_weights"};

// "layers.3.mlp.topk_ids" and "ffn_moe_topk-3": the last word.
std::string_view word_of(std::string_view name) {
  name = name.substr(name.find_last_of("./") + 1);
  const std::size_t dash = name.rfind('-');
  return dash == std::string_view::npos ? name : name.substr(0, dash);
}

template <class List>
bool is_in(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

// [tokens, chosen]; llama.cpp has weights as [tokens, chosen, 1].
Shape form_of(const Tensor& tensor) {
  Shape shape = tensor.view.shape;
  while (shape.size() > 2 && shape.back() == 1) shape.pop_back();
  return shape;
}

std::optional<std::vector<double>> values_of(const Tensor& tensor) {
  if (!tensor.fault.empty() || tensor.elements() > kElementsMax) return std::nullopt;
  const Result<Reader> reader = Reader::open(tensor.view);
  if (!reader.ok() || is_complex(tensor.view.dtype)) return std::nullopt;
  std::vector<double> values(tensor.elements());
  reader.value().values(0, values.size(), values.data());
  return values;
}

bool holds_numbers(const Tensor& tensor) {
  const Shape shape = form_of(tensor);
  return is_integer(tensor.view.dtype) && shape.size() >= 2 && shape.back() >= 2 &&
         shape.back() <= kChosenMax && is_in(kNumbers, word_of(tensor.pairing_name()));
}

// The same shape with other values, in memory.
void replace(Tensor& tensor, DType dtype, const std::vector<double>& values) {
  std::string bytes(stored_bytes(dtype, values.size()), '\0');
  encode(dtype, values.data(), values.size(), reinterpret_cast<std::byte*>(bytes.data()));
  Result<View> view =
      contiguous_view(dtype, tensor.view.shape, ByteSource(bytes_of(std::move(bytes))));
  if (view.ok()) tensor.view = std::move(view).value();
}

// In which order the elements of each row go.
std::vector<std::size_t> rising(const std::vector<double>& numbers, uint64_t chosen) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t row = 0; row + chosen <= order.size(); row += chosen)
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(row),
              order.begin() + static_cast<std::ptrdiff_t>(row + chosen),
              [&](std::size_t x, std::size_t y) {
                return std::pair(numbers[x], x) < std::pair(numbers[y], y);
              });
  return order;
}

std::vector<double> ordered(const std::vector<double>& values,
                            const std::vector<std::size_t>& order) {
  std::vector<double> result;
  result.reserve(order.size());
  for (const std::size_t at : order) result.push_back(values[at]);
  return result;
}

}  // namespace

void order_experts(Catalog& catalog) {
  for (Tensor& numbers : catalog.tensors) {
    if (!holds_numbers(numbers) || !numbers.shards.empty()) continue;
    const std::optional<std::vector<double>> values = values_of(numbers);
    const auto is_expert = [](double x) { return x >= -1 && x < kExpertsMax; };
    if (!values || !std::ranges::all_of(*values, is_expert)) continue;
    const Shape form = form_of(numbers);
    const std::vector<std::size_t> order = rising(*values, form.back());
    for (Tensor& weights : catalog.tensors) {
      if (!is_in(kWeights, word_of(weights.pairing_name())) || !can_encode(weights.view.dtype))
        continue;
      const Place &at = weights.place, &of = numbers.place;
      if (at.layer != of.layer || at.pass != of.pass || at.rank != of.rank) continue;
      if (form_of(weights) != form) continue;
      if (const auto unordered = values_of(weights))
        replace(weights, weights.view.dtype, ordered(*unordered, order));
    }
    // Small integers are exact in float32, and no type of integers can be written.
    replace(numbers, DType::f32, ordered(*values, order));
  }
}

}  // namespace tensordiff
