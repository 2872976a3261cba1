// Which tensor of a answers to which of b: strategies, tried in turn on what the last left over.
//
// To add one: write match/<name>.cpp and add it to the list below.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "match/name_pattern.h"
#include "match/pairs_file.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct Matcher;

struct Pair {
  std::size_t a = 0;  // Indexes into the catalogs' tensors.
  std::size_t b = 0;
  std::optional<int64_t> layer;  // Of a.
  std::string stage;
  const Matcher* matched_by = nullptr;  // The strategy; set by match().
  // Which part of the tensor is meant, where it holds several that the other side keeps apart.
  std::optional<Section> section_a = std::nullopt, section_b = std::nullopt;
  // One side stores once what the other has twice, so that a tensor may have a partner already.
  bool tied = false;
};

// A tensor without a partner.
struct Leftover {
  std::size_t tensor = 0;
  // It belongs to a layer of which the other side has nothing at all: not dumped, not missing.
  bool layer_absent = false;
  // The tensor of the other side whose name is most like its own, and how alike, 0 to 1. Where no
  // word is the same, one of its shape; nothing where there is none either.
  std::optional<std::size_t> nearest = std::nullopt;
  double likeness = 0;
  std::string_view why = {};  // Why the two are no pair, where that can be told.

  auto operator<=>(const Leftover&) const = default;
};

struct Matching {
  std::vector<Pair> pairs;  // In display order.
  std::vector<Leftover> only_a;
  std::vector<Leftover> only_b;
  std::vector<std::string> notes;  // What was assumed, e.g. that layer 3 of b is layer 1 of a.
};

struct MatchOptions {
  std::vector<std::string> strategies;                // Names of matchers; empty: all, in order.
  std::vector<NamePair> pairs = {};                   // What the user said belongs together.
  bool read_values = true;                            // False: names and shapes only.
  double fuzzy_threshold = 0.6;                       // How alike names must be, from 0 to 1.
  std::optional<NamePattern> pattern = std::nullopt;  // Where layer and stage stand in a name.
  // Is run to pair tensors; empty: none. Only ever a name that the user gave on the command line.
  std::string program = {};
};

// What a name says of where in a model its tensor belongs: "12_query", "rank_0/12_query".
struct LayerStage {
  std::optional<int64_t> layer;  // Only a pattern of the user's may do without.
  std::string stage;
  std::string folder;  // What stands before it, "" for none.
};
// By the pattern of the user where there is one.
std::optional<LayerStage> layer_stage(std::string_view name, const Place& place,
                                      const MatchOptions& options);

// The names of one side and what they tell.
struct NamesOf {
  std::vector<std::string> names;
  std::vector<Place> places;
};
NamesOf names_of(const Catalog& catalog);

// What a strategy sees: both inputs, and which of their tensors are still free.
struct MatchInput {
  const Catalog& a;
  const Catalog& b;
  std::vector<std::size_t> free_a;
  std::vector<std::size_t> free_b;
  const MatchOptions& options;
  // What to know the tensors by: their names, but that layers and calls of b which are numbered
  // from elsewhere have the numbers of a (renumber.h).
  NamesOf side_a = {}, side_b = {};
  const std::vector<Pair>* pairs = nullptr;  // What the strategies before have paired.

  // Of a tensor of a.
  std::optional<LayerStage> layer_stage_a(std::size_t tensor) const {
    return layer_stage(side_a.names[tensor], side_a.places[tensor], options);
  }
};

struct Proposal {
  std::vector<Pair> pairs;
  std::vector<std::string> notes;
};

struct Matcher {
  std::string_view name;
  std::string_view summary;  // When it pairs two tensors, in one line.
  Result<Proposal> (*propose)(const MatchInput& input);
};

namespace matchers {

extern const Matcher manual;
extern const Matcher exec;
extern const Matcher layer_stage;
extern const Matcher exact;
extern const Matcher prefix;
extern const Matcher conventions;
extern const Matcher fused;
extern const Matcher flat;
extern const Matcher tied;
extern const Matcher fuzzy;
extern const Matcher shape;
extern const Matcher value;
extern const Matcher fused_value;
extern const Matcher module;
extern const Matcher copy;

// Tried in this order: the more a strategy knows of a name's meaning, the sooner.
inline constexpr const Matcher* kAll[] = {&manual,      &exec,  &layer_stage, &exact,  &prefix,
                                          &conventions, &flat,  &fused,       &tied,   &fuzzy,
                                          &shape,       &value, &fused_value, &module, &copy};

}  // namespace matchers

// What match_within() calls its pairs; no strategy to ask for.
extern const Matcher kEachWithEach;

// Nothing where no strategy has this name.
const Matcher* matcher_named(std::string_view name);

Result<Matching> match(const Catalog& a, const Catalog& b, const MatchOptions& options = {});

// One input alone: each tensor with each other, up to so many pairs.
inline constexpr std::size_t kPairsWithinMax = 20'000;
Matching match_within(const Catalog& catalog);

}  // namespace tensordiff
