// Rotary embeddings, learnt from what went in and what came out.
//
// RoPE turns pairs of features of each head by an angle that depends on the token and the pair
// alone. So the angle of each (token, pair) is what brings the pairs of all heads nearest to their
// images, and how near they come tells whether it is such a rotation at all, and with which
// pairing: feature i with i + d/2, or 2i with 2i + 1.

#pragma once

#include <optional>
#include <vector>

#include "diagnose/diagnosis.h"

namespace tensordiff {

enum class Pairing { halves, neighbours };

struct Rotation {
  Pairing pairing = Pairing::halves;
  uint64_t head_dim = 0;
  uint64_t pairs = 0;
  uint64_t tokens = 0;
  std::vector<double> angles;  // [tokens, pairs]
  double left = 0;             // ‖out − R(in)‖ / ‖out‖

  double angle(uint64_t token, uint64_t pair) const { return angles[token * pairs + pair]; }
  // How far a pair turns from one token to the next, in radians.
  double frequency(uint64_t pair) const;
};

Rotation learn_rotation(const Matrix& in, const Matrix& out, uint64_t head_dim, Pairing pairing);
Matrix rotated(const Matrix& in, const Rotation& rotation);

// An angle brought to −π … π.
double wrapped(double angle);

// Both sides of a rotary step. `a` and `b` are learnt each from its own input.
struct RotaryStep {
  Rotation a, b;
  bool same_pairing = true;
};
// Nothing where the step is none, or a's is no rotation.
std::optional<RotaryStep> learn_step(const Case& it);

// The base of the angles: frequency i is base^(−2i/d) times some factor. 0 where it is none.
double base_of(const Rotation& rotation);

}  // namespace tensordiff
