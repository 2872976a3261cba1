// One pair of tensors, from matching to comparing: which two they are, how they were brought to one
// layout, and how far they are apart. The report, diagnose/ and analyze/ all look at this one.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "align/aligner.h"
#include "compare/comparison.h"
#include "match/matcher.h"

namespace tensordiff {

struct Beyond;  // compare/beyond.h

struct TensorId {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::string fault;           // Why it could not be read; empty when it could.
  Place place = {};            // What its name tells.
  std::string made_from = {};  // What its values were decoded from; empty: they are stored.
};
// What the report tells of a tensor, or of a part of it.
TensorId id_of(const Tensor& tensor, const std::optional<Section>& section = {});

struct Row {
  std::size_t index = 0;  // In the report.
  TensorId a, b;
  std::size_t capture = 0, capture_b = 0;  // Their places in the files of A and of B.
  std::optional<int64_t> layer;            // As they were paired.
  std::string stage;
  const Matcher* matched_by = nullptr;  // The strategy that paired them.
  Shape shape;                          // The one they were compared in.
  std::vector<Step> steps;
  LayoutNotes notes;      // About the layout; message_of() of report/wording.h has the words.
  Comparison comparison;  // Its numbers are unset where status is incomparable or error.
  // The elements of both sides. Empty where they were not compared, and in a report that is done.
  AlignedPair views = {};
  std::shared_ptr<const Beyond> beyond;  // Where what is beyond tolerance lies, where it is known.

  bool compared() const { return comparison.status < Status::incomparable; }
  bool changed() const { return comparison.status > Status::equal; }
  // The number of its layer, by the pairing or else by the name of A.
  std::optional<int64_t> depth() const { return layer ? layer : a.place.layer_number(); }
};

}  // namespace tensordiff
