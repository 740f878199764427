#define CAF_SUITE driver_parts

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "actors/cgroup_v1.hpp"
#include "actors/engine_errors.hpp"
#include "actors/host_view.hpp"
#include "actors/limit_checks.hpp"
#include "actors/task.hpp"
#include "tests/support/fake_cgroups.hpp"

#include "caf/test/dsl.hpp"

/// The parts of the driver that need no actor.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

task<int> half(int number) {
  if (number % 2 != 0) {
    throw std::invalid_argument{"odd"};
  }
  co_return number / 2;
}

task<void> store_quarter(int number, int& result) {
  int once = co_await half(number);
  result = co_await half(once);
}

task<void> wait_for(std::function<void(int)>& wake, int& result) {
  completion<int> event{[&wake](auto done) { wake = std::move(done); }};
  result = co_await event;
}

struct counted {
  explicit counted(int& living) : living{&living} { ++living; }
  counted(const counted&) = delete;
  ~counted() { --*living; }
  int* living;
};

task<void> hold(int& living, std::function<void(int)>& wake) {
  counted something{living};
  int ignored = 0;
  co_await wait_for(wake, ignored);
}

} // namespace

CAF_TEST(a_task_runs_through_what_it_awaits) {
  int result = 0;
  auto work = store_quarter(12, result);
  work.start();
  CAF_CHECK(work.done());
  CAF_CHECK_EQUAL(result, 3);
}

CAF_TEST(an_exception_reaches_whoever_awaits) {
  int result = 0;
  auto work = store_quarter(6, result);
  work.start();
  CAF_REQUIRE(work.done());
  bool thrown = false;
  try {
    work.await_resume();
  } catch (const std::invalid_argument&) {
    thrown = true;
  }
  CAF_CHECK(thrown);
}

CAF_TEST(a_completion_counts_once_and_may_come_at_once_or_late) {
  std::function<void(int)> wake;
  int result = 0;
  auto work = wait_for(wake, result);
  work.start();
  CAF_CHECK(!work.done());
  wake(7);
  wake(8);
  CAF_CHECK(work.done());
  CAF_CHECK_EQUAL(result, 7);
}

CAF_TEST(a_task_set_frees_what_waits_when_it_ends) {
  int living = 0;
  std::function<void(int)> wake;
  {
    task_set tasks;
    tasks.start(hold(living, wake));
    CAF_CHECK_EQUAL(living, 1);
  }
  CAF_CHECK_EQUAL(living, 0);
}

CAF_TEST(uid_maps_are_read_across_their_ranges) {
  const char* map = "         0        999          1\n         1     100000      65536\n";
  CAF_CHECK(map_uid(map, 0) == 999u);
  CAF_CHECK(map_uid(map, 65535) == 165534u);
  CAF_CHECK(map_uid(map, 65537) == std::nullopt);
  CAF_CHECK(map_uid("", 0) == std::nullopt);
}

CAF_TEST(a_process_is_told_from_a_later_one_with_its_id) {
  auto host = host_view::real();
  auto own = ::getpid();
  auto start = process_start_time(host, own);
  CAF_REQUIRE(start);
  CAF_CHECK(process_alive(host, own, *start));
  CAF_CHECK(!process_alive(host, own, *start + 1));
  CAF_CHECK(!process_start_time(host, -1));
}

CAF_TEST(own_cgroup_account_and_default_are_tried_in_this_order) {
  auto pattern = (std::filesystem::temp_directory_path() / "bulkhead-parts-XXXXXX").string();
  std::string root = ::mkdtemp(pattern.data());
  std::filesystem::create_directories(root + "/self");
  std::ofstream{root + "/self/cgroup"} << "4:memory:/mine\n3:pids:/\n2:cpu,cpuacct:/\n";
  host_view host;
  auto files = std::make_shared<fake_cgroups>();
  host.account = "tester";
  host.cgroup_root = root;
  host.proc = root;
  host.cgroups = files;
  files->folders = {root + "/memory/mine", root + "/memory/tester", root + "/pids/tester",
                    root + "/cpu/bulkhead"};
  auto bases = find_delegated_cgroups(host);
  CAF_REQUIRE_EQUAL(bases.size(), 3u);
  CAF_CHECK(bases[0] == (cgroup_base{"memory", root + "/memory/mine"}));
  CAF_CHECK(bases[1] == (cgroup_base{"pids", root + "/pids/tester"}));
  CAF_CHECK(bases[2] == (cgroup_base{"cpu", root + "/cpu/bulkhead"}));
  CAF_CHECK(has_controller(bases, "pids"));
  std::ofstream{root + "/cgroup.controllers"} << "memory\n";
  CAF_CHECK(find_delegated_cgroups(host).empty());
  std::filesystem::remove_all(root);
}

