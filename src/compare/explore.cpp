#include "compare/explore.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/kernels/tile.h"
#include "compare/reduce.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// At most this many partial results exist at once, however large the tensor.
constexpr uint64_t kPartialsMax = 64;

// The values of one block of both sides, in row-major order.
class PairBlocks {
 public:
  static Result<PairBlocks> open(const AlignedPair& pair) {
    return PairBlocks(TRY(Reader::open(pair.a).in("A")), TRY(Reader::open(pair.b).in("B")));
  }

  uint64_t blocks() const { return (elements() + kBlockElements - 1) / kBlockElements; }
  uint64_t elements() const { return a_.view().elements(); }
  uint64_t chunk() const {
    return std::max<uint64_t>(1, (blocks() + kPartialsMax - 1) / kPartialsMax);
  }
  const Shape& shape() const { return a_.view().shape; }

  struct Values {
    uint64_t first = 0;
    std::vector<double> a, b;   // What is shown: the modulus where it is complex.
    std::vector<double> apart;  // |b - a|; NaN where either is not finite.
  };

  void read(uint64_t block, Values& values) const {
    values.first = block * kBlockElements;
    read(values.first, std::min<uint64_t>(kBlockElements, elements() - values.first), values);
  }

  void read(uint64_t first, std::size_t count, Values& values) const {
    values.first = first;
    const bool complex = is_complex(a_.view().dtype) || is_complex(b_.view().dtype);
    const std::vector<double> parts_a = parts(a_, first, count, complex);
    const std::vector<double> parts_b = parts(b_, first, count, complex);
    values.apart.resize(count);
    if (!complex) {
      for (std::size_t i = 0; i < count; ++i)
        values.apart[i] = distance(parts_a[i], parts_b[i], 0, 0);
      values.a = parts_a;
      values.b = parts_b;
      return;
    }
    values.a.resize(count);
    values.b.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      values.a[i] = std::hypot(parts_a[2 * i], parts_a[2 * i + 1]);
      values.b[i] = std::hypot(parts_b[2 * i], parts_b[2 * i + 1]);
      values.apart[i] =
          distance(parts_a[2 * i], parts_b[2 * i], parts_a[2 * i + 1], parts_b[2 * i + 1]);
    }
  }

  Result<void> finish() const {
    if (!a_.intact()) return Error("A: the file was cut short while it was read");
    if (!b_.intact()) return Error("B: the file was cut short while it was read");
    return {};
  }

 private:
  PairBlocks(Reader a, Reader b) : a_(std::move(a)), b_(std::move(b)) {}

  // One value for each element, or two where either side is complex.
  static std::vector<double> parts(const Reader& reader, uint64_t first, std::size_t count,
                                   bool complex) {
    std::vector<double> values(complex ? 2 * count : count);
    reader.components(first, count, values.data());
    if (complex && !is_complex(reader.view().dtype)) {
      for (std::size_t i = count; i-- > 0;) {
        values[2 * i] = values[i];
        values[2 * i + 1] = 0;
      }
    }
    return values;
  }

  static double distance(double re_a, double re_b, double im_a, double im_b) {
    const bool finite =
        std::isfinite(re_a) && std::isfinite(re_b) && std::isfinite(im_a) && std::isfinite(im_b);
    if (!finite) return kNan;
    return im_a == im_b ? std::abs(re_b - re_a) : std::hypot(re_b - re_a, im_b - im_a);
  }

  Reader a_;
  Reader b_;
};

// Largest, sum and counts of the bins of all axes.
struct ProfileSums {
  struct Bin {
    double most = -1;
    double sum = 0;
    uint64_t count = 0;
    uint64_t nonfinite = 0;
  };
  std::vector<std::vector<Bin>> axes;

  void merge(const ProfileSums& other) {
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      for (std::size_t i = 0; i < axes[axis].size(); ++i) {
        Bin& bin = axes[axis][i];
        const Bin& more = other.axes[axis][i];
        bin.most = std::max(bin.most, more.most);
        bin.sum += more.sum;
        bin.count += more.count;
        bin.nonfinite += more.nonfinite;
      }
    }
  }
};

void add_to(ProfileSums::Bin& bin, double apart) {
  if (std::isnan(apart)) {
    ++bin.nonfinite;
    return;
  }
  bin.most = std::max(bin.most, apart);
  bin.sum += apart;
  ++bin.count;
}

uint64_t indexes_per_bin(uint64_t size) {
  return std::max<uint64_t>(1, (size + kProfileBinsMax - 1) / kProfileBinsMax);
}

