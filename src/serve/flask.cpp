// The five endpoints of the earlier debugger, a Flask program, for scripts that were written for
// it: their requests and answers, over the same sessions. docs/http-api.md describes them.

#include <algorithm>
#include <cmath>

#include "align/view.h"
#include "base/text.h"
#include "report/wording.h"
#include "serve/multipart.h"
#include "serve/routes.h"
#include "serve/rows.h"

namespace tensordiff::serve {
namespace {

constexpr uint64_t kValuesMax = 1 << 20;

Response failure(std::string_view message, int status = 400) {
  JsonWriter json;
  json.begin_object().member("error", message).end_object();
  return json_response(json.take(), status);
}

// The session that the body names, or that of the last upload. Only those that came that way can be
// reached here, since with --legacy-open no token is asked for.
SessionPtr session_for(const Call& call) {
  const std::string named(call.body["session"].string());
  const std::lock_guard lock(call.app.flask_mutex);
  const std::vector<std::string>& known = call.app.flask_sessions;
  if (known.empty()) return nullptr;
  const std::string id = named.empty() ? known.back() : named;
  if (std::ranges::find(known, id) == known.end()) return nullptr;
  return call.app.sessions.find(id);
}

void write_tensor(JsonWriter& json, const TensorId& id) {
  json.begin_object().member("shape", id.shape).member("dtype", tensordiff::name_of(id.dtype));
  json.end_object();
}

void write_match(JsonWriter& json, const Row& row) {
  const PairRow& pair = *row.pair;
  const Diff& diff = pair.comparison.diff;
  const bool compared = was_compared(row);
  json.begin_object().member("layer_num", pair.layer).member("stage", pair.stage);
  json.member("match_type", matched_by_text(pair)).member("model1_file", pair.a.name);
  json.member("model2_file", pair.b.name).key("model1_data");
  write_tensor(json, pair.a);
  json.key("model2_data");
  write_tensor(json, pair.b);
  json.key("diff_stats").begin_object().member("shape_match", compared);
  json.member("original_shape1", pair.a.shape).member("original_shape2", pair.b.shape);
  json.key("final_shape");
  compared ? json.value(pair.shape) : json.null();
  json.member("reshaped", !pair.steps.empty()).member("abs_diff_mean", diff.mean_abs);
  json.member("abs_diff_max", diff.max_abs).member("rel_diff_mean", diff.mean_rel);
  json.member("mse", diff.mse).member("cosine_sim", diff.cosine);
  if (!compared) json.member("error", tensordiff::message_of(pair));
  json.end_object().member("match_index", uint64_t{row.id}).end_object();
}

// Pairs in the user's order.
std::vector<Row> ordered_pairs(const SessionState& state) {
  std::vector<Row> rows;
  for (std::size_t id = 0; id < state.results.report.pairs.size(); ++id)
    rows.push_back(state.row(id));
  std::ranges::sort(rows, {}, &Row::order);
  return rows;
}

void write_matches(JsonWriter& json, const SessionState& state) {
  json.key("matches").begin_array();
  for (const Row& row : ordered_pairs(state)) write_match(json, row);
  json.end_array();
}

Response matches_response(const SessionPtr& session) {
  JsonWriter json;
  json.begin_object().member("success", true).member("session", session->id());
  session->read([&](const SessionState& state) { write_matches(json, state); });
  return json_response(json.end_object().take());
}

// Waits for the comparison, since these answers have everything in them.
std::string finish(App& app, const SessionPtr& session) {
  if (const JobPtr job = app.jobs.of(session->id())) job->wait_while_wanted();
  return session->read([](const SessionState& state) {
    return state.phase == Phase::done ? "" : "the comparison failed: " + state.error;
  });
}

Result<SourcePtr> keep(App& app, const FormPart& part) {
  if (part.bytes.size() > app.uploads.limit())
    return Error("{} is larger than {}", printable(part.filename, 100),
                 human_bytes(app.uploads.limit()));
  const Upload upload = TRY(app.uploads.begin(part.filename, part.bytes.size()));
  BodyFile file = TRY(BodyFile::open(upload.path, 0));
  TRY(file.append(part.bytes));
  for (uint64_t chunk = 0; chunk < upload.received.size(); ++chunk)
    TRY(app.uploads.received(upload.id, chunk));
  Result<SourcePtr> source = app.sources.open(upload.path.string(), upload.name, true);
  if (!source.ok()) {
    app.uploads.remove(upload.id);
    return source;
  }
  TRY(app.uploads.set_source(upload.id, source.value()->id()));
  return source;
}

Result<SessionPtr> session_from(App& app, const std::vector<FormPart>& parts) {
  Settings settings;
  for (const FormPart& part : parts) {
    if (part.filename.empty()) continue;
    const bool first = part.name == "model1" || part.name == "single_file";
    if (!first && part.name != "model2") continue;
    const SourcePtr source = TRY(keep(app, part));
    (first ? settings.a : settings.b).push_back(source->id());
  }
  if (settings.a.empty()) return Error("No files: model1 and model2, or single_file");
  settings.mode = settings.usual_mode();
  return app.sessions.create(std::move(settings));
}

// One word of dimension_indices: an index, "from:to", or null for all.
Result<Range> axis_range(const Json& word, uint64_t size) {
  if (word.is_null()) return Range{0, size};
  if (word.is_string()) return Range::parse(word.string(), size);
  const std::optional<int64_t> index = word.i64();
  if (!index) return Error("dimension_indices: an index, \"from:to\" or null");
  const int64_t from_end = *index < 0 ? *index + static_cast<int64_t>(size) : *index;
  if (from_end < 0 || static_cast<uint64_t>(from_end) >= size)
    return Error("dimension_indices: {} lies outside an axis of {}", *index, size);
  return Range{static_cast<uint64_t>(from_end), static_cast<uint64_t>(from_end) + 1};
}

struct Block {
  View a, b;
  std::string info;
};

// The part that the indices name; the last axis starts there and runs on, as sliders want it.
Result<Block> block_of(const Json& indices, const AlignedPair& pair, uint64_t count) {
  Block block{pair.a, pair.b, ""};
  const Shape& shape = pair.a.shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    Range range = TRY(axis_range(indices[axis], shape[axis]));
    const bool last = axis + 1 == shape.size();
    if (last && indices[axis].i64()) range.end = std::min(shape[axis], range.first + count);
    block.a = narrowed(std::move(block.a), axis, range.first, range.size());
    block.b = narrowed(std::move(block.b), axis, range.first, range.size());
    block.info += fmt::format("{}{}:{}", axis ? ", " : "", range.first, range.end);
  }
  block.info = "[" + block.info + "]";
  return block;
}

Result<void> write_values(JsonWriter& json, const View& view, uint64_t count) {
  const Reader reader = TRY(Reader::open(view));
  std::vector<double> values(std::min(count, view.elements()));
  read_values(reader, 0, values.size(), values.data());
  json.value(values);
  return {};
}

void sort_rows(std::vector<Row>& rows, std::string_view by) {
  const auto worst = [](const Row& row) {
    return was_compared(row) ? row.pair->comparison.diff.max_abs.value_or(0) : INFINITY;
  };
  const auto alike = [](const Row& row) {
    return was_compared(row) ? row.pair->comparison.diff.cosine.value_or(-2) : -3;
  };
  if (by == "name") std::ranges::stable_sort(rows, {}, [](const Row& row) { return row.name_a(); });
  if (by == "similarity") std::ranges::stable_sort(rows, std::greater(), alike);
  if (by == "difference") std::ranges::stable_sort(rows, std::greater(), worst);
  if (by.empty() || by == "layer_stage") std::ranges::sort(rows, {}, &Row::id);
}

std::string group_name(const Row& row, std::string_view by) {
  if (by == "none") return "all";
  if (by == "name") return row.name_a();
  if (by == "similarity") return std::string(status_word(row));
  return row.pair->layer ? fmt::format("layer {}", *row.pair->layer) : "other";
}

}  // namespace

