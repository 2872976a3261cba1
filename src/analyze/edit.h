// What was done to each weight between A and B: a few hypotheses, each tried on every weight.
//
// A hypothesis counts where it leaves nothing of the change but rounding. The simplest one that
// does wins; what none explains is "tuned" as long as B still points where A does.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/study.h"

namespace tensordiff {

// In this order they are tried.
enum class Edit {
  none,       // No value changed.
  cast,       // B is A rounded to another type, or to fewer bits of the same.
  quantized,  // B lies on a code book (analyze/quantization.h).
  pruned,     // Elements of A, or zero; or A without some rows or columns.
  resized,    // A with more rows or columns.
  scaled,     // B = c A, or each row or column of A times a number of its own.
  merged,     // B is a combination of A and the models of --base.
  low_rank,   // B − A has few directions, as a merged LoRA adapter.
  reordered,  // Rows or columns of A in another order.
  rotated,    // A times an orthogonal matrix, from the left or the right.
  sparse,     // A few elements changed, and the rest not at all.
  tuned,      // All of it moved, and it still points where A does.
  replaced,   // Nothing of A is left: re-initialized, or of another model.
  unknown,    // Too small or too close to tell.
};
inline constexpr std::size_t kEdits = 14;
std::string_view name_of(Edit edit);

struct EditFound {
  Edit edit = Edit::unknown;
  std::string detail;  // "rank 16", "2:4", "to bf16": the same text for the same edit.
  double explained =
      0;  // Share of ‖B − A‖² that the edit accounts for; 0 for what explains nothing.
  const Row* pair = nullptr;
};

// Of each of study.weights(), in their order, and of matrices that could not be compared because
// one side has more rows or columns.
std::vector<EditFound> find_edits(const Study& study);

// The tests of single hypotheses, in files of their own. Each says nothing where it does not hold.
struct Profile;
using Maybe = std::optional<EditFound>;
Maybe find_cast(const Row& pair);
Maybe find_pruning(const Study& study, const Row& pair, const Profile& profile);
Maybe find_resized(const Study& study, const Row& pair);
Maybe find_low_rank(const Row& pair, const Profile& profile);
Maybe find_reordering(const Row& pair);
Maybe find_scaled_lines(const Row& pair);

// The rank of a change by a larger sample than that of the profile. 0: more than kUpdateRankMax, or
// not low at all.
std::size_t rank_of_change(const Row& pair);
// The most of ‖B − A‖² that is put down to rounding beside a low rank, as a share.
double rounding_share(const Row& pair);

// "0-3, 7": numbers in ranges.
std::string ranges_text(const std::vector<int64_t>& numbers);

}  // namespace tensordiff
