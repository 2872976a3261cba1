// The maximum or the mean over windows of an image, or over all of it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnose/operators/combine.h"
#include "diagnose/operators/context.h"
#include "diagnose/operators/proposal.h"
#include "diagnose/operators/windows.h"

namespace tensordiff::operators {
namespace {

enum class Pool { maximum, mean, mean_of_seen };  // The last: padding does not count.

std::string_view name_of(Pool pool) {
  switch (pool) {
    case Pool::maximum:
      return "the maximum";
    case Pool::mean:
      return "the mean, padding included,";
    default:
      return "the mean";
  }
}

class WindowPool final : public Operator {
 public:
  WindowPool(Extents extents, Pool pool, Windows windows, OperatorPtr input)
      : extents_(std::move(extents)),
        pool_(pool),
        windows_(std::move(windows)),
        input_(std::move(input)) {}

  std::string_view kind() const override { return "pooling"; }
  const Extents& extents() const override { return extents_; }
  Standing standing() const override { return Standing::fitted; }
  std::string text() const override {
    return fmt::format("{} over windows of {}", name_of(pool_), input_->text());
  }

  Block predict(const Reading& from, const Grid& grid) const override {
    Block made{grid.columns.empty() ? extents_.features : grid.columns.size()};
    for (const uint64_t row : grid.rows) {
      Grid needed{{}, grid.columns};
      for (uint64_t place = 0; place < windows_.places(); ++place)
        if (const auto under = windows_.under(input_->extents(), extents_, row, place))
          needed.rows.push_back(*under);
      const Block x = needed.rows.empty() ? Block{} : input_->predict(from, needed);
      if (x.empty()) return {};
      const auto count = static_cast<double>(pool_ == Pool::mean ? windows_.places() : x.rows());
      for (uint64_t c = 0; c < made.features; ++c) {
        double most = -std::numeric_limits<double>::infinity(), total = 0;
        for (uint64_t r = 0; r < x.rows(); ++r) {
          most = std::max(most, x.row(r)[c]);
          total += x.row(r)[c];
        }
        made.values.push_back(pool_ == Pool::maximum ? most : total / count);
      }
    }
    return made;
  }

  std::vector<Change> changes(const Context& context) const override {
    std::vector<Change> changes;
    for (const Pool pool : {Pool::maximum, Pool::mean, Pool::mean_of_seen})
      if (pool != pool_)
        changes.push_back(
            {std::make_shared<WindowPool>(extents_, pool, windows_, input_), "operator",
             fmt::format("B takes {} where A takes {}", name_of(pool), name_of(pool_)), "pooling",
             Family::parameter, 2});
    for (const int64_t by : {-1, 1, -2, 2}) {
      Windows other = windows_;
      other.padding += by;
      if (other.padding >= 0)
        changes.push_back({std::make_shared<WindowPool>(extents_, pool_, other, input_), "operator",
                           fmt::format("B pads by {} in front, A by {}; the rest is at the end",
                                       other.padding, windows_.padding),
                           "padding", Family::parameter, 3});
    }
    for (const uint64_t size : {2, 3, 5, 7}) {
      Windows other = windows_;
      std::ranges::fill(other.kernel, size);
      if (other.kernel != windows_.kernel)
        changes.push_back(
            {std::make_shared<WindowPool>(extents_, pool_, other, input_), "operator",
             fmt::format("B's windows have size {} where A's have {}", size, windows_.kernel[0]),
             "kernel", Family::parameter, 3});
    }
    lift(
        input_->changes(context),
        [&](const OperatorPtr& made) {
          return std::make_shared<WindowPool>(extents_, pool_, windows_, made);
        },
        changes);
    return changes;
  }

 private:
  Extents extents_;
  Pool pool_;
  Windows windows_;
  OperatorPtr input_;
};

// Of one row for each image or sequence.
OperatorPtr whole(const Context& context, const Extents& extents) {
  if (extents.rows_by_axis.size() != 1) return nullptr;
  for (const Layout layout : {Layout::tokens, Layout::channels})
    for (const DumpedPtr& input : context.of_features(extents.features, layout)) {
      const std::vector<uint64_t>& rows = input->extents().rows_by_axis;
      if (rows.size() < 2 || rows[0] != extents.rows()) continue;
      for (const auto by : {Pooled::By::mean, Pooled::By::first, Pooled::By::last,
                            Pooled::By::maximum, Pooled::By::mean_of_others}) {
        auto made = std::make_shared<Pooled>(input, by);
        if (context.explains_a(*made)) return made;
      }
    }
  return nullptr;
}

OperatorPtr propose(const Context& context) {
  if (const DumpedPtr& target = context.target(Layout::tokens))
    if (OperatorPtr found = whole(context, target->extents())) return found;
  const DumpedPtr& target = context.target(Layout::channels);
  if (!target) return nullptr;
  for (const DumpedPtr& input : context.of_features(target->extents().features, Layout::channels))
    for (const uint64_t size : {3, 2, 5, 7}) {
      const std::vector<uint64_t> kernel(input->extents().rows_by_axis.size() - 1, size);
      for (const Windows& windows : windows_for(input->extents(), target->extents(), kernel))
        for (const Pool pool : {Pool::maximum, Pool::mean, Pool::mean_of_seen}) {
          auto made = std::make_shared<WindowPool>(target->extents(), pool, windows, input);
          if (context.explains_a(*made)) return made;
        }
    }
  return nullptr;
}

}  // namespace

constinit const Proposal kinds::pooling = {
    .kind = "pooling",
    .needs = "the tensor that is pooled",
    .propose = propose,
};

}  // namespace tensordiff::operators
