#include "diagnose/attention.h"

#include <algorithm>
#include <cmath>

#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr double kWorkMax = 4e6;  // Multiplications for one replay: a few milliseconds.
constexpr uint64_t kRowsMax = 24;
// What a's own form may leave of a's output: f32 dumps leave a few roundoffs, bf16 ones a percent
// or two, since probabilities were rounded in between. A form that leaves more is another: a replay
// without the rotation, say, of queries that were dumped before it.
double own_fit(const Site& site) { return std::clamp(8 * site.roundoff, 1e-4, 0.03); }

uint64_t first_key(const AttentionForm& form, uint64_t token) {
  return form.window > 0 && token + 1 > form.window ? token + 1 - form.window : 0;
}

uint64_t end_key(const AttentionForm& form, uint64_t token, uint64_t keys) {
  if (!form.masked) return keys;
  const int64_t end = static_cast<int64_t>(token) + 1 + form.diagonal;
  // A token that may see nothing sees itself, as softmax needs something.
  return static_cast<uint64_t>(std::clamp<int64_t>(end, 1, static_cast<int64_t>(keys)));
}

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
    weight[k - begin] = dot * form.scale;
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

// Numbers of heads to try: as the tensors say, else every divisor.
std::vector<uint64_t> head_counts(const AttentionInputs& in) {
  if (in.query.heads > 0) return {in.query.heads};
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
  for (const double number : dumped_numbers(it, false)) {
    if (number < 1 || number >= static_cast<double>(in.key.tokens)) continue;
    windows.push_back(static_cast<uint64_t>(number));
    windows.push_back(static_cast<uint64_t>(number) + 1);  // Some count the token itself extra.
  }
  return windows;
}

std::vector<AttentionForm> plausible_forms(const Case& it, const AttentionInputs& in) {
  std::vector<AttentionForm> forms;
  for (const uint64_t heads : head_counts(in)) {
    const uint64_t dim = in.query.features / heads;
    if (in.key.features % dim != 0) continue;
    const uint64_t kv_heads = in.key.features / dim;
    if (heads % kv_heads != 0 || in.value.features % kv_heads != 0) continue;
    std::vector<double> scales = dumped_numbers(it, true);
    scales.push_back(1 / std::sqrt(static_cast<double>(dim)));
    scales.push_back(1);
    for (const double scale : scales)
      for (const bool masked : {true, false})
        for (const bool tiled : {false, true})
          for (const uint64_t window : plausible_windows(it, in))
            if (!tiled || (kv_heads > 1 && kv_heads < heads))
              forms.push_back({heads, kv_heads, scale, masked, 0, window, tiled});
  }
  return forms;
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

std::optional<AttentionStep> learn_attention(const Case& it) {
  if (it.site.role != Role::attention || it.a.first_token != 0) return std::nullopt;
  const std::optional<AttentionInputs> a = inputs_of(it, &AlignedPair::a);
  std::optional<AttentionInputs> b = inputs_of(it, &AlignedPair::b);
  if (!a || !b || a->query.tokens > it.a.tokens) return std::nullopt;
  AttentionStep step;
  const double limit = own_fit(it.site);
  double best = limit;
  for (const AttentionForm& form : plausible_forms(it, *a)) {
    const std::vector<uint64_t> rows = rows_to_replay(*a, form.heads);
    const double here = replay_error(*a, form, it.a, rows);
    if (here >= best) continue;
    best = here;
    step.form = form;
    step.rows = rows;
  }
  if (best >= limit) return std::nullopt;
  step.b = std::move(*b);
  step.before = replay_error(step.b, step.form, it.b, step.rows);
  const double own_noise = 16 * it.site.roundoff;
  step.floor = std::max(4 * best, own_noise);
  return step;
}

std::optional<AttentionStep> wrong_attention(const Case& it) {
  std::optional<AttentionStep> step = learn_attention(it);
  if (step && step->same()) step.reset();
  return step;
}

std::optional<bool> attention_agrees(const Run& run, const Site& site) {
  if (site.role != Role::attention || !site.compared()) return std::nullopt;
  Result<Matrix> a = read_matrix(site.views.a, run.extent);
  Result<Matrix> b = read_matrix(site.views.b, run.extent);
  if (!a.ok() || !b.ok()) return std::nullopt;
  const std::optional<AttentionStep> step =
      learn_attention({run, site, std::move(a).value(), std::move(b).value()});
  return step ? std::optional(step->same()) : std::nullopt;
}

Explanation explain_form(const Case& it, const AttentionStep& step, const AttentionForm& form,
                         std::string text) {
  Explanation result;
  result.text = std::move(text);
  result.before = step.before;
  result.after = replay_error(step.b, form, it.b, step.rows);
  // Judged here: the noise of the inputs is in both, so the floor is that of one step.
  result.settled = result.after <= step.floor && result.after <= 0.3 * step.before;
  result.confidence = 0.97;
  return result;
}

}  // namespace tensordiff
