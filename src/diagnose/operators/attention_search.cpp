// Which attention A computes: queries, keys and values by their shapes and places, and the form by
// what it leaves of A.

#include <algorithm>
#include <cmath>

#include "diagnose/operators/attention.h"
#include "diagnose/operators/combine.h"
#include "diagnose/operators/one_hot.h"
#include "diagnose/operators/proposal.h"

namespace tensordiff::operators {
namespace {

constexpr std::size_t kTriplesMax = 8;
constexpr uint64_t kDimMin = 4, kDimMax = 512;  // Of a head.
constexpr uint64_t kKeysMax = 2048;             // Of probabilities, which grow with their square.

// Where queries, keys and values come from, for a number of heads.
struct Source {
  Attention::Inputs inputs;
  uint64_t heads = 0, kv_heads = 0;
};

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// What was computed in the module, as it was computed; where that is nothing, in what contains it.
std::vector<DumpedPtr> nearby(const Context& context) {
  for (std::string scope = context.path(); !scope.empty(); scope = parent_of(scope)) {
    std::vector<DumpedPtr> found = context.inside(scope, Layout::tokens);
    std::erase_if(found, [&](const DumpedPtr& each) { return each->site().copy_of.has_value(); });
    if (found.empty()) continue;
    std::ranges::reverse(found);
    return found;
  }
  return {};
}

std::vector<uint64_t> head_sizes(const Context& context, uint64_t features) {
  std::vector<uint64_t> sizes;
  if (const auto& heads = context.run().facts.heads; heads && *heads > 0 && features % *heads == 0)
    sizes.push_back(features / *heads);
  for (const uint64_t usual : {64, 128, 32, 80, 96, 16, 8, 256})
    if (features % usual == 0) sizes.push_back(usual);
  for (uint64_t size = kDimMin; size <= std::min(features, kDimMax); ++size)
    if (features % size == 0 && std::ranges::find(sizes, size) == sizes.end())
      sizes.push_back(size);
  return sizes;
}

// Three tensors of their own: in the order in which they were computed before any other order.
std::vector<Attention::Inputs> triples_of(const std::vector<DumpedPtr>& all, const Extents& rows,
                                          uint64_t features) {
  std::vector<Attention::Inputs> ordered, others;
  for (std::size_t q = 0; q < all.size(); ++q) {
    if (all[q]->extents().features != features || all[q]->extents().rows() != rows.rows()) continue;
    for (std::size_t k = 0; k < all.size(); ++k)
      for (std::size_t v = 0; v < all.size(); ++v) {
        const Extents &keys = all[k]->extents(), &values = all[v]->extents();
        if (q == k || k == v || q == v || keys.rows() != values.rows() ||
            features % keys.features != 0 || keys.features != values.features)
          continue;
        if (keys.rows_by_axis.size() != all[q]->extents().rows_by_axis.size()) continue;
        (q < k && k < v ? ordered : others).push_back({all[q], all[k], all[v]});
      }
  }
  // Norms of queries and keys come behind all three: the last of each was read.
  std::ranges::reverse(others);
  if (all.size() > 4) std::ranges::reverse(ordered);
  ordered.insert(ordered.end(), others.begin(), others.end());
  if (ordered.size() > kTriplesMax) ordered.resize(kTriplesMax);
  return ordered;
}

// One tensor that holds all three, cut into three blocks or by the heads of keys.
void add_fused(const DumpedPtr& fused, uint64_t features, uint64_t dim,
               std::vector<Source>& found) {
  const uint64_t all = fused->extents().features;
  if (all <= features || (all - features) % (2 * dim) != 0) return;
  const uint64_t heads = features / dim, kv_heads = (all - features) / (2 * dim);
  if (heads % kv_heads != 0) return;
  const uint64_t keys = kv_heads * dim;
  found.push_back({{std::make_shared<Columns>(fused, 0, features),
                    std::make_shared<Columns>(fused, features, keys),
                    std::make_shared<Columns>(fused, features + keys, keys)},
                   heads,
                   kv_heads});
  const FusedPlaces places = places_by_head(heads, kv_heads, dim);
  found.push_back({{std::make_shared<Columns>(fused, places.query),
                    std::make_shared<Columns>(fused, places.key),
                    std::make_shared<Columns>(fused, places.value)},
                   heads,
                   kv_heads});
}

std::vector<Source> sources_of(const Context& context, const Extents& rows, uint64_t features) {
  std::vector<Source> sources;
  const std::vector<DumpedPtr> all = nearby(context);
  const std::vector<uint64_t> sizes = head_sizes(context, features);
  for (const Attention::Inputs& triple : triples_of(all, rows, features))
    for (const uint64_t dim : sizes) {
      const uint64_t keys = triple.key->extents().features;
      if (keys % dim == 0 && (features / dim) % (keys / dim) == 0)
        sources.push_back({triple, features / dim, keys / dim});
    }
  for (const DumpedPtr& fused : all)
    if (fused->extents().rows() == rows.rows())
      for (const uint64_t dim : sizes) add_fused(fused, features, dim, sources);
  return sources;
}

// A dumped bias of positions: [queries, keys, heads]. Of the nearest step before; where there is
// none, of one behind: some models compute it once, at a place of its own.
OperatorPtr bias_for(const Context& context, const Source& source, uint64_t places) {
  const std::vector<Site>& sites = context.run().sites;
  std::vector<const Site*> order;
  for (const Site* at = &context.site(); at != sites.data();) order.push_back(--at);
  for (const Site* at = &context.site() + 1; at < sites.data() + sites.size(); ++at)
    order.push_back(at);
  for (const Site* at : order) {
    const Shape& shape = at->views.a.shape;
    if (!at->compared() || shape.size() < 3 || shape.back() != source.heads ||
        at->views.a.elements() != places * source.heads)
      continue;
    if (DumpedPtr found = Dumped::make(context.run(), *at, Layout::plain)) return found;
  }
  return nullptr;
}

std::vector<Rope> ropes_for(const Context& context, uint64_t dim) {
  std::vector<Rope> ropes = {{}};
  if (dim % 2 != 0) return ropes;
  for (const double base : rope_bases(context))
    for (const uint64_t dims : {dim, dim / 2, dim / 4})
      for (const bool pairs : {false, true})
        if (dims >= 2 && dims % 2 == 0) ropes.push_back({base, dims, pairs});
  return ropes;
}

class Search {
 public:
  // `apart`: heads that are rows of their own in what is tried.
  Search(Around& around, const Extents& rows, uint64_t apart)
      : around_(around), rows_(rows), apart_(apart) {}

