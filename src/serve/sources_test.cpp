#include "serve/sources.h"

#include <gtest/gtest.h>

#include "serve/test_app.h"

namespace tensordiff::serve {
namespace {

class SourcesTest : public AppTest {};

TEST_F(SourcesTest, AreStaleWhenTheirFileChangedAndGoneWithIt) {
  const OpenOptions open;
  const Roots everywhere;
  Source changed("id", "a", file("a.safetensors"), false);
  ASSERT_TRUE(changed.open(open).ok());
  write("a.safetensors", safetensors_of("w", {1, 2}));
  EXPECT_EQ(changed.state(everywhere), Source::State::stale);
  EXPECT_EQ(changed.reopen(open).value().elements, 2U);
  EXPECT_EQ(changed.state(everywhere), Source::State::ready);
  std::filesystem::remove(file("b.safetensors"));
  Source gone("id", "b", file("b.safetensors"), false);
  EXPECT_EQ(gone.state(everywhere), Source::State::gone);
  EXPECT_FALSE(gone.open(open).ok());
}

TEST_F(SourcesTest, AnUploadIsCalledByItsNameNotByItsPlace) {
  write("junk", "junk");
  Source upload("id", "mine.pt", file("junk"), true);
  const std::string message = upload.open({}).error().message();
  EXPECT_TRUE(message.starts_with("mine.pt")) << message;
  EXPECT_EQ(message.find(folder.string()), std::string::npos) << message;
}

TEST_F(SourcesTest, SeveralAreOneInput) {
  write("c.safetensors", safetensors_of("v", {1}));
  Source a("1", "a", file("a.safetensors"), false), c("2", "c", file("c.safetensors"), false);
  const Catalog both = merged({a.open({}).value(), c.open({}).value()});
  EXPECT_EQ(both.tensors.size(), 2U);
  EXPECT_EQ(both.format, "several");
}

}  // namespace
}  // namespace tensordiff::serve