CAF_TEST(a_complaint_is_the_line_that_tells_why) {
  CAF_CHECK_EQUAL(
      engine_complaint(
          "time=\"x\" level=warning msg=\"shared mount\"\nError: no such thing\nSee 'podman "
          "run --help'\n"),
      "no such thing");
  CAF_CHECK_EQUAL(
      engine_complaint("docker: Error response from daemon: no.\nSee 'docker run --help'.\n"),
      "no.");
  CAF_CHECK_EQUAL(engine_complaint("Traceback\nValueError: x\x1b[31m\n"), "ValueError: x[31m");
  CAF_CHECK_EQUAL(engine_complaint("time=\"x\" level=error msg=\"no such process\"\n"),
                  "\"no such process\"");
  CAF_CHECK_EQUAL(engine_complaint(""), "it gave no reason");
  CAF_CHECK(engine_complaint(std::string(10'000, 'x')).size() < 450);
}

CAF_TEST(known_failures_come_with_their_remedy) {
  host_view host;
  host.account = "anna";
  auto explain = [&](const char* err) {
    return explain_engine_failure("start a sandbox", engine_profile{}, host, 125, err).message;
  };
  CAF_CHECK(explain("Error: command required for rootless mode with multiple IDs: exec: "
                    "\"newuidmap\": executable "
                    "file not found in $PATH\n")
                .ends_with("install the package uidmap (Debian: apt install uidmap)"));
  CAF_CHECK(explain("Error: something new\n").ends_with("something new; see: bulkhead doctor"));
  CAF_CHECK(explain("Error: no subuid ranges found for user \"anna\"\n").find("165535 anna;") !=
            std::string::npos);
}

CAF_TEST(refusals_of_the_host_are_told_from_failures_of_one_container) {
  CAF_CHECK(is_host_refusal(
      126, "Error: OCI runtime error: crun: cgroups in hybrid mode not supported\n"));
  CAF_CHECK(!is_host_refusal(1, "Error: OCI runtime error\n"));
  CAF_CHECK(!is_host_refusal(125, "Error: no space left on device\n"));
  CAF_CHECK(is_missing_controller("crun: the requested cgroup controller `cpu` is not available"));
  CAF_CHECK(!is_missing_controller("crun: not available"));
}

CAF_TEST(limits_hold_only_when_numbers_say_so) {
  using nlohmann::json;
  CAF_CHECK(memory_limit_holds(json{{"memory", "1000000"}, {"swap", "0"}}, 1'000'000));
  CAF_CHECK(memory_limit_holds(json{{"memory", "1000000"}, {"memsw", nullptr}}, 1'000'000));
  CAF_CHECK(!memory_limit_holds(json{{"memory", "max"}, {"swap", "0"}}, 1'000'000));
  CAF_CHECK(!memory_limit_holds(json{{"memory", "9223372036854771712"}}, 1'000'000));
  CAF_CHECK(!memory_limit_holds(json{{"memory", "1000000"}, {"memsw", "2000000"}}, 1'000'000));
  CAF_CHECK(!memory_limit_holds(json{{"memory", nullptr}}, 1'000'000));
  CAF_CHECK(!memory_limit_holds(json::parse("[]"), 1'000'000));
  CAF_CHECK(pids_limit_holds(json{{"pids", "64"}}, 64));
  CAF_CHECK(!pids_limit_holds(json{{"pids", "65"}}, 64));
  CAF_CHECK(!pids_limit_holds(json{{"pids", "max"}}, 64));
  CAF_CHECK(!pids_limit_holds(json{}, 64));
}