  // The form that leaves least of the rows of one sequence. First the heads, the mask and what the
  // values are, which show in any case; then, for the best few, what scores are made of.
  void run(const std::vector<Source>& sources, uint64_t sequence) {
    sequence_ = sequence;
    window_ = around_.context().run().facts.window.value_or(0);
    std::vector<Outline> outlines;
    for (const Source& source : sources) add_outlines(source, outlines);
    std::ranges::stable_sort(outlines, {}, &Outline::rest);
    for (std::size_t i = 0; i < std::min(kOutlines, outlines.size()) && least_ > kFound; ++i)
      try_forms(outlines[i]);
  }

  bool accept() {
    return best_ && (around_.accept(best_) || (mask_padding() && around_.accept(best_)));
  }

 private:
  // No other form comes so near: what is left is the noise of float32 and a little.
  static constexpr double kFound = 2e-6;

  // What is told before scores are looked at.
  struct Outline {
    Source source;
    bool causal = false;
    double rest = 0;
  };
  static constexpr std::size_t kOutlines = 4;

  double rest_of(const Source& source, const AttentionForm& form) const {
    auto made = std::make_shared<Attention>(form, source.inputs);
    return around_.rest(made, rows_for(*made, sequence_));
  }

  AttentionForm form_of(const Outline& outline) const {
    const Source& source = outline.source;
    const uint64_t dim = source.inputs.query->extents().features / source.heads;
    AttentionForm form{source.heads, source.kv_heads, false,
                       1 / std::sqrt(static_cast<double>(dim)), outline.causal};
    form.window = window_;
    form.cap = around_.context().run().facts.score_cap.value_or(0);
    return form;
  }

