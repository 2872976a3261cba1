// What can be asked for: the table of routes. docs/http-api.md describes each; a test holds the two
// against each other.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "serve/app.h"
#include "serve/lanes.h"
#include "serve/query.h"

namespace tensordiff::serve {

// One request on its way to a handler.
struct Call {
  App& app;
  const Request& request;
  std::vector<std::pair<std::string_view, std::string>> parameters;  // {session} and so on.
  Query query;
  Json body;

  std::string parameter(std::string_view name) const;
};

struct Route {
  std::string_view method;
  std::string_view pattern;  // "/api/v1/sessions/{session}"
  std::string_view summary;
  // An Error is a request that makes no sense: 400.
  Result<Response> (*handle)(const Call& call);
  Lane lane = Lane::quick;
  uint64_t body_max = 1 << 20;
  bool token_in_query = false;
  // Where the body goes, if not into a Json; may be null.
  BodyPlan (*plan)(const Call& call, Request& request) = nullptr;
};

std::span<const Route> routes();

struct Match {
  const Route* route = nullptr;
  std::vector<std::pair<std::string_view, std::string>> parameters;
  std::string allow;  // Where the path is there, but not for this method: the methods it is for.
};
Match find_route(std::string_view method, std::string_view path);

// What {session} and {pair} of a path mean, or the answer that there is no such thing.
struct Target {
  SessionPtr session;
  std::size_t row = 0;
  OpenPairPtr pair;
  std::optional<Response> failure;
};
Target session_of(const Call& call);
Target row_of(const Call& call);
Target open_row(const Call& call);  // Also opens its values.
// Which finding of the row is to be applied to A (`apply=0`), if any.
Result<std::optional<std::size_t>> finding_wanted(const Call& call);

// {id, rev, run, job} of a session. `job` is the comparison that the request started, which may
// have ended already.
std::string session_brief(App& app, const SessionPtr& session, bool started = true);

// --- the handlers, by file ---

using Reply = Result<Response>;

Reply get_health(const Call& call);  // files.cpp
Reply get_fs(const Call& call);
Reply post_demo(const Call& call);
Reply get_sources(const Call& call);
Reply post_source(const Call& call);
Reply get_source(const Call& call);
Reply get_source_tensors(const Call& call);

Reply post_upload(const Call& call);  // uploading.cpp
Reply get_upload(const Call& call);
Reply put_chunk(const Call& call);
BodyPlan plan_chunk(const Call& call, Request& request);
Reply complete_upload(const Call& call);
Reply delete_upload(const Call& call);

Reply get_sessions(const Call& call);  // session_routes.cpp
Reply post_session(const Call& call);
Reply get_session(const Call& call);
Reply patch_session(const Call& call);
Reply delete_session(const Call& call);
Reply reload_session(const Call& call);
Reply get_job(const Call& call);
Reply delete_job(const Call& call);
Reply get_events(const Call& call);  // events.cpp

Reply get_pairs(const Call& call);  // pair_routes.cpp
Reply get_pair(const Call& call);
Reply patch_pair(const Call& call);
Reply put_note(const Call& call);
Reply get_pairings(const Call& call);
Reply put_pairings(const Call& call);
Reply put_order(const Call& call);
Reply post_export(const Call& call);
Reply get_export(const Call& call);

Reply get_slice(const Call& call);  // values.cpp
Reply get_element(const Call& call);
Reply get_profile(const Call& call);
Reply get_pyramid(const Call& call);  // pictures.cpp
Reply get_tile(const Call& call);
Reply get_axes(const Call& call);  // spread.cpp
Reply get_histogram(const Call& call);
Reply get_worst(const Call& call);
Reply post_find(const Call& call);  // find.cpp

Reply flask_upload(const Call& call);  // flask.cpp
BodyPlan plan_form(const Call& call, Request& request);
Reply flask_values(const Call& call);
Reply flask_reorder(const Call& call);
Reply flask_regroup(const Call& call);
Reply flask_pair(const Call& call);

}  // namespace tensordiff::serve
