// How the two sides are called: 'a' and 'b' in code and JSON, A and B in sentences.

#pragma once

namespace tensordiff {

inline char capital(char side) { return side == 'a' ? 'A' : 'B'; }

}  // namespace tensordiff