  void add_outlines(const Source& source, std::vector<Outline>& outlines) const {
    const Attention first({source.heads, source.kv_heads}, source.inputs);
    Source biased = source;
    biased.inputs.bias = bias_for(around_.context(), source, first.queries() * first.keys());
    for (const bool causal : {true, false}) {
      if (causal && first.queries() != first.keys()) continue;
      Outline outline{source, causal};
      outline.rest = rest_of(source, form_of(outline));
      // Scores that are not scaled, or biased, may hide the right heads.
      AttentionForm plain = form_of(outline);
      plain.scale = 1;
      outline.rest = std::min(outline.rest, rest_of(source, plain));
      if (biased.inputs.bias) outline.rest = std::min(outline.rest, rest_of(biased, plain));
      outlines.push_back(outline);
    }
  }

  void try_form(const Source& source, const AttentionForm& form) {
    if (least_ <= kFound) return;
    const double rest = rest_of(source, form);
    // The first of two that are alike is the simpler one.
    if (!(rest < 0.9 * least_)) return;
    least_ = rest, best_ = std::make_shared<Attention>(form, source.inputs), source_ = source;
  }

  void try_forms(const Outline& outline) {
    Source source = outline.source;
    const uint64_t dim = source.inputs.query->extents().features / source.heads;
    const Attention first({source.heads, source.kv_heads}, source.inputs);
    const OperatorPtr bias = bias_for(around_.context(), source, first.queries() * first.keys());
    const bool square = first.queries() == first.keys();
    const AttentionForm usual = form_of(outline);
    for (const double scale : {usual.scale, 1.0, stated_scale()}) {
      if (scale == 0) continue;
      AttentionForm form = usual;
      form.scale = scale;
      if (bias) {
        source.inputs.bias = bias;
        try_form(source, form);
        source.inputs.bias = nullptr;
      }
      for (const Rope& rope : square ? ropes_for(around_.context(), dim) : std::vector<Rope>(1)) {
        form.rope = rope;
        try_form(source, form);
      }
      form.rope = {};
      form.alibi = outline.causal;
      if (form.alibi) try_form(source, form);
    }
  }

  double stated_scale() const { return around_.context().run().facts.score_scale.value_or(0); }

  // A few queries of a sequence: of a long one early ones, which see few keys.
  std::vector<uint64_t> rows_for(const Attention& of, uint64_t sequence) const {
    std::vector<uint64_t> rows;
    const uint64_t tokens = of.queries();
    const uint64_t reach = std::min<uint64_t>(tokens, 48);
    for (const uint64_t token : {reach / 6, reach / 3, reach / 2, reach - 1})
      rows.push_back(sequence * tokens * apart_ + token);
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }

  // Padding that A masks, sequence by sequence.
  bool mask_padding() {
    AttentionForm form = best_->form();
    const uint64_t batch = rows_.rows() / best_->queries(), keys = best_->keys();
    form.seen.assign(batch, {0, keys});
    bool masked = false;
    for (uint64_t sequence = 0; sequence < batch; ++sequence) {
      auto rows = rows_for(*best_, sequence);
      double least = around_.rest(best_, rows);
      for (uint64_t pad = 1; pad < keys && least > kFound; ++pad)
        for (const bool left : {true, false}) {
          AttentionForm other = form;
          other.seen[sequence] = left ? std::pair{pad, keys} : std::pair{uint64_t{0}, keys - pad};
          const double rest =
              around_.rest(std::make_shared<Attention>(other, source_.inputs), rows);
          if (rest < 0.5 * least) least = rest, form = other, masked = true;
        }
    }
    if (masked) best_ = std::make_shared<Attention>(form, source_.inputs);
    return masked;
  }

