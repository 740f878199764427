#define CAF_SUITE shared_client

#include "actors/shared_client.hpp"

#include "actors/client_registry.hpp"
#include "tests/support/mcp_client_fixture.hpp"

/// One server that several tenants use.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

constexpr const char* shared_path = "/shared.json";

server_entry make_entry(const std::string& name, const std::string& source) {
  server_entry entry;
  entry.name = name;
  entry.alias = name;
  entry.command = name + "-command";
  entry.source = source;
  return entry;
}

json text_result(const std::string& text) {
  return {{"content", {{{"type", "text"}, {"text", text}}}}};
}

/// Whoever makes calls.
struct heard {
  std::vector<tool_progress> progress;
};

tool_caller_actor::behavior_type listening_caller(tool_caller_actor::pointer,
                                                  std::shared_ptr<heard> log) {
  return {
      [log](const tool_progress& progress) { log->progress.push_back(progress); },
      [](const server_question&) -> caf::result<std::string> { return std::string{"{}"}; },
  };
}

struct tenant_part {
  std::shared_ptr<server_catalogue> catalogue = std::make_shared<server_catalogue>();
  client_registry_actor registry;
  mcp_client_actor client; ///< of the shared server
  std::uint64_t last_call = 0;
};

struct shared_fixture : client_fixture {
  shared_fixture() {
    server["tools/call"] = [this](const auto& child, const auto& request) {
      requests.push_back(request);
      if (request["params"]["name"] == "echo") {
        answer(child, request, text_result("hello"));
      }
    };
    configured->servers = {make_entry("shared", shared_path)};
    start_shared();
    for (auto* tenant : {&ann, &bob}) {
      tenant->catalogue->servers = configured->servers;
      start(*tenant);
      tenant->client = *client_of(*tenant, "shared")->value;
    }
  }

  ~shared_fixture() override {
    for (const auto& each : {ann.registry, bob.registry, registry}) {
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
      consume_messages();
    }
    caf::anon_send_exit(listener, caf::exit_reason::kill);
    consume_messages();
  }

  void start_shared() {
    shared_services here;
    here.has = [](const server_entry&) { return true; };
    registry = sys.spawn(sharing_registry, env, host, mcp_http_services{},
                         catalogue_ptr{configured}, here);
  }

  void start(tenant_part& tenant) {
    shared_services there;
    there.has = [](const server_entry& entry) { return entry.source == shared_path; };
    there.registry = [this] { return registry; };
    there.new_call = [this] { return ++calls_of_all; };
    tenant.registry = sys.spawn(sharing_registry, env, host, mcp_http_services{},
                                catalogue_ptr{tenant.catalogue}, there);
  }

  template <class T, class Receiver, class... Ts>
  outcome_ptr<T> ask_of(Receiver receiver, Ts... arguments) {
    auto result = std::make_shared<outcome<T>>();
    askers.push_back(sys.spawn([=](caf::event_based_actor* self) {
      self->request(receiver, caf::infinite, arguments...)
          .then([=](const T& value) { result->value = value; },
                [=](const caf::error& reason) { result->failure = from_caf(reason, "test"); });
    }));
    consume_messages();
    return result;
  }

  outcome_ptr<mcp_client_actor> client_of(tenant_part& tenant, const std::string& name) {
    return ask_of<mcp_client_actor>(tenant.registry, client_atom::value, name);
  }

  /// A call of a tenant's, whose ids are its own.
  outcome_ptr<std::string> call_by(tenant_part& tenant, const std::string& tool,
                                   std::string arguments = "{}") {
    tool_call what{++tenant.last_call, tool, std::move(arguments), in(60s), {}};
    what.caller = listener;
    return ask_of<std::string>(tenant.client, call_atom::value, what);
  }

  void cancel_by(tenant_part& tenant, std::uint64_t id) {
    self->send(tenant.client, cancel_atom::value, id);
    consume_messages();
  }

