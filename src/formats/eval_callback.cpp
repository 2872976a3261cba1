// The text of llama.cpp's eval callback (llama-eval-callback, llama-debug): what the tensors of a
// graph hold, as far as that is printed.
//
//   common_debug_cb_eval:  attn_norm-0 = (f32)  MUL(norm-0{64, 5, 1, 1}, w{…}}) = {64, 5, 1, 1}
//       [
//           [
//               [      0.1234,       0.5678,       1.2345,    ...,      -0.1200, …  ],
//           ],
//       ]
//       sum = 1.234567
//
// Older versions say ggml_debug. Sizes stand fastest first. Of an axis of more than six, the first
// and the last three are printed; the elements between them are NaN here and take no memory, and
// dumps/excerpt.h leaves them out of a comparison. Four decimals are about what f16 tells of values
// near 1, so that is their type: what printing loses is then no difference. A name may come several
// times: "Qcur-0@1" is the second. Sums are of elements that are not here, and are not read.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/checked_math.h"
#include "base/text.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLooked = 256 << 10;  // What a model's loader prints stands before.
constexpr uint64_t kShown = 6;              // Of an axis, at most.
constexpr std::size_t kAxes = 4;
constexpr double kHalfMax = 65504;
constexpr std::string_view kMarks[] = {"common_debug_cb_eval:", "ggml_debug:"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// The text behind the mark of a line that announces a tensor; nothing where it is none.
std::optional<std::string_view> announced(std::string_view line) {
  for (const std::string_view mark : kMarks) {
    const std::size_t at = line.find(mark);
    if (at != std::string_view::npos && line.find(" = (", at) != std::string_view::npos)
      return line.substr(at + mark.size());
  }
  return std::nullopt;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool recognises(const Bytes& file) {
  std::string_view text = as_text(file.view).substr(0, kLooked);
  constexpr std::size_t kHead = 64;
  const auto is_control = [](char c) {
    return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t';
  };
  if (std::ranges::any_of(text.substr(0, kHead), is_control)) return false;
  while (!text.empty())
    if (announced(take_line(text))) return true;
  return false;
}

struct Announced {
  std::string name;
  Shape shape;  // Slowest axis first, without those of size 1 at the front.
};

Result<Announced> read_head(std::string_view text) {
  Announced found;
  const std::size_t equals = text.find(" = (");
  found.name = trimmed(text.substr(0, equals));
  const std::size_t open = text.rfind('{'), close = text.rfind('}');
  if (found.name.empty() || open == std::string_view::npos || close < open)
    return Error("no sizes in '{}'", printable(text.substr(0, 80)));
  for (const std::string_view size : split(text.substr(open + 1, close - open - 1), ',')) {
    const std::string_view digits = trimmed(size);
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number == 0)
      return Error("'{}' is not a size", printable(digits));
    found.shape.insert(found.shape.begin(), number);
  }
  if (found.shape.size() != kAxes) return Error("{} sizes instead of 4", found.shape.size());
  if (!element_count(found.shape)) return Error("sizes that no tensor has");
  while (found.shape.size() > 1 && found.shape[0] == 1) found.shape.erase(found.shape.begin());
  return found;
}

// The numbers of one row: "[  0.1234,  0.5678,   ...,  1.2  ],".
Result<void> read_row(std::string_view line, std::vector<double>& values) {
  line = line.substr(line.find('[') + 1);
  line = line.substr(0, line.find(']'));
  for (std::string_view word : split(line, ',')) {
    word = trimmed(word);
    // "   ..., 0.5" has its dots before a comma; versions without one have them before a number.
    while (word.starts_with("...")) word = trimmed(word.substr(3));
    if (word.empty()) continue;
    double value = 0;
    if (word == "nan" || word == "-nan") {
      value = NAN;
    } else if (word == "inf" || word == "-inf") {
      value = word[0] == '-' ? -INFINITY : INFINITY;
    } else {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || end != word.data() + word.size())
        return Error("'{}' is not a number", printable(word.substr(0, 40)));
    }
    values.push_back(value);
  }
  return {};
}

// A stretch of an axis, and where it starts among what is printed; nothing of it may be.
struct Stretch {
  uint64_t first = 0, size = 0;
  std::optional<uint64_t> printed = std::nullopt;
};

std::vector<Stretch> stretches_of(uint64_t size) {
  constexpr uint64_t kHalf = kShown / 2;
  if (size <= kShown) return {{0, size, 0}};
  return {{0, kHalf, 0}, {kHalf, size - kShown}, {size - kHalf, kHalf, kHalf}};
}

