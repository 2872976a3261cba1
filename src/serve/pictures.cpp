// Pictures of a plane of a pair: what there is of it, and one tile.
//
// Tiles near single elements are pooled from the elements under them. Coarser ones would touch too
// many; they are cut out of pictures of the whole plane, which are made once and kept. Until they
// are, whoever cannot wait gets a rough one, from a few elements of each cell.

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"
#include "serve/routes.h"
#include "tensor/sample.h"

namespace tensordiff::serve {
namespace {

constexpr uint64_t kTile = 256;
constexpr uint64_t kPooledDirectly = 8;  // A tile of 256 cells of 8 elements has 4 million.
constexpr std::size_t kDomainSample = 16384;

struct Plane {
  AlignedPair pair;  // Two axes.
  uint64_t rows = 0, columns = 0;
  std::string key;
  std::vector<Layer> layers;  // Those that can be told apart.
};

// A row without a partner is a pair of the one tensor with itself, of which one side is shown.
Result<Plane> plane_at(const Call& call, const OpenPair& open) {
  const bool stored = !open.aligned || call.query.text("layout") == "stored";
  const View* a = open.side('a', stored);
  const View* b = open.side('b', stored);
  const bool only_b = stored && call.query.text("side", a ? "a" : "b") == "b";
  if (only_b) a = b;
  if (!a) return Error("there is no tensor here that can be read");
  const bool both = !stored && b;
  if (!both) b = a;
  const Cut cut = TRY(Cut::parse(call.query.text("at"), a->shape));
  Plane plane;
  plane.pair = {plane_of(*a, cut), plane_of(*b, cut), {}};
  plane.rows = plane.pair.a.shape[0];
  plane.columns = plane.pair.a.shape[1];
  if (both)
    plane.layers = {Layer::a, Layer::b, Layer::distance};
  else
    plane.layers = {only_b ? Layer::b : Layer::a};
  plane.key = fmt::format("{} {} {} {}", open.version, call.query.text("at"), stored, only_b);
  return plane;
}

unsigned level_count(const Plane& plane) {
  const uint64_t side = std::max({plane.rows, plane.columns, uint64_t{1}});
  return static_cast<unsigned>(std::bit_width((side - 1) / kTile)) + 1;
}

struct Domain {
  std::optional<double> min, max, p1, p99;
};

void write_domain(JsonWriter& json, const Domain& domain) {
  json.begin_object().member("min", domain.min).member("max", domain.max);
  json.member("p1", domain.p1).member("p99", domain.p99).end_object();
}

void put_percentiles(std::vector<double> values, Domain& domain) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return;
  const auto at = [&](std::size_t rank) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::ranges::nth_element(values, place);
    return *place;
  };
  domain.p1 = at(values.size() / 100);
  domain.p99 = at(values.size() - 1 - values.size() / 100);
  // Of one tensor alone nothing else is known.
  if (!domain.min) domain.min = std::ranges::min(values);
  if (!domain.max) domain.max = std::ranges::max(values);
}

Result<void> write_domains(JsonWriter& json, const Plane& plane, const OpenPair& open) {
  const Reader a = TRY(Reader::open(plane.pair.a).in("A"));
  const Reader b = TRY(Reader::open(plane.pair.b).in("B"));
  std::vector<double> of_a, of_b, apart;
  for (const uint64_t position : sample_positions(plane.rows * plane.columns, kDomainSample)) {
    double va = 0, vb = 0;
    read_values(a, position, 1, &va);
    read_values(b, position, 1, &vb);
    of_a.push_back(va);
    of_b.push_back(vb);
    apart.push_back(std::abs(vb - va));
  }
  Domain domains[3];
  if (open.compared) {
    domains[0] = {open.comparison.a.min, open.comparison.a.max, {}, {}};
    domains[1] = {open.comparison.b.min, open.comparison.b.max, {}, {}};
    if (open.comparison.diff.max_abs) domains[2] = {0, open.comparison.diff.max_abs, {}, {}};
  }
  put_percentiles(std::move(of_a), domains[0]);
  put_percentiles(std::move(of_b), domains[1]);
  put_percentiles(std::move(apart), domains[2]);
  json.key("domain").begin_object().key("a");
  write_domain(json, domains[0]);
  json.key("b");
  write_domain(json, domains[1]);
  json.key("d");
  write_domain(json, domains[2]);
  json.end_object();
  return {};
}

struct Wanted {
  Layer layer = Layer::distance;
  uint64_t pool = 1;
  uint64_t row = 0, column = 0;  // Of the tile, in tiles.
  Pooling pooling = Pooling::most;
  bool rough = false;  // Is good enough for now.
};

Result<Wanted> wanted_tile(const Call& call, const Plane& plane) {
  Wanted wanted;
  const std::string name = call.parameter("plane");
  if (name != "a" && name != "b" && name != "d") return Error("a plane is a, b or d");
  wanted.layer = name == "a" ? Layer::a : name == "b" ? Layer::b : Layer::distance;
  const std::optional<uint64_t> level = parse_digits(call.parameter("level"));
  if (!level || *level >= level_count(plane))
    return Error("there are {} levels, counted from 0", level_count(plane));
  wanted.pool = uint64_t{1} << *level;
  const std::optional<uint64_t> row = parse_digits(call.parameter("ty"));
  const std::optional<uint64_t> column = parse_digits(call.parameter("tx"));
  const auto tiles = [&](uint64_t size) {
    return (size + kTile * wanted.pool - 1) / (kTile * wanted.pool);
  };
  if (!row || !column || *row >= tiles(plane.rows) || *column >= tiles(plane.columns))
    return Error("there are {} × {} tiles at this level", tiles(plane.rows), tiles(plane.columns));
  wanted.row = *row;
  wanted.column = *column;
  const std::string_view agg = call.query.text("agg", "most");
  if (agg != "most" && agg != "mean") return Error("agg: not most or mean");
  wanted.pooling = agg == "mean" ? Pooling::mean : Pooling::most;
  wanted.rough = call.query.text("rough") == "1";
  return wanted;
}

