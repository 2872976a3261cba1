// b is another tensor of a: a wrong layer index, a buffer overwritten or stale, q and k mixed up,
// what was captured is not what the name says.
//
// All tensors of a with as many elements are compared at scattered positions; the nearest is then
// compared in full. Behind another mistake b has nothing of a's any more; there b holds twice what
// a does not.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 256;

std::vector<double> sample_of(const View& view, const Extent& extent,
                              std::span<const uint64_t> positions) {
  const Result<Reader> reader = Reader::open(by_tokens(view, extent).view);
  if (!reader.ok()) return {};
  return values_at(reader.value(), positions);
}

bool same_values(const View& x, const View& y, const Extent& extent) {
  const Result<Matrix> of_x = read_matrix(x, extent), of_y = read_matrix(y, extent);
  return of_x.ok() && of_y.ok() && of_x.value().values == of_y.value().values;
}

Explanation held_as(const Site& other) {
  Explanation result;
  result.text = fmt::format("B equals '{}', and A does not", other.b.name);
  result.parameters = {{"tensor", other.b.name}};
  if (other.layer) result.parameters.push_back({"layer", double(*other.layer)});
  result.settled = true;
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.carried > 0 || it.own) {
    const Site* other = held_before(it.run, it.site);
    if (!other || !same_values(other->views.b, it.site.views.b, it.run.extent)) return std::nullopt;
    return held_as(*other);
  }
  const std::vector<uint64_t> positions = sample_positions(it.site.views.a.elements(), kSample);
  const std::vector<double> of_b = sample_of(it.site.views.b, it.run.extent, positions);
  const Site* nearest = nullptr;
  double least = INFINITY;
  for (const Site& other : it.run.sites) {
    if (&other == &it.site || !other.compared() ||
        other.views.a.elements() != it.site.views.a.elements())
      continue;
    const double gap = distance(sample_of(other.views.a, it.run.extent, positions), of_b);
    if (gap < least) least = gap, nearest = &other;
  }
  if (!nearest || it.site.views.a.elements() < 2) return std::nullopt;
  Result<Matrix> other = read_matrix(nearest->views.a, it.run.extent, it.a.first_token);
  if (!other.ok() || other.value().values.size() != it.b.values.size()) return std::nullopt;
  Explanation result = explained_by(it, std::move(other).value());
  result.text = fmt::format("B is another tensor of A: '{}'", nearest->a.name);
  result.parameters = {{"tensor", nearest->a.name}};
  if (nearest->layer) result.parameters.push_back({"layer", double(*nearest->layer)});
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::other_tensor = {
    .code = "other_tensor",
    .question = "Is B another tensor of A?",
    .explains = "a wrong layer index, an overwritten or stale buffer, two outputs mixed up",
    .examine = examine,
};

}  // namespace tensordiff
