#define CAF_SUITE sandbox_turn

#include "tests/support/sandbox_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// A sandbox whose process gives turns to boot.
struct fixture : sandbox_fixture {
  fixture() {
    turns->places = 0;
    boots = sys.spawn(scripted_admission, turns);
  }

  ~fixture() override { caf::anon_send_exit(boots, caf::exit_reason::kill); }

  /// Another gives its turn back, and the next in the queue gets one.
  void next_turn() {
    self->send(boots, release_atom::value, std::uint64_t{1000});
    consume_messages();
    std::erase(turns->released, 1000u);
  }

  std::shared_ptr<admission_script> turns = std::make_shared<admission_script>();
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(sandbox_turn_tests, fixture)

CAF_TEST(nothing_is_made_before_the_turn_which_ends_with_the_boot) {
  execute();
  CAF_CHECK(now() == phase::queued);
  CAF_CHECK(volumes->made.empty());
  CAF_CHECK(runtime->requests.empty());
  next_turn();
  CAF_CHECK(now() == phase::booting);
  CAF_CHECK(turns->released.empty());
  say(R"({"type":"ready","python":"3.13.5","protocol":1})");
  CAF_CHECK(turns->released == turns->given);
  begin();
  CAF_CHECK_EQUAL(log->ups.size(), 1u);
  let_go();
  pass(3s);
  CAF_CHECK_EQUAL(turns->released.size(), 1u);
}

CAF_TEST(a_boot_that_fails_gives_its_turn_back) {
  turns->places = 1;
  runtime->create.answer = tl::unexpected{error{errc::unavailable, "no such image"}};
  execute();
  CAF_CHECK(lost_once(errc::unavailable));
  CAF_CHECK(turns->released == turns->given);
  CAF_CHECK_EQUAL(turns->given.size(), 1u);
}

CAF_TEST(a_boot_that_hangs_leaves_the_turn_to_others) {
  turns->places = 1;
  reach(phase::creating);
  pass(1500ms);
  CAF_CHECK(turns->released.empty());
  pass(1s);
  CAF_CHECK(turns->released == turns->given);
  CAF_CHECK(now() == phase::creating);
}

CAF_TEST(a_turn_that_comes_too_late_is_given_back) {
  boot();
  CAF_CHECK(now() == phase::queued);
  end();
  CAF_CHECK(boot_failures == std::vector<errc>{errc::closed});
  next_turn();
  CAF_CHECK(turns->released == turns->given);
  CAF_CHECK_EQUAL(turns->given.size(), 1u);
  CAF_CHECK(gone());
  CAF_CHECK(volumes->made.empty());
}

CAF_TEST(a_turn_that_never_comes_is_told) {
  execute();
  pass(91s);
  CAF_CHECK(lost_once(errc::unavailable));
  CAF_CHECK(gone());
  CAF_CHECK(volumes->made.empty());
}

CAF_TEST_FIXTURE_SCOPE_END()