BodyPlan plan_form(const Call& call, Request& request) {
  App& app = call.app;
  BodyPlan plan;
  const uint64_t limit = app.uploads.limit();
  plan.bytes_max = limit > UINT64_MAX / 2 - kValuesMax ? UINT64_MAX : 2 * limit + kValuesMax;
  const uint64_t promised = parse_digits(request.header("content-length")).value_or(0);
  const std::shared_ptr<void> room = app.uploads.promise(std::min(promised, plan.bytes_max));
  if (!room) {
    plan.refusal = failure("the disk has no room for this upload", 507);
    return plan;
  }
  const std::filesystem::path path = app.uploads.scratch();
  Result<BodyFile> file = BodyFile::open(path, 0);
  if (!file.ok()) {
    plan.refusal = failure(file.error().message(), 507);
    return plan;
  }
  // Gone when the request is, at the latest.
  request.file = std::shared_ptr<BodyFile>(new BodyFile(std::move(file).value()),
                                           [path, room](BodyFile* open) {
                                             delete open;
                                             std::error_code ignored;
                                             std::filesystem::remove(path, ignored);
                                           });
  request.file_path = path.string();
  plan.sink = [file = request.file](std::string_view piece) -> std::optional<Response> {
    if (const Result<void> kept = file->append(piece); !kept.ok())
      return failure(kept.error().message(), 507);
    return std::nullopt;
  };
  return plan;
}

