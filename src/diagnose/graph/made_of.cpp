#include "diagnose/graph/made_of.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/parallel.h"
#include "diagnose/limits.h"
#include "diagnose/noise/roundoff.h"
#include "diagnose/replay/activation.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 96;  // As many as tell how many bits the values need.
// Earlier tensors that a step may be made of. A block has some dozen; what it reads of the block
// before it is that one's output, and copies do not count.
constexpr std::size_t kLookedBack = 48;
// What A's rounding may leave of a sum of three and of a function of it, in unit roundoffs: one for
// each operation.
constexpr double kRoundings = 4;
// Machines make more than one rounding of exp and tanh. GELU by tanh and by erf are 100 times as
// far apart.
constexpr double kFunctionLeft = 2e-6;

using Values = std::vector<double>;

// A few values of one side of A at the same positions of all tensors of one shape.
struct Sampled {
  std::size_t site = 0;
  Values values;
  double roundoff = 0;
  double size = 0;  // Root mean square.
};

double size_of(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(1, values.size())));
}

std::optional<Sampled> sample(const std::vector<Site>& sites, std::size_t index) {
  const View& view = sites[index].views.a;
  if (!sites[index].compared() || is_complex(view.dtype) || !is_float(view.dtype))
    return std::nullopt;
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return std::nullopt;
  Sampled result{index, values_at(reader.value(), sample_positions(view.elements(), kSample))};
  // Beside a number that stands for infinity, the rounding of a sum hides all others.
  if (!std::ranges::all_of(result.values,
                           [](double value) { return std::abs(value) < limits::kStandIn; }))
    return std::nullopt;
  result.roundoff = roundoff_of(view);
  result.size = size_of(result.values);
  // A few numbers may be a sum of anything.
  if (result.values.size() < kSample / 2 || result.size == 0) return std::nullopt;
  return result;
}

// Looks for what one step is made of among earlier ones of its shape.
class Search {
 public:
  Search(const Sampled& step, std::vector<const Sampled*> earlier)
      : step_(step), earlier_(std::move(earlier)) {
    const auto smaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
    probe_ = static_cast<std::size_t>(std::ranges::max_element(step_.values, smaller) -
                                      step_.values.begin());
    roundoff_ = step_.roundoff;
    for (const Sampled* each : earlier_) {
      probes_.push_back(each->values[probe_]);
      roundoff_ = std::max(roundoff_, each->roundoff);
      largest_ = std::max(largest_, each->size);
    }
  }

  std::optional<MadeOf> find() const {
    if (auto found = sum_of(1)) return found;
    if (auto found = function()) return found;
    if (auto found = sum_of(2)) return found;
    if (auto found = sum_of(3)) return found;
    if (auto found = rectified_sum()) return found;
    return product();
  }

 private:
  using Terms = std::vector<const Sampled*>;

  static MadeOf made_of(const Terms& terms) {
    MadeOf result;
    for (const Sampled* term : terms) result.terms.push_back(term->site);
    return result;
  }

  // What rounding may leave of a sum of these, at each value.
  double limit(const Terms& terms) const {
    double roundoff = step_.roundoff, energy = step_.size * step_.size;
    for (const Sampled* term : terms) {
      roundoff = std::max(roundoff, term->roundoff);
      energy += term->size * term->size;
    }
    return kRoundings * roundoff * std::sqrt(energy);
  }

  // Whether the step is g of the sum. The first values tell most off.
  template <class G>
  bool is(const Terms& terms, const G& g, double most) const {
    double gaps = 0;
    const double all = most * most * static_cast<double>(step_.values.size());
    for (std::size_t i = 0; i < step_.values.size(); ++i) {
      double sum = 0;
      for (const Sampled* term : terms) sum += term->values[i];
      const double gap = g(sum) - step_.values[i];
      gaps += gap * gap;
      if (!(gaps <= all)) return false;
    }
    return true;
  }

  // The latest that fit: what a block adds stands close to its output.
  std::optional<MadeOf> sum_of(std::size_t count) const {
    const auto same = [](double sum) { return sum; };
    Terms terms;
    std::optional<MadeOf> found;
    // The last term must fit at one value already: to try all sums of three at all values would
    // take longer than comparing small tensors.
    choose(count - 1, earlier_.size(), terms, [&](std::size_t end) {
      double rest = step_.values[probe_];
      for (const Sampled* term : terms) rest -= term->values[probe_];
      const double most = gap_max(terms);
      for (std::size_t i = end; i-- > 0;) {
        if (!(std::abs(probes_[i] - rest) <= most)) continue;
        terms.push_back(earlier_[i]);
        if (is(terms, same, limit(terms))) found = made_of(terms);
        terms.pop_back();
        if (found) return true;
      }
      return false;
    });
    return found;
  }

