// `-o csv`: a row for each pair and each unpaired tensor, for spreadsheets and data frames.
//
// An undefined number is an empty field. Fields are quoted as RFC 4180 has it.

#include <fmt/format.h>

#include <algorithm>

#include "report/csv_row.h"
#include "report/divergence_text.h"
#include "report/renderer.h"
#include "report/selection.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::string_view kHeader =
    "index,name_a,name_b,layer,stage,matched_by,status,dtype_a,dtype_b,shape_a,shape_b,compared,"
    "equal,max_abs,max_abs_at,a_there,b_there,mean_abs,mse,rmse,max_rel,mean_rel,rel_l2,cosine,pcc,"
    "norm_ratio,ulp_max,nonfinite_mismatch,nonfinite_agreeing,exceeding,atol,rtol,rtol_needed,"
    "message,verdict,diverges,findings,baseline\n";

std::string index_text(const std::vector<uint64_t>& index) {
  std::string text;
  for (const uint64_t i : index) text += fmt::format("{}{}", text.empty() ? "" : " ", i);
  return text;
}

void add_diff(CsvRow& row, const Diff& diff) {
  row.field(diff.compared).field(diff.equal).field(diff.max_abs);
  row.field(index_text(diff.max_abs_at)).field(diff.a_there).field(diff.b_there);
  row.field(diff.mean_abs).field(diff.mse).field(diff.rmse).field(diff.max_rel);
  row.field(diff.mean_rel).field(diff.rel_l2).field(diff.cosine).field(diff.pcc);
  row.field(diff.norm_ratio).field(diff.ulp_max).field(diff.nonfinite_mismatch);
  row.field(diff.nonfinite_agreeing).field(diff.exceeding).field(diff.tolerance.atol);
  row.field(diff.tolerance.rtol).field(diff.rtol_needed);
}

// Whether the two part here: "first", "next" or nothing.
std::string_view divergence_of(const Report& report, std::size_t pair) {
  if (report.first_divergence && report.first_divergence->pair == pair) return "first";
  const bool next = std::ranges::find(report.next_divergences, pair, &Divergence::pair) !=
                    report.next_divergences.end();
  return next ? "next" : "";
}

std::string findings_of(const Report& report, std::size_t pair) {
  std::string out;
  for (const Finding& finding : report.findings)
    if (finding.pair == pair)
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", finding.code, cause_of(finding));
  return out;
}

std::string pair_line(const Report& report, const PairRow& pair) {
  const Status status = pair.comparison.status;
  CsvRow row;
  row.field(uint64_t{pair.index}).text(pair.a.name).text(pair.b.name);
  row.field(pair.layer).text(pair.stage).field(matched_by_text(pair)).field(name_of(status));
  row.field(name_of(pair.a.dtype)).field(name_of(pair.b.dtype));
  row.field(index_text(pair.a.shape)).field(index_text(pair.b.shape));
  if (report.shape_only || status == Status::incomparable || status == Status::error)
    row.skip(22);
  else
    add_diff(row, pair.comparison.diff);
  row.text(message_of(pair)).field(pair.verdict ? name_of(*pair.verdict) : "");
  row.field(divergence_of(report, pair.index)).text(findings_of(report, pair.index));
  return row.field(name_of(pair.novelty)).take();
}

std::string unpaired_line(const Report::Unpaired& unpaired, bool of_a) {
  const TensorId& tensor = unpaired.id;
  const std::string shape = index_text(tensor.shape);
  const auto on_side = [&](CsvRow& row, std::string_view text) {
    of_a ? row.text(text).skip(1) : row.skip(1).text(text);
  };
  CsvRow row;
  row.skip(1);
  on_side(row, tensor.name);
  row.skip(3).field(of_a ? "only_a" : "only_b");
  on_side(row, name_of(tensor.dtype));
  on_side(row, shape);
  return row.skip(22).text(tensor.fault).skip(3).field(name_of(unpaired.novelty)).take();
}

// A table of nothing says why it is one.
std::string nothing_line(const Summary& summary) {
  CsvRow row;
  return row.skip(6).field(summary.verdict).skip(26).text(summary.caveat).skip(4).take();
}

std::string render(const Report& report, const RenderOptions& options) {
  std::string text(kHeader);
  std::size_t rows_left = options.top.value_or(0) > 0 ? *options.top : report.pairs.size();
  for (const PairRow* row : select_pairs(report, options, Sort::layer)) {
    if (rows_left-- == 0) break;
    text += pair_line(report, *row);
  }
  if (report.pairs.empty() && !report.summary.caveat.empty()) text += nothing_line(report.summary);
  if (!options.show_unpaired) return text;
  for (const auto& tensor : report.only_a) text += unpaired_line(tensor, true);
  for (const auto& tensor : report.only_b) text += unpaired_line(tensor, false);
  return text;
}

}  // namespace

constinit const Renderer renderers::csv = {
    .name = "csv",
    .summary = "a row for each pair and each unpaired tensor",
    .unpaired_stats = false,
    .render = render,
};

}  // namespace tensordiff
