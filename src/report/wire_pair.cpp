// The fields of a pair and of its numbers.

#include "report/json_values.h"
#include "report/wire.h"
#include "report/wording.h"

namespace tensordiff::wire {
namespace {

// --- numbers ---

std::optional<std::span<const uint64_t>> max_abs_at(const Diff& diff) {
  if (!diff.max_abs && diff.nonfinite_mismatch == 0) return std::nullopt;
  return diff.max_abs_at;
}
double atol(const Diff& diff) { return diff.tolerance.atol; }
double rtol(const Diff& diff) { return diff.tolerance.rtol; }

constexpr Field<Diff> kDiff[] = {
    field<&Diff::compared>("compared", "positions where both sides are finite"),
    field<&Diff::equal>("equal", "those of them with the same value"),
    field<&Diff::max_abs>("max_abs", "the largest |B − A|"),
    field<max_abs_at>("max_abs_at",
                      "where that is, in the compared shape; the first NaN or Inf that "
                      "only one side has, where there is one"),
    field<&Diff::a_there>("a_there", "the value of A there"),
    field<&Diff::b_there>("b_there", "the value of B there"),
    field<&Diff::mean_abs>("mean_abs", "mean of |B − A|"),
    field<&Diff::mse>("mse", "mean of (B − A)²"),
    field<&Diff::rmse>("rmse", "its square root"),
    field<&Diff::max_rel>("max_rel", "the largest |B − A| / |A|"),
    field<&Diff::mean_rel>("mean_rel", "mean of |B − A| / |A|"),
    field<&Diff::rel_l2>("rel_l2", "‖B − A‖ / ‖A‖"),
    field<&Diff::cosine>("cosine", "cosine of the angle between A and B"),
    field<&Diff::pcc>("pcc", "Pearson correlation"),
    field<&Diff::norm_ratio>("norm_ratio", "‖B‖ / ‖A‖"),
    field<&Diff::ulp_max>("ulp_max", "the largest distance in steps of the coarser dtype"),
    field<&Diff::nonfinite_mismatch>("nonfinite_mismatch",
                                     "positions where NaN or Inf is not the same on both sides"),
    field<&Diff::nonfinite_agreeing>("nonfinite_agreeing", "positions where it is"),
    field<&Diff::exceeding>("exceeding", "compared positions beyond the tolerance"),
    field<atol>("atol", "the absolute tolerance of this pair"),
    field<rtol>("rtol", "its relative tolerance"),
    field<&Diff::rtol_needed>("rtol_needed", "the rtol that would let all elements pass"),
};

constexpr Field<Stats> kStats[] = {
    field<&Stats::mean>("mean", "mean of the finite elements"),
    field<&Stats::std>("std", "their standard deviation, of the population"),
    field<&Stats::min>("min", "the least of them"),
    field<&Stats::max>("max", "the largest"),
    field<&Stats::norm>("norm", "their L2 norm"),
    field<&Stats::zeros>("zeros", "how many are 0"),
    field<&Stats::nan>("nan", "how many elements are NaN"),
    field<&Stats::inf>("inf", "how many are infinite"),
};

// --- pairs ---

void write_alignment(JsonWriter& json, const PairRow& row, Naming) {
  json.begin_array();
  for (const Step& step : row.steps) {
    json.begin_object().member("side", std::string_view(&step.side, 1));
    write_step(json, step);
    json.end_object();
  }
  json.end_array();
}
template <TensorId Row::*Which>
const std::string& name_on(const PairRow& row) {
  return (row.*Which).name;
}
template <TensorId Row::*Which>
std::string_view dtype_on(const PairRow& row) {
  return name_of((row.*Which).dtype);
}
template <TensorId Row::*Which>
const Shape& shape_on(const PairRow& row) {
  return (row.*Which).shape;
}
template <TensorId Row::*Which>
MaybeText made_from(const PairRow& row) {
  return {(row.*Which).made_from};
}
template <Stats Comparison::*Which>
const Stats& stats_on(const PairRow& row) {
  return row.comparison.*Which;
}
const Diff& diff_of(const PairRow& row) { return row.comparison.diff; }
std::optional<int64_t> layer_of(const PairRow& row) { return row.depth(); }
MaybeText stage_of(const PairRow& row) { return {row.stage}; }
std::string_view matched_by(const PairRow& row) { return matched_by_text(row); }
std::string_view status(const PairRow& row) { return name_of(row.comparison.status); }
std::optional<std::span<const uint64_t>> shape(const PairRow& row) {
  if (!row.compared()) return std::nullopt;
  return row.shape;
}
MaybeText message(const PairRow& row) { return {message_of(row)}; }
std::optional<std::string_view> verdict(const PairRow& row) {
  if (!row.verdict) return std::nullopt;
  return name_of(*row.verdict);
}
MaybeText novelty(const PairRow& row) { return {std::string(name_of(row.novelty))}; }

constexpr Field<PairRow> kPair[] = {
    field<&Row::index, PairRow>("index", "its place in `pairs`").with_csv(),
    field<name_on<&Row::a>>("name_a", "as in the file of A").with_csv(),
    field<name_on<&Row::b>>("name_b", "as in the file of B").with_csv(),
    field<layer_of>("layer", "if the names have one").with_csv(),
    field<stage_of>("stage", "its role in the layer").with_csv(),
    field<matched_by>("matched_by", "the strategy that paired them: matching.md").with_csv(),
    field<status>("status",
                  "`identical`: same values, dtype and shape; `equal`: same values; "
                  "`close`: within tolerance; `same_shape`: values not compared "
                  "(`--shape-only`); `incomparable`: no common layout; `error`: unreadable")
        .among(kStatusWords)
        .with_csv(),
    field<dtype_on<&Row::a>>("dtype_a", "as stored").with_csv(),
    field<dtype_on<&Row::b>>("dtype_b", "as stored").with_csv(),
    field<shape_on<&Row::a>>("shape_a", "as stored").with_csv(),
    field<shape_on<&Row::b>>("shape_b", "as stored").with_csv(),
    field<shape>("shape", "the one they were compared in"),
    {{"alignment",
      "what was done to get there, step by step: `side`, `op`, and `axis` (`squeeze`), `order` "
      "(`permute`), `axis` and `sizes` (`split`) or `axis` and `size` (`truncate`)",
      {Kind::object, false, true}},
     nullptr,
     write_alignment},
    object<stats_on<&Comparison::a>, kStats>("stats_a", kStatsTable, "what A looks like"),
    object<stats_on<&Comparison::b>, kStats>("stats_b", kStatsTable, "what B looks like"),
    object<diff_of, kDiff>("diff", kDiffTable, "how far they are apart").with_csv(),
    field<message>("message", "why it is incomparable or an error, or a remark about its layout")
        .with_csv(),
    field<verdict>("verdict", "of the noise model; null where no dump of activations was judged")
        .among(kVerdicts)
        .with_csv(),
    field<novelty>("baseline", "of a difference, with `--baseline`").among(kNovelties).with_csv(),
    field<made_from<&Row::a>>("made_from_a", "the packing that its values were decoded from"),
    field<made_from<&Row::b>>("made_from_b", "the packing that its values were decoded from"),
};

}  // namespace

constinit const Table kDiffTable = table<kDiff>("diff", "how far A and B are apart: metrics.md");
constinit const Table kStatsTable = table<kStats>("stats", "what one side looks like");
constinit const Table kPairTable = table<kPair>("pair", "two tensors that were compared");

std::span<const Field<Diff>> diff_fields() { return kDiff; }
std::span<const Field<Stats>> stats_fields() { return kStats; }
std::span<const Field<PairRow>> pair_fields() { return kPair; }

}  // namespace tensordiff::wire
