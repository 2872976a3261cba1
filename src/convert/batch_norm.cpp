// A batch norm folded into the convolution or the linear layer before it:
//
//   weight · s,  s = γ / √(σ² + ε) for each output       bias' = β + (bias − μ) · s
//
// Names do not say for sure which norm follows which convolution ("conv1" and "bn1", "0" and "1",
// "conv.0" and "norm"), and no file says what ε is. Values do: the norm that makes the weights of
// the other side is the right one. Names decide between norms that would do as well, and for
// convolutions that no norm fits.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "convert/candidates.h"
#include "convert/merge_parts.h"
#include "convert/misfit.h"
#include "packed/window.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

// The defaults of PyTorch, Keras and TensorFlow, JAX's and old models' own, MXNet, Caffe.
constexpr double kEpsilons[] = {1e-5, 1e-3, 1e-6, 1e-4, 2e-5, 1e-12};
// Norms times weights of as many outputs: ResNet-152 has 6,000. Each try takes a few hundred
// multiplications, so that all of them together are a matter of a second.
constexpr std::size_t kTriedMax = 1 << 18;

struct Norm {
  std::string path;
  std::size_t variance = 0;
  std::optional<std::size_t> mean, weight, bias;
  uint64_t channels = 0;
};

std::string_view path_of(std::string_view name) {
  const std::size_t at = name.find_last_of("./");
  return at == std::string_view::npos ? "" : name.substr(0, at);
}

// Norms whose statistics have no partner: the other side may have folded them in.
std::vector<Norm> free_norms(const MergeSide& side) {
  std::map<std::string, Norm, std::less<>> norms;
  const std::vector<Tensor>& tensors = side.own.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (side.is_free[i] && tensors[i].fault.empty() && tensors[i].shards.empty() &&
        tensors[i].place.parameter == Param::running_var && tensors[i].view.shape.size() == 1) {
      const std::string path(path_of(tensors[i].name));
      norms[path] = {path, i, {}, {}, {}, tensors[i].elements()};
    }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto found = norms.find(path_of(tensors[i].name));
    if (found == norms.end() || !tensors[i].fault.empty()) continue;
    Norm& norm = found->second;
    if (tensors[i].elements() != norm.channels || i == norm.variance) continue;
    switch (tensors[i].place.parameter) {
      case Param::running_mean:
        norm.mean = i;
        break;
      case Param::weight:
        norm.weight = i;
        break;
      case Param::bias:
        norm.bias = i;
        break;
      default:
        break;
    }
  }
  std::vector<Norm> result;
  for (auto& [path, norm] : norms)
    if (norm.mean) result.push_back(std::move(norm));
  return result;
}

// How alike two paths are: words at their start, then numbers at their end.
struct Likeness {
  std::size_t words = 0;
  bool same_number = false;

  auto operator<=>(const Likeness&) const = default;
};

Likeness likeness(std::string_view norm, std::string_view weight) {
  const std::vector<std::string_view> x = split(norm, '.'), y = split(path_of(weight), '.');
  Likeness result;
  while (result.words < std::min(x.size(), y.size()) && x[result.words] == y[result.words])
    ++result.words;
  const auto number = [](std::string_view word) {
    const std::size_t at = word.find_last_not_of("0123456789");
    return at == std::string_view::npos ? word : word.substr(at + 1);
  };
  if (!x.empty() && !y.empty()) result.same_number = number(x.back()) == number(y.back());
  return result;
}

// The factor of each channel.
double factor(std::span<const Reader> in, bool with_weight, uint64_t channel, double epsilon) {
  const double gamma = with_weight ? in[2].value(channel) : 1;
  return gamma / std::sqrt(in[1].value(channel) + epsilon);
}

