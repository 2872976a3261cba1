// Routes of the rows of a session: the list, one row, notes, pairs by hand, order, exports.

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "report/json_values.h"
#include "serve/columns.h"
#include "serve/routes.h"
#include "serve/rows.h"

namespace tensordiff::serve {
namespace {

constexpr std::size_t kNoteMax = 10'000;

// Pairs made by hand that name a tensor which is not there, with the reason.
struct StalePair {
  NamePair pair;
  std::string why;
};

std::unordered_set<std::string> name_set(const Catalog& catalog) {
  std::unordered_set<std::string> names;
  for (const Tensor& tensor : catalog.tensors) names.insert(tensor.name);
  return names;
}

std::vector<StalePair> stale_pairs(const Pairing& pairing, const std::vector<NamePair>& pairs) {
  const std::unordered_set<std::string> of_a = name_set(pairing.a);
  const std::unordered_set<std::string> of_b = name_set(pairing.b);
  std::vector<StalePair> stale;
  for (const NamePair& pair : pairs) {
    if (!of_a.contains(pair.a))
      stale.push_back({pair, "A has no such tensor"});
    else if (!of_b.contains(pair.b))
      stale.push_back({pair, "B has no such tensor"});
  }
  return stale;
}

void write_stale(JsonWriter& json, const std::vector<StalePair>& stale) {
  json.begin_array();
  for (const StalePair& each : stale)
    json.begin_object()
        .member("a", each.pair.a)
        .member("b", each.pair.b)
        .member("why", each.why)
        .end_object();
  json.end_array();
}

std::string disposition(const std::string& name) {
  return "attachment; filename=\"" + harmless_name(name) + "\"";
}

Result<std::set<Status>> statuses(const Json& list) {
  std::set<Status> show;
  for (const Json& word : list.array()) {
    int found = 0;
    for (int i = 0; i <= static_cast<int>(Status::error); ++i)
      if (tensordiff::name_of(static_cast<Status>(i)) == word.string()) {
        show.insert(static_cast<Status>(i));
        ++found;
      }
    if (found == 0) return Error("show: '{}' is not a status", printable(word.string()));
  }
  return show;
}

}  // namespace

Reply get_pairs(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  RowsWanted wanted;
  if (const auto text = call.query.find("since"); text && !text->empty()) {
    wanted.since = parse_digits(*text);
    if (!wanted.since) return Error("since: not a number");
  }
  if (const auto text = call.query.find("columns")) {
    const std::vector<std::string_view> known = std::exchange(wanted.columns, split(*text, ','));
    for (const std::string_view name : wanted.columns)
      if (std::ranges::find(known, name) == known.end())
        return Error("columns: there is no '{}'", printable(name));
  }
  const bool json = call.request.header("accept").find("application/json") != std::string::npos;
  Response response;
  response.type = json ? "application/json" : kColumnsType;
  target.session->read([&](const SessionState& state) {
    response.body = json ? rows_as_json(state, wanted) : rows_as_columns(state, wanted);
    response.headers = {{"X-Rev", std::to_string(state.rev)}, {"X-Run", std::to_string(state.run)}};
  });
  return response;
}

Reply patch_pair(const Call& call) {
  const Target target = row_of(call);
  if (target.failure) return *target.failure;
  const Json& dims = call.body["dims"];
  if (!dims.is_null() && !dims.is_string()) return Error("dims: neither a text nor null");
  std::string name;
  Settings settings;
  target.session->read([&](const SessionState& state) {
    settings = state.settings;
    if (target.row < state.results.report.pairs.size())
      name = state.results.report.pairs[target.row].a.name;
  });
  if (name.empty()) return problem(422, "only a pair has axes to bring together");
  TRY(settings.set_layout(name, std::string(dims.string())));
  // Axes that do not fit are refused, and change nothing.
  if (!dims.is_null()) {
    const std::shared_ptr<const Pairing> pairing = TRY(call.app.sessions.pairing(target.session));
    const tensordiff::Request request = TRY(request_for(settings));
    if (target.row < pairing->matching.pairs.size()) {
      const Result<AlignedPair> fits = align_pair(*pairing, target.row, request);
      if (!fits.ok()) return problem(422, fits.error().message());
    }
  }
  TRY(call.app.sessions.set(target.session, settings));
  call.app.sessions.compare(target.session, false);
  return json_response(session_brief(call.app, target.session), 202);
}

Reply put_note(const Call& call) {
  const Target target = row_of(call);
  if (target.failure) return *target.failure;
  if (!call.body["text"].is_string()) return Error("text: missing");
  const std::string text(call.body["text"].string());
  if (text.size() > kNoteMax) return problem(413, "a note has at most 10,000 characters");
  TRY(call.app.sessions.set_note(target.session, target.row, text));
  return empty_response();
}

Reply get_pairings(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  const auto [settings, names] = target.session->read(
      [](const SessionState& state) { return std::pair(state.settings, state.names); });
  JsonWriter json;
  json.begin_object().member("fingerprint", names).key("pairs").begin_array();
  for (const NamePair& pair : settings.pairings)
    json.begin_object().member("a", pair.a).member("b", pair.b).member("by", "hand").end_object();
  json.end_array().member("only", settings.only).key("apart").begin_array();
  for (const NamePair& pair : settings.apart)
    json.begin_object().member("a", pair.a).member("b", pair.b).end_object();
  json.end_array().key("stale");
  const Result<std::shared_ptr<const Pairing>> pairing = call.app.sessions.pairing(target.session);
  write_stale(json, pairing.ok() ? stale_pairs(*pairing.value(), settings.pairings)
                                 : std::vector<StalePair>());
  return json_response(json.end_object().take());
}

Reply put_pairings(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  const auto [before, names] = target.session->read(
      [](const SessionState& state) { return std::pair(state.settings, state.names); });
  if (before.mode == Mode::explore) return Error("explore mode already has every pair");
  if (!call.body["pairs"].is_array()) return Error("pairs: missing");
  Settings after = before;
  after.only = false;
  Json::Object changes = {{"pairs", call.body["pairs"]}, {"only", call.body["only"]}};
  if (call.body["apart"].is_array()) changes.push_back({"apart", call.body["apart"]});
  TRY(apply(Json(std::move(changes)), after));
  const std::string_view fingerprint = call.body["fingerprint"].string();
  if (!fingerprint.empty() && fingerprint != names) {
    const auto pairing = TRY(call.app.sessions.pairing(target.session));
    const std::vector<StalePair> stale = stale_pairs(*pairing, after.pairings);
    JsonWriter json;
    write_stale(json, stale);
    if (!stale.empty())
      return problem(409, "some of the pairs were saved for other tensors", "drop them and retry",
                     ",\"stale\":" + json.text());
  }
  TRY(call.app.sessions.set(target.session, after));
  call.app.sessions.compare(target.session, false);
  std::string body = session_brief(call.app, target.session);
  JsonWriter quoted;
  quoted.value(names);
  body.insert(body.size() - 1, ",\"fingerprint\":" + quoted.text());
  return json_response(std::move(body));
}

Reply put_order(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  if (!call.body["ids"].is_array()) return Error("ids: missing");
  std::vector<uint32_t> ids;
  for (const Json& each : call.body["ids"].array()) {
    const std::optional<uint64_t> id = each.u64();
    if (!id || *id > UINT32_MAX) return Error("ids: not a list of pairs");
    ids.push_back(static_cast<uint32_t>(*id));
  }
  TRY(call.app.sessions.set_order(target.session, ids));
  const uint64_t rev = target.session->read([](const SessionState& state) { return state.rev; });
  return json_response(fmt::format("{{\"rev\":{}}}", rev));
}

Reply post_export(const Call& call) {
  const Target target = session_of(call);
  if (target.failure) return *target.failure;
  const std::vector<ExportFormat> known = export_formats();
  const std::string_view name = call.body["format"].string();
  const auto format = std::ranges::find(known, name, &ExportFormat::name);
  if (format == known.end()) return Error("format: there is none called '{}'", printable(name));
  Export wanted{target.session->id(), *format, {}};
  if (!call.body["show"].is_null()) wanted.options.show = TRY(statuses(call.body["show"]));
  wanted.options.top = 0;
  const std::string id = call.app.exports.add(std::move(wanted));
  JsonWriter json;
  json.begin_object().member("id", id).member("url", "/api/v1/exports/" + id);
  json.member("name", fmt::format("tensordiff-{}{}", target.session->id(), format->extension));
  return json_response(json.end_object().take(), 201);
}

Reply get_export(const Call& call) {
  const std::optional<Export> wanted = call.app.exports.find(call.parameter("export"));
  const SessionPtr session = wanted ? call.app.sessions.find(wanted->session) : nullptr;
  if (!session) return problem(404, "there is no such export");
  const auto [report, done] = session->read([](const SessionState& state) {
    return std::pair(state.results.report, state.phase == Phase::done);
  });
  if (!done) return problem(409, "the comparison is not done yet");
  Response response;
  response.type = wanted->format.type;
  response.body = render(*wanted, report);
  response.headers = {
      {"Content-Disposition",
       disposition(fmt::format("tensordiff-{}{}", session->id(), wanted->format.extension))},
      {"Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'"}};
  return response;
}

}  // namespace tensordiff::serve
