#define CAF_SUITE admission

#include "actors/admission.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/session_world.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using namespace std::chrono_literals;

namespace {

/// What became of one request for a ticket.
struct application {
  std::optional<std::uint64_t> ticket;
  std::optional<error> failure;
  bool pending() const { return !ticket && !failure; }
};

using application_ptr = std::shared_ptr<application>;

struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    env->config->concurrent_runs = 2;
    env->bounds.admission_queue = 3;
    rules = admission_for_one(env);
    desk = sys.spawn(bulkhead::admission, rules);
    consume_messages();
  }

  ~fixture() override {
    for (const auto& holder : holders) {
      caf::anon_send_exit(holder, caf::exit_reason::kill);
    }
    caf::anon_send_exit(desk, caf::exit_reason::kill);
    consume_messages();
  }

  /// An actor that asks for tickets when told to.
  caf::actor make_holder() {
    auto behave = [this](caf::event_based_actor* holder) -> caf::behavior {
      return {[this, holder](admit_atom, const std::string& tenant, deadline due,
                             std::uint64_t number) {
        auto into = asked[number - 1];
        holder->request(desk, caf::infinite, admit_atom::value, tenant, due)
            .then([into](std::uint64_t ticket) { into->ticket = ticket; },
                  [into](const caf::error& reason) { into->failure = from_caf(reason, "test"); });
      }};
    };
    holders.push_back(sys.spawn(behave));
    return holders.back();
  }

  application_ptr ask(const caf::actor& holder, std::chrono::milliseconds patience = 1h) {
    asked.push_back(std::make_shared<application>());
    caf::anon_send(holder, admit_atom::value, tenant, deadline::at(sched.clock().now() + patience),
                   static_cast<std::uint64_t>(asked.size()));
    consume_messages();
    return asked.back();
  }

  application_ptr ask(std::chrono::milliseconds patience = 1h) {
    return ask(make_holder(), patience);
  }

  application_ptr ask_as(const std::string& who) {
    tenant = who;
    return ask();
  }

  /// Instead of the rules for one user: `all` runs in all, and a quota for each tenant.
  void share(std::size_t all, std::map<std::string, run_quota> quotas) {
    caf::anon_send_exit(desk, caf::exit_reason::kill);
    rules.runs = [all] { return all; };
    rules.quota_of = [quotas](const std::string& who) { return quotas.at(who); };
    rules.wall_clock = [this] {
      return std::chrono::system_clock::time_point{sched.clock().now() - began};
    };
    desk = sys.spawn(bulkhead::admission, rules);
    consume_messages();
  }

  void release(const application_ptr& from) {
    caf::anon_send(desk, release_atom::value, *from->ticket);
    consume_messages();
  }

  void kill(const caf::actor& holder) {
    caf::anon_send_exit(holder, caf::exit_reason::kill);
    consume_messages();
  }

  void pass(std::chrono::milliseconds time) {
    advance_time(time);
    consume_messages();
  }

  std::shared_ptr<environment> env = test_environment();
  admission_rules rules;
  admission_impl_actor desk;
  std::string tenant = "local";
  std::chrono::steady_clock::time_point began = sched.clock().now();
  std::vector<caf::actor> holders;
  std::vector<application_ptr> asked;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(admission_tests, fixture)

CAF_TEST(so_many_run_and_the_next_wait_in_order) {
  auto first = ask();
  auto second = ask();
  auto third = ask();
  auto fourth = ask();
  CAF_REQUIRE(first->ticket && second->ticket);
  CAF_CHECK(*first->ticket != *second->ticket);
  CAF_CHECK(third->pending());
  release(second);
  CAF_CHECK(third->ticket);
  CAF_CHECK(fourth->pending());
  release(first);
  CAF_CHECK(fourth->ticket);
}

CAF_TEST(a_full_queue_refuses_at_once_and_says_how_full_it_is) {
  for (int i = 0; i < 5; ++i) {
    ask();
  }
  auto sixth = ask();
  CAF_REQUIRE(sixth->failure);
  CAF_CHECK(sixth->failure->code == errc::overloaded);
  CAF_CHECK(sixth->failure->message.find("2 runs") != std::string::npos);
  CAF_CHECK(sixth->failure->message.find("3 wait") != std::string::npos);
  for (std::size_t i = 2; i < 5; ++i) {
    CAF_CHECK(asked[i]->pending());
  }
  // A place that becomes free serves those who wait, and then others.
  release(asked[0]);
  CAF_CHECK(asked[2]->ticket);
  CAF_CHECK(ask()->pending());
}

CAF_TEST(who_waits_until_the_deadline_is_refused_then_and_the_others_move_up) {
  auto first = ask();
  ask();
  auto hasty = ask(5s);
  auto patient = ask(1h);
  pass(4s);
  CAF_CHECK(hasty->pending());
  pass(2s);
  CAF_REQUIRE(hasty->failure);
  CAF_CHECK(hasty->failure->code == errc::overloaded);
  CAF_CHECK(patient->pending());
  release(first);
  CAF_CHECK(patient->ticket);
}

CAF_TEST(the_deadline_of_who_was_admitted_means_nothing_any_more) {
  auto first = ask();
  ask();
  auto third = ask(5s);
  release(first);
  CAF_REQUIRE(third->ticket);
  pass(10s);
  CAF_CHECK(!third->failure);
  CAF_CHECK(ask()->pending());
}

