#include "serve/app.h"

#include <fstream>

#include "base/remote_files.h"
#include "base/text.h"
#include "serve/assets.h"
#include "serve/routes.h"

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

constexpr std::string_view kApi = "/api/";
constexpr int64_t kUnusedUploadMs = 24 * 3600 * 1000;

// Whether the request shows the token, where its route allows in the address.
bool shows_token(const Request& request, const Guard& guard, const Route* route) {
  if (guard.knows_token(request.header("x-token"))) return true;
  if (!route || !route->token_in_query) return false;
  const Query query(request.query);
  return guard.knows_token(query.text("token"));
}

std::optional<Response> check_token(const Request& request, const Guard& guard,
                                    const Route* route) {
  // What is not beneath /api and no route is the page, which has no secrets.
  const bool open_route = route && !request.path.starts_with(kApi) && guard.legacy_open;
  const bool page = !route && !request.path.starts_with(kApi);
  if (page || open_route || shows_token(request, guard, route)) return std::nullopt;
  return problem(401, "the token is missing or wrong",
                 "it stands behind #t= in the address that tensordiff printed; send it as X-Token");
}

Response wrong_method(const Request& request, const std::string& allow) {
  Response response = problem(405, printable(request.method, 20) + " is not for this path");
  response.headers.push_back({"Allow", allow});
  return response;
}

Result<void> write_file(const fs::path& path, const std::string& bytes) {
  std::error_code fault;
  if (fs::file_size(path, fault) == bytes.size() && !fault) return {};
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return Error("{}: cannot be written", path.string());
  return {};
}

std::vector<std::string> roots_of(const ServeOptions& options) {
  if (!options.roots.empty()) return options.roots;
  return options.inputs.empty() ? std::vector<std::string>{"."} : options.inputs;
}

// What sources are read from: the roots, the inputs of the command line, and what the server itself
// keeps: uploads and the demo. Only the roots are for clients to choose from.
Result<Roots> readable(const ServeOptions& options, const Roots& roots, const fs::path& state) {
  std::vector<std::string> own = options.inputs;
  for (const char* name : {"uploads", "demo"}) {
    own.push_back((state / name).string());
    std::error_code fault;
    fs::create_directories(own.back(), fault);
  }
  Roots all = TRY(Roots::make(own));
  all.add(roots);
  return all;
}

OpenOptions open_beneath(OpenOptions options, Roots roots) {
  options.roots = std::move(roots);
  return options;
}

}  // namespace

App::App(ServeOptions chosen, Guard guarded, Roots allowed, Roots read, StateFolder kept,
         Store opened_store)
    : options(std::move(chosen)),
      guard(std::move(guarded)),
      roots(std::move(allowed)),
      folder(std::move(kept)),
      store(std::move(opened_store)),
      sources(store, open_beneath(options.open, std::move(read))),
      sessions(store, sources, jobs),
      uploads(store, folder.path() / "uploads", options.upload_limit) {}

App::~App() { stop(); }

Result<std::unique_ptr<App>> App::make(const ServeOptions& options, Guard guard) {
  Roots roots = TRY(Roots::make(roots_of(options)));
  StateFolder folder = TRY(StateFolder::open(options.state));
  const std::string database = (folder.path() / "sessions.db").string();
  Store store = TRY(Store::open(database));
  Roots read = TRY(readable(options, roots, folder.path()));
  guard.token = TRY(folder.token());
  guard.legacy_open = options.legacy_open;
  std::unique_ptr<App> app(new App(options, std::move(guard), std::move(roots), std::move(read),
                                   std::move(folder), std::move(store)));
  TRY(app->sources.load().in(database));
  TRY(app->sessions.load().in(database));
  TRY(app->uploads.load().in(database));
  app->sweep();
  return app;
}

void App::sweep() {
  const auto used = [this](const std::string& source) { return sessions.uses(source); };
  for (const std::string& source : uploads.sweep(now_ms() - kUnusedUploadMs, used)) {
    // Where this fails, the next start tries again.
    static_cast<void>(sources.remove(source).ok());
  }
}

void App::stop() {
  stopping_ = true;
  jobs.stop();
}

BodyPlan App::begin(Request& request) {
  BodyPlan plan;
  const Match match = find_route(request.method, request.path);
  plan.refusal = guard.check(request);
  if (!plan.refusal) plan.refusal = check_token(request, guard, match.route);
  if (!plan.refusal && match.route) {
    plan.bytes_max = match.route->body_max;
    if (match.route->plan) {
      const Call call{*this, request, match.parameters, Query(request.query), Json()};
      plan = match.route->plan(call, request);
    }
  }
  return plan;
}

Response App::respond(const Request& request) {
  const Match match = find_route(request.method, request.path);
  const Lane lane = match.route ? match.route->lane : Lane::quick;
  const std::optional<Lanes::Place> place = lanes.enter(lane);
  if (!place) return problem(503, "too many requests of this kind are waiting");
  if (lane == Lane::compare && jobs.full())
    return problem(503, "too many comparisons are waiting", "cancel some, or wait for them");
  return answer(request, match);
}

Response App::answer(const Request& request, const Match& match) {
  if (!match.route) {
    if (!match.allow.empty()) return wrong_method(request, match.allow);
    if (request.path.starts_with(kApi)) return problem(404, "there is no such route");
    if (request.method != "GET" && request.method != "HEAD")
      return wrong_method(request, "GET, HEAD");
    return page_response(page_files(), request);
  }
  Json body;
  if (!request.body.empty()) {
    Result<Json> parsed = Json::parse(request.body);
    if (!parsed.ok()) return problem(400, "the body is not JSON: " + parsed.error().message());
    body = std::move(parsed).value();
  }
  const Call call{*this, request, match.parameters, Query(request.query), std::move(body)};
  const Store::Faults faults;
  Result<Response> reply = match.route->handle(call);
  if (!reply.ok() && faults.seen())
    return problem(507, reply.error().message(), "make room where the sessions are kept");
  if (!reply.ok()) return problem(400, reply.error().message());
  return std::move(reply).value();
}

Result<SessionPtr> App::open_inputs() {
  if (options.demo) return open_demo();
  Settings settings;
  for (std::size_t i = 0; i < options.inputs.size(); ++i) {
    const std::string& path = options.inputs[i];
    std::error_code fault;
    const fs::path found = is_remote(path) ? fs::path(path) : fs::canonical(path, fault);
    if (fault) return Error("{}: {}", printable(path), fault.message());
    const std::string name = is_remote(path) ? shown_input(path) : found.filename().string();
    const SourcePtr source = TRY(sources.open(found.string(), name, false));
    (i == 0 ? settings.a : settings.b).push_back(source->id());
  }
  settings.mode = settings.usual_mode();
  return sessions.create(std::move(settings));
}

Result<SessionPtr> App::open_demo() {
  Settings settings;
  settings.name = "demo: a small transformer, one bug";
  const fs::path place = folder.path() / "demo";
  std::error_code fault;
  fs::create_directories(place, fault);
  for (const Asset& asset : demo_files()) {
    const fs::path path = place / asset.path.substr(1);
    TRY(write_file(path, unpacked(asset)));
    const SourcePtr source = TRY(sources.open(path.string(), path.filename().string(), false));
    // a is the reference.
    (asset.path.find("reference") != std::string_view::npos ? settings.a : settings.b)
        .push_back(source->id());
  }
  return sessions.create(std::move(settings));
}

}  // namespace tensordiff::serve
