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

  /// Gives the registry another configuration, made of the one before.
  template <class Change>
  void configure(Change change) {
    configured = std::make_shared<server_catalogue>(*configured);
    change(*configured);
    caf::anon_send(registry, catalogue_atom::value, catalogue_ptr{configured});
    consume_messages();
  }

  /// Somebody who asks for a client and stays.
  caf::actor stay_with(const std::string& server) {
    auto made = sys.spawn([=, receiver = registry](caf::event_based_actor* self) -> caf::behavior {
      self->request(receiver, caf::infinite, client_atom::value, server)
          .then([](const mcp_client_actor&) {});
      return {[](tick_atom) {}};
    });
    consume_messages();
    return made;
  }

  void end(const caf::actor& who) {
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    consume_messages();
  }

  /// Has the client ended?
  bool gone(const mcp_client_actor& which) {
    auto flag = std::make_shared<bool>(false);
    which->attach_functor([flag](const caf::error&) { *flag = true; });
    return *flag;
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

CAF_TEST(an_unchanged_entry_keeps_its_client) {
  auto first = *client_of("files")->value;
  configure([](auto& all) {
    all.servers[1].description = "another";
    all.servers[1].source = "other.json";
    all.servers[0].command = "changed";
  });
  CAF_CHECK(*client_of("files")->value == first);
  CAF_CHECK(!gone(first));
}

CAF_TEST(a_changed_configuration_or_credential_never_gets_the_old_client) {
  using change = std::function<void(server_entry&)>;
  const std::vector<change> changes = {
      [](server_entry& entry) { entry.command = "other"; },
      [](server_entry& entry) { entry.args = {"x"}; },
      [](server_entry& entry) { entry.env["TOKEN"] = "another's"; },
      [](server_entry& entry) { entry.cwd = "/else"; },
      [](server_entry& entry) { entry.headers["Authorization"] = "Bearer another's"; },
      [](server_entry& entry) { entry.call_timeout += 1s; },
      [](server_entry& entry) { entry.url = "https://else"; },
      [](server_entry& entry) { entry.transport = server_transport::sse; }};
  std::vector<mcp_client_actor> seen = {*client_of("files")->value};
  for (const auto& each : changes) {
    configure([&](auto& all) { each(all.servers[1]); });
    CAF_CHECK(gone(seen.back()));
    seen.push_back(*client_of("files")->value);
    CAF_CHECK_EQUAL(std::count(seen.begin(), seen.end(), seen.back()), 1);
  }
}

CAF_TEST(a_configuration_that_comes_back_gets_a_new_client) {
  auto user = stay_with("files");
  auto first = *client_of("files")->value;
  configure([](auto& all) { all.servers[1].args = {"x"}; });
  configure([](auto& all) { all.servers[1].args = {}; });
  CAF_CHECK(*client_of("files")->value != first);
  CAF_CHECK(!gone(first));
  end(user);
  CAF_CHECK(gone(first));
}

CAF_TEST(a_retired_client_lives_for_those_who_have_it) {
  auto one = stay_with("files");
  auto other = stay_with("files");
  client = *client_of("files")->value;
  auto first = client;
  CAF_CHECK(call("echo")->value);
  configure([](auto& all) { all.servers.erase(all.servers.begin() + 1); });
  CAF_CHECK(tells(client_of("files")->failure, errc::not_found, {"files"}));
  CAF_CHECK(call("echo")->value);
  end(one);
  CAF_CHECK(!gone(first));
  end(other);
  CAF_CHECK(gone(first));
  client = nullptr;
}

CAF_TEST(a_retired_client_does_not_live_for_ever) {
  auto user = stay_with("files");
  auto first = *client_of("files")->value;
  configure([](auto& all) { all.rules.closed = "a file is broken"; });
  CAF_CHECK(tells(client_of("files")->failure, errc::denied, {"a file is broken"}));
  advance_time(9min);
  consume_messages();
  CAF_CHECK(!gone(first));
  advance_time(61s);
  consume_messages();
  CAF_CHECK(gone(first));
  end(user);
}

CAF_TEST(a_new_server_is_there_at_once) {
  configure([](auto& all) { all.servers.push_back(make_entry("new", "new")); });
  CAF_CHECK(client_of("new")->value);
  auto result = ask_registry<catalogue_ptr>(catalogue_atom::value);
  CAF_CHECK((*result->value)->find("new") != nullptr);
}

CAF_TEST(stop_ends_retired_clients_too) {
  auto user = stay_with("files");
  auto first = *client_of("files")->value;
  configure([](auto& all) { all.servers.clear(); });
  CAF_CHECK(ask_registry<caf::ok_atom>(stop_atom::value)->value);
  CAF_CHECK(gone(first));
  end(user);
}

CAF_TEST_FIXTURE_SCOPE_END()
