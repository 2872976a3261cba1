// A tensor as it is, or a sum of dumped ones; the last term may have a factor for each feature.

#include "diagnose/operators/combine.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/sources.h"

namespace tensordiff::operators {
namespace {

// x + γ ⊙ z, with γ a parameter of the module or of what contains it.
OperatorPtr with_factors(const Context& context, const Extents& extents) {
  std::vector<Named> vectors;
  for (const Named& each : context.parameters().under(context.path()))
    if (each.view->elements() == extents.features && each.leaf.find('.') == std::string::npos)
      vectors.push_back(each);
  const std::vector<DumpedPtr> near = context.like(extents);
  for (const Named& vector : vectors) {
    const std::vector<double> factors = read_vector(vector.view);
    if (factors.empty()) continue;
    for (const DumpedPtr& scaled : near) {
      const Term term{scaled, 1, factors, vector.name};
      auto alone = std::make_shared<Sum>(extents, std::vector<Term>{term});
      if (context.explains_a(*alone)) return alone;
      for (const DumpedPtr& other : near) {
        auto both = std::make_shared<Sum>(extents, std::vector<Term>{{other}, term});
        if (context.explains_a(*both)) return both;
      }
    }
  }
  return nullptr;
}

OperatorPtr propose(const Context& context) {
  for (const Layout layout : {Layout::tokens, Layout::channels}) {
    const DumpedPtr& target = context.target(layout);
    if (!target) continue;
    if (!context.parameters().empty())
      if (OperatorPtr found = with_factors(context, target->extents())) return found;
    if (layout == Layout::channels) break;
    OperatorPtr found;
    try_streams(context, target->extents(), [&](const OperatorPtr& input) {
      // In the layout of the target, whatever way its terms count their rows.
      OperatorPtr made = std::make_shared<Sum>(target->extents(), std::vector<Term>{{input}});
      if (const auto* sum = dynamic_cast<const Sum*>(input.get()))
        made = std::make_shared<Sum>(target->extents(), sum->terms());
      if (!context.explains_a(*made)) return false;
      found = made;
      return true;
    });
    if (found) return found;
  }
  return nullptr;
}

}  // namespace

constinit const Proposal kinds::sum = {
    .kind = "sum",
    .needs = "the tensors that are added",
    .propose = propose,
};

}  // namespace tensordiff::operators
