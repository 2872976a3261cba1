// From the records of a layout to the Catalog that is compared.

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "align/view.h"
#include "align/whole.h"
#include "base/suggest.h"
#include "base/text.h"
#include "dumps/experts.h"
#include "dumps/hidden_states.h"
#include "dumps/layout.h"
#include "dumps/modules.h"
#include "dumps/passes.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

using Indexes = std::vector<uint64_t>;

// The axis of a batch of one, where tensors of several passes have it beside their tokens:
// [1, tokens, …], or [tokens, 1, …] of Megatron. One token of one sequence is both.
std::optional<std::size_t> batch_axis(const Catalog& catalog, const std::vector<Item>& items) {
  std::set<int32_t> passes;
  std::size_t first = 0, second = 0, both = 0, matrices = 0;
  for (const Item& item : items) {
    const Shape& shape = catalog.tensors[item.tensors[0]].view.shape;
    passes.insert(item.pass);
    matrices += shape.size() == 2;
    if (shape.size() < 3 || item.part || (shape[0] != 1 && shape[1] != 1)) continue;
    ++(shape[0] == shape[1] ? both : shape[0] == 1 ? first : second);
  }
  if (passes.size() < 2 || std::max(first, second) + both <= matrices) return std::nullopt;
  return first >= second ? 0 : 1;
}

// The rows that most matrices of each pass have: its tokens, where nothing else tells. In dumps
// whose tensors have a batch of several, rows are no tokens.
std::map<int32_t, uint64_t> usual_rows(const Catalog& catalog, const std::vector<Item>& items,
                                       std::optional<std::size_t> batch) {
  std::map<int32_t, std::map<uint64_t, std::size_t>> seen;
  std::size_t matrices = 0;
  for (const Item& item : items) {
    const Shape& shape = catalog.tensors[item.tensors[0]].view.shape;
    const bool batched = batch && !item.part && shape.size() == 3 && shape[*batch] == 1;
    if (shape.size() != (item.part ? 3 : 2) && !batched) continue;
    ++matrices;
    ++seen[item.pass][shape[batched ? 1 - *batch : 0]];
  }
  std::map<int32_t, uint64_t> rows;
  if (2 * matrices < items.size()) return rows;
  for (const auto& [pass, counts] : seen)
    rows[pass] =
        std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  return rows;
}

// The passes of one result, along their tokens.
class Passes {
 public:
  explicit Passes(RunTokens run) : run_(std::move(run)) {
    for (uint64_t i = 0; i < run_.rows.size(); ++i)
      by_row_[run_.rows[i].pass][run_.rows[i].row] = i;
    for (const auto& [pass, tokens] : by_row_) {
      Indexes& last = last_of_[pass];
      int32_t sequence = -1;
      for (const auto& [row, token] : tokens) {
        if (run_.tokens[token].sequence != sequence) last.push_back(token);
        sequence = run_.tokens[token].sequence;
        last.back() = token;
      }
    }
  }

  const std::vector<Token>& tokens() const { return run_.tokens; }
  const PassParts& parts() const { return run_.parts; }

  // "; they start at positions 0, 8 and 16", of one sequence and a few passes.
  std::string starts_text() const {
    constexpr std::size_t kPassesMax = 8;  // More than a reader takes in.
    if (by_row_.size() < 2 || by_row_.size() > kPassesMax) return "";
    std::string text;
    for (const auto& [pass, rows] : by_row_) {
      const Token& first = run_.tokens[rows.begin()->second];
      if (first.sequence != 0) return "";
      text += fmt::format("{}{}", text.empty() ? "" : ", ", first.position);
    }
    return fmt::format("; they start at positions {}", text);
  }

