#define CAF_SUITE artifact_store

#include "actors/artifact_store.hpp"

#include <cstdlib>
#include <filesystem>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/session_world.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using namespace std::chrono_literals;

namespace fs = std::filesystem;

namespace {

const stored_run the_run{"0123456789abcdef0123456789abcdef", "local"};

struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    std::string pattern = fs::temp_directory_path() / "store-XXXXXX";
    env->config->state_dir = ::mkdtemp(pattern.data());
    env->wall_clock = [this] { return std::chrono::system_clock::now() + later; };
    store = sys.spawn(artifact_store, env);
    writer = sys.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
    consume_messages();
  }

  ~fixture() override {
    caf::anon_send_exit(store, caf::exit_reason::kill);
    caf::anon_send_exit(writer, caf::exit_reason::kill);
    consume_messages();
    fs::remove_all(env->config->state_dir);
  }

  /// Sends as the writer and returns its answer.
  template <class Answer, class... What>
  expected<Answer> ask(What&&... what) {
    auto& asking = deref<caf::event_based_actor>(writer);
    asking.context(nullptr); // the test isn't a worker, and the one that ran it last is gone
    auto answer = std::make_shared<expected<Answer>>(fail(errc::timeout, "no answer"));
    asking.request(store, 10s, std::forward<What>(what)...)
        .then([answer](Answer& value) { *answer = std::move(value); },
              [answer](const caf::error& reason) {
                *answer = tl::unexpected{from_caf(reason, "ask")};
              });
    consume_messages();
    return std::move(*answer);
  }

  bool has_folder() const {
    return fs::exists(fs::path{env->config->state_dir} / "artifacts" / the_run.handle);
  }

  std::shared_ptr<environment> env = test_environment();
  std::chrono::seconds later{0};
  artifact_store_impl_actor store;
  caf::actor writer;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(artifact_store_tests, fixture)

CAF_TEST(what is kept can be read once the run is over) {
  auto kept = ask<kept_bytes>(append_atom::value, the_run, stream_id::out, std::string{"output"});
  CAF_CHECK_EQUAL(kept->bytes, 6u);
  auto path =
      ask<std::string>(save_atom::value, the_run, guest_artifact{"a/../b", "text/plain", "x"});
  CAF_CHECK(path->starts_with(env->config->state_dir + "/artifacts/" + the_run.handle + "/"));
  CAF_CHECK(ask<caf::ok_atom>(seal_atom::value, the_run, std::uint64_t{6}, std::uint64_t{0}));
  auto part = ask<resource_part>(
      read_atom::value, resource_range{"local", {the_run.handle, stream_id::out, {}, 3, {}}});
  CAF_CHECK_EQUAL(part->bytes, "put");
  auto page = ask<resource_page>(list_atom::value, std::string{"local"}, std::string{});
  CAF_CHECK_EQUAL(page->entries.size(), 2u);
  auto foreign = ask<resource_part>(
      read_atom::value, resource_range{"other", {the_run.handle, stream_id::out, {}, 0, {}}});
  CAF_CHECK(!foreign && foreign.error().code == errc::not_found);
}

CAF_TEST(what a dead run left unfinished goes) {
  ask<kept_bytes>(append_atom::value, the_run, stream_id::out, std::string{"output"});
  CAF_CHECK(has_folder());
  caf::anon_send_exit(writer, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(!has_folder());
}

CAF_TEST(what a finished run left stays when its actor ends) {
  ask<std::string>(save_atom::value, the_run, guest_artifact{"a", "text/plain", "x"});
  ask<caf::ok_atom>(seal_atom::value, the_run, std::uint64_t{0}, std::uint64_t{0});
  caf::anon_send_exit(writer, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(has_folder());
}

CAF_TEST(what is too old goes without anybody asking) {
  ask<std::string>(save_atom::value, the_run, guest_artifact{"a", "text/plain", "x"});
  ask<caf::ok_atom>(seal_atom::value, the_run, std::uint64_t{0}, std::uint64_t{0});
  advance_time(10min);
  consume_messages();
  CAF_CHECK(has_folder());
  later = 25h;
  advance_time(10min);
  consume_messages();
  CAF_CHECK(!has_folder());
}

CAF_TEST(errors come with their code) {
  env->config->artifacts = 0;
  caf::anon_send_exit(store, caf::exit_reason::kill);
  store = sys.spawn(artifact_store, env);
  consume_messages();
  auto refused =
      ask<std::string>(save_atom::value, the_run, guest_artifact{"a", "text/plain", "x"});
  CAF_CHECK(!refused && refused.error().code == errc::limit);
  auto page = ask<resource_page>(list_atom::value, std::string{"local"}, std::string{"bad"});
  CAF_CHECK(!page && page.error().code == errc::invalid_argument);
}

CAF_TEST_FIXTURE_SCOPE_END()
