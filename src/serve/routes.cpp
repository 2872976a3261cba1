#include "serve/routes.h"

#include <algorithm>

#include "base/text.h"

namespace tensordiff::serve {
namespace {

constexpr uint64_t kLongBody = 64 << 20;  // Names or numbers of all rows.

constexpr Route kRoutes[] = {
    {"GET", "/api/v1/health", "version, limits, formats, roots", get_health},
    {"GET", "/api/v1/fs", "files and folders below the roots", get_fs, Lane::opening},
    {"POST", "/api/v1/demo", "a session on the built-in example dumps", post_demo, Lane::compare},
    {"GET", "/api/v1/sources", "all sources", get_sources, Lane::opening},
    {"POST", "/api/v1/sources", "open a file or folder by its path", post_source, Lane::opening},
    {"GET", "/api/v1/sources/{source}", "one source", get_source, Lane::opening},
    {"GET", "/api/v1/sources/{source}/tensors", "its tensors, as columns", get_source_tensors,
     Lane::opening},
    {"POST", "/api/v1/uploads", "begin an upload", post_upload},
    {"GET", "/api/v1/uploads/{upload}", "which chunks have arrived", get_upload},
    {"PUT", "/api/v1/uploads/{upload}/{chunk}", "one chunk, raw bytes", put_chunk, Lane::values,
     Uploads::kChunkBytes, false, plan_chunk},
    {"POST", "/api/v1/uploads/{upload}/complete", "make a source of it", complete_upload,
     Lane::opening},
    {"DELETE", "/api/v1/uploads/{upload}", "drop it", delete_upload},
    {"GET", "/api/v1/sessions", "all sessions, newest first", get_sessions},
    {"POST", "/api/v1/sessions", "compare sources", post_session, Lane::compare},
    {"GET", "/api/v1/sessions/{session}", "one session: state, summary, findings", get_session},
    {"PATCH", "/api/v1/sessions/{session}",
     "rename; other sources, tolerance or matching: compare again", patch_session, Lane::compare},
    {"DELETE", "/api/v1/sessions/{session}",
     "forget it, and remove uploads that no other session uses", delete_session, Lane::opening},
    {"POST", "/api/v1/sessions/{session}/reload", "open changed files again and compare again",
     reload_session, Lane::compare},
    {"GET", "/api/v1/sessions/{session}/events", "† news, as server-sent events", get_events,
     Lane::quick, 0, true},
    {"GET", "/api/v1/sessions/{session}/pairs", "all rows, or those that changed, as columns",
     get_pairs},
    {"GET", "/api/v1/sessions/{session}/pairings", "pairs made by hand", get_pairings,
     Lane::opening},
    {"PUT", "/api/v1/sessions/{session}/pairings", "set them, and compare again", put_pairings,
     Lane::compare, kLongBody},
    {"PUT", "/api/v1/sessions/{session}/order", "the order of the rows", put_order, Lane::quick,
     kLongBody},
    {"POST", "/api/v1/sessions/{session}/export", "prepare a file of the results", post_export},
    {"GET", "/api/v1/exports/{export}", "† that file", get_export, Lane::search, 0, true},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}", "one row in full", get_pair, Lane::values},
    {"PATCH", "/api/v1/sessions/{session}/pairs/{pair}", "say what its axes are, and compare again",
     patch_pair, Lane::compare},
    {"PUT", "/api/v1/sessions/{session}/pairs/{pair}/note", "a note on a pair", put_note},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/slice", "values, binary", get_slice,
     Lane::values},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/element",
     "one element: values, bits, distance", get_element, Lane::values},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/profile", "values along one axis, binary",
     get_profile, Lane::values},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/axes", "the error by index along each axis",
     get_axes, Lane::search},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/pyramid", "what tiles there are of a plane",
     get_pyramid, Lane::search},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/tile/{plane}/{level}/{ty}/{tx}",
     "one tile, binary", get_tile, Lane::values},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/histogram",
     "how values or differences are spread", get_histogram, Lane::search},
    {"GET", "/api/v1/sessions/{session}/pairs/{pair}/worst", "the elements that differ most",
     get_worst, Lane::search},
    {"POST", "/api/v1/sessions/{session}/pairs/{pair}/find", "search elements", post_find,
     Lane::search},
    {"GET", "/api/v1/jobs/{job}", "how far a job is", get_job},
    {"DELETE", "/api/v1/jobs/{job}", "cancel it", delete_job},
    {"POST", "/upload", "the earlier debugger's: archives in a form", flask_upload, Lane::compare,
     0, true, plan_form},
    {"POST", "/get_tensor_values", "the earlier debugger's: values of a match", flask_values,
     Lane::values, 1 << 20, true},
    {"POST", "/reorder_matches", "the earlier debugger's: move a match", flask_reorder, Lane::quick,
     1 << 20, true},
    {"POST", "/regroup_matches", "the earlier debugger's: sort and group", flask_regroup,
     Lane::quick, 1 << 20, true},
    {"POST", "/manual_pair", "the earlier debugger's: pair by hand", flask_pair, Lane::compare,
     1 << 20, true},
};