  Around& around_;
  const Extents& rows_;
  uint64_t apart_ = 1;
  uint64_t sequence_ = 0;
  uint64_t window_ = 0;
  double least_ = INFINITY;
  Source source_;
  std::shared_ptr<const Attention> best_;
};

bool search_all(Around& around, const Extents& rows, const std::vector<Source>& sources,
                uint64_t apart = 1) {
  if (sources.empty()) return false;
  const Extents& queries = sources[0].inputs.query->extents();
  const uint64_t batch = queries.rows_by_axis.size() > 1 ? queries.rows_by_axis[0] : 1;
  for (uint64_t sequence = 0; sequence < batch; sequence += std::max<uint64_t>(1, batch - 1)) {
    Search search(around, rows, apart);
    search.run(sources, sequence);
    if (search.accept()) return true;
  }
  return false;
}

// Probabilities that were dumped, [batch, heads, queries, keys]: attention over values that tell
// the keys apart.
OperatorPtr propose_probabilities(const Context& context, const Dumped& target) {
  const Shape& shape = context.site().views.a.shape;
  if (shape.size() != 4 || shape[3] > kKeysMax || context.site().comparison.a.min.value_or(-1) < 0)
    return nullptr;
  const uint64_t heads = shape[1];
  std::vector<Source> sources;
  const std::vector<DumpedPtr> all = nearby(context);
  const auto fits = [&](const DumpedPtr& each, uint64_t tokens) {
    const std::vector<uint64_t>& axes = each->extents().rows_by_axis;
    return axes.size() == 2 && axes[0] == shape[0] && axes[1] == tokens;
  };
  for (const DumpedPtr& query : all)
    for (const DumpedPtr& key : all) {
      const uint64_t dim = query->extents().features / heads;
      if (query == key || !fits(query, shape[2]) || !fits(key, shape[3]) || dim == 0 ||
          query->extents().features % heads != 0 || key->extents().features % dim != 0 ||
          sources.size() == kTriplesMax)
        continue;
      const uint64_t kv_heads = key->extents().features / dim;
      if (kv_heads == 0 || heads % kv_heads != 0) continue;
      auto values = std::make_shared<OneHot>(key->extents().rows_by_axis, kv_heads);
      sources.push_back({{query, key, values}, heads, kv_heads});
    }
  const bool apart = target.extents().rows_by_axis.size() == 3;
  Around around(context, [&](const OperatorPtr& input) -> OperatorPtr {
    if (apart) return std::make_shared<HeadsApart>(input, heads);
    return input;
  });
  if (sources.empty()) return nullptr;
  const Extents& rows = sources[0].inputs.query->extents();
  return search_all(around, rows, sources, apart ? heads : 1) ? around.found() : nullptr;
}

OperatorPtr propose(const Context& context) {
  const DumpedPtr& target = context.target(Layout::tokens);
  if (!target) return nullptr;
  if (OperatorPtr found = propose_probabilities(context, *target)) return found;
  Around around(context, [](const OperatorPtr& input) { return input; });
  return try_attention(around, target->extents(), target->extents().features) ? around.found()
                                                                              : nullptr;
}

}  // namespace

FusedPlaces places_by_head(uint64_t heads, uint64_t kv_heads, uint64_t dim) {
  FusedPlaces places;
  const uint64_t group = heads / kv_heads + 2;  // Heads that stand together.
  for (uint64_t head = 0; head < heads + 2 * kv_heads; ++head) {
    const uint64_t place = head % group;
    std::vector<uint64_t>& to =
        place + 2 < group ? places.query : (place + 2 == group ? places.key : places.value);
    for (uint64_t i = 0; i < dim; ++i) to.push_back(head * dim + i);
  }
  return places;
}

bool try_attention(Around& around, const Extents& rows, uint64_t features) {
  return search_all(around, rows, sources_of(around.context(), rows, features));
}

constinit const Proposal kinds::attention = {
    .kind = "attention",
    .needs = "queries, keys and values",
    .propose = propose,
};

}  // namespace tensordiff::operators
