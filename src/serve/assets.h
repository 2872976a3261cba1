// Files that are part of the program: the page and the demo. Their source is made by
// tools/embed.py when the program is built.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "serve/message.h"

namespace tensordiff::serve {

struct Asset {
  std::string_view path;  // "/index.html"
  std::string_view gzip;  // Its bytes, compressed.
  std::size_t size = 0;   // Of what they were.
  std::string_view hash;  // Of the same, for ETag.
};

std::span<const Asset> page_files();
std::span<const Asset> demo_files();

std::string unpacked(const Asset& asset);

// The file of the page that a path names, or what to say instead.
Response page_response(std::span<const Asset> files, const Request& request);

}  // namespace tensordiff::serve
