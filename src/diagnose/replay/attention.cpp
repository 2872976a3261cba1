#include "diagnose/replay/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "compare/kernels/dense.h"
#include "diagnose/graph/heads.h"
#include "diagnose/limits.h"
#include "diagnose/replay/attention_forms.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr double kWorkMax = 4e6;  // Multiplications for one replay: a few milliseconds.
constexpr double kAllRowsWorkMax = 3e7;
constexpr uint64_t kRowsMax = 16;
constexpr std::size_t kWorstRows = 4;
constexpr uint64_t kTokensOfCarried = 32;  // Of every step behind a mistake.
constexpr uint64_t kFartherOfCarried = uint64_t{1} << 17;

uint64_t first_key(const AttentionForm& form, uint64_t token) {
  return form.window > 0 && token + 1 > form.window ? token + 1 - form.window : 0;
}

uint64_t end_key(const AttentionForm& form, uint64_t token, uint64_t keys) {
  if (!form.masked) return keys;
  const int64_t end = static_cast<int64_t>(token) + 1 + form.diagonal;
  // A token that may see nothing sees itself, as softmax needs something.
  return static_cast<uint64_t>(std::clamp<int64_t>(end, 1, static_cast<int64_t>(keys)));
}

// What ALiBi adds to a score for each token of distance. Heads beyond a power of two take the
// slopes in between.
double slope_of(uint64_t head, uint64_t heads) {
  const auto power = static_cast<double>(std::bit_floor(heads));
  const auto at = static_cast<double>(head);
  if (at < power) return std::exp2(-8 * (at + 1) / power);
  return std::exp2(-4 * (2 * (at - power) + 1) / power);
}

double capped(double score, double cap) { return cap > 0 ? cap * std::tanh(score / cap) : score; }

double dot(std::span<const double> x, std::span<const double> y) {
  return kernels::dot(x.data(), y.data(), x.size());
}

// What one head of one token sees, and by how much: not yet divided by their sum.
struct Seen {
  uint64_t begin = 0, end = 0;  // Keys.
  uint64_t kv = 0;              // The key head.
  std::vector<double> weight;
};

Seen seen_by(const AttentionInputs& in, const AttentionForm& form, uint64_t row, uint64_t head) {
  const uint64_t dim = in.query.features / form.heads, group = form.heads / form.kv_heads;
  const uint64_t token = row % in.query.tokens, base = row - token;
  Seen seen;
  seen.kv = form.tiled ? head % form.kv_heads : head / group;
  seen.end = end_key(form, token, in.key.tokens);
  seen.begin = std::min(first_key(form, token), seen.end - 1);
  const auto query = in.query.row(row).subspan(head * dim, dim);
  const double slope = form.alibi ? slope_of(head, form.heads) : 0;
  double most = -INFINITY;
  for (uint64_t k = seen.begin; k < seen.end; ++k) {
    const auto key = in.key.row(base + k).subspan(seen.kv * dim, dim);
    seen.weight.push_back(capped(dot(query, key) * form.scale, form.cap) +
                          slope * (static_cast<double>(k) - static_cast<double>(token)));
    most = std::max(most, seen.weight.back());
  }
  for (double& value : seen.weight) value = std::exp(value - most);
  return seen;
}

void add_times(double factor, const double* from, std::span<double> to) {
  kernels::add_times(factor, from, to.size(), to.data());
}

// One head of one token into `out`.
void attend(const AttentionInputs& in, const AttentionForm& form, uint64_t row, uint64_t head,
            std::span<double> out) {
  const uint64_t dim = in.value.features / form.kv_heads, base = row - row % in.query.tokens;
  const Seen seen = seen_by(in, form, row, head);
  const double sum = std::accumulate(seen.weight.begin(), seen.weight.end(), 0.0);
  std::ranges::fill(out, 0.0);
  for (uint64_t k = seen.begin; k < seen.end; ++k)
    add_times(seen.weight[k - seen.begin] / sum, in.value.row(base + k).data() + seen.kv * dim,
              out);
}

const Site* input_site(const Run& run, const Site& site, Role last, Role first) {
  const Site* found = find_role(run, site, last);
  return found ? found : find_role(run, site, first);
}

// How much of a step is read.
struct Reach {
  uint64_t values = kValuesMax;  // Of the queries.
  uint64_t share = 1;            // One of so many parts of the features.
};

