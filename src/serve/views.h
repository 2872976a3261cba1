// A row of a session, opened to look at its values.

#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compare/pyramid.h"
#include "serve/sessions.h"
#include "tensor/reader.h"

namespace tensordiff::serve {

struct OpenPair {
  std::optional<AlignedPair> aligned;  // Both in the layout they were compared in.
  std::optional<View> a, b;            // As they are stored.
  Comparison comparison;               // Numbers of the row, where it has some.
  bool compared = false;
  bool applied = false;  // `aligned->a` is T(A) of a finding; the numbers are still those of A.
  bool equal_nan = true;
  std::string version;       // Another one when the values may be others.
  std::vector<Reader> held;  // What was unpacked stays so while the pair is open.

  // One side in the layout of the row.
  const View* side(char which, bool stored) const;
};
using OpenPairPtr = std::shared_ptr<const OpenPair>;

// Pictures of one plane.
struct Pictures {
  std::string key;
  std::mutex mutex;
  std::atomic<bool> made = false;
  std::vector<Picture> levels;
};
using PicturesPtr = std::shared_ptr<Pictures>;

// The rows that were looked at last, and pictures of them.
class PairCache {
 public:
  // The caller has checked the row. An error when files changed, or cannot be read. With `finding`,
  // T(A) of that finding of the row stands for A; an error where it names no transform.
  Result<OpenPairPtr> open(Sessions& sessions, const SessionPtr& session, std::size_t row,
                           std::optional<std::size_t> finding = std::nullopt);

  bool has_pictures(const std::string& key);
  // Those that `make` makes, or made before.
  Result<PicturesPtr> pictures(const std::string& key,
                               const std::function<Result<std::vector<Picture>>()>& make);

 private:
  struct Entry {
    std::string key;
    OpenPairPtr pair;
  };
  std::mutex mutex_;
  std::list<Entry> pairs_;           // Last used first.
  std::list<PicturesPtr> pictures_;  // The same.
};

// Which part of a tensor: an index on each axis, but for those of the plane.
struct Cut {
  std::vector<uint64_t> index;
  std::optional<std::size_t> y, x;  // Axes of the plane. `*` counts as x.

  // "2,y,x"
  static Result<Cut> parse(std::string_view text, const Shape& shape);
};

struct Range {
  uint64_t first = 0, end = 0;

  uint64_t size() const { return end - first; }
  // "80:92", either of the two may be missing; empty: all.
  static Result<Range> parse(std::string_view text, uint64_t size);
};

// The plane of a view, always with two axes: rows and columns.
View plane_of(View view, const Cut& cut);
View narrowed_to(View plane, const Range& rows, const Range& columns);

// Values as float64: of complex ones the modulus.
void read_values(const Reader& reader, uint64_t first, std::size_t count, double* out);

}  // namespace tensordiff::serve
