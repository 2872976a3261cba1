#include "report/conversion_python.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/text.h"
#include "convert/candidates.h"
#include "convert/function.h"
#include "naming/numbered_name.h"
#include "report/python_helpers.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

std::string python_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text, 4096)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string numpy_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "float64";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::boolean:
      return "bool";
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
      return fmt::format("int{}", info(dtype).bits);
    case DType::u64:
    case DType::u32:
    case DType::u16:
    case DType::u8:
      return fmt::format("uint{}", info(dtype).bits);
    default:
      return "float32";
  }
}

bool is_numpy(DType dtype) { return dtype == DType::f32 || numpy_name(dtype) != "float32"; }

std::string tuple_of(const std::vector<uint64_t>& values) {
  return fmt::format("({}{})", fmt::join(values, ", "), values.size() == 1 ? "," : "");
}

// One step as Python, on the array of this name.
std::string step_text(const Step& step, std::string_view x) {
  const std::vector<uint64_t>& of = step.argument;
  const auto rest = [&](std::size_t first) {
    return std::vector<uint64_t>(of.begin() + static_cast<ptrdiff_t>(first), of.end());
  };
  switch (step.op) {
    case Op::squeeze:
      return fmt::format("{}.squeeze({})", x, of[0]);
    case Op::permute:
      return fmt::format("{}.transpose({})", x, fmt::join(of, ", "));
    case Op::split:
      return fmt::format("split({}, {})", x, fmt::join(of, ", "));
    case Op::truncate:
      return fmt::format("part({}, {}, 0, {})", x, of[0], of[1]);
    case Op::select:
      return fmt::format("part({}, {})", x, fmt::join(of, ", "));
    case Op::flatten:
      return fmt::format("{}.reshape(-1)", x);
    case Op::replica:
      return fmt::format("{}[0]", x);
    case Op::sum:
      return fmt::format("sum({})", x);
    case Op::concat:
      return fmt::format("np.concatenate({}{}, {})", x,
                         of[2] > 1 ? fmt::format("[::{}]", of[2]) : "", of[0]);
    case Op::concat_parts:
      return fmt::format("join_parts({}, {}, {})", x, of[0], tuple_of(rest(2)));
  }
  return std::string(x);
}

bool joins_ranks(const Step& step) { return step.op >= Op::replica; }

// What the parts of a merge are called in a loop, in the order of MergedFrom::names.
std::span<const std::string_view> part_words(MergeKind kind) {
  static constexpr std::string_view kLength[] = {"length"};
  static constexpr std::string_view kUpdate[] = {"down", "up"};
  static constexpr std::string_view kNorm[] = {"variance", "mean", "gamma", "beta", "bias"};
  switch (kind) {
    case MergeKind::none:
      return {};
    case MergeKind::weight_norm:
      return kLength;
    case MergeKind::lora:
      return kUpdate;
    case MergeKind::batch_norm:
      return kNorm;
  }
  return {};
}

std::string function_text(Function function) {
  switch (function) {
    case Function::none:
      return "";
    case Function::plus_one:
      return "value = value + 1";
    case Function::minus_one:
      return "value = value - 1";
    case Function::negated:
      return "value = -value";
    case Function::negative_exp:
      return "value = -np.exp(value.astype(np.float64))";
    case Function::log_negated:
      return "value = np.log(-value.astype(np.float64))";
  }
  return "";
}

// A merged weight as Python, with the names of its parts as variables.
std::string merged_text(const MergedFrom& from, MergeKind kind) {
  const auto part = [&](std::size_t index) {
    return from.names[index].empty() ? std::string("None")
                                     : fmt::format("a[{}]", part_words(kind)[index]);
  };
  switch (kind) {
    case MergeKind::none:
      return "a[x]";
    case MergeKind::weight_norm:
      return fmt::format("weight_norm(a[x], {}, axis={})", part(0), from.axis);
    case MergeKind::lora:
      return fmt::format("lora(a[x], {}, {}, scale={}{})", part(0), part(1), from.number,
                         from.turned ? ", turned=True" : "");
    case MergeKind::batch_norm:
      if (from.is_bias)
        return fmt::format("folded_bias({}, {}, {}, {}, {}, epsilon={})", part(0), part(1), part(2),
                           part(3), part(4), from.number);
      return fmt::format("folded(a[x], {}, {}, axis={}, epsilon={})", part(0), part(2), from.axis,
                         from.number);
  }
  return "a[x]";
}

// Without the label of a part: "qkv.weight[q]".
std::string stored_name(const std::string& name) {
  return name.ends_with(']') ? name.substr(0, name.rfind('[')) : name;
}

