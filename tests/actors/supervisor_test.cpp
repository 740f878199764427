#define CAF_SUITE supervisor

#include "actors/supervisor.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <caf/all.hpp>

#include "actors/admission.hpp"
#include "actors/python_sessions.hpp"
#include "actors/tool_library.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/invocation_world.hpp"
#include "tests/support/scripted_process_host.hpp"
#include "tests/support/scripted_store.hpp"
#include "tests/support/session_world.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using namespace std::chrono_literals;

namespace {

/// A session that stops at once, or never.
struct scripted_session {
  bool hangs = false;
  int stops = 0;
};

struct session_state {
  explicit session_state(mcp_session_actor::pointer) {}
  std::vector<caf::typed_response_promise<caf::ok_atom>> promises;
  static inline const char* name = "scripted-session";
};

mcp_session_actor::behavior_type behave(mcp_session_actor::stateful_pointer<session_state> self,
                                        std::shared_ptr<scripted_session> script) {
  return {
      [](const run_progress&) {},
      [](const client_question& question) -> caf::result<std::string> {
        return to_caf(errc::unavailable, question.method);
      },
      [](message_atom, const std::string&) {},
      [](message_atom, const std::string&, const trace_context&) {},
      [](refuse_atom, const error&) {},
      [](catalogue_atom) {},
      [self, script](stop_atom) {
        ++script->stops;
        auto promise = self->make_response_promise<caf::ok_atom>();
        if (script->hangs) {
          self->state.promises.push_back(promise);
        } else {
          promise.deliver(caf::ok_atom::value);
          self->quit();
        }
        return promise;
      },
  };
}

http_host_actor::behavior_type silent_http_host(http_host_actor::pointer) {
  return {
      [](call_atom, const http_request& request, deadline) -> caf::result<http_response> {
        return to_caf(errc::unavailable, request.url);
      },
      [](open_atom, exchange_id, const http_request&, const http_owner_actor&) {},
      [](credit_atom, exchange_id, std::uint64_t) {},
      [](cancel_atom, exchange_id) {},
  };
}

struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    registry->stop.answer = caf::ok_atom::value;
    volumes->stop.answer = caf::ok_atom::value;
    plan.env = env;
    plan.services = services;
    plan.start_processes = [this]() -> process_host_actor {
      return started("processes", sys.spawn(scripted_process_host, processes));
    };
    plan.start_http = [this]() -> http_host_actor {
      return started("http", http_host_actor{sys.spawn(silent_http_host)});
    };
    plan.start_volumes = [this]() -> volume_manager_actor {
      return started("volumes", sys.spawn(scripted_volumes, volumes));
    };
    plan.start_runtime = [this]() -> container_runtime_actor {
      return started("runtime", sys.spawn(scripted_runtime, runtime));
    };
    plan.start_registry = [this]() -> client_registry_actor {
      return started("registry", sys.spawn(scripted_registry, registry));
    };
    plan.start_library = [this]() -> tool_library_actor {
      return started("library", tool_library_actor{sys.spawn(tool_library, env, std::string{})});
    };
    plan.start_store = [this]() -> artifact_store_actor {
      return started("store", artifact_store_actor{
                                  sys.spawn(scripted_store, std::make_shared<store_script>())});
    };
    plan.start_admission = [this]() -> admission_actor {
      return started("admission",
                     admission_actor{sys.spawn(bulkhead::admission, admission_for_one(env))});
    };
    plan.start_sessions = [this]() -> python_sessions_actor {
      return started("sessions", python_sessions_actor{sys.spawn(python_sessions, env)});
    };
    plan.about_to_stop = [this] { warned_before.push_back(registry->stop.asked); };
    plan.fatal = [this](const std::string& what) { fatal.push_back(what); };
    root = sys.spawn(supervisor, plan);
    consume_messages();
  }

  ~fixture() override {
    kill(root);
    for (const auto& actor : all) {
      kill(actor);
    }
  }

  template <class Handle>
  Handle started(const std::string& what, Handle handle) {
    order.push_back(what);
    all.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  }

  template <class Handle>
  void kill(const Handle& handle) {
    caf::anon_send_exit(handle, caf::exit_reason::kill);
    consume_messages();
  }

  /// A run without servers begins.
  invocation_actor start_run(const std::string& id) {
    registry->catalogue.answer = catalogue_ptr{std::make_shared<server_catalogue>()};
    run_request request;
    request.id = id;
    request.timeout = 30s;
    auto run = make_run_starter(sys, env, services, root)(request);
    all.push_back(caf::actor_cast<caf::actor>(run));
    all.push_back(sys.spawn([run](caf::event_based_actor* asking) {
      asking->request(run, caf::infinite, run_atom::value)
          .then([](const run_answer&) {}, [](const caf::error&) {});
    }));
    consume_messages();
    return run;
  }

  std::shared_ptr<scripted_session> add_session(bool hangs) {
    auto script = std::make_shared<scripted_session>();
    script->hangs = hangs;
    mcp_session_actor session = sys.spawn(behave, script);
    all.push_back(caf::actor_cast<caf::actor>(session));
    caf::anon_send(root, create_atom::value, session);
    consume_messages();
    return script;
  }

  /// A sandbox that ends when killed and not when asked.
  sandbox_actor add_sandbox() {
    sandbox_actor box = sys.spawn(scripted_sandbox, sandboxes);
    all.push_back(caf::actor_cast<caf::actor>(box));
    caf::anon_send(root, create_atom::value, box);
    consume_messages();
    return box;
  }

  /// Asks for the stop; the answers are counted.
  void stop() {
    all.push_back(sys.spawn([this](caf::event_based_actor* asking) {
      asking->request(root, caf::infinite, stop_atom::value)
          .then([this](caf::ok_atom) { ++stopped; }, [](const caf::error&) {});
    }));
    consume_messages();
  }

  void pass(std::chrono::milliseconds time) {
    constexpr auto step = 50ms;
    for (; time > 0ms; time -= step) {
      advance_time(std::min<std::chrono::milliseconds>(time, step));
      consume_messages();
    }
  }

  template <class T>
  void open(gate<T>& which) {
    which.held = false;
    which.release();
    consume_messages();
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<service_directory> services = std::make_shared<service_directory>();
  std::shared_ptr<process_script> processes = std::make_shared<process_script>();
  std::shared_ptr<volume_script> volumes = std::make_shared<volume_script>();
  std::shared_ptr<runtime_script> runtime = std::make_shared<runtime_script>();
  std::shared_ptr<registry_script> registry = std::make_shared<registry_script>();
  std::shared_ptr<sandbox_log> sandboxes = std::make_shared<sandbox_log>();
  supervisor_plan plan;
  supervisor_actor root;
  std::vector<std::string> order;
  std::vector<caf::actor> all;
  std::vector<std::string> fatal;
  int stopped = 0;
  std::vector<std::size_t> warned_before; ///< how many registries were stopped by then
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(supervisor_tests, fixture)

CAF_TEST(the_tree_starts_in_the_order_of_the_plan) {
  CAF_CHECK(order ==
            (std::vector<std::string>{"processes", "http", "volumes", "runtime", "registry",
                                      "library", "store", "admission", "sessions"}));
  auto now = services->get();
  CAF_CHECK(now.processes && now.volumes && now.runtime && now.registry && now.library &&
            now.admission && now.sessions);
  CAF_CHECK(fatal.empty());
}

CAF_TEST(one_that_runs_no_code_has_few_parts_and_stops_with_its_registry) {
  order.clear();
  supervisor_plan few;
  few.env = env;
  few.services = std::make_shared<service_directory>();
  few.start_processes = plan.start_processes;
  few.start_http = plan.start_http;
  few.start_volumes = plan.start_volumes;
  few.start_registry = plan.start_registry;
  few.fatal = plan.fatal;
  supervisor_actor small = sys.spawn(supervisor, few);
  all.push_back(caf::actor_cast<caf::actor>(small));
  consume_messages();
  CAF_CHECK(order == (std::vector<std::string>{"processes", "http", "volumes", "registry"}));
  kill(few.services->get().registry);
  CAF_CHECK_EQUAL(order.size(), 5u);
  registry->stop.held = true;
  all.push_back(sys.spawn([this, small](caf::event_based_actor* asking) {
    asking->request(small, caf::infinite, stop_atom::value)
        .then([this](caf::ok_atom) { ++stopped; }, [](const caf::error&) {});
  }));
  consume_messages();
  CAF_CHECK_EQUAL(stopped, 0);
  open(registry->stop);
  CAF_CHECK_EQUAL(stopped, 1);
  CAF_CHECK_EQUAL(volumes->stop.asked, 1u);
  CAF_CHECK(fatal.empty());
}

CAF_TEST(a_lost_leaf_is_started_again_alone_and_its_new_handle_is_known) {
  auto before = services->get();
  kill(before.registry);
  CAF_CHECK_EQUAL(order.size(), 10u);
  CAF_CHECK_EQUAL(order.back(), "registry");
  auto after = services->get();
  CAF_CHECK(after.registry && after.registry != before.registry);
  CAF_CHECK(after.runtime == before.runtime);
  CAF_CHECK(after.volumes == before.volumes);
  // The second one is watched, too.
  kill(after.registry);
  CAF_CHECK_EQUAL(order.size(), 11u);
  CAF_CHECK(fatal.empty());
}

CAF_TEST(too_many_restarts_in_ten_minutes_end_the_process_and_old_ones_do_not_count) {
  for (int i = 0; i < 5; ++i) {
    kill(services->get().runtime);
    pass(1s);
  }
  CAF_CHECK_EQUAL(order.size(), 14u);
  CAF_CHECK(fatal.empty());
  advance_time(11min);
  consume_messages();
  for (int i = 0; i < 5; ++i) {
    kill(services->get().runtime);
  }
  CAF_CHECK_EQUAL(order.size(), 19u);
  CAF_CHECK(fatal.empty());
  kill(services->get().runtime);
  CAF_CHECK_EQUAL(order.size(), 19u);
  CAF_REQUIRE_EQUAL(fatal.size(), 1u);
  CAF_CHECK(fatal[0].find("container runtime") != std::string::npos);
}

CAF_TEST(each_leaf_has_a_budget_of_its_own) {
  for (int i = 0; i < 5; ++i) {
    kill(services->get().runtime);
    kill(services->get().registry);
    kill(services->get().volumes);
  }
  CAF_CHECK(fatal.empty());
  CAF_CHECK_EQUAL(order.size(), 24u);
}

CAF_TEST(losing_a_core_actor_is_fatal_at_once_and_told_once) {
  kill(services->get().processes);
  CAF_REQUIRE_EQUAL(fatal.size(), 1u);
  CAF_CHECK(fatal[0].find("process host") != std::string::npos);
  kill(services->get().admission);
  CAF_CHECK_EQUAL(fatal.size(), 1u);
  CAF_CHECK_EQUAL(order.size(), 9u);
}

CAF_TEST(losing_admission_is_fatal) {
  kill(services->get().admission);
  CAF_REQUIRE_EQUAL(fatal.size(), 1u);
  CAF_CHECK(fatal[0].find("admission") != std::string::npos);
}

CAF_TEST(losing_sessions_and_sandboxes_is_not_an_accident) {
  add_session(false);
  kill(all.back());
  kill(add_sandbox());
  CAF_CHECK(fatal.empty());
  CAF_CHECK_EQUAL(order.size(), 9u);
}

CAF_TEST(an_empty_tree_stops_at_once) {
  stop();
  CAF_CHECK_EQUAL(stopped, 1);
  CAF_CHECK_EQUAL(registry->stop.asked, 1u);
  CAF_CHECK_EQUAL(volumes->stop.asked, 1u);
}

CAF_TEST(every_request_to_stop_is_answered_also_after_the_stop) {
  registry->stop.held = true;
  stop();
  stop();
  CAF_CHECK_EQUAL(stopped, 0);
  open(registry->stop);
  CAF_CHECK_EQUAL(stopped, 2);
  stop();
  CAF_CHECK_EQUAL(stopped, 3);
  CAF_CHECK(warned_before == std::vector<std::size_t>{0});
  CAF_CHECK_EQUAL(registry->stop.asked, 1u);
  CAF_CHECK_EQUAL(volumes->stop.asked, 1u);
}

CAF_TEST(the_stages_come_one_after_another) {
  auto session = add_session(true);
  auto handle = all.back();
  auto box = add_sandbox();
  registry->stop.held = true;
  volumes->stop.held = true;
  stop();
  CAF_CHECK_EQUAL(session->stops, 1);
  CAF_CHECK_EQUAL(sandboxes->ends, 0);
  CAF_CHECK_EQUAL(registry->stop.asked, 0u);
  kill(handle);
  CAF_CHECK_EQUAL(sandboxes->ends, 1);
  CAF_CHECK_EQUAL(registry->stop.asked, 1u);
  open(registry->stop);
  CAF_CHECK_EQUAL(volumes->stop.asked, 0u);
  kill(box);
  CAF_CHECK_EQUAL(volumes->stop.asked, 1u);
  CAF_CHECK_EQUAL(stopped, 0);
  open(volumes->stop);
  CAF_CHECK_EQUAL(stopped, 1);
}

CAF_TEST(members_that_hang_cost_each_stage_its_budget_and_no_more) {
  add_session(true);
  add_sandbox();
  registry->stop.held = true;
  volumes->stop.held = true;
  stop();
  pass(400ms);
  CAF_CHECK_EQUAL(sandboxes->ends, 0);
  pass(200ms);
  CAF_CHECK_EQUAL(sandboxes->ends, 1);
  CAF_CHECK_EQUAL(registry->stop.asked, 1u);
  pass(14'800ms);
  CAF_CHECK_EQUAL(volumes->stop.asked, 0u);
  pass(200ms);
  CAF_CHECK_EQUAL(volumes->stop.asked, 1u);
  CAF_CHECK_EQUAL(stopped, 0);
  pass(400ms);
  CAF_CHECK_EQUAL(stopped, 1);
}

CAF_TEST(a_registry_that_cannot_stop_does_not_stop_the_stop) {
  kill(services->get().registry);
  auto broken = services->get().registry;
  registry->stop.refuse_with(errc::internal, "broken");
  stop();
  CAF_CHECK_EQUAL(stopped, 1);
}

CAF_TEST(what_is_made_while_stopping_is_ended_at_once) {
  auto box = add_sandbox();
  stop();
  CAF_CHECK_EQUAL(sandboxes->ends, 1);
  auto late_session = add_session(false);
  CAF_CHECK_EQUAL(late_session->stops, 1);
  auto late_box = add_sandbox();
  CAF_CHECK_EQUAL(sandboxes->ends, 2);
  kill(box);
  CAF_CHECK_EQUAL(stopped, 0);
  kill(late_box);
  CAF_CHECK_EQUAL(stopped, 1);
}

CAF_TEST(nothing_is_started_again_while_stopping) {
  add_sandbox();
  stop();
  kill(services->get().runtime);
  kill(services->get().processes);
  CAF_CHECK_EQUAL(order.size(), 9u);
  CAF_CHECK(fatal.empty());
}

CAF_TEST(a_session_that_died_before_it_was_known_holds_nothing_up) {
  auto script = std::make_shared<scripted_session>();
  mcp_session_actor session = sys.spawn(behave, script);
  kill(session);
  caf::anon_send(root, create_atom::value, session);
  consume_messages();
  stop();
  CAF_CHECK_EQUAL(stopped, 1);
}

CAF_TEST(runs_are_made_with_sandboxes_that_the_supervisor_knows) {
  volumes->run_folder.held = true;
  auto run = start_run("run-7");
  CAF_CHECK_EQUAL(volumes->made.size(), 1u);
  stop();
  // The sandbox waits for its folder, and the stop for the sandbox.
  CAF_CHECK_EQUAL(stopped, 0);
  volumes->run_folder.answer = "/run/folder";
  volumes->discard.answer = caf::ok_atom::value;
  open(volumes->run_folder);
  CAF_CHECK_EQUAL(stopped, 1);
  kill(run);
}

CAF_TEST(a_container_goes_also_when_driver_and_folders_were_started_again_meanwhile) {
  volumes->run_folder.answer = "/run/folder";
  volumes->discard.answer = caf::ok_atom::value;
  runtime->create.answer = container_handle{"id", "bulkhead-id", "/run/folder", 1, 4711, {}};
  runtime->destroy.answer = caf::ok_atom::value;
  auto run = start_run("run-7");
  CAF_CHECK_EQUAL(runtime->requests.size(), 1u);
  kill(services->get().runtime);
  kill(services->get().volumes);
  caf::anon_send(run, cancel_atom::value);
  consume_messages();
  CAF_CHECK_EQUAL(runtime->destroyed.size(), 1u);
  CAF_CHECK(volumes->discarded == volumes->made);
  stop();
  CAF_CHECK_EQUAL(stopped, 1);
}

CAF_TEST(a_run_takes_the_sandbox_that_waits_on_the_shelf) {
  auto log = std::make_shared<sandbox_log>();
  sandbox_actor waiting = sys.spawn(scripted_sandbox, log);
  all.push_back(caf::actor_cast<caf::actor>(waiting));
  services->shelf->put(waiting);
  start_run("run-7");
  start_run("run-8");
  CAF_REQUIRE_EQUAL(log->runs.size(), 1u);
  CAF_CHECK_EQUAL(log->runs[0].id, "run-7");
  // The other boots its own.
  CAF_CHECK_EQUAL(volumes->made.size(), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()
