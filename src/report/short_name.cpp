#include "report/short_name.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "report/style.h"

namespace tensordiff {
namespace {

constexpr std::string_view kMark = "▶ ";  // Of the first divergence.
constexpr std::string_view kArrow = " → ";
constexpr std::size_t kArrowColumns = 3;

// A name in words, each of which is shown or not. What is left out leaves one "…".
class Words {
 public:
  explicit Words(std::string_view name) {
    for (std::size_t start = 0; start <= name.size();) {
      const std::size_t end = std::min(name.find_first_of("./", start), name.size());
      words_.push_back({name.substr(start, end - start), end < name.size() ? name[end] : '\0'});
      start = end + 1;
    }
    const std::size_t last = words_.size() - 1;
    words_[last].shown = true;
    if (is_parameter() && last > 0) words_[last - 1].shown = true;
    for (Word& word : words_) word.shown |= is_number(word.text);
  }

  // "weight" says too little alone.
  bool is_parameter() const {
    constexpr std::string_view kParameters[] = {"weight", "bias", "kernel", "scale"};
    return std::ranges::find(kParameters, words_.back().text) != std::end(kParameters);
  }
  std::string_view last() const { return words_.back().text; }
  void hide_last() { words_.back().shown = words_.size() == 1; }
  std::vector<std::string_view> numbers() const {
    std::vector<std::string_view> found;
    for (std::size_t i = 0; i + 1 < words_.size(); ++i)
      if (is_number(words_[i].text)) found.push_back(words_[i].text);
    return found;
  }
  void hide_numbers() {
    for (std::size_t i = 0; i + 1 < words_.size(); ++i)
      if (is_number(words_[i].text)) words_[i].shown = false;
  }

  std::string text() const {
    std::string out;
    bool left_out = false;
    for (const Word& word : words_) {
      if (!word.shown) {
        left_out = true;
        continue;
      }
      if (left_out) out += "…";
      left_out = false;
      out += word.text;
      if (word.end) out += word.end;
    }
    // What is left out at the end goes without a mark: it stands elsewhere.
    while (left_out && !out.empty() && (out.back() == '.' || out.back() == '/')) out.pop_back();
    return out;
  }

  // As many words more as fit: the one before the first number, then from the last one backwards.
  std::string filled(std::size_t width) {
    const auto number =
        std::ranges::find_if(words_, [](const Word& word) { return is_number(word.text); });
    if (number != words_.end() && number != words_.begin() && number->shown)
      show_if_fits(*(number - 1), width);
    for (auto word = words_.rbegin(); word != words_.rend(); ++word) show_if_fits(*word, width);
    return text();
  }

 private:
  struct Word {
    std::string_view text;
    char end = '\0';  // What separates it from the next one.
    bool shown = false;
  };

  // Also "layers_17", as flax writes it.
  static bool is_number(std::string_view word) {
    const std::size_t mark = word.rfind('_');
    return all_digits(mark == std::string_view::npos ? word : word.substr(mark + 1));
  }

  void show_if_fits(Word& word, std::size_t width) {
    if (word.shown) return;
    word.shown = true;
    word.shown = columns(text()) <= width;
  }

  std::vector<Word> words_;
};

// Two names in as few words as tell them: what both have is written once.
struct Both {
  Words a, b;
  bool starts_alike = false;  // Up to the first mark: "1" of "1_query".

  explicit Both(std::string_view name, std::size_t arrow)
      : a(name.substr(0, arrow)), b(name.substr(arrow + kArrow.size())) {
    const auto start = [](std::string_view each) {
      return each.substr(0, each.find_first_of("._/"));
    };
    starts_alike = start(name) == start(name.substr(arrow + kArrow.size()));
    if (a.numbers() == b.numbers()) b.hide_numbers();
    if (a.is_parameter() && a.last() == b.last()) a.hide_last();
  }
};

// The last columns of a text, behind a "…".
std::string ending(const std::string& text, std::size_t width) {
  if (columns(text) <= width) return text;
  std::size_t start = text.size();
  for (std::size_t left = width; left > 1; --left) do
      --start;
    while ((static_cast<unsigned char>(text[start]) & 0xc0) == 0x80);
  return "…" + text.substr(start);
}

std::string shorten_pair(std::string_view name, std::size_t arrow, std::size_t width) {
  Both both(name, arrow);
  const std::size_t least_a = columns(both.a.text()), least_b = columns(both.b.text());
  if (width <= 5 * kArrowColumns) return shorten(name, width);
  const std::size_t room = width - kArrowColumns;
  if (least_a + least_b > room) {
    // A's name says which step it is; B keeps its end, and its start where that is another.
    constexpr std::size_t kEnd = 8;
    const std::size_t room_a = std::max(room / 2, std::min(least_a, room - kEnd));
    const std::string a = shorten(both.a.text(), room_a);
    const std::string b = both.b.text();
    const std::size_t room_b = room - columns(a);
    return a + std::string(kArrow) + (both.starts_alike ? ending(b, room_b) : shorten(b, room_b));
  }
  const std::string a = both.a.filled(std::clamp(room / 2, least_a, room - least_b));
  return a + std::string(kArrow) + both.b.filled(room - columns(a));
}

}  // namespace

std::string shorten_name(std::string_view name, std::size_t width) {
  if (columns(name) <= width) return std::string(name);
  // The mark of the first divergence is never cut.
  if (name.starts_with(kMark) && width > 2)
    return std::string(kMark) + shorten_name(name.substr(kMark.size()), width - 2);
  if (const std::size_t arrow = name.find(kArrow); arrow != std::string_view::npos)
    return shorten_pair(name, arrow, width);
  Words words(name);
  return columns(words.text()) <= width ? words.filled(width) : shorten(name, width);
}

std::size_t least_columns(std::string_view name) {
  if (name.starts_with(kMark)) return 2 + least_columns(name.substr(kMark.size()));
  std::size_t least = columns(Words(name).text());
  if (const std::size_t arrow = name.find(kArrow); arrow != std::string_view::npos) {
    const Both both(name, arrow);
    least = columns(both.a.text()) + kArrowColumns + columns(both.b.text());
  }
  return std::min(least, columns(name));
}

}  // namespace tensordiff
