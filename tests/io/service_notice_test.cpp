#include "actors/io/service_notice.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "tests/io/http_client_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

/// What a service manager has: a socket for notices, told of in the environment.
class fake_manager {
public:
  /// `name` as in NOTIFY_SOCKET: a path, or `@` and a name of no file.
  explicit fake_manager(const std::string& name) : fd_{::socket(AF_UNIX, SOCK_DGRAM, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') {
      address.sun_path[0] = '\0';
    }
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    timeval limit{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0) {
      throw std::runtime_error{"bind"};
    }
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  fake_manager(const fake_manager&) = delete;
  fake_manager& operator=(const fake_manager&) = delete;
  ~fake_manager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::close(fd_);
  }

  /// The next notice; empty when none comes.
  std::string next() const {
    std::string notice(4096, '\0');
    auto count = ::recv(fd_, notice.data(), notice.size(), 0);
    notice.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return notice;
  }

private:
  int fd_;
};

struct service_notices : ::testing::TestWithParam<bool> {
  static std::string name(const temporary_folder& folder) {
    return GetParam() ? fmt::format("@bulkhead-test-{}", ::getpid()) : folder / "notify";
  }
};

INSTANTIATE_TEST_SUITE_P(sockets, service_notices, ::testing::Bool(),
                         [](const auto& abstract) { return abstract.param ? "abstract" : "file"; });

TEST_P(service_notices, say_what_the_service_is_at) {
  temporary_folder folder;
  fake_manager manager{name(folder)};
  EXPECT_TRUE(io::service_notice::ready("3 tenants"));
  EXPECT_EQ(manager.next(), "READY=1\nSTATUS=3 tenants");
  EXPECT_TRUE(io::service_notice::reloading());
  auto reloading = manager.next();
  EXPECT_TRUE(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC=")) << reloading;
  // No line of a text is a notice of its own.
  EXPECT_TRUE(io::service_notice::status("bad\nREADY=1\r"));
  EXPECT_EQ(manager.next(), "STATUS=bad READY=1 ");
  EXPECT_TRUE(io::service_notice::alive());
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
  EXPECT_TRUE(io::service_notice::stopping("draining"));
  EXPECT_EQ(manager.next(), "STOPPING=1\nSTATUS=draining");
}

TEST(service_notice, without_a_manager_nothing_is_told) {
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(io::service_notice::ready("all is well"));
  EXPECT_TRUE(io::service_notice::alive());
}

TEST(service_notice, a_manager_that_is_gone_is_told_of) {
  ::setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
  auto told = io::service_notice::ready("all is well");
  ::unsetenv("NOTIFY_SOCKET");
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, errc::unavailable);
  EXPECT_NE(told.error().message.find("/nowhere/notify"), std::string::npos);
}

TEST(service_notice, the_watchdogs_time_is_for_this_process) {
  ::unsetenv("WATCHDOG_USEC");
  EXPECT_EQ(io::watchdog_time(), std::nullopt);
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  EXPECT_EQ(io::watchdog_time(), 30s);
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(io::watchdog_time(), std::nullopt);
  ::unsetenv("WATCHDOG_USEC");
  ::unsetenv("WATCHDOG_PID");
}

/// A watchdog whose questions the test answers.
struct watched {
  watched(io::io_thread& io, bool answers) {
    dog = io::service_watchdog::start(
        io, 30ms,
        [this, answers](std::function<void()> answered) {
          asked.change([](int& count) { ++count; });
          answers ? answered() : open.change([&](auto& all) { all.push_back(answered); });
        },
        [this] { signs.change([](int& count) { ++count; }); });
  }
  ~watched() { dog->stop(); }

  bool gave(int count) const {
    return signs.wait([&](int so_far) { return so_far >= count; });
  }

  mutable monitored<int> asked;
  mutable monitored<int> signs;
  monitored<std::vector<std::function<void()>>> open;
  std::shared_ptr<io::service_watchdog> dog;
};

TEST(service_watchdog, gives_signs_while_all_answer) {
  io::io_thread io;
  watched dog{io, true};
  EXPECT_TRUE(dog.gave(5));
  EXPECT_GE(dog.asked.get(), 5);
  dog.dog->stop();
  on_io(io, [] { return 0; });
}

