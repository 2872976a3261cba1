// Routes of the server itself, of files beneath the roots, and of sources.

#include <unistd.h>

#include <fstream>

#include "base/build_info.h"
#include "base/parallel.h"
#include "base/remote_files.h"
#include "base/text.h"
#include "naming/naming.h"
#include "serve/columns.h"
#include "serve/routes.h"
#include "serve/rows.h"

namespace tensordiff::serve {
namespace {

namespace fs = std::filesystem;

// Bytes of memory that this process has in use; 0 where the system does not say.
uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages = 0;
  if (!(file >> pages >> pages)) return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// A guess by the end of the name; opening it looks at the content.
std::optional<std::string_view> format_by_name(const std::string& name) {
  const std::string plain = lower(name);
  for (const Format* format : formats::kAll)
    for (const std::string_view extension : split(format->extensions, ' '))
      if (!extension.empty() && plain.ends_with(extension)) return format->name;
  return std::nullopt;
}

void write_formats(JsonWriter& json) {
  json.key("formats").begin_array();
  for (const Format* format : formats::kAll)
    json.begin_object()
        .member("name", format->name)
        .member("summary", format->summary)
        .member("extensions", format->extensions)
        .end_object();
  json.end_array().key("matchers").begin_array();
  for (const Matcher* matcher : matchers::kAll)
    if (matcher != &matchers::exec)  // Its program is named on the command line only.
      json.begin_object()
          .member("name", matcher->name)
          .member("summary", matcher->summary)
          .end_object();
  json.end_array();
}

Response outside(const std::string& path, const Roots& roots) {
  std::string list;
  for (const fs::path& root : roots.folders()) list += (list.empty() ? "" : ", ") + root.string();
  return problem(403,
                 fmt::format("'{}' lies outside the folders that may be read", printable(path)),
                 fmt::format("those are: {}; tensordiff serve --root names others", list));
}

Target source_of(const Call& call, SourcePtr& source) {
  Target target;
  const std::string id = call.parameter("source");
  source = call.app.sources.find(id);
  if (!source) target.failure = problem(404, fmt::format("there is no source '{}'", printable(id)));
  return target;
}

}  // namespace

Reply get_health(const Call& call) {
  const App& app = call.app;
  JsonWriter json;
  json.begin_object().member("version", kVersion);
  json.member("threads", uint64_t{threads()});
  json.key("memory").begin_object().member("rss", resident_bytes()).end_object();
  json.key("limits").begin_object().member("upload", app.uploads.limit());
  json.member("chunk", Uploads::kChunkBytes).member("slice", uint64_t{1} << 20);
  json.member("json", uint64_t{1} << 20).end_object();
  write_formats(json);
  json.key("exports").begin_array();
  for (const ExportFormat& format : export_formats()) json.value(format.name);
  json.end_array().key("stages").begin_array();
  for (const std::string_view stage : known_stages()) json.value(stage);
  json.end_array().key("roots").begin_array();
  for (const fs::path& root : app.roots.folders()) json.value(root.string());
  json.end_array().member("watch", app.options.watch).key("open");
  app.opened.empty() ? json.null() : json.value(app.opened);
  return json_response(json.end_object().take());
}

Reply get_fs(const Call& call) {
  const Roots& roots = call.app.roots;
  const std::string dir(call.query.text("dir"));
  Listing listing;
  Roots::Found found;
  if (dir.empty()) {
    listing = list_roots(roots);
  } else {
    found = roots.find(dir);
    if (found.outside) return outside(dir, roots);
    if (found.path.empty()) return problem(404, fmt::format("there is no '{}'", printable(dir)));
    listing = TRY(list_folder(roots, found.path, std::string(call.query.text("prefix"))));
  }
  JsonWriter json;
  json.begin_object().member("dir", found.path.string()).key("parent");
  const fs::path parent = found.path.parent_path();
  !dir.empty() && roots.contains(parent) ? json.value(parent.string()) : json.null();
  json.key("entries").begin_array();
  for (const Listing::Entry& entry : listing.entries) {
    json.begin_object().member("name", entry.name).member("path", entry.path);
    json.member("kind", entry.folder ? "folder" : "file").member("bytes", entry.bytes);
    json.member("format", entry.folder ? std::nullopt : format_by_name(entry.name)).end_object();
  }
  return json_response(json.end_array().member("more", listing.more).end_object().take());
}

Reply post_demo(const Call& call) {
  const SessionPtr session = TRY(call.app.open_demo());
  return json_response(session_brief(call.app, session), 201);
}

Reply get_sources(const Call& call) {
  JsonWriter json;
  json.begin_object().key("sources").begin_array();
  for (const SourcePtr& source : call.app.sources.all())
    write_source(json, *source, call.app.sources.options());
  return json_response(json.end_array().end_object().take());
}

Reply post_source(const Call& call) {
  const std::string path(call.body["path"].string());
  if (path.empty()) return Error("path: missing");
  Result<SourcePtr> source = SourcePtr();
  if (is_remote(path)) {
    if (const Result<const RemoteFiles*> files = remote_files(); !files.ok())
      return problem(403, files.error().message(), "tensordiff serve --remote allows them");
    // It would be kept with the session and shown, and may hold a signature.
    if (shown_input(path) != path)
      return problem(422, "an address with a query is not opened here");
    source = call.app.sources.open(path, path, false);
  } else {
    const Roots& roots = call.app.roots;
    const Roots::Found found = roots.find(path);
    if (found.outside) return outside(path, roots);
    if (found.path.empty())
      return problem(404, fmt::format("there is no file or folder '{}'", printable(path)));
    source = call.app.sources.open(found.path.string(), found.path.filename().string(), false);
  }
  if (!source.ok()) return problem(422, source.error().message());
  JsonWriter json;
  write_source(json, *source.value(), call.app.sources.options());
  return json_response(json.take(), 201);
}

Reply get_source(const Call& call) {
  SourcePtr source;
  if (const Target target = source_of(call, source); target.failure) return *target.failure;
  JsonWriter json;
  write_source(json, *source, call.app.sources.options());
  return json_response(json.take());
}

Reply get_source_tensors(const Call& call) {
  SourcePtr source;
  if (const Target target = source_of(call, source); target.failure) return *target.failure;
  const Result<Source::Opened> opened = source->open(call.app.sources.options());
  if (!opened.ok()) return problem(422, opened.error().message());
  const std::vector<Tensor>& tensors = opened.value().catalog->tensors;
  ColumnCells names, dtypes, shapes, elements, bytes, faults;
  for (const Tensor& tensor : tensors) {
    names.add(valid_utf8(tensor.name));
    dtypes.add(tensordiff::name_of(tensor.view.dtype));
    shapes.add(comma_text(tensor.view.shape));
    elements.add(static_cast<double>(tensor.elements()));
    bytes.add(static_cast<double>(tensor.bytes()));
    faults.add(valid_utf8(tensor.fault));
  }
  Columns columns(tensors.size());
  columns.add("name", std::move(names));
  columns.add("dtype", std::move(dtypes));
  columns.add("shape", std::move(shapes));
  columns.add("elements", std::move(elements));
  columns.add("bytes", std::move(bytes));
  columns.add("fault", std::move(faults));
  Response response;
  response.type = kColumnsType;
  response.body = columns.finish("");
  return response;
}

}  // namespace tensordiff::serve
