// Searches the elements of a pair: for values, NaN, infinities, or what is beyond tolerance.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/text.h"
#include "serve/routes.h"

namespace tensordiff::serve {
namespace {

constexpr uint64_t kScannedMax = 64 << 20;  // Elements in one request: below a second.
constexpr std::size_t kBlock = 65536;
constexpr uint64_t kHitsMax = 1000;
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Search {
  enum class In { a, b, distance, tolerance };
  enum class Op { range, nan, inf };
  In in = In::a;
  Op op = Op::range;
  double lo = -kInf, hi = kInf;
  uint64_t from = 0;
  bool forward = true;
  uint64_t limit = 1;
  Tolerance tolerance;
  bool equal_nan = true;
};

bool beyond(double a, double b, const Search& search) {
  if (std::isnan(a) && std::isnan(b)) return !search.equal_nan;
  if (!std::isfinite(a) || !std::isfinite(b)) return a != b;
  return std::abs(b - a) > search.tolerance.atol + search.tolerance.rtol * std::abs(a);
}

bool hits(double a, double b, const Search& search) {
  if (search.in == Search::In::tolerance) return beyond(a, b, search);
  double value = search.in == Search::In::a ? a : b;
  if (search.in == Search::In::distance) value = std::abs(b - a);
  if (search.op == Search::Op::nan) return std::isnan(value);
  if (search.op == Search::Op::inf) return std::isinf(value);
  return value >= search.lo && value <= search.hi;
}

Result<double> bound(const Json& value, std::string_view key, double fallback) {
  if (value.is_null()) return fallback;
  const std::optional<double> number = value.number();
  if (!number) return Error("{}: not a number", key);
  return *number;
}

Result<Search> parse_search(const Json& body, const OpenPair& open, uint64_t elements) {
  Search search;
  const std::string_view in = body["in"].string();
  constexpr std::string_view kPlaces[] = {"a", "b", "d", "tol"};
  const auto place = std::ranges::find(kPlaces, in);
  if (place == std::end(kPlaces)) return Error("in: '{}' is not a, b, d or tol", printable(in));
  search.in = static_cast<Search::In>(place - kPlaces);
  const std::string_view op = body["op"].string();
  if (op == "nan") search.op = Search::Op::nan;
  if (op == "inf") search.op = Search::Op::inf;
  if (op != "nan" && op != "inf" && op != "range" && op != "eq" && in != "tol")
    return Error("op: '{}' is not range, eq, nan or inf", printable(op));
  search.lo = TRY(bound(body["lo"], "lo", -kInf));
  search.hi = TRY(bound(body["hi"], "hi", kInf));
  if (op == "eq") search.hi = search.lo;
  search.forward = body["dir"].i64().value_or(1) >= 0;
  search.limit = body["limit"].u64().value_or(1);
  if (search.limit == 0 || search.limit > kHitsMax) return Error("limit: 1 to {}", kHitsMax);
  search.from = search.forward ? 0 : elements - 1;
  const Json& from = body["from"];
  if (!from.is_null()) {
    const auto position = from.is_string() ? parse_digits(from.string()) : from.u64();
    if (!position || *position >= elements) return Error("from: there are {} elements", elements);
    search.from = *position;
  }
  search.tolerance = open.comparison.diff.tolerance;
  search.equal_nan = open.equal_nan;
  return search;
}

struct Hit {
  uint64_t position;
  double a, b;
};

struct Outcome {
  std::vector<Hit> hits;
  uint64_t scanned = 0;
  bool done = false;
};

// Block by block from where it starts, away from there.
Outcome scan(const Reader& a, const Reader& b, const Search& search) {
  Outcome outcome;
  const uint64_t elements = a.view().elements();
  std::vector<double> of_a, of_b;
  uint64_t left = search.forward ? elements - search.from : search.from + 1;
  while (left > 0 && outcome.scanned < kScannedMax && !called_off()) {
    const std::size_t count = std::min<uint64_t>(kBlock, left);
    const uint64_t first = search.forward ? elements - left : left - count;
    of_a.resize(count);
    of_b.resize(count);
    read_values(a, first, count, of_a.data());
    read_values(b, first, count, of_b.data());
    for (std::size_t step = 0; step < count; ++step) {
      const std::size_t i = search.forward ? step : count - 1 - step;
      ++outcome.scanned;
      if (!hits(of_a[i], of_b[i], search)) continue;
      outcome.hits.push_back({first + i, of_a[i], of_b[i]});
      if (outcome.hits.size() == search.limit) return outcome;
    }
    left -= count;
  }
  outcome.done = left == 0;
  return outcome;
}

struct Count {
  uint64_t hits = 0;
  bool done = false;  // All elements were looked at.
};

// How many there are in all, wherever the search starts.
Count count_all(const Reader& a, const Reader& b, const Search& search) {
  Count count;
  const uint64_t elements = a.view().elements(), end = std::min(elements, kScannedMax);
  std::vector<double> of_a(kBlock), of_b(kBlock);
  for (uint64_t first = 0; first < end && !called_off(); first += kBlock) {
    const std::size_t size = std::min<uint64_t>(kBlock, end - first);
    read_values(a, first, size, of_a.data());
    read_values(b, first, size, of_b.data());
    for (std::size_t i = 0; i < size; ++i) count.hits += hits(of_a[i], of_b[i], search);
  }
  count.done = end == elements;
  return count;
}

}  // namespace

Reply post_find(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  const OpenPair& open = *target.pair;
  const std::string_view in = call.body["in"].string();
  const View* a = open.side(open.aligned || in == "a" ? 'a' : 'b', !open.aligned);
  const View* b = open.aligned ? open.side('b', false) : a;
  if (!a || !b) return Error("there is no tensor here that can be read");
  if (!open.aligned && in != "a" && in != "b")
    return problem(422, "the two have no common layout, or there is only one of them");
  JsonWriter json;
  json.begin_object().key("hits").begin_array();
  if (a->elements() == 0) {
    json.end_array().member("scanned", 0).member("done", true).key("next").null();
    return json_response(json.end_object().take());
  }
  const Search search = TRY(parse_search(call.body, open, a->elements()));
  const Reader reader_a = TRY(Reader::open(*a).in("A"));
  const Reader reader_b = TRY(Reader::open(*b).in("B"));
  const Outcome outcome = scan(reader_a, reader_b, search);
  std::optional<Count> count;
  if (call.body["count"].boolean().value_or(false)) count = count_all(reader_a, reader_b, search);
  if (!reader_a.intact() || !reader_b.intact())
    return problem(422, "the file was cut short while it was read");
  for (const Hit& hit : outcome.hits) {
    json.begin_object().member("flat", std::to_string(hit.position));
    json.member("at", index_at(a->shape, hit.position)).key("a");
    open.aligned || in == "a" ? json.value(hit.a) : json.null();
    json.key("b");
    open.aligned || in == "b" ? json.value(hit.b) : json.null();
    json.end_object();
  }
  json.end_array().member("scanned", outcome.scanned);
  // Where the next request goes on: behind what was scanned, unless that was the end.
  const uint64_t left = search.forward ? a->elements() - search.from : search.from + 1;
  const bool ended = outcome.done || outcome.scanned == left;
  json.member("done", ended).key("next");
  const uint64_t next =
      search.forward ? search.from + outcome.scanned : search.from - outcome.scanned;
  ended ? json.null() : json.value(std::to_string(next));
  if (count) json.member("count", count->hits).member("countDone", count->done);
  return json_response(json.end_object().take());
}

}  // namespace tensordiff::serve
