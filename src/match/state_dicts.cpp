#include "match/state_dicts.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "match/auxiliary.h"
#include "match/signature.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTensorsMin = 3;  // That two state dicts share.
constexpr std::size_t kLooks = 24;      // Tensors whose values are looked at.
constexpr uint64_t kReadMax = 1 << 20;  // Of one of these.
constexpr double kClearly = 0.5;        // How much nearer the nearest is than the next.

// One of them: its tensors by what is left of their names.
struct StateDict {
  std::string root;  // "state_dict_ema."
  std::map<std::string, std::size_t> tensors;
};

std::string rest_of(std::string_view name, std::size_t root) {
  name.remove_prefix(root);
  for (const std::string_view wrapper : {"module.", "_orig_mod."})
    if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
  return std::string(name);
}

std::vector<StateDict> dicts_of(const Catalog& catalog) {
  std::map<std::string, StateDict> by_root;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const Tensor& tensor = catalog.tensors[i];
    const std::size_t dot = tensor.name.find_first_of("./");
    if (!tensor.auxiliary.empty() || dot == std::string::npos) continue;
    StateDict& dict = by_root[tensor.name.substr(0, dot + 1)];
    dict.root = tensor.name.substr(0, dot + 1);
    dict.tensors.emplace(rest_of(tensor.name, dot + 1), i);
  }
  std::vector<StateDict> dicts;
  for (auto& [root, dict] : by_root) dicts.push_back(std::move(dict));
  return dicts;
}

// Whether most of the smaller is in the larger, by how many tensors they share.
bool are_copies(std::size_t shared, const StateDict& x, const StateDict& y) {
  return shared >= kTensorsMin && 10 * shared >= 9 * std::min(x.tensors.size(), y.tensors.size()) &&
         2 * shared >= std::max(x.tensors.size(), y.tensors.size());
}

// An encoder and its decoder may have the same names and shapes, and are one model.
bool are_towers(const Catalog& catalog, const StateDict& x, const StateDict& y) {
  const auto tower = [&](const StateDict& dict) {
    return catalog.tensors[dict.tensors.begin()->second].place.tower;
  };
  return tower(x) != Tower::none && tower(y) != Tower::none && tower(x) != tower(y);
}

// Those that are copies of the first that has any.
std::vector<StateDict> copies_in(const Catalog& catalog) {
  std::vector<StateDict> dicts = dicts_of(catalog);
  std::erase_if(dicts, [](const StateDict& dict) { return dict.tensors.size() < kTensorsMin; });
  // Which of them have a tensor of this name and shape.
  std::map<std::pair<std::string_view, Shape>, std::vector<std::size_t>> holders;
  const auto key_of = [&](const auto& entry) {
    return std::pair(std::string_view(entry.first), catalog.tensors[entry.second].view.shape);
  };
  for (std::size_t i = 0; i < dicts.size(); ++i)
    for (const auto& entry : dicts[i].tensors) holders[key_of(entry)].push_back(i);
  for (std::size_t first = 0; first < dicts.size(); ++first) {
    std::map<std::size_t, std::size_t> shared;
    for (const auto& entry : dicts[first].tensors)
      for (const std::size_t other : holders[key_of(entry)]) ++shared[other];
    std::vector<StateDict> found{dicts[first]};
    for (const auto& [other, count] : shared)
      if (other != first && are_copies(count, dicts[first], dicts[other]) &&
          !are_towers(catalog, dicts[first], dicts[other]))
        found.push_back(dicts[other]);
    if (found.size() > 1) return found;
  }
  return {};
}

// Signatures of the other side by their number of elements, as they are needed.
class Others {
 public:
  explicit Others(const Catalog& catalog) : catalog_(catalog) {
    for (std::size_t i = 0; i < catalog.tensors.size(); ++i)
      by_size_.emplace(catalog.tensors[i].elements(), i);
  }