  // Nothing where the first axis is neither of tokens nor of sequences in some pass.
  struct Joined {
    View view;
    Indexes tokens;
  };
  std::optional<Joined> join(const std::map<int32_t, View>& views) const {
    if (views.empty() || !fit(views)) return std::nullopt;
    std::map<uint64_t, std::pair<const View*, uint64_t>> rows;  // By token.
    for (const auto& [pass, view] : views)
      if (!add_rows(pass, view, rows)) return std::nullopt;
    Joined joined;
    std::vector<View> pieces;
    for (auto at = rows.begin(); at != rows.end();) {
      const auto [view, first] = at->second;
      uint64_t count = 0;
      for (; at != rows.end() && at->second == std::pair(view, first + count); ++at, ++count)
        joined.tokens.push_back(at->first);
      pieces.push_back(narrowed(*view, 0, first, count));
    }
    if (pieces.empty()) return std::nullopt;
    joined.view = pieces.size() == 1 ? std::move(pieces[0]) : concatenated(pieces, 0);
    return joined;
  }

 private:
  static bool fit(const std::map<int32_t, View>& views) {
    std::vector<View> all;
    for (const auto& [pass, view] : views) {
      if (view.shape.empty()) return false;
      all.push_back(view);
    }
    return all.size() == 1 || fit_along(all, 0);
  }

  bool add_rows(int32_t pass, const View& view,
                std::map<uint64_t, std::pair<const View*, uint64_t>>& rows) const {
    const auto tokens = run_.tokens_of.find(pass);
    const auto last = last_of_.find(pass);
    if (tokens == run_.tokens_of.end() || last == last_of_.end()) return false;
    const uint64_t size = view.shape[0];
    // CUDA graphs add rows behind the tokens of all tensors, which mean nothing.
    const bool padded = size > tokens->second && size == run_.rows_of.at(pass);
    if (size == tokens->second || padded) {
      for (const auto& [row, token] : by_row_.at(pass)) rows.emplace(token, std::pair(&view, row));
      return true;
    }
    // Sequences behind those that have an output are rows of padding, of one token each.
    if (size == 0 || size > last->second.size() || view.shape.size() != 2) return false;
    for (uint64_t i = size; i < last->second.size(); ++i)
      if (run_.tokens[last->second[i]].position != 0) return false;
    for (uint64_t i = 0; i < size; ++i) rows.emplace(last->second[i], std::pair(&view, i));
    return true;
  }

  RunTokens run_;
  std::map<int32_t, std::map<uint64_t, uint64_t>> by_row_;  // The token of each row of a pass.
  std::map<int32_t, Indexes> last_of_;  // The last token of each sequence in a pass, by its rows.
};

class Arranging {
 public:
  Arranging(Catalog& catalog, const Layout& layout) : catalog_(catalog), layout_(layout) {}

  std::vector<std::string> run() {
    Dump dump = layout_.read(catalog_);
    std::vector<Item> items = items_of(catalog_, dump);
    if (items.empty()) return {};
    batch_ = batch_axis(catalog_, items);
    const std::map<int32_t, uint64_t> rows = usual_rows(catalog_, items, batch_);
    std::map<int32_t, PassFacts> facts = facts_of(catalog_, dump);
    std::erase_if(facts, [&](const auto& pass) { return !rows.contains(pass.first); });
    for (const auto& [pass, count] : rows) {
      facts[pass].rows = count;
      take_share(facts[pass]);
    }
    const Passes passes(tokens_of(facts));

    std::set<int32_t> ranks, numbers;
    for (const Item& item : items) ranks.insert(item.rank), numbers.insert(item.pass);
    many_ranks_ = ranks.size() > 1;
    std::vector<Tensor> tensors = joined(items, passes);
    catalog_.tensors = std::move(tensors);
    catalog_.tokens = passes.tokens();
    keep_passes(passes.parts(), catalog_);
    catalog_.layout = layout_.name;
    make_names_unique(catalog_);
    read_places(catalog_);
    order_experts(catalog_);
    if (numbers.size() > 1)
      dump.notes.push_back(fmt::format("{} passes of {} were joined along their {} tokens{}",
                                       numbers.size(), printable(catalog_.path),
                                       catalog_.tokens.size(), passes.starts_text()));
    return std::move(dump.notes);
  }

 private:
  std::string on_rank(const Item& item, const std::string& name) const {
    return many_ranks_ && !name.empty() ? fmt::format("rank_{}/{}", item.rank, name) : name;
  }