TEST(service_watchdog, gives_none_while_an_answer_is_waited_for) {
  io::io_thread io;
  watched healthy{io, true};
  watched stuck{io, false};
  // The other one's signs tell that time goes by.
  EXPECT_TRUE(healthy.gave(healthy.signs.get() + 5));
  EXPECT_EQ(stuck.signs.get(), 0);
  EXPECT_EQ(stuck.asked.get(), 1);
  stuck.open.get().at(0)();
  EXPECT_TRUE(stuck.gave(1));
  EXPECT_TRUE(stuck.asked.wait([](int count) { return count == 2; }));
  EXPECT_EQ(stuck.signs.get(), 1);
  healthy.dog->stop();
  stuck.dog->stop();
  on_io(io, [] { return 0; });
}

TEST(service_watchdog, gives_none_while_the_io_thread_is_stuck) {
  io::io_thread io;
  watched dog{io, true};
  EXPECT_TRUE(dog.gave(1));
  std::promise<void> held;
  std::promise<void> begun;
  boost::asio::post(io.context(), [&] {
    begun.set_value();
    held.get_future().wait();
  });
  begun.get_future().wait();
  auto before = dog.signs.get();
  EXPECT_FALSE(dog.signs.wait([&](int count) { return count > before; }, 150ms));
  held.set_value();
  EXPECT_TRUE(dog.gave(before + 1));
  dog.dog->stop();
  on_io(io, [] { return 0; });
}

/// A TCP socket on loopback; `listens`: as a service manager would hand it over.
int bound_socket(int type = SOCK_STREAM, bool listens = true) {
  int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      (listens && ::listen(fd, 16) != 0)) {
    throw std::runtime_error{"listen"};
  }
  return fd;
}

/// In a process of its own, whose descriptors are its own: what comes of sockets that are handed
/// over is said by the exit status.
int take_in_child(const char* names) {
  int fd = bound_socket();
  ::dup2(fd, 3);
  ::dup2(fd, 4);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "2", 1);
  ::setenv("LISTEN_FDNAMES", names, 1);
  auto handed = io::take_handed_sockets();
  if (!handed || handed->size() != 2) {
    return 1;
  }
  if ((*handed)[0].descriptor != 3 || (*handed)[0].name != "mcp" || (*handed)[1].descriptor != 4 ||
      (*handed)[1].name != "other") {
    return 2;
  }
  bool inherited = (::fcntl(3, F_GETFD) & FD_CLOEXEC) == 0;
  return inherited || std::getenv("LISTEN_FDS") != nullptr ? 3 : 0;
}

TEST(service_sockets, are_taken_with_their_names_and_not_handed_on) {
  EXPECT_EXIT(std::_Exit(take_in_child("mcp:other")), ::testing::ExitedWithCode(0), "");
}

TEST(service_sockets, of_another_process_are_not_ours) {
  ::setenv("LISTEN_PID", "1", 1);
  ::setenv("LISTEN_FDS", "1", 1);
  auto handed = io::take_handed_sockets();
  ASSERT_TRUE(handed);
  EXPECT_TRUE(handed->empty());
}

TEST(service_sockets, that_make_no_sense_are_an_error) {
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "many", 1);
  auto handed = io::take_handed_sockets();
  ASSERT_FALSE(handed);
  EXPECT_EQ(handed.error().code, errc::invalid_argument);
}

/// A listener at a socket that it was given.
using adopting_listener = listening;

TEST_F(adopting_listener, serves_at_a_socket_that_was_handed_over) {
  int fd = bound_socket();
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  options.adopted = fd;
  options.address = "not looked at";
  open();
  EXPECT_EQ(listener->port(), ntohs(address.sin_port));
  expect_service();
}

TEST_F(adopting_listener, wants_one_that_listens_and_is_tcp) {
  open();
  auto refused = [&](int fd) {
    options.adopted = fd;
    auto opened = io::http_listener::open(io, options, {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, errc::invalid_argument);
    EXPECT_NE(opened.error().message.find("ListenStream"), std::string::npos);
    EXPECT_LT(::fcntl(fd, F_GETFD), 0) << "it is left open";
  };
  refused(bound_socket(SOCK_STREAM, false));
  refused(bound_socket(SOCK_DGRAM, false));
  int local = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  refused(local);
  int pipes[2];
  ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
  ::close(pipes[1]);
  refused(pipes[0]);
}

} // namespace
} // namespace bulkhead
