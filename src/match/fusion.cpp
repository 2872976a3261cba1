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

// The numbers that most parts share with their whole: those of the layers around it. A number in
// the name of the model may stand before them: "swinv2.layers.0".
struct Shared {
  std::size_t before = 0, count = 0;

  auto operator<=>(const Shared&) const = default;
};

Shared shared_numbers(const Fusion& fusion, const FreeSide& wholes, const FreeSide& separate) {
  const std::vector<std::string> own = numbered_name(wholes.names[fusion.whole]).numbers;
  for (const std::size_t before : {0, 1}) {
    std::vector<std::size_t> counts(own.size() + 1, 0);
    for (const std::size_t part : fusion.parts) {
      const std::vector<std::string> numbers = numbered_name(separate.names[part]).numbers;
      for (std::size_t i = 0; i < own.size() && i + before < numbers.size(); ++i) {
        if (numbers[i + before] != own[i]) break;
        ++counts[i];
      }
    }
    Shared shared{before, 0};
    while (2 * counts[shared.count] > fusion.parts.size()) ++shared.count;
    if (shared.count > 0) return shared;
  }
  return {};
}

// What a part is called beside others of its whole: without the numbers that they share.
NumberedName inside(NumberedName name, const Shared& shared) {
  const std::size_t first = std::min(shared.before, name.numbers.size());
  const std::size_t last = std::min(first + shared.count, name.numbers.size());
  const auto begin = name.numbers.begin();
  name.numbers.erase(begin + static_cast<ptrdiff_t>(first), begin + static_cast<ptrdiff_t>(last));
  return name;
}

// What was found, as names: "blk.#.fused" holds "h.#.x", "h.#.y" and "h.#.z", or the experts 0 to 7
// of "h.#.experts.#".
struct Rule {
  Shared shared;
  std::vector<NumberedName> parts;

  auto operator<=>(const Rule&) const = default;
};
using FusionRules = std::map<std::string, std::map<Rule, std::size_t>>;

// The parts that a rule gives to a whole.
std::vector<NumberedName> parts_by(const Rule& rule, const NumberedName& whole) {
  std::vector<NumberedName> parts;
  const auto first = whole.numbers.begin();
  const auto last = first + static_cast<ptrdiff_t>(rule.shared.count);
  for (NumberedName part : rule.parts) {
    const std::size_t at = std::min(rule.shared.before, part.numbers.size());
    part.numbers.insert(part.numbers.begin() + static_cast<ptrdiff_t>(at), first, last);
    parts.push_back(std::move(part));
  }
  return parts;
}

FusionRules rules_of(const std::vector<Fusion>& fusions, const FreeSide& wholes,
                     const FreeSide& separate) {
  FusionRules rules;
  for (const Fusion& fusion : fusions) {
    const NumberedName whole = numbered_name(wholes.names[fusion.whole]);
    Rule rule{shared_numbers(fusion, wholes, separate), {}};
    std::vector<NumberedName> names;
    for (const std::size_t part : fusion.parts) {
      names.push_back(numbered_name(separate.names[part]));
      rule.parts.push_back(inside(names.back(), rule.shared));
    }
    // All of them are parts of this layer.
    if (rule.shared.count > 0 && parts_by(rule, whole) == names)
      ++rules[whole.pattern][std::move(rule)];
  }
  return rules;
}

// What most fusions of one kind say; nothing where several are as frequent.
const Rule* rule_for(const FusionRules& rules, const std::string& pattern) {
  const auto found = rules.find(pattern);
  if (found == rules.end()) return nullptr;
  const auto best =
      std::ranges::max_element(found->second, {}, [](const auto& rule) { return rule.second; });
  const auto as_many = std::ranges::count_if(
      found->second, [&](const auto& rule) { return rule.second == best->second; });
  return as_many == 1 ? &best->first : nullptr;
}

// Whether a whole holds most of the parts that its rule gives it, and others beside them.
bool is_stray(const Fusion& fusion, const FreeSide& wholes, const FreeSide& separate,
              const FusionRules& rules) {
  const NumberedName whole = numbered_name(wholes.names[fusion.whole]);
  const Rule* rule = rule_for(rules, whole.pattern);
  if (!rule) return false;
  const std::vector<NumberedName> wanted = parts_by(*rule, whole);
  const auto own =
      static_cast<std::size_t>(std::ranges::count_if(fusion.parts, [&](std::size_t part) {
        return std::ranges::find(wanted, numbered_name(separate.names[part])) != wanted.end();
      }));
  return own < fusion.parts.size() && 2 * own >= fusion.parts.size();
}

// The parts of a whole as an order of their names: "1 0 2" where the second comes first.
struct Order {
  std::vector<NumberedName> names;  // Sorted.
  std::vector<std::size_t> places;  // Of the names, in the order in which they are stored.
};

Order order_of(const Fusion& fusion, const FreeSide& wholes, const FreeSide& separate) {
  const Shared shared = shared_numbers(fusion, wholes, separate);
  std::vector<NumberedName> stored;
  for (const std::size_t part : fusion.parts) {
    stored.push_back(inside(numbered_name(separate.names[part]), shared));
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
  std::erase_if(fusions,
                [&](const Fusion& fusion) { return is_stray(fusion, wholes, separate, rules); });
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
    const Rule* rule = used_wholes.contains(whole) ? nullptr : rule_for(rules, name.pattern);
    if (!rule) continue;
    Fusion fusion{whole, {}};
    uint64_t elements = 0;
    for (const NumberedName& wanted : parts_by(*rule, name)) {
      const auto part = parts.find(wanted);
      if (part == parts.end()) break;
      fusion.parts.push_back(part->second);
      elements += separate.catalog.tensors[part->second].elements();
    }
    if (fusion.parts.size() == rule->parts.size() &&
        elements == wholes.catalog.tensors[whole].elements())
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
