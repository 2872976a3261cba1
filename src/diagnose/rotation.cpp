#include "diagnose/rotation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "diagnose/fit.h"

namespace tensordiff {
namespace {

struct Places {
  uint64_t x, y;
};

Places places_of(uint64_t pair, uint64_t head_dim, Pairing pairing) {
  if (pairing == Pairing::halves) return {pair, pair + head_dim / 2};
  return {2 * pair, 2 * pair + 1};
}

// The role of what a rotary step reads.
std::optional<Role> input_role(Role role) {
  if (role == Role::query_final) return Role::query;
  if (role == Role::key_final) return Role::key;
  return std::nullopt;
}

// The better of both pairings.
Rotation learn_any(const Matrix& in, const Matrix& out, uint64_t head_dim) {
  Rotation halves = learn_rotation(in, out, head_dim, Pairing::halves);
  Rotation neighbours = learn_rotation(in, out, head_dim, Pairing::neighbours);
  return halves.left <= neighbours.left ? halves : neighbours;
}

}  // namespace

double wrapped(double angle) { return std::remainder(angle, 2 * std::numbers::pi); }

double Rotation::frequency(uint64_t pair) const {
  return tokens < 2 ? 0 : wrapped(angle(1, pair) - angle(0, pair));
}

Rotation learn_rotation(const Matrix& in, const Matrix& out, uint64_t head_dim, Pairing pairing) {
  Rotation result{pairing, head_dim, head_dim / 2, in.tokens, {}, 0};
  result.angles.resize(result.tokens * result.pairs);
  const uint64_t heads = in.features / head_dim;
  for (uint64_t token = 0; token < result.tokens; ++token) {
    for (uint64_t pair = 0; pair < result.pairs; ++pair) {
      const Places at = places_of(pair, head_dim, pairing);
      double along = 0, across = 0;
      for (uint64_t sequence = 0; sequence < in.batch; ++sequence) {
        const auto from = in.row(sequence * in.tokens + token);
        const auto to = out.row(sequence * in.tokens + token);
        for (uint64_t head = 0; head < heads; ++head) {
          const uint64_t x = head * head_dim + at.x, y = head * head_dim + at.y;
          along += from[x] * to[x] + from[y] * to[y];
          across += from[x] * to[y] - from[y] * to[x];
        }
      }
      result.angles[token * result.pairs + pair] = std::atan2(across, along);
    }
  }
  const double size = norm(out.values);
  result.left = size > 0 ? distance(rotated(in, result).values, out.values) / size : 1;
  return result;
}

Matrix rotated(const Matrix& in, const Rotation& rotation) {
  Matrix result = in;
  const uint64_t heads = in.features / rotation.head_dim;
  for (uint64_t row = 0; row < in.rows(); ++row) {
    for (uint64_t pair = 0; pair < rotation.pairs; ++pair) {
      const double angle = rotation.angle(row % in.tokens, pair);
      const double cosine = std::cos(angle), sine = std::sin(angle);
      const Places at = places_of(pair, rotation.head_dim, rotation.pairing);
      for (uint64_t head = 0; head < heads; ++head) {
        const uint64_t x = head * rotation.head_dim + at.x, y = head * rotation.head_dim + at.y;
        result.row(row)[x] = cosine * in.row(row)[x] - sine * in.row(row)[y];
        result.row(row)[y] = sine * in.row(row)[x] + cosine * in.row(row)[y];
      }
    }
  }
  return result;
}

std::optional<RotaryStep> learn_step(const Case& it) {
  const std::optional<Role> role = input_role(it.site.role);
  const Site* source = role ? find_role(it.run, it.site, *role) : nullptr;
  if (!source || it.a.tokens < 2) return std::nullopt;
  const Result<Matrix> in_a = read_matrix(source->views.a, it.run.extent, it.a.first_token);
  const Result<Matrix> in_b = read_matrix(source->views.b, it.run.extent, it.a.first_token);
  if (!in_a.ok() || !in_b.ok() || in_a.value().values.size() != it.a.values.size())
    return std::nullopt;
  const uint64_t heads = it.a.heads ? it.a.heads : in_a.value().heads;
  const uint64_t head_dim = heads ? it.a.features / heads : 0;
  if (head_dim < 2 || head_dim % 2 != 0 || it.a.features % head_dim != 0) return std::nullopt;
  RotaryStep step{learn_any(in_a.value(), it.a, head_dim), learn_any(in_b.value(), it.b, head_dim)};
  // Half a percent is far from what a wrong pairing leaves, and above the noise of bf16.
  if (step.a.left > std::max(0.005, it.floor)) return std::nullopt;
  step.same_pairing = step.a.pairing == step.b.pairing;
  return step;
}

double base_of(const Rotation& rotation) {
  if (rotation.pairs < 2) return 0;
  const double first = rotation.frequency(0), second = rotation.frequency(1);
  if (first <= 0 || second <= 0) return 0;
  return std::pow(first / second, static_cast<double>(rotation.pairs));
}

}  // namespace tensordiff
