#include "serve/sessions.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "serve/guard.h"

namespace tensordiff::serve {
namespace {

// The system kills what takes too much memory: a comparison that was under way whenever the server
// was killed is not begun by itself once more.
constexpr int64_t kAttemptsMax = 2;

std::string order_text(const SessionState& state) {
  std::vector<uint32_t> ids(state.order.size());
  for (uint32_t id = 0; id < ids.size(); ++id) ids[state.order[id]] = id;
  JsonWriter json;
  json.begin_array();
  for (const uint32_t id : ids) {
    const Row row = state.row(id);
    json.begin_array().value(row.name_a()).value(row.name_b()).end_array();
  }
  return json.end_array().take();
}

// What the database says of a comparison that left no results.
void set_unfinished(const Store::Row& row, SessionState& state) {
  const std::string ended = row.text(7);
  state.error = row.text(9);
  if (ended == name_of(Phase::failed)) {
    state.phase = Phase::failed;
  } else if (ended == name_of(Phase::cancelled)) {
    state.phase = Phase::cancelled;
  } else if (row.number(8) >= kAttemptsMax) {
    state.phase = Phase::failed;
    state.error = fmt::format(
        "the server ended {} times while it compared this, most likely for want of memory; "
        "reload to compare again",
        row.number(8));
  }
}

}  // namespace

Result<void> Sessions::load() {
  const std::lock_guard lock(mutex_);
  return store_.read(
      "SELECT s.id, s.settings, s.created, s.updated, r.verdict, r.pairs, r.session IS NOT NULL,"
      " u.state, u.attempts, u.error FROM sessions s"
      " LEFT JOIN results r ON r.session = s.id LEFT JOIN runs u ON u.session = s.id",
      {}, [&](const Store::Row& row) {
        Settings settings;
        const Result<Json> json = Json::parse(row.text(1));
        if (!json.ok() || !apply(json.value(), settings).ok()) return;
        Entry entry;
        entry.kept.verdict = row.text(4);
        entry.kept.pairs = static_cast<uint64_t>(row.number(5));
        entry.has_results = row.number(6) != 0;
        entry.session = std::make_shared<Session>(row.text(0), std::move(settings));
        entry.session->change([&](SessionState& state) {
          state.created = row.number(2);
          state.updated = row.number(3);
          if (!entry.has_results) set_unfinished(row, state);
        });
        sessions_[row.text(0)] = std::move(entry);
      });
}

Result<void> Sessions::check(const Settings& settings) const {
  for (const auto* side : {&settings.a, &settings.b})
    for (const std::string& id : *side)
      if (!sources_.find(id)) return Error("there is no source '{}'", printable(id));
  return {};
}

Result<SessionPtr> Sessions::create(Settings settings) {
  TRY(check(settings));
  if (settings.name.empty()) {
    settings.name = sources_.find(settings.a[0])->name();
    if (!settings.b.empty()) settings.name += " ↔ " + sources_.find(settings.b[0])->name();
  }
  const auto session = std::make_shared<Session>(random_id(), settings);
  const int64_t created = session->read([](const SessionState& state) { return state.created; });
  TRY(store_.run("INSERT INTO sessions VALUES(?,?,?,?)",
                 {session->id(), text_of(settings), created, created}));
  {
    const std::lock_guard lock(mutex_);
    sessions_[session->id()] = {session, true, false, {}};
  }
  compare(session, false);
  return session;
}

SessionPtr Sessions::find(const std::string& id) {
  SessionPtr session;
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return nullptr;
    session = found->second.session;
    if (found->second.loaded) return session;
    const Result<bool> read = load_results(*session);
    found->second.loaded = true;
    if (!read.ok())
      session->change([&](SessionState& state) {
        state.error = read.error().message();
        state.phase = Phase::failed;
      });
    const bool over = session->read([](const SessionState& state) { return state.ended(); });
    if (over) return session;
  }
  begin(session, false);
  return session;
}

// Whether they were there.
Result<bool> Sessions::load_results(Session& session) {
  std::optional<Results> results;
  std::string files, names;
  TRY(store_.read("SELECT files, names, report FROM results WHERE session=?", {session.id()},
                  [&](const Store::Row& row) {
                    files = row.text(0);
                    names = row.text(1);
                    results = unpacked_results(row.text(2));
                  }));
  std::map<std::pair<std::string, std::string>, std::string> notes;
  TRY(store_.read("SELECT a, b, text FROM notes WHERE session=?", {session.id()},
                  [&](const Store::Row& row) {
                    notes[{row.text(0), row.text(1)}] = row.text(2);
                  }));
  const bool found = results.has_value();
  session.change([&](SessionState& state) {
    state.notes = std::move(notes);
    if (!results) return;
    state.files = files;
    state.names = names;
    state.progress.done = state.progress.of = results->report.pairs.size();
    state.set_results(std::move(*results), true);
    state.phase = Phase::done;
  });
  restore_order(session);
  return found;
}

