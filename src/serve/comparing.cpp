// How a session is compared: open, pair up and show the names, measure and show the numbers, keep
// the results.

#include <atomic>
#include <chrono>
#include <new>

#include "base/parallel.h"
#include "serve/sessions.h"

namespace tensordiff::serve {
namespace {

using Clock = std::chrono::steady_clock;

// How often those who watch are told of progress beside finished rows.
constexpr std::chrono::milliseconds kTell{100};

constexpr const char* kOutOfMemory = "out of memory";  // So short that a string holds it by itself.

Results names_only(const Pairing& pairing, const Report& report) {
  Results results;
  results.report = report;
  if (!pairing.alone) return results;
  for (const Tensor& tensor : pairing.a.tensors) {
    Report::Unpaired single;
    single.id = {tensor.name, tensor.view.dtype, tensor.view.shape, tensor.fault};
    results.singles.push_back(std::move(single));
  }
  return results;
}

// Takes over the final rows, and marks those that explaining changed.
void settle(SessionState& state, Report report) {
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    const PairRow& before = state.results.report.pairs[i];
    const PairRow& after = report.pairs[i];
    const bool same = before.comparison.status == after.comparison.status &&
                      before.verdict == after.verdict && before.notes == after.notes &&
                      before.message == after.message;
    if (!same || !state.measured[i]) state.touch(i);
  }
  state.results.report = std::move(report);
  state.measured.assign(state.measured.size(), true);
  state.progress.done = state.progress.of;
  state.updated = now_ms();
  ++state.rev;
}

}  // namespace

struct Sessions::Inputs {
  Catalog a;
  std::optional<Catalog> b;
  std::string files;
};

Result<Sessions::Inputs> Sessions::open(const Settings& settings, bool reload) {
  Inputs inputs;
  Hash files;
  for (const auto* side : {&settings.a, &settings.b}) {
    std::vector<Source::Opened> parts;
    for (const std::string& id : *side) {
      const SourcePtr source = sources_.find(id);
      if (!source) return Error("a source of this session is gone");
      const OpenOptions& options = sources_.options();
      parts.push_back(TRY(reload ? source->reopen(options) : source->open(options)));
      files.add(parts.back().fingerprint);
    }
    if (side == &settings.a) inputs.a = merged(parts);
    if (side == &settings.b && !parts.empty()) inputs.b = merged(parts);
    for (const std::string& id : *side)
      if (const SourcePtr source = sources_.find(id)) source->let_go();
  }
  inputs.files = files.text();
  return inputs;
}

std::string Sessions::files_of(const Settings& settings) {
  Hash files;
  for (const auto* side : {&settings.a, &settings.b}) {
    for (const std::string& id : *side) {
      const SourcePtr source = sources_.find(id);
      files.add(source ? source->fingerprint(sources_.options().roots) : "");
    }
  }
  return files.text();
}

bool Sessions::stale(const Session& session) {
  Settings settings;
  std::string files;
  session.read([&](const SessionState& state) {
    settings = state.settings;
    if (state.phase == Phase::done) files = state.files;
  });
  return !files.empty() && files != files_of(settings);
}

void Sessions::compare(const SessionPtr& session, bool reload) {
  // Somebody wants it: whatever came of it before, it gets all its attempts again.
  static_cast<void>(
      store_.run("INSERT OR REPLACE INTO runs VALUES(?,0,'running','')", {session->id()}).ok());
  begin(session, reload);
}

void Sessions::begin(const SessionPtr& session, bool reload) {
  static_cast<void>(
      store_.run("INSERT OR IGNORE INTO runs VALUES(?,0,'running','')", {session->id()}).ok());
  // What is kept is of other settings or files: after a crash nobody must take it for these.
  static_cast<void>(store_.run("DELETE FROM results WHERE session=?", {session->id()}).ok());
  session->change([](SessionState& state) {
    state.phase = Phase::matching;
    state.error.clear();
    state.progress = {};
    ++state.rev;
  });
  JobPtr job;
  try {
    job = jobs_.start(session->id(), "compare", [this, session, reload](Job& running) {
      return work(*session, running, reload);
    });
  } catch (const std::bad_alloc&) {
    return fail(*session, Phase::failed, kOutOfMemory);
  }
  if (!job)
    fail(*session, Phase::failed, "too many comparisons are waiting; reload to compare again");
}

// Needs no memory of its own, since that may be what was missing.
void Sessions::fail(Session& session, Phase phase, const std::string& why) {
  std::string error;
  try {
    error = why;
  } catch (const std::bad_alloc&) {
    error = kOutOfMemory;
  }
  session.change([&](SessionState& state) {
    ++state.rev;
    state.phase = phase;
    state.error = phase == Phase::failed ? std::move(error) : std::string();
  });
  try {
    // Where this does not succeed, the attempts are counted all the same.
    static_cast<void>(store_
                          .run("INSERT OR REPLACE INTO runs VALUES(?,0,?,?)",
                               {session.id(), name_of(phase), std::string_view(why)})
                          .ok());
  } catch (const std::bad_alloc&) {
    return;
  }
}

