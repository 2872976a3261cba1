#include "diagnose/replay/linear_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "diagnose/graph/heads.h"
#include "diagnose/limits.h"
#include "diagnose/sample/fit.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr double kWorkMax = 1e8;  // Multiplications for one replay: a fraction of a second.
constexpr uint64_t kRowsMax = 16;
constexpr double kWorkOfMore = 2e7;    // More of them, as long as they take no more than this,
constexpr std::size_t kWorstRows = 4;  // and these.
constexpr uint64_t kFeaturesMax = 96;
constexpr uint64_t kRanksTried[] = {2, 4, 8, 16, 32, 64};

std::vector<uint64_t> spread(uint64_t count, uint64_t wanted) {
  std::vector<uint64_t> picked;
  const uint64_t size = std::min(count, wanted);
  for (uint64_t k = 0; k < size; ++k)
    picked.push_back(size == 1 ? 0 : k * (count - 1) / (size - 1));
  return picked;
}

Matrix rows_of(const Matrix& from, const std::vector<uint64_t>& rows) {
  Matrix result;
  result.tokens = rows.size();
  result.features = from.features;
  for (const uint64_t row : rows)
    result.values.insert(result.values.end(), from.row(row).begin(), from.row(row).end());
  return result;
}

Matrix columns_of(const Matrix& from, const std::vector<uint64_t>& features) {
  Matrix result;
  result.tokens = from.tokens;
  result.features = features.size();
  for (uint64_t row = 0; row < from.rows(); ++row)
    for (const uint64_t feature : features) result.values.push_back(from.row(row)[feature]);
  return result;
}

void add_bias(Matrix& made, const std::vector<double>& bias, const std::vector<uint64_t>& features,
              double times) {
  for (std::size_t at = 0; at < made.values.size() && !bias.empty(); ++at)
    made.values[at] += times * bias[features[at % features.size()]];
}

// A weight and how often its bias is added.
struct LinearForm {
  View weight;
  std::vector<double> bias;
  double times = 0;
};

Matrix made_by(const LinearForm& form, const Matrix& in, const std::vector<uint64_t>& features) {
  Matrix made = product(in, form.weight, features, 0, in.features);
  add_bias(made, form.bias, features, form.times);
  return made;
}

struct LearntForm {
  LinearForm form;
  std::vector<View> stored;  // Both ways to read the weight, where both are possible.
  Replayed replayed;
};

std::optional<LearntForm> learn_form(const Case& it, Projection projection,
                                     const Samples& samples) {
  LearntForm learnt;
  const Weights& weights = it.run.weights;
  learnt.stored = weights.matrices(it.site.layer, projection, it.a.features, samples.in_a.features);
  const std::vector<double> bias = weights.bias(it.site.layer, projection, it.a.features);
  for (const View& view : learnt.stored) {
    for (const double times : {1.0, 0.0}) {
      if (times > 0 && bias.empty()) continue;
      const LinearForm form{view, bias, times};
      const double here = misfit(made_by(form, samples.in_a, samples.features), samples.out_a);
      if (here < learnt.replayed.own) learnt.replayed.own = here, learnt.form = form;
    }
  }
  if (learnt.replayed.own > limits::kOwnFit) return std::nullopt;
  learnt.replayed.before =
      misfit(made_by(learnt.form, samples.in_b, samples.features), samples.out_b);
  return learnt;
}

struct Guess {
  LinearForm form;
  std::string text;
  std::string cause;
};

std::vector<Guess> guesses_for(const Case& it, Projection projection, const LearntForm& learnt,
                               uint64_t in) {
  std::vector<Guess> guesses;
  const auto add = [&](const View& view, std::string text, std::string cause) {
    guesses.push_back({{view, learnt.form.bias, learnt.form.times}, std::move(text), cause});
  };
  for (const View& view : learnt.stored)
    if (view.parts[0].strides != learnt.form.weight.parts[0].strides)
      add(view, "B multiplies by the transposed weight", "transposed_weight");
  const uint64_t out = it.a.features;
  for (const Projection other :
       {Projection::query, Projection::key, Projection::value, Projection::gate, Projection::up}) {
    if (other == projection) continue;
    for (const View& view : it.run.weights.matrices(it.site.layer, other, out, in))
      add(view, fmt::format("B multiplies by the weight of the {}", name_of(other)),
          "other_weight");
  }
  for (const int64_t layer : it.run.weights.layers()) {
    if (layer == it.site.layer) continue;
    for (const View& view : it.run.weights.matrices(layer, projection, out, in))
      add(view, fmt::format("B multiplies by the weight of layer {}", layer), "other_layer");
  }
  return guesses;
}

