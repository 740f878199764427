#include "actors/user_bus.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "actors/unique_descriptor.hpp"

namespace bulkhead {
namespace {

struct user_bus_test : ::testing::Test {
  user_bus_test() {
    auto pattern = (std::filesystem::temp_directory_path() / "bulkhead-bus-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(folder + "/" + std::to_string(::geteuid()));
    bus = fmt::format("{}/{}/bus", folder, ::geteuid());
  }

  ~user_bus_test() override { std::filesystem::remove_all(folder); }

  std::string folder;
  std::string bus;
};

TEST_F(user_bus_test, is_the_socket_of_the_account) {
  EXPECT_FALSE(user_bus(::geteuid(), folder)) << "nothing is there";
  unique_descriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, bus.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(user_bus(::geteuid(), folder), "unix:path=" + bus);
  EXPECT_FALSE(user_bus(::geteuid() + 1, folder)) << "another's";
}

TEST_F(user_bus_test, is_no_file_and_no_link) {
  std::ofstream{bus} << "x";
  EXPECT_FALSE(user_bus(::geteuid(), folder));
  std::filesystem::remove(bus);
  std::filesystem::create_symlink("/dev/null", bus);
  EXPECT_FALSE(user_bus(::geteuid(), folder));
}

} // namespace
} // namespace bulkhead
