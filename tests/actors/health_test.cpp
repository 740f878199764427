#define CAF_SUITE health

#include <filesystem>
#include <sstream>

#include <spdlog/sinks/ostream_sink.h>

#include "actors/errors.hpp"
#include "actors/health.hpp"
#include "tests/support/http_fixture.hpp"

/// /healthz and /readyz.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// What an actor that is asked does.
struct asked {
  bool silent = false;
  error failure{errc::none, {}};
  int times = 0;
  std::string stamp = "as it was";
  error probe_failure{errc::none, {}};
  int probes = 0;
};

using asked_ptr = std::shared_ptr<asked>;

template <class Actor, class T>
caf::result<T> answer(Actor* self, asked& script, T value) {
  ++script.times;
  if (script.silent) {
    auto promise = self->template make_response_promise<T>();
    self->state.kept.push_back(promise);
    return promise;
  }
  if (script.failure.code != errc::none) {
    return to_caf(script.failure);
  }
  return value;
}

struct tree_state {
  explicit tree_state(supervisor_actor::pointer) {}
  std::vector<caf::typed_response_promise<caf::ok_atom>> kept;
  static inline const char* name = "scripted-supervisor";
};

supervisor_actor::behavior_type tree(supervisor_actor::stateful_pointer<tree_state> self,
                                     asked_ptr script) {
  return {
      [self, script](ensure_atom) { return answer(self, *script, caf::ok_atom::value); },
      [](create_atom, const mcp_session_actor&) {},
      [](create_atom, const sandbox_actor&) {},
      [](stop_atom) { return caf::ok_atom::value; },
      [](tick_atom, std::uint64_t) {},
  };
}

struct runtime_state {
  explicit runtime_state(container_runtime_actor::pointer) {}
  std::vector<caf::typed_response_promise<runtime_report>> kept;
  static inline const char* name = "scripted-runtime";
};

container_runtime_actor::behavior_type
runtime(container_runtime_actor::stateful_pointer<runtime_state> self, asked_ptr script) {
  auto unused = [] { return to_caf(errc::internal, "not scripted"); };
  return {
      [self, script](ensure_atom) {
        runtime_report report;
        report.engine = "podman";
        report.version = "4.3.1";
        report.image = "localhost/box";
        return answer(self, *script, report);
      },
      [script](probe_atom) -> caf::result<runtime_report> {
        ++script->probes;
        return script->probe_failure.code != errc::none
                   ? caf::result<runtime_report>{to_caf(script->probe_failure)}
                   : caf::result<runtime_report>{runtime_report{}};
      },
      [=](create_atom, const container_request&,
          const child_owner_actor&) -> caf::result<container_handle> { return unused(); },
      [=](confine_atom, const container_handle&) -> caf::result<caf::ok_atom> { return unused(); },
      [=](classify_atom, const container_handle&, const child_exited&,
          const std::string&) -> caf::result<exit_verdict> { return unused(); },
      [script](stamp_atom) -> caf::result<std::string> { return script->stamp; },
      [=](destroy_atom, const container_handle&) -> caf::result<caf::ok_atom> { return unused(); },
      [=](sweep_atom) -> caf::result<sweep_report> { return unused(); },
      [=](stop_atom) -> caf::result<caf::ok_atom> { return unused(); },
  };
}

