// alert_on_degradation: did b become worse than a by more than is allowed?
//
// Limits, each with --threshold NAME=X: loss (relative rise of the stored loss, or fall of the
// score), sqnr_db (signal over rounding noise, where b is a rounded a), critical (anomalies),
// memory_growth and slowdown (relative).

#include <fmt/format.h>

#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/anomalies.h"
#include "analyze/gates.h"
#include "analyze/quantization.h"
#include "analyze/roofline.h"
#include "analyze/structure.h"

namespace tensordiff {
namespace {

constexpr double kLossRise = 0.05;
constexpr double kSqnrMin = 20;  // dB
constexpr double kMemoryGrowth = 0.1;
constexpr double kSlowdown = 0.1;

double weight_bytes(const Catalog& catalog) {
  double bytes = 0;
  const Tensor* tied = tied_head(catalog);
  for (const Tensor& tensor : catalog.tensors)
    if (&tensor != tied && purpose_of(tensor.name, tensor.view.shape) == Purpose::weight)
      bytes += static_cast<double>(tensor.bytes());
  return bytes;
}

void check_loss(const Study& study, std::vector<Gate>& gates, Answer& answer) {
  const std::optional<Decline> decline = decline_of(study);
  if (!decline) {
    answer.unknown("loss_change", "a loss or score of the same name in both checkpoints");
    return;
  }
  const double limit = limit_of(study, "loss", kLossRise);
  answer.field("loss_change", decline->relative);
  gates.push_back({"loss", decline->relative <= limit,
                   fmt::format("{} went from {:.4g} to {:.4g}: {:.3g} % worse, {:.3g} % allowed",
                               decline->measure, decline->a, decline->b, 100 * decline->relative,
                               100 * limit)});
}

void check_noise(const Study& study, std::vector<Gate>& gates) {
  const std::vector<Quantized>& found = study.quantization().found;
  const std::optional<double> sqnr = sqnr_of(found);
  if (!sqnr || std::ranges::any_of(found, &Quantized::fitted)) return;
  const double limit = limit_of(study, "sqnr_db", kSqnrMin);
  gates.push_back(
      {"sqnr_db", *sqnr >= limit,
       fmt::format("{:.4g} dB of signal over rounding noise, {:.4g} wanted", *sqnr, limit)});
}

void check_growth(const Study& study, std::vector<Gate>& gates) {
  const double before = weight_bytes(study.a()), after = weight_bytes(study.b());
  const double limit = limit_of(study, "memory_growth", kMemoryGrowth);
  if (before > 0)
    gates.push_back({"memory_growth", after <= (1 + limit) * before,
                     fmt::format("weights grew by {:.3g} %, {:.3g} % allowed",
                                 100 * (after / before - 1), 100 * limit)});
  const std::optional<Device> device = find_device(study.options().device);
  if (!device) return;
  const std::optional<Roofline> a = roofline_of(study.a(), study.facts_a(), *device);
  const std::optional<Roofline> b = roofline_of(study.b(), study.facts_b(), *device);
  if (!a || !b) return;
  const double slower = b->seconds / a->seconds - 1,
               allowed = limit_of(study, "slowdown", kSlowdown);
  gates.push_back({"slowdown", slower <= allowed,
                   fmt::format("{:.3g} % slower at best on {}, {:.3g} % allowed", 100 * slower,
                               device->name, 100 * allowed)});
}

void examine(const Study& study, Answer& answer) {
  std::vector<Gate> gates;
  uint64_t critical = 0;
  for (const Anomaly& each : find_anomalies(study)) critical += each.severity == Grade::critical;
  const double limit = limit_of(study, "critical", 0);
  gates.push_back({"critical", static_cast<double>(critical) <= limit,
                   fmt::format("{} critical anomalies, {:.4g} allowed", critical, limit)});
  check_loss(study, gates, answer);
  check_noise(study, gates);
  check_growth(study, gates);
  answer.field("degraded", !std::ranges::all_of(gates, &Gate::passed));
  add_gates(gates, answer);
}

}  // namespace

constinit const Analysis analyses::alert_on_degradation = {
    .name = "alert_on_degradation",
    .flag = "--alert-on-degradation",
    .question = "Is B worse than A by more than the limits allow?",
    .definition = "loss, anomalies, rounding noise, memory and speed against limits; exit status 1",
    .examine = examine,
    .thresholds = []() -> std::vector<std::string_view> {
      return {"loss", "sqnr_db", "critical", "memory_growth", "slowdown"};
    },
};

}  // namespace tensordiff
