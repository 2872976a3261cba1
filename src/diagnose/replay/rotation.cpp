#include "diagnose/replay/rotation.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "diagnose/graph/heads.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kHeadDimMax = 512;
constexpr uint64_t kFewTokens = 24;
constexpr uint64_t kFewFeatures = 512;
constexpr uint64_t kFewHeads = 4;  // That one angle must fit.
// A form with more to it must leave less than this share of what a simpler one leaves.
constexpr double kClearlyBetter = 0.5;
// What a's own form may leave: half a percent is far from what a wrong pairing leaves.
constexpr double kOwnFit = 0.005;
// Nearer than so many unit roundoffs needs no other form.
constexpr double kExact = 4;
// A factor nearer to 1 is none: bf16 sines and cosines alone make up for 0.4 %.
constexpr double kGainMin = 0.01;

struct Places {
  uint64_t x, y;
};

Places places_of(uint64_t pair, const RotaryForm& form) {
  if (form.pairing == RopePairing::halves) return {pair, pair + form.turned / 2};
  return {2 * pair, 2 * pair + 1};
}

// The role of what a rotary step reads.
std::optional<Role> input_role(Role role) {
  if (role == Role::query_final) return Role::query;
  if (role == Role::key_final) return Role::key;
  return std::nullopt;
}

// What one side's rotary step reads, of the tokens of the case; nothing where it is none.
std::optional<Matrix> input_of(const Case& it, View AlignedPair::*side) {
  const std::optional<Role> role = input_role(it.site.role);
  const Site* source = role ? find_role(it.run, it.site, *role) : nullptr;
  if (!source) return std::nullopt;
  Result<Matrix> in =
      read_matrix(source->views.*side, it.run.extent, it.a.first_token, it.a.values.size());
  if (!in.ok() || !same_form(in.value(), it.a)) return std::nullopt;
  return std::move(in).value();
}

// Every head of every token with root mean square 1.
Matrix heads_normalised(Matrix in, uint64_t head_dim) {
  for (std::size_t at = 0; at + head_dim <= in.values.size(); at += head_dim) {
    const std::span<double> head = std::span(in.values).subspan(at, head_dim);
    const double size = norm(head) / std::sqrt(static_cast<double>(head_dim));
    if (size > 0)
      for (double& value : head) value /= size;
  }
  return in;
}

// Sums over all heads of all tokens of the squares of one pair, before and after.
struct PairSums {
  double xx = 0, yy = 0, xy = 0;  // Of the squares x², y² that went in, times each other.
  double xo = 0, yo = 0;          // Times x² + y² that came out.

  void add(double x, double y, double out) {
    xx += x * x, yy += y * y, xy += x * y, xo += x * out, yo += y * out;
  }
};

double square(double x) { return x * x; }

// The weights of a norm before the rotation, from the lengths of the pairs.
void learn_weights(const Matrix& in, const Matrix& out, Rotation& rotation) {
  const RotaryForm& form = rotation.form;
  for (uint64_t pair = 0; pair < form.pairs(); ++pair) {
    const Places at = places_of(pair, form);
    PairSums sums;
    for (std::size_t head = 0; head + form.head_dim <= in.values.size(); head += form.head_dim)
      sums.add(square(in.values[head + at.x]), square(in.values[head + at.y]),
               square(out.values[head + at.x]) + square(out.values[head + at.y]));
    const double determinant = sums.xx * sums.yy - sums.xy * sums.xy;
    if (!(determinant > 0)) continue;
    const double x = (sums.yy * sums.xo - sums.xy * sums.yo) / determinant;
    const double y = (sums.xx * sums.yo - sums.xy * sums.xo) / determinant;
    rotation.weight[at.x] = std::sqrt(std::max(0.0, x));
    rotation.weight[at.y] = std::sqrt(std::max(0.0, y));
  }
  for (uint64_t i = form.turned; i < form.head_dim; ++i) {
    double both = 0, own = 0;
    for (std::size_t at = i; at < in.values.size(); at += form.head_dim)
      both += in.values[at] * out.values[at], own += square(in.values[at]);
    if (own > 0 && std::isfinite(both)) rotation.weight[i] = both / own;
  }
}

// One factor on all that is turned: some scalings of RoPE stretch it.
void learn_gain(const Matrix& in, const Matrix& out, Rotation& rotation) {
  const RotaryForm& form = rotation.form;
  double before = 0, after = 0;
  for (std::size_t at = 0; at < in.values.size(); ++at) {
    if (at % form.head_dim >= form.turned) continue;
    before += square(in.values[at]), after += square(out.values[at]);
  }
  const double gain = before > 0 ? std::sqrt(after / before) : 1;
  if (!std::isfinite(gain) || std::abs(gain - 1) < kGainMin) return;
  std::fill_n(rotation.weight.begin(), form.turned, gain);
}