// Fills the parameters; nothing where the path is another one.
std::optional<std::vector<std::pair<std::string_view, std::string>>> fit(std::string_view pattern,
                                                                         std::string_view path) {
  const std::vector<std::string_view> wanted = split(pattern, '/');
  const std::vector<std::string_view> given = split(path, '/');
  if (wanted.size() != given.size()) return std::nullopt;
  std::vector<std::pair<std::string_view, std::string>> parameters;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].starts_with('{'))
      parameters.emplace_back(wanted[i].substr(1, wanted[i].size() - 2), given[i]);
    else if (wanted[i] != given[i])
      return std::nullopt;
  }
  return parameters;
}

Response outdated(std::string_view why) { return problem(409, why, "ask for the rows again"); }

Target missing(std::string_view what, const std::string& id) {
  Target target;
  target.failure = problem(404, fmt::format("there is no {} '{}'", what, printable(id, 60)));
  return target;
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

Match find_route(std::string_view method, std::string_view path) {
  Match match;
  for (const Route& route : kRoutes) {
    auto parameters = fit(route.pattern, path);
    if (!parameters) continue;
    if (route.method != method) {
      match.allow += (match.allow.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    return {&route, std::move(*parameters), ""};
  }
  return match;
}

std::string Call::parameter(std::string_view name) const {
  for (const auto& [known, value] : parameters)
    if (known == name) return value;
  return "";
}

Target session_of(const Call& call) {
  Target target;
  const std::string id = call.parameter("session");
  target.session = call.app.sessions.find(id);
  if (!target.session) return missing("session", id);
  if (const std::optional<std::string_view> run = call.query.find("run")) {
    const uint64_t now = target.session->read([](const SessionState& state) { return state.run; });
    if (parse_digits(*run) != now) target.failure = outdated("the pairs have changed");
  }
  return target;
}

Target row_of(const Call& call) {
  Target target = session_of(call);
  if (target.failure) return target;
  const std::string text = call.parameter("pair");
  const std::optional<uint64_t> id = parse_digits(text);
  const std::size_t rows =
      target.session->read([](const SessionState& state) { return state.row_count(); });
  if (!id || *id >= rows) {
    const bool was_there = id && call.query.find("v");
    return was_there ? Target{{}, 0, {}, outdated("the pairs have changed")}
                     : missing("pair", text);
  }
  target.row = *id;
  return target;
}

Result<std::optional<std::size_t>> finding_wanted(const Call& call) {
  const std::optional<std::string_view> text = call.query.find("apply");
  if (!text || text->empty()) return std::optional<std::size_t>();
  const std::optional<uint64_t> number = parse_digits(*text);
  if (!number) return Error("apply: '{}' is not the number of a finding", printable(*text));
  return std::optional<std::size_t>(*number);
}

Target open_row(const Call& call) {
  Target target = row_of(call);
  if (target.failure) return target;
  App& app = call.app;
  const Result<std::optional<std::size_t>> finding = finding_wanted(call);
  if (!finding.ok()) {
    target.failure = problem(400, finding.error().message());
    return target;
  }
  Result<OpenPairPtr> pair =
      app.pairs.open(app.sessions, target.session, target.row, finding.value());
  if (pair.ok()) {
    target.pair = std::move(pair).value();
    const std::optional<std::string_view> version = call.query.find("v");
    if (version && *version != target.pair->version)
      target.failure = outdated("the values are others now");
    return target;
  }
  const bool stale = app.sessions.stale(*target.session);
  target.failure = problem(stale ? 409 : 422, pair.error().message(), stale ? "reload it" : "");
  return target;
}

std::string session_brief(App& app, const SessionPtr& session, bool started) {
  const JobPtr job = started ? app.jobs.latest(session->id()) : nullptr;
  JsonWriter json;
  json.begin_object().member("id", session->id());
  session->read(
      [&](const SessionState& state) { json.member("rev", state.rev).member("run", state.run); });
  json.key("job");
  job ? json.value(job->id) : json.null();
  return json.end_object().take();
}

}  // namespace tensordiff::serve