  View view_of(const Item& item) const {
    if (item.part) {
      const auto [axis, index] = *item.part;
      return squeezed(narrowed(catalog_.tensors[item.tensors[0]].view, axis, index, 1), axis);
    }
    std::vector<View> terms;
    for (const std::size_t tensor : item.tensors) {
      const View& view = catalog_.tensors[tensor].view;
      const bool batched = batch_ && view.shape.size() > 2 && view.shape[*batch_] == 1;
      terms.push_back(batched ? squeezed(view, *batch_) : view);
    }
    return terms.size() == 1 ? std::move(terms[0]) : summed(terms);
  }

  Tensor tensor_of(const Item& item, View view) const {
    Tensor tensor = catalog_.tensors[item.tensors[0]];
    tensor.name = on_rank(item, item.name);
    tensor.known_as = on_rank(item, item.known_as);
    tensor.view = std::move(view);
    for (const std::size_t part : item.tensors)
      if (tensor.fault.empty()) tensor.fault = catalog_.tensors[part].fault;
    return tensor;
  }

  // In the order of the first pass that has each.
  std::vector<Tensor> joined(const std::vector<Item>& items, const Passes& passes) const {
    std::map<std::pair<int32_t, std::string_view>, std::vector<const Item*>> by_name;
    for (const Item& item : items) by_name[{item.rank, item.name}].push_back(&item);
    std::vector<Tensor> tensors;
    for (const Item& item : items) {
      const std::vector<const Item*>& same = by_name[{item.rank, item.name}];
      if (same[0] != &item) continue;
      if (!join_passes(same, passes, tensors)) keep_apart(same, tensors);
    }
    return tensors;
  }

  bool join_passes(const std::vector<const Item*>& same, const Passes& passes,
                   std::vector<Tensor>& tensors) const {
    std::map<int32_t, View> views;
    for (const Item* item : same) {
      if (!catalog_.tensors[item->tensors[0]].fault.empty()) return false;
      if (!views.emplace(item->pass, view_of(*item)).second) return false;
    }
    std::optional<Passes::Joined> joined = passes.join(views);
    if (!joined) return false;
    Tensor tensor = tensor_of(*same[0], std::move(joined->view));
    if (joined->tokens.size() != passes.tokens().size())
      tensor.tokens = std::make_shared<const Indexes>(std::move(joined->tokens));
    tensors.push_back(std::move(tensor));
    return true;
  }

  void keep_apart(const std::vector<const Item*>& same, std::vector<Tensor>& tensors) const {
    for (const Item* item : same) {
      Tensor tensor = tensor_of(*item, view_of(*item));
      // A mark that naming/ reads as the number of the pass.
      if (same.size() > 1) {
        tensor.name = fmt::format("pass_{}/{}", item->pass, tensor.name);
        if (!tensor.known_as.empty())
          tensor.known_as = fmt::format("pass_{}/{}", item->pass, tensor.known_as);
      }
      tensors.push_back(std::move(tensor));
    }
  }

  Catalog& catalog_;
  const Layout& layout_;
  bool many_ranks_ = false;
  std::optional<std::size_t> batch_;  // The axis of a batch of one, of several passes.
};

std::vector<std::string_view> layout_names() {
  std::vector<std::string_view> names;
  for (const Layout* layout : layouts::kAll) names.push_back(layout->name);
  names.emplace_back("none");
  return names;
}

}  // namespace

Result<std::vector<std::string>> arrange(Catalog& catalog, std::string_view layout) {
  if (layout == "none") return std::vector<std::string>();
  for (const Layout* each : layouts::kAll)
    if (layout.empty() ? each->recognises(catalog) : each->name == layout)
      return Arranging(catalog, *each).run();
  if (!layout.empty())
    return Error("no layout '{}'{}", printable(layout), did_you_mean(layout, layout_names()));
  return std::vector<std::string>();
}

Result<std::vector<std::string>> arrange(Catalog& a, std::optional<Catalog>& b,
                                         std::string_view layout) {
  std::vector<std::string> notes = TRY(arrange(a, layout));
  if (!b) return notes;
  for (std::string& note : TRY(arrange(*b, layout))) notes.push_back(std::move(note));
  take_as_layers(a, *b);
  take_as_layers(*b, a);
  return notes;
}

}  // namespace tensordiff
