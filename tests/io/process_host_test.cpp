#include "actors/process_host.hpp"

#include <unistd.h>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "actors/io/process_table.hpp"
#include "tests/io/io_support.hpp"
#include "tests/support/actor_config.hpp"

namespace bulkhead {
namespace {

using namespace testing;

struct config : actor_config {
  config() {
    add_message_types<caf::id_block::bulkhead_process_host>();
    set("scheduler.max-threads", 2);
  }
};

/// What an owner heard of its children, in order.
struct story {
  std::string out;
  std::string err;
  std::uint64_t written = 0;
  std::vector<child_exited> exits;
  bool output_after_exit = false;
};

using story_ptr = std::shared_ptr<monitored<story>>;

child_owner_actor::behavior_type listen(child_owner_actor::pointer, story_ptr heard) {
  return {
      [heard](const child_output& output) {
        heard->change([&](story& now) {
          now.output_after_exit |= !now.exits.empty();
          (output.stream == stream_id::out ? now.out : now.err) += output.bytes;
        });
      },
      [heard](const child_written& written) {
        heard->change([&](story& now) { now.written += written.bytes; });
      },
      [heard](const child_exited& exit) {
        heard->change([&](story& now) { now.exits.push_back(exit); });
      },
  };
}

struct process_host_test : ::testing::Test {
  process_host_test() {
    bounds.read_ahead = 256 * kibibyte;
    host = system.spawn(process_host, &io, bounds);
    owner = system.spawn(listen, heard);
  }

  ~process_host_test() override {
    caf::anon_send_exit(owner, caf::exit_reason::kill);
    caf::anon_send_exit(host, caf::exit_reason::kill);
    // What lives on the I/O thread must not outlive it.
    caf::scoped_actor self{system};
    self->wait_for(owner, host);
    io.stop();
  }

  expected<child_started> spawn(const process_spec& spec, const child_owner_actor& for_whom) {
    return ask<child_started>(spawn_atom::value, spec, for_whom);
  }

  child_started spawn(const std::string& script) {
    auto started = spawn(shell(script), owner);
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    return started.value_or(child_started{});
  }

  expected<finished_process> command(const std::string& script, std::string input = "",
                                     std::chrono::milliseconds time = patience) {
    return ask<finished_process>(command_atom::value, shell(script), std::move(input), in(time));
  }

  static deadline in(std::chrono::milliseconds time) {
    return deadline::at(std::chrono::steady_clock::now() + time);
  }

  template <class T, class... Ts>
  expected<T> ask(Ts... arguments) {
    expected<T> result;
    caf::scoped_actor self{system};
    self->request(host, patience, std::move(arguments)...)
        .receive(
            [&](T& value) { result = std::move(value); },
            [&](const caf::error& reason) { result = tl::unexpected{from_caf(reason, "test")}; });
    return result;
  }

  bool hears_exits(std::size_t count) {
    return heard->wait([&](const story& now) { return now.exits.size() == count; });
  }

