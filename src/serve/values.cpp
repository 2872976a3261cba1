// Values of a pair as they are: slices, single elements, lines.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "base/text.h"
#include "compare/ulp.h"
#include "serve/routes.h"
#include "serve/rows.h"

namespace tensordiff::serve {
namespace {

constexpr uint64_t kSliceElementsMax = 1 << 20;
constexpr uint64_t kPointsMax = 16384;
constexpr std::size_t kBlock = 65536;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kCutShort = "the file was cut short while it was read";

// What of a pair a request looks at.
struct Look {
  std::string planes;  // Letters of a, b and d.
  bool stored = false;
  std::vector<const View*> sides;  // Of a and b, as far as the planes need them.
  const Shape* shape = nullptr;
};

Result<Look> look_at(const Call& call, const OpenPair& pair, std::string_view fallback) {
  Look look;
  look.planes = call.query.text("plane", fallback);
  look.stored = call.query.text("layout") == "stored" || !pair.aligned;
  const bool differs = look.planes.find('d') != std::string::npos;
  if (look.planes.empty() || look.planes.find_first_not_of("abd") != std::string::npos ||
      look.planes.size() > 3)
    return Error("plane: '{}' is not made of a, b and d", printable(look.planes));
  if (look.stored && (look.planes.size() > 1 || differs))
    return Error("plane: only a or b alone, since they have no common layout here");
  for (const char side : std::string_view("ab")) {
    const bool needed = differs || look.planes.find(side) != std::string::npos;
    const View* view = needed ? pair.side(side, look.stored) : nullptr;
    if (needed && !view) return Error("there is no {} here that can be read", side);
    look.sides.push_back(view);
    if (view) look.shape = &view->shape;
  }
  return look;
}

// The values of one plane as float64.
class PlaneReader {
 public:
  static Result<PlaneReader> open(char plane, const View* a, const View* b) {
    PlaneReader reader;
    if (plane != 'b') reader.readers_.push_back(TRY(Reader::open(*a).in("A")));
    if (plane != 'a') reader.readers_.push_back(TRY(Reader::open(*b).in("B")));
    return reader;
  }

  void read(uint64_t first, std::size_t count, double* out) const {
    read_values(readers_[0], first, count, out);
    if (readers_.size() == 1) return;
    std::vector<double> other(count);
    read_values(readers_[1], first, count, other.data());
    for (std::size_t i = 0; i < count; ++i) out[i] = other[i] - out[i];
  }
  const Reader& reader() const { return readers_[0]; }
  bool intact() const { return std::ranges::all_of(readers_, &Reader::intact); }