View folded_weight(const MergeSide& side, std::size_t tensor, const Norm& norm, std::size_t axis,
                   double epsilon) {
  const std::vector<Tensor>& tensors = side.own.tensors;
  const View& weight = tensors[tensor].view;
  Packed packed{{weight, tensors[norm.variance].view}, {}};
  if (norm.weight) packed.inputs.push_back(tensors[*norm.weight].view);
  uint64_t inner = 1;
  for (std::size_t i = axis + 1; i < weight.shape.size(); ++i) inner *= weight.shape[i];
  packed.decode = [inner, epsilon, channels = norm.channels, with_weight = norm.weight.has_value()](
                      std::span<const Reader> in, uint64_t first, int64_t step, std::size_t count,
                      float* out) {
    Window value(in[0], step);
    uint64_t channel = channels;
    double by = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t element = first + i * static_cast<uint64_t>(step);
      const uint64_t at = element / inner % channels;
      if (at != channel) by = factor(in, with_weight, channel = at, epsilon);
      out[i] = static_cast<float>(value.at(element) * by);
    }
  };
  return merged_view(weight, std::move(packed));
}

// β + (bias − μ) · s. Inputs: what it stands for, σ², γ, μ, β and the bias, where they are there.
View folded_bias(const MergeSide& side, const Norm& norm, std::optional<std::size_t> bias,
                 double epsilon) {
  const std::vector<Tensor>& tensors = side.own.tensors;
  const View& mean = tensors[*norm.mean].view;
  const auto view_or = [&](std::optional<std::size_t> tensor) {
    return tensor ? tensors[*tensor].view : mean;
  };
  Packed packed{
      {mean, tensors[norm.variance].view, view_or(norm.weight), view_or(norm.bias), view_or(bias)},
      {}};
  packed.decode = [epsilon, has_weight = norm.weight.has_value(), has_beta = norm.bias.has_value(),
                   has_bias = bias.has_value()](std::span<const Reader> in, uint64_t first,
                                                int64_t step, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t at = first + i * static_cast<uint64_t>(step);
      const double beta = has_beta ? in[3].value(at) : 0, own = has_bias ? in[4].value(at) : 0;
      out[i] =
          static_cast<float>(beta + (own - in[0].value(at)) * factor(in, has_weight, at, epsilon));
    }
  };
  return merged_view(mean, std::move(packed));
}

// The number of the entry of an axis in place of each element of a weight.
View entries_of(const View& weight, std::size_t axis) {
  uint64_t inner = 1;
  for (std::size_t i = axis + 1; i < weight.shape.size(); ++i) inner *= weight.shape[i];
  Packed packed{{weight}, {}};
  packed.decode = [inner, entries = weight.shape[axis]](std::span<const Reader>, uint64_t first,
                                                        int64_t step, std::size_t count,
                                                        float* out) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<float>((first + i * static_cast<uint64_t>(step)) / inner % entries);
  };
  return merged_view(weight, std::move(packed));
}

// A sample of a weight and of its partner in one of the layouts that they may have, and the output
// that each value belongs to. With it, a norm is tried without reading the weight again.
struct Sample {
  std::vector<double> own, other;
  std::vector<uint64_t> output;

  double misfit_with(const std::vector<double>& factors) const {
    std::vector<double> made(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) made[i] = own[i] * factors[output[i]];
    return misfit(made, other);
  }
};

std::vector<Sample> samples_of(const View& weight, const View& other, std::size_t axis) {
  // Of one shape, so that their candidates are the same, too.
  const std::vector<Candidate> plain = plain_candidates(Operand{{weight}}, Operand{{other}});
  const std::vector<Candidate> outputs =
      plain_candidates(Operand{{entries_of(weight, axis)}}, Operand{{other}});
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < std::min(plain.size(), outputs.size()); ++i) {
    const Result<Reader> x = Reader::open(plain[i].pair.a), y = Reader::open(plain[i].pair.b);
    const Result<Reader> z = Reader::open(outputs[i].pair.a);
    if (!x.ok() || !y.ok() || !z.ok()) continue;
    const std::vector<uint64_t> at = misfit_positions(plain[i].pair.a.elements());
    Sample sample{values_at(x.value(), at), values_at(y.value(), at), {}};
    for (const double entry : values_at(z.value(), at))
      sample.output.push_back(static_cast<uint64_t>(entry));
    samples.push_back(std::move(sample));
  }
  return samples;
}

// A norm folded into a weight.
struct Fold {
  std::size_t weight = 0, norm = 0, axis = 0;
  double epsilon = 0, misfit = 0;
  Likeness alike = {};
};