const Site* only_input(const Case& it) {
  return it.site.inputs.size() == 1 ? &it.run.sites[it.site.inputs[0]] : nullptr;
}

// A projection with its form, as a computes it.
struct ProjectionStep {
  Projection projection;
  const Site* input;
  Samples samples;
  LearntForm learnt;
};

std::optional<ProjectionStep> learn_projection(const Case& it) {
  const std::optional<Projection> projection = projection_of(it.run, it.site);
  const Site* input = only_input(it);
  if (!projection || !input || it.run.weights.empty()) return std::nullopt;
  const double work =
      static_cast<double>(kFeaturesMax * by_tokens(input->views.a, it.run.extent).features);
  std::optional<Samples> samples = samples_of(it, *input, work);
  std::optional<LearntForm> learnt = samples ? learn_form(it, *projection, *samples) : std::nullopt;
  if (!learnt) return std::nullopt;
  return ProjectionStep{*projection, input, std::move(*samples), std::move(*learnt)};
}

}  // namespace

double noise_of(const Case& it, const Replayed& replayed) {
  return std::max(4 * replayed.own, limits::kReplayed * it.site.roundoff);
}

std::optional<Expected> expect_replay(const Case& it, const Site& input, const Replayed& replayed,
                                      double work_per_row, const MakeRows& make) {
  Expected result;
  result.left = replayed.before;
  result.floor = noise_of(it, replayed);
  if (result.met()) return result;
  const Result<Matrix> in = read_matrix(input.views.b, it.run.extent, it.b.first_token);
  if (!in.ok() || in.value().batch != it.b.batch) return std::nullopt;
  const double affordable = kWorkMax / (work_per_row * static_cast<double>(it.b.batch));
  const uint64_t tokens =
      std::min({in.value().tokens, it.b.tokens, static_cast<uint64_t>(std::max(2.0, affordable))});
  std::vector<uint64_t> all(it.b.features);
  std::iota(all.begin(), all.end(), 0);
  result.b = first_tokens(it.b, tokens);
  result.made = like(result.b);
  result.made.values = make(first_tokens(in.value(), tokens), all).values;
  return result;
}

std::optional<Samples> samples_of(const Case& it, const Site& input, double work_per_row) {
  Result<Matrix> in_a = read_matrix(input.views.a, it.run.extent, it.a.first_token);
  Result<Matrix> in_b = read_matrix(input.views.b, it.run.extent, it.a.first_token);
  if (!in_a.ok() || !in_b.ok() || in_a.value().batch != it.a.batch) return std::nullopt;
  // Of a wide input fewer tokens are held.
  const uint64_t tokens = std::min(in_a.value().tokens, it.a.tokens);
  if (tokens == 0 || it.a.features == 0 || in_a.value().features != in_b.value().features)
    return std::nullopt;
  Samples samples;
  const auto affordable = static_cast<uint64_t>(std::max(2.0, kWorkMax / work_per_row));
  const uint64_t wanted =
      std::max(kRowsMax, static_cast<uint64_t>(kWorkOfMore / std::max(1.0, work_per_row)));
  samples.rows = spread(tokens, std::min(wanted, affordable));
  for (const uint64_t row : farthest_rows(it.a, it.b, kWorstRows))
    if (row < tokens && !std::ranges::binary_search(samples.rows, row)) samples.rows.push_back(row);
  std::ranges::sort(samples.rows);
  samples.features = spread(it.a.features, kFeaturesMax);
  samples.in_a = rows_of(in_a.value(), samples.rows);
  samples.in_b = rows_of(in_b.value(), samples.rows);
  samples.out_a = columns_of(rows_of(it.a, samples.rows), samples.features);
  samples.out_b = columns_of(rows_of(it.b, samples.rows), samples.features);
  return samples;
}

double misfit(const Matrix& made, const Matrix& out) {
  const double size = norm(out.values);
  return size > 0 && made.values.size() == out.values.size()
             ? distance(made.values, out.values) / size
             : 1;
}