std::optional<Matrix> read(const Run& run, const View& view, const Reach& reach) {
  const uint64_t features = by_tokens(view, run.extent).features;
  if (features % reach.share != 0) return std::nullopt;
  const View part = first_features(view, run.extent, features / reach.share);
  Result<Matrix> matrix = read_matrix(part, run.extent, 0, reach.values);
  if (!matrix.ok() || matrix.value().values.empty()) return std::nullopt;
  return std::move(matrix).value();
}

// What one side computes from and gives; all of as many tokens.
std::optional<AttentionProbe> probe_of(const Run& run, const Site& site, View AlignedPair::*side,
                                       Reach reach) {
  const Site* query = input_site(run, site, Role::query_final, Role::query);
  const Site* key = input_site(run, site, Role::key_final, Role::key);
  const Site* value = input_site(run, site, Role::value_final, Role::value);
  if (!query || !key || !value) return std::nullopt;
  auto q = read(run, query->views.*side, reach);
  if (!q) return std::nullopt;
  AttentionProbe probe;
  const std::pair<const Site*, Matrix*> others[] = {
      {key, &probe.in.key}, {value, &probe.in.value}, {&site, &probe.out}};
  for (const auto& [from, into] : others) {
    const View& view = from->views.*side;
    reach.values = q->rows() * (by_tokens(view, run.extent).features / reach.share);
    auto matrix = read(run, view, reach);
    if (!matrix || matrix->batch != q->batch || matrix->tokens != q->tokens) return std::nullopt;
    *into = std::move(*matrix);
  }
  probe.in.query = std::move(*q);
  return probe;
}

void turn(AttentionProbe& probe, const AttentionForm& form) {
  probe.in = turned(probe.in, form);
  probe.heads = form.heads;
  probe.kv_heads = form.kv_heads;
  probe.rows = rows_to_replay(probe.in, probe.heads);
}

// All tokens, of the heads that read the first key head. Adds what a's form leaves of a to `left`;
// a window shows on later tokens only.
void look_farther(const Case& it, uint64_t values, AttentionStep& step, double& left) {
  AttentionForm group = step.form;
  group.heads /= group.kv_heads, group.kv_heads = 1;
  const Reach reach{values, step.form.kv_heads};
  auto a = probe_of(it.run, it.site, &AlignedPair::a, reach);
  auto b = probe_of(it.run, it.site, &AlignedPair::b, reach);
  if (!a || !b || a->in.query.tokens <= step.b[0].in.query.tokens) return;
  turn(*a, group), turn(*b, group);
  for (const uint64_t window : plausible_windows(it, a->in)) {
    AttentionForm form = step.form;
    form.window = window;
    if (window > 0 && a->error(form) < a->error(step.form) / 2) step.form = form;
  }
  const double here = a->error(step.form);
  // Where a's own form is lost on the way, only the first tokens tell.
  if (here > std::max(4 * left, own_fit(it.site.roundoff))) return;
  left = std::max(left, here);
  step.b.push_back(std::move(*b));
}

// Nothing where the site is no attention, its inputs are not there, or a's form is not found.
std::optional<AttentionStep> learn_attention(const Run& run, const Site& site, uint64_t values,
                                             uint64_t farther = kValuesMax) {
  if (site.role != Role::attention_heads || !site.compared()) return std::nullopt;
  auto a = probe_of(run, site, &AlignedPair::a, {values});
  auto b = a ? probe_of(run, site, &AlignedPair::b, {values}) : std::nullopt;
  if (!b || b->in.query.tokens != a->in.query.tokens) return std::nullopt;
  const std::vector<uint64_t> worst = farthest_rows(a->out, b->out, kWorstRows);
  const Case it(run, site, std::move(a->out), {});
  const std::optional<LearntAttention> learnt = learn_form(it, a->in);
  if (!learnt) return std::nullopt;
  AttentionStep step;
  step.form = learnt->form;
  turn(*b, step.form);
  b->rows = learnt->rows;
  for (const uint64_t row : worst)
    if (std::ranges::find(b->rows, row) == b->rows.end()) b->rows.push_back(row);
  step.b.push_back(std::move(*b));
  double left = learnt->left;
  const bool alike = !step.form.tiled && !step.form.alibi;  // The first heads, by themselves.
  if (!a->in.query.whole && alike) look_farther(it, farther, step, left);
  step.before = step.error(step.form);
  step.floor = std::max(4 * left, limits::kReplayed * site.roundoff);
  return step;
}

// How many tokens at the start can be computed again: each reads all before it.
uint64_t affordable_tokens(const AttentionInputs& in) {
  const double each =
      static_cast<double>(std::max<uint64_t>(1, in.query.batch * in.query.features));
  return static_cast<uint64_t>(std::sqrt(kAllRowsWorkMax / each));
}

