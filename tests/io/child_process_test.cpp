#include "actors/io/child_process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <sstream>

#include "tests/io/io_support.hpp"

namespace bulkhead {
namespace {

using namespace testing;

/// What a child did so far.
struct course {
  std::string out;
  std::string err;
  std::uint64_t written = 0;
  std::optional<std::pair<std::int32_t, std::int32_t>> exit; ///< code, signal
  int exits = 0;
};

struct child_process_test : ::testing::Test {
  void start(const process_spec& spec, std::uint64_t credit = UINT64_MAX / 2) {
    on_io(io, [&] {
      auto started = io::child_process::start(io, spec);
      if (!started) {
        failure = started.error();
        return;
      }
      child = *started;
      io::child_process::events events;
      events.output = [seen = seen](stream_id stream, std::string bytes) {
        seen->change([&](course& now) { (stream == stream_id::out ? now.out : now.err) += bytes; });
      };
      events.written = [seen = seen](std::uint64_t bytes) {
        seen->change([&](course& now) { now.written += bytes; });
      };
      events.exited = [seen = seen](std::int32_t code, std::int32_t signal) {
        seen->change([&](course& now) {
          now.exit = {code, signal};
          ++now.exits;
        });
      };
      child->begin(std::move(events), credit);
    });
  }

  void write(std::string bytes) {
    on_io(io, [&] { child->write(std::move(bytes)); });
  }
  void close_input() {
    on_io(io, [&] { child->close_input(); });
  }
  void signal(int number) {
    on_io(io, [&] { child->signal(number); });
  }
  void add_credit(stream_id stream, std::uint64_t bytes) {
    on_io(io, [&] { child->add_credit(stream, bytes); });
  }

  bool exits() {
    return seen->wait([](const course& now) { return now.exit.has_value(); });
  }

  /// The number on the first line of stderr, where scripts write a process id.
  pid_t told_pid() {
    EXPECT_TRUE(
        seen->wait([](const course& now) { return now.err.find('\n') != std::string::npos; }));
    return static_cast<pid_t>(std::strtol(seen->get().err.c_str(), nullptr, 10));
  }

  // First, so that it goes last: what lives on it must not outlive it.
  io::io_thread io;
  std::shared_ptr<monitored<course>> seen = std::make_shared<monitored<course>>();
  std::shared_ptr<io::child_process> child;
  std::optional<error> failure;
};

TEST_F(child_process_test, both_streams_and_the_exit_code_arrive) {
  start(shell("echo out; echo err >&2; exit 7"));
  ASSERT_TRUE(exits());
  auto end = seen->get();
  EXPECT_EQ(end.out, "out\n");
  EXPECT_EQ(end.err, "err\n");
  EXPECT_EQ(end.exit->first, 7);
  EXPECT_EQ(end.exit->second, 0);
}

TEST_F(child_process_test, a_signal_is_told_with_its_code) {
  start(shell("kill -KILL $$"));
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().exit->first, 137);
  EXPECT_EQ(seen->get().exit->second, SIGKILL);
}

TEST_F(child_process_test, what_is_written_is_read_and_an_end_of_input_is_seen) {
  start(shell("cat; echo end"));
  write("hello ");
  write("world\n");
  EXPECT_TRUE(seen->wait([](const course& now) { return now.written == 12; }));
  EXPECT_TRUE(seen->wait([](const course& now) { return now.out == "hello world\n"; }));
  close_input();
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, "hello world\nend\n");
}

TEST_F(child_process_test, input_is_closed_only_after_all_that_was_queued) {
  start(shell("sleep 0.1; wc -c"));
  write(std::string(mebibyte, 'x'));
  close_input();
  ASSERT_TRUE(exits());
  EXPECT_EQ(std::stoul(seen->get().out), mebibyte);
  EXPECT_EQ(seen->get().written, mebibyte);
}

TEST_F(child_process_test, the_environment_folder_and_arguments_are_those_given) {
  temporary_folder folder;
  process_spec spec;
  spec.argv = {"/usr/bin/env", "-0"};
  spec.env = {"A=1", "B=two words"};
  start(spec);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, std::string("A=1\0B=two words\0", 16));

  seen->change([](course& now) { now = {}; });
  auto second = shell("pwd; printf '<%s>' \"$0\" \"$@\"");
  second.argv.insert(second.argv.end(), {"zero", "", "a b", "$HOME"});
  second.cwd = folder.path();
  start(second);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, folder.path() + "\n<zero><><a b><$HOME>");
}

