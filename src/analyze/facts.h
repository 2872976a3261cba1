// The numbers that a checkpoint holds beside its weights: steps, losses, rates, settings.
//
// They come from tensors of one element (Python's own numbers are such), from the metadata of the
// file, and from two files that trainers write beside it: config.json and trainer_state.json.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/model_config.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct Fact {
  std::string name;  // "optimizer.param_groups.0.lr"
  double value = 0;
};

class Facts {
 public:
  static Facts of(const Catalog& catalog);

  const std::vector<Fact>& all() const { return facts_; }

  // The number of that very name.
  std::optional<double> named(std::string_view name) const;
  // The first whose last word is one of these, earlier words first: "global_step" also finds
  // "trainer.global_step".
  const Fact* find(std::initializer_list<std::string_view> words) const;
  // All whose last word is this one.
  std::vector<const Fact*> every(std::string_view word) const;

  const ModelConfig& model() const { return model_; }
  const Json& config() const { return config_; }  // All of config.json; null where there is none.

 private:
  void add(std::string name, double value);

  std::vector<Fact> facts_;
  ModelConfig model_;
  Json config_;
};

// "a.b.lr" -> "lr"
std::string_view last_word(std::string_view name);

// A JSON file of this name that belongs to the input (companion() of formats/config.h); null where
// there is none that can be read.
Json json_beside(const Catalog& catalog, std::string_view file);

// How far training has come, and the measure of quality it had there.
struct Progress {
  const Fact* step = nullptr;   // Nothing where it is not stored.
  const Fact* loss = nullptr;   // The smaller the better, or,
  const Fact* score = nullptr;  // the larger the better: an accuracy.
};
Progress progress_of(const Facts& facts);

}  // namespace tensordiff