// What a form makes of the rows that are looked at; not a number elsewhere.
Matrix replayed(const AttentionProbe& probe, const AttentionForm& form, const Matrix& like_this) {
  Matrix made = like(like_this);
  std::ranges::fill(made.values, std::numeric_limits<double>::quiet_NaN());
  const uint64_t dim = probe.in.value.features / form.kv_heads, tokens = probe.in.query.tokens;
  for (const uint64_t row : probe.rows) {
    if (row % tokens >= made.tokens) continue;
    const auto out = made.row(row / tokens * made.tokens + row % tokens);
    for (uint64_t head = 0; head < form.heads; ++head)
      attend(probe.in, form, row, head, out.subspan(head * dim, dim));
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

uint64_t nearest_window(const AttentionInputs& in, AttentionForm form, const Matrix& out) {
  const uint64_t dim = in.value.features / form.kv_heads, last = in.query.tokens - 1;
  if (dim * form.heads != out.features) return 0;
  form.window = 0;
  std::vector<double> gaps(in.key.tokens + 1), made(dim), mean(dim);
  for (uint64_t head = 0; head < form.heads; ++head) {
    // From the nearest key on, so that each window is the one before it and one key more.
    const Seen seen = seen_by(in, form, last, head);
    const auto expected = out.row(last).subspan(head * dim, dim);
    std::ranges::fill(made, 0.0);
    double sum = 0;
    for (uint64_t k = seen.end; k-- > seen.begin;) {
      sum += seen.weight[k - seen.begin];
      add_times(seen.weight[k - seen.begin], in.value.row(k).data() + seen.kv * dim, made);
      std::ranges::fill(mean, 0.0);
      add_times(1 / sum, made.data(), mean);
      const double apart = distance(mean, expected);
      if (std::isfinite(apart)) gaps[seen.end - k] += apart * apart;
    }
  }
  const auto nearest = std::min_element(gaps.begin() + 1, gaps.end());
  const auto window = static_cast<uint64_t>(nearest - gaps.begin());
  return window < in.key.tokens ? window : 0;
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

double AttentionProbe::error(AttentionForm form) const {
  form.heads = heads, form.kv_heads = kv_heads;
  return replay_error(in, form, out, rows);
}

double AttentionStep::error(const AttentionForm& other) const {
  double most = 0;
  for (const AttentionProbe& probe : b) most = std::max(most, probe.error(other));
  return most;
}

std::shared_ptr<const AttentionStep> wrong_attention(const Case& it) {
  std::optional<AttentionStep> step = learn_attention(it.run, it.site, kValuesMax);
  if (!step || step->same()) return nullptr;
  return std::make_shared<const AttentionStep>(std::move(*step));
}

std::optional<bool> attention_agrees(const Run& run, const Site& site) {
  const std::optional<AttentionStep> step = learn_attention(run, site, kValuesMax);
  return step ? std::optional(step->same()) : std::nullopt;
}

std::optional<Expected> attended(const Run& run, const Site& site) {
  const TokenView out = by_tokens(site.views.a, run.extent);
  std::optional<AttentionStep> step =
      learn_attention(run, site, kTokensOfCarried * out.batch * out.features, kFartherOfCarried);
  if (!step) return std::nullopt;
  Expected result;
  result.left = step->before;
  result.floor = step->floor;
  if (result.met()) return result;
  // What is wrong may show in later tokens alone, or in all of them together; and so may a's way.
  if (std::optional<AttentionStep> all = learn_attention(run, site, kValuesMax)) {
    step = std::move(all);
    result.left = step->before, result.floor = step->floor;
    if (result.met()) return result;
  }
  AttentionProbe& first = step->b[0];
  const uint64_t all = first.in.query.tokens, tokens = std::min(all, affordable_tokens(first.in));
  first.rows.clear();
  for (uint64_t row = 0; row < first.in.query.rows(); ++row)
    if (row % all < tokens) first.rows.push_back(row);
  result.b = first_tokens(first.out, tokens);
  result.made = first_tokens(replayed(first, step->form, first.out), tokens);
  return result;
}

Explanation explain_form(const Case& it, const AttentionForm& form, std::string text) {
  const AttentionStep& step = *it.attention;
  Explanation result;
  result.text = std::move(text);
  result.before = step.before;
  result.after = step.error(form);
  // Judged here: the noise of the inputs is in both, so the floor is that of one step.
  result.settled = result.after <= step.floor && result.after <= 0.3 * step.before;
  if (result.settled && it.a.first_token == 0) result.model = replayed(step.b[0], form, it.b);
  return result;
}

}  // namespace tensordiff