TEST_F(child_process_test, a_relative_program_lies_in_the_childs_folder) {
  temporary_folder folder;
  std::filesystem::create_directories(folder / "bin");
  std::ofstream{folder / "bin/tool"} << "#!/bin/sh\npwd\n";
  std::filesystem::permissions(folder / "bin/tool", std::filesystem::perms::owner_all);
  process_spec spec;
  spec.argv = {"./bin/tool"};
  spec.env = own_path();
  spec.cwd = folder.path();
  start(spec);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, folder.path() + "\n");
}

TEST_F(child_process_test, no_descriptor_and_no_signal_setting_of_ours_is_inherited) {
  int leaked = ::open("/dev/null", O_RDONLY);
  auto before = ::signal(SIGPIPE, SIG_IGN);
  start(shell("ls /proc/self/fd | tr '\\n' ' ' >&2; sed -n 's/^Sig[BI]..:.//p' /proc/self/status"));
  ASSERT_TRUE(exits());
  ::signal(SIGPIPE, before);
  ::close(leaked);
  // 3 is the folder that ls reads.
  EXPECT_EQ(seen->get().err, "0 1 2 3 ");
  // Blocked and ignored, bit 0 being signal 1; 32 and up belong to the C library.
  std::istringstream masks{seen->get().out};
  std::uint64_t blocked = 1;
  std::uint64_t ignored = 1;
  masks >> std::hex >> blocked >> ignored;
  EXPECT_EQ(blocked, 0u) << seen->get().out;
  EXPECT_EQ(ignored & 0x7fffffffU, 0u) << seen->get().out;
}

TEST_F(child_process_test, the_child_leads_a_process_group) {
  start(shell("ps -o pgid= -p $$; echo $$"));
  ASSERT_TRUE(exits());
  auto out = seen->get().out;
  EXPECT_EQ(std::strtol(out.c_str(), nullptr, 10), child->pid());
}

TEST_F(child_process_test, a_child_that_ignores_sigterm_is_killed) {
  start(shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"));
  ASSERT_TRUE(seen->wait([](const course& now) { return now.out == "ready\n"; }));
  signal(SIGTERM);
  EXPECT_FALSE(seen->wait([](const course& now) { return now.exit.has_value(); }, 200ms));
  signal(SIGKILL);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().exit->second, SIGKILL);
  // Signals to who is gone go nowhere.
  signal(SIGTERM);
}

