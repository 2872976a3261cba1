#include "match/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

bool is_inside(const NumberedName& part, const NumberedName& whole) {
  return std::ranges::mismatch(part.numbers, whole.numbers).in2 == whole.numbers.end();
}

// What a part is called beside others of its whole: without the numbers of the whole.
NumberedName inside(const std::string& part, const NumberedName& whole) {
  NumberedName name = numbered_name(part);
  const auto shared = std::ranges::mismatch(name.numbers, whole.numbers).in1;
  name.numbers.erase(name.numbers.begin(), shared);
  return name;
}

// What was found, as names: "blk.#.fused" holds "h.#.x", "h.#.y" and "h.#.z", or the experts 0 to 7
// of "h.#.experts.#".
using Parts = std::vector<NumberedName>;
using FusionRules = std::map<std::string, std::map<Parts, std::size_t>>;

std::size_t count_inside(const Fusion& fusion, const FreeSide& wholes, const FreeSide& separate) {
  const NumberedName whole = numbered_name(wholes.names[fusion.whole]);
  return static_cast<std::size_t>(std::ranges::count_if(fusion.parts, [&](std::size_t part) {
    return is_inside(numbered_name(separate.names[part]), whole);
  }));
}

FusionRules rules_of(const std::vector<Fusion>& fusions, const FreeSide& wholes,
                     const FreeSide& separate) {
  FusionRules rules;
  for (const Fusion& fusion : fusions) {
    const NumberedName whole = numbered_name(wholes.names[fusion.whole]);
    if (whole.numbers.empty() || count_inside(fusion, wholes, separate) != fusion.parts.size())
      continue;
    Parts parts;
    for (const std::size_t part : fusion.parts)
      parts.push_back(inside(separate.names[part], whole));
    ++rules[whole.pattern][std::move(parts)];
  }
  return rules;
}

// What most fusions of one kind say; nothing where several are as frequent.
const Parts* rule_for(const FusionRules& rules, const std::string& pattern) {
  const auto found = rules.find(pattern);
  if (found == rules.end()) return nullptr;
  const auto best =
      std::ranges::max_element(found->second, {}, [](const auto& rule) { return rule.second; });
  const auto as_many = std::ranges::count_if(
      found->second, [&](const auto& rule) { return rule.second == best->second; });
  return as_many == 1 ? &best->first : nullptr;
}

// The parts of a whole as an order of their names: "1 0 2" where the second comes first.
struct Order {
  std::vector<NumberedName> names;  // Sorted.
  std::vector<std::size_t> places;  // Of the names, in the order in which they are stored.
};

Order order_of(const Fusion& fusion, const FreeSide& wholes, const FreeSide& separate) {
  const NumberedName whole = numbered_name(wholes.names[fusion.whole]);
  std::vector<NumberedName> stored;
  for (const std::size_t part : fusion.parts) {
    stored.push_back(inside(separate.names[part], whole));
    // As numbers: 10 comes after 9.
    for (std::string& digits : stored.back().numbers)
      digits.insert(0, 20 - std::min<std::size_t>(20, digits.size()), '0');
  }
  Order order{stored, {}};
  std::ranges::sort(order.names);
  for (const NumberedName& name : stored)
    order.places.push_back(
        static_cast<std::size_t>(std::ranges::find(order.names, name) - order.names.begin()));
  return order;
}

}  // namespace

void follow_rules(const FreeSide& wholes, const FreeSide& separate, std::vector<Fusion>& fusions) {
  const FusionRules rules = rules_of(fusions, wholes, separate);
  std::erase_if(fusions, [&](const Fusion& fusion) {
    const std::size_t own = count_inside(fusion, wholes, separate);
    return rule_for(rules, numbered_name(wholes.names[fusion.whole]).pattern) &&
           own < fusion.parts.size() && 2 * own >= fusion.parts.size();
  });
  std::set<std::size_t> used_wholes, used_parts;
  for (const Fusion& fusion : fusions) {
    used_wholes.insert(fusion.whole);
    used_parts.insert(fusion.parts.begin(), fusion.parts.end());
  }
  std::map<NumberedName, std::size_t> parts;
  for (const std::size_t part : separate.free)
    if (!used_parts.contains(part)) parts.emplace(numbered_name(separate.names[part]), part);
  for (const std::size_t whole : wholes.free) {
    const NumberedName name = numbered_name(wholes.names[whole]);
    const Parts* rule = used_wholes.contains(whole) ? nullptr : rule_for(rules, name.pattern);
    if (!rule) continue;
    Fusion fusion{whole, {}};
    uint64_t elements = 0;
    for (const NumberedName& each : *rule) {
      NumberedName wanted{each.pattern, name.numbers};
      wanted.numbers.insert(wanted.numbers.end(), each.numbers.begin(), each.numbers.end());
      const auto part = parts.find(wanted);
      if (part == parts.end()) break;
      fusion.parts.push_back(part->second);
      elements += separate.catalog.tensors[part->second].elements();
    }
    if (fusion.parts.size() == rule->size() && elements == wholes.catalog.tensors[whole].elements())
      fusions.push_back(std::move(fusion));
  }
}

// A converter stores the parts of all layers in one order. Where values show another one in some of
// them, they are paired by the order of the others: to pair them by value would hide a mistake.
// Experts are counted alike in all tensors of a model; other parts in those of one name.
void put_in_order(const FreeSide& wholes, const FreeSide& separate, std::vector<Fusion>& fusions,
                  std::vector<std::string>& notes) {
  using PartsKind = std::pair<std::string, std::vector<std::string>>;
  std::map<PartsKind, std::map<std::vector<std::size_t>, std::size_t>> votes;
  std::vector<std::pair<PartsKind, Order>> orders;
  for (const Fusion& fusion : fusions) {
    Order order = order_of(fusion, wholes, separate);
    const bool numbered = std::ranges::all_of(order.names, [&](const NumberedName& name) {
      return name.pattern == order.names[0].pattern;
    });
    PartsKind kind{numbered ? "" : numbered_name(wholes.names[fusion.whole]).pattern, {}};
    for (const NumberedName& name : order.names)
      kind.second.push_back(numbered ? "" : name.pattern);
    ++votes[kind][order.places];
    orders.emplace_back(std::move(kind), std::move(order));
  }
  std::size_t changed = 0;
  for (std::size_t i = 0; i < fusions.size(); ++i) {
    const auto& [kind, order] = orders[i];
    // Of two that are as frequent, the first is that of the names.
    const std::vector<std::size_t>& rule =
        std::ranges::max_element(votes.at(kind), {}, [](const auto& vote) {
          return vote.second;
        })->first;
    if (order.places == rule) continue;
    std::vector<std::size_t> by_name(order.places.size());
    for (std::size_t k = 0; k < by_name.size(); ++k) by_name[order.places[k]] = fusions[i].parts[k];
    for (std::size_t k = 0; k < rule.size(); ++k) fusions[i].parts[k] = by_name[rule[k]];
    ++changed;
  }
  if (changed > 0)
    notes.push_back(fmt::format(
        "{} {} parts in another order than the other layers: paired by the order of the others",
        human_count(changed), changed == 1 ? "fused tensor has its" : "fused tensors have their"));
}

}  // namespace tensordiff
