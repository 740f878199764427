#define CAF_SUITE python_sessions

#include "actors/python_sessions.hpp"

#include <memory>
#include <string>
#include <vector>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "protocol/content_digest.hpp"
#include "tests/support/activity_log.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/invocation_world.hpp"
#include "tests/support/session_world.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using namespace std::chrono_literals;

namespace {

/// What a client got for a claim.
struct outcome {
  std::vector<session_lease> leases;
  std::vector<errc> failures;

  const session_lease& lease() const { return leases.at(0); }
  errc failure() const { return failures.empty() ? errc::none : failures.front(); }
};

/// The sessions, clients that claim them, and sandboxes that the test makes.
struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    env->config->sessions = 2;
    sessions = sys.spawn(python_sessions, env);
  }

  ~fixture() override {
    kill(sessions);
    for (const auto& actor : all) {
      kill(actor);
    }
  }

  template <class Handle>
  void kill(const Handle& handle) {
    caf::anon_send_exit(handle, caf::exit_reason::kill);
    consume_messages();
  }

  /// A client of its own claims a session.
  std::shared_ptr<outcome> claim_as(session_claim what) {
    auto to = std::make_shared<outcome>();
    what.due = deadline::at(sched.clock().now() + 30s);
    auto ask = sys.spawn([=, sessions = sessions](caf::event_based_actor* self) {
      self->request(sessions, caf::infinite, lease_atom::value, what)
          .then([to](session_lease& lease) { to->leases.push_back(std::move(lease)); },
                [to](const caf::error& reason) {
                  to->failures.push_back(from_caf(reason, "claim").code);
                });
      self->become([](tick_atom) {});
    });
    all.push_back(ask);
    last_client = ask;
    consume_messages();
    return to;
  }

  std::shared_ptr<outcome> claim(const std::string& handle = "", const std::string& owner = "me",
                                 bool reset = false, std::vector<std::string> servers = {},
                                 std::vector<std::string> loadable = {}) {
    return claim_as({owner, handle, reset, std::move(servers), std::move(loadable), {}});
  }

  sandbox_actor make_sandbox() {
    logs.push_back(std::make_shared<sandbox_log>());
    sandbox_actor made = sys.spawn(scripted_sandbox, logs.back());
    all.push_back(caf::actor_cast<caf::actor>(made));
    return made;
  }

  void release(const session_lease& lease, const sandbox_actor& sandbox) {
    caf::anon_send(sessions, release_atom::value, lease.handle, lease.number, sandbox);
    consume_messages();
  }

  /// A run with a lease begins.
  void begin() {
    caf::anon_send(sessions, taken_atom::value);
    consume_messages();
  }

  /// A session whose first run is over; its handle.
  std::string idle_session(const sandbox_actor& sandbox, const std::string& owner = "me") {
    auto made = claim("", owner);
    release(made->lease(), sandbox);
    return made->lease().handle;
  }

  std::shared_ptr<environment> env = test_environment();
  python_sessions_actor sessions;
  std::vector<std::shared_ptr<sandbox_log>> logs;
  std::vector<caf::actor> all;
  caf::actor last_client;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(python_sessions_tests, fixture)

CAF_TEST(a_new_session_has_no_sandbox_and_the_next_run_gets_the_one_that_was_handed_back) {
  auto first = claim("", "me", false, {"a", "b"});
  CAF_CHECK(!first->lease().sandbox);
  auto box = make_sandbox();
  release(first->lease(), box);
  auto second = claim(first->lease().handle);
  CAF_CHECK(second->lease().sandbox == box);
  CAF_CHECK_EQUAL(second->lease().servers, (std::vector<std::string>{"a", "b"}));
}

CAF_TEST(foreign_and_ended_and_unknown_handles_are_refused_alike) {
  auto box = make_sandbox();
  auto handle = idle_session(box);
  CAF_CHECK_EQUAL(claim(handle, "another")->failure(), errc::closed);
  CAF_CHECK_EQUAL(claim("unknown")->failure(), errc::closed);
  auto lease = claim(handle)->lease();
  release(lease, sandbox_actor{});
  CAF_CHECK_EQUAL(claim(handle)->failure(), errc::closed);
}

