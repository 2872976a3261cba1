#include "serve/views.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "align/view.h"
#include "base/parallel.h"
#include "base/text.h"
#include "serve/applied.h"
#include "serve/query.h"

namespace tensordiff::serve {
namespace {

constexpr std::size_t kPairsHeld = 16;
// All pictures together; the rest of the memory is for comparing.
constexpr std::size_t kPictureBytesMax = 96 << 20;

std::size_t bytes_of_pictures(const Pictures& pictures) {
  std::size_t bytes = 0;
  for (const Picture& picture : pictures.levels) bytes += picture.cells.size() * sizeof(float);
  return bytes;
}

// What of the session's state opening a row needs.
struct Place {
  std::string version;
  std::size_t pair = SIZE_MAX;  // Of a pair; else
  std::string alone;            // the name of the tensor,
  bool of_b = false;            // and its side.
  std::string name_a;
  std::optional<Finding> finding;  // To be applied to A.
};

// The finding of a row with this number.
std::optional<Finding> finding_of(const SessionState& state, std::size_t row, std::size_t number) {
  for (const Finding& finding : state.results.report.findings)
    if (finding.pair == row && number-- == 0) return finding;
  return std::nullopt;
}

Place place_of(const SessionState& state, std::size_t id, OpenPair& open) {
  const Row row = state.row(id);
  Place place;
  Settings settings = state.settings;
  settings.name.clear();
  Hash hash;
  hash.add(state.files);
  hash.add(text_of(settings));
  hash.add(row.name_a());
  hash.add(row.name_b());
  place.version = hash.text();
  open.equal_nan = state.settings.equal_nan;
  if (!row.pair) {
    place.alone = row.alone->id.name;
    place.of_b = row.kind == Row::Kind::only_b;
    return place;
  }
  place.pair = id;
  place.name_a = row.name_a();
  open.comparison = row.pair->comparison;
  open.compared = !row.pending && row.pair->comparison.status < Status::incomparable;
  return place;
}

Result<void> hold(const View& view, OpenPair& open) {
  open.held.push_back(TRY(Reader::open(view)));
  return {};
}

Result<void> open_alone(const Pairing& pairing, const Place& place, OpenPair& open) {
  const Catalog& catalog = place.of_b ? pairing.b : pairing.a;
  const auto tensor = std::ranges::find(catalog.tensors, place.alone, &Tensor::name);
  if (tensor == catalog.tensors.end()) return Error("'{}' is gone", printable(place.alone));
  if (!tensor->fault.empty()) return Error("{}", tensor->fault);
  (place.of_b ? open.b : open.a) = tensor->view;
  return hold(tensor->view, open);
}

Result<void> open_both(const Pairing& pairing, const Place& place, const Settings& settings,
                       OpenPair& open) {
  const auto& pairs = pairing.matching.pairs;
  if (place.pair >= pairs.size()) return Error("the pairs have changed");
  const Pair& pair = pairs[place.pair];
  const Tensor& a = pairing.a.tensors[pair.a];
  const Tensor& b = pairing.b.tensors[pair.b];
  // The name of the row: a part of a fused tensor has one of its own.
  if (id_of(a, pair.section_a).name != place.name_a) return Error("the pairs have changed");
  if (a.fault.empty()) open.a = a.view;
  if (b.fault.empty()) open.b = b.view;
  if (open.a) TRY(hold(*open.a, open).in("A"));
  if (open.b) TRY(hold(*open.b, open).in("B"));
  if (!open.a || !open.b) return {};
  const tensordiff::Request request = TRY(request_for(settings));
  Result<AlignedPair> aligned = align_pair(pairing, place.pair, request);
  if (aligned.ok()) open.aligned = std::move(aligned).value();
  return {};
}

// A tensor of A as it is stored, or a part of a fused one as its own pair has it.
std::optional<View> view_in_a(const Pairing& pairing, std::string_view name,
                              const tensordiff::Request& request) {
  const auto tensor = std::ranges::find(pairing.a.tensors, name, &Tensor::name);
  if (tensor != pairing.a.tensors.end())
    return tensor->fault.empty() ? std::optional(tensor->view) : std::nullopt;
  const auto& pairs = pairing.matching.pairs;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].section_a) continue;
    if (id_of(pairing.a.tensors[pairs[i].a], pairs[i].section_a).name != name) continue;
    Result<AlignedPair> aligned = align_pair(pairing, i, request);
    return aligned.ok() ? std::optional(std::move(aligned).value().a) : std::nullopt;
  }
  return std::nullopt;
}

