#define CAF_SUITE configuration_keeper

#include "actors/configuration_keeper.hpp"

#include "tests/support/invocation_world.hpp"
#include "tests/support/mcp_client_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

server_entry entry_of(const std::string& name, const std::string& command = "x") {
  server_entry entry;
  entry.name = entry.alias = name;
  entry.command = command;
  return entry;
}

/// Takes the catalogues that a registry is given.
client_registry_actor::behavior_type recording_registry(client_registry_actor::pointer,
                                                        std::vector<catalogue_ptr>* given) {
  return {
      [](catalogue_atom) { return catalogue_ptr{}; },
      [](client_atom, const std::string&) -> caf::result<mcp_client_actor> {
        return caf::sec::unexpected_message;
      },
      [given](catalogue_atom, const catalogue_ptr& next) { given->push_back(next); },
      [](status_atom) { return std::vector<client_status>{}; },
      [](stop_atom) { return caf::ok_atom::value; },
  };
}

struct keeper_fixture : test_coordinator_fixture<actor_config> {
  keeper_fixture() {
    registry = sys.spawn(recording_registry, &given);
    env->log =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    keeper_context context{
        env, configured, [this] { return registry; },
        [this] {
          return configuration_reading{std::make_shared<server_catalogue>(files), {"/a", "/b"}};
        },
        [this](std::vector<std::string> paths) { watched = std::move(paths); }};
    keeper = sys.spawn(configuration_keeper, std::move(context));
  }

  ~keeper_fixture() override {
    for (const auto& each :
         {caf::actor_cast<caf::actor>(registry), caf::actor_cast<caf::actor>(keeper)}) {
      caf::anon_send_exit(each, caf::exit_reason::kill);
    }
    consume_messages();
  }

  void notice() {
    caf::anon_send(keeper, catalogue_atom::value);
    consume_messages();
  }

  std::shared_ptr<environment> env = std::make_shared<environment>();
  server_catalogue files; ///< what they say
  std::shared_ptr<current_catalogue> configured =
      std::make_shared<current_catalogue>(std::make_shared<server_catalogue>());
  std::vector<catalogue_ptr> given;
  std::vector<std::string> watched;
  client_registry_actor registry;
  configuration_keeper_actor keeper;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(configuration_keeper_tests, keeper_fixture)

CAF_TEST(a_change_reaches_everybody) {
  files.servers = {entry_of("a")};
  notice();
  CAF_REQUIRE_EQUAL(given.size(), 1u);
  CAF_CHECK(*given[0] == files);
  CAF_CHECK(configured->get() == given[0]);
  CAF_CHECK_EQUAL(watched.size(), 2u);
}

CAF_TEST(a_file_that_says_what_it_said_changes_nothing) {
  notice();
  CAF_CHECK(given.empty());
  files.servers = {entry_of("a")};
  notice();
  auto first = configured->get();
  notice();
  CAF_CHECK(configured->get() == first);
  CAF_CHECK_EQUAL(given.size(), 1u);
}

CAF_TEST(a_file_that_turns_bad_closes_the_policy) {
  files.servers = {entry_of("a")};
  notice();
  files.rules.closed = "broken.json: line 1";
  files.problems = {{"broken.json", "", "line 1", problem_kind::error}};
  notice();
  CAF_CHECK_EQUAL(given.size(), 2u);
  CAF_CHECK(!allows_server(configured->get()->rules, "a").allowed);
}

CAF_TEST(a_change_in_words) {
  server_catalogue before;
  before.servers = {entry_of("changed"), entry_of("gone"), entry_of("same")};
  server_catalogue after;
  after.servers = {entry_of("changed", "y"), entry_of("new"), entry_of("same")};
  CAF_CHECK_EQUAL(
      describe_change(before, after),
      std::string{
          "the configuration has changed: 3 MCP servers; new: new; changed: changed; gone: gone"});
  after = before;
  after.rules.deny = {"x"};
  CAF_CHECK_EQUAL(
      describe_change(before, after),
      std::string{"the configuration has changed: 3 MCP servers; the policy is another"});
}

CAF_TEST_FIXTURE_SCOPE_END()
