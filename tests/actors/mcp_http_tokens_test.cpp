#define CAF_SUITE mcp_http_tokens

#include "tests/support/mcp_http_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

/// What a store of one token was told.
struct token_script {
  std::string token = "token-1";
  std::optional<error> failure;
  std::vector<std::string> refused;
  std::vector<std::string> challenges;
};

credential_store_actor::behavior_type scripted_tokens(credential_store_actor::pointer,
                                                      std::shared_ptr<token_script> script) {
  return {
      [script](token_atom, const std::string&, const std::string&,
               deadline) -> caf::result<std::string> {
        if (script->failure) {
          return to_caf(*script->failure);
        }
        return script->token;
      },
      [script](refuse_atom, const std::string&, const std::string&, const std::string& token) {
        script->refused.push_back(token);
        script->token = "token-2";
      },
      [script](record_atom, const std::string&, const std::string&, const std::string& challenge) {
        script->challenges.push_back(challenge);
      },
  };
}

struct token_fixture : http_client_fixture {
  token_fixture() {
    store = sys.spawn(scripted_tokens, tokens);
    services.credentials = [this] { return store; };
    be_modern();
  }
  ~token_fixture() override {
    caf::anon_send_exit(store, caf::exit_reason::kill);
    consume_messages();
  }

  std::shared_ptr<token_script> tokens = std::make_shared<token_script>();
  credential_store_actor store;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(mcp_http_tokens_tests, token_fixture)

CAF_TEST(a_login_s_token_goes_with_each_request) {
  make_client();
  CAF_REQUIRE(call("echo")->value);
  for (const auto& each : web->opened) {
    CAF_CHECK_EQUAL(each.header("Authorization"), "Bearer token-1");
  }
}

CAF_TEST(configured_credentials_come_first) {
  entry.headers = {{"authorization", "Basic configured"}};
  make_client();
  CAF_REQUIRE(call("echo")->value);
  CAF_CHECK_EQUAL(web->opened[0].header("Authorization"), "Basic configured");
}

CAF_TEST(a_token_that_is_refused_is_renewed_once_and_the_request_made_again) {
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    if (exchange.header("Authorization") == "Bearer token-2") {
      exchange.result({{"content", json::array()}});
    } else {
      exchange.answer(401, "", "", {{"WWW-Authenticate", "Bearer error=\"invalid_token\""}});
    }
  };
  CAF_CHECK(call("echo")->value);
  CAF_CHECK(tokens->refused == std::vector<std::string>{"token-1"});
  CAF_CHECK_EQUAL(web->of("tools/call").size(), 2u);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.answer(401, "", "", {{"WWW-Authenticate", "Bearer"}});
  };
  CAF_CHECK(tells(call("echo")->failure, errc::denied, {"401", "bulkhead login srv"}));
  CAF_CHECK_EQUAL(web->of("tools/call").size(), 4u);
  CAF_CHECK_EQUAL(tokens->challenges.back(), "Bearer");
}

CAF_TEST(who_logs_in_after_a_refusal_is_let_in) {
  tokens->token = "";
  for (const auto* method : {"server/discover", "tools/list", "tools/call"}) {
    auto answer = handlers[method];
    handlers[method] = [answer](const web_exchange& exchange) {
      if (exchange.header("Authorization") == "Bearer token-9") {
        answer(exchange);
      } else {
        exchange.answer(401, "", "", {{"WWW-Authenticate", "Bearer"}});
      }
    };
  }
  make_client();
  CAF_CHECK(tells(call("echo")->failure, errc::denied, {"401", "bulkhead login srv"}));
  CAF_CHECK_EQUAL(web->opened.size(), 1u); // without a token there is no use in asking again
  tokens->token = "token-9";
  CAF_CHECK(call("echo")->value);
  CAF_CHECK(tokens->refused.empty());
}

CAF_TEST(rights_that_do_not_suffice_are_told) {
  make_client();
  CAF_REQUIRE(documents()->value);
  handlers["tools/call"] = [](const web_exchange& exchange) {
    exchange.answer(403, "", "", {{"WWW-Authenticate", "Bearer error=\"insufficient_scope\""}});
  };
  CAF_CHECK(tells(call("echo")->failure, errc::denied, {"403", "bulkhead login srv"}));
  CAF_CHECK_EQUAL(tokens->challenges.size(), 1u);
  CAF_CHECK(tokens->refused.empty());
  // Another login may have brought more.
  tokens->token = "token-8";
  handlers["tools/call"] = answers({{"content", json::array()}});
  CAF_CHECK(call("echo")->value);
  CAF_CHECK_EQUAL(web->of("tools/call").back().header("Authorization"), "Bearer token-8");
}

CAF_TEST(a_token_that_the_stream_of_events_is_refused_with_is_renewed_for_the_next_call) {
  entry.transport = server_transport::sse;
  handlers["GET"] = [](const web_exchange& exchange) {
    exchange.answer(401, "", "", {{"WWW-Authenticate", "Basic"}, {"WWW-Authenticate", "Bearer"}});
  };
  make_client();
  CAF_CHECK(tells(call("echo")->failure, errc::denied, {"401", "bulkhead login srv"}));
  CAF_CHECK(tokens->refused == std::vector<std::string>{"token-1"});
  CAF_CHECK(tokens->challenges.back() == "Basic, Bearer");
  call("echo");
  CAF_CHECK(web->with("GET").back().header("Authorization") == "Bearer token-2");
}

CAF_TEST(a_store_that_has_no_use_for_its_token_any_more_fails_the_request) {
  tokens->failure = error{errc::denied, "the login has expired; run: bulkhead login srv"};
  make_client();
  CAF_CHECK(tells(call("echo")->failure, errc::denied, {"expired"}));
  CAF_CHECK(web->opened.empty());
}

CAF_TEST_FIXTURE_SCOPE_END()
