#define CAF_SUITE client_registry

#include "actors/client_registry.hpp"
#include "tests/support/mcp_client_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

server_entry make_entry(const std::string& name, const std::string& alias) {
  server_entry entry;
  entry.name = name;
  entry.alias = alias;
  entry.command = name + "-command";
  entry.source = "servers.json";
  return entry;
}

struct registry_fixture : client_fixture {
  registry_fixture() {
    configured->servers = {make_entry("bad-one", "bad_one"), make_entry("files", "files"),
                           make_entry("secret", "secret")};
    configured->rules.deny = {"secret"};
    configured->problems = {{"servers.json", "broken", "no command"}};
    registry =
        sys.spawn(client_registry, env, host, mcp_http_services{}, catalogue_ptr{configured});
  }

  ~registry_fixture() override {
    caf::anon_send_exit(registry, caf::exit_reason::user_shutdown);
    consume_messages();
  }

  template <class T, class... Ts>
  outcome_ptr<T> ask_registry(Ts... arguments) {
    auto result = std::make_shared<outcome<T>>();
    auto function = [=, receiver = registry](caf::event_based_actor* self) {
      self->request(receiver, caf::infinite, arguments...)
          .then([=](const T& value) { result->value = value; },
                [=](const caf::error& reason) { result->failure = from_caf(reason, "test"); });
    };
    askers.push_back(sys.spawn(function));
    consume_messages();
    return result;
  }

  outcome_ptr<mcp_client_actor> client_of(const std::string& server) {
    return ask_registry<mcp_client_actor>(client_atom::value, server);
  }

  /// Calls a tool of a server.
  outcome_ptr<std::string> call_at(const std::string& name) {
    client = *client_of(name)->value;
    auto result = call("echo");
    client = nullptr;
    return result;
  }

  std::shared_ptr<server_catalogue> configured = std::make_shared<server_catalogue>();
  client_registry_actor registry;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(client_registry_tests, registry_fixture)

CAF_TEST(the_catalogue_holds_what_policy_allows_and_all_problems) {
  auto result = ask_registry<catalogue_ptr>(catalogue_atom::value);
  CAF_REQUIRE(result->value);
  const auto& catalogue = **result->value;
  CAF_REQUIRE_EQUAL(catalogue.servers.size(), 2u);
  CAF_CHECK_EQUAL(catalogue.servers[0].name, "bad-one");
  CAF_CHECK_EQUAL(catalogue.servers[1].name, "files");
  CAF_CHECK(catalogue.problems == configured->problems);
  CAF_CHECK(catalogue.rules == configured->rules);
}

CAF_TEST(each_server_has_one_client_and_none_is_started) {
  auto first = client_of("files");
  CAF_REQUIRE(first->value);
  CAF_CHECK(*client_of("files")->value == *first->value);
  CAF_CHECK(*client_of("bad-one")->value != *first->value);
  CAF_CHECK(*client_of("bad_one")->value == *client_of("bad-one")->value);
  CAF_CHECK(script->children.empty());
}

CAF_TEST(unknown_and_denied_servers_are_told_apart) {
  CAF_CHECK(tells(client_of("fils")->failure, errc::not_found,
                  {"there is no MCP server \"fils\"", "did you mean files?"}));
  CAF_CHECK(
      tells(client_of("zzzzzzzz")->failure, errc::not_found, {"configured are: bad-one, files"}));
  CAF_CHECK(tells(client_of("secret")->failure, errc::denied,
                  {"MCP server \"secret\" is denied by policy", "secret"}));
}

CAF_TEST(one_bad_server_is_of_no_concern_to_the_others) {
  script->started = [](const scripted_child& child) {
    if (child.spec().argv[0] == "bad-one-command") {
      child.out(std::string(100'000, '{'));
      child.exit(1);
    }
  };
  CAF_CHECK(tells(call_at("bad-one")->failure, errc::server_failed, {"bad-one"}));
  CAF_CHECK(call_at("files")->value);
  auto result = ask_registry<std::vector<client_status>>(status_atom::value);
  CAF_REQUIRE(result->value);
  CAF_REQUIRE_EQUAL(result->value->size(), 2u);
  CAF_CHECK_EQUAL(result->value->at(0).server, "bad-one");
  CAF_CHECK_EQUAL(result->value->at(0).state, "backing off");
  CAF_CHECK_EQUAL(result->value->at(1).state, "ready");
}

CAF_TEST(status_of_no_clients_is_empty) {
  auto result = ask_registry<std::vector<client_status>>(status_atom::value);
  CAF_REQUIRE(result->value);
  CAF_CHECK(result->value->empty());
}

CAF_TEST(a_client_that_dies_is_made_anew) {
  auto first = client_of("files");
  caf::anon_send_exit(*first->value, caf::exit_reason::kill);
  consume_messages();
  auto second = client_of("files");
  CAF_REQUIRE(second->value);
  CAF_CHECK(*second->value != *first->value);
  CAF_CHECK(call_at("files")->value);
}

CAF_TEST(stop_ends_all_servers_at_the_same_time) {
  script->input_closed = [](const auto&) {};
  script->signalled = [](const auto& child, std::int32_t signal) {
    if (signal == 9) {
      child.exit(0, signal);
    }
  };
  call_at("bad-one");
  call_at("files");
  auto first = ask_registry<caf::ok_atom>(stop_atom::value);
  auto second = ask_registry<caf::ok_atom>(stop_atom::value);
  CAF_CHECK(tells(client_of("files")->failure, errc::closed, {"being stopped"}));
  pass(2490ms);
  CAF_CHECK(first->pending());
  pass(20ms);
  CAF_CHECK(first->value && second->value);
  CAF_CHECK(!script->children[0].alive() && !script->children[1].alive());
}

CAF_TEST(stop_with_no_clients_is_answered_at_once) {
  CAF_CHECK(ask_registry<caf::ok_atom>(stop_atom::value)->value);
}

CAF_TEST(stop_does_not_wait_for_a_client_that_is_stuck) {
  script->spawn_hangs = true;
  client = *client_of("files")->value;
  call("echo");
  client = nullptr;
  auto stopped = ask_registry<caf::ok_atom>(stop_atom::value);
  pass(4900ms);
  CAF_CHECK(stopped->pending());
  pass(200ms);
  CAF_CHECK(stopped->value);
}

CAF_TEST_FIXTURE_SCOPE_END()
