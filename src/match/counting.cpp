#include "match/counting.h"

#include <charconv>

#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

// Pairs of other kinds to one of a kind before they outvote it, and the share of them that agrees:
// two kinds, of which a mistake in a third of the layers of one leaves five sixths.
constexpr std::size_t kOthersMin = 2;
constexpr double kOthersAgree = 0.8;

}  // namespace

Parsed parse(const std::string& name) {
  NumberedName numbered = numbered_name(name);
  Parsed parsed{std::move(numbered.pattern), {}};
  for (const std::string& digits : numbered.numbers) {
    uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    parsed.numbers.push_back(number);
  }
  return parsed;
}

std::string path_to(const std::string& pattern, std::size_t slot) {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= slot && at != std::string::npos; ++i)
    at = pattern.find('#', i == 0 ? 0 : at + 1);
  return at == std::string::npos ? pattern : pattern.substr(0, at + 1);
}

void Counting::add(const std::string& a, const std::string& b, const Member& member) {
  for (std::size_t i = 0; i < member.a.size(); ++i)
    for (std::size_t j = 0; j < member.b.size(); ++j)
      ++votes_[{path_to(a, i), path_to(b, j)}][member.a[i]][member.b[j]];
}

const Counting::Map* Counting::of(const Paths& paths) {
  const auto [found, fresh] = maps_.try_emplace(paths);
  if (fresh) found->second = most(votes_.at(paths));
  return found->second.empty() ? nullptr : &found->second;
}

bool Counting::all_follow(const Paths& paths, const Map& map) const {
  return std::ranges::all_of(votes_.at(paths), [&](const auto& vote) {
    const auto found = map.find(vote.first);
    return found == map.end() ||
           (vote.second.size() == 1 && vote.second.begin()->first == found->second);
  });
}

bool Counting::is_sure(const Paths& paths, const Map& map, std::size_t own,
                       std::size_t own_agreeing) const {
  std::size_t all = 0, agreeing = 0;
  for (const auto& [from, targets] : votes_.at(paths))
    for (const auto& [to, count] : targets) {
      all += count;
      if (map.at(from) == to) agreeing += count;
    }
  const auto others = static_cast<double>(all - own);
  return all - own >= kOthersMin * own &&
         static_cast<double>(agreeing - own_agreeing) >= kOthersAgree * others;
}

Counting::Map Counting::most(const Votes& votes) {
  Map map;
  for (const auto& [from, targets] : votes) {
    std::size_t all = 0;
    for (const auto& [to, count] : targets) all += count;
    const auto best =
        std::ranges::max_element(targets, {}, [](const auto& target) { return target.second; });
    if (2 * best->second <= all) return {};
    map[from] = best->first;
  }
  const auto falls = [&](const auto& wrong) {
    return std::adjacent_find(map.begin(), map.end(), [&](const auto& x, const auto& y) {
             return !wrong(x.second, y.second);
           }) == map.end();
  };
  const bool rising = falls(std::less<>());
  const bool falling = map.size() >= kReversedMin && falls(std::greater<>());
  return rising || falling ? map : Map();
}

}  // namespace tensordiff
