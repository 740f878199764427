#include "actors/io/io_thread.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "actors/instance.hpp"
#include "tests/io/io_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

/// Runs `scenario` in a process of its own, which may change what belongs to a whole process, and
/// answers its exit code.
template <class Scenario>
int in_other_process(Scenario scenario) {
  auto pid = ::fork();
  if (pid == 0) {
    ::alarm(static_cast<unsigned>(std::chrono::seconds{patience}.count()));
    ::_exit(scenario());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

TEST(io_thread, work_runs_on_a_thread_of_its_own_with_all_signals_blocked) {
  io::io_thread io;
  auto blocked = on_io(io, [] {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return sigismember(&now, SIGCHLD) == 1 && sigismember(&now, SIGPIPE) == 1 &&
           sigismember(&now, SIGTERM) == 1;
  });
  EXPECT_TRUE(blocked);
  EXPECT_NE(on_io(io, [] { return std::this_thread::get_id(); }), std::this_thread::get_id());
  io.stop();
  io.stop();
}

TEST(io_thread, orphans_of_descendants_are_adopted_and_reaped_and_children_left_to_their_owners) {
  auto code = in_other_process([] {
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child_ended, nullptr);
    monitored<std::vector<int>> codes;
    io::io_thread io;
    io.adopt_orphans();
    auto start = [&](const std::string& script) {
      on_io(io, [&] {
        auto spec = shell(script);
        spec.kill_group_at_exit = false;
        auto child = *io::child_process::start(io, spec);
        io::child_process::events events;
        events.output = [](auto, auto) {};
        events.written = [](auto) {};
        events.exited = [&codes](std::int32_t exit, std::int32_t) {
          codes.change([&](auto& all) { all.push_back(exit); });
        };
        child->begin(std::move(events), mebibyte);
      });
    };
    // Each leaves an orphan that outlives it; the last child outlives them all.
    for (int i = 0; i < 5; ++i) {
      start("setsid sleep 0.2 >/dev/null 2>&1 & exit 40");
    }
    start("sleep 0.5; exit 41");
    if (!codes.wait([](const auto& all) { return all.size() == 6; })) {
      return 2;
    }
    auto all = codes.get();
    if (std::count(all.begin(), all.end(), 40) != 5 || all.back() != 41) {
      return 3;
    }
    return eventually([] { return !has_children(); }) ? 0 : 4;
  });
  EXPECT_EQ(code, 0);
}

TEST(io_thread, an_orphan_is_found_behind_a_child_that_its_owner_has_yet_to_reap) {
  auto code = in_other_process([] {
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child_ended, nullptr);
    io::io_thread io;
    io.adopt_orphans();
    // The child ends at once, but nobody waits for it yet: `begin` comes late.
    auto child = on_io(io, [&] {
      auto spec = shell("setsid sleep 0.1 >/dev/null 2>&1 & exit 0");
      spec.kill_group_at_exit = false;
      return *io::child_process::start(io, spec);
    });
    std::this_thread::sleep_for(400ms);
    monitored<bool> ended;
    on_io(io, [&] {
      io::child_process::events events;
      events.output = [](auto, auto) {};
      events.written = [](auto) {};
      events.exited = [&](auto, auto) { ended.change([](bool& now) { now = true; }); };
      child->begin(std::move(events), mebibyte);
    });
    if (!ended.wait([](bool now) { return now; })) {
      return 2;
    }
    return eventually([] { return !has_children(); }) ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
}

/// Starts `script` with a successor's file in `folder`; $1 is that file. Answers what the child and
/// its successor wrote, and how the successor ended: "OUTPUT|CODE|SIGNAL". Empty: it never ended.
std::string run_with_successor(const std::string& folder, const std::string& script,
                               int signal_it = 0) {
  monitored<std::pair<std::string, bool>> seen;
  io::io_thread io;
  io.adopt_orphans();
  auto spec = shell(script);
  spec.argv.insert(spec.argv.end(), {"sh", folder + "/pid"});
  spec.kill_group_at_exit = false;
  spec.successor_file = folder + "/pid";
  std::shared_ptr<io::child_process> child;
  pid_t leader = 0;
  on_io(io, [&] {
    child = *io::child_process::start(io, spec);
    leader = child->pid();
    io::child_process::events events;
    events.output = [&](auto, const std::string& bytes) {
      seen.change([&](auto& all) { all.first += bytes; });
    };
    events.written = [](auto) {};
    events.exited = [&](std::int32_t code, std::int32_t signal) {
      seen.change([&](auto& all) {
        all.first += "|" + std::to_string(code) + "|" + std::to_string(signal);
        all.second = true;
      });
    };
    child->begin(std::move(events), mebibyte);
    child->write("hello\n");
  });
  if (signal_it != 0) {
    seen.wait([](const auto& all) { return all.first.find("up") != std::string::npos; });
    // The signal is for the successor, so it has to be the child by then.
    eventually([&] { return on_io(io, [&] { return child->pid() != leader; }); });
    on_io(io, [&] { child->signal(signal_it); });
  }
  bool over = seen.wait([](const auto& all) { return all.second; });
  on_io(io, [&] { child.reset(); });
  return over && eventually([] { return !has_children(); }) ? seen.get().first : std::string{};
}

bool successor_run_gives(const std::string& script, const std::string& expected,
                         int signal_it = 0) {
  temporary_folder folder;
  auto path = folder.path();
  return in_other_process([&] {
           sigset_t child_ended;
           sigemptyset(&child_ended);
           sigaddset(&child_ended, SIGCHLD);
           pthread_sigmask(SIG_BLOCK, &child_ended, nullptr);
           auto found = run_with_successor(path, script, signal_it);
           if (found != expected) {
             std::cerr << "found: " << found << "\n";
           }
           return found == expected ? 0 : 1;
         }) == 0;
}

TEST(io_thread, a_child_that_hands_over_is_followed_to_its_successors_end) {
  // A shell may reap what ends before itself, so the successor outlives it.
  EXPECT_TRUE(successor_run_gives(
      R"(exec 3<&0
         setsid sh -c 'read line <&3; echo got $line; while kill -0 $1; do sleep 0.01; done; exit 7' \
           sh $$ 2>/dev/null &
         echo $! >"$1")",
      "got hello\n|7|0"));
}

TEST(io_thread, a_successor_that_ended_before_the_hand_over_keeps_its_exit_code) {
  // It ends when the leader is no shell any more: a shell might have reaped it.
  EXPECT_TRUE(successor_run_gives(
      R"(setsid sh -c 'until grep -q sleep /proc/$1/comm; do sleep 0.01; done; exit 9' sh $$ &
         echo $! >"$1"
         exec sleep 0.3)",
      "|9|0"));
}

