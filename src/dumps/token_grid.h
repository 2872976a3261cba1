// How tokens lie in the tensors of one dump.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

constexpr uint64_t kTokenPairsMax = 1 << 24;  // Of rows of both sides: a second or so.

// How the tokens lie in the tensors of a side: [batch, length, …], or [tokens, …].
struct TokenGrid {
  uint64_t batch = 1, length = 0;
  bool packed = true;
  const Tensor* embedding = nullptr;

  uint64_t tokens() const { return batch * length; }
};

// What tells tokens apart: the embedding, which is the input of the first layer, or else what that
// layer makes of each token by itself.
enum class TokenKey : uint8_t { stream, norm, value };

// Nothing where no tensor is of this kind, or where it does not have the tokens of the dump.
std::optional<TokenGrid> grid_of(const Catalog& catalog, TokenKey key);

// Sequences and positions as the shape has them. A grid has at most kTokenPairsMax tokens here.
std::vector<Token> tokens_in(const TokenGrid& grid);

// The tensor with tokens first, all in one row; nothing where it has none.
std::optional<View> by_tokens(const View& view, const TokenGrid& grid);

}  // namespace tensordiff
