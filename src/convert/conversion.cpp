#include "convert/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/parallel.h"
#include "base/text.h"
#include "convert/candidates.h"
#include "convert/fits.h"
#include "convert/function.h"
#include "convert/kind.h"
#include "convert/misfit.h"
#include "convert/rope_convention.h"

namespace tensordiff {
namespace {

struct Members {
  std::vector<std::size_t> pairs;
  std::map<Form, std::size_t> votes;
  bool square = false;
  bool in_layer = false;
  bool table = false;   // Embeddings.
  bool vector = false;  // One axis: norms and biases.
  bool rope = false;    // Query or key, by the names.
  bool bare = false;    // A parameter of no module on one side, and a weight on the other.
  std::size_t rank_a = 0, rank_b = 0;

  // Kinds that share the order of their rows.
  std::string rows(const PairKind& kind) const { return rope ? "q and k" : kind.a; }
};

// How many of something speak for which value of a part of the form.
template <class T>
using Tally = std::map<T, std::size_t>;

template <class T>
std::size_t count_in(const Tally<T>& tally, const T& value) {
  const auto found = tally.find(value);
  return found == tally.end() ? 0 : found->second;
}

bool adds_ranks(const Form& form) {
  return std::ranges::find(form.whole, Op::sum, &AxisStep::op) != form.whole.end();
}

constexpr std::size_t kNormsMin = 4;  // Two layers with two norms each.

class Voting {
 public:
  Voting(const Catalog& a, const Catalog& b, const std::vector<Pair>& pairs, std::vector<Fits> fits)
      : a_(a), pairs_(pairs), fits_(std::move(fits)), implied_(implied_rope_rows(a, b)) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const PairKind kind = kind_of(a, b, pairs[i], fits_[i].merge);
      Members& members = kinds_[kind];
      members.pairs.push_back(i);
      members.square |= fits_[i].square;
      members.rank_a = a.tensors[pairs[i].a].view.shape.size();
      members.rank_b = b.tensors[pairs[i].b].view.shape.size();
      members.in_layer |= kind.a.find('#') != std::string::npos;
      members.table |=
          is_table(a.tensors[pairs[i].a].place.step) || is_table(b.tensors[pairs[i].b].place.step);
      members.vector |= a.tensors[pairs[i].a].view.shape.size() == 1;
      members.rope |=
          has_rope(a.tensors[pairs[i].a].place.step) || has_rope(b.tensors[pairs[i].b].place.step);
      members.bare |= is_bare(a.tensors[pairs[i].a], b.tensors[pairs[i].b]);
      for (const Form& form : fits_[i].forms) ++members.votes[form];
      if (kind.merge.kind != MergeKind::none) count_merge(kind.merge, fits_[i].forms);
    }
    for (const auto& [kind, members] : kinds_) pool(kind, members);
  }

  Conversion decide() const {
    Conversion conversion;
    conversion.rule_of.assign(pairs_.size(), Conversion::kNoRule);
    for (const auto& [kind, members] : kinds_) {
      std::optional<Form> form = rule_of(kind, members);
      if (!form) continue;
      // Where all layers agree on an order that is not the formats' own, the formats are right.
      const std::string reason = against_formats(members, *form) ? implied_->reason : "";
      if (!reason.empty()) form->rows = implied_->rows;
      ConversionRule rule{*form, kind.a, kind.b, {}};
      for (const std::size_t pair : members.pairs) {
        conversion.rule_of[pair] = conversion.rules.size();
        const std::vector<Form>& forms = fits_[pair].forms;
        const bool follows = forms.empty() || std::ranges::find(forms, *form) != forms.end();
        if (follows) rule.pairs.push_back(pair);
        // One pair alone is no exception from anything.
        else if (pairs_.size() > 1)
          conversion.exceptions.push_back({pair, *form, forms[0], reason});
      }
      conversion.rules.push_back(std::move(rule));
      if (reason.empty()) set_apart(kind, members, conversion);
    }
    std::ranges::sort(conversion.exceptions, {}, &Exception::pair);
    return conversion;
  }

