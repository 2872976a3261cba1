// Pairs what a program of the user's says belongs together (--match exec:PROGRAM).
//
// It gets a line of JSON for each tensor that has no partner yet, first those of a, then those of
// b, and writes a line for each pair:
//
//   {"side": "a", "name": "h.0.attn", "dtype": "f32", "shape": [20, 128]}
//   {"a": "h.0.attn", "b": "layers.0.attention"}        or ["h.0.attn", "layers.0.attention"]

#include "base/json.h"
#include "base/program.h"
#include "base/text.h"
#include "match/by_name.h"

namespace tensordiff {
namespace {

void describe(std::string_view side, const Catalog& catalog, const std::vector<std::size_t>& free,
              std::string& lines) {
  for (const std::size_t index : free) {
    const Tensor& tensor = catalog.tensors[index];
    JsonWriter json;
    json.begin_object().member("side", side).member("name", tensor.name);
    json.member("dtype", name_of(tensor.view.dtype)).member("shape", tensor.view.shape);
    if (!tensor.shards.empty()) json.member("ranks", uint64_t{tensor.shards.size()});
    lines += json.end_object().text();
    lines += '\n';
  }
}

Result<std::vector<NamePair>> read_pairs(std::string_view output) {
  std::vector<NamePair> pairs;
  std::size_t number = 0;
  for (const std::string_view line : split(output, '\n')) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("line {} of its output", number);
    const Json json = TRY(Json::parse(line).in(where));
    const Json& a = json.is_array() ? json[0] : json["a"];
    const Json& b = json.is_array() ? json[1] : json["b"];
    if (!a.is_string() || !b.is_string() || json.array().size() > 2)
      return Error("{}: not a pair like {{\"a\": \"name\", \"b\": \"name\"}}", where);
    pairs.push_back({std::string(a.string()), std::string(b.string())});
  }
  return pairs;
}

Result<Proposal> propose(const MatchInput& input) {
  const std::string& program = input.options.program;
  if (program.empty()) return Proposal{};
  std::string lines;
  describe("a", input.a, input.free_a, lines);
  describe("b", input.b, input.free_b, lines);
  const std::string output = TRY(run_program(program, lines).in(printable(program)));
  return pairs_by_name(input, TRY(read_pairs(output).in(printable(program))));
}

}  // namespace

constinit const Matcher matchers::exec = {
    .name = "exec",
    .summary = "given by the program of --match exec:",
    .propose = propose,
};

}  // namespace tensordiff
