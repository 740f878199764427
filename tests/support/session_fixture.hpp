#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "actors/mcp_session.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/scripted_store.hpp"
#include "tests/support/session_world.hpp"

// Its macros clash with everything else.
#include "caf/test/dsl.hpp"

namespace bulkhead::testing {

using nlohmann::json;
using std::chrono::seconds;

const json modern_meta = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                          {"io.modelcontextprotocol/clientCapabilities", json::object()}};

inline run_answer success(std::string out) {
  run_answer answer;
  answer.exit_code = 0;
  answer.out = {std::move(out), {}, 0, 0};
  answer.out.total = answer.out.head.size();
  return answer;
}

/// A session with a client, an admission and runs that the test controls.
struct session_fixture : test_coordinator_fixture<actor_config> {
  session_fixture() {
    auto servers = std::make_shared<server_catalogue>();
    servers->servers.resize(2);
    servers->servers[0].name = servers->servers[0].alias = "memory";
    servers->servers[1].name = servers->servers[1].alias = "vault";
    servers->rules.deny = {"vault"};
    context = scripted_context(sys, env, runs, admission, servers);
    store = sys.spawn(scripted_store, left);
    context.store = [this] { return store; };
    context.only_client = true;
    out = sys.spawn(recording_front_end, written);
    begin_session();
  }

  ~session_fixture() override {
    for (auto& run : *runs) {
      caf::anon_send_exit(run->actor, caf::exit_reason::user_shutdown);
    }
    // They hold promises, and so themselves.
    for (const auto& each : sessions) {
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
    }
    caf::anon_send_exit(context.admission, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(context.sessions(), caf::exit_reason::user_shutdown);
    caf::anon_send_exit(store, caf::exit_reason::user_shutdown);
    consume_messages();
  }

  /// Another one, with which the test talks from now on.
  void begin_session() {
    session = sys.spawn(bulkhead::mcp_session, context, out);
    sessions.push_back(session);
    consume_messages();
  }

  void say_text(std::string text) {
    caf::anon_send(session, message_atom::value, std::move(text));
    consume_messages();
  }

  void say(const json& message) { say_text(message.dump()); }

  void ask(const json& id, const std::string& method, json params = json::object()) {
    say({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
  }

  void ask_modern(const json& id, const std::string& method, json params = json::object()) {
    auto meta = modern_meta;
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    meta.update(params.value("_meta", json::object()));
    params["_meta"] = meta;
    ask(id, method, std::move(params));
  }

  void initialize(const std::string& revision = "2025-11-25") {
    ask("init", "initialize",
        {{"protocolVersion", revision},
         {"capabilities", capabilities},
         {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
    say({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  }

  void call(const json& id, const std::string& code, json meta = nullptr) {
    json params = {{"name", "run_python"}, {"arguments", {{"code", code}}}};
    if (!meta.is_null()) {
      params["_meta"] = std::move(meta);
    }
    ask(id, "tools/call", std::move(params));
  }

  void cancel(const json& id) {
    say({{"jsonrpc", "2.0"},
         {"method", "notifications/cancelled"},
         {"params", {{"requestId", id}, {"reason", "test"}}}});
  }

  void finish(std::size_t run, run_answer answer) {
    caf::anon_send((*runs)[run]->actor, end_atom::value, std::move(answer));
    consume_messages();
  }

  void pass(seconds time) {
    for (auto left = time; left.count() > 0; --left) {
      advance_time(seconds{1});
      consume_messages();
    }
  }

  /// Asks the session to stop; what it returns becomes true with the answer.
  std::shared_ptr<bool> stop() {
    auto stopped = std::make_shared<bool>(false);
    sys.spawn([stopped, to = session](caf::event_based_actor* asking) {
      asking->request(to, seconds{60}, stop_atom::value)
          .then([stopped](caf::ok_atom) { *stopped = true; }, [](const caf::error&) {});
    });
    consume_messages();
    return stopped;
  }

  /// How many answers came to the request `id`.
  std::size_t answers(const json& id) const {
    return static_cast<std::size_t>(
        std::count_if(messages->begin(), messages->end(),
                      [&](const json& each) { return each.contains("id") && each["id"] == id; }));
  }

  /// The last answer to `id`; null when there is none.
  json answer(const json& id) const {
    for (auto each = messages->rbegin(); each != messages->rend(); ++each) {
      if (each->contains("id") && (*each)["id"] == id) {
        return *each;
      }
    }
    return nullptr;
  }

  /// What the answer to `id` has at a JSON pointer, by value: checks keep references only.
  json answer(const json& id, const std::string& where) const {
    auto found = answer(id);
    json::json_pointer pointer{where};
    return found.contains(pointer) ? found[pointer] : json(nullptr);
  }

  json result(const json& id, const std::string& where = "") const {
    return answer(id, "/result" + where);
  }

  int code(const json& id) const {
    auto found = answer(id);
    return found.contains("error") ? found["error"]["code"].get<int>() : 0;
  }

  std::vector<json> notifications(const std::string& method) const {
    std::vector<json> found;
    for (const auto& each : *messages) {
      if (each.value("method", "") == method) {
        found.push_back(each.value("params", json()));
      }
    }
    return found;
  }

  /// What the client declares.
  json capabilities = json::object();
  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<scripted_runs> runs = std::make_shared<scripted_runs>();
  std::shared_ptr<admission_script> admission = std::make_shared<admission_script>();
  std::shared_ptr<written_messages> written = std::make_shared<written_messages>();
  std::vector<json>* messages = &written->messages;
  std::shared_ptr<store_script> left = std::make_shared<store_script>();
  session_context context;
  artifact_store_actor store;
  front_end_actor out;
  mcp_session_actor session;
  std::vector<mcp_session_actor> sessions; ///< all of them, for the end
};

} // namespace bulkhead::testing