// T(A) instead of A.
Result<void> apply_finding(const Pairing& pairing, const Place& place, const Settings& settings,
                           OpenPair& open) {
  const tensordiff::Request request = TRY(request_for(settings));
  const auto named = [&](std::string_view name) { return view_in_a(pairing, name, request); };
  std::optional<View> view;
  if (place.finding && open.aligned && open.compared)
    view = applied(*place.finding, *open.aligned, named);
  if (!view) return Error("this finding names no change that can be applied to A");
  open.aligned->a = std::move(*view);
  open.applied = true;
  return hold(open.aligned->a, open);
}

}  // namespace

const View* OpenPair::side(char which, bool stored) const {
  if (aligned && !stored) return which == 'a' ? &aligned->a : &aligned->b;
  const std::optional<View>& view = which == 'a' ? a : b;
  return view ? &*view : nullptr;
}

Result<OpenPairPtr> PairCache::open(Sessions& sessions, const SessionPtr& session, std::size_t row,
                                    std::optional<std::size_t> finding) {
  auto open = std::make_shared<OpenPair>();
  Place place;
  Settings settings;
  std::shared_ptr<const Pairing> pairing;  // That of this very row: another run may come meanwhile.
  session->read([&](const SessionState& state) {
    if (row < state.row_count()) place = place_of(state, row, *open);
    if (finding) place.finding = finding_of(state, row, *finding);
    settings = state.settings;
    pairing = state.pairing;
  });
  if (finding) place.version += fmt::format("t{}", *finding);
  const std::string key = fmt::format("{} {} {} {}", session->id(), place.version, row,
                                      static_cast<int>(open->compared));
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(pairs_, key, &Entry::key);
    if (found != pairs_.end()) {
      pairs_.splice(pairs_.begin(), pairs_, found);
      return found->pair;
    }
  }
  if (!pairing) pairing = TRY(sessions.pairing(session));
  if (place.pair == SIZE_MAX)
    TRY(open_alone(*pairing, place, *open));
  else
    TRY(open_both(*pairing, place, settings, *open));
  if (finding) TRY(apply_finding(*pairing, place, settings, *open));
  open->version = place.version;
  const std::lock_guard lock(mutex_);
  pairs_.push_front({key, open});
  if (pairs_.size() > kPairsHeld) pairs_.pop_back();
  return OpenPairPtr(open);
}

bool PairCache::has_pictures(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::ranges::find(pictures_, key, [](const PicturesPtr& each) { return each->key; });
  return known != pictures_.end() && (*known)->made;
}

Result<PicturesPtr> PairCache::pictures(const std::string& key,
                                        const std::function<Result<std::vector<Picture>>()>& make) {
  PicturesPtr found;
  {
    const std::lock_guard lock(mutex_);
    const auto known =
        std::ranges::find(pictures_, key, [](const PicturesPtr& each) { return each->key; });
    if (known != pictures_.end()) pictures_.splice(pictures_.begin(), pictures_, known);
    if (known == pictures_.end()) {
      pictures_.push_front(std::make_shared<Pictures>());
      pictures_.front()->key = key;
    }
    found = pictures_.front();
  }
  // Whoever comes while they are made waits for them instead of making them too.
  const std::lock_guard making(found->mutex);
  if (found->made) return found;
  // What could not be made is not kept, however that came about.
  const std::shared_ptr<void> keep_made(nullptr, [this, found](void*) {
    const std::lock_guard lock(mutex_);
    if (!found->made) pictures_.remove(found);
  });
  std::vector<Picture> levels = TRY(make());
  if (called_off()) return Error("cancelled");
  found->levels = std::move(levels);
  found->made = true;
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (auto each = pictures_.begin(); each != pictures_.end();) {
    if (*each != found && !(*each)->made) {  // Somebody is making them.
      ++each;
      continue;
    }
    bytes += bytes_of_pictures(**each);
    each = bytes > kPictureBytesMax && *each != found ? pictures_.erase(each) : std::next(each);
  }
  return found;
}