Reply flask_upload(const Call& call) {
  App& app = call.app;
  if (call.request.file->written() == 0) return failure("No files uploaded");
  const Result<Bytes> body = map_file(call.request.file_path);
  // Mapped, it needs its name no more: whoever has the answer finds nothing left of it.
  std::error_code ignored;
  std::filesystem::remove(call.request.file_path, ignored);
  if (!body.ok()) return failure(body.error().message());
  const Result<std::vector<FormPart>> parts =
      parse_multipart(as_text(body.value().view), call.request.header("content-type"));
  if (!parts.ok()) return failure(parts.error().message());
  const Result<SessionPtr> session = session_from(app, parts.value());
  if (!session.ok()) return failure(session.error().message());
  {
    const std::lock_guard lock(app.flask_mutex);
    app.flask_sessions.push_back(session.value()->id());
  }
  if (const std::string fault = finish(app, session.value()); !fault.empty()) return failure(fault);
  JsonWriter json;
  json.begin_object().member("success", true).member("session", session.value()->id());
  session.value()->read([&](const SessionState& state) {
    const Report& report = state.results.report;
    const bool alone = state.settings.b.empty();
    json.member("upload_mode", alone ? "single_file" : "dual_archive");
    json.member("model1_count", report.a.tensors);
    json.member("model2_count", alone ? 0 : report.b.tensors);
    json.key("unmatched1").begin_array();
    for (const Report::Unpaired& tensor : report.only_a) json.value(tensor.id.name);
    json.end_array().key("unmatched2").begin_array();
    for (const Report::Unpaired& tensor : report.only_b) json.value(tensor.id.name);
    json.end_array();
    write_matches(json, state);
  });
  return json_response(json.end_object().take());
}

Reply flask_values(const Call& call) {
  const SessionPtr session = session_for(call);
  if (!session) return failure("No data loaded: POST /upload first");
  const std::optional<uint64_t> place = call.body["match_index"].u64();
  std::optional<std::size_t> row;
  session->read([&](const SessionState& state) {
    const std::vector<Row> rows = ordered_pairs(state);
    if (place && *place < rows.size()) row = rows[*place].id;
  });
  if (!row) return failure("match_index: there is no such match");
  App& app = call.app;
  const Result<OpenPairPtr> open = app.pairs.open(app.sessions, session, *row);
  if (!open.ok()) return failure(open.error().message());
  if (!open.value()->aligned) return failure("the two have no common shape");
  const AlignedPair& pair = *open.value()->aligned;
  const uint64_t count = std::min(kValuesMax, call.body["count"].u64().value_or(10));
  const Json& indices = call.body["dimension_indices"];
  if (indices.array().size() > pair.a.shape.size())
    return failure("dimension_indices: more than there are axes");

  const Result<Block> block = block_of(indices, pair, count);
  if (!block.ok()) return failure(block.error().message());
  JsonWriter json;
  json.begin_object().member("tensor_shape", pair.a.shape);
  json.member("slice_info", block.value().info).key("tensor1_values");
  if (call.body["get_final_shape"].boolean().value_or(false))
    json.begin_array().end_array().key("tensor2_values").begin_array().end_array();
  else {
    TRY(write_values(json, block.value().a, count));
    json.key("tensor2_values");
    TRY(write_values(json, block.value().b, count));
  }
  if (call.body["get_argmax"].boolean().value_or(false)) {
    const Diff& diff = open.value()->comparison.diff;
    json.key("argmax_coordinates");
    diff.max_abs ? json.value(diff.max_abs_at) : json.null();
    json.member("max_diff", diff.max_abs);
  }
  return json_response(json.end_object().take());
}

