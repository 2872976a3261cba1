// The attention heads of a model, layer by layer, as far as its tensors and config tell them apart.
//
// Which rows or columns belong to a head depends on how many heads there are, and weights alone do
// not say that: without a config there are no heads to speak of.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/group_sums.h"
#include "analyze/study.h"

namespace tensordiff {

// One projection with its heads side by side.
struct HeadMatrix {
  AlignedPair views;
  bool along_rows = true;  // Heads follow each other along the first axis; else along the second.
  uint64_t heads = 0;
  uint64_t head_size = 0;
  std::vector<GroupSum> sums;  // Of each head.
};

struct AttentionLayer {
  int64_t depth = 0;
  std::optional<HeadMatrix> q, k, v, o;  // k and v may have fewer heads, each shared by several q.

  // Sums of what head h uses of each: its own q and o, its share of k and v.
  GroupSum head(uint64_t h) const;
  uint64_t heads() const { return q ? q->heads : 0; }
};

struct Attention {
  std::optional<uint64_t> heads, kv_heads;
  std::vector<AttentionLayer> layers;
  std::string missing;               // What would have to be known; empty when it is.
  std::vector<std::string> skipped;  // Layouts that are not understood, by name.
};

Attention attention_of(const Study& study);

// The sums of the head of another projection that serves head h of q.
const GroupSum& shared(const HeadMatrix& matrix, uint64_t h, uint64_t heads);

}  // namespace tensordiff