 private:
  std::vector<Reader> readers_;
};

template <class Number>
void append_numbers(const std::vector<double>& values, std::string& body) {
  std::vector<Number> numbers(values.begin(), values.end());
  body.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
}

Result<void> append_plane(const PlaneReader& plane, std::size_t count, std::string_view as,
                          std::string& body) {
  if (as == "raw") {
    const Reader& reader = plane.reader();
    std::vector<std::byte> buffer;
    if (count > 0)
      body.append(reinterpret_cast<const char*>(reader.raw(0, count, buffer)),
                  count * item_bytes(reader.view().dtype));
  } else {
    std::vector<double> values(count);
    plane.read(0, count, values.data());
    as == "f64" ? append_numbers<double>(values, body) : append_numbers<float>(values, body);
  }
  if (!plane.intact()) return Error("{}", kCutShort);
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

Response binary(std::string body, const OpenPair& pair, const Request& request) {
  Response response;
  response.type = "application/octet-stream";
  // The same URL gives the same bytes while the version stays.
  const std::string etag = "\"" + pair.version + "\"";
  response.headers = {{"ETag", etag}, {"Cache-Control", "private, no-cache"}};
  if (request.header("if-none-match") == etag)
    response.status = 304;
  else
    response.body = std::move(body);
  return response;
}

// An exact text, a number as JSON has it, and the bits.
void write_value(JsonWriter& json, const View& view, uint64_t position) {
  const Result<Reader> opened = Reader::open(view);
  if (!opened.ok()) {
    json.null();
    return;
  }
  const Reader& reader = opened.value();
  std::vector<std::byte> buffer;
  const std::byte* raw = reader.raw(position, 1, buffer);
  const std::size_t bytes = item_bytes(view.dtype);
  std::string bits;
  for (std::size_t i = bytes; i-- > 0;)
    bits += fmt::format("{:02x}", static_cast<unsigned>(raw[i]));
  double parts[2] = {0, 0};
  reader.components(position, 1, parts);
  std::string text = number_text(parts[0]);
  uint64_t whole = 0;
  std::memcpy(&whole, raw, std::min<std::size_t>(bytes, sizeof whole));
  if (view.dtype == DType::i64) text = std::to_string(static_cast<int64_t>(whole));
  if (view.dtype == DType::u64) text = std::to_string(whole);
  if (view.dtype == DType::boolean) text = whole ? "true" : "false";
  if (is_complex(view.dtype))
    text += (std::signbit(parts[1]) ? "" : "+") + number_text(parts[1]) + "j";
  json.begin_object().member("text", text).member("value", parts[0]).member("bits", bits);
  json.end_object();
}

void write_distance(JsonWriter& json, const OpenPair& pair, uint64_t position) {
  const Result<Reader> a = Reader::open(pair.aligned->a);
  const Result<Reader> b = Reader::open(pair.aligned->b);
  double va = kNan, vb = kNan;
  if (a.ok()) read_values(a.value(), position, 1, &va);
  if (b.ok()) read_values(b.value(), position, 1, &vb);
  const DType dtype_a = pair.aligned->a.dtype, dtype_b = pair.aligned->b.dtype;
  const bool finite = std::isfinite(va) && std::isfinite(vb);
  const Tolerance& limit = pair.comparison.diff.tolerance;
  const double allowed = limit.atol + limit.rtol * std::abs(va);
  const double apart = std::abs(vb - va);
  json.member("diff", vb - va).key("rel");
  finite&& va != 0 ? json.value(apart / std::abs(va)) : json.null();
  json.key("ulp");
  const bool steps = finite && is_float(dtype_a) && is_float(dtype_b);
  steps ? json.value(ulp_between(coarser(dtype_a, dtype_b), &va, &vb, 1)) : json.null();
  json.key("tolerance");
  pair.compared ? json.value(allowed) : json.null();
  json.key("ratio");
  pair.compared&& finite ? json.value(apart == 0 ? 0 : apart / allowed) : json.null();
}

}  // namespace

Reply get_slice(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  const OpenPair& pair = *target.pair;
  const Look look = TRY(look_at(call, pair, pair.aligned ? "ab" : pair.a ? "a" : "b"));
  const Cut cut = TRY(Cut::parse(call.query.text("at"), *look.shape));
  const std::string_view as = call.query.text("as", "f32");
  if (as != "f32" && as != "f64" && as != "raw") return Error("as: not f32, f64 or raw");
  const uint64_t height = cut.y ? (*look.shape)[*cut.y] : 1;
  const uint64_t width = cut.x ? (*look.shape)[*cut.x] : 1;
  const Range rows = TRY(Range::parse(cut.y ? call.query.text("y") : "", height).in("y"));
  const Range columns = TRY(Range::parse(cut.x ? call.query.text("x") : "", width).in("x"));
  // Neither is above kElementsMax, 2^40; so their product may not fit, but its parts do.
  if (columns.size() > 0 && rows.size() > kSliceElementsMax / columns.size() / look.planes.size())
    return Error("more than {} elements; ask for fewer with y and x", kSliceElementsMax);

  std::vector<const View*> sides;
  std::vector<View> cuts(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (look.sides[i]) cuts[i] = narrowed_to(plane_of(*look.sides[i], cut), rows, columns);
    sides.push_back(look.sides[i] ? &cuts[i] : nullptr);
  }
  std::string body;
  std::vector<std::string> dtypes, names, offsets;
  for (const char plane : look.planes) {
    if (plane == 'd' && as == "raw") return Error("as: d has no raw form");
    const PlaneReader reader = TRY(PlaneReader::open(plane, sides[0], sides[1]));
    names.emplace_back(1, plane);
    dtypes.emplace_back(as == "raw" ? tensordiff::name_of(reader.reader().view().dtype) : as);
    offsets.push_back(std::to_string(body.size()));
    TRY(append_plane(reader, rows.size() * columns.size(), as, body));
    body.resize((body.size() + 7) / 8 * 8);
  }
  Response response = binary(std::move(body), pair, call.request);
  response.headers.push_back(
      {"X-Shape", fmt::format("{},{},{}", look.planes.size(), rows.size(), columns.size())});
  response.headers.push_back({"X-Dtype", as == "raw" ? joined(dtypes) : std::string(as)});
  response.headers.push_back({"X-Planes", joined(names)});
  response.headers.push_back({"X-Offsets", joined(offsets)});
  return response;
}

Reply get_element(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  const OpenPair& pair = *target.pair;
  const View* a = pair.side('a', !pair.aligned);
  const View* b = pair.side('b', !pair.aligned);
  const View& view = a ? *a : *b;
  std::optional<uint64_t> flat = parse_digits(call.query.text("flat"));
  if (!flat) {
    const Cut cut = TRY(Cut::parse(call.query.text("at"), view.shape));
    if (cut.x || cut.y) return Error("at: an index on each axis");
    const Strides strides = contiguous_strides(view.shape);
    flat = 0;
    for (std::size_t axis = 0; axis < cut.index.size(); ++axis)
      *flat += cut.index[axis] * static_cast<uint64_t>(strides[axis]);
  }
  if (*flat >= view.elements()) return Error("flat: there are {} elements", view.elements());
  JsonWriter json;
  json.begin_object().member("at", index_at(view.shape, *flat));
  json.member("flat", std::to_string(*flat)).key("a");
  // Without a common layout an index means a place of a, or of b where there is no a.
  a ? write_value(json, *a, *flat) : static_cast<void>(json.null());
  json.key("b");
  b && (pair.aligned || !a) ? write_value(json, *b, *flat) : static_cast<void>(json.null());
  if (pair.aligned) {
    write_distance(json, pair, *flat);
  } else {
    for (const char* key : {"diff", "rel", "ulp", "tolerance", "ratio"}) json.key(key).null();
  }
  return json_response(json.end_object().take());
}

Reply get_profile(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  const OpenPair& pair = *target.pair;
  const Look look = TRY(look_at(call, pair, pair.aligned ? "abd" : pair.a ? "a" : "b"));
  const Cut cut = TRY(Cut::parse(call.query.text("at"), *look.shape));
  if (!cut.x || cut.y) return Error("at: needs one axis that is '*'");
  const uint64_t length = (*look.shape)[*cut.x];
  const uint64_t points = std::min(length, TRY(call.query.count("points", 2048, kPointsMax)));
  std::string body;
  for (const char plane : look.planes) {
    View lines[2];
    for (std::size_t i = 0; i < 2; ++i)
      if (look.sides[i]) lines[i] = plane_of(*look.sides[i], cut);
    const PlaneReader reader = TRY(PlaneReader::open(plane, &lines[0], &lines[1]));
    std::vector<double> least(points, kNan), most(points, kNan), values;
    for (uint64_t first = 0; first < length && !called_off(); first += kBlock) {
      values.resize(std::min<uint64_t>(kBlock, length - first));
      reader.read(first, values.size(), values.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) continue;
        // points is at most 2^14 and first + i below 2^40: no overflow.
        const std::size_t bin = (first + i) * points / length;
        least[bin] = std::fmin(least[bin], values[i]);
        most[bin] = std::fmax(most[bin], values[i]);
      }
    }
    if (!reader.intact()) return problem(422, kCutShort);
    append_numbers<float>(least, body);
    append_numbers<float>(most, body);
  }
  Response response = binary(std::move(body), pair, call.request);
  response.headers.push_back({"X-Shape", fmt::format("{},2,{}", look.planes.size(), points)});
  response.headers.push_back({"X-Dtype", "f32"});
  return response;
}

}  // namespace tensordiff::serve