class Search {
 public:
  explicit Search(const MergeSide& side) : side_(side), norms_(free_norms(side)) {}

  const std::vector<Norm>& norms() const { return norms_; }
  bool tried_all() const { return count_ <= kTriedMax * std::size(kEpsilons); }

  // Each norm once, at the weight that it makes; then those that no weight shows, by their names.
  std::vector<Fold> run() {
    if (norms_.empty()) return {};
    std::vector<Fold> folds;
    for (const auto& [weight, other] : side_.partner) {
      std::vector<Fold> of_weight = tried(weight, other);
      folds.insert(folds.end(), of_weight.begin(), of_weight.end());
    }
    std::ranges::sort(folds, [](const Fold& x, const Fold& y) {
      return std::tuple(y.alike, x.weight, x.norm, x.misfit) <
             std::tuple(x.alike, y.weight, y.norm, y.misfit);
    });
    for (const Fold& fold : folds) take(fold);
    if (!taken_.empty()) add_unshown();
    return std::move(taken_);
  }

 private:
  const View& own(std::size_t weight) const { return side_.own.tensors[weight].view; }

  bool may_be_folded(std::size_t weight, std::size_t other) const {
    const View& view = own(weight);
    return view.shape.size() >= 2 && is_float(view.dtype) &&
           view.elements() == side_.other.tensors[other].view.elements() &&
           side_.own.tensors[weight].fault.empty() && side_.other.tensors[other].fault.empty();
  }

  // The axis of the outputs: the first, but in transposed convolutions and other frameworks.
  std::vector<std::size_t> axes_for(std::size_t weight, const Norm& norm) const {
    std::vector<std::size_t> axes;
    const Shape& shape = own(weight).shape;
    for (const std::size_t axis : {std::size_t{0}, std::size_t{1}, shape.size() - 1})
      if (shape[axis] == norm.channels && std::ranges::find(axes, axis) == axes.end())
        axes.push_back(axis);
    return axes;
  }

  // What a norm multiplies each output with; none where its values cannot be read.
  const std::vector<double>& factors_of(std::size_t norm, double epsilon) {
    const auto [found, fresh] = factors_.try_emplace({norm, epsilon});
    std::vector<double>& factors = found->second;
    if (!fresh) return factors;
    const Norm& of = norms_[norm];
    const std::vector<Tensor>& tensors = side_.own.tensors;
    factors.assign(of.channels, std::numeric_limits<double>::quiet_NaN());
    const Result<Reader> variance = Reader::open(tensors[of.variance].view);
    const Result<Reader> weight = Reader::open(tensors[of.weight.value_or(of.variance)].view);
    if (!variance.ok() || !weight.ok()) return factors;
    for (uint64_t i = 0; i < of.channels; ++i)
      factors[i] = (of.weight ? weight.value().value(i) : 1) /
                   std::sqrt(variance.value().value(i) + epsilon);
    return factors;
  }

