#define CAF_SUITE sandbox_pool

#include "actors/sandbox_pool.hpp"

#include <caf/all.hpp>

#include "tests/support/actor_config.hpp"
#include "tests/support/invocation_world.hpp"
#include "tests/support/session_world.hpp"

// Its macros clash with everything else.
#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using namespace std::chrono_literals;

namespace {

/// A pool whose sandboxes and driver are scripted.
struct fixture : test_coordinator_fixture<actor_config> {
  struct made_one {
    sandbox_actor handle;
    std::shared_ptr<sandbox_log> log;
  };

  fixture() {
    runtime->stamp.answer = "image 1";
    driver = sys.spawn(scripted_runtime, runtime);
    env->config->pool = {2, 4, false};
  }

  ~fixture() override {
    kill(pool);
    for (const auto& each : made) {
      kill(each.handle);
    }
    kill(driver);
  }

  void start() {
    auto make = [this]() -> sandbox_actor {
      auto log = std::make_shared<sandbox_log>();
      log->boot = next_boot;
      made.push_back({sys.spawn(scripted_sandbox, log), log});
      return made.back().handle;
    };
    pool =
        sys.spawn(sandbox_pool, sandbox_pool_context{env, shelf, [this] { return driver; }, make});
    consume_messages();
  }

  /// A run starts: it takes from the shelf, and tells.
  sandbox_actor take() {
    auto taken = shelf->take();
    caf::anon_send(pool, taken_atom::value, taken != nullptr);
    consume_messages();
    return taken;
  }

  template <class Handle>
  void kill(const Handle& handle) {
    caf::anon_send_exit(handle, caf::exit_reason::kill);
    consume_messages();
  }

  void open(const made_one& which) {
    which.log->boot.held = false;
    which.log->boot.release();
    consume_messages();
  }

  void pass(std::chrono::seconds time) {
    for (; time > 0s; time -= 1s) {
      advance_time(1s);
      consume_messages();
    }
  }

