#include "protocol/sse_reader.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using namespace std::string_view_literals;

struct heard {
  std::vector<sse_event> events;
  int overlong = 0;
};

heard read(sse_reader& reader, std::string_view text, std::size_t piece) {
  heard result;
  sse_reader::sink sink{[&](const sse_event& event) { result.events.push_back(event); },
                        [&] { ++result.overlong; }};
  for (std::size_t at = 0; at < text.size(); at += piece) {
    reader.feed(text.substr(at, piece), sink);
  }
  return result;
}

heard read(std::string_view text, std::size_t piece = 1, std::size_t most = 1000) {
  sse_reader reader{most};
  return read(reader, text, piece);
}

std::string told(const heard& what) {
  std::string result;
  for (const auto& event : what.events) {
    result += event.type + "[" + event.data + "]" + (event.id ? "#" + *event.id : "") + " ";
  }
  return result + std::string(static_cast<std::size_t>(what.overlong), '!');
}

TEST(sse_reader, events_come_whole_however_the_bytes_are_cut) {
  const std::string text = "\xEF\xBB\xBF: a comment\n"
                           "event: endpoint\ndata: /x?y\n\n"
                           "data: one\r\ndata:two\r\ndata\r\n\r\n"
                           "id: 7\ndata: {\"a\": \"b\"}\r\r"
                           "id: 8\ndata: \n\n"
                           "unknown: field\n\n"
                           "data:  two spaces\n\n"
                           "data: never ended\n";
  for (std::size_t piece : {1, 2, 3, 5, 7, 1000}) {
    EXPECT_EQ(told(read(text, piece)),
              "endpoint[/x?y] message[one\ntwo\n] message[{\"a\": \"b\"}]#7 "
              "message[]#8 message[ two spaces] ")
        << piece;
  }
}

TEST(sse_reader, ids_and_retry_are_kept) {
  sse_reader reader{100};
  read(reader, "id: a\nretry: 500\n\nid: b", 1);
  EXPECT_EQ(reader.last_id(), "a");
  EXPECT_EQ(reader.retry(), std::chrono::milliseconds{500});
  read(reader, "\n\nretry: 5x\n\nretry: 99999999999999999999\n\n", 1);
  EXPECT_EQ(reader.last_id(), "b");
  EXPECT_EQ(reader.retry(), std::chrono::hours{1});
  using namespace std::string_literals;
  read(reader, "id: c\0d\ndata: x\n\n"s, 1);
  EXPECT_EQ(reader.last_id(), "b");
  read(reader, "id\ndata: x\n\n", 1);
  EXPECT_EQ(reader.last_id(), "");
}

TEST(sse_reader, an_overlong_event_is_reported_once_and_the_next_is_read) {
  auto line = "data: " + std::string(80, 'x') + "\n";
  auto text = "data: first\n\n" + line + line + line + "\ndata: last\n\n";
  for (std::size_t piece : {1, 7, 1000}) {
    EXPECT_EQ(told(read(text, piece, 150)), "message[first] message[last] !") << piece;
  }
  EXPECT_EQ(told(read("data: " + std::string(1000, 'x'), 10, 100)), "!");
  EXPECT_EQ(told(read(std::string(1000, 'x') + "\n\n", 10, 100)), "!");
}

TEST(sse_reader, no_bytes_break_it) {
  std::mt19937 random{7};
  constexpr auto alphabet = "\r\n:: dataeventidretry\xEF\xBB\xBF\0\x80 0159"sv;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      text += alphabet[random() % alphabet.size()];
    }
    auto whole = told(read(text, 1000, 40));
    EXPECT_EQ(told(read(text, 1 + random() % 4, 40)), whole);
  }
}

} // namespace
} // namespace bulkhead
