#include "analyze/base_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>

#include "analyze/code_book.h"
#include "analyze/patch.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 4096;
// Coefficients of a merge are chosen by a person: 0.3, 0.55. Within this they are the same.
constexpr double kSame = 0.01;
constexpr double kLeft = 0.01;  // Share of the change that may be left beside rounding.

// The weights of each base by name.
using Index = std::unordered_map<std::string_view, const Tensor*>;
std::vector<Index> index_of(const std::vector<Catalog>& bases) {
  std::vector<Index> all;
  for (const Catalog& base : bases) {
    Index& index = all.emplace_back();
    for (const Tensor& tensor : base.tensors)
      if (tensor.fault.empty()) index.emplace(tensor.name, &tensor);
  }
  return all;
}

const Tensor* find(const Index& index, const Row& pair) {
  for (const std::string* name : {&pair.a.name, &pair.b.name}) {
    const auto found = index.find(*name);
    if (found != index.end() && found->second->view.shape == pair.a.shape) return found->second;
  }
  return nullptr;
}

// x with A x = b, for a small symmetric matrix; nothing where it is singular.
std::optional<std::vector<double>> solve(Dense matrix, std::vector<double> right) {
  const std::size_t n = right.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i)
      if (std::abs(matrix.row(i)[k]) > std::abs(matrix.row(pivot)[k])) pivot = i;
    if (std::abs(matrix.row(pivot)[k]) < 1e-300) return std::nullopt;
    std::swap_ranges(matrix.row(k).begin(), matrix.row(k).end(), matrix.row(pivot).begin());
    std::swap(right[k], right[pivot]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = matrix.row(i)[k] / matrix.row(k)[k];
      for (std::size_t j = k; j < n; ++j) matrix.row(i)[j] -= factor * matrix.row(k)[j];
      right[i] -= factor * right[k];
    }
  }
  for (std::size_t k = 0; k < n; ++k) right[k] /= matrix.row(k)[k];
  return right;
}

using Values = std::vector<double>;

// One weight that all models have, as a combination of them.
struct Combination {
  Values weights;               // λ of A and of each base after the first, at their best.
  std::optional<double> t;      // Of SLERP, with one base.
  double t_error = 0;           // What rounding leaves of it.
  double left_sphere = 0;       // ‖B − its place on the sphere‖²
  Dense products;               // Of the directions Xᵢ − M with each other,
  Values right;                 // and with B − M.
  double change = 0;            // ‖B − M‖²
  double least = 0, noise = 0;  // ‖B − X‖² of the nearest model; what rounding B leaves.
  std::optional<std::size_t> taken;  // The base that B is, where A is another.
  // Some elements of M, and M + λ (A − M) elsewhere: the share of these, λ, and what it leaves.
  double kept = 0, factor = 0, left_sparse = 1;

  // The share of what sets B apart from all models that these weights do not explain.
  double left(const Values& of) const {
    double sum = change;
    for (std::size_t i = 0; i < of.size(); ++i) {
      sum -= 2 * of[i] * right[i];
      for (std::size_t j = 0; j < of.size(); ++j) sum += of[i] * of[j] * products.row(i)[j];
    }
    return share(sum);
  }
  // Whether B is farther from the nearest model than rounding puts it.
  bool tells() const { return !taken && least > 4 * noise; }
  double share(double rest) const { return std::max(0.0, rest - noise) / least; }
};

Values minus(const Values& x, const Values& y) {
  Values out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] - y[i];
  return out;
}

// ‖b − x a − y m‖²
double left_after(const Values& b, const Values& a, double x, const Values& m, double y) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double rest = b[i] - x * a[i] - y * m[i];
    sum += rest * rest;
  }
  return sum;
}