// What is done in the loop for one pair, one line each.
std::vector<std::string> body_of(const PairRow& row, const Form& form, const MergedFrom* from) {
  std::vector<std::string> lines;
  if (!row.a.made_from.empty() || !is_numpy(row.a.dtype))
    lines.push_back(
        fmt::format("# To do: a[x] is stored as {}; decode it first.", name_of(row.a.dtype)));
  if (form.merge.kind != MergeKind::none && form.merge.side == 'b')
    lines.push_back(
        fmt::format("# To do: {}; A does not tell what its parts are.", text_of(form.merge)));
  const auto of_side = [&](char side) {
    std::vector<Step> steps;
    std::ranges::copy_if(row.steps, std::back_inserter(steps),
                         [&](const Step& step) { return step.side == side; });
    return steps;
  };
  const std::vector<Step> of_a = of_side('a'), of_b = of_side('b');
  const auto last = std::ranges::find_if(of_a.rbegin(), of_a.rend(), joins_ranks).base();
  std::string value = last == of_a.begin() ? "a[x]" : "ranks(a, x)";
  if (from) {
    lines.push_back("value = " + merged_text(*from, form.merge.kind));
    value = "value";
  }
  for (auto step = of_a.begin(); step != of_a.end(); ++step)
    // Parts are cut out of each rank before the ranks are put together.
    value = step < last && !joins_ranks(*step)
                ? fmt::format("[{} for each in {}]", step_text(*step, "each"), value)
                : step_text(*step, value);
  if (value != "value") lines.push_back("value = " + value);
  const bool grouped = form.rows.order == RowOrder::by_head && form.rows.queries > 1;
  const std::string how = fmt::format("{}, {}", form.rows.heads, form.rows.queries);
  if (grouped && form.rows.side == 'a')
    lines.push_back(fmt::format("value = regroup(value, {}, {})", form.rows.axis, how));
  if (reorders_whole(form))
    lines.push_back(fmt::format("value = reorder(value, {}, ({}))", form.rows.axis,
                                fmt::join(form.parts, ", ")));
  if (const std::string function = function_text(form.function); !function.empty())
    lines.push_back(function);
  if (!row.b.made_from.empty() || !is_numpy(row.b.dtype))
    lines.push_back(fmt::format("# To do: B stores this as {}.", name_of(row.b.dtype)));
  if (std::ranges::any_of(of_b, joins_ranks)) {
    lines.emplace_back("b[y] = value  # To do: B has it in pieces, on several ranks.");
    return lines;
  }
  const std::string place =
      fmt::format("out(b, y, {}, \"{}\")", tuple_of(row.b.shape), numpy_name(row.b.dtype));
  std::string target = place;
  for (const Step& step : of_b) target = step_text(step, target);
  if (grouped && form.rows.side == 'b') {
    lines.push_back(fmt::format("place = {}", target));
    lines.push_back(
        fmt::format("rows = regroup(np.arange(place.shape[{}]), 0, {})", form.rows.axis, how));
    lines.push_back(fmt::format("place[(slice(None),) * {} + (rows,)] = value", form.rows.axis));
    return lines;
  }
  lines.push_back(target + "[...] = value");
  return lines;
}

std::string numbers_text(const std::vector<std::vector<std::string>>& numbers) {
  std::vector<std::string> tuples;
  for (const std::vector<std::string>& each : numbers)
    tuples.push_back(fmt::format("[{}]", fmt::join(each, ", ")));
  return fmt::format("[{}]", fmt::join(tuples, ", "));
}

// Numbers as they stand in names; leading zeros are part of a name.
std::vector<std::string> numbers_of(const std::string& name) {
  std::vector<std::string> numbers;
  for (const std::string& digits : numbered_name(name).numbers) {
    const bool plain = digits == "0" || !digits.starts_with('0');
    numbers.push_back(plain ? digits : python_text(digits));
  }
  return numbers;
}

// Pairs of one kind that are made by the same lines.
struct Loop {
  std::vector<std::string> body;
  std::string a, b;  // Patterns.
  std::vector<std::vector<std::string>> numbers_a = {}, numbers_b = {};
  std::vector<std::string> words = {};  // What the names of a merge are called: "x", "y" …
  std::vector<std::vector<std::string>> names = {};  // And they themselves, for each pair.
};