struct health_fixture : test_coordinator_fixture<http_config> {
  health_fixture() {
    auto pattern = (std::filesystem::temp_directory_path() / "bulkhead-health-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    folders = {{"state folder", folder}};
    for (const auto* name : {"alpha", "beta"}) {
      tree_scripts[name] = std::make_shared<asked>();
      runtime_scripts[name] = std::make_shared<asked>();
      trees.emplace_back(name, sys.spawn(tree, tree_scripts[name]));
      runtimes.push_back({name, "localhost/box", sys.spawn(runtime, runtime_scripts[name])});
    }
    start();
  }

  void start() {
    caf::anon_send_exit(watch, caf::exit_reason::kill);
    health_context context{[this] { return trees; },
                           [this] { return runtimes; },
                           [this] { return folders; },
                           [this] { return stopping; },
                           [this] { return more; },
                           std::make_shared<spdlog::logger>(
                               "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_text))};
    watch = sys.spawn(health, std::move(context));
    consume_messages();
  }

  ~health_fixture() override {
    caf::anon_send_exit(watch, caf::exit_reason::kill);
    for (const auto& [name, each] : trees) {
      caf::anon_send_exit(each, caf::exit_reason::kill);
    }
    for (const auto& each : runtimes) {
      caf::anon_send_exit(each.runtime, caf::exit_reason::kill);
    }
    consume_messages();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  template <class Atom>
  answer_ptr get(Atom atom) {
    auto recorded = std::make_shared<recorded_answer>();
    http_arrival arrival;
    arrival.reply = std::make_shared<recording_reply>(recorded);
    caf::anon_send(watch, atom, std::move(arrival));
    consume_messages();
    return recorded;
  }

  answer_ptr alive() { return get(status_atom::value); }
  answer_ptr ready() { return get(ensure_atom::value); }

  void pass(std::chrono::milliseconds time) {
    advance_time(time);
    consume_messages();
  }

  std::string folder;
  std::map<std::string, asked_ptr> tree_scripts;
  std::map<std::string, asked_ptr> runtime_scripts;
  std::vector<std::pair<std::string, supervisor_actor>> trees;
  std::vector<health_context::driver> runtimes;
  std::vector<std::pair<std::string, std::string>> folders;
  std::vector<health_check> more;
  std::ostringstream log_text;
  bool stopping = false;
  health_actor watch;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(health_tests, health_fixture)

CAF_TEST(all_is_well) {
  auto answer = alive();
  CAF_REQUIRE(answer->answered);
  CAF_CHECK_EQUAL(answer->whole.status, 200u);
  CAF_CHECK(answer->body()["status"] == "ok");
  CAF_CHECK(answer->body()["checks"].size() == 2);
  answer = ready();
  CAF_REQUIRE(answer->answered);
  CAF_CHECK_EQUAL(answer->whole.status, 200u);
  CAF_CHECK(answer->body()["status"] == "ok");
  CAF_CHECK(answer->body()["checks"].size() == 3);
  CAF_CHECK(answer->body()["checks"][0]["detail"] == "podman 4.3.1, image localhost/box");
}

CAF_TEST(actors_that_do_not_answer_within_a_second_are_dead) {
  tree_scripts["beta"]->silent = true;
  auto answer = alive();
  CAF_CHECK(!answer->answered);
  pass(std::chrono::milliseconds{1000});
  CAF_REQUIRE(answer->answered);
  CAF_CHECK_EQUAL(answer->whole.status, 503u);
  CAF_CHECK(answer->body()["checks"][0]["what"] == "actors of beta");
  CAF_CHECK(answer->body()["checks"][1]["status"] == "ok");
}

CAF_TEST(a_flood_of_questions_is_answered_by_one_look) {
  auto& script = *tree_scripts["alpha"];
  script.silent = true;
  std::vector<answer_ptr> answers;
  for (int i = 0; i < 50; ++i) {
    answers.push_back(alive());
  }
  CAF_CHECK_EQUAL(script.times, 1);
  pass(std::chrono::milliseconds{1000});
  for (const auto& each : answers) {
    CAF_CHECK(each->answered);
  }
  alive();
  CAF_CHECK_EQUAL(script.times, 1);
  script.silent = false;
  pass(std::chrono::milliseconds{2000});
  CAF_CHECK(alive()->whole.status == 200u);
  CAF_CHECK_EQUAL(script.times, 2);
}

CAF_TEST(a_runtime_that_is_unusable_is_told_with_what_to_do) {
  runtime_scripts["alpha"]->failure = {errc::unavailable, "there is no image; run: x"};
  auto answer = ready();
  CAF_CHECK_EQUAL(answer->whole.status, 200u);
  CAF_CHECK(answer->body()["status"] == "degraded");
  CAF_CHECK(answer->body()["checks"][0]["what"] == "container runtime of alpha");
  CAF_CHECK(answer->body()["checks"][0]["detail"] == "there is no image; run: x");
  CAF_CHECK(answer->body()["checks"][0]["remedy"] == "run: bulkhead doctor");
  runtime_scripts["beta"]->failure = {errc::unavailable, "there is no image"};
  pass(std::chrono::milliseconds{5000});
  answer = ready();
  CAF_CHECK_EQUAL(answer->whole.status, 503u);
  CAF_CHECK(answer->body()["status"] == "failing");
}

CAF_TEST(a_runtime_that_is_still_being_looked_for_is_not_ready) {
  runtime_scripts["alpha"]->silent = true;
  runtime_scripts["beta"]->silent = true;
  auto answer = ready();
  pass(std::chrono::milliseconds{3000});
  CAF_REQUIRE(answer->answered);
  CAF_CHECK_EQUAL(answer->whole.status, 503u);
  CAF_CHECK(answer->body()["checks"][0]["remedy"].get<std::string>().starts_with("wait"));
}

CAF_TEST(a_folder_that_is_not_there_is_told) {
  folders.emplace_back("runtime folder", folder + "/none");
  auto answer = ready();
  CAF_CHECK_EQUAL(answer->whole.status, 503u);
  CAF_CHECK(answer->body()["checks"][0]["what"] == "runtime folder");
  CAF_CHECK(answer->body()["checks"][0]["detail"] ==
            "can't write to " + folder + "/none: No such file or directory");
  // Looking leaves nothing behind.
  CAF_CHECK(std::filesystem::is_empty(folder));
}

CAF_TEST(what_stops_is_alive_and_not_ready) {
  stopping = true;
  CAF_CHECK(alive()->whole.status == 200u);
  CAF_CHECK(ready()->whole.status == 503u);
}

CAF_TEST(without_anything_to_ask_it_is_alive) {
  trees.clear();
  CAF_CHECK(alive()->whole.status == 200u);
}

CAF_TEST(an_image_that_is_removed_is_noticed_without_a_run) {
  CAF_CHECK(ready()->body()["status"] == "ok");
  CAF_CHECK(runtime_scripts["alpha"]->probes + runtime_scripts["beta"]->probes == 0);
  for (auto& [name, script] : runtime_scripts) {
    script->stamp = "another";
    script->probe_failure = {errc::unavailable, "there is no image; run: x"};
  }
  pass(std::chrono::milliseconds{5000});
  ready(); // sees that something has changed
  pass(std::chrono::milliseconds{5000});
  ready(); // looks, once for both
  CAF_CHECK(runtime_scripts["alpha"]->probes + runtime_scripts["beta"]->probes == 1);
  pass(std::chrono::milliseconds{5000});
  auto answer = ready();
  CAF_CHECK_EQUAL(answer->whole.status, 503u);
  CAF_CHECK(answer->body()["checks"][0]["detail"] == "there is no image; run: x");
  CAF_CHECK(log_text.str().find("no run of tenants with the image localhost/box") !=
            std::string::npos);
  // It is back.
  for (auto& [name, script] : runtime_scripts) {
    script->probe_failure = {errc::none, {}};
  }
  for (int round = 0; round < 2; ++round) {
    pass(std::chrono::milliseconds{5000});
    ready();
  }
  pass(std::chrono::milliseconds{5000});
  CAF_CHECK(ready()->body()["status"] == "ok");
  CAF_CHECK(log_text.str().find("can start again") != std::string::npos);
}

CAF_TEST(a_look_that_takes_too_long_says_nothing_of_the_image) {
  ready();
  runtime_scripts["alpha"]->stamp = "another";
  runtime_scripts["alpha"]->probe_failure = {errc::timeout, "the machine is busy"};
  for (int round = 0; round < 2; ++round) {
    pass(std::chrono::milliseconds{5000});
    ready();
  }
  pass(std::chrono::milliseconds{5000});
  CAF_CHECK(ready()->body()["status"] == "ok");
  CAF_CHECK_EQUAL(runtime_scripts["alpha"]->probes, 1);
}

CAF_TEST(an_image_that_is_not_there_is_logged_at_the_start) {
  runtimes[1].image = "localhost/none";
  runtime_scripts["beta"]->failure = {errc::unavailable, "there is no image localhost/none"};
  CAF_CHECK(runtime_scripts["alpha"]->times + runtime_scripts["beta"]->times == 1);
  start();
  CAF_CHECK(log_text.str().find("beta: no run can start: there is no image localhost/none") !=
            std::string::npos);
  CAF_CHECK(log_text.str().find("alpha") == std::string::npos);
}

CAF_TEST(what_else_counts_is_told) {
  more = {{"configuration", false, "line 3 can't be read", "correct it", false}};
  auto answer = ready();
  CAF_CHECK_EQUAL(answer->whole.status, 200u);
  CAF_CHECK(answer->body()["status"] == "degraded");
  CAF_CHECK(answer->body()["checks"][0]["what"] == "configuration");
}

CAF_TEST_FIXTURE_SCOPE_END()
