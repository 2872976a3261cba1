#include "serve/assets.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>

namespace tensordiff::serve {
namespace {

std::string_view type_of(std::string_view path) {
  struct Type {
    std::string_view extension, type;
  };
  constexpr Type kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".woff2", "font/woff2"},
      {".json", "application/json"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
  };
  for (const Type& type : kTypes)
    if (path.ends_with(type.extension)) return type.type;
  return "application/octet-stream";
}

}  // namespace

std::string unpacked(const Asset& asset) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> tool(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  std::string out(asset.size, '\0');
  // Cannot fail: the build compressed it.
  libdeflate_gzip_decompress(tool.get(), asset.gzip.data(), asset.gzip.size(), out.data(),
                             out.size(), nullptr);
  return out;
}

Response page_response(std::span<const Asset> files, const Request& request) {
  std::string_view path = request.path;
  if (path == "/") path = "/index.html";
  const auto found = std::ranges::find(files, path, &Asset::path);
  if (found == files.end())
    return problem(404, "there is no such page", files.empty() ? "built without the page" : "");
  const Asset& asset = *found;
  Response response;
  const std::string etag = "\"" + std::string(asset.hash) + "\"";
  // Names under assets/ change with their content.
  const bool lasting = asset.path.starts_with("/assets/");
  response.headers = {
      {"ETag", etag},
      {"Cache-Control", lasting ? "public, max-age=31536000, immutable" : "no-cache"},
      {"Vary", "Accept-Encoding"}};
  response.type = type_of(asset.path);
  if (request.header("if-none-match") == etag) {
    response.status = 304;
    return response;
  }
  if (request.header("accept-encoding").find("gzip") == std::string_view::npos) {
    response.body = unpacked(asset);
    return response;
  }
  response.headers.push_back({"Content-Encoding", "gzip"});
  response.fixed = asset.gzip;
  return response;
}

}  // namespace tensordiff::serve
