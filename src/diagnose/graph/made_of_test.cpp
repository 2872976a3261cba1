// Steps that A's values show to be made of earlier ones.

#include "diagnose/graph/made_of.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/replay/activation.h"
#include "diagnose/replay/expected.h"
#include "diagnose/toys/toy_steps.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

using Steps = std::vector<std::pair<std::string, Values>>;

Values combined(const Values& x, const Values& y, double (*made)(double, double)) {
  Values result;
  for (std::size_t i = 0; i < x.size(); ++i) result.push_back(made(x[i], y[i]));
  return result;
}

double sum(double x, double y) { return x + y; }
double product(double x, double y) { return x * y; }
double relu_of_sum(double x, double y) { return std::max(0.0, x + y); }
double silu(double x, double) { return x / (1 + std::exp(-x)); }

// What the last of some steps is made of: "a + b", "SiLU(a)" or "a * b".
std::string last_made_of(const std::vector<Values>& steps, DType dtype) {
  std::vector<Held> held;
  for (const Values& values : steps)
    held.push_back({std::string(1, char('a' + held.size())), values, values});
  std::vector<Site> sites = sites_of(held, dtype);
  find_made_of(sites);
  const std::optional<MadeOf>& made_of = sites.back().made_of;
  if (!made_of) return "";
  std::vector<std::size_t> terms = made_of->terms;
  std::ranges::sort(terms);
  std::string text;
  for (const std::size_t term : terms) text += (text.empty() ? "" : " + ") + held[term].name;
  if (made_of->function) text = std::string(made_of->function->name) + "(" + text + ")";
  return made_of->factor ? text + " * " + held[*made_of->factor].name : text;
}

TEST(MadeOf, KnowsSumsFunctionsAndProducts) {
  const Values a = random_values(16 * 24, 1), b = random_values(16 * 24, 2, 3),
               c = random_values(16 * 24, 3, 0.1);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    SCOPED_TRACE(std::string(name_of(dtype)));
    // Rounded once, as a machine has them that adds up what it holds.
    const auto held = [&](const Values& values) {
      Values result;
      const View view = view_of({values.size()}, values, dtype);
      const Reader reader = std::move(Reader::open(view)).value();
      result.resize(values.size());
      reader.values(0, values.size(), result.data());
      return result;
    };
    const Values x = held(a), y = held(b), z = held(c);
    EXPECT_EQ(last_made_of({x, y, z, y}, dtype), "b");
    EXPECT_EQ(last_made_of({x, y, z, combined(x, z, sum)}, dtype), "a + c");
    EXPECT_EQ(last_made_of({x, y, z, combined(combined(x, z, sum), y, sum)}, dtype), "a + b + c");
    EXPECT_EQ(last_made_of({x, y, z, combined(x, y, relu_of_sum)}, dtype), "ReLU(a + b)");
    EXPECT_EQ(last_made_of({x, y, z, combined(y, y, silu)}, dtype), "SiLU(b)");
    EXPECT_EQ(last_made_of({x, y, z, combined(x, y, product)}, dtype), "a * b");
  }
}

TEST(MadeOf, SaysNothingOfWhatIsUnrelatedOrNearlySo) {
  const Values a = random_values(16 * 24, 1), b = random_values(16 * 24, 2);
  Values nearly = combined(a, b, sum);
  for (std::size_t i = 0; i < nearly.size(); ++i) nearly[i] *= 1 + 1e-4 * std::sin(double(i));
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    EXPECT_EQ(last_made_of({a, b, random_values(16 * 24, 3)}, dtype), "");
  EXPECT_EQ(last_made_of({a, b, nearly}, DType::f32), "");
}

// Whatever goes into a sum, it is right where it adds up what B holds, and wrong where not.
TEST(MadeOf, TellsASumThatCarriesFromOneThatIsWrong) {
  const Values a = random_values(16 * 24, 1), b = random_values(16 * 24, 2);
  Values halved = b;
  for (double& value : halved) value *= 0.5;
  const auto judged = [&](const Values& out) {
    tensordiff::Run run =
        make_run(sites_of({{"blocks.0.skip", a, a},
                           {"blocks.0.branch", b, halved},
                           {"blocks.0", combined(a, b, sum), out},
                           {"blocks.1.skip", a, a},
                           {"blocks.1.branch", b, b},
                           {"blocks.1", combined(a, b, sum), combined(a, b, sum)}}),
                 {});
    judge(run);
    const std::optional<Expected> expected = expected_of(run, run.sites[2]);
    return expected && expected->met();
  };
  EXPECT_TRUE(judged(combined(a, halved, sum)));
  EXPECT_FALSE(judged(combined(a, b, sum)));
  EXPECT_FALSE(judged(halved));
}

// What a scan begins its maxima with is larger than all else by 38 orders.
TEST(MadeOf, SaysNothingBesideANumberThatStandsForInfinity) {
  Values states = random_values(16 * 24, 1);
  for (std::size_t i = 0; i < states.size(); i += 2) states[i] = -1e38;
  EXPECT_EQ(last_made_of({states, random_values(16 * 24, 2)}, DType::f32), "");
}

}  // namespace
}  // namespace tensordiff
