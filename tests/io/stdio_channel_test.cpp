#include "actors/io/stdio_channel.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tests/io/io_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

struct events_seen {
  std::vector<std::string> lines;
  int overlong = 0;
  int ends = 0;
  int drains = 0;
};

/// A channel between two pipes; `input` and `output` are the client's ends.
struct stdio_channel_test : ::testing::Test {
  stdio_channel_test() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
    in = fds[0];
    input = fds[1];
    EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
    output = fds[0];
    out = fds[1];
  }

  ~stdio_channel_test() override {
    if (channel) {
      channel->close();
      // What `close` posted runs before this answer.
      on_io(io, [] { return 0; });
      channel = nullptr;
    }
    close_end(input);
    close_end(output);
    io.stop();
  }

  static void close_end(int& fd) {
    if (fd >= 0) {
      ::close(fd);
    }
    fd = -1;
  }

  void open(std::size_t max_line = 1000, std::size_t write_ahead = 64 * kibibyte,
            std::size_t read_ahead = static_cast<std::size_t>(-1)) {
    io::stdio_channel::events events;
    events.line = [seen = seen](std::string line) {
      seen->change([&](events_seen& now) { now.lines.push_back(std::move(line)); });
    };
    events.overlong = [seen = seen] { seen->change([](events_seen& now) { ++now.overlong; }); };
    events.end = [seen = seen] { seen->change([](events_seen& now) { ++now.ends; }); };
    channel = std::make_shared<io::stdio_channel>(io, in, out, max_line, write_ahead,
                                                  std::move(events), read_ahead);
    channel->start();
  }

  void when_drained() {
    channel->when_drained([seen = seen] { seen->change([](events_seen& now) { ++now.drains; }); });
  }

  void say(const std::string& bytes) {
    ASSERT_EQ(::write(input, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  /// The next `size` bytes of the output.
  std::string hear(std::size_t size) {
    std::string result;
    std::array<char, 65536> buffer{};
    while (result.size() < size) {
      auto count = ::read(output, buffer.data(), std::min(buffer.size(), size - result.size()));
      if (count <= 0) {
        break;
      }
      result.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return result;
  }

  bool hears_lines(std::size_t count) {
    return seen->wait([&](const events_seen& now) { return now.lines.size() == count; });
  }
  bool ends() {
    return seen->wait([](const events_seen& now) { return now.ends == 1; });
  }

  int in = -1;
  int out = -1;
  int input = -1;
  int output = -1;
  std::shared_ptr<monitored<events_seen>> seen = std::make_shared<monitored<events_seen>>();
  io::io_thread io;
  std::shared_ptr<io::stdio_channel> channel;
};

TEST_F(stdio_channel_test, lines_arrive_however_they_are_cut) {
  open();
  say("one\ntw");
  ASSERT_TRUE(hears_lines(1));
  say("o\r\n\nthree\n");
  ASSERT_TRUE(hears_lines(4));
  EXPECT_EQ(seen->get().lines, (std::vector<std::string>{"one", "two", "", "three"}));
  EXPECT_EQ(seen->get().ends, 0);
}

TEST_F(stdio_channel_test, the_end_comes_once_after_a_last_line_without_its_end) {
  open();
  say("one\nlast");
  close_end(input);
  ASSERT_TRUE(ends());
  EXPECT_EQ(seen->get().lines, (std::vector<std::string>{"one", "last"}));
  channel->write("still here\n");
  EXPECT_EQ(hear(11), "still here\n");
  EXPECT_EQ(seen->get().ends, 1);
}

TEST_F(stdio_channel_test, a_line_over_the_limit_is_told_once_and_the_next_is_fine) {
  open(10);
  say(std::string(50'000, 'x'));
  ASSERT_TRUE(seen->wait([](const events_seen& now) { return now.overlong == 1; }));
  say("xxx\nnext\n");
  ASSERT_TRUE(hears_lines(1));
  EXPECT_EQ(seen->get().lines[0], "next");
  EXPECT_EQ(seen->get().overlong, 1);
}

TEST_F(stdio_channel_test, what_is_written_comes_out_in_order_and_its_end_is_told) {
  open();
  std::string all;
  for (int i = 0; i < 3000; ++i) {
    auto line = std::to_string(i) + std::string(100, '.') + "\n";
    all += line;
    channel->write(line);
  }
  when_drained();
  EXPECT_FALSE(seen->wait([](const events_seen& now) { return now.drains > 0; }, 100ms));
  EXPECT_EQ(hear(all.size()), all);
  EXPECT_TRUE(seen->wait([](const events_seen& now) { return now.drains == 1; }));
  when_drained();
  EXPECT_TRUE(seen->wait([](const events_seen& now) { return now.drains == 2; }));
}

TEST_F(stdio_channel_test, a_peer_that_does_not_read_is_not_read_from) {
  open();
  auto much = std::string(mebibyte, 'x');
  channel->write(much);
  on_io(io, [] { return 0; });
  say("one\n");
  close_end(input);
  EXPECT_FALSE(seen->wait([](const events_seen& now) { return !now.lines.empty(); }, 200ms));
  EXPECT_EQ(seen->get().ends, 0);
  EXPECT_EQ(hear(much.size()), much);
  ASSERT_TRUE(ends());
  EXPECT_EQ(seen->get().lines, std::vector<std::string>{"one"});
}

TEST_F(stdio_channel_test, lines_that_nobody_takes_stop_the_reading) {
  open(1000, 64 * kibibyte, 8);
  say("one\n");
  ASSERT_TRUE(hears_lines(1));
  say("three\n");
  ASSERT_TRUE(hears_lines(2));
  say("four\n");
  EXPECT_FALSE(seen->wait([](const events_seen& now) { return now.lines.size() > 2; }, 200ms));
  channel->taken(2);
  EXPECT_FALSE(seen->wait([](const events_seen& now) { return now.lines.size() > 2; }, 200ms));
  channel->taken(1);
  ASSERT_TRUE(hears_lines(3));
}

TEST_F(stdio_channel_test, a_peer_that_stops_reading_for_good_is_still_heard_and_its_end_seen) {
  open();
  channel->write(std::string(mebibyte, 'x'));
  when_drained();
  on_io(io, [] { return 0; });
  // It arrives while nothing is read; nobody would look again but for the end of the output.
  say("one\n");
  EXPECT_FALSE(seen->wait([](const events_seen& now) { return !now.lines.empty(); }, 200ms));
  close_end(output);
  EXPECT_TRUE(seen->wait([](const events_seen& now) { return now.drains == 1; }));
  say("two\n");
  close_end(input);
  ASSERT_TRUE(ends());
  EXPECT_EQ(seen->get().lines, (std::vector<std::string>{"one", "two"}));
  channel->write("nobody hears this");
  when_drained();
  EXPECT_TRUE(seen->wait([](const events_seen& now) { return now.drains == 2; }));
}

TEST_F(stdio_channel_test, nothing_is_told_after_it_was_closed) {
  open();
  say("one\n");
  ASSERT_TRUE(hears_lines(1));
  channel->close();
  on_io(io, [] { return 0; });
  auto before = ::signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] auto count = ::write(input, "two\n", 4);
  ::signal(SIGPIPE, before);
  close_end(input);
  channel->write("dropped");
  when_drained();
  EXPECT_TRUE(seen->wait([](const events_seen& now) { return now.drains == 1; }));
  EXPECT_EQ(seen->get().lines.size(), 1u);
  EXPECT_EQ(seen->get().ends, 0);
  // Our end of the output is closed, too.
  EXPECT_EQ(hear(1), "");
}

TEST_F(stdio_channel_test, descriptors_that_others_share_are_left_as_they_were) {
  // Copies share their flags; a terminal is input and output at once.
  int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  close_end(in);
  close_end(out);
  in = ::dup(terminal);
  out = ::dup(terminal);
  open();
  EXPECT_NE(::fcntl(terminal, F_GETFL) & O_NONBLOCK, 0);
  channel->close();
  on_io(io, [] { return 0; });
  EXPECT_EQ(::fcntl(terminal, F_GETFL) & O_NONBLOCK, 0);
  ::close(terminal);
}

TEST_F(stdio_channel_test, plain_files_serve_as_well) {
  temporary_folder folder;
  std::ofstream{folder / "in"} << "one\n" << std::string(200'000, 'x') << "\nthree";
  ::close(in);
  ::close(out);
  in = ::open((folder / "in").c_str(), O_RDONLY | O_CLOEXEC);
  out = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  open(mebibyte);
  ASSERT_TRUE(ends());
  EXPECT_EQ(seen->get().lines,
            (std::vector<std::string>{"one", std::string(200'000, 'x'), "three"}));
  channel->write("answer\n");
  when_drained();
  ASSERT_TRUE(seen->wait([](const events_seen& now) { return now.drains == 1; }));
  EXPECT_EQ(content_of(folder / "out"), "answer\n");
}

TEST_F(stdio_channel_test, an_input_that_is_at_its_end_from_the_start_ends_at_once) {
  ::close(in);
  in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  open();
  ASSERT_TRUE(ends());
  EXPECT_TRUE(seen->get().lines.empty());
}

} // namespace
} // namespace bulkhead
