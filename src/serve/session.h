// One comparison as the page sees it: what was chosen, how far it is, and its rows as they come.
//
// Rows are numbered: the pairs, then the tensors of a without a partner, those of b, and in explore
// mode each tensor alone. `rev` grows with each change and each row remembers the rev of its last,
// so that a client asks only for what it has not seen; `run` grows when pairs are made anew.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline.h"
#include "serve/pack.h"
#include "serve/settings.h"

namespace tensordiff::serve {

enum class Phase { matching, comparing, explaining, done, failed, cancelled };
std::string_view name_of(Phase phase);

// How far a comparison is.
struct Progress {
  uint64_t done = 0, of = 0;  // Pairs.
  uint64_t bytes = 0, bytes_total = 0;
  double seconds = 0;  // Since it began.

  std::optional<double> bytes_per_second() const;
  std::optional<double> eta_ms() const;
};

// One row, whatever kind it is of.
struct Row {
  enum class Kind { pair, only_a, only_b, single };
  uint32_t id = 0;
  Kind kind = Kind::pair;
  const PairRow* pair = nullptr;            // Of a pair,
  const Report::Unpaired* alone = nullptr;  // of any other.
  bool pending = false;
  uint32_t order = 0;
  std::string_view note = {};

  const std::string& name_a() const;
  const std::string& name_b() const;
};

struct SessionState {
  Settings settings;
  int64_t created = 0, updated = 0;
  uint64_t rev = 0, run = 0;
  uint64_t run_rev = 0;  // The rev at which the rows of this run were made.
  Phase phase = Phase::matching;
  std::string error;
  Progress progress;
  Results results;
  std::vector<uint64_t> row_revs;
  std::vector<bool> measured;   // Pairs that have numbers.
  std::vector<uint32_t> order;  // Place of each row; empty: as they are numbered.
  std::map<std::pair<std::string, std::string>, std::string> notes;  // By the names of a and b.
  std::string files;                       // Fingerprint of the files that the results are of.
  std::string names;                       // Fingerprint of all names, dtypes and shapes.
  std::shared_ptr<const Pairing> pairing;  // Nothing after a restart, until values are asked for.

  // Nothing more happens by itself.
  bool ended() const { return phase >= Phase::done; }
  std::size_t row_count() const;
  Row row(std::size_t id) const;  // The caller has checked the id.

  // New pairs: every row is new. Where memory runs out, all stays as it was.
  void set_results(Results results, bool measured_all);
  // Gives back all the memory that rows take; needs none itself.
  void forget_results();
  void touch(std::size_t row) { row_revs[row] = ++rev; }
  void set_order(const std::vector<uint32_t>& first);
};

class Session {
 public:
  Session(std::string id, Settings settings);

  const std::string& id() const { return id_; }

  // Looks at the state, or changes it, while nobody else does. What changes it tells whoever waits.
  template <class Look>
  auto read(Look look) const {
    const std::lock_guard lock(mutex_);
    return look(state_);
  }
  template <class Change>
  auto change(Change change) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return change(state_);
  }
  // Until there is a later rev than this, or the time is over.
  void wait(uint64_t rev, std::chrono::milliseconds time) const;

 private:
  const std::string id_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  SessionState state_;
};

using SessionPtr = std::shared_ptr<Session>;

// Of all names, dtypes and shapes of both sides: what pairs made by hand rest on.
std::string names_fingerprint(const Catalog& a, const Catalog& b);

int64_t now_ms();

}  // namespace tensordiff::serve
