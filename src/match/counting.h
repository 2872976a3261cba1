// How two models number their blocks: which number in the names of A gives which in those of B.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tensordiff {

using Numbers = std::vector<uint64_t>;

// A name as a pattern with '#' for numbers, and the numbers.
struct Parsed {
  std::string pattern;
  Numbers numbers;

  auto operator<=>(const Parsed&) const = default;
};

Parsed parse(const std::string& name);

// The numbers in both names of a pair.
struct Member {
  std::size_t pair;
  Numbers a, b;
};

// A path up to and with its number in this place: "decoder.up_blocks.#".
std::string path_to(const std::string& pattern, std::size_t slot);

// How the numbers of blocks are counted, as all tensors inside of them show together. A kind that
// only some blocks have (a shortcut, an upsampler) would not show it alone.
class Counting {
 public:
  using Paths = std::pair<std::string, std::string>;  // Up to the number, in A and B.
  using Map = std::map<uint64_t, uint64_t>;

  void add(const std::string& a, const std::string& b, const Member& member);

  // The map that most tensors of each block follow, where it runs one way through all blocks.
  const Map* of(const Paths& paths);

  // Whether every pair with these paths does, as far as the map goes.
  bool all_follow(const Paths& paths, const Map& map) const;

  // Whether nearly all pairs of other kinds follow the map of these paths, whatever this one does.
  bool is_sure(const Paths& paths, const Map& map, std::size_t own, std::size_t own_agreeing) const;

 private:
  using Votes = std::map<uint64_t, std::map<uint64_t, std::size_t>>;

  static Map most(const Votes& votes);

  std::map<Paths, Votes> votes_;
  std::map<Paths, Map> maps_;
};

// A reversal of two numbers is an exchange; from three on it is a way of counting.
inline constexpr std::size_t kReversedMin = 3;

}  // namespace tensordiff
