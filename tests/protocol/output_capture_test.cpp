#include "protocol/output_capture.hpp"

#include <random>

#include <gtest/gtest.h>

#include "protocol/utf8.hpp"

namespace bulkhead {
namespace {

TEST(output_capture, keeps_everything_up_to_the_capacity) {
  output_capture capture{10};
  capture.append("01234");
  capture.append("");
  capture.append("56789");
  const auto taken = capture.take();
  EXPECT_EQ(taken, (captured_stream{"0123456789", "", 10, 0}));
  EXPECT_EQ(taken.text(), "0123456789");
}

TEST(output_capture, keeps_both_ends_beyond_it) {
  output_capture capture{10};
  capture.append("0123456789X");
  EXPECT_EQ(capture.take(), (captured_stream{"01234", "6789X", 11, 1}));
  EXPECT_EQ(capture.take().text(), "01234\n[… 1 bytes left out …]\n6789X");
  capture.append(std::string(100, 'y') + "\n");
  EXPECT_EQ(capture.take(), (captured_stream{"01234", "yyyy\n", 112, 102}));
  EXPECT_EQ(capture.total(), 112U);
}

TEST(output_capture, shows_the_same_whatever_the_pieces) {
  std::mt19937 random{42};
  for (int round = 0; round < 300; ++round) {
    const std::size_t capacity = random() % 40;
    std::string all(random() % 200, ' ');
    for (auto& byte : all) {
      byte = static_cast<char>('a' + random() % 26);
    }
    output_capture capture{capacity};
    for (std::size_t at = 0; at < all.size();) {
      const auto piece = 1 + random() % 50;
      capture.append(std::string_view{all}.substr(at, piece));
      at += piece;
    }
    const auto taken = capture.take();
    EXPECT_EQ(taken.total, all.size());
    if (all.size() <= capacity) {
      EXPECT_EQ(taken, (captured_stream{all, "", all.size(), 0}));
    } else {
      EXPECT_EQ(taken.head, all.substr(0, capacity - capacity / 2));
      EXPECT_EQ(taken.tail, all.substr(all.size() - capacity / 2));
      EXPECT_EQ(taken.omitted, all.size() - capacity);
    }
  }
}

TEST(output_capture, never_splits_a_character) {
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += "aé€😀";
  }
  for (std::size_t capacity = 0; capacity < 60; ++capacity) {
    output_capture capture{capacity};
    capture.append(all);
    const auto taken = capture.take();
    EXPECT_TRUE(is_utf8(taken.head)) << capacity;
    EXPECT_TRUE(is_utf8(taken.tail)) << capacity;
    EXPECT_EQ(taken.head, all.substr(0, taken.head.size()));
    EXPECT_EQ(taken.tail, all.substr(all.size() - taken.tail.size()));
    EXPECT_EQ(taken.omitted, all.size() - taken.head.size() - taken.tail.size());
    EXPECT_LE(taken.head.size() + taken.tail.size(), capacity);
    EXPECT_GE(taken.head.size() + taken.tail.size() + 6, capacity);
  }
}

TEST(output_capture, takes_bytes_that_are_no_text) {
  output_capture capture{8};
  capture.append("\xFF\xFE");
  EXPECT_EQ(capture.take().head, "\xFF\xFE");
  EXPECT_EQ(capture.take().text(), "\uFFFD\uFFFD");
  capture.append(std::string(100, '\x80'));
  const auto taken = capture.take();
  EXPECT_EQ(taken.head.size() + taken.tail.size() + taken.omitted, 102U);
  EXPECT_TRUE(is_utf8(taken.text()));
}

TEST(output_capture, a_character_at_the_very_end_stays_cut_as_it_came) {
  output_capture capture{8};
  capture.append("ab\xE2\x82");
  EXPECT_EQ(capture.take(), (captured_stream{"ab\xE2\x82", "", 4, 0}));
}

TEST(captured_stream, shortens_at_the_inner_ends) {
  const captured_stream whole{"0123456789", "", 10, 0};
  EXPECT_EQ(whole.shortened(10), whole);
  EXPECT_EQ(whole.shortened(5), (captured_stream{"012", "89", 10, 5}));
  EXPECT_EQ(whole.shortened(0), (captured_stream{"", "", 10, 10}));
  const captured_stream cut{"0123", "wxyz", 100, 92};
  EXPECT_EQ(cut.shortened(4), (captured_stream{"01", "yz", 100, 96}));
  EXPECT_EQ(cut.shortened(100), cut);
  const captured_stream letters{"ééé", "", 6, 0};
  EXPECT_EQ(letters.shortened(5), (captured_stream{"é", "é", 6, 2}));
}

} // namespace
} // namespace bulkhead
