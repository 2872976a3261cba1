// What an analysis looks at: both models, their pairs with the numbers of the comparison, and what
// is measured beyond that, once for all analyses.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "align/aligner.h"
#include "analyze/facts.h"
#include "analyze/options.h"
#include "compare/comparison.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct Attention;
struct Profile;

// What a tensor is for.
enum class Purpose {
  weight,     // Part of the model.
  optimizer,  // Moments, momentum: kept beside the model to train it.
  gradient,   // Of a weight.
  scalar,     // One number: a step, a loss, a rate.
};

struct Subject {
  std::string name;    // Of a;
  std::string name_b;  // and of b.
  Purpose purpose = Purpose::weight;
  Place place;                   // What the name of a tells.
  std::optional<int64_t> depth;  // The number of its layer, where its name has one.
  DType dtype_a = DType::f32, dtype_b = DType::f32;
  Shape shape_a, shape_b;
  Comparison comparison;
  AlignedPair views;  // Empty where the two were not compared.

  bool compared() const {
    return comparison.status != Status::incomparable && comparison.status != Status::error;
  }
  bool weight() const { return purpose == Purpose::weight; }
  bool changed() const {
    return comparison.status != Status::identical && comparison.status != Status::equal;
  }
};

class Study {
 public:
  // Catalogs and options must outlive it.
  Study(const Catalog& a, const Catalog& b, const AnalyzeOptions& options);
  ~Study();

  void add_pair(Subject subject);  // Purpose and depth are found here.
  void add_unpaired(char side, const Tensor& tensor);

  const Catalog& a() const { return a_; }
  const Catalog& b() const { return b_; }
  const AnalyzeOptions& options() const { return options_; }
  std::span<const Subject> pairs() const { return pairs_; }
  std::span<const Tensor* const> only_a() const { return only_a_; }
  std::span<const Tensor* const> only_b() const { return only_b_; }
  const Facts& facts_a() const { return facts_a_; }
  const Facts& facts_b() const { return facts_b_; }

  // Pairs of weights that were compared, in display order.
  std::vector<const Subject*> weights() const;
  // What more is known of each of them; measured when it is first asked for (analyze/profile.h).
  const std::vector<Profile>& profiles() const;
  // Its attention heads, the same way (analyze/attention_heads.h).
  const Attention& attention() const;

 private:
  const Catalog& a_;
  const Catalog& b_;
  const AnalyzeOptions& options_;
  Facts facts_a_, facts_b_;
  std::vector<Subject> pairs_;
  std::vector<const Tensor*> only_a_, only_b_;
  mutable std::unique_ptr<std::vector<Profile>> profiles_;
  mutable std::unique_ptr<Attention> attention_;
};

Purpose purpose_of(std::string_view name, const Shape& shape);

// The name without the number of its layer: the same for all layers. "layers.*.mlp.weight"
std::string pattern_of(std::string_view name, const Place& place);

// Squares of the norms, from the comparison: ‖a‖², ‖b − a‖². 0 where they are not known.
double squares_of(const Stats& stats);
double squares_of_change(const Comparison& comparison);

// Root of the mean square of the finite elements; 0 where there are none.
double rms_of(const Stats& stats);

// Pairs that have a layer, by its number.
std::map<int64_t, std::vector<const Subject*>> by_depth(std::span<const Subject* const> pairs);

// ‖b − a‖ / ‖a‖ over several pairs together; nothing where a is zero or nothing was compared.
std::optional<double> relative_change(std::span<const Subject* const> pairs);

}  // namespace tensordiff
