// hf://org/name[@revision][/path]: repositories of models on the Hugging Face hub.
//
//   GET /api/models/org/name/revision/REV                {"sha": the commit that REV means now}
//   GET /api/models/org/name/tree/SHA[/path]?recursive=1  the files, in pages, with their hashes
//   GET /org/name/resolve/SHA/path                       a file; large ones lead to another host

#include <chrono>
#include <map>
#include <mutex>

#include "base/json.h"
#include "base/text.h"
#include "remote/credentials.h"
#include "remote/scheme.h"

namespace tensordiff::remote {
namespace {

constexpr uint64_t kInfoBytesMax = 16ULL << 20;  // Of what the hub says of one repository.
constexpr std::chrono::seconds kPinLasts{60};

struct Place {
  std::string repository;         // "org/name"
  std::string revision = "main";  // May have a '/', written as %2F.
  std::string path;               // Empty: all of it.
};

bool is_word(std::string_view text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  return !text.empty() && text.size() <= 128 && text != "." && text != ".." &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

Result<Place> place_in(std::string_view rest) {
  while (rest.ends_with('/')) rest.remove_suffix(1);
  Place place;
  const std::size_t slash = rest.find('/');
  const std::size_t end =
      slash == std::string_view::npos ? slash : std::min(rest.find('/', slash + 1), rest.size());
  std::string_view name = rest.substr(0, end);
  if (end < rest.size()) place.path = rest.substr(end + 1);
  if (const std::size_t at = name.find('@'); at != std::string_view::npos) {
    place.revision = name.substr(at + 1);
    name = name.substr(0, at);
  }
  place.repository = name;
  const std::string_view org = name.substr(0, slash);
  const std::string_view model = slash == std::string_view::npos ? "" : name.substr(slash + 1);
  if (!is_word(org) || !is_word(model))
    return Error("'{}' is not of the form hf://org/name[@revision][/file]", printable(rest, 80));
  std::string plain;
  for (const std::string_view part : split(place.revision, '%')) plain += part;
  if (!is_word(plain)) return Error("'{}' is not a revision", printable(place.revision, 80));
  if (!place.path.empty() && !is_relative_name(place.path))
    return Error("'{}' is not a path in a repository", printable(place.path, 80));
  return place;
}

Request request_for(const std::string& path) {
  const HubSettings hub = hub_settings();
  Request request{hub.endpoint + path, {}, ""};
  request.hint = hub.token.empty() ? "it may not exist, or be private: HF_TOKEN lets you in"
                                   : "it may not exist, or your token does not let you in";
  if (!hub.token.empty())
    request.sign = [token = hub.token](const Url&) {
      return std::vector<std::string>{"Authorization: Bearer " + token};
    };
  return request;
}

// The commit that a revision means, so that all files are of one, whoever pushes meanwhile. The
// revision itself where the hub does not say.
class Pins {
 public:
  std::string find(const Place& place) {
    const std::scoped_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    Pin& pin = pins_[place.repository + "@" + place.revision];
    if (pin.commit.empty() || now - pin.time > kPinLasts) pin = {ask(place), now};
    return pin.commit;
  }

 private:
  struct Pin {
    std::string commit;
    std::chrono::steady_clock::time_point time;
  };

  static std::string ask(const Place& place) {
    const Request request =
        request_for("/api/models/" + place.repository + "/revision/" + place.revision);
    const Result<Answer> answer = get(request, kInfoBytesMax);
    if (!answer.ok() || answer.value().status != 200) return place.revision;
    const Result<Json> info = Json::parse(answer.value().body);
    const std::string_view commit = info.ok() ? info.value()["sha"].string() : "";
    constexpr std::string_view kDigits = "0123456789abcdef";
    const bool whole =
        commit.size() == 40 && commit.find_first_not_of(kDigits) == std::string_view::npos;
    return whole ? std::string(commit) : place.revision;
  }

  std::mutex mutex_;
  std::map<std::string, Pin> pins_;
};

std::string commit_of(const Place& place) {
  static Pins* const pins = new Pins;
  return pins->find(place);
}

bool is_folder(std::string_view rest) {
  const Result<Place> place = place_in(rest);
  return place.ok() && place.value().path.empty();
}

Result<Request> file(std::string_view rest) {
  const Place place = TRY(place_in(rest));
  return request_for("/" + place.repository + "/resolve/" + commit_of(place) + "/" +
                     encoded(place.path));
}

Result<void> add_page(const Json& page, const std::string& prefix, std::vector<Listed>& files) {
  if (!page.is_array()) return Error("the hub's answer is not a listing");
  for (const Json& entry : page.array()) {
    if (entry["type"].string() != "file") continue;
    const std::string_view path = entry["path"].string();
    const Json& lfs = entry["lfs"];
    const std::optional<uint64_t> size = (lfs.is_object() ? lfs["size"] : entry["size"]).u64();
    if (!size || *size > (1ULL << 50) || !is_relative_name(path) || !path.starts_with(prefix))
      return Error("the hub lists '{}', which cannot be the name of a file", printable(path, 80));
    // Of a file in LFS the SHA-256 of its bytes, of another git's hash of them.
    const std::string_view hash = (lfs.is_object() ? lfs["oid"] : entry["oid"]).string();
    files.push_back(
        {std::string(path.substr(prefix.size())), *size, hash_in(fmt::format("\"{}\"", hash))});
    if (files.size() > kListedMax) return Error("more than {} files", kListedMax);
  }
  return {};
}

// `Link: <https://…>; rel="next"`
std::string next_page(std::string_view link) {
  const std::size_t begin = link.find('<'), end = link.find('>');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      link.find("rel=\"next\"", end) == std::string_view::npos)
    return "";
  return std::string(link.substr(begin + 1, end - begin - 1));
}

Result<std::vector<Listed>> list(std::string_view rest) {
  const Place place = TRY(place_in(rest));
  const std::string below = place.path.empty() ? "" : "/" + encoded(place.path);
  Request request = request_for("/api/models/" + place.repository + "/tree/" + commit_of(place) +
                                below + "?recursive=1");
  const std::string origin = TRY(parse_url(request.url)).origin();
  std::vector<Listed> files;
  for (std::size_t page = 0; page < kListingPagesMax; ++page) {
    const Answer answer = TRY(get(request, kListingBytesMax));
    if (answer.status != 200) return status_error(answer, request);
    const Json listing = TRY(Json::parse(answer.body).in("the hub's listing"));
    TRY(add_page(listing, place.path.empty() ? "" : place.path + "/", files));
    const std::string next = next_page(answer.header("link"));
    if (next.empty()) return files;
    // The token goes with it.
    if (TRY(parse_url(next)).origin() != origin)
      return Error("the hub's listing goes on at another host");
    request.url = next;
  }
  return Error("a listing of more than {} pages", kListingPagesMax);
}

}  // namespace

constinit const Scheme schemes::hf = {
    .name = "hf",
    .summary = "a repository of the Hugging Face hub, or a file in it",
    .is_folder = is_folder,
    .file = file,
    .list = list,
};

}  // namespace tensordiff::remote