TEST_F(child_process_test, reading_stops_without_credit_and_goes_on_with_more) {
  start(shell("exec yes"), 100'000);
  ASSERT_TRUE(seen->wait([](const course& now) { return now.out.size() == 100'000; }));
  EXPECT_FALSE(seen->wait([](const course& now) { return now.out.size() > 100'000; }, 200ms));
  add_credit(stream_id::out, 5);
  ASSERT_TRUE(seen->wait([](const course& now) { return now.out.size() == 100'005; }));
  EXPECT_FALSE(seen->wait([](const course& now) { return now.out.size() > 100'005; }, 100ms));
  EXPECT_FALSE(seen->get().exit);
  // What it wrote before its end still arrives, as credit allows, before the end does.
  signal(SIGKILL);
  EXPECT_FALSE(seen->wait([](const course& now) { return now.exit.has_value(); }, 100ms));
  add_credit(stream_id::out, mebibyte);
  ASSERT_TRUE(exits());
  EXPECT_GT(seen->get().out.size(), 100'005u);
}

TEST_F(child_process_test, each_stream_has_a_credit_of_its_own) {
  start(shell("yes & yes >&2"), 1000);
  ASSERT_TRUE(seen->wait(
      [](const course& now) { return now.out.size() == 1000 && now.err.size() == 1000; }));
  add_credit(stream_id::err, 500);
  ASSERT_TRUE(seen->wait([](const course& now) { return now.err.size() == 1500; }));
  EXPECT_EQ(seen->get().out.size(), 1000u);
  on_io(io, [&] { child->mute(); });
  signal(SIGKILL);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out.size(), 1000u);
}

TEST_F(child_process_test, credit_that_is_used_up_to_the_byte_does_not_hold_the_end_back) {
  start(shell("printf 12345"), 5);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, "12345");
}

TEST_F(child_process_test, ten_megabytes_without_a_line_end_arrive) {
  start(shell("head -c 10485760 /dev/zero | tr '\\0' x"), 64 * kibibyte);
  std::size_t credited = 64 * kibibyte;
  while (credited < 10 * mebibyte) {
    ASSERT_TRUE(seen->wait([&](const course& now) { return now.out.size() == credited; }));
    add_credit(stream_id::out, mebibyte);
    credited += mebibyte;
  }
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, std::string(10 * mebibyte, 'x'));
}

TEST_F(child_process_test, what_the_leader_leaves_of_its_group_is_killed) {
  start(shell("sleep 300 & echo $! >&2"));
  auto left = told_pid();
  ASSERT_TRUE(exits());
  EXPECT_TRUE(eventually([&] { return !alive(left); }));
}

TEST_F(child_process_test, a_group_may_outlive_its_leader_and_does_not_hold_the_end_back) {
  auto spec = shell("sleep 300 & echo $! >&2");
  spec.kill_group_at_exit = false;
  start(spec);
  auto left = told_pid();
  ASSERT_TRUE(exits());
  EXPECT_TRUE(alive(left));
  ::kill(left, SIGKILL);
}

TEST_F(child_process_test,
       a_grandchild_that_left_the_group_and_holds_the_pipe_does_not_hang_the_end) {
  start(shell("setsid sleep 300 & echo $! >&2; echo done"));
  auto left = told_pid();
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, "done\n");
  ::kill(left, SIGKILL);
}

TEST_F(child_process_test, a_grandchild_that_writes_for_ever_does_not_hang_the_end) {
  auto spec = shell("yes & echo $! >&2; sleep 0.2");
  spec.kill_group_at_exit = false;
  start(spec);
  auto left = told_pid();
  EXPECT_TRUE(exits());
  auto size = seen->get().out.size();
  ::kill(left, SIGKILL);
  EXPECT_EQ(seen->get().out.size(), size);
  EXPECT_EQ(seen->get().exits, 1);
}

TEST_F(child_process_test, bytes_for_a_child_that_closed_its_input_are_dropped_and_counted) {
  start(shell("exec <&-; echo closed; exec sleep 300"));
  ASSERT_TRUE(seen->wait([](const course& now) { return now.out == "closed\n"; }));
  write(std::string(mebibyte, 'x'));
  EXPECT_TRUE(seen->wait([](const course& now) { return now.written == mebibyte; }));
  write("more");
  EXPECT_TRUE(seen->wait([](const course& now) { return now.written == mebibyte + 4; }));
  EXPECT_FALSE(seen->get().exit);
  signal(SIGKILL);
  ASSERT_TRUE(exits());
}

TEST_F(child_process_test, a_child_that_never_reads_holds_up_nobody) {
  start(shell("exec sleep 300"));
  write(std::string(mebibyte, 'x'));
  close_input();
  EXPECT_TRUE(seen->wait([](const course& now) { return now.written > 0; }));
  EXPECT_LT(seen->get().written, mebibyte);
  signal(SIGKILL);
  ASSERT_TRUE(exits());
  // What it never read counts as dealt with.
  EXPECT_EQ(seen->get().written, mebibyte);
  write("late");
  EXPECT_EQ(seen->get().written, mebibyte);
}

TEST_F(child_process_test, a_muted_child_reports_its_end_only) {
  start(shell("echo before; read line; yes"), 1000);
  ASSERT_TRUE(seen->wait([](const course& now) { return now.out == "before\n"; }));
  on_io(io, [&] { child->mute(); });
  write("go\n");
  EXPECT_FALSE(seen->wait([](const course& now) { return now.out.size() > 7; }, 200ms));
  signal(SIGKILL);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, "before\n");
  EXPECT_EQ(seen->get().written, 0u);
}

TEST_F(child_process_test, what_cannot_be_started_says_why) {
  process_spec spec;
  spec.env = {"PATH=/nowhere:/usr/bin"};
  start(spec);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, errc::invalid_argument);

  spec.argv = {"no-such-program"};
  start(spec);
  EXPECT_EQ(failure->code, errc::not_found);
  EXPECT_NE(failure->message.find("no-such-program"), std::string::npos);
  EXPECT_NE(failure->message.find("/nowhere:/usr/bin"), std::string::npos);

  spec.argv = {"/etc/passwd"};
  start(spec);
  EXPECT_EQ(failure->code, errc::not_found);

  spec.argv = {"/usr/bin/env"};
  spec.cwd = "/no/such/folder";
  start(spec);
  EXPECT_EQ(failure->code, errc::unavailable);
  EXPECT_NE(failure->message.find("/no/such/folder"), std::string::npos);
  EXPECT_FALSE(child);
}

TEST_F(child_process_test, a_file_that_is_no_program_is_refused_by_the_system) {
  temporary_folder folder;
  auto path = folder / "broken";
  std::ofstream{path} << "\x7f"
                         "ELF is not all it takes";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  process_spec spec;
  spec.argv = {path};
  start(spec);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, errc::unavailable);
  EXPECT_NE(failure->message.find(path), std::string::npos);
}

TEST_F(child_process_test, a_program_joins_its_cgroups_before_it_starts) {
  temporary_folder folder;
  std::filesystem::create_directories(folder / "memory");
  std::filesystem::create_directories(folder / "pids");
  auto spec = shell("printf '<%s>' \"$0\" \"$@\"");
  spec.argv.insert(spec.argv.end(), {"zero", "a b", ""});
  spec.cgroups = {folder / "memory", folder / "pids"};
  start(spec);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, "<zero><a b><>");
  EXPECT_EQ(content_of(folder / "memory/cgroup.procs"), "0\n");
  EXPECT_EQ(content_of(folder / "pids/cgroup.procs"), "0\n");
}

TEST_F(child_process_test, a_cgroup_that_cannot_be_joined_starts_nothing) {
  temporary_folder folder;
  auto spec = shell("echo started");
  spec.cgroups = {folder / "missing"};
  start(spec);
  ASSERT_TRUE(exits());
  EXPECT_EQ(seen->get().out, "");
  EXPECT_EQ(seen->get().exit->first, 125);
  EXPECT_NE(seen->get().err.find("missing/cgroup.procs"), std::string::npos);
}

TEST_F(child_process_test, the_end_of_the_io_thread_leaves_no_child) {
  pid_t pid = 0;
  {
    io::io_thread other;
    on_io(other, [&] {
      auto started = io::child_process::start(other, shell("trap '' TERM; sleep 300; :"));
      pid = (*started)->pid();
      (*started)->begin({[](auto, auto) {}, [](auto) {}, [](auto, auto) {}}, 1000);
    });
    EXPECT_TRUE(alive(pid));
  }
  EXPECT_FALSE(alive(pid));
}

TEST(find_program, looks_in_the_path_of_the_given_environment) {
  temporary_folder folder;
  std::filesystem::create_directories(folder / "first/tool");
  std::filesystem::create_directories(folder / "second");
  std::ofstream{folder / "second/tool"} << "#!/bin/sh\n";
  auto env =
      std::vector<std::string>{"X=1", "PATH=" + (folder / "first") + "::" + (folder / "second")};
  // A folder of that name is no program, nor is a file that can't be run.
  EXPECT_FALSE(io::find_program("tool", env));
  std::filesystem::permissions(folder / "second/tool", std::filesystem::perms::owner_all);
  EXPECT_EQ(io::find_program("tool", env).value_or(""), folder / "second/tool");
  EXPECT_EQ(io::find_program(folder / "second/tool", {}).value_or(""), folder / "second/tool");
  EXPECT_FALSE(io::find_program("", env));
  EXPECT_FALSE(io::find_program("tool", {"PATH="}));
  auto missing = io::find_program("tool", {"PATH=/nowhere"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, errc::not_found);
}

} // namespace
} // namespace bulkhead
