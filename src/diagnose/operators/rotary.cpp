// The cosines and sines that RoPE turns by, as models dump them: a function of position and feature
// alone.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/operators/attention.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kFirstMax = 4096;  // Where a step of decoding may stand.

struct Angles {
  bool sine = false;
  bool pairs = false;  // Each angle twice in a row, instead of all of them twice.
  bool once = false;   // Each angle once.
  double base = 1e4;
  double first = 0;  // The position of the first row.
  double stretch = 1;
};

class Rotary final : public Operator {
 public:
  Rotary(Extents extents, Angles angles) : extents_(std::move(extents)), angles_(angles) {}

  std::string_view kind() const override { return "rotary table"; }
  const Extents& extents() const override { return extents_; }
  Standing standing() const override { return Standing::fitted; }
  std::string text() const override { return "positions"; }

  Block predict(const Reading& from, const Grid& grid) const override {
    Block made{grid.columns.empty() ? extents_.features : grid.columns.size()};
    const uint64_t tokens = extents_.rows_by_axis.back();
    const uint64_t turns = angles_.once ? extents_.features : extents_.features / 2;
    for (const uint64_t row : grid.rows)
      for (uint64_t c = 0; c < made.features; ++c) {
        const uint64_t column = grid.columns.empty() ? c : grid.columns[c];
        const uint64_t i = angles_.pairs ? column / 2 : column % turns;
        const double power = static_cast<double>(i) / static_cast<double>(turns);
        const double position = angles_.first + static_cast<double>(row % tokens);
        const double angle =
            angles_.stretch * position * std::pow(angles_.base, -power) * (1 + from.unit);
        made.values.push_back(angles_.sine ? std::sin(angle) : std::cos(angle));
      }
    return made;
  }

  std::vector<Change> changes(const Context& context) const override {
    std::vector<Change> changes;
    const auto add = [&](const Angles& other, std::string code, std::string text) {
      changes.push_back({std::make_shared<Rotary>(extents_, other), std::move(code),
                         std::move(text), "angles", Family::parameter, 4});
    };
    Angles other = angles_;
    for (const double base : rope_bases(context)) {
      other.base = base;
      if (base != angles_.base)
        add(other, "rope_frequency",
            fmt::format("RoPE has base {} in B and {} in A", human_number(base),
                        human_number(angles_.base)));
    }
    for (const double stretch : {0.5, 0.25, 0.125, 2.0, 4.0, 8.0, -1.0}) {
      other = angles_;
      other.stretch = stretch;
      add(other, "rope_frequency",
          fmt::format("RoPE multiplies positions by {} in B", human_number(stretch)));
    }
    for (int by = -8; by <= 8; ++by) {
      other = angles_;
      other.first += by;
      if (by != 0)
        add(other, "rope_position",
            fmt::format("B's RoPE is {} {} {} A's", std::abs(by),
                        std::abs(by) == 1 ? "position" : "positions",
                        by > 0 ? "ahead of" : "behind"));
    }
    other = angles_;
    other.first = 0;
    if (angles_.first > 8) add(other, "rope_position", "B's RoPE counts positions from 0");
    if (!angles_.once) {
      other = angles_;
      other.pairs = !angles_.pairs;
      add(other, "rope_pairing", "RoPE of B pairs other features than A's");
    }
    return changes;
  }

 private:
  Extents extents_;
  Angles angles_;
};

OperatorPtr propose(const Context& context) {
  const DumpedPtr& target = context.target(Layout::tokens);
  const Stats& stats = context.site().comparison.a;
  if (!target || target->extents().features < 2 || stats.max.value_or(2) > 1 + 1e-3 ||
      stats.min.value_or(-2) < -1 - 1e-3)
    return nullptr;
  const bool one = target->extents().rows_by_axis.back() == 1;  // A step of decoding.
  for (const double base : rope_bases(context))
    for (const bool sine : {false, true})
      for (const int form : {0, 1, 2})
        for (uint64_t first = 0; first <= (one ? kFirstMax : 0); ++first) {
          const Angles angles{sine, form == 1, form == 2, base, static_cast<double>(first)};
          auto made = std::make_shared<Rotary>(target->extents(), angles);
          if (context.explains_a(*made)) return made;
        }
  return nullptr;
}

}  // namespace

constinit const Proposal kinds::rotary = {
    .kind = "rotary table",
    .needs = "nothing else",
    .propose = propose,
};

}  // namespace tensordiff::operators
