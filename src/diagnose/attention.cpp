#include "diagnose/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "diagnose/attention_forms.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr double kWorkMax = 4e6;  // Multiplications for one replay: a few milliseconds.
constexpr double kAllRowsWorkMax = 3e7;
constexpr uint64_t kRowsMax = 24;

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
  const double slope = form.alibi ? slope_of(head, form.heads) : 0;
  std::vector<double> weight(end - begin);
  double most = -INFINITY, sum = 0;
  for (uint64_t k = begin; k < end; ++k) {
    const auto key = in.key.row(base + k).subspan(kv * dim, dim);
    double dot = 0;
    for (uint64_t i = 0; i < dim; ++i) dot += query[i] * key[i];
    weight[k - begin] = capped(dot * form.scale, form.cap) +
                        slope * (static_cast<double>(k) - static_cast<double>(token));
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

// Nothing where the site is no attention, its inputs are not there, or a's form is not found.
std::optional<AttentionStep> learn_attention(const Case& it) {
  if (it.site.role != Role::attention || it.a.first_token != 0) return std::nullopt;
  const std::optional<AttentionInputs> a = inputs_of(it, &AlignedPair::a);
  std::optional<AttentionInputs> b = inputs_of(it, &AlignedPair::b);
  if (!a || !b || a->query.tokens > it.a.tokens) return std::nullopt;
  const std::optional<LearntAttention> learnt = learn_form(it, *a);
  if (!learnt) return std::nullopt;
  AttentionStep step;
  step.form = learnt->form;
  step.rows = learnt->rows;
  step.b = turned(*b, step.form);
  step.before = replay_error(step.b, step.form, it.b, step.rows);
  const double own_noise = 16 * it.site.roundoff;
  step.floor = std::max(4 * learnt->left, own_noise);
  return step;
}

std::optional<Case> case_of(const Run& run, const Site& site) {
  if (site.role != Role::attention || !site.compared()) return std::nullopt;
  Result<Matrix> a = read_matrix(site.views.a, run.extent);
  Result<Matrix> b = read_matrix(site.views.b, run.extent);
  if (!a.ok() || !b.ok()) return std::nullopt;
  return Case(run, site, std::move(a).value(), std::move(b).value());
}

// How many tokens at the start can be computed again: each reads all before it.
uint64_t affordable_tokens(const AttentionInputs& in) {
  const double each =
      static_cast<double>(std::max<uint64_t>(1, in.query.batch * in.query.features));
  return static_cast<uint64_t>(std::sqrt(kAllRowsWorkMax / each));
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
  const std::optional<Case> it = case_of(run, site);
  const std::optional<AttentionStep> step = it ? learn_attention(*it) : std::nullopt;
  return step ? std::optional(step->same()) : std::nullopt;
}

std::optional<Expected> attended(const Run& run, const Site& site) {
  const std::optional<Case> it = case_of(run, site);
  std::optional<AttentionStep> step = it ? learn_attention(*it) : std::nullopt;
  if (!step) return std::nullopt;
  Expected result;
  result.left = step->before;
  result.floor = step->floor;
  if (result.met()) return result;
  const uint64_t tokens = std::min(step->b.query.tokens, affordable_tokens(step->b));
  step->rows.clear();
  for (uint64_t row = 0; row < step->b.query.rows(); ++row)
    if (row % step->b.query.tokens < tokens) step->rows.push_back(row);
  result.b = first_tokens(it->b, tokens);
  result.made = first_tokens(replayed(*step, step->form, it->b), tokens);
  return result;
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