TEST(io_thread, a_successor_gets_the_childs_signals) {
  EXPECT_TRUE(successor_run_gives(R"(setsid sh -c 'echo up; exec sleep 60' & echo $! >"$1")",
                                  "up\n|137|9", SIGKILL));
}

TEST(io_thread, a_child_that_fails_has_no_successor) {
  EXPECT_TRUE(successor_run_gives(R"(echo 1 >"$1"; echo no; exit 3)", "no\n|3|0"));
}

TEST(io_thread, a_successor_has_to_be_a_descendant) {
  EXPECT_TRUE(successor_run_gives(R"(echo 1 >"$1"; exit 0)", "|0|0"));
  EXPECT_TRUE(successor_run_gives(R"(echo $PPID >"$1"; exit 0)", "|0|0"));
  EXPECT_TRUE(successor_run_gives(R"(exit 0)", "|0|0"));
}

TEST(instance, a_lock_tells_the_living_from_the_dead) {
  temporary_folder folder;
  const std::string name = "0123456789abcdef";
  EXPECT_FALSE(instance_alive(folder.path(), name));
  {
    auto lock = instance_lock::acquire(folder.path(), name);
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock->folder(), folder / name);
    EXPECT_TRUE(instance_alive(folder.path(), name));
    // Looking changes nothing.
    EXPECT_TRUE(instance_alive(folder.path(), name));
    auto second = instance_lock::acquire(folder.path(), name);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, errc::unavailable);
    EXPECT_NE(second.error().message.find(name), std::string::npos);
    auto moved = std::move(*lock);
    EXPECT_TRUE(instance_alive(folder.path(), name));
    auto mode = std::filesystem::status(folder / name).permissions();
    EXPECT_EQ(mode & std::filesystem::perms::mask, std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(instance_alive(folder.path(), name));
  EXPECT_TRUE(instance_lock::acquire(folder.path(), name));
}

TEST(instance, a_process_that_was_killed_is_dead) {
  temporary_folder folder;
  const std::string name = "00000000deadbeef";
  auto code = in_other_process([&] {
    auto lock = instance_lock::acquire(folder.path(), name);
    ::kill(::getpid(), lock && instance_alive(folder.path(), name) ? SIGKILL : SIGTERM);
    return 0;
  });
  EXPECT_EQ(code, 128 + SIGKILL);
  EXPECT_FALSE(instance_alive(folder.path(), name));
}

TEST(instance, only_folders_with_an_instances_name_count) {
  temporary_folder folder;
  for (const auto* name : {"ffffffffffffffff", "0123456789abcdef", "0123456789ABCDEF", "short",
                           "0123456789abcdef0", "0123456789abcdeg"}) {
    std::filesystem::create_directories(folder / name);
  }
  EXPECT_EQ(known_instances(folder.path()),
            (std::vector<std::string>{"0123456789abcdef", "ffffffffffffffff"}));
  EXPECT_TRUE(known_instances(folder / "missing").empty());
  EXPECT_FALSE(instance_alive(folder.path(), "../0123456789abcd"));
  EXPECT_FALSE(instance_alive(folder.path(), ""));
}

TEST(instance, a_lock_that_is_a_link_is_not_followed) {
  temporary_folder folder;
  const std::string name = "0123456789abcdef";
  std::filesystem::create_directories(folder / name);
  std::filesystem::create_symlink(folder / "elsewhere", folder / (name + "/lock"));
  EXPECT_FALSE(instance_lock::acquire(folder.path(), name));
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere"));
  EXPECT_FALSE(instance_lock::acquire(folder / "missing", name));
}

} // namespace
} // namespace bulkhead