void learn_angles(const Matrix& in, const Matrix& out, Rotation& rotation) {
  const RotaryForm& form = rotation.form;
  std::vector<double> along(rotation.angles.size()), across(rotation.angles.size());
  for (uint64_t row = 0; row < in.rows(); ++row) {
    const auto from = in.row(row), to = out.row(row);
    const uint64_t token = row % in.tokens;
    for (uint64_t head = 0; head < in.features; head += form.head_dim) {
      for (uint64_t pair = 0; pair < form.pairs(); ++pair) {
        const Places at = places_of(pair, form);
        const uint64_t x = head + at.x, y = head + at.y, angle = token * form.pairs() + pair;
        along[angle] += from[x] * to[x] + from[y] * to[y];
        across[angle] += from[x] * to[y] - from[y] * to[x];
      }
    }
  }
  for (std::size_t i = 0; i < along.size(); ++i) {
    // A token that is not finite says nothing.
    const double strength = std::hypot(across[i], along[i]);
    if (!std::isfinite(strength)) continue;
    rotation.angles[i] = std::atan2(across[i], along[i]);
    rotation.strength[i] = strength;
  }
}

Matrix turned(Matrix in, const Rotation& rotation) {
  const RotaryForm& form = rotation.form;
  for (uint64_t row = 0; row < in.rows(); ++row) {
    const std::span<double> values = in.row(row);
    for (uint64_t pair = 0; pair < form.pairs(); ++pair) {
      const double angle = rotation.angle(row % in.tokens, pair);
      const double cosine = std::cos(angle), sine = std::sin(angle);
      const Places at = places_of(pair, form);
      for (uint64_t head = 0; head < in.features; head += form.head_dim) {
        const double x = values[head + at.x], y = values[head + at.y];
        values[head + at.x] = cosine * x - sine * y;
        values[head + at.y] = sine * x + cosine * y;
      }
    }
  }
  return in;
}

Matrix weighted(Matrix in, const Rotation& rotation) {
  for (std::size_t at = 0; at < in.values.size(); ++at)
    in.values[at] *= rotation.weight[at % rotation.form.head_dim];
  return in;
}

// Sizes a head may have: as the tensors of the step or of its neighbours say, else every divisor.
std::vector<uint64_t> head_dims(const Case& it, const Matrix& in) {
  const uint64_t features = it.a.features;
  const auto fits = [&](uint64_t dim) { return dim >= 2 && dim % 2 == 0 && features % dim == 0; };
  for (const uint64_t heads : {it.a.heads, in.heads})
    if (heads > 0 && fits(features / heads)) return {features / heads};
  for (const uint64_t dim : known_head_dims(it.run, it.site))
    if (fits(dim)) return {dim};
  std::vector<uint64_t> dims;
  for (uint64_t dim = 4; dim <= std::min(features, kHeadDimMax); dim += 2)
    if (fits(dim)) dims.push_back(dim);
  usual_first(dims);
  return dims;
}

// From the simplest on.
std::vector<RotaryForm> forms_of(const std::vector<uint64_t>& dims) {
  std::vector<RotaryForm> forms;
  for (const bool normed : {false, true})
    for (const uint64_t dim : dims)
      for (const uint64_t turned : {dim, dim / 2, dim / 4, dim / 4 * 3})
        for (const RopePairing pairing : {RopePairing::halves, RopePairing::neighbours})
          if (turned >= 2 && turned % 2 == 0) forms.push_back({dim, turned, pairing, normed});
  return forms;
}

// The first tokens and heads: enough to tell which form it is.
Matrix glimpse(const Matrix& matrix, uint64_t head_dim) {
  const uint64_t heads = std::max(kFewHeads, kFewFeatures / head_dim);
  Matrix result = matrix;
  result.tokens = std::min(matrix.tokens, kFewTokens);
  result.features = std::min(matrix.features, heads * head_dim);
  result.values.clear();
  for (uint64_t row = 0; row < matrix.rows(); ++row) {
    const auto part = matrix.row(row).first(result.features);
    if (row % matrix.tokens < result.tokens)
      result.values.insert(result.values.end(), part.begin(), part.end());
  }
  return result;
}

// Neighbours that turn in heads of some size do so in heads of every multiple of it, too: the
// smallest that explains as much is that of the heads.
RotaryForm in_smallest_heads(const RotaryForm& form, const std::vector<RotaryForm>& forms,
                             const Matrix& in, const Matrix& out, double left) {
  RotaryForm smallest = form;
  for (const RotaryForm& other : forms) {
    const bool same_kind = other.pairing == form.pairing && other.normed == form.normed &&
                           other.turned * form.head_dim == form.turned * other.head_dim;
    if (!same_kind || other.head_dim >= smallest.head_dim) continue;
    if (learn_rotation(glimpse(in, other.head_dim), glimpse(out, other.head_dim), other).left <=
        left)
      smallest = other;
  }
  return smallest;
}