// Adds a block to the bins of every axis, a row of the last axis at a time: along a row only the
// bin of the last axis changes.
void add_block(const PairBlocks::Values& values, const Shape& shape, ProfileSums& sums) {
  std::vector<uint64_t> index = index_at(shape, values.first);
  const std::size_t last = shape.size() - 1;
  for (std::size_t done = 0; done < values.apart.size();) {
    const std::size_t run =
        std::min<uint64_t>(values.apart.size() - done, shape[last] - index[last]);
    ProfileSums::Bin row;
    const uint64_t width = indexes_per_bin(shape[last]);
    for (std::size_t i = 0; i < run; ++i) {
      const double apart = values.apart[done + i];
      add_to(sums.axes[last][(index[last] + i) / width], apart);
      add_to(row, apart);
    }
    for (std::size_t axis = 0; axis < last; ++axis) {
      ProfileSums::Bin& bin = sums.axes[axis][index[axis] / indexes_per_bin(shape[axis])];
      bin.most = std::max(bin.most, row.most);
      bin.sum += row.sum;
      bin.count += row.count;
      bin.nonfinite += row.nonfinite;
    }
    done += run;
    index[last] = 0;
    for (std::size_t axis = last; axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

AxisProfile profile_from(const std::vector<ProfileSums::Bin>& bins, uint64_t width) {
  AxisProfile profile;
  profile.indexes_per_bin = width;
  for (const ProfileSums::Bin& bin : bins) {
    profile.max_abs.push_back(bin.count ? bin.most : kNan);
    profile.mean_abs.push_back(bin.count ? bin.sum / static_cast<double>(bin.count) : kNan);
    profile.nonfinite.push_back(bin.nonfinite);
  }
  return profile;
}

std::size_t bin_of(double apart) {
  const int exponent = std::ilogb(apart) - DifferenceHistogram::kLowest;
  return static_cast<std::size_t>(std::clamp(exponent, 0, DifferenceHistogram::kBins - 1));
}

// The `count` worst so far, kept as a heap whose front is the least bad of them.
struct WorstHeap {
  std::size_t count = 0;
  std::vector<WorstElement> heap;

  static bool worse(const WorstElement& x, const WorstElement& y) {
    return x.distance != y.distance ? x.distance > y.distance : x.position < y.position;
  }
  void add(const WorstElement& element) {
    if (heap.size() == count && !worse(element, heap.front())) return;
    if (heap.size() == count) {
      std::ranges::pop_heap(heap, worse);
      heap.pop_back();
    }
    heap.push_back(element);
    std::ranges::push_heap(heap, worse);
  }
  void merge(const WorstHeap& other) {
    for (const WorstElement& element : other.heap) add(element);
  }
};

}  // namespace

void DifferenceHistogram::merge(const DifferenceHistogram& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  equal += other.equal;
  nonfinite += other.nonfinite;
}

void ValueHistogram::merge(const ValueHistogram& other) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] += other.a[i];
    b[i] += other.b[i];
  }
}

Result<std::vector<AxisProfile>> axis_profiles(const AlignedPair& pair) {
  const PairBlocks blocks = TRY(PairBlocks::open(pair));
  const Shape& shape = blocks.shape();
  std::vector<AxisProfile> profiles;
  if (shape.empty()) return profiles;
  ProfileSums empty;
  for (const uint64_t size : shape) {
    const uint64_t width = indexes_per_bin(size);
    empty.axes.emplace_back((size + width - 1) / width);
  }
  const ProfileSums sums = reduce_blocks<ProfileSums>(blocks.blocks(), blocks.chunk(), empty,
                                                      [&](uint64_t block, ProfileSums& total) {
                                                        PairBlocks::Values values;
                                                        blocks.read(block, values);
                                                        add_block(values, shape, total);
                                                      });
  TRY(blocks.finish());
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    profiles.push_back(profile_from(sums.axes[axis], indexes_per_bin(shape[axis])));
  return profiles;
}

Result<DifferenceHistogram> difference_histogram(const AlignedPair& pair) {
  const PairBlocks blocks = TRY(PairBlocks::open(pair));
  const auto histogram = reduce_blocks<DifferenceHistogram>(
      blocks.blocks(), blocks.chunk(), {}, [&](uint64_t block, DifferenceHistogram& total) {
        PairBlocks::Values values;
        blocks.read(block, values);
        for (const double apart : values.apart) {
          total.equal += apart == 0;
          total.nonfinite += std::isnan(apart);
          if (apart > 0) ++total.counts[bin_of(apart)];
        }
      });
  TRY(blocks.finish());
  return histogram;
}

Result<ValueHistogram> value_histogram(const AlignedPair& pair, double low, double high,
                                       std::size_t bins) {
  const PairBlocks blocks = TRY(PairBlocks::open(pair));
  const double scale = high > low ? static_cast<double>(bins) / (high - low) : 0;
  const auto count = [&](const std::vector<double>& values, std::vector<uint64_t>& counts) {
    for (const double value : values) {
      if (!(value >= low && value <= high)) continue;
      ++counts[std::min(bins - 1, static_cast<std::size_t>((value - low) * scale))];
    }
  };
  const ValueHistogram empty{low, high, std::vector<uint64_t>(bins), std::vector<uint64_t>(bins)};
  const auto histogram = reduce_blocks<ValueHistogram>(blocks.blocks(), blocks.chunk(), empty,
                                                       [&](uint64_t block, ValueHistogram& total) {
                                                         PairBlocks::Values values;
                                                         blocks.read(block, values);
                                                         count(values.a, total.a);
                                                         count(values.b, total.b);
                                                       });
  TRY(blocks.finish());
  return histogram;
}

Result<std::vector<WorstElement>> worst_elements(const AlignedPair& pair, std::size_t count) {
  const PairBlocks blocks = TRY(PairBlocks::open(pair));
  if (count == 0) return std::vector<WorstElement>();
  WorstHeap found = reduce_blocks<WorstHeap>(
      blocks.blocks(), blocks.chunk(), {count, {}}, [&](uint64_t block, WorstHeap& total) {
        PairBlocks::Values values;
        blocks.read(block, values);
        for (std::size_t i = 0; i < values.apart.size(); ++i) {
          const double a = values.a[i];
          const double b = values.b[i];
          const bool agree = a == b || (std::isnan(a) && std::isnan(b));
          const double apart = std::isnan(values.apart[i]) && !agree ? kInf : values.apart[i];
          if (apart > 0) total.add({values.first + i, a, b, apart});
        }
      });
  TRY(blocks.finish());
  std::ranges::sort(found.heap, WorstHeap::worse);
  return found.heap;
}

}  // namespace tensordiff