  io::io_thread io; // outlives the actors, whose children live on it
  config cfg;
  caf::actor_system system{cfg};
  limits bounds;
  process_host_impl_actor host;
  story_ptr heard = std::make_shared<monitored<story>>();
  child_owner_actor owner;
};

TEST_F(process_host_test, a_childs_course_reaches_its_owner) {
  auto child = spawn("cat; echo err >&2; exit 3");
  EXPECT_TRUE(alive(child.pid));
  caf::anon_send(host, write_atom::value, child.id, std::string{"hello\n"});
  ASSERT_TRUE(heard->wait([](const story& now) { return now.written == 6; }));
  caf::anon_send(host, close_input_atom::value, child.id);
  ASSERT_TRUE(hears_exits(1));
  auto end = heard->get();
  EXPECT_EQ(end.out, "hello\n");
  EXPECT_EQ(end.err, "err\n");
  EXPECT_EQ(end.exits[0], (child_exited{child.id, 3, 0}));
  EXPECT_FALSE(end.output_after_exit);
}

TEST_F(process_host_test, a_child_that_cannot_be_started_is_an_error) {
  process_spec spec;
  spec.argv = {"no-such-program"};
  auto started = spawn(spec, owner);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, errc::not_found);
  EXPECT_NE(started.error().message.find("no-such-program"), std::string::npos);
}

TEST_F(process_host_test, signals_reach_the_whole_group) {
  auto child = spawn("sleep 300 & echo $! >&2; wait");
  ASSERT_TRUE(heard->wait([](const story& now) { return !now.err.empty(); }));
  auto grandchild = static_cast<pid_t>(std::stoi(heard->get().err));
  caf::anon_send(host, signal_atom::value, child.id, std::int32_t{SIGTERM});
  ASSERT_TRUE(hears_exits(1));
  EXPECT_EQ(heard->get().exits[0], (child_exited{child.id, 128 + SIGTERM, SIGTERM}));
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
}

TEST_F(process_host_test, a_flood_waits_for_a_slow_owner) {
  auto child = spawn("exec yes");
  ASSERT_TRUE(heard->wait([&](const story& now) { return now.out.size() == bounds.read_ahead; }));
  EXPECT_FALSE(
      heard->wait([&](const story& now) { return now.out.size() > bounds.read_ahead; }, 300ms));
  caf::anon_send(host, credit_atom::value, child.id, stream_id::out, std::uint64_t{1000});
  EXPECT_TRUE(
      heard->wait([&](const story& now) { return now.out.size() == bounds.read_ahead + 1000; }));
  caf::anon_send(host, signal_atom::value, child.id, std::int32_t{SIGKILL});
  caf::anon_send(host, credit_atom::value, child.id, stream_id::out, std::uint64_t{mebibyte});
  EXPECT_TRUE(hears_exits(1));
}

TEST_F(process_host_test, the_death_of_an_owner_kills_all_its_children_with_their_groups) {
  auto first = spawn("trap '' TERM; sleep 300 & echo $! >&2; wait");
  ASSERT_TRUE(heard->wait([](const story& now) { return !now.err.empty(); }));
  auto grandchild = static_cast<pid_t>(std::stoi(heard->get().err));
  auto second = spawn("exec yes");
  auto bystander = system.spawn(listen, std::make_shared<monitored<story>>());
  auto others = spawn(shell("exec sleep 300"), bystander);
  caf::anon_send_exit(owner, caf::exit_reason::kill);
  EXPECT_TRUE(eventually([&] { return !alive(first.pid) && !alive(second.pid); }));
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
  EXPECT_TRUE(alive(others->pid));
  caf::anon_send_exit(bystander, caf::exit_reason::kill);
  EXPECT_TRUE(eventually([&] { return !alive(others->pid); }));
}

TEST_F(process_host_test, an_owner_whose_other_child_has_ended_is_still_watched) {
  auto lasting = spawn("exec sleep 300");
  spawn("exit 0");
  ASSERT_TRUE(hears_exits(1));
  // Whatever the host does at the end of a child, it has done by this answer.
  ASSERT_TRUE(command("true"));
  caf::anon_send_exit(owner, caf::exit_reason::kill);
  EXPECT_TRUE(eventually([&] { return !alive(lasting.pid); }));
}

TEST_F(process_host_test, an_owner_one_of_whose_children_did_not_start_is_still_watched) {
  auto lasting = spawn("exec sleep 300");
  process_spec broken;
  broken.argv = {"no-such-program"};
  EXPECT_FALSE(spawn(broken, owner));
  caf::anon_send_exit(owner, caf::exit_reason::kill);
  EXPECT_TRUE(eventually([&] { return !alive(lasting.pid); }));
}

TEST_F(process_host_test, a_child_for_an_owner_that_is_dead_does_not_live_and_is_answered) {
  caf::anon_send_exit(owner, caf::exit_reason::kill);
  caf::scoped_actor self{system};
  self->wait_for(owner);
  temporary_folder folder;
  auto script = "echo $$ >" + (folder / "pid") + "; exec sleep 300";
  auto begun = std::chrono::steady_clock::now();
  auto started = spawn(shell(script), owner);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, patience / 2);
  if (started) {
    EXPECT_TRUE(eventually([&] { return !alive(started->pid); }));
  } else {
    EXPECT_EQ(started.error().code, errc::closed);
    // It may have got as far as its first line, but no further.
    EXPECT_TRUE(command("sleep 0.3"));
    auto told = content_of(folder / "pid");
    EXPECT_TRUE(told.empty() || !alive(static_cast<pid_t>(std::stoi(told))));
  }
}

TEST_F(process_host_test, requests_about_children_that_are_gone_or_never_were_do_nothing) {
  auto child = spawn("exit 0");
  ASSERT_TRUE(hears_exits(1));
  for (child_id id : {child.id, child_id{0}, child_id{999}}) {
    caf::anon_send(host, write_atom::value, id, std::string{"x"});
    caf::anon_send(host, signal_atom::value, id, std::int32_t{SIGKILL});
    caf::anon_send(host, credit_atom::value, id, stream_id::out, std::uint64_t{10});
    caf::anon_send(host, close_input_atom::value, id);
  }
  EXPECT_TRUE(command("true"));
  EXPECT_EQ(heard->get().written, 0u);
}