  double misfit_of(const View& view, const View& other) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : plain_candidates(Operand{{view}}, Operand{{other}}))
      least = std::min(least, misfit(candidate.pair));
    return least;
  }

  // The norms that make the weight of the other side, and none where it is there as it is.
  std::vector<Fold> tried(std::size_t weight, std::size_t other) {
    if (!may_be_folded(weight, other)) return {};
    const View& of_other = side_.other.tensors[other].view;
    const double as_is = misfit_of(own(weight), of_other);
    std::vector<Fold> folds;
    double least = std::min(as_is, misfit_max(own(weight).elements(), norms_.size()));
    std::map<std::size_t, std::vector<Sample>> samples;  // By axis.
    for (std::size_t norm = 0; norm < norms_.size(); ++norm)
      for (const std::size_t axis : axes_for(weight, norms_[norm]))
        for (const double epsilon : kEpsilons) {
          ++count_;
          if (!tried_all()) return {};
          const auto [found, fresh] = samples.try_emplace(axis);
          if (fresh) found->second = samples_of(own(weight), of_other, axis);
          const std::vector<double>& factors = factors_of(norm, epsilon);
          double misfit = std::numeric_limits<double>::infinity();
          for (const Sample& sample : found->second)
            misfit = std::min(misfit, sample.misfit_with(factors));
          if (!(misfit <= least)) continue;
          least = misfit;
          folds.push_back({weight, norm, axis, epsilon, misfit,
                           likeness(norms_[norm].path, side_.own.tensors[weight].pairing_name())});
        }
    // As for other forms: a right one leaves rounding.
    std::erase_if(folds, [&](const Fold& fold) { return fold.misfit > 4 * least + 1e-12; });
    if (as_is <= 4 * least + 1e-12) folds.clear();
    return folds;
  }

  bool take(const Fold& fold) {
    if (!weights_.insert(fold.weight).second) return false;
    if (norm_taken_.contains(fold.norm)) {
      weights_.erase(fold.weight);
      return false;
    }
    norm_taken_.insert(fold.norm);
    taken_.push_back(fold);
    return true;
  }

  // Where others are folded, the norms that are left belong to somebody as well.
  void add_unshown() {
    std::vector<Fold> folds;
    for (const auto& [weight, other] : side_.partner) {
      if (weights_.contains(weight) || !may_be_folded(weight, other)) continue;
      for (std::size_t norm = 0; norm < norms_.size(); ++norm) {
        if (norm_taken_.contains(norm)) continue;
        const std::vector<std::size_t> axes = axes_for(weight, norms_[norm]);
        if (axes.empty() || axes[0] != taken_[0].axis) continue;
        folds.push_back({weight, norm, axes[0], taken_[0].epsilon, 0,
                         likeness(norms_[norm].path, side_.own.tensors[weight].pairing_name())});
      }
    }
    std::ranges::sort(folds, [](const Fold& x, const Fold& y) {
      return std::tuple(y.alike, x.weight, x.norm) < std::tuple(x.alike, y.weight, y.norm);
    });
    for (const Fold& fold : folds) take(fold);
  }

  const MergeSide& side_;
  std::vector<Norm> norms_;
  std::vector<Fold> taken_;
  std::set<std::size_t> weights_, norm_taken_;
  std::size_t count_ = 0;
  std::map<std::pair<std::size_t, double>, std::vector<double>> factors_;  // By norm and epsilon.
};

// The tensor beside a weight that is its bias.
std::optional<std::size_t> bias_beside(const Catalog& catalog, std::size_t weight) {
  const std::string& name = catalog.tensors[weight].name;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    if (i != weight && tensor.place.parameter == Param::bias && tensor.fault.empty() &&
        path_of(tensor.name) == path_of(name))
      return i;
  }
  return std::nullopt;
}

}  // namespace

FoldedWays batch_norm_ways(const MergeSide& side) {
  FoldedWays result;
  Search search(side);
  for (const Fold& fold : search.run()) {
    const Norm& norm = search.norms()[fold.norm];
    std::vector<std::size_t> with = {norm.variance, *norm.mean};
    if (norm.weight) with.push_back(*norm.weight);
    const Merge how{MergeKind::batch_norm, side.side, 0};
    const std::optional<std::size_t> bias = bias_beside(side.own, fold.weight);
    const std::optional<std::size_t> made = bias_beside(side.other, side.partner.at(fold.weight));
    const std::optional<std::size_t> from = bias ? bias : norm.bias;
    if (bias && norm.bias) with.push_back(*norm.bias);
    MergeParts parts{{norm.variance, norm.mean, norm.weight, norm.bias, bias},
                     fold.axis,
                     fold.epsilon,
                     false,
                     false};
    result.ways[fold.weight].push_back(
        {{how, folded_weight(side, fold.weight, norm, fold.axis, fold.epsilon), with}, parts});
    if (!made || !from || side.other.tensors[*made].elements() != norm.channels) continue;
    parts.is_bias = true;
    result.ways[*from].push_back({{how, folded_bias(side, norm, bias, fold.epsilon), {}}, parts});
    result.biases.push_back({*from, *made});
  }
  result.all_tried = search.tried_all();
  return result;
}

}  // namespace tensordiff
