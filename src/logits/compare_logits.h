// Two runs of a language model compared by what they predict: tensordiff logits.

#pragma once

#include "compare/tolerance_rules.h"
#include "logits/causes.h"
#include "logits/measure.h"

namespace tensordiff {

enum class LogitsVerdict { same, close, different };
std::string_view name_of(LogitsVerdict verdict);

struct LogitsComparison {
  std::vector<std::string> names;      // Of the sequences, as A has them.
  std::vector<std::size_t> tensors_a;  // Of each sequence, in the catalog of A.
  LogitsDiff diff;
  std::vector<Finding> findings;    // `pair` is the number of the sequence.
  std::vector<std::string> notes;   // What was lined up, and how.
  std::vector<std::string> failed;  // Gates of the tolerance file that failed.
  LogitsVerdict verdict = LogitsVerdict::different;
};

// `rules` may be none; the first one found in the name of A's sequences gates the metrics.
Result<LogitsComparison> compare_logits(const Catalog& a, const Catalog& b,
                                        const ToleranceRules* rules = nullptr);

}  // namespace tensordiff
