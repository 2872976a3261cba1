#include "diagnose/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnose/fit.h"
#include "diagnose/heads.h"

namespace tensordiff {
namespace {

constexpr double kWorkMax = 4e6;  // Multiplications for one replay: a few milliseconds.
constexpr uint64_t kRowsMax = 24;
// What a's own form may leave of a's output: f32 dumps leave a few roundoffs, bf16 ones a percent
// or two, since probabilities were rounded in between. A form that leaves more is another: a replay
// without the rotation, say, of queries that were dumped before it.
double own_fit(const Site& site) { return std::clamp(8 * site.roundoff, 1e-4, 0.03); }
constexpr double kWorthTrying = 0.03;  // A form that leaves more will not be mended by a cap.
// Nearer than so many unit roundoffs needs no other form.
constexpr double kExact = 4;
// A form with more to it must leave less than this share of what a simpler one leaves.
constexpr double kClearlyBetter = 0.8;
constexpr std::size_t kFewRows = 3;  // Enough to tell most forms off.
constexpr double kCaps[] = {50, 30, 20};

uint64_t first_key(const AttentionForm& form, uint64_t token) {
  return form.window > 0 && token + 1 > form.window ? token + 1 - form.window : 0;
}

uint64_t end_key(const AttentionForm& form, uint64_t token, uint64_t keys) {
  if (!form.masked) return keys;
  const int64_t end = static_cast<int64_t>(token) + 1 + form.diagonal;
  // A token that may see nothing sees itself, as softmax needs something.
  return static_cast<uint64_t>(std::clamp<int64_t>(end, 1, static_cast<int64_t>(keys)));
}

double capped(double score, double cap) { return cap > 0 ? cap * std::tanh(score / cap) : score; }

// One head of one token into `out`.
void attend(const AttentionInputs& in, const AttentionForm& form, uint64_t row, uint64_t head,
            std::span<double> out) {
  const uint64_t dim = in.query.features / form.heads, dim_v = in.value.features / form.kv_heads;
  const uint64_t group = form.heads / form.kv_heads;
  const uint64_t kv = form.tiled ? head % form.kv_heads : head / group;
  const uint64_t token = row % in.query.tokens, base = row - token;
  const uint64_t end = end_key(form, token, in.key.tokens);
  const uint64_t begin = std::min(first_key(form, token), end - 1);
  const auto query = in.query.row(row).subspan(head * dim, dim);
  std::vector<double> weight(end - begin);
  double most = -INFINITY, sum = 0;
  for (uint64_t k = begin; k < end; ++k) {
    const auto key = in.key.row(base + k).subspan(kv * dim, dim);
    double dot = 0;
    for (uint64_t i = 0; i < dim; ++i) dot += query[i] * key[i];
    weight[k - begin] = capped(dot * form.scale, form.cap);
    most = std::max(most, weight[k - begin]);
  }
  for (double& value : weight) sum += value = std::exp(value - most);
  std::ranges::fill(out, 0.0);
  for (uint64_t k = begin; k < end; ++k) {
    const auto value = in.value.row(base + k).subspan(kv * dim_v, dim_v);
    for (uint64_t i = 0; i < dim_v; ++i) out[i] += weight[k - begin] / sum * value[i];
  }
}

const Site* input_site(const Case& it, Role last, Role first) {
  const Site* site = find_role(it.run, it.site, last);
  return site ? site : find_role(it.run, it.site, first);
}

std::optional<AttentionInputs> inputs_of(const Case& it, View AlignedPair::*side) {
  AttentionInputs in;
  const auto read = [&](Role last, Role first, Matrix& into) {
    const Site* site = input_site(it, last, first);
    if (!site) return false;
    Result<Matrix> matrix = read_matrix(site->views.*side, it.run.extent);
    if (!matrix.ok()) return false;
    into = std::move(matrix).value();
    return into.batch == it.a.batch && into.features > 0 && into.tokens > 0;
  };
  if (!read(Role::query_final, Role::query, in.query)) return std::nullopt;
  if (!read(Role::key_final, Role::key, in.key)) return std::nullopt;
  if (!read(Role::value_final, Role::value, in.value)) return std::nullopt;
  // All of one length: what fewer tokens were read of one, the others do not use.
  const uint64_t tokens = std::min({in.query.tokens, in.key.tokens, in.value.tokens});
  for (Matrix* matrix : {&in.query, &in.key, &in.value})
    if (matrix->tokens != tokens && matrix->batch > 1) return std::nullopt;
  for (Matrix* matrix : {&in.query, &in.key, &in.value}) matrix->tokens = tokens;
  return in;
}

// Numbers of heads to try: as the tensors or the configuration say, else every divisor.
std::vector<uint64_t> head_counts(const Case& it, const AttentionInputs& in) {
  if (in.query.heads > 0) return {in.query.heads};
  for (const uint64_t dim : known_head_dims(it.run, it.site))
    if (in.query.features % dim == 0) return {in.query.features / dim};
  std::vector<uint64_t> counts;
  for (uint64_t heads = 1; heads <= in.query.features / 2; ++heads)
    if (in.query.features % heads == 0) counts.push_back(heads);
  return counts;
}

// Numbers of the configuration that were dumped beside this layer: floats are scales, integers
// windows.
std::vector<double> dumped_numbers(const Case& it, bool floats) {
  std::vector<double> numbers;
  for (const Site& site : it.run.sites) {
    const auto& there = site.comparison.diff.a_there;
    if (site.role == Role::setting && site.layer == it.site.layer && there &&
        is_float(site.views.a.dtype) == floats)
      numbers.push_back(*there);
  }
  return numbers;
}

std::vector<uint64_t> plausible_windows(const Case& it, const AttentionInputs& in) {
  std::vector<uint64_t> windows = {0};
  std::vector<double> numbers = dumped_numbers(it, false);
  if (it.run.facts.window) numbers.push_back(static_cast<double>(*it.run.facts.window));
  for (const double number : numbers) {
    if (number < 1 || number >= static_cast<double>(in.key.tokens)) continue;
    windows.push_back(static_cast<uint64_t>(number));
    windows.push_back(static_cast<uint64_t>(number) + 1);  // Some count the token itself extra.
  }
  return windows;
}

std::vector<AttentionForm> plausible_forms(const Case& it, const AttentionInputs& in) {
  std::vector<AttentionForm> forms;
  for (const uint64_t heads : head_counts(it, in)) {
    const uint64_t dim = in.query.features / heads;
    if (in.key.features % dim != 0) continue;
    const uint64_t kv_heads = in.key.features / dim;
    if (heads % kv_heads != 0 || in.value.features % kv_heads != 0) continue;
    std::vector<double> scales = dumped_numbers(it, true);
    if (it.run.facts.score_scale) scales.push_back(*it.run.facts.score_scale);
    scales.push_back(1 / std::sqrt(static_cast<double>(dim)));
    scales.push_back(1);
    for (const double scale : scales)
      for (const bool masked : {true, false})
        for (const bool tiled : {false, true})
          for (const uint64_t window : plausible_windows(it, in))
            if (!tiled || (kv_heads > 1 && kv_heads < heads))
              forms.push_back({heads, kv_heads, scale, masked, 0, window, 0, tiled});
  }
  return forms;
}

std::vector<AttentionForm> with_caps(const Case& it, const AttentionForm& form) {
  std::vector<double> caps(std::begin(kCaps), std::end(kCaps));
  if (it.run.facts.score_cap) caps = {*it.run.facts.score_cap};
  std::vector<AttentionForm> forms(caps.size(), form);
  for (std::size_t i = 0; i < caps.size(); ++i) forms[i].cap = caps[i];
  return forms;
}

// The form that a computes, as far as it is one that we know.
struct Learnt {
  AttentionForm form;
  std::vector<uint64_t> rows;
  double left = kWorthTrying;

