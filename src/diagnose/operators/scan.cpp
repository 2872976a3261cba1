#include "diagnose/operators/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/operators/reordered.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kFunctionsMax = uint64_t{1} << 24;  // Tokens times channels times states.

const ActivationFunction& function(std::string_view name) {
  return *std::ranges::find(activation_functions(), name, &ActivationFunction::name);
}

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

}  // namespace

// Row by row, since each state comes of the one before it.
bool Scan::run(const Reading& from, uint64_t sequence, Block& out) const {
  const uint64_t channels = extents_.features, states = form_.states, tokens = out.rows();
  Grid grid;
  for (uint64_t t = 0; t < tokens; ++t) grid.rows.push_back(sequence * tokens + t);
  const Block x = inputs_.x->predict(from, grid), step = inputs_.step->predict(from, grid),
              mix = inputs_.mix->predict(from, grid), gate = inputs_.gate->predict(from, grid);
  if (x.empty() || step.empty() || mix.empty() || gate.empty()) return false;
  const uint64_t rank = mix.features - 2 * states;
  std::vector<double> state(channels * states);
  for (uint64_t t = 0; t < tokens; ++t)
    for (uint64_t c = 0; c < channels; ++c) {
      const double delta = form_.step->value(step.row(t)[c]), in = x.row(t)[c];
      double sum = form_.skip ? form_.d[c] * in : 0;
      for (uint64_t n = 0; n < states; ++n) {
        const double log = form_.a_log[c * states + n];
        double& held = state[c * states + n];
        const double* read = mix.row(t) + rank + (form_.swapped ? states : 0);
        const double* write = mix.row(t) + rank + (form_.swapped ? 0 : states);
        held = std::exp(-delta * form_.decay->value(log)) * held + delta * read[n] * in;
        sum += held * write[n];
      }
      out.row(t)[c] = sum * (form_.gate ? form_.gate->value(gate.row(t)[c]) : 1);
    }
  return true;
}

Block Scan::predict(const Reading& from, const Grid& grid) const {
  const uint64_t tokens = extents_.rows_by_axis.back();
  if (tokens == 0 || tokens * extents_.features * form_.states > kFunctionsMax) return {};
  Block made{grid.columns.empty() ? extents_.features : grid.columns.size()};
  Block all{extents_.features, std::vector<double>(tokens * extents_.features)};
  uint64_t loaded = UINT64_MAX;
  for (const uint64_t row : grid.rows) {
    if (row / tokens != loaded && !run(from, row / tokens, all)) return {};
    loaded = row / tokens;
    for (uint64_t c = 0; c < made.features; ++c)
      made.values.push_back(all.row(row % tokens)[grid.columns.empty() ? c : grid.columns[c]]);
  }
  return made;
}

std::vector<Change> Scan::changes(const Context& context) const {
  std::vector<Change> changes;
  const auto add = [&](const ScanForm& form, std::string text, std::string cause) {
    changes.push_back({std::make_shared<Scan>(extents_, form, inputs_), "operator", std::move(text),
                       std::move(cause), Family::parameter, 3});
  };
  for (const ActivationFunction& other : activation_functions()) {
    ScanForm form = form_;
    form.step = &other;
    if (form_.step != &other)
      add(form,
          fmt::format("B applies {} to the step sizes where A applies {}", other.name,
                      form_.step->name),
          "step_function");
  }
  for (const ActivationFunction& other : activation_functions()) {
    ScanForm form = form_;
    form.gate = &other;
    if (form_.gate != &other)
      add(form,
          fmt::format("B applies {} to the gate where A applies {}", other.name, form_.gate->name),
          "activation");
  }
  ScanForm form = form_;
  form.gate = nullptr;
  add(form, "B omits the gate of the scan", "gate_missing");
  form = form_;
  form.skip = !form_.skip;
  add(form, form_.skip ? "B leaves out D · x, which goes around the scan" : "B adds D · x",
      "skip_missing");
  for (const ActivationFunction& other : activation_functions()) {
    form = form_;
    form.decay = &other;
    if (form_.decay != &other)
      add(form,
          fmt::format("B makes A of A_log by {} where A has {}", other.name, form_.decay->name),
          "decay");
  }
  form = form_;
  form.swapped = !form_.swapped;
  add(form, "B swaps the B and the C of the scan", "mix_swapped");
  for (const auto input : {&Inputs::x, &Inputs::step, &Inputs::mix, &Inputs::gate})
    lift((inputs_.*input)->changes(context),
         [&](const OperatorPtr& made) {
           Inputs other = inputs_;
           other.*input = made;
           return std::make_shared<Scan>(extents_, form_, other);
         },
         changes);
  return changes;
}

namespace {

// The last tensors of a module with so many features, as tokens; a convolution over time has its
// channels first and may be longer by its padding, which is cut off behind.
std::vector<OperatorPtr> of_width(const Context& context, const std::string& scope,
                                  const Extents& rows, uint64_t features) {
  std::vector<OperatorPtr> found;
  for (const DumpedPtr& each : context.inside(scope, Layout::tokens))
    if (each->extents().rows() == rows.rows() && each->extents().features == features)
      found.push_back(each);
  const Extents extents{rows.rows_by_axis, features, Layout::tokens};
  for (const DumpedPtr& each : context.inside(scope, Layout::channels)) {
    const std::vector<uint64_t>& axes = each->extents().rows_by_axis;
    if (axes.size() != 2 || each->extents().features != features ||
        axes[0] != rows.rows_by_axis[0] || axes[1] < rows.rows_by_axis.back())
      continue;
    std::vector<uint64_t> ids;
    for (uint64_t row = 0; row < rows.rows(); ++row)
      ids.push_back(row / rows.rows_by_axis.back() * axes[1] + row % rows.rows_by_axis.back());
    found.push_back(std::make_shared<Rows>(each, extents, std::move(ids)));
  }
  return found;
}

}  // namespace

bool try_scan(Around& around, const Extents& rows, uint64_t features) {
  const Context& context = around.context();
  const std::string scope = parent_of(context.path());
  const View* a_log = context.parameters().find(scope, "A_log");
  const std::vector<double> d = read_vector(context.parameters().find(scope, "D"));
  if (!a_log || a_log->shape.size() != 2 || a_log->shape[0] != features || d.size() != features ||
      rows.rows_by_axis.size() != 2)
    return false;
  ScanForm form{a_log->shape[1], read_vector(a_log), d, &function("softplus"), &function("SiLU")};
  form.decay = &function("exp");
  if (form.a_log.empty()) return false;
  const Extents extents{rows.rows_by_axis, features, Layout::tokens};
  const std::vector<OperatorPtr> wide = of_width(context, scope, rows, features);
  for (const DumpedPtr& fused : context.inside(scope, Layout::tokens)) {
    if (fused->extents().features != 2 * features || fused->extents().rows() != rows.rows())
      continue;
    const OperatorPtr gate = std::make_shared<Columns>(fused, features, features);
    for (const DumpedPtr& mix : context.inside(scope, Layout::tokens)) {
      if (mix->extents().features < 2 * form.states || mix->extents().features >= features ||
          mix->extents().rows() != rows.rows())
        continue;
      for (const OperatorPtr& step : wide)
        for (const OperatorPtr& x : wide) {
          const OperatorPtr in = std::make_shared<Map>(function("SiLU"), x);
          if (x != step && around.accept(std::make_shared<Scan>(extents, form,
                                                                Scan::Inputs{in, step, mix, gate})))
            return true;
        }
    }
  }
  return false;
}

}  // namespace tensordiff::operators
