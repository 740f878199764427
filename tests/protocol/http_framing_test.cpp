#include "protocol/http_framing.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

constexpr head_bounds bounds{40, 100};

std::uint32_t refused(std::string_view come) {
  auto length = length_of_head(come, bounds);
  return length ? 0 : length.error();
}

TEST(http_framing, a_header_ends_with_an_empty_line) {
  constexpr std::string_view whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(length_of_head(whole, bounds), whole.size());
  EXPECT_EQ(length_of_head(std::string{whole} + "\n \0 a body is nobody's business", bounds),
            whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(length_of_head(whole.substr(0, i), bounds), 0U) << i;
  }
}

TEST(http_framing, its_first_line_and_the_whole_are_bounded_whether_it_has_come_or_not) {
  std::string path(40, 'x');
  EXPECT_EQ(refused("GET /" + path), 414);
  EXPECT_EQ(refused("GET /" + path + "\r\n\r\n"), 414);
  EXPECT_EQ(refused(path), 0);
  std::string line = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(refused(line + "A: " + std::string(81, 'x')), 0);
  EXPECT_EQ(refused(line + "A: " + std::string(82, 'x')), 431);
  EXPECT_EQ(refused(line + "A: " + std::string(77, 'x') + "\r\n\r\n"), 0);
  EXPECT_EQ(refused(line + "A: " + std::string(78, 'x') + "\r\n\r\n"), 431);
}

TEST(http_framing, what_is_no_request_needs_no_end) {
  for (std::string_view come : {"\x16\x03\x01", " GET", "\n", "\r\n", "\x80"}) {
    EXPECT_EQ(refused(come), 400) << come;
  }
  EXPECT_EQ(refused(std::string_view{"\0", 1}), 400);
}

TEST(http_framing, lines_end_in_one_way_and_are_not_folded) {
  for (std::string_view come :
       {"GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nHost: x\n\n", "GET / HTTP/1.1\rHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "GET / HTTP/1.1\r\n\tHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\r\n\r\n"}) {
    EXPECT_EQ(refused(come), 400) << come;
  }
  EXPECT_EQ(refused(std::string_view{"GET / HTTP/1.1\r\nHo\0st: x", 24}), 400);
}

std::uint32_t framing(std::vector<http_field> fields, bool old_client = false) {
  auto verdict = check_framing({"POST", "/mcp", std::move(fields), {}, {}}, old_client);
  return verdict ? 0 : verdict.error();
}

TEST(http_framing, a_body_has_one_length_or_chunks) {
  EXPECT_EQ(framing({}), 0);
  EXPECT_EQ(framing({{"content-length", "12"}}), 0);
  EXPECT_EQ(framing({{"Transfer-Encoding", "Chunked"}}), 0);
  for (const auto* length : {"", "-1", "+1", "0x1", "1, 1", "1 1", "1.0"}) {
    EXPECT_EQ(framing({{"Content-Length", length}}), 400) << length;
  }
  for (const auto* coding : {"", "xchunked", "chunked, chunked", "gzip, chunked", "identity",
                             "chunked;q=1", "chunked,", "\"chunked\""}) {
    EXPECT_EQ(framing({{"Transfer-Encoding", coding}}), 400) << coding;
  }
  EXPECT_EQ(framing({{"Content-Length", "1"}, {"content-length", "1"}}), 400);
  EXPECT_EQ(framing({{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}}), 400);
  EXPECT_EQ(framing({{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}}), 400);
}

TEST(http_framing, clients_of_the_first_version_know_no_chunks) {
  EXPECT_EQ(framing({{"Content-Length", "12"}}, true), 0);
  EXPECT_EQ(framing({{"Transfer-Encoding", "chunked"}}, true), 400);
}

TEST(http_framing, only_one_thing_can_be_expected) {
  EXPECT_EQ(framing({{"Expect", "100-Continue"}}), 0);
  EXPECT_EQ(framing({{"Expect", "tea"}}), 417);
}

} // namespace
} // namespace bulkhead