Matrix product(const Matrix& in, const View& weight, const std::vector<uint64_t>& features,
               uint64_t begin, uint64_t end) {
  Matrix made;
  made.tokens = in.rows();
  made.features = features.size();
  const Result<Reader> reader = Reader::open(weight);
  if (!reader.ok() || end > weight.shape[1]) return made;
  made.values.resize(in.rows() * features.size());
  std::vector<double> line(end - begin);
  for (std::size_t at = 0; at < features.size(); ++at) {
    reader.value().values(features[at] * weight.shape[1] + begin, line.size(), line.data());
    for (uint64_t row = 0; row < in.rows(); ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < line.size(); ++i) sum += line[i] * in.row(row)[begin + i];
      made.values[row * features.size() + at] = sum;
    }
  }
  return made;
}

Explanation explain_replay(const Case& it, const Samples& samples, const Replayed& replayed,
                           const Matrix& made, std::string text) {
  Explanation result;
  result.text = std::move(text);
  result.before = replayed.before;
  result.after = misfit(made, samples.out_b);
  result.settled = result.after <= noise_of(it, replayed) &&
                   result.after <= limits::kImprovement * replayed.before;
  if (made.values.empty()) return result;
  result.model = like(it.b);
  std::ranges::fill(result.model->values, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t r = 0; r < samples.rows.size(); ++r)
    for (std::size_t f = 0; f < samples.features.size(); ++f)
      result.model->row(samples.rows[r])[samples.features[f]] = made.row(r)[f];
  return result;
}

std::optional<Projection> projection_of(const Run& run, const Site& site) {
  switch (site.role) {
    case Role::query:
      return Projection::query;
    case Role::key:
      return Projection::key;
    case Role::value:
      return Projection::value;
    case Role::attention_output:
      return Projection::attention_output;
    case Role::gate:
      return Projection::gate;
    case Role::up:
      return Projection::up;
    case Role::mlp_output:
      // From its norm it is a whole MLP.
      return find_role(run, site, Role::activation) ? std::optional(Projection::down)
                                                    : std::nullopt;
    case Role::logits:
      return Projection::logits;
    default:
      return std::nullopt;
  }
}

std::optional<Expected> expect_projection(const Case& it) {
  const std::optional<ProjectionStep> step = learn_projection(it);
  if (!step) return std::nullopt;
  const double work = static_cast<double>(it.b.features * step->samples.in_b.features);
  return expect_replay(it, *step->input, step->learnt.replayed, work,
                       [&](const Matrix& in, const std::vector<uint64_t>& features) {
                         return made_by(step->learnt.form, in, features);
                       });
}

std::optional<Explanation> replay_projection(const Case& it) {
  const std::optional<ProjectionStep> step = learn_projection(it);
  if (!step) return std::nullopt;
  const auto& [projection, input, samples, learnt] = *step;
  // Nothing to explain where b computes what a computes.
  if (learnt.replayed.before <= noise_of(it, learnt.replayed)) return std::nullopt;
  std::optional<Explanation> best;
  for (const Guess& guess : guesses_for(it, projection, learnt, samples.in_a.features)) {
    Explanation found =
        explain_replay(it, samples, learnt.replayed,
                       made_by(guess.form, samples.in_b, samples.features), guess.text);
    found.parameters = {{"cause", guess.cause}};
    if (found.settled) return found;
    if (!best || found.after < best->after) best = std::move(found);
  }
  return best;
}

std::optional<Explanation> replay_partial_sum(const Case& it) {
  const std::optional<ProjectionStep> step =
      reduces_over_ranks(it.site.role) ? learn_projection(it) : std::nullopt;
  if (!step) return std::nullopt;
  const auto& [projection, input, samples, learnt] = *step;
  const uint64_t in = samples.in_b.features;
  for (const uint64_t ranks : kRanksTried) {
    for (uint64_t rank = 0; rank < ranks && in % ranks == 0; ++rank) {
      for (const double times : {learnt.form.times, 0.0}) {
        Matrix made = product(samples.in_b, learnt.form.weight, samples.features, rank * in / ranks,
                              (rank + 1) * in / ranks);
        add_bias(made, learnt.form.bias, samples.features, times);
        Explanation found = explain_replay(
            it, samples, learnt.replayed, made,
            fmt::format("B is the part of rank {} of {}: the sum over ranks is missing", rank,
                        ranks));
        found.parameters = {{"cause", std::string("missing_all_reduce")},
                            {"rank", static_cast<double>(rank)},
                            {"ranks", static_cast<double>(ranks)}};
        if (found.settled) return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace tensordiff
