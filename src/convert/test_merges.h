// Two checkpoints, of which one holds merged what the other keeps apart.

#pragma once

#include <string>
#include <vector>

#include "convert/conversion.h"
#include "convert/merge.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {

inline Catalog catalog_of(std::vector<Tensor> tensors) {
  Catalog catalog;
  catalog.tensors = std::move(tensors);
  read_places(catalog);
  return catalog;
}

inline Tensor tensor(std::string name, View view) { return {std::move(name), std::move(view), ""}; }

struct Inferred {
  Matching matching;
  Merges merges;
  Conversion conversion;

  // The rules that merge something.
  std::vector<std::string> rules() const {
    std::vector<std::string> texts;
    for (const ConversionRule& rule : conversion.rules)
      if (rule.form.merge.kind != MergeKind::none)
        texts.push_back(text_of(rule.form) + ": " + std::to_string(rule.pairs.size()));
    return texts;
  }
};

inline Inferred infer(Catalog a, Catalog b) {
  name_normed_weights(a, b);
  Inferred result;
  result.matching = match(a, b).value();
  result.merges = find_merges(a, b, result.matching);
  result.conversion = infer_conversion(a, b, result.matching.pairs, [&](const Pair& pair) {
    PairOperands operands{{{a.tensors[pair.a].view}}, {{b.tensors[pair.b].view}}};
    if (const auto found = result.merges.a.find(pair.a); found != result.merges.a.end())
      for (const Merged& each : found->second) operands.merges.push_back({each.how, each.view});
    return operands;
  });
  return result;
}

inline View positive(const View& view) {
  std::vector<float> values = values_of(view);
  for (float& value : values) value = 0.5F + value * value;
  return f32_view(view.shape, values);
}

}  // namespace tensordiff
