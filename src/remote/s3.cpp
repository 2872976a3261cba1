// s3://bucket/key and gs://bucket/key: object stores, by the interface that Amazon's has.
//
//   GET /bucket/key                               the object
//   GET /bucket?list-type=2&prefix=key/           what lies below it, in pages
//
// Amazon's own takes the bucket as part of the host; others take it in the path.

#include "base/text.h"
#include "remote/credentials.h"
#include "remote/listing_xml.h"
#include "remote/scheme.h"
#include "remote/sigv4.h"

namespace tensordiff::remote {
namespace {

// Where a store is, and how it knows us.
struct Store {
  std::string endpoint;  // "https://host"; the bucket goes in front of the host or behind it.
  bool bucket_in_host = false;
  Sign sign;
  std::string hint;
};

Sign signing(SigningKey key) {
  return [key = std::move(key)](const Url& url) { return signed_headers(url, key, time_now()); };
}

Store amazon() {
  const AwsSettings aws = aws_settings();
  Store store;
  store.endpoint = aws.endpoint;
  store.bucket_in_host = aws.endpoint.empty();
  if (store.bucket_in_host) store.endpoint = fmt::format("https://s3.{}.amazonaws.com", aws.region);
  if (!aws.id.empty()) store.sign = signing({aws.id, aws.secret, aws.token, aws.region});
  store.hint = aws.id.empty() ? "no keys were found: set AWS_ACCESS_KEY_ID and "
                                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
                              : "check the keys, AWS_REGION and AWS_ENDPOINT_URL";
  return store;
}

Store google() {
  const GoogleSettings google = google_settings();
  Store store;
  store.endpoint = google.endpoint;
  if (!google.token.empty())
    store.sign = [token = google.token](const Url&) {
      return std::vector<std::string>{"Authorization: Bearer " + token};
    };
  else if (!google.id.empty() && !google.secret.empty())
    store.sign = signing({google.id, google.secret, "", "auto"});
  store.hint = store.sign ? "check the token or keys"
                          : "no keys were found: set GOOGLE_OAUTH_ACCESS_TOKEN, or "
                            "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY";
  return store;
}

struct Place {
  std::string bucket, key;
};

// Names of buckets are part of a host, so nothing else may be in them.
Result<Place> place_in(std::string_view rest) {
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view bucket = rest.substr(0, slash);
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  if (bucket.size() < 3 || bucket.size() > 63 ||
      bucket.find_first_not_of(kLetters) != std::string_view::npos ||
      bucket.find("..") != std::string_view::npos)
    return Error("'{}' is not the name of a bucket", printable(bucket, 80));
  Place place{std::string(bucket), std::string(slash < rest.size() ? rest.substr(slash + 1) : "")};
  for (const char c : place.key)
    if (static_cast<unsigned char>(c) < ' ') return Error("a control character in the address");
  return place;
}

Result<std::string> bucket_url(const Store& store, const std::string& bucket) {
  Url url = TRY(parse_url(store.endpoint).in("the address of the store"));
  while (url.path.ends_with('/')) url.path.pop_back();
  // With a dot in it, the certificate would not fit the host.
  if (store.bucket_in_host && bucket.find('.') == std::string::npos)
    url.host = bucket + "." + url.host;
  else
    url.path += "/" + bucket;
  url.query.clear();
  return url.text();
}

bool is_folder(std::string_view rest) {
  return rest.ends_with('/') || rest.find('/') == std::string_view::npos;
}

template <Store (*store)()>
Result<Request> file(std::string_view rest) {
  const Place place = TRY(place_in(rest));
  const Store at = store();
  const std::string url = TRY(bucket_url(at, place.bucket)) + "/" + encoded(place.key);
  return Request{url, at.sign, at.hint};
}

template <Store (*store)()>
Result<std::vector<Listed>> list(std::string_view rest) {
  const Place place = TRY(place_in(rest));
  const Store at = store();
  std::string prefix = place.key;
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  const std::string bucket = TRY(bucket_url(at, place.bucket));
  std::vector<Listed> files;
  std::string next;
  for (std::size_t page = 0; page < kListingPagesMax; ++page) {
    std::string query = "list-type=2&prefix=" + encoded(prefix, false);
    if (!next.empty()) query = "continuation-token=" + encoded(next, false) + "&" + query;
    const Request request{bucket + "?" + query, at.sign, at.hint};
    const Answer answer = TRY(get(request, kListingBytesMax));
    if (answer.status != 200) return status_error(answer, request);
    ListingPage found = TRY(parse_listing(answer.body));
    for (Listed& object : found.objects) {
      if (!object.name.starts_with(prefix))
        return Error("the listing has '{}', which is outside the requested prefix",
                     printable(object.name, 80));
      object.name.erase(0, prefix.size());
      if (object.name.empty() || object.name.ends_with('/')) continue;  // Stands for a folder.
      if (!is_relative_name(object.name))
        return Error("the listing has '{}', which cannot be the name of a file",
                     printable(object.name, 80));
      files.push_back(std::move(object));
    }
    if (files.size() > kListedMax) return Error("more than {} files", kListedMax);
    if (found.next.empty()) return files;
    next = std::move(found.next);
  }
  return Error("a listing of more than {} pages", kListingPagesMax);
}

}  // namespace

constinit const Scheme schemes::s3 = {
    .name = "s3",
    .summary = "Amazon S3 and stores with its interface (AWS_ENDPOINT_URL)",
    .is_folder = is_folder,
    .file = file<amazon>,
    .list = list<amazon>,
};

constinit const Scheme schemes::gs = {
    .name = "gs",
    .summary = "Google Cloud Storage, with HMAC keys or an OAuth token",
    .is_folder = is_folder,
    .file = file<google>,
    .list = list<google>,
};

}  // namespace tensordiff::remote