  outcome_ptr<documents_ptr> documents_of(tenant_part& tenant) {
    return ask_of<documents_ptr>(tenant.client, documents_atom::value, in(60s));
  }

  void line(const json& message) {
    script->children.back().line(message.dump());
    consume_messages();
  }

  /// The server answers the requests that it has, which were sent as calls of these tools.
  void answer_requests(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      answer(script->children.back(), requests[answered], text_result("done"));
      ++answered;
      consume_messages();
    }
  }

  std::vector<std::string> tools_called() const {
    std::vector<std::string> names;
    for (const auto& each : requests) {
      names.push_back(each["params"]["name"]);
    }
    return names;
  }

  std::shared_ptr<server_catalogue> configured = std::make_shared<server_catalogue>();
  client_registry_actor registry;
  tenant_part ann;
  tenant_part bob;
  std::uint64_t calls_of_all = 0;
  std::vector<json> requests;
  std::size_t answered = 0;
  std::shared_ptr<heard> log = std::make_shared<heard>();
  tool_caller_actor listener = sys.spawn(listening_caller, log);
};

using texts = std::vector<std::string>;

} // namespace

CAF_TEST_FIXTURE_SCOPE(shared_client_tests, shared_fixture)

CAF_TEST(two_tenants_use_one_process) {
  CAF_CHECK(ann.client != bob.client);
  CAF_CHECK(call_by(ann, "echo")->value);
  CAF_CHECK(call_by(bob, "echo")->value);
  CAF_CHECK_EQUAL(script->children.size(), 1u);
}

CAF_TEST(a_server_of_ones_own_is_run_for_it_alone) {
  for (auto* tenant : {&ann, &bob}) {
    tenant->catalogue = std::make_shared<server_catalogue>(*tenant->catalogue);
    tenant->catalogue->servers = {make_entry("shared", "/own.json")};
    caf::anon_send(tenant->registry, catalogue_atom::value, catalogue_ptr{tenant->catalogue});
    consume_messages();
    tenant->client = *client_of(*tenant, "shared")->value;
    CAF_CHECK(call_by(*tenant, "echo")->value);
  }
  CAF_CHECK_EQUAL(script->children.size(), 2u);
}

CAF_TEST(who_may_not_use_it_is_told_what_one_is_told_of_any_name) {
  tenant_part eve;
  start(eve);
  CAF_CHECK(tells(client_of(eve, "shared")->failure, errc::not_found,
                  {"there is no MCP server \"shared\"; configured are: none"}));
  caf::anon_send_exit(eve.registry, caf::exit_reason::user_shutdown);
  consume_messages();
}

CAF_TEST(the_same_id_of_two_tenants_is_two_calls) {
  auto of_ann = call_by(ann, "slow");
  auto of_bob = call_by(bob, "slow");
  cancel_by(ann, 1);
  CAF_CHECK(tells(of_ann->failure, errc::cancelled, {"slow"}));
  CAF_CHECK(of_bob->pending());
  auto note = last_line(1);
  CAF_CHECK(note["method"] == "notifications/cancelled");
  CAF_CHECK(note["params"]["requestId"] == requests[0]["id"]);
  answer(script->children[0], requests[1], text_result("of bob"));
  consume_messages();
  CAF_REQUIRE(of_bob->value);
  CAF_CHECK(json::parse(*of_bob->value) == text_result("of bob"));
}

CAF_TEST(progress_goes_to_whose_call_it_is_under_its_own_id) {
  call_by(ann, "slow");
  call_by(ann, "slow");
  auto of_bob = call_by(bob, "slow");
  line({{"jsonrpc", "2.0"},
        {"method", "notifications/progress"},
        {"params",
         {{"progressToken", requests[1]["params"]["_meta"]["progressToken"]}, {"progress", 1}}}});
  CAF_REQUIRE_EQUAL(log->progress.size(), 1u);
  CAF_CHECK_EQUAL(log->progress[0].call, 2u);
}