// Of A and one base: the part of A that stands upright on M tells the coefficient of A.
void fit_sphere(const Values& b, const Values& a, const Values& m, Combination& found) {
  const double mm = dot(m, m), aa = dot(a, a), am = dot(a, m);
  const double upright = aa - am * am / mm;
  if (mm <= 0 || aa <= 0 || upright <= 0) return;
  const double of_a = (dot(b, a) - am / mm * dot(b, m)) / upright;
  const double angle = std::acos(std::clamp(am / std::sqrt(aa * mm), -1.0, 1.0));
  const double sine = std::sin(angle);
  if (sine <= 0 || std::abs(of_a * sine) > 1) return;
  found.t = std::asin(of_a * sine) / angle;
  found.t_error = std::sqrt(found.noise / upright);
  const double of_m = std::sin((1 - *found.t) * angle) / sine;
  found.left_sphere = left_after(b, a, of_a, m, of_m);
}

// Of A and one base: updates that were thinned out before they were added (DARE, TIES).
void fit_sparse(const Values& b, const Values& a, const Values& m, double relative,
                Combination& found) {
  constexpr std::size_t kFewest = 32;  // Elements that moved and that did not.
  double dd = 0, dc = 0, cc = 0;
  std::size_t kept = 0, left = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double of_a = a[i] - m[i], of_b = b[i] - m[i];
    const double slack = 2 * relative * std::abs(m[i]);
    if (std::abs(of_a) <= slack) continue;  // It moved in neither.
    if (std::abs(of_b) <= slack) {
      ++left;
      continue;
    }
    ++kept;
    dd += of_a * of_a, dc += of_a * of_b, cc += of_b * of_b;
  }
  if (kept < kFewest || left < kFewest || cc <= 0 || dd <= 0) return;
  found.kept = static_cast<double>(kept) / static_cast<double>(kept + left);
  found.factor = dc / dd;
  found.left_sparse = std::max(0.0, cc - dc * dc / dd - found.noise) / cc;
}

// The base that B is up to rounding, where A is not.
void find_taken(const Values& b, const std::vector<Values>& models, double from_a,
                Combination& found) {
  if (from_a <= 4 * found.noise) return;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const Values apart = minus(b, models[i]);
    if (dot(apart, apart) <= 4 * found.noise && 100 * dot(apart, apart) < from_a) found.taken = i;
  }
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// What the coefficients of most weights are.
struct Consensus {
  std::vector<double> weights;
  double t = 0;
  bool sphere = false, line = false;
};

std::string text_of(const Consensus& found) {
  if (found.sphere && !found.line) return fmt::format("SLERP from M to A, t = {:.3g}", found.t);
  const std::vector<double>& of = found.weights;
  const double base = 1 - [&] {
    double sum = 0;
    for (const double each : of) sum += each;
    return sum;
  }();
  // Terms that rounding left of a model that had no part in it.
  constexpr double kNothing = 5e-5;
  std::string parts;
  const auto add = [&](double weight, const std::string& model) {
    if (std::abs(weight) < kNothing) return;
    const std::string_view sign = weight < 0 ? "-" : "+";
    parts += parts.empty() ? fmt::format("{:.3g} {}", weight, model)
                           : fmt::format(" {} {:.3g} {}", sign, std::abs(weight), model);
  };
  add(of[0], "A");
  add(base, of.size() > 1 ? "M1" : "M");
  for (std::size_t i = 1; i < of.size(); ++i) add(of[i], fmt::format("M{}", i + 1));
  const double even = 1 / static_cast<double>(of.size() + 1);
  const bool average =
      std::ranges::all_of(of, [&](double w) { return std::abs(w - even) < kSame; });
  const bool between =
      base >= -kSame && std::ranges::all_of(of, [](double w) { return w >= -kSame; });
  const std::string_view kind = average ? "average" : between ? "linear merge" : "task vectors";
  const bool ema = of.size() == 1 && between && std::max(of[0], base) > 0.9 && !average;
  std::string text = fmt::format("{}{}: {}", kind, ema ? " (as one step of an EMA)" : "", parts);
  if (found.sphere) text += ", or SLERP: the angle is too small to tell";
  return text;
}