std::string loop_text(const Loop& loop) {
  std::string out;
  if (!loop.names.empty()) {
    out += fmt::format("    for {} in [\n", fmt::join(loop.words, ", "));
    for (const std::vector<std::string>& names : loop.names)
      out += fmt::format("        ({}),\n", fmt::join(names, ", "));
    out += "    ]:\n";
  } else if (loop.numbers_a.size() == 1) {
    // The numbers of the only pair stand in its names.
    out += fmt::format("    for x, y in names({}, {}, {}{}):\n", python_text(loop.a),
                       python_text(loop.b), numbers_text(loop.numbers_a),
                       loop.numbers_a == loop.numbers_b ? "" : ", " + numbers_text(loop.numbers_b));
  } else {
    out += fmt::format("    for x, y in names({}, {},\n                      {}{}):\n",
                       python_text(loop.a), python_text(loop.b), numbers_text(loop.numbers_a),
                       loop.numbers_a == loop.numbers_b
                           ? ""
                           : ",\n                      " + numbers_text(loop.numbers_b));
  }
  for (const std::string& line : loop.body) out += "        " + line + "\n";
  return out;
}

// The names of a pair and of the parts that its lines use, with what the loop calls them.
std::vector<std::string> add_names(const std::string& a, const std::string& b,
                                   const MergedFrom& from, MergeKind kind, Loop& loop) {
  loop.words = {"x", "y"};
  std::vector<std::string> names = {python_text(a), python_text(b)};
  for (std::size_t i = 0; i < from.names.size(); ++i) {
    const std::string_view word = part_words(kind)[i];
    const bool is_used = std::ranges::any_of(loop.body, [&](const std::string& line) {
      return line.find(fmt::format("a[{}]", word)) != std::string::npos;
    });
    if (!is_used) continue;
    loop.words.emplace_back(word);
    names.push_back(python_text(from.names[i]));
  }
  return names;
}

std::string rule_text(const Report& report, const MergedPairs& merged, const ConversionRow& rule) {
  std::vector<Loop> loops;
  std::vector<std::size_t> pairs = rule.pairs;
  pairs.insert(pairs.end(), rule.exceptions.begin(), rule.exceptions.end());
  for (const std::size_t pair : pairs) {
    const PairRow& row = report.pairs[pair];
    if (row.comparison.status >= Status::incomparable) continue;
    const std::string name_a = stored_name(row.a.name), name_b = stored_name(row.b.name);
    const auto merge = merged.find(pair);
    const MergedFrom* from =
        rule.form.merge.side == 'a' && merge != merged.end() ? &merge->second : nullptr;
    Loop made{body_of(row, rule.form, from), numbered_name(name_a).pattern,
              numbered_name(name_b).pattern};
    std::vector<std::string> names;
    if (from) names = add_names(name_a, name_b, *from, rule.form.merge.kind, made);
    auto loop = std::ranges::find_if(loops, [&](const Loop& each) {
      return each.body == made.body && each.a == made.a && each.b == made.b &&
             each.words == made.words;
    });
    if (loop == loops.end()) loop = loops.insert(loops.end(), std::move(made));
    if (from) loop->names.push_back(std::move(names));
    loop->numbers_a.push_back(numbers_of(name_a));
    loop->numbers_b.push_back(numbers_of(name_b));
  }
  std::string out = fmt::format("    # {}: {}\n", rule.how, counted(pairs.size(), "tensor"));
  for (const std::size_t pair : rule.exceptions)
    out += fmt::format("    # B does not follow: {}\n", printable(report.pairs[pair].b.name));
  for (const Loop& loop : loops) out += loop_text(loop);
  return loops.empty() ? "" : out + "\n";
}

}  // namespace

std::string conversion_python(const Report& report, const MergedPairs& merged) {
  std::string out = fmt::format(
      "\"\"\"Makes B's tensors from A's, as tensordiff found them converted.\n\n"
      "A: {}\nB: {}\n\nconvert() takes and gives a dict of numpy arrays by name.\n\"\"\"\n\n",
      printable(report.a.path), printable(report.b.path));
  out += kPythonHelpers;
  out += "def convert(a):\n    b = {}\n\n";
  for (const ConversionRow& rule : report.conversion) out += rule_text(report, merged, rule);
  for (const Report::Unpaired& only : report.only_a)
    out += fmt::format("    # Only in A: {}{}\n", printable(only.id.name),
                       only.merged ? ", " + printable(only.why) : "");
  for (const Report::Unpaired& only : report.only_b)
    out += fmt::format("    # To do, only in B: {} {}\n", printable(only.id.name),
                       shape_text(only.id.shape));
  return out + "    return b\n";
}

}  // namespace tensordiff