bool Sessions::work(Session& session, Job& job, bool reload) {
  Result<void> done = Error("cancelled");
  try {
    static_cast<void>(
        store_.run("UPDATE runs SET attempts=attempts+1 WHERE session=?", {session.id()}).ok());
    job.run([&] { done = run(session, reload); });
    if (job.cancelled()) done = Error("cancelled");
    // Who is told that it is done finds it again, whatever happens next.
    if (done.ok()) done = keep_results(session);
  } catch (const std::bad_alloc&) {
    session.change([](SessionState& state) { state.forget_results(); });
    done = Error("out of memory");
  } catch (const std::exception& fault) {
    done = Error("{}", fault.what());
  }
  if (done.ok())
    session.change([](SessionState& state) {
      state.phase = Phase::done;
      ++state.rev;
    });
  give_back_memory();
  if (done.ok()) return true;
  // Another comparison takes over: how far that one is, is for it to say.
  if (job.superseded()) return false;
  if (job.cancelled() && jobs_.stopped()) {
    // The server ends as it was told to: the next one compares again.
    static_cast<void>(
        store_.run("UPDATE runs SET attempts=0 WHERE session=?", {session.id()}).ok());
    return false;
  }
  fail(session, job.cancelled() ? Phase::cancelled : Phase::failed, done.error().message());
  return false;
}

Result<void> Sessions::run(Session& session, bool reload) {
  const Settings settings = session.read([](const SessionState& state) { return state.settings; });
  Inputs inputs = TRY(open(settings, reload));
  const tensordiff::Request request = TRY(request_for(settings));
  Pairing made = TRY(pair_up(std::move(inputs.a), std::move(inputs.b), request));
  if (called_off()) return Error("cancelled");
  give_back_memory();

  // The names are known: show them. With very many pairs, rows are what takes memory; the session
  // has them, and whoever looks at values needs only both sides and the matching.
  Report report = std::move(made.report);
  made.report = {};
  const auto pairing = std::make_shared<const Pairing>(std::move(made));
  std::string names = names_fingerprint(pairing->a, pairing->b);
  session.change([&](SessionState& state) {
    state.set_results(names_only(*pairing, report), false);
    state.phase = Phase::comparing;
    state.pairing = pairing;
    state.files = std::move(inputs.files);
    state.names = std::move(names);
    state.progress.of = report.pairs.size();
    state.progress.bytes_total = pairing->a.bytes() + pairing->b.bytes();
  });
  restore_order(session);

  report = TRY(measure(session, *pairing, std::move(report)));
  session.change([&](SessionState& state) { settle(state, std::move(report)); });
  return {};
}

Result<Report> Sessions::measure(Session& session, const Pairing& pairing, Report report) {
  const Settings settings = session.read([](const SessionState& state) { return state.settings; });
  tensordiff::Request request = TRY(request_for(settings));
  const Clock::time_point start = Clock::now();
  std::atomic<uint64_t> bytes = 0;
  std::atomic<int64_t> told = 0;
  const auto put_progress = [&](SessionState& state) {
    state.progress.bytes = bytes;
    state.progress.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  };
  request.progress = [&](uint64_t done, uint64_t) {
    bytes = done;
    int64_t last = told;
    const int64_t now = (Clock::now() - start) / kTell;
    if (now == last || !told.compare_exchange_strong(last, now)) return;
    session.change([&](SessionState& state) {
      put_progress(state);
      ++state.rev;
    });
  };
  request.on_row = [&](const PairRow& row) {
    PairRow copy = row;
    const bool last = session.change([&](SessionState& state) {
      state.results.report.pairs[row.index] = std::move(copy);
      state.measured[row.index] = true;
      put_progress(state);
      const bool all = ++state.progress.done == state.progress.of;
      if (all) state.phase = Phase::explaining;
      state.touch(row.index);
      return all;
    });
    // Explaining needs room of its own for very many pairs.
    if (last) give_back_memory();
  };
  return compare_pairs(pairing, std::move(report), request);
}

Result<void> Sessions::keep_results(const Session& session) {
  struct Kept {
    std::string files, names, verdict, report;
    int64_t pairs, updated;
  };
  const Kept kept = session.read([](const SessionState& state) {
    const Report& report = state.results.report;
    return Kept{state.files,
                state.names,
                std::string(name_of(report.summary.verdict)),
                packed(state.results),
                static_cast<int64_t>(report.pairs.size()),
                state.updated};
  });
  TRY(store_.run(
      "INSERT OR REPLACE INTO results VALUES(?,?,?,?,?,?)",
      {session.id(), kept.files, kept.names, kept.verdict, kept.pairs, Store::Blob{kept.report}}));
  TRY(store_.run("DELETE FROM runs WHERE session=?", {session.id()}));
  return store_.run("UPDATE sessions SET updated=? WHERE id=?", {kept.updated, session.id()});
}

Result<std::shared_ptr<const Pairing>> Sessions::pairing(const SessionPtr& session) {
  std::shared_ptr<const Pairing> pairing;
  Settings settings;
  std::string files;
  session->read([&](const SessionState& state) {
    pairing = state.pairing;
    settings = state.settings;
    files = state.files;
  });
  if (pairing) return pairing;
  Inputs inputs = TRY(open(settings, false));
  if (inputs.files != files) return Error("a file changed since it was compared");
  const tensordiff::Request request = TRY(request_for(settings));
  Pairing made = TRY(pair_up(std::move(inputs.a), std::move(inputs.b), request));
  made.report = {};
  pairing = std::make_shared<const Pairing>(std::move(made));
  session->change([&](SessionState& state) {
    if (!state.pairing && state.files == files) state.pairing = pairing;
  });
  return pairing;
}

}  // namespace tensordiff::serve