 private:
  // The pairs of a kind that are of another shape than all that follow its rule, and do alike what
  // other kinds do as well: the last block of a model may be a smaller one.
  void set_apart(const PairKind& kind, const Members& members, Conversion& conversion) const {
    const std::size_t index = conversion.rules.size() - 1;
    std::set<Shape> followed;
    for (const std::size_t pair : conversion.rules[index].pairs) followed.insert(shape_of(pair));
    std::map<std::pair<Shape, Form>, std::vector<std::size_t>> apart;
    for (const Exception& each : conversion.exceptions) {
      const Form& rule = conversion.rules[index].form;
      const bool own = conversion.rule_of[each.pair] == index;
      if (own && each.fits.axes == rule.axes && each.fits.whole == rule.whole &&
          !followed.contains(shape_of(each.pair)) && is_elsewhere(members, each.fits))
        apart[{shape_of(each.pair), each.fits}].push_back(each.pair);
    }
    for (auto& each_form : apart) {
      std::vector<std::size_t>& pairs = each_form.second;  // Clang 14 captures no binding.
      for (const std::size_t pair : pairs) conversion.rule_of[pair] = conversion.rules.size();
      std::erase_if(conversion.exceptions, [&](const Exception& each) {
        return std::ranges::find(pairs, each.pair) != pairs.end();
      });
      conversion.rules.push_back({each_form.first.second, kind.a, kind.b, std::move(pairs)});
    }
  }

  const Shape& shape_of(std::size_t pair) const { return a_.tensors[pairs_[pair].a].view.shape; }

  // Whether two pairs of other kinds order their parts so as well.
  bool is_elsewhere(const Members& members, const Form& form) const {
    if (form.parts.empty() || form.rows.order != RowOrder::as_is) return false;
    std::size_t own = 0;
    for (const auto& [each, votes] : members.votes)
      if (each.parts == form.parts) own += votes;
    return form.function == Function::none && count_in(all_parts_, form.parts) >= own + 2;
  }

  void count_merge(const Merge& merge, const std::vector<Form>& forms) {
    if (forms.empty()) return;
    // With whatever scale: another than the files tell is a mistake in the merge.
    const bool is_merged =
        std::ranges::any_of(forms, [&](const Form& form) { return form.merge.kind == merge.kind; });
    merged_[merge] += is_merged ? 1 : -1;
  }

  // The votes for what most weights do that could be merged so. A mistake leaves a merge out sooner
  // than it adds one, so that as many are enough.
  void keep_merge(const Merge& merge, std::map<Form, std::size_t>& votes) const {
    const auto found = merged_.find(merge);
    const Merge rule = found != merged_.end() && found->second >= 0 ? merge : Merge();
    std::map<Form, std::size_t> kept;
    for (const auto& [form, count] : votes)
      if (form.merge == rule) kept[form] += count;
    // None does: the layout of the others, with no vote for it.
    if (kept.empty())
      for (const auto& [form, count] : votes) {
        Form changed = form;
        changed.merge = rule;
        kept[changed] += 0;
      }
    votes = std::move(kept);
  }

  // Other parts of heads than RoPE's are no question of the formats.
  bool against_formats(const Members& members, const Form& form) const {
    if (!members.rope || !implied_) return false;
    const RowOrder order = form.rows.order;
    return (order == RowOrder::as_is || order == RowOrder::rope) && order != implied_->rows.order;
  }

  void pool(const PairKind& kind, const Members& members) {
    for (const auto& [form, votes] : members.votes) {
      all_rows_[form.rows] += votes;
      all_functions_[form.function] += votes;
      all_parts_[form.parts] += votes;
      if (adds_ranks(form)) sums_ += votes;
      if (members.square && form.moves_axes()) turned_squares_[leaves_of(kind)] += votes;
      if (is_lone_projection(members)) lone_turned_ += form.moves_axes() ? 1 : -1;
      rows_[members.rows(kind)][form.rows] += votes;
      functions_[{leaves_of(kind), members.vector}][form.function] += votes;
    }
    for (const auto& [form, votes] : members.votes)
      if (votes == members.pairs.size())
        forms_[{leaves_of(kind), members.rank_a, members.rank_b}][form].insert(kind);
    if (members.square || members.vector || !members.in_layer || members.votes.empty()) return;
    std::set<bool> moved;
    for (const auto& [form, votes] : members.votes) moved.insert(form.moves_axes());
    if (moved.size() == 1) ++turned_[leaves_of(kind)][*moved.begin()];
  }

  // Such as the projections of CLIP: nothing else in the model shows how they are turned.
  static bool is_lone_projection(const Members& members) {
    return members.square && members.bare && !members.table && !members.in_layer;
  }

