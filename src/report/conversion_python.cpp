#include "report/conversion_python.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "convert/function.h"
#include "naming/numbered_name.h"
#include "report/wording.h"

namespace tensordiff {
namespace {

constexpr std::string_view kHelpers = R"(import numpy as np


def names(a, b, numbers, numbers_b=None):
    """Pairs of names; each '#' of a pattern is one of the numbers."""
    def fill(pattern, values):
        first, *rest = pattern.split("#")
        return first + "".join(f"{value}{text}" for value, text in zip(values, rest))
    return [(fill(a, x), fill(b, y)) for x, y in zip(numbers, numbers_b or numbers)]


def dtype_of(name):
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes
    return np.dtype(ml_dtypes.bfloat16)


def out(b, name, shape, dtype):
    """The tensor of B to fill: parts of a fused one come from several tensors of A."""
    return b.setdefault(name, np.zeros(shape, dtype_of(dtype)))


def split(x, axis, *sizes):
    return x.reshape(x.shape[:axis] + sizes + x.shape[axis + 1:])


def part(x, axis, first, size):
    return x[(slice(None),) * axis + (slice(first, first + size),)]


def regroup(x, axis, groups, queries):
    """Groups of queries, a key and a value each, as all queries, all keys, all values."""
    heads = split(x, axis, groups, queries + 2, x.shape[axis] // groups // (queries + 2))
    parts = [part(heads, axis + 1, first, size) for first, size in
             ((0, queries), (queries, 1), (queries + 1, 1))]
    flat = [each.reshape(x.shape[:axis] + (-1,) + x.shape[axis + 1:]) for each in parts]
    return np.concatenate(flat, axis)


def ranks(a, name):
    """What each rank holds of a tensor, in order. To do: as your checkpoint stores it."""
    return a[name]


def join_parts(shards, axis, sizes):
    """Each rank holds several parts: all first parts, then all second ones."""
    starts = np.cumsum([0, *sizes[:-1]])
    return np.concatenate([part(x, axis, first, size) for first, size in zip(starts, sizes)
                           for x in shards], axis)


)";

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

// Without the label of a part: "qkv.weight[q]".
std::string stored_name(const std::string& name) {
  return name.ends_with(']') ? name.substr(0, name.rfind('[')) : name;
}

// What is done in the loop for one pair, one line each.
std::vector<std::string> body_of(const PairRow& row, const Form& form) {
  std::vector<std::string> lines;
  if (!row.a.made_from.empty() || !is_numpy(row.a.dtype))
    lines.push_back(
        fmt::format("# To do: a[x] is stored as {}; decode it first.", name_of(row.a.dtype)));
  if (form.merge.kind != MergeKind::none)
    lines.push_back(fmt::format("# To do: {}.", text_of(form.merge)));
  const auto of_side = [&](char side) {
    std::vector<Step> steps;
    std::ranges::copy_if(row.steps, std::back_inserter(steps),
                         [&](const Step& step) { return step.side == side; });
    return steps;
  };
  const std::vector<Step> of_a = of_side('a'), of_b = of_side('b');
  const auto last = std::ranges::find_if(of_a.rbegin(), of_a.rend(), joins_ranks).base();
  std::string value = last == of_a.begin() ? "a[x]" : "ranks(a, x)";
  for (auto step = of_a.begin(); step != of_a.end(); ++step)
    // Parts are cut out of each rank before the ranks are put together.
    value = step < last && !joins_ranks(*step)
                ? fmt::format("[{} for each in {}]", step_text(*step, "each"), value)
                : step_text(*step, value);
  lines.push_back("value = " + value);
  const bool grouped = form.rows.order == RowOrder::by_head && form.rows.queries > 1;
  const std::string how = fmt::format("{}, {}", form.rows.heads, form.rows.queries);
  if (grouped && form.rows.side == 'a')
    lines.push_back(fmt::format("value = regroup(value, {}, {})", form.rows.axis, how));
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
  std::vector<std::vector<std::string>> numbers_a, numbers_b;
};

std::string loop_text(const Loop& loop) {
  std::string out;
  if (loop.numbers_a.size() == 1) {
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

std::string rule_text(const Report& report, const ConversionRow& rule) {
  std::vector<Loop> loops;
  std::vector<std::size_t> pairs = rule.pairs;
  pairs.insert(pairs.end(), rule.exceptions.begin(), rule.exceptions.end());
  for (const std::size_t pair : pairs) {
    const PairRow& row = report.pairs[pair];
    if (row.comparison.status >= Status::incomparable) continue;
    const std::string name_a = stored_name(row.a.name), name_b = stored_name(row.b.name);
    std::vector<std::string> body = body_of(row, rule.form);
    std::string a = numbered_name(name_a).pattern, b = numbered_name(name_b).pattern;
    auto loop = std::ranges::find_if(
        loops, [&](const Loop& each) { return each.body == body && each.a == a && each.b == b; });
    if (loop == loops.end())
      loop = loops.insert(loops.end(), {std::move(body), std::move(a), std::move(b), {}, {}});
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

std::string conversion_python(const Report& report) {
  std::string out = fmt::format(
      "\"\"\"Makes the tensors of B of those of A, as tensordiff found them converted.\n\n"
      "A: {}\nB: {}\n\nconvert() takes and gives a dict of numpy arrays by name.\n\"\"\"\n\n",
      printable(report.a.path), printable(report.b.path));
  out += kHelpers;
  out += "def convert(a):\n    b = {}\n\n";
  for (const ConversionRow& rule : report.conversion) out += rule_text(report, rule);
  for (const Report::Unpaired& only : report.only_a)
    out += fmt::format("    # Only in A: {}\n", printable(only.id.name));
  for (const Report::Unpaired& only : report.only_b)
    out += fmt::format("    # To do, only in B: {} {}\n", printable(only.id.name),
                       shape_text(only.id.shape));
  return out + "    return b\n";
}

}  // namespace tensordiff