  // How far the nearest is, at most 1.
  double nearest(const Signature& signature) {
    double best = 1;
    const auto [first, last] = by_size_.equal_range(signature.elements);
    std::size_t looks = 0;
    for (auto at = first; at != last && looks < kLooks * 8; ++at, ++looks) {
      auto [found, is_new] = known_.try_emplace(at->second);
      if (is_new) found->second = signature_of(catalog_.tensors[at->second], kReadMax);
      best = std::min(best, distance(signature, found->second));
    }
    return best;
  }

 private:
  const Catalog& catalog_;
  std::multimap<uint64_t, std::size_t> by_size_;
  std::map<std::size_t, Signature> known_;
};

// How far the tensors of one of them are from the other side, on the mean; 1 is far.
double distance_of(const Catalog& catalog, const StateDict& dict, Others& others) {
  double sum = 0;
  std::size_t looks = 0;
  for (const auto& [rest, tensor] : dict.tensors) {
    if (looks == kLooks) break;
    const Signature signature = signature_of(catalog.tensors[tensor], kReadMax);
    if (!signature.varied) continue;
    sum += others.nearest(signature);
    ++looks;
  }
  return looks == 0 ? 1 : sum / static_cast<double>(looks);
}

// Whether the other side holds about as much as one of them: parts of a model may have the same
// names and shapes, and the other side has all.
bool holds_one(const Catalog& other, const Catalog& catalog, const StateDict& dict) {
  double held = 0, one = 0;
  for (const Tensor& tensor : other.tensors)
    if (tensor.auxiliary.empty()) held += static_cast<double>(tensor.elements());
  for (const auto& [rest, tensor] : dict.tensors)
    one += static_cast<double>(catalog.tensors[tensor].elements());
  return held < 1.5 * one;
}

std::string bare(const std::string& root) { return printable(root.substr(0, root.size() - 1)); }

}  // namespace

std::optional<std::string> choose_state_dict(Catalog& catalog, std::string_view side,
                                             const Catalog& other, bool read_values) {
  const std::vector<StateDict> copies = copies_in(catalog);
  if (copies.empty() || !holds_one(other, catalog, copies[0]) || !copies_in(other).empty())
    return std::nullopt;
  std::vector<double> apart(copies.size(), 1);
  Others others(other);
  for (std::size_t i = 0; read_values && i < copies.size(); ++i)
    apart[i] = distance_of(catalog, copies[i], others);
  const auto best = static_cast<std::size_t>(std::ranges::min_element(apart) - apart.begin());
  bool clear = apart[best] < 1;
  for (std::size_t i = 0; i < copies.size(); ++i)
    clear = clear && (i == best || apart[best] <= kClearly * apart[i]);

  std::string names;
  std::set<std::string> taken;
  for (const Tensor& tensor : catalog.tensors) taken.insert(tensor.name);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == copies.size() ? " and " : ", ") + bare(copies[i].root);
    for (const auto& [rest, tensor] : copies[i].tensors) {
      Tensor& each = catalog.tensors[tensor];
      if (i != best) {
        each.auxiliary = "other state dict";
      } else if (each.known_as.empty() && !taken.contains(rest)) {
        each.known_as = rest;
      }
    }
  }
  return fmt::format("{} holds {} state dicts, {}: {} is compared, {}", side, copies.size(), names,
                     bare(copies[best].root),
                     clear ? "whose values are nearest to the other side's"
                           : "the first, because the values do not tell which is meant");
}

std::vector<std::string> set_aside(Catalog& a, Catalog& b, bool read_values) {
  mark_auxiliary(a, b);
  std::vector<std::string> notes;
  const auto choose = [&](Catalog& side, std::string_view name, const Catalog& other) {
    std::optional<std::string> note = choose_state_dict(side, name, other, read_values);
    if (!note) return;
    notes.push_back(std::move(*note));
    read_places(side);  // Its tensors are known by other names now.
  };
  choose(a, "A", b);
  choose(b, "B", a);
  return notes;
}

}  // namespace tensordiff