Slice slice_of(const Wanted& wanted) { return {0, 1, {0, 0}, wanted.layer, wanted.pooling}; }

struct Tile {
  std::size_t rows = 0, columns = 0;
  std::vector<float> cells;
  bool rough = false;
};

using Draw = Result<Picture>(const AlignedPair&, const Slice&, const Rectangle&, uint64_t);

Result<Tile> drawn_tile(const Plane& plane, const Wanted& wanted, Draw* draw) {
  const uint64_t side = kTile * wanted.pool;
  Rectangle area{wanted.row * side, wanted.column * side, 0, 0};
  area.rows = std::min(side, plane.rows - area.row);
  area.columns = std::min(side, plane.columns - area.column);
  Picture picture = TRY(draw(plane.pair, slice_of(wanted), area, wanted.pool));
  return Tile{picture.rows, picture.columns, std::move(picture.cells), draw == glance};
}

// Out of the picture of the whole plane.
Tile cut_tile(const Picture& picture, const Wanted& wanted) {
  const std::size_t row = wanted.row * kTile;
  const std::size_t column = wanted.column * kTile;
  Tile tile;
  tile.rows = std::min(kTile, picture.rows - row);
  tile.columns = std::min(kTile, picture.columns - column);
  for (std::size_t i = 0; i < tile.rows; ++i) {
    const auto line =
        picture.cells.begin() + static_cast<std::ptrdiff_t>((row + i) * picture.columns + column);
    tile.cells.insert(tile.cells.end(), line, line + static_cast<std::ptrdiff_t>(tile.columns));
  }
  return tile;
}

// All layers in one pass over the elements: whoever looks at one looks at the others too. Means are
// seldom asked for, and made for one layer alone.
Result<PicturesPtr> pictures_of(App& app, const Plane& plane, const Wanted& wanted) {
  const bool all =
      wanted.pooling == Pooling::most && std::ranges::count(plane.layers, wanted.layer);
  const std::vector<Layer> layers = all ? plane.layers : std::vector{wanted.layer};
  const std::string key = all ? plane.key
                              : fmt::format("{} {} {}", plane.key, static_cast<int>(wanted.layer),
                                            static_cast<int>(wanted.pooling));
  if (wanted.rough && !app.pairs.has_pictures(key)) return PicturesPtr();
  return app.pairs.pictures(key, [&]() -> Result<std::vector<Picture>> {
    std::vector<Picture> made = TRY(pyramid(plane.pair, slice_of(wanted), layers));
    std::erase_if(made, [](const Picture& picture) { return picture.pool <= kPooledDirectly; });
    return made;
  });
}

Result<Tile> make_tile(App& app, const Plane& plane, const Wanted& wanted) {
  if (wanted.pool <= kPooledDirectly) return drawn_tile(plane, wanted, pool);
  const PicturesPtr pictures = TRY(pictures_of(app, plane, wanted));
  if (!pictures) return drawn_tile(plane, wanted, glance);
  for (const Picture& picture : pictures->levels)
    if (picture.pool == wanted.pool && picture.layer == wanted.layer)
      return cut_tile(picture, wanted);
  // Between what is pooled directly and the finest picture of a very large plane.
  return drawn_tile(plane, wanted, wanted.rough ? glance : pool);
}

}  // namespace

Reply get_pyramid(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  const Plane plane = TRY(plane_at(call, *target.pair));
  JsonWriter json;
  json.begin_object().member("w", plane.columns).member("h", plane.rows).member("tile", kTile);
  json.member("levels", uint64_t{level_count(plane)});
  TRY(write_domains(json, plane, *target.pair));
  return json_response(json.member("v", target.pair->version).end_object().take());
}

Reply get_tile(const Call& call) {
  const Target target = open_row(call);
  if (target.failure) return *target.failure;
  const Plane plane = TRY(plane_at(call, *target.pair));
  const Wanted wanted = TRY(wanted_tile(call, plane));
  const Tile tile = TRY(make_tile(call.app, plane, wanted));
  Response response;
  response.type = "application/octet-stream";
  response.body.assign(reinterpret_cast<const char*>(tile.cells.data()),
                       tile.cells.size() * sizeof(float));
  const auto nans = std::ranges::count_if(tile.cells, [](float cell) { return std::isnan(cell); });
  response.headers = {{"X-Shape", fmt::format("{},{}", tile.rows, tile.columns)},
                      {"X-Dtype", "f32"},
                      {"X-Nan", std::to_string(nans)}};
  if (tile.rough) response.headers.push_back({"X-Rough", "1"});
  if (call.query.find("v") && !tile.rough)
    response.headers.push_back({"Cache-Control", "private, max-age=31536000, immutable"});
  return response;
}

}  // namespace tensordiff::serve
