// How well a change explains what B's step gave, and what it costs to say so.
//
// A change is complete where it leaves no more of B than noise. Of several that are, the one with
// the shortest description is told: the likelihood of what it leaves, less a half log n for each
// number fitted to B and the bits of the search.

#pragma once

#include <vector>

#include "diagnose/operators/context.h"
#include "diagnose/operators/operator.h"

namespace tensordiff::hypotheses {

struct Scored {
  operators::Change change;
  operators::Misfit left;
  double score = 0;  // In nats, against the step as A computes it.
  bool complete = false;
};

struct Verdict {
  operators::Misfit on_a, on_b;  // What A's own operator leaves of each.
  bool own = false;              // B computes something else with its own inputs.
  double before = 0;             // The log likelihood of B under A's own operator.
  std::vector<Scored> tried;     // The best first.
};

Verdict judge(const operators::Context& context, const operators::OperatorPtr& step);

}  // namespace tensordiff::hypotheses