// Kept by names, which last longer than numbers.
void Sessions::restore_order(Session& session) {
  std::string text;
  const Result<void> read = store_.read("SELECT names FROM orders WHERE session=?", {session.id()},
                                        [&](const Store::Row& row) { text = row.text(0); });
  if (!read.ok() || text.empty()) return;
  const Result<Json> names = Json::parse(text);
  if (!names.ok()) return;
  session.change([&](SessionState& state) {
    std::unordered_map<std::string, uint32_t> rows;
    const auto key = [](std::string_view a, std::string_view b) {
      return std::string(a) + '\0' + std::string(b);
    };
    for (uint32_t id = 0; id < state.row_count(); ++id) {
      const Row row = state.row(id);
      rows[key(valid_utf8(row.name_a()), valid_utf8(row.name_b()))] = id;
    }
    std::vector<uint32_t> ids;
    for (const Json& pair : names.value().array()) {
      const auto found = rows.find(key(pair[0].string(), pair[1].string()));
      if (found != rows.end()) ids.push_back(found->second);
    }
    state.set_order(ids);
  });
}

Result<void> Sessions::remove(const SessionPtr& session) {
  if (const JobPtr job = jobs_.of(session->id())) {
    jobs_.cancel(job);
    job->wait();
  }
  {
    const std::lock_guard lock(mutex_);
    sessions_.erase(session->id());
  }
  session->change([](SessionState& state) { ++state.rev; });
  for (const char* sql : {"DELETE FROM results WHERE session=?",
                          "DELETE FROM notes WHERE session=?", "DELETE FROM orders WHERE session=?",
                          "DELETE FROM runs WHERE session=?", "DELETE FROM sessions WHERE id=?"})
    TRY(store_.run(sql, {session->id()}));
  return {};
}

std::vector<Sessions::Brief> Sessions::list() {
  const std::lock_guard lock(mutex_);
  std::vector<Brief> briefs;
  for (const auto& [id, entry] : sessions_) {
    Brief brief = entry.kept;
    entry.session->read([&](const SessionState& state) {
      brief.id = entry.session->id();
      brief.name = state.settings.name;
      brief.mode = state.settings.mode;
      brief.created = state.created;
      brief.updated = state.updated;
      brief.a = state.settings.a;
      brief.b = state.settings.b;
      brief.state = name_of(state.phase);
      if (!entry.loaded && entry.has_results) brief.state = name_of(Phase::done);
      if (!entry.loaded && !entry.has_results && !state.ended()) brief.state = "unfinished";
      if (!entry.loaded) return;
      brief.pairs = state.results.report.pairs.size();
      brief.verdict =
          state.phase == Phase::done ? name_of(state.results.report.summary.verdict) : "";
    });
    briefs.push_back(std::move(brief));
  }
  std::ranges::sort(briefs, std::greater(), &Brief::updated);
  return briefs;
}

Result<void> Sessions::set(const SessionPtr& session, Settings settings) {
  TRY(check(settings));
  const int64_t updated = now_ms();
  TRY(store_.run("UPDATE sessions SET settings=?, updated=? WHERE id=?",
                 {text_of(settings), updated, session->id()}));
  session->change([&](SessionState& state) {
    state.settings = std::move(settings);
    state.updated = updated;
    ++state.rev;
  });
  return {};
}

Result<void> Sessions::set_note(const SessionPtr& session, std::size_t id,
                                const std::string& text) {
  std::pair<std::string, std::string> names;
  session->change([&](SessionState& state) {
    const Row row = state.row(id);
    names = {row.name_a(), row.name_b()};
    if (text.empty())
      state.notes.erase(names);
    else
      state.notes[names] = text;
    state.touch(id);
  });
  if (text.empty())
    return store_.run("DELETE FROM notes WHERE session=? AND a=? AND b=?",
                      {session->id(), names.first, names.second});
  return store_.run("INSERT OR REPLACE INTO notes VALUES(?,?,?,?)",
                    {session->id(), names.first, names.second, text});
}

Result<void> Sessions::set_order(const SessionPtr& session, const std::vector<uint32_t>& ids) {
  const std::string names = session->change([&](SessionState& state) {
    state.set_order(ids);
    return ids.empty() ? std::string() : order_text(state);
  });
  if (ids.empty()) return store_.run("DELETE FROM orders WHERE session=?", {session->id()});
  return store_.run("INSERT OR REPLACE INTO orders VALUES(?,?)", {session->id(), names});
}

bool Sessions::uses(const std::string& source) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(sessions_, [&](const auto& entry) {
    return entry.second.session->read([&](const SessionState& state) {
      const Settings& settings = state.settings;
      return std::ranges::find(settings.a, source) != settings.a.end() ||
             std::ranges::find(settings.b, source) != settings.b.end();
    });
  });
}

}  // namespace tensordiff::serve