CAF_TEST(a_deadline_that_has_passed_is_refused_unless_there_is_room) {
  CAF_CHECK(ask(0s)->ticket);
  CAF_CHECK(ask(0s)->ticket);
  auto third = ask(0s);
  pass(1ms);
  CAF_CHECK(third->failure);
}

CAF_TEST(a_ticket_given_back_twice_makes_room_once) {
  auto first = ask();
  ask();
  auto third = ask();
  auto fourth = ask();
  release(first);
  release(first);
  CAF_CHECK(third->ticket);
  CAF_CHECK(fourth->pending());
}

CAF_TEST(tickets_that_never_were_make_no_room) {
  ask();
  ask();
  auto third = ask();
  caf::anon_send(desk, release_atom::value, std::uint64_t{99});
  caf::anon_send(desk, release_atom::value, std::uint64_t{0});
  consume_messages();
  CAF_CHECK(third->pending());
}

CAF_TEST(a_holder_that_dies_gives_back_all_its_tickets) {
  auto holder = make_holder();
  ask(holder);
  ask(holder);
  auto third = ask();
  auto fourth = ask();
  kill(holder);
  CAF_CHECK(third->ticket);
  CAF_CHECK(fourth->ticket);
}

CAF_TEST(a_holder_that_gave_one_ticket_back_still_loses_the_others_when_it_dies) {
  auto holder = make_holder();
  auto first = ask(holder);
  ask(holder);
  release(first);
  ask();
  auto waiting = ask();
  CAF_CHECK(waiting->pending());
  kill(holder);
  CAF_CHECK(waiting->ticket);
}

CAF_TEST(who_dies_while_waiting_leaves_the_queue) {
  auto first = ask();
  ask();
  auto impatient = make_holder();
  ask(impatient);
  auto next = ask();
  kill(impatient);
  CAF_CHECK(next->pending());
  release(first);
  CAF_CHECK(next->ticket);
  // Nothing is held by the dead one: two run, so the next waits, and one release admits it.
  auto last = ask();
  CAF_CHECK(last->pending());
  release(next);
  CAF_CHECK(last->ticket);
}

CAF_TEST(a_holder_with_a_ticket_that_also_waits_loses_both) {
  auto holder = make_holder();
  auto first = ask(holder);
  ask();
  ask(holder, 5s);
  auto other = ask();
  pass(6s);
  kill(holder);
  CAF_CHECK(first->ticket);
  CAF_CHECK(other->ticket);
}

CAF_TEST(a_tenant_with_many_runs_does_not_delay_another_s_first) {
  share(2, {{"many", {2, 200, {}}}, {"few", {2, 5, {}}}});
  for (int i = 0; i < 100; ++i) {
    ask_as("many");
  }
  auto first = ask_as("few");
  CAF_CHECK(first->pending());
  release(asked[0]);
  CAF_REQUIRE(first->ticket);
  // Then they take turns.
  auto second = ask_as("few");
  auto third = ask_as("few");
  release(first);
  CAF_CHECK(second->ticket);
  release(second);
  CAF_CHECK(third->ticket);
  CAF_CHECK(asked[2]->pending());
  release(third);
  CAF_CHECK(asked[2]->ticket);
}

CAF_TEST(a_tenant_has_no_more_than_its_quota_of_places_and_of_the_queue) {
  share(5, {{"small", {1, 1, {}}}, {"large", {4, 2, {}}}});
  auto first = ask_as("small");
  CAF_CHECK(first->ticket);
  auto second = ask_as("small");
  CAF_CHECK(second->pending());
  CAF_CHECK_EQUAL(rules.load->waiting("small"), 1u);
  auto third = ask_as("small");
  CAF_REQUIRE(third->failure);
  CAF_CHECK(third->failure->code == errc::overloaded);
  // Another's is as empty as ever.
  CAF_CHECK(ask_as("large")->ticket);
  CAF_CHECK_EQUAL(rules.load->waiting("large"), 0u);
  release(first);
  CAF_CHECK(second->ticket);
  CAF_CHECK_EQUAL(rules.load->waiting("small"), 0u);
}

CAF_TEST(what_a_tenant_used_today_counts_until_midnight) {
  share(2, {{"busy", {1, 5, 60.0, 2.0}}, {"other", {1, 5, {}}}});
  auto first = ask_as("busy");
  pass(31s);
  release(first);
  auto second = ask_as("busy");
  CAF_REQUIRE(second->failure);
  CAF_CHECK(second->failure->code == errc::overloaded);
  CAF_CHECK(second->failure->message.find("62 CPU-seconds") != std::string::npos);
  CAF_CHECK(ask_as("other")->ticket);
  pass(24h);
  CAF_CHECK(ask_as("busy")->ticket);
}

CAF_TEST(turns_to_boot_go_round_the_tenants_and_nobody_is_refused) {
  caf::anon_send_exit(desk, caf::exit_reason::kill);
  auto boots = rules_for_boots();
  boots.runs = [] { return std::size_t{1}; };
  desk = sys.spawn(bulkhead::admission, boots);
  tenant = "ann";
  for (int i = 0; i < 500; ++i) {
    ask();
  }
  auto first = ask_as("bob");
  auto second = ask();
  CAF_CHECK(asked[0]->ticket);
  CAF_CHECK(first->pending());
  release(asked[0]);
  CAF_CHECK(first->ticket);
  release(first);
  CAF_CHECK(asked[1]->ticket);
  CAF_CHECK(second->pending());
  release(asked[1]);
  CAF_CHECK(second->ticket);
}

CAF_TEST_FIXTURE_SCOPE_END()
