// A kind of mistake the tool can name.
//
// A diagnosis proposes a transform T with parameters and measures what it leaves unexplained,
// ‖b − T(a)‖ / ‖a‖. It is accepted where that is down to the noise floor and far below what it was
// without T. To add one: write diagnose/<name>.cpp and add it to the list below;
// diagnosis_test.cpp will then ask for an example in which it, and no other, fires.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/site.h"

namespace tensordiff {

struct RotaryStep;
struct AttentionStep;

// One pair to explain, with its values.
struct Case {
  Case(const Run& in, const Site& at, Matrix of_a, Matrix of_b)
      : run(in), site(at), a(std::move(of_a)), b(std::move(of_b)) {}

  const Run& run;
  const Site& site;
  Matrix a, b;
  double before = 0;  // ‖b − a‖ / ‖a‖
  double norm_a = 0;
  double floor = 0;    // What may be left unexplained, relative to ‖b‖.
  double carried = 0;  // The error that came in, where that is more than noise; else 0.
  bool own = false;    // `a` is what a's way of computing makes of b's own inputs.
  // What was learnt of the step once for all diagnoses; nothing where it is no such step.
  std::shared_ptr<const RotaryStep> rotary;
  std::shared_ptr<const AttentionStep> attention;  // Only where b computes something else than a.
};

struct Explanation {
  std::string text;
  std::vector<Parameter> parameters;
  double after = 0;      // ‖b − T(a)‖ / ‖a‖
  bool settled = false;  // Its own evidence was judged already; `after` is no criterion.
  std::optional<double> before = {};  // Where the error is not that against a.
  std::optional<Matrix> model = {};   // T(a); not a number where nothing is said. For the evidence.
};

struct Diagnosis {
  std::string_view code;
  std::string_view question;
  std::string_view explains;  // The mistakes behind it.
  bool replays = false;       // Works from the inputs of b, so that they need not agree with a's.
  bool layout = false;        // Moves values and changes none: may be a convention.
  std::optional<Explanation> (*examine)(const Case& it);
};

namespace diagnoses {

extern const Diagnosis nonfinite;
extern const Diagnosis cast;
extern const Diagnosis norm_epsilon;
extern const Diagnosis norm_weight;
extern const Diagnosis scale;
extern const Diagnosis softmax_shift;
extern const Diagnosis offset;
extern const Diagnosis axis_permutation;
extern const Diagnosis interleave;
extern const Diagnosis reduction;
extern const Diagnosis block_permutation;
extern const Diagnosis token_shift;
extern const Diagnosis row_permutation;
extern const Diagnosis rope_pairing;
extern const Diagnosis rope_frequency;
extern const Diagnosis rope_position;
extern const Diagnosis head_mapping;
extern const Diagnosis attention_scale;
extern const Diagnosis attention_mask;
extern const Diagnosis residual_missing;
extern const Diagnosis other_tensor;
extern const Diagnosis quantization;
extern const Diagnosis region;
extern const Diagnosis precision_noise;
extern const Diagnosis operator_step;

// Tried in this order, the simplest first; the first that is accepted is the answer.
inline constexpr const Diagnosis* kAll[] = {
    &nonfinite,         &cast,         &reduction,       &softmax_shift,    &offset,
    &norm_epsilon,      &norm_weight,  &scale,           &axis_permutation, &interleave,
    &block_permutation, &token_shift,  &row_permutation, &rope_pairing,     &rope_frequency,
    &rope_position,     &head_mapping, &attention_scale, &attention_mask,   &residual_missing,
    &other_tensor,      &quantization, &region,          &precision_noise,  &operator_step,
};

}  // namespace diagnoses

// The values of a pair; nothing where they cannot be read.
std::optional<Case> make_case(const Run& run, const Site& site);

// Sets norm_a and before.
void measure(Case& it);

// ‖b − model‖ / ‖a‖, the share that a model of b leaves unexplained.
double left_by(const Case& it, const Matrix& model);

// The explanation that b is this model, with what it leaves; its text is the caller's.
Explanation explained_by(const Case& it, Matrix model);

// Whether what a model leaves is down to the noise and far below what there was.
bool accepted(const Case& it, const Explanation& explanation);

// Whether the two may hold the same values in another order: as far as extremes and sizes of the
// whole tensors tell.
bool may_be_moved(const Site& site);

// Whether a model of b leaves less of the difference than there was. One that does not is no cause,
// whatever else speaks for it.
bool falls(const Case& it, const Explanation& explanation);

// Whether it leaves about as much as came in, relative to the size of the model.
bool near_carried(const Case& it, const Explanation& explanation);

}  // namespace tensordiff
