#include "report/analyses.h"

#include <gtest/gtest.h>

#include <limits>

namespace tensordiff {
namespace {

Answer sample() {
  Answer answer;
  answer.name = "learning_progress";
  answer.field("magnitude", 0.0543).unknown("trend", "a loss in the checkpoints");
  answer.list("layers", {"layer", "update"}).add({3, std::numeric_limits<double>::infinity()});
  answer.charts.push_back({Chart::Kind::heat_map, "cosine", "title", {"0", "1"}, {"0"}, {1, 0.5}});
  answer.alarm = "too much";
  return answer;
}

TEST(AnswerLine, HasTheFieldsInOrder) {
  EXPECT_EQ(answer_line(sample()), "learning_progress: magnitude=0.0543, trend=unknown");
}

TEST(AnswerLine, QuotesSentencesAndEscapesNames) {
  Answer answer;
  answer.name = "x";
  answer.field("why", "two words").field("name", "\x1b[2J");
  EXPECT_EQ(answer_line(answer), "x: why=\"two words\", name=\\x1b[2J");
}

TEST(WriteAnswer, IsAnObject) {
  JsonWriter json;
  write_answer(json, sample());
  EXPECT_EQ(json.text(),
            R"({"magnitude":0.0543,"trend":"unknown","layers":[{"layer":3,"update":"inf"}],)"
            R"("charts":{"cosine":{"kind":"heat_map","title":"title","x":["0","1"],"y":["0"],)"
            R"("values":[[1,0.5]]}},"alarm":"too much","missing":["a loss in the checkpoints"],)"
            R"("notes":[]})");
}

TEST(AlarmLines, SayWhichAndWhy) {
  EXPECT_EQ(alarm_lines({sample(), Answer()}, Style(false)),
            "alarm  learning_progress: too much\n");
}

TEST(AnswersText, ShowsWhatIsMissingAndTheEvidence) {
  const std::string text = answers_text({sample()}, Style(false), 8, 80);
  EXPECT_NE(text.find("missing  a loss in the checkpoints"), std::string::npos) << text;
  EXPECT_NE(text.find("alarm  too much"), std::string::npos) << text;
  EXPECT_NE(text.find("layer  update"), std::string::npos) << text;
}

}  // namespace
}  // namespace tensordiff
