// The public API over the pipeline: inputs opened or wrapped, the Report as plain values.

#include <fmt/format.h>

#include <mutex>

#include "base/build_info.h"
#include "base/parallel.h"
#include "base/sandbox.h"
#include "base/text.h"
#include "formats/recorded_names.h"
#include "naming/naming.h"
#include "pipeline.h"
#include "report/renderer.h"
#include "report/wording.h"
#include "tensordiff/tensordiff.h"

namespace tensordiff::api {
namespace {

Verdict public_verdict(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::same:
      return Verdict::same;
    case Conclusion::close:
      return Verdict::close;
    case Conclusion::different:
      return Verdict::different;
    case Conclusion::shapes_match:  // Of --shape-only and --baseline, which the API has not.
    case Conclusion::known:
    case Conclusion::trouble:
      break;
  }
  return Verdict::trouble;
}

Status public_status(tensordiff::Status status) {
  switch (status) {
    case tensordiff::Status::identical:
      return Status::identical;
    case tensordiff::Status::equal:
      return Status::equal;
    case tensordiff::Status::close:
      return Status::close;
    case tensordiff::Status::different:
      return Status::different;
    case tensordiff::Status::incomparable:
      return Status::incomparable;
    case tensordiff::Status::same_shape:  // Of --shape-only; here values are always compared.
    case tensordiff::Status::error:
      break;
  }
  return Status::error;
}

// --- inputs ---

// The bytes that the elements lie in, which the caller keeps.
Result<Bytes> memory_of(const Tensor& tensor, DType dtype, const Strides& strides) {
  const std::optional<uint64_t> count = element_count(tensor.shape);
  if (!count) return Error("shape {} is too large", shape_text(tensor.shape));
  if (*count == 0) return Bytes{};
  if (!tensor.data) return Error("no data");
  uint64_t last = 0;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (strides[axis] < 0) return Error("negative stride {}", strides[axis]);
    const auto reach = checked_mul(tensor.shape[axis] - 1, static_cast<uint64_t>(strides[axis]));
    const auto sum = reach ? checked_add(last, *reach) : std::nullopt;
    if (!sum || *sum >= kElementsMax) return Error("stride {} is too large", strides[axis]);
    last = *sum;
  }
  return Bytes{{static_cast<const std::byte*>(tensor.data), stored_bytes(dtype, last + 1)}, {}};
}

Result<View> view_of(const Tensor& tensor) {
  const std::optional<DType> dtype = dtype_named(tensor.dtype);
  if (!dtype) return Error("unknown dtype '{}'", tensor.dtype);
  const bool strided = !tensor.strides.empty();
  if (strided && tensor.strides.size() != tensor.shape.size())
    return Error("{} axes but {} strides", tensor.shape.size(), tensor.strides.size());
  if (strided && info(*dtype).block > 1) return Error("a dtype of blocks takes no strides");
  const Strides strides = strided ? tensor.strides : contiguous_strides(tensor.shape);
  ByteSource source(TRY(memory_of(tensor, *dtype, strides)));
  if (!strided) return contiguous_view(*dtype, tensor.shape, std::move(source));
  return strided_view(*dtype, tensor.shape, strides, 0, std::move(source));
}

Result<Catalog> catalog_of(const std::vector<Tensor>& tensors) {
  Catalog catalog;
  catalog.path = "memory";
  catalog.format = "memory";
  for (const Tensor& tensor : tensors) {
    View view = TRY(view_of(tensor).in(fmt::format("tensor '{}'", tensor.name)));
    catalog.tensors.push_back({tensor.name, std::move(view), ""});
  }
  make_names_unique(catalog);
  read_places(catalog);
  return catalog;
}

Result<Catalog> open(const Input& input) {
  if (const auto* tensors = std::get_if<std::vector<Tensor>>(&input)) return catalog_of(*tensors);
  return open_model(std::get<std::string>(input), {});
}

// --- the report ---

Diff public_diff(const tensordiff::Diff& from) {
  Diff to;
  to.compared = from.compared;
  to.equal = from.equal;
  to.max_abs = from.max_abs;
  to.max_abs_at = from.max_abs_at;
  to.a_there = from.a_there;
  to.b_there = from.b_there;
  to.mean_abs = from.mean_abs;
  to.mse = from.mse;
  to.rmse = from.rmse;
  to.max_rel = from.max_rel;
  to.mean_rel = from.mean_rel;
  to.rel_l2 = from.rel_l2;
  to.cosine = from.cosine;
  to.pcc = from.pcc;
  to.norm_ratio = from.norm_ratio;
  to.ulp_max = from.ulp_max;
  to.nonfinite_mismatch = from.nonfinite_mismatch;
  to.nonfinite_agreeing = from.nonfinite_agreeing;
  to.exceeding = from.exceeding;
  to.atol = from.tolerance.atol;
  to.rtol = from.tolerance.rtol;
  to.rtol_needed = from.rtol_needed;
  return to;
}

