#define CAF_SUITE expected_limits

#include "actors/expected_limits.hpp"

#include "caf/test/dsl.hpp"

/// The table of what is expected to hold.

using namespace bulkhead;

namespace {

bool memory_holds(const char* driver, const char* engine, const char* oci, const char* cgroups,
                  bool rootless = true) {
  runtime_report report;
  report.driver = driver;
  report.engine = engine;
  report.oci_runtime = oci;
  report.cgroup_mode = cgroups;
  report.rootless = rootless;
  auto found = expected_limits(report);
  CAF_REQUIRE(found);
  CAF_CHECK_EQUAL(found->memory, found->pids);
  return found->memory;
}

} // namespace

CAF_TEST(limits_hold_by_driver_engine_runtime_and_cgroups) {
  CAF_CHECK(memory_holds("cli", "podman", "crun", "v2"));
  CAF_CHECK(memory_holds("rest", "podman", "crun", "v2"));
  CAF_CHECK(memory_holds("cli", "podman", "runc", "v1 delegated"));
  CAF_CHECK(memory_holds("rest", "podman", "runc", "v1 delegated"));
  CAF_CHECK(!memory_holds("cli", "podman", "runc", "v1"));
  CAF_CHECK(!memory_holds("rest", "podman", "runc", "v1"));
  CAF_CHECK(memory_holds("cli", "podman", "runc", "v1", false));
  CAF_CHECK(!memory_holds("cli", "podman", "runsc-rootless", "v2"));
  CAF_CHECK(memory_holds("cli", "docker", "runc", "v1", false));
  CAF_CHECK(!memory_holds("cli", "docker", "runc", "v1"));
}

CAF_TEST(nothing_is_expected_of_what_was_never_tried) {
  CAF_CHECK(!expected_limits(runtime_report{}));
}
