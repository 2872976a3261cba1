// Routes of uploads.

#include "base/text.h"
#include "serve/routes.h"

namespace tensordiff::serve {
namespace {

std::string upload_json(const Upload& upload) {
  JsonWriter json;
  json.begin_object().member("id", upload.id).member("name", upload.name);
  json.member("size", upload.size).member("chunk", upload.chunk);
  json.member("chunks", uint64_t{upload.received.size()}).key("received").begin_array();
  for (uint64_t first = 0; first < upload.received.size(); ++first) {
    if (!upload.received[first]) continue;
    uint64_t end = first;
    while (end < upload.received.size() && upload.received[end]) ++end;
    json.begin_array().value(first).value(end).end_array();
    first = end;
  }
  return json.end_array().end_object().take();
}

Response no_upload(const Call& call) {
  return problem(404,
                 fmt::format("there is no upload '{}'", printable(call.parameter("upload"), 60)));
}

// Which chunk of which upload is meant; nothing where there is no such thing.
struct Chunk {
  Upload upload;
  uint64_t number = 0;
};
std::optional<Chunk> chunk_of(const Call& call) {
  std::optional<Upload> upload = call.app.uploads.find(call.parameter("upload"));
  const std::optional<uint64_t> number = parse_digits(call.parameter("chunk"));
  if (!upload || !number || *number >= upload->received.size()) return std::nullopt;
  return Chunk{std::move(*upload), *number};
}

}  // namespace

Reply post_upload(const Call& call) {
  const std::string name(call.body["name"].string());
  const std::optional<uint64_t> size = call.body["size"].u64();
  Uploads& uploads = call.app.uploads;
  if (name.empty() || !size) return Error("name and size are needed");
  if (*size == 0) return Error("size: an empty file holds no tensors");
  if (*size > uploads.limit())
    return problem(413,
                   fmt::format("{} has {}; uploads are taken up to {}", printable(name, 100),
                               human_bytes(*size), human_bytes(uploads.limit())),
                   "open it by its path instead, or start with a larger --upload-limit");
  const Result<Upload> upload = uploads.begin(name, *size);
  if (!upload.ok())
    return problem(507, upload.error().message(), "make room, or open the file by its path");
  return json_response(upload_json(upload.value()), 201);
}

Reply get_upload(const Call& call) {
  const std::optional<Upload> upload = call.app.uploads.find(call.parameter("upload"));
  return upload ? json_response(upload_json(*upload)) : no_upload(call);
}

BodyPlan plan_chunk(const Call& call, Request& request) {
  BodyPlan plan;
  const std::optional<Chunk> chunk = chunk_of(call);
  if (!chunk || !chunk->upload.source.empty()) {
    plan.refusal = no_upload(call);
    return plan;
  }
  plan.bytes_max = chunk->upload.chunk_bytes(chunk->number);
  Result<BodyFile> file = BodyFile::open(chunk->upload.path, chunk->number * chunk->upload.chunk);
  if (!file.ok()) {
    plan.refusal = problem(507, file.error().message());
    return plan;
  }
  request.file = std::make_shared<BodyFile>(std::move(file).value());
  plan.sink = [file = request.file](std::string_view piece) -> std::optional<Response> {
    if (const Result<void> kept = file->append(piece); !kept.ok())
      return problem(507, kept.error().message(), "make room, or open the file by its path");
    return std::nullopt;
  };
  return plan;
}

Reply put_chunk(const Call& call) {
  const std::optional<Chunk> chunk = chunk_of(call);
  if (!chunk) return no_upload(call);
  const uint64_t wanted = chunk->upload.chunk_bytes(chunk->number);
  const uint64_t written = call.request.file->written();
  if (written != wanted)
    return problem(400,
                   fmt::format("chunk {} has {} bytes; {} came", chunk->number, wanted, written));
  if (const Result<void> kept = call.request.file->sync(); !kept.ok())
    return problem(507, kept.error().message());
  TRY(call.app.uploads.received(chunk->upload.id, chunk->number));
  return empty_response();
}

Reply complete_upload(const Call& call) {
  App& app = call.app;
  const std::optional<Upload> upload = app.uploads.find(call.parameter("upload"));
  if (!upload) return no_upload(call);
  if (!upload->complete()) return problem(409, "chunks are missing", "GET it to see which");
  const Result<SourcePtr> source = app.sources.open(upload->path.string(), upload->name, true);
  if (!source.ok()) {
    app.uploads.remove(upload->id);
    return problem(422, source.error().message());
  }
  TRY(app.uploads.set_source(upload->id, source.value()->id()));
  JsonWriter json;
  write_source(json, *source.value(), app.sources.options());
  return json_response(json.take(), 201);
}

Reply delete_upload(const Call& call) {
  const std::optional<Upload> upload = call.app.uploads.find(call.parameter("upload"));
  if (!upload) return no_upload(call);
  if (!upload->source.empty())
    return problem(409, "it is a source now", "it goes with the last session that uses it");
  call.app.uploads.remove(upload->id);
  return empty_response();
}

}  // namespace tensordiff::serve
