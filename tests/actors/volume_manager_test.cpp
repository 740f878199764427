#define CAF_SUITE volume_manager

#include <sys/stat.h>

#include "actors/shared_folder.hpp"
#include "tests/support/driver_fixture.hpp"

/// The host's folders.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace fs = std::filesystem;

namespace {

struct volume_fixture : driver_fixture {
  volume_fixture() { make_driver(); }

  template <class T, class... Ts>
  answered<T> tell(Ts... message) {
    auto result = std::make_shared<answered<T>>();
    sys.spawn([=, to = volumes](caf::event_based_actor* self) {
      self->request(to, 10s, message...)
          .then([result](T& value) { result->value = std::move(value); },
                [result](const caf::error& reason) { result->failure = from_caf(reason, "test"); });
    });
    consume();
    return *result;
  }

  static unsigned mode_of(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }

  const std::string id = std::string(32, 'b');
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(volume_manager_tests, volume_fixture)

CAF_TEST(what_the_guest_gets_is_open_and_all_above_it_is_private) {
  auto made = tell<instance_folders>(prepare_atom::value);
  CAF_REQUIRE(made.value);
  const auto& folders = *made.value;
  CAF_CHECK_EQUAL(mode_of(env.runtime_dir), 0700u);
  CAF_CHECK_EQUAL(mode_of(folders.root), 0700u);
  CAF_CHECK_EQUAL(mode_of(folders.ipc), 0755u);
  CAF_CHECK_EQUAL(mode_of(folders.ipc + "/entrypoint.py"), 0444u);
  CAF_CHECK_EQUAL(mode_of(folders.ipc + "/bulkhead_probe.py"), 0444u);
  CAF_CHECK_EQUAL(mode_of(env.config->state_dir), 0700u);
  CAF_CHECK_EQUAL(folders.projects, env.config->state_dir + "/user_tools");
  auto profile = nlohmann::json::parse(std::ifstream{folders.seccomp_profile});
  CAF_CHECK(profile.contains("defaultAction"));
  // Again, with everything there.
  auto again = tell<instance_folders>(prepare_atom::value);
  CAF_REQUIRE(again.value);
  CAF_CHECK(*again.value == folders);
}

CAF_TEST(a_run_has_a_folder_of_its_own_until_it_is_discarded) {
  auto made = tell<std::string>(run_folder_atom::value, id);
  CAF_REQUIRE(made.value);
  CAF_CHECK_EQUAL(mode_of(*made.value), 0700u);
  std::ofstream{*made.value + "/oom"};
  CAF_CHECK(tell<caf::ok_atom>(discard_atom::value, id).value);
  CAF_CHECK(!fs::exists(*made.value));
  CAF_CHECK(tell<caf::ok_atom>(discard_atom::value, id).value);
}

CAF_TEST(ids_that_could_lead_elsewhere_are_refused) {
  for (const auto* bad : {"", "..", "../../x", "B0000000000000000000000000000000",
                          "0123456789abcdef0123456789abcde/"}) {
    CAF_CHECK(tell<std::string>(run_folder_atom::value, std::string{bad}).failure.code ==
              errc::invalid_argument);
    CAF_CHECK(tell<caf::ok_atom>(discard_atom::value, std::string{bad}).failure.code ==
              errc::invalid_argument);
  }
}

CAF_TEST(a_folder_that_is_a_link_is_refused) {
  fs::create_directories(env.config->state_dir);
  fs::create_directories(root + "/elsewhere");
  fs::create_directory_symlink(root + "/elsewhere", env.config->state_dir + "/user_tools");
  auto made = tell<instance_folders>(prepare_atom::value);
  CAF_CHECK(made.failure.code == errc::unavailable);
  CAF_CHECK(mentions(made.failure.message, "user_tools"));
}

CAF_TEST(stopping_removes_the_instances_folder_and_nothing_else) {
  CAF_REQUIRE(tell<instance_folders>(prepare_atom::value).value);
  CAF_CHECK(tell<caf::ok_atom>(stop_atom::value).value);
  CAF_CHECK(!fs::exists(env.runtime_dir + "/" + env.instance));
  CAF_CHECK(fs::exists(env.config->state_dir + "/user_tools"));
}

CAF_TEST(the_guest_is_let_into_what_is_there_and_what_comes_but_not_through_links) {
  auto folder = root + "/shared";
  fs::create_directories(folder + "/memory");
  std::ofstream{folder + "/memory/note.json"} << "{}";
  ::chmod((folder + "/memory/note.json").c_str(), 0600);
  std::ofstream{root + "/secret"} << "key";
  ::chmod((root + "/secret").c_str(), 0600);
  fs::create_symlink(root + "/secret", folder + "/link");
  fs::create_hard_link(root + "/secret", folder + "/second-name");
  auto shared = share_folder(folder, ::geteuid(), 165'534);
  CAF_REQUIRE(shared);
  if (*shared == sharing::unsupported) {
    CAF_FAIL("the temporary folder must be on a file system with ACLs");
  }
  // The group's bits of a file with an ACL are its mask.
  CAF_CHECK_EQUAL(mode_of(folder) & 0070u, 0070u);
  CAF_CHECK_EQUAL(mode_of(folder + "/memory/note.json") & 0070u, 0060u);
  CAF_CHECK_EQUAL(mode_of(root + "/secret"), 0600u);
  std::ofstream{folder + "/later"};
  CAF_CHECK_EQUAL(mode_of(folder + "/later") & 0060u, 0060u);
  // Once shared, what is in it isn't gone through again.
  ::chmod((folder + "/memory/note.json").c_str(), 0600);
  CAF_CHECK(share_folder(folder, ::geteuid(), 165'534) == sharing::done);
  CAF_CHECK_EQUAL(mode_of(folder + "/memory/note.json") & 0070u, 0u);
  // A chmod takes the guest's rights away; the next start gives them back.
  ::chmod(folder.c_str(), 0700);
  CAF_CHECK(share_folder(folder, ::geteuid(), 165'534) == sharing::done);
  CAF_CHECK_EQUAL(mode_of(folder) & 0070u, 0070u);
}

CAF_TEST_FIXTURE_SCOPE_END()
