#include "remote/scheme.h"

#include "base/text.h"

namespace tensordiff::remote {
namespace {

bool never(std::string_view) { return false; }

template <const Scheme& scheme>
Result<Request> plain(std::string_view rest) {
  const std::string url = std::string(scheme.name) + "://" + std::string(rest);
  TRY(parse_url(url));
  return Request{url, {}, ""};
}

}  // namespace

constinit const Scheme schemes::https = {
    .name = "https",
    .summary = "a file on a web server that supports range requests",
    .is_folder = never,
    .file = plain<schemes::https>,
    .list = nullptr,
};

constinit const Scheme schemes::http = {
    .name = "http",
    .summary = "the same without encryption: on this machine, or with --remote-http",
    .is_folder = never,
    .file = plain<schemes::http>,
    .list = nullptr,
};

Result<Address> address_of(std::string_view url) {
  const std::size_t mark = url.find("://");
  const std::string name = lower(url.substr(0, mark));
  std::string names;
  for (const Scheme* scheme : schemes::kAll) {
    if (mark != std::string_view::npos && scheme->name == name)
      return Address{scheme, std::string(url.substr(mark + 3))};
    names += (names.empty() ? "" : ", ") + std::string(scheme->name) + "://";
  }
  return Error("addresses of '{}' are not read; there are: {}", printable(name, 20), names);
}

}  // namespace tensordiff::remote
