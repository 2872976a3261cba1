// Routes of sessions as a whole, and of jobs.

#include "base/text.h"
#include "report/wire.h"
#include "serve/routes.h"
#include "serve/rows.h"

namespace tensordiff::serve {
namespace {

void write_sources(JsonWriter& json, App& app, const std::vector<std::string>& ids) {
  json.begin_array();
  for (const std::string& id : ids)
    if (const SourcePtr source = app.sources.find(id))
      write_source(json, *source, app.sources.options());
  json.end_array();
}

void write_summary(JsonWriter& json, const SessionState& state) {
  const Report& report = state.results.report;
  uint64_t counts[kStatuses] = {}, pending = 0;
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    if (state.measured[i])
      ++counts[static_cast<std::size_t>(report.pairs[i].comparison.status)];
    else
      ++pending;
  }
  json.begin_object().member("pairs", uint64_t{report.pairs.size()});
  for (std::size_t i = 0; i < std::size(counts); ++i)
    json.member(wire::camel(kStatusWords[i]), counts[i]);
  json.member("pending", pending).member("onlyA", uint64_t{report.only_a.size()});
  json.member("onlyB", uint64_t{report.only_b.size()}).key("verdict");
  state.phase == Phase::done ? json.value(name_of(report.summary.verdict)) : json.null();
  json.end_object();
}

void write_progress(JsonWriter& json, const Progress& progress) {
  json.begin_object().member("done", progress.done).member("of", progress.of);
  json.member("bytes", progress.bytes).member("bytesTotal", progress.bytes_total);
  json.member("bytesPerSec", progress.bytes_per_second()).member("etaMs", progress.eta_ms());
  json.end_object();
}

void write_results(JsonWriter& json, const SessionState& state) {
  const Report& report = state.results.report;
  wire::write_some(json, report, wire::report_fields(),
                   {"first_divergence", "next_divergences", "findings", "notes"});
  json.member("ordered", !state.order.empty()).member("steps", report.steps);
  json.key("conversion").begin_array();
  for (const ConversionRow& row : report.conversion) {
    json.begin_object().member("tensors", uint64_t{row.pairs.size()});
    wire::write_some(json, row, wire::conversion_fields(), {"rule", "a", "b", "exceptions"});
    json.end_object();
  }
  json.end_array();
}

std::string name_list(App& app, const std::vector<std::string>& ids) {
  std::string names;
  for (const std::string& id : ids)
    if (const SourcePtr source = app.sources.find(id))
      names += (names.empty() ? "" : ", ") + source->name();
  return names;
}

Response job_response(const Job& job, const SessionPtr& session, int status) {
  JsonWriter json;
  json.begin_object().member("id", job.id).member("session", job.session);
  json.member("kind", job.kind).member("state", name_of(job.state()));
  const Progress progress =
      session ? session->read([](const SessionState& state) { return state.progress; })
              : Progress{};
  json.member("done", progress.done).member("of", progress.of).end_object();
  return json_response(json.take(), status);
}

}  // namespace

Reply get_sessions(const Call& call) {
  App& app = call.app;
  JsonWriter json;
  json.begin_object().key("sessions").begin_array();
  for (const Sessions::Brief& brief : app.sessions.list()) {
    json.begin_object().member("id", brief.id).member("name", brief.name);
    json.member("mode", name_of(brief.mode)).member("state", brief.state).key("verdict");
    brief.verdict.empty() ? json.null() : json.value(brief.verdict);
    json.member("pairs", brief.pairs).member("created", brief.created);
    json.member("updated", brief.updated).member("a", name_list(app, brief.a)).key("b");
    brief.b.empty() ? json.null() : json.value(name_list(app, brief.b));
    json.end_object();
  }
  return json_response(json.end_array().end_object().take());
}

Reply post_session(const Call& call) {
  Settings settings;
  TRY(apply(call.body, settings));
  const SessionPtr session = TRY(call.app.sessions.create(std::move(settings)));
  return json_response(session_brief(call.app, session), 201);
}

Reply get_session(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  App& app = call.app;
  const Session& session = *target.session;
  const JobPtr job = app.jobs.of(session.id());
  const bool stale = app.sessions.stale(session);
  const Settings settings = session.read([](const SessionState& state) { return state.settings; });
  JsonWriter json;
  json.begin_object().member("id", session.id()).member("name", settings.name);
  json.member("mode", name_of(settings.mode)).key("a");
  write_sources(json, app, settings.a);
  json.key("b");
  write_sources(json, app, settings.b);
  json.key("policy");
  write_policy(json, settings);
  json.key("match");
  write_match(json, settings);
  json.key("job");
  job ? json.value(job->id) : json.null();
  session.read([&](const SessionState& state) {
    json.member("rev", state.rev).member("run", state.run);
    json.member("state", stale ? "stale" : name_of(state.phase)).key("error");
    state.error.empty() ? json.null() : json.value(state.error);
    json.member("created", state.created).member("updated", state.updated);
    json.member("fingerprint", state.names).key("progress");
    write_progress(json, state.progress);
    json.key("summary");
    write_summary(json, state);
    write_results(json, state);
  });
  return json_response(json.end_object().take());
}

Reply patch_session(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  const Settings before =
      target.session->read([](const SessionState& state) { return state.settings; });
  Settings after = before;
  TRY(apply(call.body, after));
  TRY(call.app.sessions.set(target.session, after));
  after.name = before.name;
  const bool compares = after != before;
  if (compares) call.app.sessions.compare(target.session, false);
  return json_response(session_brief(call.app, target.session, compares));
}

Reply delete_session(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  App& app = call.app;
  const Settings settings =
      target.session->read([](const SessionState& state) { return state.settings; });
  TRY(app.sessions.remove(target.session));
  for (const auto* side : {&settings.a, &settings.b}) {
    for (const std::string& id : *side) {
      const SourcePtr source = app.sources.find(id);
      if (!source || app.sessions.uses(id)) continue;
      if (source->upload()) app.uploads.remove_of_source(id);
      TRY(app.sources.remove(id));
    }
  }
  return empty_response();
}

Reply reload_session(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  call.app.sessions.compare(target.session, true);
  return json_response(session_brief(call.app, target.session), 202);
}

Reply get_job(const Call& call) {
  const JobPtr job = call.app.jobs.find(call.parameter("job"));
  if (!job) return problem(404, "there is no such job");
  return job_response(*job, call.app.sessions.find(job->session), 200);
}

Reply delete_job(const Call& call) {
  const JobPtr job = call.app.jobs.find(call.parameter("job"));
  if (!job) return problem(404, "there is no such job");
  call.app.jobs.cancel(job);
  return job_response(*job, call.app.sessions.find(job->session), 202);
}

}  // namespace tensordiff::serve
