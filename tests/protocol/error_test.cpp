#include "protocol/error.hpp"

#include <set>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

TEST(errc, names_are_unique_and_come_back) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(errc::internal); ++i) {
    auto code = static_cast<errc>(i);
    EXPECT_EQ(errc_from_string(to_string(code)), code);
    names.insert(to_string(code));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(errc::internal) + 1);
  EXPECT_EQ(to_string(errc::not_found), "not_found");
}

TEST(errc, an_unknown_name_or_value_is_internal) {
  EXPECT_EQ(errc_from_string("nope"), errc::internal);
  EXPECT_EQ(errc_from_string(""), errc::internal);
  EXPECT_EQ(to_string(static_cast<errc>(200)), "internal");
}

} // namespace
} // namespace bulkhead
