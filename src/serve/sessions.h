// All sessions: made, compared, kept in the database, and found again after a restart.

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/jobs.h"
#include "serve/session.h"
#include "serve/sources.h"
#include "serve/store.h"

namespace tensordiff::serve {

class Sessions {
 public:
  Sessions(Store& store, Sources& sources, Jobs& jobs)
      : store_(store), sources_(sources), jobs_(jobs) {}

  // Those of earlier runs. Their rows are read when somebody asks for them.
  Result<void> load();

  // Checks the settings, keeps the session and starts to compare.
  Result<SessionPtr> create(Settings settings);
  // With its rows. What was never finished is compared again, unless it failed, was cancelled, or
  // took the server down with it twice.
  SessionPtr find(const std::string& id);
  Result<void> remove(const SessionPtr& session);

  // What a list shows of a session, without reading its rows.
  struct Brief {
    std::string id, name, verdict;
    Mode mode = Mode::compare;
    std::string_view state;
    uint64_t pairs = 0;
    int64_t created = 0, updated = 0;
    std::vector<std::string> a, b;  // Sources.
  };
  std::vector<Brief> list();  // Newest first.

  // Starts to compare, after what is under way for the session was cancelled. `reload`: looks
  // again at files that changed. A session that cannot be compared says why in its state.
  void compare(const SessionPtr& session, bool reload);

  // Changes what was chosen, and keeps it.
  Result<void> set(const SessionPtr& session, Settings settings);
  Result<void> set_note(const SessionPtr& session, std::size_t row, const std::string& text);
  Result<void> set_order(const SessionPtr& session, const std::vector<uint32_t>& ids);

  // Both sides as they were compared; opens them again after a restart. An error where files
  // changed since.
  Result<std::shared_ptr<const Pairing>> pairing(const SessionPtr& session);
  bool stale(const Session& session);
  // Whether any session uses the source.
  bool uses(const std::string& source);

 private:
  struct Inputs;
  struct Entry {
    SessionPtr session;
    bool loaded = false;
    bool has_results = false;  // In the database, of one that is not loaded,
    Brief kept;                // which says this of it.
  };

  Result<void> check(const Settings& settings) const;
  void begin(const SessionPtr& session, bool reload);
  Result<Inputs> open(const Settings& settings, bool reload);
  std::string files_of(const Settings& settings);
  bool work(Session& session, Job& job, bool reload);
  Result<void> run(Session& session, bool reload);
  Result<Report> measure(Session& session, const Pairing& pairing, Report report);
  Result<void> keep_results(const Session& session);
  void fail(Session& session, Phase phase, const std::string& why);
  Result<bool> load_results(Session& session);
  void restore_order(Session& session);

  Store& store_;
  Sources& sources_;
  Jobs& jobs_;
  std::mutex mutex_;
  std::map<std::string, Entry> sessions_;
};

}  // namespace tensordiff::serve
