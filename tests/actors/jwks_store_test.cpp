#define CAF_SUITE jwks_store

#include "actors/jwks_store.hpp"

#include <algorithm>
#include <functional>
#include <sstream>

#include <caf/all.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/errors.hpp"
#include "protocol/oauth_metadata.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/test_keys.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using namespace std::chrono_literals;

namespace {

const std::string issuer = "https://login.example.org/team";
const std::string keys_url = "https://login.example.org/keys";
const std::string keys_text = set_of({ec_jwk(ec(), "e1")});
const std::string metadata = json{{"issuer", issuer}, {"jwks_uri", keys_url}}.dump();

/// A web whose pages the test decides; a page without a status never answers.
struct scripted_pages {
  std::map<std::string, http_response> pages;
  std::vector<http_request> asked;
  error missing{errc::unavailable, "no such host"};
  std::vector<caf::typed_response_promise<http_response>> silent;

  std::size_t count(const std::string& url) const {
    return static_cast<std::size_t>(std::count_if(
        asked.begin(), asked.end(), [&](const http_request& each) { return each.url == url; }));
  }
};

using pages_actor = http_host_actor::extend<
    /// Gives the oldest request that waits its answer.
    caf::reacts_to<respond_atom, http_response>>;

pages_actor::behavior_type pages_host(pages_actor::pointer self,
                                      std::shared_ptr<scripted_pages> script) {
  return {
      [self, script](call_atom, const http_request& request,
                     deadline) -> caf::result<http_response> {
        script->asked.push_back(request);
        auto found = script->pages.find(request.url);
        if (found == script->pages.end()) {
          return to_caf(script->missing);
        }
        if (found->second.status == 0) {
          script->silent.push_back(self->make_response_promise<http_response>());
          return script->silent.back();
        }
        return found->second;
      },
      [](open_atom, exchange_id, const http_request&, const http_owner_actor&) {},
      [](credit_atom, exchange_id, std::uint64_t) {},
      [](cancel_atom, exchange_id) {},
      [script](respond_atom, const http_response& answer) {
        script->silent.front().deliver(answer);
        script->silent.erase(script->silent.begin());
      },
  };
}

oauth_resource resource_of(const std::string& uri) {
  oauth_resource result{"https://mcp.example.org/mcp", {}, {}};
  result.issuers.push_back({issuer, uri, result.resource, {"ES256"}, "team", {}, false});
  return result;
}

struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    script->pages[keys_url] = {200, {}, keys_text};
    http = sys.spawn(pages_host, script);
  }

  ~fixture() override {
    script->silent.clear();
    caf::anon_send_exit(store, caf::exit_reason::kill);
    caf::anon_send_exit(http, caf::exit_reason::kill);
    consume_messages();
  }

  void start(const std::string& uri = keys_url) {
    ring->set_resource(resource_of(uri));
    store = sys.spawn(jwks_store, ring,
                      std::make_shared<spdlog::logger>(
                          "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_text)),
                      [this] { return http; });
    consume_messages();
  }

  void pass(std::chrono::seconds time) {
    advance_time(time);
    consume_messages();
  }

  /// As a request does whose token names an unknown key.
  key_ring::asking ask() {
    auto asked = ring->ask(issuer, sched.clock().now());
    if (asked == key_ring::asking::begin) {
      caf::anon_send(store, renew_atom::value, issuer);
      consume_messages();
    }
    return asked;
  }

  std::size_t known() const {
    auto contents = ring->get();
    auto found = contents->keys.find(issuer);
    return found != contents->keys.end() ? found->second->keys().size() : 0;
  }

  std::shared_ptr<scripted_pages> script = std::make_shared<scripted_pages>();
  std::shared_ptr<key_ring> ring = std::make_shared<key_ring>();
  std::ostringstream log_text;
  pages_actor http;
  jwks_store_impl_actor store;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(jwks_store_tests, fixture)

CAF_TEST(keys are fetched at first and every hour) {
  start();
  CAF_CHECK(known() == 1);
  CAF_CHECK(script->asked.size() == 1);
  CAF_CHECK(script->asked[0].public_only);
  CAF_CHECK(script->asked[0].redirects == 0);
  script->pages[keys_url].body = set_of({ec_jwk(ec(), "e1"), rsa_jwk(rsa(), "r1")});
  pass(59min);
  CAF_CHECK(script->asked.size() == 1);
  pass(2min);
  CAF_CHECK(script->asked.size() == 2);
  CAF_CHECK(known() == 2);
}

CAF_TEST(the issuer tells where its keys are) {
  script->pages["https://login.example.org/.well-known/oauth-authorization-server/team"] = {
      404, {}, ""};
  script->pages["https://login.example.org/.well-known/openid-configuration/team"] = {
      200, {}, metadata};
  start("");
  CAF_CHECK(known() == 1);
  CAF_CHECK(script->asked.size() == 3);
}

CAF_TEST(metadata of another issuer is not believed) {
  script->pages["https://login.example.org/.well-known/oauth-authorization-server/team"] = {
      200, {}, json{{"issuer", "https://evil.example"}, {"jwks_uri", keys_url}}.dump()};
  start("");
  CAF_CHECK(known() == 0);
  CAF_CHECK(script->count(keys_url) == 0);
  CAF_CHECK(log_text.str().find("another authorization server") != std::string::npos);
}

CAF_TEST(an issuer without metadata) {
  for (const auto& url : issuer_metadata_urls(*read_web_url(issuer, "it"))) {
    script->pages[url] = {404, {}, ""};
  }
  start("");
  CAF_CHECK(known() == 0);
  CAF_CHECK(log_text.str().find("jwks_uri") != std::string::npos);
}

CAF_TEST(an unknown key leads to one fetch and then to none for a while) {
  start();
  CAF_CHECK(ask() == key_ring::asking::too_soon); // the first ones have just come
  pass(31s);
  CAF_CHECK(ask() == key_ring::asking::begin);
  CAF_CHECK(script->asked.size() == 2);
  for (int i = 0; i < 100; ++i) {
    CAF_CHECK(ask() == key_ring::asking::too_soon);
  }
  CAF_CHECK(script->asked.size() == 2);
  pass(31s);
  CAF_CHECK(ask() == key_ring::asking::begin);
  CAF_CHECK(script->asked.size() == 3);
}

CAF_TEST(a server that is down keeps nobody out) {
  start();
  script->pages[keys_url] = {500, {}, ""};
  pass(61min);
  CAF_CHECK(script->asked.size() == 2);
  CAF_CHECK(known() == 1);
  CAF_CHECK(log_text.str().find("HTTP 500") != std::string::npos);
  script->pages[keys_url] = {200, {}, set_of({rsa_jwk(rsa(), "r1"), ec_jwk(ec(), "e1")})};
  pass(11s);
  CAF_CHECK(script->asked.size() == 3);
  CAF_CHECK(known() == 2);
}

CAF_TEST(failures are tried again ever more seldom) {
  script->pages.clear();
  start();
  auto tries = [&](std::chrono::seconds time) {
    auto before = script->asked.size();
    for (auto at = 0s; at < time; at += 5s) {
      pass(5s);
    }
    return script->asked.size() - before;
  };
  auto first = tries(10min);
  CAF_CHECK(first >= 3);
  CAF_CHECK(first <= 8);
  auto second = tries(60min);
  CAF_CHECK(second >= 5);
  CAF_CHECK(second <= 7);
}

CAF_TEST(a server that never answers) {
  script->pages[keys_url].status = 0;
  start();
  CAF_CHECK(ask() == key_ring::asking::under_way);
  pass(7s);
  CAF_CHECK(ask() == key_ring::asking::too_soon);
  CAF_CHECK(known() == 0);
  script->pages[keys_url].status = 200;
  pass(20s);
  CAF_CHECK(known() == 1);
}

CAF_TEST(another configuration) {
  start();
  ring->set_resource(std::nullopt);
  caf::anon_send(store, catalogue_atom::value);
  pass(2h);
  CAF_CHECK(script->asked.size() == 1);
  CAF_CHECK(known() == 0);
  ring->set_resource(resource_of(keys_url));
  caf::anon_send(store, catalogue_atom::value);
  consume_messages();
  CAF_CHECK(known() == 1);
  auto elsewhere = resource_of("https://login.example.org/other");
  elsewhere.issuers[0].private_network = true;
  script->pages["https://login.example.org/other"] = {200, {}, keys_text};
  ring->set_resource(elsewhere);
  caf::anon_send(store, catalogue_atom::value);
  consume_messages();
  CAF_CHECK(known() == 1);
  CAF_CHECK(script->asked.back().url == "https://login.example.org/other");
  CAF_CHECK(!script->asked.back().public_only);
}

CAF_TEST(keys of an issuer that is gone meanwhile are not kept) {
  script->pages[keys_url].status = 0;
  start();
  ring->set_resource(std::nullopt);
  caf::anon_send(store, catalogue_atom::value);
  consume_messages();
  caf::anon_send(http, respond_atom::value, http_response{200, {}, keys_text});
  consume_messages();
  CAF_CHECK(known() == 0);
  CAF_CHECK(ask() != key_ring::asking::under_way);
}

CAF_TEST(why keys cannot be had is known until they can) {
  script->pages.clear();
  start();
  CAF_CHECK(ring->get()->failures.at(issuer).find("no such host") != std::string::npos);
  script->pages[keys_url] = {200, {}, keys_text};
  pass(15s);
  CAF_CHECK(known() == 1);
  CAF_CHECK(ring->get()->failures.empty());
}

CAF_TEST(a private address names the key that allows it) {
  script->pages.clear();
  script->missing = {errc::denied, "its host has the address 10.0.0.1"};
  start();
  CAF_CHECK(log_text.str().find("10.0.0.1; if that is where") != std::string::npos);
  CAF_CHECK(log_text.str().find("private_network = true") != std::string::npos);
}

CAF_TEST_FIXTURE_SCOPE_END()