CAF_TEST(nobody_can_be_asked) {
  env->client->set({true, true, true, false, false});
  auto result = call_by(ann, "slow");
  line({{"jsonrpc", "2.0"},
        {"id", "q"},
        {"method", "elicitation/create"},
        {"params", {{"message", "Who?"}}}});
  auto reply = last_line(1);
  CAF_CHECK(reply["id"] == "q");
  CAF_CHECK(reply["error"]["code"] == -32601);
  CAF_CHECK(result->pending());
}

CAF_TEST(tenants_take_turns) {
  configured->servers[0].most_calls = 2;
  auto next = std::make_shared<server_catalogue>(*configured);
  caf::anon_send(registry, catalogue_atom::value, catalogue_ptr{next});
  consume_messages();
  for (int i = 0; i < 20; ++i) {
    call_by(ann, "a" + std::to_string(i));
  }
  call_by(bob, "b0");
  call_by(bob, "b1");
  CAF_CHECK(tools_called() == (texts{"a0", "a1"}));
  answer_requests(2);
  // Whoever has one call waits for one of another's, not for all.
  CAF_CHECK(tools_called() == (texts{"a0", "a1", "a2", "b0"}));
  answer_requests(2);
  CAF_CHECK(tools_called() == (texts{"a0", "a1", "a2", "b0", "a3", "b1"}));
  answer_requests(2);
  CAF_CHECK(tools_called() == (texts{"a0", "a1", "a2", "b0", "a3", "b1", "a4", "a5"}));
}

CAF_TEST(the_bound_on_calls_that_wait_is_each_tenants_own) {
  env->bounds.calls_waiting = 3;
  configured->servers[0].most_calls = 1;
  auto next = std::make_shared<server_catalogue>(*configured);
  caf::anon_send(registry, catalogue_atom::value, catalogue_ptr{next});
  consume_messages();
  for (int i = 0; i < 4; ++i) {
    call_by(ann, "slow");
  }
  CAF_CHECK(tells(call_by(ann, "slow")->failure, errc::overloaded, {"3 calls wait"}));
  auto of_bob = call_by(bob, "slow");
  CAF_CHECK(of_bob->pending());
}

CAF_TEST(arguments_of_one_tenant_leave_room_for_others) {
  env->bounds.tool_payload = 10'000;
  tenant_part eve;
  eve.catalogue->servers = configured->servers;
  start(eve);
  eve.client = *client_of(eve, "shared")->value;
  auto large = R"({"x":")" + std::string(9'000, 'x') + R"("})";
  auto first = call_by(eve, "slow", large);
  auto second = call_by(eve, "slow", large);
  CAF_CHECK(tells(call_by(eve, "slow", large)->failure, errc::overloaded, {"make fewer at once"}));
  CAF_CHECK(call_by(bob, "slow", large)->pending());
  answer_requests(1);
  CAF_CHECK(first->value);
  CAF_CHECK(call_by(eve, "slow", large)->pending());
  caf::anon_send_exit(eve.registry, caf::exit_reason::user_shutdown);
  consume_messages();
}

CAF_TEST(its_death_fails_the_calls_of_all_and_it_comes_back) {
  auto of_ann = call_by(ann, "slow");
  auto of_bob = call_by(bob, "slow");
  script->children[0].err("secret of ann\n");
  script->children[0].exit(3);
  consume_messages();
  for (const auto& each : {of_ann, of_bob}) {
    CAF_CHECK(tells(each->failure, errc::server_failed, {"exited with code 3", "server's log"}));
    CAF_CHECK(each->failure && each->failure->message.find("secret") == std::string::npos);
  }
  auto again = call_by(bob, "echo");
  pass(3s);
  CAF_CHECK(again->value);
  CAF_CHECK_EQUAL(script->children.size(), 2u);
}