CAF_TEST(other_servers_than_the_session_has_are_refused) {
  auto made = claim("", "me", false, {"a"});
  release(made->lease(), make_sandbox());
  CAF_CHECK_EQUAL(claim(made->lease().handle, "me", false, {"b"})->failure(), errc::denied);
  CAF_CHECK_EQUAL(claim(made->lease().handle, "me", false, {"a"})->leases.size(), 1u);
}

CAF_TEST(what_a_session_may_load_is_fixed_when_it_is_made) {
  auto made = claim("", "me", false, {"a"}, {"a", "b"});
  release(made->lease(), make_sandbox());
  auto again = claim(made->lease().handle, "me", false, {"b"}, {"c"});
  CAF_REQUIRE_EQUAL(again->leases.size(), 1u);
  CAF_CHECK(again->lease().servers == std::vector<std::string>{"a"});
  CAF_CHECK(again->lease().loadable == (std::vector<std::string>{"a", "b"}));
  release(again->lease(), make_sandbox());
  CAF_CHECK_EQUAL(claim(made->lease().handle, "me", false, {"c"}, {"c"})->failure(), errc::denied);
}

CAF_TEST(claims_of_a_session_wait_in_order) {
  auto made = claim();
  auto handle = made->lease().handle;
  auto second = claim(handle);
  auto third = claim(handle);
  CAF_CHECK(second->leases.empty() && third->leases.empty());
  auto box = make_sandbox();
  release(made->lease(), box);
  CAF_REQUIRE_EQUAL(second->leases.size(), 1u);
  CAF_CHECK(third->leases.empty());
  release(second->lease(), box);
  CAF_CHECK_EQUAL(third->leases.size(), 1u);
}

CAF_TEST(claims_that_wait_are_few_and_not_for_long) {
  auto made = claim();
  auto handle = made->lease().handle;
  auto waiting = claim(handle);
  for (std::size_t i = 1; i < python_sessions_state::most_waiting; ++i) {
    claim(handle);
  }
  CAF_CHECK_EQUAL(claim(handle)->failure(), errc::overloaded);
  advance_time(30s);
  consume_messages();
  CAF_CHECK_EQUAL(waiting->failure(), errc::timeout);
}

CAF_TEST(a_lost_session_refuses_those_who_wait_for_it) {
  auto made = claim();
  auto second = claim(made->lease().handle);
  release(made->lease(), sandbox_actor{});
  CAF_CHECK_EQUAL(second->failure(), errc::closed);
}

CAF_TEST(a_stale_release_changes_nothing_and_its_sandbox_ends) {
  auto made = claim();
  auto box = make_sandbox();
  release(made->lease(), box);
  auto second = claim(made->lease().handle);
  release(made->lease(), sandbox_actor{});
  auto stray = make_sandbox();
  release(made->lease(), stray);
  CAF_CHECK_EQUAL(logs[0]->ends, 0);
  CAF_CHECK_EQUAL(logs[1]->ends, 1);
  release(second->lease(), box);
  CAF_CHECK_EQUAL(claim(made->lease().handle)->leases.size(), 1u);
}

CAF_TEST(a_reset_costs_nothing_before_the_run_begins) {
  auto box = make_sandbox();
  auto handle = idle_session(box);
  auto fresh = claim(handle, "me", true);
  CAF_CHECK(fresh->lease().reset);
  CAF_CHECK(fresh->lease().sandbox == box);
  release(fresh->lease(), box);
  CAF_CHECK_EQUAL(logs[0]->ends, 0);
  auto again = claim(handle);
  CAF_CHECK(!again->lease().reset);
  CAF_CHECK(again->lease().sandbox == box);
}

CAF_TEST(the_idle_session_unused_for_longest_makes_room) {
  auto first = idle_session(make_sandbox());
  advance_time(1s);
  auto second = idle_session(make_sandbox());
  advance_time(1s);
  auto lease = claim(first)->lease();
  release(lease, lease.sandbox);
  claim();
  begin();
  CAF_CHECK_EQUAL(logs[1]->ends, 1);
  CAF_CHECK_EQUAL(claim(second)->failure(), errc::closed);
  CAF_CHECK_EQUAL(claim(first)->leases.size(), 1u);
}

CAF_TEST(a_new_session_whose_run_never_begins_costs_no_other) {
  env->config->sessions = 1;
  auto first = idle_session(make_sandbox());
  auto fresh = claim();
  release(fresh->lease(), sandbox_actor{});
  CAF_CHECK_EQUAL(logs[0]->ends, 0);
  CAF_CHECK_EQUAL(claim(first)->leases.size(), 1u);
}

