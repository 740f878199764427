#include "protocol/variable_expansion.hpp"

#include <map>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

expected<std::string> expand(std::string_view text) {
  static const std::map<std::string, std::string, std::less<>> variables = {
      {"HOME", "/home/u"}, {"EMPTY", ""}, {"NESTED", "${HOME}"}, {"_x1", "v"}};
  return expand_variables(text, [](std::string_view name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found != variables.end() ? std::optional(found->second) : std::nullopt;
  });
}

TEST(expand_variables, values_and_defaults) {
  EXPECT_EQ(expand("plain").value(), "plain");
  EXPECT_EQ(expand("").value(), "");
  EXPECT_EQ(expand("${HOME}/x").value(), "/home/u/x");
  EXPECT_EQ(expand("a${_x1}b${_x1}c").value(), "avbvc");
  EXPECT_EQ(expand("${env:HOME}").value(), "/home/u");
  EXPECT_EQ(expand("${UNSET:-fallback}").value(), "fallback");
  EXPECT_EQ(expand("${UNSET:-}").value(), "");
  EXPECT_EQ(expand("${UNSET:-a:-b}").value(), "a:-b");
  EXPECT_EQ(expand("${EMPTY:-fallback}").value(), "fallback");
  EXPECT_EQ(expand("${EMPTY}").value(), "");
  EXPECT_EQ(expand("${HOME:-fallback}").value(), "/home/u");
  EXPECT_EQ(expand("${UNSET-fallback}").value(), "fallback");
  EXPECT_EQ(expand("${UNSET-}").value(), "");
  EXPECT_EQ(expand("${UNSET-a-b:-c}").value(), "a-b:-c");
  EXPECT_EQ(expand("${EMPTY-fallback}").value(), "") << "it is set";
  EXPECT_EQ(expand("${UNSET-$${UNSET}}.").value(), "${UNSET}.") << "a literal reference";
  EXPECT_EQ(expand("${HOME-$${HOME}}.").value(), "/home/u.");
}

TEST(expand_variables, leaves_other_dollars_alone) {
  EXPECT_EQ(expand("$HOME $ $$ 5$").value(), "$HOME $ $$ 5$");
  EXPECT_EQ(expand("$${HOME}").value(), "${HOME}");
  EXPECT_EQ(expand("a$${b}${_x1}").value(), "a${b}v");
  EXPECT_EQ(expand("${NESTED}").value(), "${HOME}") << "values aren't expanded again";
}

TEST(expand_variables, refuses_what_it_cannot_fill_in) {
  auto unset = expand("x${TOKEN}");
  ASSERT_FALSE(unset);
  EXPECT_EQ(unset.error().code, errc::not_found);
  EXPECT_EQ(unset.error().message,
            "needs the environment variable TOKEN, which isn't set: set it or "
            "write ${TOKEN:-default}");
  for (auto text : {"${", "${HOME", "${}", "${1X}", "${input:key}", "${HOME%/}", "${A B}", "${:-x}",
                    "${A:-${HOME}}", "${HOME:-${A}}", "${HOME-${A}}", "${-x}"}) {
    auto result = expand(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, errc::invalid_argument) << text;
  }
}

TEST(expand_home, only_at_the_start) {
  EXPECT_EQ(expand_home("~", "/h"), "/h");
  EXPECT_EQ(expand_home("~/x", "/h"), "/h/x");
  EXPECT_EQ(expand_home("~user/x", "/h"), "~user/x");
  EXPECT_EQ(expand_home("/a/~/x", "/h"), "/a/~/x");
  EXPECT_EQ(expand_home("", "/h"), "");
}

} // namespace
} // namespace bulkhead