CAF_TEST(a_registry_that_was_started_again_is_found) {
  CAF_CHECK(call_by(ann, "echo")->value);
  auto lost = call_by(ann, "slow");
  caf::anon_send_exit(registry, caf::exit_reason::user_shutdown);
  consume_messages();
  CAF_CHECK(lost->failure);
  registry = nullptr;
  CAF_CHECK(tells(call_by(ann, "echo")->failure, errc::unavailable, {"\"shared\" is shared"}));
  start_shared();
  CAF_CHECK(call_by(ann, "echo")->value);
  CAF_CHECK_EQUAL(script->children.size(), 2u);
}

CAF_TEST(a_tenant_that_goes_takes_its_calls_along_alone) {
  auto of_ann = call_by(ann, "slow");
  auto of_bob = call_by(bob, "slow");
  auto stopped = ask_of<caf::ok_atom>(ann.registry, stop_atom::value);
  CAF_CHECK(stopped->value);
  CAF_CHECK(tells(of_ann->failure, errc::closed, {"slow"}));
  CAF_CHECK(last_line(1)["params"]["requestId"] == requests[0]["id"]);
  answer(script->children[0], requests[1], text_result("of bob"));
  consume_messages();
  CAF_CHECK(of_bob->value);
}

CAF_TEST(documents_are_known_by_the_tenants_own_alias) {
  auto& alias = bob.catalogue->servers[0].alias;
  bob.catalogue = std::make_shared<server_catalogue>(*bob.catalogue);
  bob.catalogue->servers[0].alias = alias + "_1";
  caf::anon_send(bob.registry, catalogue_atom::value, catalogue_ptr{bob.catalogue});
  consume_messages();
  bob.client = *client_of(bob, "shared")->value;
  auto of_ann = documents_of(ann);
  auto of_bob = documents_of(bob);
  CAF_REQUIRE(of_ann->value && of_bob->value);
  CAF_CHECK_EQUAL((*of_ann->value)->alias, "shared");
  CAF_CHECK_EQUAL((*of_bob->value)->alias, "shared_1");
  CAF_CHECK(*documents_of(bob)->value == *of_bob->value);
  // What changes at the server has changed for all.
  line({{"jsonrpc", "2.0"}, {"method", "notifications/tools/list_changed"}});
  CAF_CHECK((*of_ann->value)->outdated.is_set() && (*of_bob->value)->outdated.is_set());
}

CAF_TEST(another_configuration_gives_another_process_and_tells_nobody_of_others_servers) {
  CAF_CHECK(call_by(ann, "echo")->value);
  auto next = std::make_shared<server_catalogue>(*configured);
  next->servers = {make_entry("others", shared_path), make_entry("sha-red", shared_path)};
  next->servers[1].alias = "shared";
  caf::anon_send(registry, catalogue_atom::value, catalogue_ptr{next});
  consume_messages();
  auto missing = documents_of(ann);
  CAF_CHECK(tells(missing->failure, errc::not_found, {"isn't there now"}));
  CAF_CHECK(missing->failure && missing->failure->message.find("others") == std::string::npos &&
            missing->failure->message.find("sha-red") == std::string::npos);
  auto changed = std::make_shared<server_catalogue>(*configured);
  changed->servers[0].args = {"--other"};
  caf::anon_send(registry, catalogue_atom::value, catalogue_ptr{changed});
  consume_messages();
  CAF_CHECK(documents_of(ann)->value);
  CAF_CHECK(call_by(ann, "echo")->value);
  CAF_CHECK(script->children.back().spec().argv.back() == "--other");
}

CAF_TEST(a_tenant_sees_how_it_is) {
  auto look = [this] {
    auto result = ask_of<client_status>(ann.client, status_atom::value);
    return result->value ? result->value->state : "none";
  };
  CAF_CHECK_EQUAL(look(), "idle");
  call_by(ann, "echo");
  CAF_CHECK_EQUAL(look(), "ready");
}

CAF_TEST_FIXTURE_SCOPE_END()