// The first form that explains the output; a later one only where it is clearly better.
Rotation best_of(const std::vector<RotaryForm>& forms, const Matrix& in, const Matrix& out,
                 double exact) {
  RotaryForm best;
  double least = 1;
  for (const RotaryForm& form : forms) {
    const double left =
        learn_rotation(glimpse(in, form.head_dim), glimpse(out, form.head_dim), form).left;
    if (left < kClearlyBetter * least) least = left, best = form;
    if (least <= exact) break;
  }
  if (least == 1) return Rotation();
  if (best.pairing == RopePairing::neighbours)
    best = in_smallest_heads(best, forms, in, out, std::max(exact, least / kClearlyBetter));
  return learn_rotation(in, out, best);
}

// a's own form and its other pairing before all others.
std::vector<RotaryForm> forms_like(const RotaryForm& form) {
  std::vector<RotaryForm> forms = {form, form};
  forms[1].pairing =
      form.pairing == RopePairing::halves ? RopePairing::neighbours : RopePairing::halves;
  const std::vector<RotaryForm> others = forms_of({form.head_dim});
  forms.insert(forms.end(), others.begin(), others.end());
  return forms;
}

}  // namespace

double wrapped(double angle) { return std::remainder(angle, 2 * std::numbers::pi); }

double Rotation::frequency(uint64_t pair) const {
  double frequency = 0;
  // Tokens farther and farther apart: each lag makes the last answer finer.
  for (uint64_t lag = 1; lag < tokens; lag *= 2) {
    std::complex<double> sum = 0;
    for (uint64_t token = 0; token + lag < tokens; ++token)
      sum += std::polar(strength_of(token, pair) * strength_of(token + lag, pair),
                        angle(token + lag, pair) - angle(token, pair));
    const auto distance = static_cast<double>(lag);
    frequency += wrapped(std::arg(sum) - distance * frequency) / distance;
  }
  return frequency;
}

Rotation learn_rotation(const Matrix& in, const Matrix& out, const RotaryForm& form) {
  Rotation result;
  result.form = form;
  result.tokens = in.tokens;
  result.weight.assign(form.head_dim, 1);
  result.angles.resize(in.tokens * form.pairs());
  result.strength.resize(result.angles.size());
  const Matrix plain = form.normed ? heads_normalised(in, form.head_dim) : in;
  if (form.normed)
    learn_weights(plain, out, result);
  else
    learn_gain(plain, out, result);
  Matrix source = weighted(plain, result);
  learn_angles(source, out, result);
  result.model = turned(std::move(source), result);
  const double size = norm(out.values);
  result.left = size > 0 ? distance(result.model.values, out.values) / size : 1;
  return result;
}

Matrix rotate(const Matrix& in, const Rotation& rotation) {
  const RotaryForm& form = rotation.form;
  return turned(weighted(form.normed ? heads_normalised(in, form.head_dim) : in, rotation),
                rotation);
}

std::optional<Rotation> learn_rotation_of_a(const Case& it) {
  const std::optional<Matrix> in = input_of(it, &AlignedPair::a);
  if (!in || it.a.tokens < 2) return std::nullopt;
  const double exact = kExact * it.site.roundoff;
  Rotation rotation = best_of(forms_of(head_dims(it, *in)), *in, it.a, exact);
  // Of types with a bit or two, no form may be nearer than their roundoff.
  const bool none = rotation.form.head_dim == 0 || rotation.left > std::max(kOwnFit, exact);
  return none ? std::nullopt : std::optional(std::move(rotation));
}

std::shared_ptr<const RotaryStep> learn_step(const Case& it) {
  std::optional<Rotation> of_a = learn_rotation_of_a(it);
  const std::optional<Matrix> in_b = of_a ? input_of(it, &AlignedPair::b) : std::nullopt;
  if (!in_b) return nullptr;
  auto step = std::make_shared<RotaryStep>();
  step->a = std::move(*of_a);
  step->b = best_of(forms_like(step->a.form), *in_b, it.b, kExact * it.site.roundoff);
  // What b gives may be no rotation of what it reads.
  return step->b.form.head_dim > 0 ? step : nullptr;
}

Explanation explain_rotation(const Case& it, std::string text) {
  Explanation result = explained_by(it, it.rotary->b.model);
  result.text = std::move(text);
  return result;
}

double base_of(const Rotation& rotation) {
  if (rotation.form.pairs() < 2) return 0;
  const double first = rotation.frequency(0), second = rotation.frequency(1);
  if (first <= 0 || second <= 0) return 0;
  return std::pow(first / second, static_cast<double>(rotation.form.pairs()));
}

}  // namespace tensordiff