Result<Cut> Cut::parse(std::string_view text, const Shape& shape) {
  Cut cut;
  const std::vector<std::string_view> words =
      text.empty() ? std::vector<std::string_view>() : split(text, ',');
  if (words.size() != shape.size())
    return Error("at: '{}' has {} words, the shape {} has {}", printable(text), words.size(),
                 shape_text(shape), shape.size());
  for (std::size_t axis = 0; axis < words.size(); ++axis) {
    const std::string_view word = words[axis];
    std::optional<std::size_t>& named = word == "y" ? cut.y : cut.x;
    if (word == "y" || word == "x" || word == "*") {
      if (named) return Error("at: '{}' twice", word);
      named = axis;
      cut.index.push_back(0);
      continue;
    }
    const std::optional<uint64_t> index = parse_digits(word);
    if (!index || *index >= shape[axis])
      return Error("at: '{}' is not an index of axis {} of {}", printable(word), axis,
                   shape_text(shape));
    cut.index.push_back(*index);
  }
  if (cut.y && !cut.x) std::swap(cut.x, cut.y);
  return cut;
}

Result<Range> Range::parse(std::string_view text, uint64_t size) {
  if (text.empty()) return Range{0, size};
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Error("'{}' is not first:end", printable(text));
  const std::string_view first = text.substr(0, colon);
  const std::string_view end = text.substr(colon + 1);
  const auto from = first.empty() ? std::optional<uint64_t>(0) : parse_digits(first);
  const auto to = end.empty() ? std::optional(size) : parse_digits(end);
  if (!from || !to || *from > *to) return Error("'{}' is not first:end", printable(text));
  return Range{std::min(*from, size), std::min(*to, size)};
}

View plane_of(View view, const Cut& cut) {
  std::vector<uint64_t> order;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (axis == cut.x || axis == cut.y) continue;
    view = narrowed(std::move(view), axis, cut.index[axis], 1);
    order.push_back(axis);
  }
  if (cut.y) order.push_back(*cut.y);
  if (cut.x) order.push_back(*cut.x);
  view = permuted(std::move(view), order);
  const std::size_t wanted = (cut.x ? 1 : 0) + (cut.y ? 1 : 0);
  while (view.shape.size() > wanted) view = squeezed(std::move(view), 0);
  // A line is a plane of one row, an element one of one row and column.
  while (view.shape.size() < 2) {
    view.shape.insert(view.shape.begin(), 1);
    for (Part& part : view.parts) {
      part.origin.insert(part.origin.begin(), 0);
      part.shape.insert(part.shape.begin(), 1);
      part.strides.insert(part.strides.begin(), 0);
    }
  }
  return view;
}

View narrowed_to(View plane, const Range& rows, const Range& columns) {
  plane = narrowed(std::move(plane), 0, rows.first, rows.size());
  return narrowed(std::move(plane), 1, columns.first, columns.size());
}

void read_values(const Reader& reader, uint64_t first, std::size_t count, double* out) {
  if (!is_complex(reader.view().dtype)) return reader.values(first, count, out);
  std::vector<double> parts(2 * count);
  reader.components(first, count, parts.data());
  for (std::size_t i = 0; i < count; ++i) out[i] = std::hypot(parts[2 * i], parts[2 * i + 1]);
}

}  // namespace tensordiff::serve
