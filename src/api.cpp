// The public API over the pipeline: the request filled from Options, the Report as JSON.

#include "base/parallel.h"
#include "pipeline.h"
#include "report/renderer.h"
#include "tensordiff/tensordiff.h"

namespace tensordiff::api {
namespace {

Verdict verdict_named(std::string_view name) {
  if (name == "same") return Verdict::same;
  if (name == "close") return Verdict::close;
  if (name == "different") return Verdict::different;
  return Verdict::trouble;
}

}  // namespace

Outcome compare(const std::string& a, const std::string& b, const Options& options) {
  set_threads(options.threads);
  Request request;
  request.a = a;
  request.b = b;
  request.compare.atol = options.atol;
  request.compare.rtol = options.rtol;
  request.compare.equal_nan = options.equal_nan;

  const Result<Report> report = compare_models(request);
  if (!report.ok()) return {Verdict::trouble, "", report.error().message()};
  return {verdict_named(report.value().summary.verdict),
          renderers::report.render(report.value(), {}), ""};
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

}  // namespace tensordiff::api