  // At one value, whatever the last term is. Twice what is(…) allows at most, so that no order of
  // adding matters.
  double gap_max(const Terms& terms) const {
    double energy = step_.size * step_.size + largest_ * largest_;
    for (const Sampled* term : terms) energy += term->size * term->size;
    return 2 * kRoundings * roundoff_ *
           std::sqrt(energy * static_cast<double>(step_.values.size()));
  }

  // Calls visit with each choice of so many terms before `end`, and with where the first of them
  // stands, until it says that it is enough.
  template <class Visit>
  bool choose(std::size_t count, std::size_t end, Terms& terms, const Visit& visit) const {
    if (count == 0) return visit(end);
    for (std::size_t i = end; i-- > 0;) {
      terms.push_back(earlier_[i]);
      const bool enough = choose(count - 1, i, terms, visit);
      terms.pop_back();
      if (enough) return true;
    }
    return false;
  }

  std::optional<MadeOf> function() const {
    for (std::size_t i = earlier_.size(); i-- > 0;) {
      const double most = std::max(limit({earlier_[i]}), kFunctionLeft * step_.size);
      for (const ActivationFunction& function : activation_functions()) {
        if (!is({earlier_[i]}, function.value, most)) continue;
        MadeOf result = made_of({earlier_[i]});
        result.function = &function;
        return result;
      }
    }
    return std::nullopt;
  }

  std::optional<MadeOf> rectified_sum() const {
    if (std::ranges::any_of(step_.values, [](double value) { return value < 0; }))
      return std::nullopt;
    const auto relu = std::ranges::find(activation_functions(), "ReLU", &ActivationFunction::name);
    Terms terms;
    std::optional<MadeOf> found;
    choose(2, earlier_.size(), terms, [&](std::size_t) {
      if (is(terms, relu->value, limit(terms))) {
        found = made_of(terms);
        found->function = &*relu;
      }
      return found.has_value();
    });
    return found;
  }

  std::optional<MadeOf> product() const {
    for (const Sampled* one : earlier_) {
      for (const Sampled* other : earlier_) {
        if (one == other || one->site > other->site) continue;
        double gaps = 0, energy = 0;
        const double roundoff = std::max({step_.roundoff, one->roundoff, other->roundoff});
        for (std::size_t i = 0; i < step_.values.size() && gaps <= 1; ++i) {
          energy = kRoundings * roundoff * step_.size;
          const double gap = one->values[i] * other->values[i] - step_.values[i];
          gaps += gap * gap / (energy * energy * static_cast<double>(step_.values.size()));
        }
        if (gaps > 1) continue;
        MadeOf result = made_of({one});
        result.factor = other->site;
        return result;
      }
    }
    return std::nullopt;
  }

  const Sampled& step_;
  std::vector<const Sampled*> earlier_;
  std::size_t probe_ = 0;       // Where the step is largest, and
  std::vector<double> probes_;  // the earlier ones there.
  double roundoff_ = 0;         // The largest of all,
  double largest_ = 0;          // and the largest size of the earlier ones.
};

}  // namespace

void find_made_of(std::vector<Site>& sites) {
  std::vector<std::optional<Sampled>> samples(sites.size());
  for_each_index(sites.size(), [&](std::size_t i) {
    sites[i].made_of.reset();
    samples[i] = sample(sites, i);
  });
  for_each_index(sites.size(), [&](std::size_t i) {
    if (!samples[i]) return;
    std::vector<const Sampled*> earlier;
    for (std::size_t j = i; j-- > 0 && earlier.size() < kLookedBack;) {
      const bool same_shape = samples[j] && sites[j].views.a.shape == sites[i].views.a.shape;
      // Of those that hold the same, the last is what a step reads.
      const bool later_copy = std::ranges::any_of(earlier, [&](const Sampled* other) {
        return samples[j] && other->values == samples[j]->values;
      });
      if (same_shape && !later_copy) earlier.push_back(&*samples[j]);
    }
    std::ranges::reverse(earlier);
    sites[i].made_of = Search(*samples[i], std::move(earlier)).find();
  });
}

}  // namespace tensordiff