Pair public_pair(const PairRow& row) {
  Pair pair;
  pair.name_a = row.a.name;
  pair.name_b = row.b.name;
  pair.layer = row.layer;
  pair.stage = row.stage;
  pair.matched_by = matched_by_text(row);
  pair.dtype_a = name_of(row.a.dtype);
  pair.dtype_b = name_of(row.b.dtype);
  pair.shape_a = row.a.shape;
  pair.shape_b = row.b.shape;
  pair.shape = row.shape;
  pair.status = public_status(row.comparison.status);
  pair.diff = public_diff(row.comparison.diff);
  pair.message = message_of(row);
  return pair;
}

Finding public_finding(const tensordiff::Finding& from) {
  Finding finding;
  finding.code = from.code;
  finding.pair = from.pair;
  finding.confidence = from.confidence;
  finding.explanation = from.explanation;
  for (const tensordiff::Parameter& parameter : from.parameters)
    finding.parameters.push_back({parameter.name, parameter.value});
  finding.residual_before = from.residual_before;
  finding.residual_after = from.residual_after;
  finding.convention = from.convention;
  return finding;
}

Divergence public_divergence(const tensordiff::Divergence& from) {
  return {from.pair, from.created, from.explanation};
}

Unpaired public_unpaired(const tensordiff::Report::Unpaired& from) {
  return {from.id.name, std::string(name_of(from.id.dtype)), from.id.shape, from.id.fault};
}

Report public_report(const tensordiff::Report& from) {
  Report report;
  report.verdict = public_verdict(from.summary.verdict);
  for (const PairRow& row : from.pairs) report.pairs.push_back(public_pair(row));
  for (const auto& each : from.only_a) report.only_a.push_back(public_unpaired(each));
  for (const auto& each : from.only_b) report.only_b.push_back(public_unpaired(each));
  if (from.first_divergence) report.first_divergence = public_divergence(*from.first_divergence);
  for (const auto& each : from.next_divergences)
    report.next_divergences.push_back(public_divergence(each));
  for (const auto& each : from.findings) report.findings.push_back(public_finding(each));
  for (const Problem& each : from.a.problems)
    report.problems.push_back(fmt::format("A: {}: {}", each.where, each.message));
  for (const Problem& each : from.b.problems)
    report.problems.push_back(fmt::format("B: {}: {}", each.where, each.message));
  report.notes = from.notes;
  return report;
}

// --- the call ---

// Progress comes from any thread; the caller sees one call at a time, and numbers that only grow.
class Progress {
 public:
  explicit Progress(const std::function<void(uint64_t, uint64_t)>& told) : told_(told) {}

  void operator()(uint64_t done, uint64_t total) {
    const std::scoped_lock lock(mutex_);
    if (done < last_) return;
    last_ = done;
    told_(done, total);
  }

 private:
  const std::function<void(uint64_t, uint64_t)>& told_;
  std::mutex mutex_;
  uint64_t last_ = 0;
};

Result<tensordiff::Report> run(const Input& a, const Input& b, const Options& options) {
  Request request;
  request.compare.atol = options.atol;
  request.compare.rtol = options.rtol;
  request.compare.equal_nan = options.equal_nan;
  request.paths = options.paths;
  request.ignore_regex = options.ignore_regex;
  request.diagnose.enabled = options.diagnose;
  if (options.noise) request.noise_run = std::make_shared<const Catalog>(TRY(open(*options.noise)));
  Progress progress(options.progress);
  if (options.progress) request.progress = std::ref(progress);

  Catalog from_a = TRY(open(a));
  Catalog from_b = TRY(open(b));
  if (options.weights) {
    Catalog weights = TRY(open(*options.weights));
    add_tied(recorded_run(from_a), weights);
    request.diagnose.weights = Weights(weights);
  }
  Pairing pairing = TRY(pair_up(std::move(from_a), std::move(from_b), request));
  tensordiff::Report report = std::move(pairing.report);
  return compare_pairs(pairing, std::move(report), request);
}

}  // namespace

Outcome compare(const Input& a, const Input& b, const Options& options) {
  Cancellation cancellation;
  const std::stop_callback on_stop(options.stop, [&] { cancellation.cancel(); });
  std::optional<Result<tensordiff::Report>> report;  // Stays empty where nothing was begun.
  with_threads(options.threads, [&] { cancellation.run([&] { report = run(a, b, options); }); });

  Outcome outcome;
  outcome.cancelled = cancellation.cancelled();
  if (outcome.cancelled || !report) {
    outcome.error = "cancelled";
  } else if (!report->ok()) {
    outcome.error = report->error().message();
  } else {
    outcome.report = public_report(report->value());
    if (options.json) outcome.report_json = renderers::report.render(report->value(), {});
  }
  return outcome;
}

int exit_status(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
    case Verdict::close:
      return 0;
    case Verdict::different:
      return 1;
    case Verdict::trouble:
      break;
  }
  return 2;
}

void use_program(const std::string& path) { set_sandbox_program(path); }

const char* version() { return kVersion; }

}  // namespace tensordiff::api