CAF_TEST(where_all_ran_at_once_there_are_no_more_than_allowed_afterwards) {
  env->config->sessions = 1;
  auto box = make_sandbox();
  auto first = idle_session(box);
  auto fresh = claim();
  auto old = claim(first);
  begin();
  CAF_CHECK_EQUAL(logs[0]->ends, 0);
  release(old->lease(), box);
  CAF_CHECK_EQUAL(logs[0]->ends, 1);
  release(fresh->lease(), make_sandbox());
  CAF_CHECK_EQUAL(logs[1]->ends, 0);
}

CAF_TEST(sessions_that_run_code_make_no_room) {
  claim();
  claim();
  CAF_CHECK_EQUAL(claim()->failure(), errc::overloaded);
}

CAF_TEST(no_session_is_made_where_none_is_allowed) {
  env->config->sessions = 0;
  CAF_CHECK_EQUAL(claim()->failure(), errc::overloaded);
}

CAF_TEST(an_idle_session_whose_sandbox_dies_is_lost) {
  auto box = make_sandbox();
  auto handle = idle_session(box);
  kill(box);
  CAF_CHECK_EQUAL(claim(handle)->failure(), errc::closed);
}

CAF_TEST(a_sandbox_that_died_as_its_run_ended_is_noticed) {
  auto box = make_sandbox();
  auto handle = idle_session(box);
  auto lease = claim(handle)->lease();
  kill(box);
  release(lease, box);
  CAF_CHECK_EQUAL(claim(handle)->failure(), errc::closed);
}

CAF_TEST(a_session_goes_on_for_a_client_that_comes_back_with_its_handle) {
  auto box = make_sandbox();
  auto handle = idle_session(box);
  kill(last_client);
  CAF_CHECK_EQUAL(logs[0]->ends, 0);
  auto again = claim(handle);
  CAF_CHECK(again->lease().sandbox == box);
}

CAF_TEST(a_session_is_lost_with_who_runs_code_in_it) {
  auto made = claim();
  kill(last_client);
  CAF_CHECK_EQUAL(claim(made->lease().handle)->failure(), errc::closed);
}

CAF_TEST(who_died_while_it_waited_gets_no_lease) {
  auto made = claim();
  auto box = make_sandbox();
  auto handle = made->lease().handle;
  claim(handle);
  kill(last_client);
  auto third = claim(handle);
  release(made->lease(), box);
  CAF_CHECK_EQUAL(third->leases.size(), 1u);
}

CAF_TEST(the_number_of_sessions_is_told) {
  watched_board watched;
  env->activity = watched.board->tenant("alpha");
  auto count = [&] { return watched.board->tenants().at(0).sessions; };
  auto sandbox = make_sandbox();
  idle_session(sandbox);
  CAF_CHECK(count() == 1u);
  auto second = claim();
  CAF_CHECK(count() == 2u);
  kill(sandbox);
  CAF_CHECK(count() == 1u);
  // What an actor that failed had is lost with it.
  kill(sessions);
  sessions = sys.spawn(python_sessions, env);
  consume_messages();
  CAF_CHECK(count() == 0u);
  env->activity = no_activity();
}

CAF_TEST(sessions_are_told_by_names_that_open_none) {
  auto at = 1'000ms;
  env->wall_clock = [&at] { return std::chrono::system_clock::time_point{at}; };
  auto idle = idle_session(make_sandbox(), "ann");
  at = 2'000ms;
  auto busy = claim("", "me", false, {"files"});
  std::vector<session_status> told;
  sys.spawn([&told, to = sessions](caf::event_based_actor* self) {
    self->request(to, caf::infinite, status_atom::value)
        .then([&told](const std::vector<session_status>& all) { told = all; });
  });
  consume_messages();
  CAF_REQUIRE(told.size() == 2u);
  CAF_CHECK((told[0] ==
             session_status{session_name(busy->lease().handle), "me", {"files"}, true, 2'000}));
  CAF_CHECK((told[1] == session_status{session_name(idle), "ann", {}, false, 1'000}));
  CAF_CHECK(told[1].session.find(idle) == std::string::npos);
}

CAF_TEST_FIXTURE_SCOPE_END()
