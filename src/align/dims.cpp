#include "align/dims.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace tensordiff {
namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Reads one side of the arrow.
class SideParser {
 public:
  explicit SideParser(std::string_view text) : text_(text) {}

  Result<NamedAxes> parse() {
    while (skip_spaces(), !text_.empty()) {
      if (text_[0] == '(') {
        text_.remove_prefix(1);
        axes_.push_back(TRY(merged()));
      } else {
        std::vector<NamedAxis> single;
        single.push_back(TRY(axis()));
        axes_.push_back(std::move(single));
      }
    }
    return std::move(axes_);
  }

 private:
  void skip_spaces() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size()));
  }

  Result<std::vector<NamedAxis>> merged() {
    std::vector<NamedAxis> result;
    while (skip_spaces(), !text_.starts_with(')')) {
      if (text_.empty()) return Error("a bracket is not closed");
      if (text_[0] == '(') return Error("brackets within brackets");
      result.push_back(TRY(axis()));
    }
    text_.remove_prefix(1);
    if (result.empty()) return Error("empty brackets");
    return result;
  }

  Result<NamedAxis> axis() {
    const std::size_t size =
        static_cast<std::size_t>(std::ranges::find_if_not(text_, is_name) - text_.begin());
    if (size == 0) return Error("'{}' is not the name of an axis", printable(text_.substr(0, 1)));
    NamedAxis result{std::string(text_.substr(0, size))};
    text_.remove_prefix(size);
    if (all_digits(result.name) && result.name != "1")
      return Error("'{}': an axis has a name, or is 1", result.name);
    if (result.name != "1" && !names_.insert(result.name).second)
      return Error("axis {} is named twice", result.name);
    if (!text_.starts_with('[')) return result;
    const std::string_view mark = text_.substr(0, text_.find(']'));
    if (mark != "[tp")
      return Error("'{}' after axis {}: only [tp] is known", printable(mark), result.name);
    text_.remove_prefix(mark.size() + 1);
    if (std::exchange(sharded_, true)) return Error("two axes have [tp]");
    result.sharded = true;
    return result;
  }

  std::string_view text_;
  NamedAxes axes_;
  std::set<std::string> names_;
  bool sharded_ = false;
};

Result<NamedAxes> parse_side(std::string_view text) {
  NamedAxes axes = TRY(SideParser(text).parse());
  if (axes.empty()) return Error("no axes");
  return axes;
}

}  // namespace

Result<Dims> parse_dims(std::string_view text) {
  constexpr std::string_view kArrow = "->";
  const std::size_t arrow = text.find(kArrow);
  if (arrow == std::string_view::npos || text.find(kArrow, arrow + 2) != std::string_view::npos)
    return Error("'{}' is not of the form \"b s (h d) -> s h d\"", printable(text));
  Dims dims;
  dims.text = text;
  dims.a = TRY(parse_side(text.substr(0, arrow)).in("before the arrow"));
  dims.b = TRY(parse_side(text.substr(arrow + kArrow.size())).in("after the arrow"));
  return dims;
}

}  // namespace tensordiff