  // Whether the matrices of this name that are not square are all transposed, or none: two kinds
  // must say so, since one alone may be special.
  std::optional<bool> orientation_of(const PairKind& kind) const {
    const auto found = turned_.find(leaves_of(kind));
    if (found == turned_.end() || found->second.size() != 1) return std::nullopt;
    const auto& [moved, kinds] = *found->second.begin();
    return kinds >= 2 ? std::optional(moved) : std::nullopt;
  }

  std::optional<Form> rule_of(const PairKind& kind, const Members& members) const {
    if (members.votes.empty()) return form_of_others(kind, members);
    std::map<Form, std::size_t> votes = members.votes;
    if (kind.merge.kind != MergeKind::none) keep_merge(kind.merge, votes);
    if (members.square && !members.table)
      if (const std::optional<bool> turned = orientation_of(kind)) {
        std::erase_if(votes, [&](const auto& vote) { return vote.first.moves_axes() != *turned; });
        if (votes.empty()) votes[square_form(*turned)] = 0;
      }
    if (is_lone_projection(members) && lone_turned_ >= 0 && votes.size() == 1)
      return square_form(true);
    const auto weight = [&](const auto& vote) {
      const auto& [form, count] = vote;
      return std::tuple(count, count_in(rows_.at(members.rows(kind)), form.rows),
                        count_in(functions_.at({leaves_of(kind), members.vector}), form.function),
                        count_in(all_parts_, form.parts),
                        // A mistake leaves a step out sooner than it adds one.
                        form != Form());
    };
    Form best = std::ranges::max_element(votes, {}, weight)->first;
    if (const auto function = function_of_others(kind, members)) best.function = *function;
    return is_supported(kind, members, best) ? best : without_support(best, members);
  }

  // Where no pair fits in any way: what most kinds of the same last name do, at least two.
  std::optional<Form> form_of_others(const PairKind& kind, const Members& members) const {
    const auto found = forms_.find({leaves_of(kind), members.rank_a, members.rank_b});
    if (found == forms_.end() || kind.merge.kind != MergeKind::none) return std::nullopt;
    const auto kinds = [](const auto& each) { return each.second.size(); };
    const auto most = std::ranges::max_element(found->second, {}, kinds);
    // Several forms may come to the same, but then for the same kinds.
    const bool alone = std::ranges::all_of(found->second, [&](const auto& each) {
      return kinds(each) < kinds(*most) || each.second == most->second;
    });
    return kinds(*most) >= 2 && alone ? std::optional(most->first) : std::nullopt;
  }

  // What all norms of the layers do, for one outside of them that does not.
  std::optional<Function> function_of_others(const PairKind& kind, const Members& members) const {
    if (!members.vector || members.in_layer || members.pairs.size() != 1) return std::nullopt;
    const Tally<Function>& all = functions_.at({leaves_of(kind), members.vector});
    const std::size_t own = count_in(all, Function::none);
    if (all.size() != 2 || own != 1 || members.votes.begin()->first.function != Function::none)
      return std::nullopt;
    const auto& [function, count] = *std::next(all.begin());  // The first is none.
    return count >= kNormsMin ? std::optional(function) : std::nullopt;
  }

  // Whether a second pair of the model does the same. What one pair alone does is no convention.
  bool is_supported(const PairKind& kind, const Members& members, const Form& form) const {
    // Of two layers of which one has its rows in order, the other was converted: nobody reorders
    // rows by a slip.
    if (form.rows.order != RowOrder::as_is && count_in(all_rows_, form.rows) < 2 &&
        members.pairs.size() != 2)
      return false;
    // An exponential is nobody's slip: one pair is enough where mistakes hide it in the others.
    const bool is_slip =
        form.function != Function::negative_exp && form.function != Function::log_negated;
    if (form.function != Function::none && is_slip && count_in(all_functions_, form.function) < 2)
      return false;
    if (!form.parts.empty() && count_in(all_parts_, form.parts) < 2) return false;
    if (adds_ranks(form) && sums_ < 2) return false;
    if (!members.square || !form.moves_axes()) return true;
    const auto forced = turned_.find(leaves_of(kind));
    const std::size_t others = forced == turned_.end() ? 0 : count_in(forced->second, true);
    return others > 0 || count_in(turned_squares_, leaves_of(kind)) >= 2;
  }

