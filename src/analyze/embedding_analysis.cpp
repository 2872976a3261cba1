// embedding_analysis: which tokens moved, and do they have other neighbours?
//
//   A table that gained or lost rows at its end is compared as far as both have it.
//   drift of a row = ‖b − a‖ / ‖a‖, exact for every row
//   neighbours     = of up to 512 rows spread over the table: how many of the five nearest (by
//                    cosine) stay among the five nearest, on average

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/analysis.h"
#include "analyze/group_sums.h"
#include "analyze/patch.h"
#include "analyze/structure.h"
#include "base/json.h"

namespace tensordiff {
namespace {

constexpr std::size_t kNeighbours = 5;
constexpr PatchSize kTable{512, 256};
constexpr std::size_t kMostMoved = 10;

bool is_table(const Row& pair) {
  return pair.a.shape.size() == 2 && pair.a.shape[0] > kNeighbours &&
         part_of(pair.a.name, pair.a.place, pair.a.shape) == ModelPart::embedding;
}

// Token text by number, from a tokenizer beside the model.
std::map<uint64_t, std::string> token_texts(const Study& study) {
  std::map<uint64_t, std::string> texts;
  for (const Catalog* side : {&study.b(), &study.a()}) {
    if (!texts.empty()) continue;
    const Json tokenizer = json_beside(*side, "tokenizer.json");
    const Json plain = tokenizer.is_null() ? json_beside(*side, "vocab.json") : Json();
    const Json& vocabulary = tokenizer.is_null() ? plain : tokenizer["model"]["vocab"];
    for (const Json::Member& member : vocabulary.object())
      if (const std::optional<uint64_t> number = member.value.u64()) texts[*number] = member.key;
    for (const Json& added : tokenizer["added_tokens"].array())
      if (const std::optional<uint64_t> number = added["id"].u64())
        texts[*number] = added["content"].string();
  }
  return texts;
}

// The nearest of each row, itself left out, nearest first.
std::vector<std::vector<std::size_t>> neighbours(const Dense& rows) {
  const Dense products = row_gram(rows);
  std::vector<std::vector<std::size_t>> found(rows.rows);
  for (std::size_t i = 0; i < rows.rows; ++i) {
    std::vector<std::pair<double, std::size_t>> near;
    for (std::size_t j = 0; j < rows.rows; ++j) {
      const double lengths = std::sqrt(products.row(i)[i] * products.row(j)[j]);
      if (j != i) near.emplace_back(lengths > 0 ? -products.row(i)[j] / lengths : 0, j);
    }
    const std::size_t count = std::min(kNeighbours, near.size());
    std::ranges::partial_sort(near, near.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t k = 0; k < count; ++k) found[i].push_back(near[k].second);
  }
  return found;
}

std::optional<double> neighbours_kept(const Row& pair) {
  const Result<Dense> a = read_patch(pair.views.a, kTable), b = read_patch(pair.views.b, kTable);
  if (!a.ok() || !b.ok() || a.value().rows <= kNeighbours) return std::nullopt;
  const auto before = neighbours(a.value()), after = neighbours(b.value());
  double kept = 0, all = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    for (const std::size_t near : before[i]) {
      kept += std::ranges::find(after[i], near) != after[i].end();
      all += 1;
    }
  return kept / all;
}

// The first rows of a view that is stored in one piece; nothing for others.
std::optional<View> first_rows(View view, uint64_t rows) {
  if (view.parts.size() != 1 || view.terms > 1 || view.shape.size() != 2) return std::nullopt;
  view.shape[0] = view.parts[0].shape[0] = rows;
  return view;
}

// A table that gained or lost rows at its end, as far as both sides have it.
std::optional<Row> common_rows(const Study& study, const Row& pair) {
  if (pair.compared() || !is_table(pair) || pair.b.shape.size() != 2) return std::nullopt;
  if (pair.a.shape[1] != pair.b.shape[1] || pair.a.shape[0] == pair.b.shape[0]) return std::nullopt;
  const auto view_of = [](const Catalog& catalog, const std::string& name) -> std::optional<View> {
    for (const Tensor& tensor : catalog.tensors)
      if (tensor.name == name && tensor.fault.empty()) return tensor.view;
    return std::nullopt;
  };
  const std::optional<View> a = view_of(study.a(), pair.a.name),
                            b = view_of(study.b(), pair.b.name);
  if (!a || !b) return std::nullopt;
  const uint64_t rows = std::min(pair.a.shape[0], pair.b.shape[0]);
  const std::optional<View> first_a = first_rows(*a, rows), first_b = first_rows(*b, rows);
  if (!first_a || !first_b) return std::nullopt;
  Row common = pair;
  common.views = {*first_a, *first_b, {}, {}, {}};
  return common;
}

struct Moved {
  uint64_t row;
  double drift;
};

void add_table(const Row& pair, const std::map<uint64_t, std::string>& texts, Answer& answer) {
  const uint64_t rows = pair.views.a.shape[0], columns = pair.views.a.shape[1];
  const Result<std::vector<GroupSum>> sums = group_sums(pair.views, {columns, rows});
  if (!sums.ok()) return;
  std::vector<Moved> moved;
  double sum = 0;
  uint64_t changed = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    const double drift = sums.value()[row].relative().value_or(0);
    sum += drift;
    changed += sums.value()[row].dd > 0;
    if (drift > 0) moved.push_back({row, drift});
  }
  std::ranges::stable_sort(moved, std::greater(), &Moved::drift);
  answer.field("table", pair.a.name).field("rows", rows).field("rows_moved", changed);
  const uint64_t a = pair.a.shape[0], b = pair.b.shape[0];
  if (a != b)
    answer.field("vocabulary", fmt::format("{} {} rows; {} compared", b > a ? b - a : a - b,
                                           b > a ? "new" : "lost", rows));
  answer.field("mean_drift", sum / static_cast<double>(rows));
  answer.field("largest_drift", moved.empty() ? 0.0 : moved[0].drift);
  answer.field("neighbours_kept", neighbours_kept(pair));
  if (is_sampled(pair.views.a.shape, kTable))
    answer.notes.push_back("neighbours are searched among 512 rows, by 256 of their columns");
  Listing& list = answer.list("most_moved", {"row", "token", "drift"});
  for (std::size_t i = 0; i < std::min(kMostMoved, moved.size()); ++i) {
    const auto text = texts.find(moved[i].row);
    list.add({moved[i].row, text == texts.end() ? Datum() : Datum(text->second), moved[i].drift});
  }
}

void examine(const Study& study, Answer& answer) {
  const Row* largest = nullptr;
  std::optional<Row> resized;
  for (const Row* each : study.pairs()) {
    const Row& pair = *each;
    if (!is_weight(pair) || !is_table(pair) || pair.a.shape[0] > kGroupsMax) continue;
    if (largest && pair.a.shape[0] <= largest->a.shape[0]) continue;
    if (pair.compared() && pair.views.a.shape.size() == 2) {
      largest = &pair;
    } else if (std::optional<Row> common = common_rows(study, pair)) {
      resized = std::move(common);
      largest = &*resized;
    }
  }
  if (!largest) {
    answer.unknown("table", "an embedding table of the same width on both sides");
    return;
  }
  const std::map<uint64_t, std::string> texts = token_texts(study);
  add_table(*largest, texts, answer);
  if (texts.empty())
    answer.missing.push_back("tokenizer.json or vocab.json, for the text of tokens");
}

}  // namespace

constinit const Analysis analyses::embedding_analysis = {
    .name = "embedding_analysis",
    .flag = "--embedding-analysis",
    .question = "Which tokens moved, and do they have other neighbours?",
    .definition = "drift of every row of the embedding, most moved tokens, neighbours kept",
    .examine = examine,
};

}  // namespace tensordiff
