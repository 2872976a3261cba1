#include "dumps/summaries.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "align/view.h"
#include "base/parallel.h"
#include "formats/statistics.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

struct Sums {
  uint64_t count = 0;
  double largest = -INFINITY, smallest = INFINITY, sum = 0, absolutes = 0, squares = 0;

  double mean() const { return sum / static_cast<double>(count); }
  double norm() const { return std::sqrt(squares); }
  // Of a sample, as torch has it.
  double spread() const {
    const auto n = static_cast<double>(count);
    return count < 2 ? NAN : std::sqrt(std::max(0.0, squares - n * mean() * mean()) / (n - 1));
  }
  double size() const { return std::max(std::abs(largest), std::abs(smallest)); }
};

struct Statistic {
  std::string_view name;
  double (*value)(const Sums& sums);
};
// As msprobe, TransformerEngine and tables call them; TransformerEngine's "l2_norm" is the norm.
constexpr Statistic kStatistics[] = {
    {"max", [](const Sums& sums) { return sums.largest; }},
    {"min", [](const Sums& sums) { return sums.smallest; }},
    {"mean", [](const Sums& sums) { return sums.mean(); }},
    {"norm", [](const Sums& sums) { return sums.norm(); }},
    {"l1_norm", [](const Sums& sums) { return sums.absolutes; }},
    {"std", [](const Sums& sums) { return sums.spread(); }},
    {"cur_amax", [](const Sums& sums) { return sums.size(); }},
    {"sum", [](const Sums& sums) { return sums.sum; }},
    {"mean_abs", [](const Sums& sums) { return sums.absolutes / static_cast<double>(sums.count); }},
    {"rms",
     [](const Sums& sums) { return std::sqrt(sums.squares / static_cast<double>(sums.count)); }},
    {"var", [](const Sums& sums) { return sums.spread() * sums.spread(); }},
};

const Statistic* statistic_named(std::string_view name) {
  const auto* found = std::ranges::find(kStatistics, name, &Statistic::name);
  return found == std::end(kStatistics) ? nullptr : found;
}

using Labels = std::vector<std::string>;

bool is_statistics(const Tensor& tensor) {
  return tensor.made_from.starts_with(kStatisticsMark) && tensor.view.shape.size() == 1;
}

// Which statistics a side has, where all of its tensors have the same.
std::optional<Labels> labels_of(const Catalog& catalog) {
  if (!has_statistics(catalog)) return std::nullopt;
  const std::string& all = catalog.tensors[0].made_from;
  for (const Tensor& tensor : catalog.tensors)
    if (tensor.made_from != all) return std::nullopt;
  Labels labels;
  std::string_view rest = std::string_view(all).substr(kStatisticsMark.size());
  while (!rest.empty()) {
    const std::size_t end = rest.find(", ");
    const std::string_view label = rest.substr(0, end);
    labels.emplace_back(label == "l2_norm" ? "norm" : label);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  }
  const bool fit = catalog.tensors[0].view.shape[0] == labels.size();
  return fit ? std::optional(std::move(labels)) : std::nullopt;
}

std::optional<Sums> sums_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  Sums sums;
  sums.count = view.elements();
  if (!reader.ok() || sums.count == 0 || is_complex(view.dtype)) return std::nullopt;
  constexpr uint64_t kBlock = 1 << 14;
  std::vector<double> values(std::min(sums.count, kBlock));
  for (uint64_t first = 0; first < sums.count; first += kBlock) {
    const uint64_t size = std::min(kBlock, sums.count - first);
    reader.value().values(first, size, values.data());
    for (const double value : std::span(values).first(size)) {
      sums.largest = std::max(sums.largest, value);
      sums.smallest = std::min(sums.smallest, value);
      sums.sum += value;
      sums.absolutes += std::abs(value);
      sums.squares += value * value;
    }
  }
  return sums;
}

std::string made_from(const Labels& labels) {
  return fmt::format("{}{}", kStatisticsMark, fmt::join(labels, ", "));
}

// Statistics are as exact as the elements: in their type, where it can hold sums of them.
DType stored_as(DType dtype, const std::vector<double>& told) {
  constexpr double kLargestHalf = 65504;
  if (dtype == DType::bf16) return dtype;
  const auto fits = [](double value) { return std::abs(value) < kLargestHalf; };
  return dtype == DType::f16 && std::ranges::all_of(told, fits) ? dtype : DType::f32;
}

void summarise(Catalog& catalog, const Labels& labels) {
  for_each_index(catalog.tensors.size(), [&](std::size_t i) {
    Tensor& tensor = catalog.tensors[i];
    if (!tensor.fault.empty() || !tensor.shards.empty()) return;
    const std::optional<Sums> sums = sums_of(tensor.view);
    if (!sums) return;
    std::vector<double> told;
    for (const std::string& label : labels) told.push_back(statistic_named(label)->value(*sums));
    const DType dtype = stored_as(tensor.view.dtype, told);
    std::string bytes(told.size() * item_bytes(dtype), '\0');
    encode(dtype, told.data(), told.size(), reinterpret_cast<std::byte*>(bytes.data()));
    Result<View> made =
        contiguous_view(dtype, {told.size()}, ByteSource(bytes_of(std::move(bytes))));
    if (!made.ok()) return;
    tensor.view = std::move(made).value();
    tensor.made_from = made_from(labels);
    tensor.tokens = nullptr;
  });
  catalog.tokens.clear();
}

// Leaves a side of statistics these of them.
void keep(Catalog& catalog, const Labels& held, const Labels& wanted) {
  if (held == wanted) return;
  for (Tensor& tensor : catalog.tensors) {
    std::vector<View> parts;
    for (const std::string& label : wanted) {
      const auto at = std::ranges::find(held, label);
      parts.push_back(narrowed(tensor.view, 0, static_cast<uint64_t>(at - held.begin()), 1));
    }
    tensor.view = parts.size() == 1 ? std::move(parts[0]) : concatenated(parts, 0);
    tensor.made_from = made_from(wanted);
  }
}

}  // namespace

bool has_statistics(const Catalog& catalog) {
  return !catalog.tensors.empty() && std::ranges::all_of(catalog.tensors, is_statistics);
}

bool summarise_both(Catalog& a, Catalog& b, std::vector<std::string>& notes) {
  const std::optional<Labels> of_a = labels_of(a), of_b = labels_of(b);
  if (!of_a && !of_b) return has_statistics(a) || has_statistics(b);
  Labels wanted;
  for (const std::string& label : of_a ? *of_a : *of_b) {
    const bool both = of_a && of_b;
    if (both ? std::ranges::find(*of_b, label) != of_b->end() : statistic_named(label) != nullptr)
      wanted.push_back(label);
  }
  if (wanted.empty()) return true;
  of_a ? keep(a, *of_a, wanted) : summarise(a, wanted);
  of_b ? keep(b, *of_b, wanted) : summarise(b, wanted);
  notes.push_back(
      fmt::format("what is compared of each tensor is its {}", fmt::join(wanted, ", ")));
  return true;
}

}  // namespace tensordiff
