#define CAF_SUITE credential_store

#include "actors/credential_store.hpp"

#include <cstdlib>
#include <deque>
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

constexpr const char* server_url = "https://a.example/mcp";

using token_answer = std::shared_ptr<expected<std::string>>;

/// An HTTP host that answers when told to.
struct scripted_http {
  std::deque<http_request> asked;
  std::deque<caf::typed_response_promise<http_response>> waiting;
};

using scripted_http_actor = http_host_actor::extend<
    /// Gives the oldest request that waits its answer.
    caf::reacts_to<respond_atom, http_response>>;

scripted_http_actor::behavior_type
http_script(scripted_http_actor::stateful_pointer<caf::unit_t> self,
            std::shared_ptr<scripted_http> script) {
  return {
      [self, script](call_atom, const http_request& request, deadline) {
        script->asked.push_back(request);
        script->waiting.push_back(self->make_response_promise<http_response>());
        return script->waiting.back();
      },
      [](open_atom, exchange_id, const http_request&, const http_owner_actor&) {},
      [](credit_atom, exchange_id, std::uint64_t) {},
      [](cancel_atom, exchange_id) {},
      [script](respond_atom, const http_response& answer) {
        script->waiting.front().deliver(answer);
        script->waiting.pop_front();
      },
  };
}

struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    std::string pattern = fs::temp_directory_path() / "credentials-XXXXXX";
    env->config->state_dir = ::mkdtemp(pattern.data());
    env->wall_clock = [this] { return now; };
    folder.emplace(credentials_of(*env->config));
    http = sys.spawn(http_script, script);
    store = sys.spawn(credential_store, env, [this] { return http; });
    asker = sys.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
    consume_messages();
  }

  ~fixture() override {
    script->waiting.clear();
    caf::anon_send_exit(store, caf::exit_reason::kill);
    caf::anon_send_exit(http, caf::exit_reason::kill);
    caf::anon_send_exit(asker, caf::exit_reason::kill);
    consume_messages();
    fs::remove_all(env->config->state_dir);
  }

  oauth_credential keep(const std::string& owner = "", const std::string& url = server_url) {
    oauth_credential credential;
    credential.owner = owner;
    credential.url = url;
    credential.server = "issues";
    credential.issuer = "https://as.example";
    credential.resource = url;
    credential.client = {"client", "", client_auth::none};
    credential.token_endpoint = "https://as.example/token";
    credential.access_token = "AT-" + owner + url;
    credential.refresh_token = "RT1";
    credential.expires = 10'000;
    CAF_REQUIRE(folder->write(credential));
    return credential;
  }

  std::optional<oauth_credential> kept() const { return *folder->read("", server_url); }

  token_answer ask(const std::string& owner = "", const std::string& url = server_url) {
    auto& asking = deref<caf::event_based_actor>(asker);
    asking.context(nullptr);
    auto answer = std::make_shared<expected<std::string>>(fail(errc::internal, "pending"));
    asking
        .request(store, caf::infinite, token_atom::value, owner, url,
                 deadline::at(sched.clock().now() + 1h))
        .then([answer](const std::string& token) { *answer = token; },
              [answer](const caf::error& reason) {
                *answer = tl::unexpected{from_caf(reason, "ask")};
              });
    consume_messages();
    return answer;
  }

  static bool pending(const token_answer& answer) {
    return !*answer && answer->error().message == "pending";
  }

  void refuse(const std::string& token) {
    caf::anon_send(store, refuse_atom::value, std::string{}, std::string{server_url}, token);
    consume_messages();
  }

  void reply(std::uint32_t status, const std::string& body) {
    CAF_REQUIRE(!script->waiting.empty());
    caf::anon_send(http, respond_atom::value, http_response{status, {}, body});
    consume_messages();
  }

  void pass(std::chrono::milliseconds time) {
    advance_time(time);
    consume_messages();
  }

  std::shared_ptr<environment> env = test_environment();
  std::chrono::system_clock::time_point now{5'000s};
  std::optional<credential_folder> folder;
  std::shared_ptr<scripted_http> script = std::make_shared<scripted_http>();
  scripted_http_actor http;
  credential_store_impl_actor store;
  caf::actor asker;
};

constexpr const char* fresh_tokens =
    R"({"access_token": "AT2", "token_type": "Bearer", "expires_in": 3600,
        "refresh_token": "RT2"})";

} // namespace

CAF_TEST_FIXTURE_SCOPE(credential_store_tests, fixture)

CAF_TEST(without a login there is no token) {
  auto answer = ask();
  CAF_REQUIRE(*answer);
  CAF_CHECK((*answer)->empty());
  CAF_CHECK((**ask("", "https://user:word@a.example/mcp")).empty());
  CAF_CHECK(!fs::exists(env->config->state_dir + "/credentials"));
}

CAF_TEST(a token is of one owner and one server) {
  keep("");
  keep("tenant");
  keep("", "https://b.example/mcp");
  CAF_CHECK(**ask("", server_url) == "AT-https://a.example/mcp");
  CAF_CHECK(**ask("tenant", server_url) == "AT-tenanthttps://a.example/mcp");
  CAF_CHECK(**ask("", "https://b.example/mcp") == "AT-https://b.example/mcp");
  CAF_CHECK((**ask("other", server_url)).empty());
  CAF_CHECK((**ask("tenant", "https://b.example/mcp")).empty());
  CAF_CHECK((**ask("", "https://a.example/other")).empty());
  // Another spelling of the same URL.
  CAF_CHECK(**ask("", "HTTPS://A.example:443/mcp") == "AT-https://a.example/mcp");
}