TEST_F(process_host_test, a_command_gets_its_input_and_gives_both_streams_and_its_code) {
  auto result = command("cat; echo err >&2; exit 4", "input");
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, (finished_process{4, "input", "err\n"}));
}

TEST_F(process_host_test, a_commands_output_is_cut_at_a_mebibyte_and_it_is_not_blocked) {
  auto result = command("head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; exit 5");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 5);
  EXPECT_EQ(result->out.size(), mebibyte);
  EXPECT_EQ(result->err.size(), mebibyte);
}

TEST_F(process_host_test, a_command_that_does_not_read_a_large_input_ends_all_the_same) {
  auto result = command("exit 6", std::string(4 * mebibyte, 'x'));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 6);
}

TEST_F(process_host_test, a_command_is_killed_at_its_deadline_with_its_group) {
  temporary_folder folder;
  auto script = "trap '' TERM; sleep 300 & echo $! >" + (folder / "pid") + "; wait; sleep 300";
  auto begun = std::chrono::steady_clock::now();
  auto result = command(script, "", 300ms);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, errc::timeout);
  EXPECT_NE(result.error().message.find("sh"), std::string::npos);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 300ms);
  if (auto told = content_of(folder / "pid"); !told.empty()) {
    EXPECT_TRUE(eventually([&] { return !alive(static_cast<pid_t>(std::stoi(told))); }));
  }
}

TEST_F(process_host_test, a_command_whose_grandchild_escapes_and_writes_for_ever_still_ends) {
  temporary_folder folder;
  auto script = "setsid yes & echo $! >" + (folder / "pid") + "; exec sleep 300";
  auto result = command(script, "", 500ms);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, errc::timeout);
  if (auto told = content_of(folder / "pid"); !told.empty()) {
    ::kill(static_cast<pid_t>(std::stoi(told)), SIGKILL);
  }
}

TEST_F(process_host_test, a_command_that_cannot_be_started_is_an_error) {
  process_spec spec;
  spec.argv = {"no-such-program"};
  auto result = ask<finished_process>(command_atom::value, spec, std::string{}, in(patience));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, errc::not_found);
}

TEST_F(process_host_test, commands_run_side_by_side) {
  monitored<std::vector<std::string>> results;
  caf::scoped_actor self{system};
  for (int i = 0; i < 20; ++i) {
    system.spawn([&results, i, host = host](caf::event_based_actor* asking) {
      asking
          ->request(host, patience, command_atom::value, shell("cat"), std::to_string(i),
                    in(patience))
          .then(
              [&](const finished_process& end) {
                results.change([&](auto& all) { all.push_back(end.out); });
              },
              [&](const caf::error&) {
                results.change([](auto& all) { all.push_back("failed"); });
              });
    });
  }
  ASSERT_TRUE(results.wait([](const auto& all) { return all.size() == 20; }));
  auto all = results.get();
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(std::count(all.begin(), all.end(), "failed"), 0);
}

TEST_F(process_host_test, marked_processes_are_found_and_killed_wherever_they_went) {
  auto mark = "test-" + std::to_string(::getpid());
  auto marked = [&](const std::string& value) {
    auto spec = shell("setsid sleep 300 & echo $! >&2; exec sleep 300");
    spec.env.push_back(std::string{io::child_marker} + "=" + value);
    return spec;
  };
  // A process that is just executing another program has no environment for a moment.
  auto killed = [&](const std::string& value) {
    std::uint32_t count = 0;
    eventually([&] {
      count += ask<std::uint32_t>(kill_marked_atom::value, value).value_or(99);
      return count >= 2;
    });
    return count;
  };
  auto child = spawn(marked(mark + "/1"), owner);
  ASSERT_TRUE(child);
  ASSERT_TRUE(heard->wait([](const story& now) { return !now.err.empty(); }));
  auto escaped = static_cast<pid_t>(std::stoi(heard->get().err));
  auto other = spawn(marked(mark + "/12"), owner);
  ASSERT_TRUE(other);
  // Its own background process is there, too.
  ASSERT_TRUE(heard->wait(
      [](const story& now) { return std::count(now.err.begin(), now.err.end(), '\n') == 2; }));
  EXPECT_EQ(ask<std::uint32_t>(kill_marked_atom::value, mark).value_or(99), 0u);
  EXPECT_EQ(killed(mark + "/1"), 2u);
  EXPECT_TRUE(eventually([&] { return !alive(child->pid) && !alive(escaped); }));
  EXPECT_TRUE(alive(other->pid));
  EXPECT_EQ(killed(mark + "/12"), 2u);
}

} // namespace
} // namespace bulkhead
