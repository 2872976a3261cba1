// News of a session as server-sent events: that something changed, never what.

#include <chrono>

#include "serve/routes.h"

namespace tensordiff::serve {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kBetweenEvents{100};
constexpr milliseconds kHeartbeat{10'000};

struct News {
  uint64_t rev = 0;
  std::string data;
};

News news_of(const Session& session) {
  News news;
  JsonWriter json;
  session.read([&](const SessionState& state) {
    news.rev = state.rev;
    json.begin_object().member("rev", state.rev).member("run", state.run);
    json.member("state", name_of(state.phase)).member("done", state.progress.done);
    json.member("of", state.progress.of).member("bytes", state.progress.bytes);
    json.member("bytesTotal", state.progress.bytes_total);
    json.member("bytesPerSec", state.progress.bytes_per_second());
    json.member("etaMs", state.progress.eta_ms()).end_object();
  });
  news.data = json.take();
  return news;
}

std::string event(std::string_view name, uint64_t rev, std::string_view data) {
  return fmt::format("event: {}\nid: {}\ndata: {}\n\n", name, rev, data);
}

std::string job_event(const Job& job, uint64_t rev) {
  JsonWriter json;
  json.begin_object().member("id", job.id).member("state", name_of(job.state())).end_object();
  return event("job", rev, json.text());
}

// Files that changed since they were opened.
std::string source_events(App& app, const Session& session, uint64_t rev) {
  const Settings settings = session.read([](const SessionState& state) { return state.settings; });
  std::string events;
  for (const auto* side : {&settings.a, &settings.b}) {
    for (const std::string& id : *side) {
      const SourcePtr source = app.sources.find(id);
      const Source::State state =
          source ? source->state(app.sources.options().roots) : Source::State::gone;
      if (state == Source::State::ready) continue;
      JsonWriter json;
      json.begin_object().member("id", id).member("state", name_of(state)).end_object();
      events += event("source", rev, json.text());
    }
  }
  return events;
}

// Until the job has ended, the session is gone, or nobody listens.
void tell(App& app, const SessionPtr& session, uint64_t seen, const Send& send) {
  const JobPtr job = app.jobs.of(session->id());
  Clock::time_point last = Clock::now();
  if (!send(": tensordiff\n\n")) return;
  for (;;) {
    const bool ended = !job || !job->running();
    const News news = news_of(*session);
    std::string text;
    if (news.rev > seen || ended) text = event("rev", news.rev, news.data);
    if (!app.sessions.find(session->id())) {
      send(text + event("gone", news.rev, "{}"));
      return;
    }
    if (ended) {
      if (job) text += job_event(*job, news.rev);
      send(text + source_events(app, *session, news.rev));
      return;
    }
    if (text.empty() && Clock::now() - last > kHeartbeat) text = ": still here\n\n";
    if (!text.empty()) {
      if (!send(text)) return;
      last = Clock::now();
      seen = news.rev;
    }
    if (app.stopping()) return;
    // Not more often than this, however fast rows come.
    std::this_thread::sleep_for(kBetweenEvents);
  }
}

}  // namespace

Reply get_events(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  const uint64_t seen = parse_digits(call.request.header("last-event-id")).value_or(0);
  Response response;
  response.type = "text/event-stream";
  response.stream = [&app = call.app, session = target.session, seen](const Send& send) {
    tell(app, session, seen, send);
  };
  return response;
}

}  // namespace tensordiff::serve