CAF_TEST(a file that was moved to another name is not used) {
  keep("tenant");
  auto root = fs::path{env->config->state_dir} / "credentials";
  fs::copy_file(root / (credential_name("tenant", server_url) + ".json"),
                root / (credential_name("", server_url) + ".json"));
  auto answer = ask();
  CAF_REQUIRE(!*answer);
  CAF_CHECK(answer->error().code == errc::denied);
}

CAF_TEST(an expired token is refreshed once for all who wait) {
  keep();
  now += 6'000s;
  auto first = ask();
  auto second = ask();
  CAF_CHECK(pending(first) && pending(second));
  CAF_REQUIRE(script->asked.size() == 1);
  const auto& request = script->asked.front();
  CAF_CHECK(request.method == "POST");
  CAF_CHECK(request.url == "https://as.example/token");
  CAF_CHECK(request.public_only);
  CAF_CHECK(request.redirects == 0);
  auto form = *decode_form(request.body);
  CAF_CHECK(form["grant_type"] == "refresh_token");
  CAF_CHECK(form["refresh_token"] == "RT1");
  CAF_CHECK(form["resource"] == server_url);
  reply(200, fresh_tokens);
  CAF_CHECK(**first == "AT2");
  CAF_CHECK(**second == "AT2");
  CAF_CHECK(kept()->refresh_token == "RT2");
  CAF_CHECK(**ask() == "AT2");
  CAF_CHECK(script->asked.size() == 1);
}

CAF_TEST(a refused token is refreshed before it is given out again) {
  auto credential = keep();
  refuse("another token");
  CAF_CHECK(**ask() == credential.access_token);
  refuse(credential.access_token);
  auto answer = ask();
  CAF_REQUIRE(script->asked.size() == 1);
  reply(200, fresh_tokens);
  CAF_CHECK(**answer == "AT2");
}

CAF_TEST(a refresh that is final ends the login and says what to do) {
  keep();
  now += 6'000s;
  auto answer = ask();
  reply(400, R"({"error": "invalid_grant", "error_description": "revoked"})");
  CAF_REQUIRE(!*answer);
  CAF_CHECK(answer->error().code == errc::denied);
  CAF_CHECK(answer->error().message.find("revoked") != std::string::npos);
  CAF_CHECK(answer->error().message.find("bulkhead login issues") != std::string::npos);
  CAF_CHECK(answer->error().message.find("RT1") == std::string::npos);
  CAF_CHECK(!kept());
  CAF_CHECK((**ask()).empty());
}

CAF_TEST(a refresh that fails for a while keeps the login) {
  keep();
  now += 6'000s;
  auto answer = ask();
  reply(503, "busy");
  CAF_REQUIRE(!*answer);
  CAF_CHECK(answer->error().code == errc::unavailable);
  CAF_CHECK(kept()->refresh_token == "RT1");
  auto again = ask();
  reply(200, fresh_tokens);
  CAF_CHECK(**again == "AT2");
}

CAF_TEST(a token that can not be refreshed ends the login) {
  auto credential = keep();
  CAF_REQUIRE(folder->write_challenge("", server_url, "Bearer scope=\"read\""));
  credential.refresh_token.clear();
  CAF_REQUIRE(folder->write(credential));
  CAF_CHECK(**ask() == credential.access_token);
  refuse(credential.access_token);
  auto answer = ask();
  CAF_REQUIRE(!*answer);
  CAF_CHECK(answer->error().code == errc::denied);
  CAF_CHECK(script->asked.empty());
  CAF_CHECK(!kept());
  // The next login needs it.
  CAF_CHECK(folder->challenge("", server_url) == "Bearer scope=\"read\"");
}

CAF_TEST(while another process refreshes it waits and takes the result) {
  auto credential = keep();
  now += 6'000s;
  auto lock = folder->try_lock("", server_url);
  CAF_REQUIRE(lock && *lock);
  auto answer = ask();
  pass(1s);
  CAF_CHECK(pending(answer));
  CAF_CHECK(script->asked.empty());
  credential.access_token = "AT-theirs";
  credential.expires = 20'000;
  CAF_REQUIRE(folder->write(credential));
  lock->reset();
  pass(100ms);
  CAF_CHECK(**answer == "AT-theirs");
  CAF_CHECK(script->asked.empty());
}

CAF_TEST(a process that holds the lock for ever is given up) {
  keep();
  now += 6'000s;
  auto lock = folder->try_lock("", server_url);
  auto answer = ask();
  for (int i = 0; i < 700 && pending(answer); ++i) {
    pass(50ms);
  }
  CAF_REQUIRE(!*answer);
  CAF_CHECK(answer->error().code == errc::timeout);
}

CAF_TEST(what a server asks for is kept for the next login) {
  caf::anon_send(store, record_atom::value, std::string{}, std::string{server_url},
                 std::string{"Bearer scope=\"write\""});
  consume_messages();
  CAF_CHECK(folder->challenge("", server_url) == "Bearer scope=\"write\"");
  CAF_CHECK(folder->challenge("other", server_url).empty());
}

CAF_TEST_FIXTURE_SCOPE_END()
