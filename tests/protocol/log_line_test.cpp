#include "protocol/log_line.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

TEST(log_line, is_one_json_object_with_what_there_is) {
  // 2026-03-01T12:34:56.078Z
  system_clock::time_point time{milliseconds{1'772'368'496'078}};
  EXPECT_EQ(encode_log_line({time, "info", "alpha", "run r1 begins", {"r1", "7", "abc"}}),
            R"({"time":"2026-03-01T12:34:56.078Z","level":"info","message":"run r1 begins",)"
            R"("tenant":"alpha","run":"r1","request":"7","trace_id":"abc"})"
            "\n");
  EXPECT_EQ(encode_log_line({time, "error", {}, "no", {}}),
            R"({"time":"2026-03-01T12:34:56.078Z","level":"error","message":"no"})"
            "\n");
}

TEST(log_line, no_text_breaks_out_of_it) {
  std::string hostile = "a\"}\n{\"level\":\"fatal\"}\r\x1b[31m\xff\xc2\x9b\xe2\x80\xae\xe2\x80\xa8";
  auto line = encode_log_line({{}, "info", hostile, hostile, {hostile, hostile, hostile}});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(line.find("\xe2\x80\xae"), std::string::npos);
  auto read = nlohmann::json::parse(line);
  EXPECT_EQ(read.size(), 7U);
  EXPECT_EQ(read["level"], "info");
  // Nothing is lost but the byte that is no UTF-8.
  std::string same = hostile;
  same.replace(same.find('\xff'), 1, "\xef\xbf\xbd");
  EXPECT_EQ(read["message"], same);
  EXPECT_EQ(read["tenant"], same);
}

} // namespace
} // namespace bulkhead