  int ended() const {
    int count = 0;
    for (const auto& each : made) {
      count += each.log->ends;
    }
    return count;
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<runtime_script> runtime = std::make_shared<runtime_script>();
  std::shared_ptr<sandbox_shelf> shelf = std::make_shared<sandbox_shelf>();
  gate<caf::ok_atom> next_boot; ///< of sandboxes made from now on
  std::vector<made_one> made;
  container_runtime_actor driver;
  sandbox_pool_actor pool;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(sandbox_pool_tests, fixture)

CAF_TEST(nothing_is_booted_before_the_first_run) {
  start();
  pass(60s);
  CAF_CHECK(made.empty());
  CAF_CHECK_EQUAL(runtime->ensure.asked, 0u);
}

CAF_TEST(who_asks_for_it_has_the_floor_from_the_start_and_for_ever) {
  env->config->pool.from_start = true;
  start();
  CAF_CHECK_EQUAL(shelf->size(), 2u);
  pass(3600s);
  CAF_CHECK_EQUAL(shelf->size(), 2u);
  CAF_CHECK_EQUAL(made.size(), 2u);
}

CAF_TEST(the_first_run_fills_the_shelf_one_boot_at_a_time) {
  next_boot.held = true;
  start();
  CAF_CHECK(!take());
  CAF_REQUIRE_EQUAL(made.size(), 1u);
  CAF_CHECK_EQUAL(shelf->size(), 0u);
  open(made[0]);
  CAF_CHECK_EQUAL(shelf->size(), 1u);
  CAF_REQUIRE_EQUAL(made.size(), 2u);
  open(made[1]);
  // The floor, and one more because a run found nothing.
  open(made[2]);
  CAF_CHECK_EQUAL(shelf->size(), 3u);
  CAF_CHECK_EQUAL(made.size(), 3u);
}

CAF_TEST(what_is_taken_is_replaced) {
  start();
  take();
  auto full = shelf->size();
  auto first = take();
  CAF_CHECK(first == made[0].handle);
  CAF_CHECK_EQUAL(shelf->size(), full);
  auto second = take();
  CAF_CHECK(second == made[1].handle);
  CAF_CHECK_EQUAL(ended(), 0);
}

CAF_TEST(it_grows_with_demand_to_the_ceiling_and_shrinks_to_the_floor) {
  start();
  for (int i = 0; i < 10; ++i) {
    caf::anon_send(pool, taken_atom::value, false);
  }
  consume_messages();
  CAF_CHECK_EQUAL(shelf->size(), 4u);
  pass(70s);
  CAF_CHECK_EQUAL(shelf->size(), 3u);
  pass(300s);
  CAF_CHECK_EQUAL(shelf->size(), 2u);
  CAF_CHECK_EQUAL(ended(), 2);
}

CAF_TEST(after_a_long_time_without_runs_nothing_is_kept) {
  start();
  take();
  pass(800s);
  CAF_CHECK_EQUAL(shelf->size(), 2u);
  pass(200s);
  CAF_CHECK_EQUAL(shelf->size(), 0u);
  CAF_CHECK_EQUAL(ended(), static_cast<int>(made.size()));
  CAF_CHECK(!take());
  CAF_CHECK(shelf->size() >= 2);
}

CAF_TEST(one_that_dies_is_replaced) {
  start();
  take();
  auto full = shelf->size();
  auto before = made.size();
  kill(made[1].handle);
  CAF_CHECK_EQUAL(shelf->size(), full);
  CAF_CHECK_EQUAL(made.size(), before + 1);
}

CAF_TEST(sandboxes_that_keep_dying_are_not_booted_for_ever) {
  env->config->pool = {1, 1, true};
  start();
  for (int i = 0; i < 20; ++i) {
    kill(made.back().handle);
  }
  CAF_CHECK_EQUAL(made.size(), 5u);
  pass(3600s);
  CAF_CHECK_EQUAL(made.size(), 5u);
  take();
  CAF_CHECK_EQUAL(shelf->size(), 1u);
}

CAF_TEST(what_was_made_from_another_image_is_replaced) {
  start();
  take();
  auto full = shelf->size();
  runtime->stamp.answer = "image 2";
  pass(6s);
  CAF_CHECK_EQUAL(ended(), static_cast<int>(full));
  CAF_CHECK_EQUAL(shelf->size(), full);
  pass(60s);
  CAF_CHECK_EQUAL(made.size(), 2 * full);
}

CAF_TEST(an_image_that_changes_during_a_boot_makes_its_sandbox_stale) {
  env->config->pool = {1, 1, false};
  next_boot.held = true;
  start();
  take();
  runtime->stamp.answer = "image 2";
  next_boot.held = false;
  open(made.at(0));
  pass(6s);
  CAF_CHECK_EQUAL(made.at(0).log->ends, 1);
  CAF_CHECK_EQUAL(shelf->size(), 1u);
}

CAF_TEST(a_boot_that_fails_is_tried_again_at_the_next_run) {
  next_boot.refuse_with(errc::unavailable, "no engine");
  start();
  take();
  CAF_CHECK_EQUAL(made.size(), 1u);
  CAF_CHECK_EQUAL(ended(), 1);
  pass(60s);
  CAF_CHECK_EQUAL(made.size(), 1u);
  next_boot.answer = caf::ok_atom::value;
  take();
  CAF_CHECK(shelf->size() >= 2);
}

CAF_TEST(without_an_engine_nothing_is_booted) {
  runtime->ensure.refuse_with(errc::unavailable, "no engine");
  start();
  take();
  pass(60s);
  CAF_REQUIRE_EQUAL(made.size(), 1u);
  CAF_CHECK_EQUAL(made[0].log->boot.asked, 0u);
  CAF_CHECK_EQUAL(made[0].log->ends, 1);
}

CAF_TEST(a_pool_takes_over_what_one_before_it_left) {
  start();
  take();
  kill(pool);
  auto left = shelf->all();
  CAF_REQUIRE(!left.empty());
  start();
  CAF_CHECK_EQUAL(ended(), static_cast<int>(left.size()));
  CAF_CHECK_EQUAL(shelf->size(), 2u);
}

CAF_TEST_FIXTURE_SCOPE_END()
