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

#include "analyze/facts.h"
#include "analyze/options.h"
#include "compare/row.h"
#include "tensor/catalog.h"

namespace tensordiff {

class HigherRanks;
struct Attention;
struct LayerMap;
struct Profile;
struct Quantization;

// What a tensor is for.
enum class Purpose {
  weight,     // Part of the model.
  optimizer,  // Moments, momentum: kept beside the model to train it.
  gradient,   // Of a weight.
  scalar,     // One number: a step, a loss, a rate.
};

class Study {
 public:
  // Catalogs and options must outlive it.
  Study(const Catalog& a, const Catalog& b, const AnalyzeOptions& options);
  ~Study();

  void add_pair(const Row& row);  // It must outlive the study, too.
  void add_unpaired(char side, const Tensor& tensor);

  const Catalog& a() const { return a_; }
  const Catalog& b() const { return b_; }
  const AnalyzeOptions& options() const { return options_; }
  std::span<const Row* const> pairs() const { return pairs_; }
  std::span<const Tensor* const> only_a() const { return only_a_; }
  std::span<const Tensor* const> only_b() const { return only_b_; }
  const Facts& facts_a() const { return facts_a_; }
  const Facts& facts_b() const { return facts_b_; }

  // Pairs of weights that were compared, in display order.
  const std::vector<const Row*>& weights() const { return weights_; }
  // What more is known of each of them; measured when it is first asked for (analyze/profile.h).
  const std::vector<Profile>& profiles() const;
  // Its attention heads, the same way (analyze/attention_heads.h).
  const Attention& attention() const;
  // Which of them are quantized in b, the same way (analyze/quantization.h).
  const Quantization& quantization() const;

  // Which layer of a each layer of b comes from, the same way (analyze/layer_map.h).
  const LayerMap& layer_map() const;
  // Ranks of changes that the profiles are too small for, the same way (analyze/low_rank.h).
  HigherRanks& higher_ranks() const;

  // Inputs of the model's layers on real data (--activations); null where there are none.
  const Catalog* activations() const { return activations_ ? &*activations_ : nullptr; }
  void set_activations(Catalog catalog) { activations_ = std::move(catalog); }
  // Models that b may have been merged from (--base).
  const std::vector<Catalog>& bases() const { return bases_; }
  void add_base(Catalog catalog) { bases_.push_back(std::move(catalog)); }

 private:
  const Catalog& a_;
  const Catalog& b_;
  const AnalyzeOptions& options_;
  Facts facts_a_, facts_b_;
  std::vector<const Row*> pairs_, weights_;
  std::vector<const Tensor*> only_a_, only_b_;
  mutable std::unique_ptr<std::vector<Profile>> profiles_;
  mutable std::unique_ptr<Attention> attention_;
  mutable std::unique_ptr<Quantization> quantization_;
  mutable std::unique_ptr<LayerMap> layer_map_;
  mutable std::unique_ptr<HigherRanks> higher_ranks_;
  std::optional<Catalog> activations_;
  std::vector<Catalog> bases_;
};

Purpose purpose_of(std::string_view name, const Shape& shape);
inline Purpose purpose_of(const Row& row) { return purpose_of(row.a.name, row.a.shape); }
inline bool is_weight(const Row& row) { return purpose_of(row) == Purpose::weight; }

// The name without the number of its layer: the same for all layers. "layers.*.mlp.weight"
std::string pattern_of(std::string_view name, const Place& place);

// Squares of the norms, from the comparison: ‖a‖², ‖b − a‖². 0 where they are not known.
double squares_of(const Stats& stats);
double squares_of_change(const Comparison& comparison);

// Root of the mean square of the finite elements; 0 where there are none.
double rms_of(const Stats& stats);

// Pairs that have a layer, by its number.
std::map<int64_t, std::vector<const Row*>> by_depth(std::span<const Row* const> pairs);

// ‖b − a‖ / ‖a‖ over several pairs together; nothing where a is zero or nothing was compared.
std::optional<double> relative_change(std::span<const Row* const> pairs);

}  // namespace tensordiff
