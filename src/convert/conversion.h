// The conversion between two checkpoints as a whole, and the pairs that do not follow it.
//
// A converter is a small program that treats all layers alike. So the pairs of one kind (the same
// names but for their numbers) vote on one Form, and a pair is compared under the form of its kind:
// a convention is uniform, and a mistake is an exception.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/form.h"
#include "match/matcher.h"

namespace tensordiff {

// A pair that another form fits than that of its kind.
struct Exception {
  std::size_t pair = 0;
  Form rule;
  Form fits;
  std::string reason = {};  // Why the rule holds, where the values of no layer show it.
};

// A form with the pairs that follow it.
struct ConversionRule {
  Form form;
  std::string kind_a, kind_b;  // Names with '#' for numbers.
  std::vector<std::size_t> pairs;
};

struct Conversion {
  std::vector<ConversionRule> rules;  // In the order of their first pair.
  std::vector<Exception> exceptions;  // In the order of pairs.
  std::vector<std::size_t> rule_of;   // For each pair: which rule, or kNoRule.

  static constexpr std::size_t kNoRule = static_cast<std::size_t>(-1);
  const Form* form_of(std::size_t pair) const {
    return pair < rule_of.size() && rule_of[pair] != kNoRule ? &rules[rule_of[pair]].form : nullptr;
  }
};

// A side of a pair merged with what lies beside it (merge.h).
struct MergedOperand {
  Merge how;
  View view;
};

// Both sides of a pair as they are stored, and as they may be merged.
struct PairOperands {
  Operand a, b;
  std::vector<MergedOperand> merges = {};
};
using OperandsOf = std::function<PairOperands(const Pair& pair)>;

// Reads samples of all pairs, and whole tensors where a pair does not fit as it is.
Conversion infer_conversion(const Catalog& a, const Catalog& b, const std::vector<Pair>& pairs,
                            const OperandsOf& operands);

// One line for each form that changes something: "transposed: 24 tensors (such as …)".
std::vector<std::string> summary_of(const Conversion& conversion);

// A form carried out on a pair; nothing where its shapes do not allow it.
std::optional<AlignedPair> carried_out(const Form& form, const PairOperands& operands);

}  // namespace tensordiff