std::optional<std::vector<Values>> models_of(const Row& pair, const std::vector<Index>& bases) {
  std::vector<Values> models;
  for (const Index& base : bases) {
    const Tensor* tensor = find(base, pair);
    if (!tensor) return std::nullopt;
    Result<Values> values = read_values(tensor->view, kSample);
    if (!values.ok()) return std::nullopt;
    models.push_back(std::move(values).value());
  }
  return models;
}

std::optional<Combination> combination_of(const Row& pair, const std::vector<Index>& bases) {
  if (!pair.views.steps.empty()) return std::nullopt;
  const Result<Values> a = read_values(pair.views.a, kSample);
  const Result<Values> b = read_values(pair.views.b, kSample);
  const std::optional<std::vector<Values>> models = models_of(pair, bases);
  if (!a.ok() || !b.ok() || !models || models->empty()) return std::nullopt;
  const Values& first = models->front();
  if (first.size() != b.value().size() || first.size() < 2 * models->size()) return std::nullopt;
  std::vector<Values> directions{minus(a.value(), first)};
  for (std::size_t i = 1; i < models->size(); ++i) directions.push_back(minus((*models)[i], first));
  const Values change = minus(b.value(), first), from_a = minus(b.value(), a.value());
  const std::size_t n = directions.size();
  Combination found;
  found.products = {n, n, Values(n * n)};
  found.right.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    found.right[i] = dot(directions[i], change);
    for (std::size_t j = 0; j < n; ++j)
      found.products.row(i)[j] = dot(directions[i], directions[j]);
  }
  const std::optional<Values> weights = solve(found.products, found.right);
  found.change = dot(change, change);
  found.least = std::min(found.change, dot(from_a, from_a));
  for (std::size_t i = 1; i < models->size(); ++i) {
    const Values apart = minus(b.value(), (*models)[i]);
    found.least = std::min(found.least, dot(apart, apart));
  }
  // Rounding of B alone is no part of what has to be explained.
  const double relative = precision_of(coarser(pair.a.dtype, pair.b.dtype)).relative;
  found.noise = relative * relative * dot(b.value(), b.value());
  find_taken(b.value(), *models, dot(from_a, from_a), found);
  if (found.taken) return found;
  if (!weights || !(found.least > 0)) return std::nullopt;
  found.weights = *weights;
  found.left_sphere = found.change;
  if (n == 1) fit_sphere(b.value(), a.value(), first, found);
  if (n == 1) fit_sparse(b.value(), a.value(), first, relative, found);
  return found;
}

using Combinations = std::vector<std::optional<Combination>>;

// What most weights have in common; nothing where a combination explains less than half of them.
std::optional<Consensus> consensus_of(const Combinations& all, std::size_t models) {
  std::vector<std::vector<double>> values(models);
  std::vector<double> ts, lines, spheres;
  for (const std::optional<Combination>& each : all) {
    if (!each || !each->tells()) continue;
    for (std::size_t i = 0; i < values.size(); ++i) values[i].push_back(each->weights[i]);
    lines.push_back(each->left(each->weights));
    spheres.push_back(each->t ? each->share(each->left_sphere) : 1);
    if (each->t) ts.push_back(*each->t);
  }
  if (lines.empty()) return std::nullopt;
  Consensus consensus;
  for (const std::vector<double>& each : values) consensus.weights.push_back(median(each));
  if (!ts.empty()) consensus.t = median(ts);
  consensus.line = median(lines) <= kLeft;
  consensus.sphere = median(spheres) <= kLeft;
  // Of two that leave as little, the better one, where it is that by far.
  if (consensus.line && consensus.sphere) {
    if (median(lines) > 10 * median(spheres) + 1e-9) consensus.line = false;
    if (median(spheres) > 10 * median(lines) + 1e-9) consensus.sphere = false;
  }
  if (!consensus.line && !consensus.sphere) return std::nullopt;
  return consensus;
}