  // Takes another form where it is clearly better. A few rows tell most off.
  void consider(const AttentionInputs& in, const AttentionForm& other, const Matrix& out) {
    std::vector<uint64_t> all = rows_to_replay(in, other.heads);
    std::vector<uint64_t> few;
    for (std::size_t k = 0; k < std::min(kFewRows, all.size()); ++k)
      few.push_back(all[all.size() - 1 - k * all.size() / kFewRows]);
    if (replay_error(in, other, out, few) > 2 * left) return;
    const double here = replay_error(in, other, out, all);
    if (here >= kClearlyBetter * left) return;
    left = here;
    form = other;
    rows = std::move(all);
  }
};

Learnt learn_form(const Case& it, const AttentionInputs& in) {
  const double exact = kExact * it.site.roundoff;
  Learnt learnt;
  for (const AttentionForm& form : plausible_forms(it, in)) {
    learnt.consider(in, form, it.a);
    if (learnt.left <= exact) return learnt;
  }
  if (learnt.rows.empty()) return learnt;
  for (const AttentionForm& form : with_caps(it, learnt.form)) learnt.consider(in, form, it.a);
  return learnt;
}

// Nothing where the site is no attention, its inputs are not there, or a's form is not found.
std::optional<AttentionStep> learn_attention(const Case& it) {
  if (it.site.role != Role::attention || it.a.first_token != 0) return std::nullopt;
  const std::optional<AttentionInputs> a = inputs_of(it, &AlignedPair::a);
  std::optional<AttentionInputs> b = inputs_of(it, &AlignedPair::b);
  if (!a || !b || a->query.tokens > it.a.tokens) return std::nullopt;
  const Learnt learnt = learn_form(it, *a);
  if (learnt.rows.empty() || learnt.left > own_fit(it.site)) return std::nullopt;
  AttentionStep step;
  step.form = learnt.form;
  step.rows = learnt.rows;
  step.b = std::move(*b);
  step.before = replay_error(step.b, step.form, it.b, step.rows);
  const double own_noise = 16 * it.site.roundoff;
  step.floor = std::max(4 * learnt.left, own_noise);
  return step;
}

// What a form makes of the rows that are looked at; not a number elsewhere.
Matrix replayed(const AttentionStep& step, const AttentionForm& form, const Matrix& like_this) {
  Matrix made = like(like_this);
  std::ranges::fill(made.values, std::numeric_limits<double>::quiet_NaN());
  const uint64_t dim = step.b.value.features / form.kv_heads;
  for (const uint64_t row : step.rows) {
    const uint64_t sequence = row / step.b.query.tokens;
    const auto out = made.row(sequence * made.tokens + row % step.b.query.tokens);
    for (uint64_t head = 0; head < form.heads; ++head)
      attend(step.b, form, row, head, out.subspan(head * dim, dim));
  }
  return made;
}

}  // namespace

std::vector<uint64_t> rows_to_replay(const AttentionInputs& in, uint64_t heads) {
  const uint64_t tokens = in.query.tokens;
  const double each = static_cast<double>(tokens * std::max<uint64_t>(1, heads) *
                                          (in.query.features / std::max<uint64_t>(1, heads))) *
                      2;
  const auto affordable = static_cast<uint64_t>(std::max(4.0, kWorkMax / std::max(1.0, each)));
  const uint64_t count = std::min({in.query.rows(), kRowsMax, affordable});
  std::vector<uint64_t> rows;
  // Spread, with the last one in: it is where a window or a missing mask shows, or does not.
  for (uint64_t k = 0; k < count; ++k)
    rows.push_back(count == 1 ? 0 : k * (in.query.rows() - 1) / (count - 1));
  return rows;
}

double replay_error(const AttentionInputs& in, const AttentionForm& form, const Matrix& out,
                    const std::vector<uint64_t>& rows) {
  const uint64_t dim = in.value.features / form.kv_heads;
  if (dim * form.heads != out.features) return 1;
  std::vector<double> made(dim);
  double gap = 0, all = 0;
  for (const uint64_t row : rows) {
    // Rows are numbered by the tokens that the inputs have; the output may have more of them.
    const uint64_t sequence = row / in.query.tokens;
    const auto expected = out.row(sequence * out.tokens + row % in.query.tokens);
    for (uint64_t head = 0; head < form.heads; ++head) {
      attend(in, form, row, head, made);
      const auto part = expected.subspan(head * dim, dim);
      const double apart = distance(made, part), size = norm(part);
      gap += apart * apart;
      all += size * size;
    }
  }
  return all > 0 ? std::sqrt(gap / all) : 1;
}

std::shared_ptr<const AttentionStep> wrong_attention(const Case& it) {
  std::optional<AttentionStep> step = learn_attention(it);
  if (!step || step->same()) return nullptr;
  return std::make_shared<const AttentionStep>(std::move(*step));
}

std::optional<bool> attention_agrees(const Run& run, const Site& site) {
  if (site.role != Role::attention || !site.compared()) return std::nullopt;
  Result<Matrix> a = read_matrix(site.views.a, run.extent);
  Result<Matrix> b = read_matrix(site.views.b, run.extent);
  if (!a.ok() || !b.ok()) return std::nullopt;
  const std::optional<AttentionStep> step =
      learn_attention(Case(run, site, std::move(a).value(), std::move(b).value()));
  return step ? std::optional(step->same()) : std::nullopt;
}

Explanation explain_form(const Case& it, const AttentionForm& form, std::string text) {
  const AttentionStep& step = *it.attention;
  Explanation result;
  result.text = std::move(text);
  result.before = step.before;
  result.after = replay_error(step.b, form, it.b, step.rows);
  // Judged here: the noise of the inputs is in both, so the floor is that of one step.
  result.settled = result.after <= step.floor && result.after <= 0.3 * step.before;
  result.confidence = 0.97;
  if (result.settled) result.model = replayed(step, form, it.b);
  return result;
}

}  // namespace tensordiff