  // As the pair is stored, which a square matrix and equal shapes allow.
  static Form without_support(const Form& form, const Members& members) {
    Form plain = form;
    plain.rows = {};
    plain.function = Function::none;
    plain.parts.clear();
    if (members.square) plain.axes.clear();
    for (AxisStep& step : plain.whole)
      if (step.op == Op::sum) step.op = Op::replica;
    return plain;
  }

  static Form square_form(bool turned) {
    Form form;
    if (turned) form.axes = {{'a', Op::permute, {1, 0}}};
    return form;
  }

  const Catalog& a_;
  const std::vector<Pair>& pairs_;
  std::vector<Fits> fits_;
  std::optional<ImpliedRows> implied_;  // Of q and k, by the conventions of both formats.
  std::map<PairKind, Members> kinds_;
  std::map<std::string, Tally<Rows>> rows_;
  std::map<FunctionClass, Tally<Function>> functions_;
  // Kinds of which all pairs agree.
  std::map<LeafClass, std::map<Form, std::set<PairKind>>> forms_;
  std::map<Leaves, Tally<bool>> turned_;  // In kinds.
  Tally<Leaves> turned_squares_;          // In pairs, as are those below.
  int64_t lone_turned_ = 0;               // In pairs: turned less not turned.
  std::size_t sums_ = 0;                  // In pairs: ranks that hold the same are added up.
  std::map<Merge, int64_t> merged_;       // In pairs: merged less not merged.
  Tally<Rows> all_rows_;
  Tally<Function> all_functions_;
  Tally<std::vector<std::size_t>> all_parts_;
};

std::optional<Candidate> with_rows(const Candidate& plain, const Form& form) {
  if (form.rows.order == RowOrder::as_is && plain.form.parts == form.parts) return plain;
  for (Candidate& candidate : row_candidates(plain))
    if (candidate.form.rows == form.rows && candidate.form.parts == form.parts)
      return std::move(candidate);
  return std::nullopt;
}

}  // namespace

Conversion infer_conversion(const Catalog& a, const Catalog& b, const std::vector<Pair>& pairs,
                            const OperandsOf& operands) {
  std::vector<Fits> fits(pairs.size());
  for_each_index(pairs.size(), [&](std::size_t i) {
    const Tensor& of_a = a.tensors[pairs[i].a];
    const Tensor& of_b = b.tensors[pairs[i].b];
    if (of_a.fault.empty() && of_b.fault.empty()) fits[i] = fits_of(operands(pairs[i]), of_a, of_b);
  });
  return Voting(a, b, pairs, std::move(fits)).decide();
}

std::vector<std::string> summary_of(const Conversion& conversion) {
  std::map<std::string, std::pair<std::size_t, std::string>> by_text;  // Tensors and an example.
  std::vector<std::string> order;
  for (const ConversionRule& rule : conversion.rules) {
    if (rule.form == Form() || rule.pairs.empty()) continue;
    const std::string text = text_of(rule.form);
    auto [found, fresh] = by_text.try_emplace(text, 0, rule.kind_b);
    if (fresh) order.push_back(text);
    found->second.first += rule.pairs.size();
  }
  std::vector<std::string> lines;
  for (const std::string& text : order) {
    const auto& [count, example] = by_text.at(text);
    lines.push_back(fmt::format("conversion: {}: {} {} (such as {})", text, human_count(count),
                                count == 1 ? "tensor" : "tensors", printable(example)));
  }
  return lines;
}

// A form has no sizes; where several fit the shapes, such as numbers of heads, the values choose.
std::optional<AlignedPair> carried_out(const Form& form, const PairOperands& operands) {
  std::optional<AlignedPair> best;
  double least = 0;
  std::vector<Candidate> all;
  if (form.merge.kind == MergeKind::none) all = plain_candidates(operands.a, operands.b);
  for (const MergedOperand& merged : operands.merges)
    if (merged.how == form.merge)
      for (Candidate& each : merged_candidates(operands, merged)) all.push_back(std::move(each));
  for (const Candidate& plain : all) {
    if (plain.form.whole != form.whole || plain.form.axes != form.axes) continue;
    if (plain.form.parts != form.parts && !reorders_whole(form)) continue;
    std::optional<Candidate> candidate = with_rows(plain, form);
    if (!candidate) continue;
    if (form.function != Function::none)
      candidate->pair.a = with_function(form.function, candidate->pair.a);
    const double misfits = misfit(candidate->pair);
    if (best && !(misfits < least)) continue;
    best = std::move(candidate->pair);
    least = misfits;
  }
  return best;
}

}  // namespace tensordiff
