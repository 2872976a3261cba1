// Attention over queries, keys and values, with everything that differs between models a field.

#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "diagnose/operators/context.h"
#include "diagnose/operators/operator.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {

struct Rope {
  double base = 0;     // 0: no rotation.
  uint64_t dims = 0;   // Of each head, from its first feature on.
  bool pairs = false;  // Turns (2i, 2i + 1) instead of (i, i + dims/2).
  double ahead = 0;    // Queries count from here.
  double stretch = 1;  // Positions are multiplied by it.
  bool of_queries = true, of_keys = true;
  bool operator==(const Rope&) const = default;
};

struct AttentionForm {
  uint64_t heads = 1, kv_heads = 1;
  bool tiled =
      false;  // Query head h reads key head h mod kv_heads, instead of h / (heads/kv_heads).
  double scale = 1;
  bool causal = false;
  int64_t late = 0;     // How many tokens beyond its own a query sees; below 0: fewer.
  uint64_t window = 0;  // How many of the last ones; 0: all.
  // The keys of each sequence that are seen, first and behind the last; empty: all.
  std::vector<std::pair<uint64_t, uint64_t>> seen = {};
  // Padding of each sequence that positions do not count, and the position that it has: 0 or 1, as
  // Hugging Face's models have it. Empty: positions are counted from the first token on.
  std::vector<uint64_t> uncounted = {};
  double padding_at = 1;
  Rope rope = {};
  bool alibi = false;
  double cap = 0;  // Scores are bent towards it; 0: not.
};

class Attention final : public Operator {
 public:
  // `bias`, which may be null, has rows {queries, keys} and one column for each head.
  struct Inputs {
    OperatorPtr query, key, value, bias = nullptr;
  };
  Attention(AttentionForm form, Inputs inputs);

  std::string_view kind() const override { return "attention"; }
  const Extents& extents() const override { return extents_; }
  Block predict(const Reading& from, const Grid& grid) const override;
  std::vector<Change> changes(const Context& context) const override;
  Standing standing() const override { return Standing::fitted; }
  std::string text() const override { return "attention over " + inputs_.query->text(); }

  const AttentionForm& form() const { return form_; }
  uint64_t queries() const { return queries_; }
  uint64_t keys() const { return keys_; }

 private:
  struct Sequence;
  OperatorPtr with(const AttentionForm& form) const {
    return std::make_shared<Attention>(form, inputs_);
  }
  double position_of(uint64_t sequence, uint64_t token) const;
  bool attend(const Sequence& of, uint64_t token, const double* query, double* out) const;
  void change_mask(std::vector<Change>& changes) const;
  void change_padding(std::vector<Change>& changes) const;
  void change_scale(std::vector<Change>& changes) const;
  void change_rope(std::vector<Change>& changes) const;
  void change_heads(std::vector<Change>& changes) const;
  void change_inputs(const Context& context, std::vector<Change>& changes) const;
  void change_cut(std::vector<Change>& changes) const;

  AttentionForm form_;
  Inputs inputs_;
  Extents extents_;
  uint64_t queries_ = 0, keys_ = 0;  // Tokens of a sequence.
};

// Where queries, keys and values stand in one tensor that has the heads that belong together side
// by side.
struct FusedPlaces {
  std::vector<uint64_t> query, key, value;
};
FusedPlaces places_by_head(uint64_t heads, uint64_t kv_heads, uint64_t dim);

// The bases of RoPE that models have, and factors that positions are stretched by.
std::vector<double> rope_bases(const Context& context);

// Attention that gives so many features in these rows, in the form that A computes.
bool try_attention(Around& around, const Extents& rows, uint64_t features);

}  // namespace tensordiff::operators