// What is left of a weight by the coefficients that most have; 1: they are not its own.
double left_by(const Consensus& consensus, const Combination& it) {
  if (consensus.line) return it.left(consensus.weights);
  const bool same = it.t && std::abs(*it.t - consensus.t) <= kSame + 3 * it.t_error;
  return same ? it.share(it.left_sphere) : 1;
}

// The same with coefficients of its own.
double left_alone(const Consensus& consensus, const Combination& it) {
  if (!it.tells()) return 1;
  return consensus.line ? it.left(it.weights) : it.share(it.left_sphere);
}

// Merges whose coefficients go with the layer: "SLERP from M to A, t from 0.1 to 0.85".
std::string by_tensor(const Consensus& consensus, const Combinations& all) {
  std::vector<double> of;
  for (const std::optional<Combination>& each : all)
    if (each && left_alone(consensus, *each) <= kLeft)
      of.push_back(consensus.line ? each->weights[0] : *each->t);
  const auto [least, most] = std::ranges::minmax(of);
  if (!consensus.line)
    return fmt::format("SLERP from M to A, t from {:.3g} to {:.3g} by tensor", least, most);
  return fmt::format("linear merge, {:.3g} to {:.3g} of A by tensor", least, most);
}

void add_combinations(const Combinations& all, std::size_t models, std::vector<EditFound>& edits) {
  const std::optional<Consensus> consensus = consensus_of(all, models);
  if (!consensus) return;
  std::size_t alike = 0, alone = 0;
  for (const std::optional<Combination>& each : all) {
    if (!each || !each->tells()) continue;
    const bool same = left_by(*consensus, *each) <= kLeft;
    alike += same;
    alone += !same && left_alone(*consensus, *each) <= kLeft;
  }
  const std::string text = text_of(*consensus);
  const std::string own = alone > 0 ? by_tensor(*consensus, all) : "";
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i] || all[i]->taken) continue;
    const double left = left_by(*consensus, *all[i]), least = left_alone(*consensus, *all[i]);
    if (left <= kLeft && alike >= alone)
      edits[i] = {Edit::merged, text, 1 - left};
    else if (least <= kLeft)
      edits[i] = {Edit::merged, own, 1 - least};
  }
}

// Updates that were thinned out, where no combination of whole tensors explains a weight.
void add_sparse(const Combinations& all, std::vector<EditFound>& edits) {
  std::vector<double> kept, factors;
  const auto fits = [&](std::size_t i) {
    return all[i] && all[i]->tells() && all[i]->left_sparse <= kLeft &&
           edits[i].edit != Edit::merged;
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    if (fits(i)) kept.push_back(all[i]->kept), factors.push_back(all[i]->factor);
  if (kept.empty()) return;
  const std::string text = fmt::format("M + {:.3g} (A - M) at {:.0f} % of the elements, as of DARE",
                                       median(factors), 100 * median(kept));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (fits(i)) edits[i] = {Edit::merged, text, 1 - all[i]->left_sparse};
}

}  // namespace

void find_merges(const Study& study, std::vector<EditFound>& edits) {
  if (study.bases().empty()) return;
  const std::vector<const Row*>& weights = study.weights();
  const std::vector<Index> bases = index_of(study.bases());
  Combinations all(weights.size());
  for_each_index(weights.size(), [&](std::size_t i) {
    if (edits[i].edit != Edit::none) all[i] = combination_of(*weights[i], bases);
  });
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] && all[i]->taken)
      edits[i] = {Edit::merged,
                  bases.size() > 1 ? fmt::format("taken from M{}", *all[i]->taken + 1)
                                   : std::string("taken from M"),
                  1};
  add_combinations(all, bases.size(), edits);
  add_sparse(all, edits);
}

}  // namespace tensordiff