Reply flask_reorder(const Call& call) {
  const SessionPtr session = session_for(call);
  if (!session) return failure("No data loaded: POST /upload first");
  std::vector<uint32_t> ids;
  session->read([&](const SessionState& state) {
    for (const Row& row : ordered_pairs(state)) ids.push_back(row.id);
  });
  const std::optional<uint64_t> from = call.body["old_index"].u64();
  const std::optional<uint64_t> to = call.body["new_index"].u64();
  std::vector<uint32_t> wanted;
  for (const Json& each : call.body["order"].array()) {
    const std::optional<uint64_t> place = each.u64();
    if (!place || *place >= ids.size()) return failure("order: not a list of matches");
    wanted.push_back(ids[*place]);
  }
  if (wanted.empty()) {
    if (!from || !to || *from >= ids.size() || *to >= ids.size())
      return failure("old_index and new_index, or order, are needed");
    wanted = ids;
    const uint32_t moved = wanted[*from];
    wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(*from));
    wanted.insert(wanted.begin() + static_cast<std::ptrdiff_t>(*to), moved);
  }
  TRY(call.app.sessions.set_order(session, wanted));
  return matches_response(session);
}

Reply flask_regroup(const Call& call) {
  const SessionPtr session = session_for(call);
  if (!session) return failure("No data loaded: POST /upload first");
  const std::string_view by = call.body["group_by"].string();
  std::vector<uint32_t> ids;
  std::vector<std::pair<std::string, std::vector<uint64_t>>> groups;
  session->read([&](const SessionState& state) {
    std::vector<Row> rows = ordered_pairs(state);
    sort_rows(rows, call.body["sort_by"].string());
    for (const Row& row : rows) {
      const std::string name = group_name(row, by);
      auto group = std::ranges::find(groups, name, &decltype(groups)::value_type::first);
      if (group == groups.end()) group = groups.insert(group, {name, {}});
      group->second.push_back(ids.size());
      ids.push_back(row.id);
    }
  });
  TRY(call.app.sessions.set_order(session, ids));
  Response response = matches_response(session);
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, members] : groups) json.member(name, members);
  json.end_object();
  response.body.insert(response.body.size() - 1, ",\"groups\":" + json.text());
  return response;
}

Reply flask_pair(const Call& call) {
  const SessionPtr session = session_for(call);
  if (!session) return failure("No data loaded: POST /upload first");
  const NamePair pair{std::string(call.body["model1_file"].string()),
                      std::string(call.body["model2_file"].string())};
  Settings settings = session->read([](const SessionState& state) { return state.settings; });
  if (settings.mode == Mode::explore) return failure("every pair is made already");
  std::erase_if(settings.pairings,
                [&](const NamePair& each) { return each.a == pair.a || each.b == pair.b; });
  settings.pairings.push_back(pair);
  TRY(call.app.sessions.set(session, settings));
  call.app.sessions.compare(session, false);
  if (const std::string fault = finish(call.app, session); !fault.empty()) return failure(fault);
  std::optional<std::size_t> index;
  session->read([&](const SessionState& state) {
    const std::vector<Row> rows = ordered_pairs(state);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].name_a() == pair.a && rows[i].name_b() == pair.b) index = i;
  });
  if (!index) return failure("there are no two tensors of these names");
  Response response = matches_response(session);
  response.body.insert(response.body.size() - 1, fmt::format(",\"match_index\":{}", *index));
  return response;
}

}  // namespace tensordiff::serve
