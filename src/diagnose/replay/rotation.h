// Rotary embeddings, learnt from what went in and what came out.
//
// RoPE turns pairs of features of each head by an angle that depends on the token and the pair
// alone. So the angle of each (token, pair) is what brings the pairs of all heads nearest to their
// images, and how near they come tells whether it is such a rotation at all, and with which
// pairing: feature i with i + r/2, or 2i with 2i + 1, among the first r features of a head.
//
// Some models normalise each head before they turn it. The weight of that norm is learnt too: a
// rotation keeps the length of a pair, so out_x² + out_y² = w_x² n_x² + w_y² n_y² gives w².

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

enum class RopePairing { halves, neighbours };

// What kind of rotation a side makes.
struct RotaryForm {
  uint64_t head_dim = 0;
  uint64_t turned = 0;  // Features of each head that are turned; the others stay as they are.
  RopePairing pairing = RopePairing::halves;
  bool normed = false;  // Each head is normalised first.

  uint64_t pairs() const { return turned / 2; }
};

struct Rotation {
  RotaryForm form;
  uint64_t tokens = 0;
  std::vector<double> weight;    // By which each feature of a head is multiplied before it turns.
  std::vector<double> angles;    // [tokens, pairs]
  std::vector<double> strength;  // How much speaks for each angle.
  double left = 1;               // ‖out − R(in)‖ / ‖out‖
  Matrix model;                  // R(in)

  double angle(uint64_t token, uint64_t pair) const { return angles[token * form.pairs() + pair]; }
  double strength_of(uint64_t token, uint64_t pair) const {
    return strength[token * form.pairs() + pair];
  }
  // How far a pair turns from one token to the next, in radians.
  double frequency(uint64_t pair) const;
};

Rotation learn_rotation(const Matrix& in, const Matrix& out, const RotaryForm& form);

// What a rotation that was learnt makes of another input.
Matrix rotate(const Matrix& in, const Rotation& rotation);

// An angle brought to −π … π.
double wrapped(double angle);

// Both sides of a rotary step. `a` and `b` are learnt each from its own input.
struct RotaryStep {
  Rotation a, b;

  bool same_pairing() const { return a.form.pairing == b.form.pairing; }
  bool same_size() const { return a.form.turned == b.form.turned; }
  bool same_norm() const { return a.form.normed == b.form.normed; }
};
// a's side alone. Nothing where the step is none, or a's is no rotation.
std::optional<Rotation> learn_rotation_of_a(const Case& it);
// Nothing where that is nothing, or b's is no rotation.
std::shared_ptr<const RotaryStep> learn_step(const Case& it);

// The explanation that b turns its own input so.
Explanation explain_rotation(const Case& it, std::string text);

// The base of the angles: frequency i is base^(−2i/r) times some factor. 0 where it is none.
double base_of(const Rotation& rotation);

}  // namespace tensordiff