// What is printed, at its place in a tensor of this shape; all else is NaN.
View spread(const View& printed, const Shape& shape) {
  const double nan = NAN;
  std::string bytes(item_bytes(printed.dtype), '\0');
  encode(printed.dtype, &nan, 1, reinterpret_cast<std::byte*>(bytes.data()));
  const ByteSource nothing(bytes_of(std::move(bytes)));
  const Strides& strides = printed.parts[0].strides;
  std::vector<Part> boxes = {Part{{}, {}, {}, 0, printed.parts[0].source}};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<Part> longer;
    for (const Part& box : boxes)
      for (const Stretch& stretch : stretches_of(shape[axis])) {
        Part part = box;
        part.origin.push_back(stretch.first);
        part.shape.push_back(stretch.size);
        part.strides.push_back(strides[axis]);
        part.offset += stretch.printed.value_or(0) * static_cast<uint64_t>(strides[axis]);
        if (!stretch.printed) part.source = nothing;
        longer.push_back(std::move(part));
      }
    boxes = std::move(longer);
  }
  for (Part& box : boxes)
    if (box.source.same_as(nothing)) {
      box.offset = 0;
      std::ranges::fill(box.strides, 0);
    }
  return {printed.dtype, false, shape, std::move(boxes)};
}

class Log {
 public:
  Log(const Input& input, std::string_view text)
      : input_(input), text_(text), room_(input.limits.dense_bytes_max / sizeof(float)) {}

  Result<Catalog> read() {
    while (!text_.empty()) {
      const std::string_view line = take_line(text_);
      const std::optional<std::string_view> head = announced(line);
      if (!head) continue;
      Announced tensor = TRY(read_head(*head));
      TRY(add(tensor).in(fmt::format("'{}'", printable(tensor.name))));
    }
    if (catalog_.tensors.empty()) return Error("no tensor is printed in it");
    return std::move(catalog_);
  }

 private:
  // All up to the sum. Quantized tensors are announced and not printed.
  Result<void> add(const Announced& head) {
    std::vector<double> values;
    bool ended = false;
    while (!text_.empty() && !ended) {
      std::string_view rest = text_;
      const std::string_view line = take_line(rest);
      if (announced(line)) break;
      text_ = rest;
      const std::string_view bare = trimmed(line);
      ended = bare.starts_with("sum = ");
      const bool row = bare.starts_with('[') && bare.size() > 1;
      if (row) TRY(read_row(bare, values));
    }
    if (values.empty() && !ended) return {};
    if (!ended) return Error("it ends before its sum");
    return keep(head, values);
  }

  Result<void> keep(const Announced& head, const std::vector<double>& values) {
    if (catalog_.tensors.size() >= input_.limits.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} tensors", input_.limits.tensors_max));
    Shape printed = head.shape;
    uint64_t count = 1;
    for (uint64_t& size : printed) {
      size = std::min(size, kShown);
      count *= size;  // Four factors of six at most.
    }
    if (values.size() != count)
      return Error("{} numbers are printed, but its sizes give {}", values.size(), count);
    const bool narrow = std::ranges::all_of(
        values, [](double value) { return !std::isfinite(value) || std::abs(value) < kHalfMax; });
    const DType dtype = narrow ? DType::f16 : DType::f32;
    std::string bytes(values.size() * item_bytes(dtype), '\0');
    encode(dtype, values.data(), values.size(), reinterpret_cast<std::byte*>(bytes.data()));
    const std::size_t before = seen_[head.name]++;
    Tensor tensor;
    tensor.name = before == 0 ? head.name : fmt::format("{}@{}", head.name, before);
    tensor.view = TRY(contiguous_view(dtype, std::move(printed), ByteSource(bytes_of(bytes))));
    // Whoever reads a tensor reads all of it, so a line of text must not stand for any number of
    // elements: past the limit, a tensor has what is printed of it only.
    const uint64_t elements = element_count(head.shape).value_or(UINT64_MAX);
    if (head.shape != tensor.view.shape && elements <= room_) {
      room_ -= elements;
      tensor.view = spread(tensor.view, head.shape);
    }
    catalog_.tensors.push_back(std::move(tensor));
    return {};
  }

  const Input& input_;
  std::string_view text_;
  std::map<std::string, std::size_t> seen_;
  uint64_t room_;  // How many elements may stand in all tensors together.
  Catalog catalog_;
};

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!recognises(file)) return Error("no tensor is announced near its start");
  Catalog catalog = TRY(Log(input, as_text(file.view)).read());
  catalog.problems.push_back(
      {"", "a printed log: of long axes it has the first and the last three elements",
       Severity::note});
  make_names_unique(catalog);
  return catalog;
}

}  // namespace

constinit const Format formats::eval_callback = {
    .name = "eval-callback",
    .summary = "what llama.cpp's eval callback prints of its tensors",
    .extensions = ".log .txt",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
