#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "actors/http_front_end.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/session_world.hpp"

// Its macros clash with everything else.
#include "caf/test/dsl.hpp"

namespace bulkhead::testing {

using nlohmann::json;
using std::chrono::seconds;

struct http_config : actor_config {
  http_config() {
    add_message_types<caf::id_block::bulkhead_process_host>();
    add_message_types<caf::id_block::bulkhead_http>();
  }
};

/// What a client was answered.
struct recorded_answer {
  outgoing_answer whole; ///< or the head of a stream
  std::string stream;
  bool answered = false;
  bool begun = false;
  bool ended = false;
  bool gone = false;
  bool abandoned = false;
  std::function<void()> told;

  std::string field(std::string_view name) const {
    for (const auto& each : whole.fields) {
      if (same_name(each.name, name)) {
        return each.value;
      }
    }
    return {};
  }

  json body() const { return json::parse(whole.body, nullptr, false); }

  /// The messages on the stream.
  std::vector<json> events() const {
    std::vector<json> found;
    std::istringstream lines{stream};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("data: {")) {
        found.push_back(json::parse(line.substr(6)));
      }
    }
    return found;
  }

  /// How many notifications of that kind came on the stream.
  std::size_t notifications(const std::string& method) const {
    auto all = events();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const json& each) {
      return each.value("method", "") == method;
    }));
  }

  /// The ids of its events, in order.
  std::vector<std::string> ids() const {
    std::vector<std::string> found;
    std::istringstream lines{stream};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("id: ")) {
        found.push_back(line.substr(4));
      }
    }
    return found;
  }
};

using answer_ptr = std::shared_ptr<recorded_answer>;

class recording_reply : public io::http_reply {
public:
  explicit recording_reply(answer_ptr to) : to_{std::move(to)} {}
  ~recording_reply() override {
    to_->abandoned = !to_->answered && !to_->ended;
    to_->told = nullptr;
  }

  void answer(outgoing_answer whole) override {
    to_->answered = true;
    to_->whole = std::move(whole);
  }
  void begin(outgoing_answer head) override {
    to_->begun = true;
    to_->whole = std::move(head);
  }
  void write(std::string bytes) override { to_->stream += bytes; }
  void end() override { to_->ended = to_->begun; }
  bool gone() const override { return to_->gone; }
  std::size_t unsent() const override { return 0; }
  void when_gone(std::function<void()> told) override { to_->told = std::move(told); }

private:
  answer_ptr to_;
};

struct http_fixture : test_coordinator_fixture<http_config> {
  http_fixture() {
    env->next_serial = [serial = std::uint64_t{0}]() mutable { return ++serial; };
    start({});
  }

  ~http_fixture() override {
    caf::anon_send_exit(front_end, caf::exit_reason::kill);
    for (auto& run : *runs) {
      caf::anon_send_exit(run->actor, caf::exit_reason::user_shutdown);
    }
    for (const auto& client : clients()) {
      caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
    }
    caf::anon_send_exit(scripted.admission, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(scripted.sessions(), caf::exit_reason::user_shutdown);
    consume_messages();
  }

  void start(http_allowance allowance) {
    if (front_end) {
      caf::anon_send_exit(front_end, caf::exit_reason::kill);
      caf::anon_send_exit(scripted.admission, caf::exit_reason::user_shutdown);
      caf::anon_send_exit(scripted.sessions(), caf::exit_reason::user_shutdown);
    }
    configured = std::make_shared<current_catalogue>(std::make_shared<server_catalogue>());
    scripted = scripted_context(sys, env, runs, admission, configured->get());
    scripted.configured = configured;
    http_front_end_context context;
    context.env = env;
    context.allowance = allowance;
    context.session_of = [this](const std::string& principal) -> std::optional<session_context> {
      auto made = scripted;
      made.owner = principal;
      made.queue_full = [this, principal] { return full.contains(principal); };
      return gone.contains(principal) ? std::nullopt : std::optional{made};
    };
    context.count_request = [this](const std::string& principal) {
      return answer_of(hasty, principal);
    };
    context.put_off_call = [this](const std::string& principal) {
      return answer_of(busy, principal);
    };
    front_end = sys.spawn(http_front_end, std::move(context));
    consume_messages();
  }

  static std::optional<too_soon> answer_of(const std::set<std::string>& all,
                                           const std::string& principal) {
    return all.contains(principal) ? std::optional{too_soon{"too soon", seconds{7}}} : std::nullopt;
  }

  http_front_end_state& state() {
    using pointer = http_front_end_actor::stateful_pointer<http_front_end_state>;
    return deref<std::remove_pointer_t<pointer>>(front_end).state;
  }

  std::vector<http_transport_actor> clients() {
    std::vector<http_transport_actor> all;
    for (const auto& [address, client] : state().all) {
      all.push_back(client);
    }
    return all;
  }

  answer_ptr ask(incoming_request request, std::string principal = "ali") {
    auto answer = std::make_shared<recorded_answer>();
    request.principal = std::move(principal);
    http_requests_to(front_end)(std::move(request), {}, std::make_shared<recording_reply>(answer));
    consume_messages();
    return answer;
  }

  answer_ptr post(const json& message, std::vector<http_field> fields = {},
                  std::string principal = "ali") {
    return ask({"POST", "/mcp", std::move(fields), message.dump(), {}}, std::move(principal));
  }

  static json request(const json& id, const std::string& method, json params = json::object()) {
    return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
  }

  answer_ptr initialize(const std::string& principal = "ali", json params = nullptr) {
    if (params.is_null()) {
      params = {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}};
    }
    return post(request(0, "initialize", params), {}, principal);
  }

  /// Opens a session and uses it from now on.
  void open() { session = initialize()->field("Mcp-Session-Id"); }

  std::vector<http_field> in_session(std::vector<http_field> more = {}) {
    more.push_back({"Mcp-Session-Id", session});
    more.push_back({"MCP-Protocol-Version", revision});
    return more;
  }

  answer_ptr legacy(const json& id, const std::string& method, json params = json::object()) {
    return post(request(id, method, std::move(params)), in_session());
  }

  answer_ptr call(const json& id, bool progress = true) {
    json params = {{"name", "run_python"}, {"arguments", {{"code", "1"}}}};
    if (progress) {
      params["_meta"] = {{"progressToken", id}};
    }
    return legacy(id, "tools/call", params);
  }

  answer_ptr get(std::vector<http_field> more = {}) {
    return ask({"GET", "/mcp", in_session(std::move(more)), {}, {}});
  }

  answer_ptr modern(const json& id, const std::string& method, json params = json::object(),
                    const std::string& principal = "ali") {
    auto name = params.value("name", "");
    params["_meta"].update({{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                            {"io.modelcontextprotocol/clientCapabilities", json::object()}});
    std::vector<http_field> fields = {{"MCP-Protocol-Version", "2026-07-28"},
                                      {"Mcp-Method", method}};
    if (!name.empty()) {
      fields.push_back({"Mcp-Name", name});
    }
    return post(request(id, method, std::move(params)), fields, principal);
  }

  answer_ptr modern_call(const json& id, json meta = json::object()) {
    return modern(id, "tools/call",
                  {{"name", "run_python"}, {"arguments", {{"code", "1"}}}, {"_meta", meta}});
  }

  void finish(std::size_t run, const std::string& out) {
    run_answer answer;
    answer.exit_code = 0;
    answer.out = {out, {}, out.size(), 0};
    caf::anon_send((*runs)[run]->actor, end_atom::value, std::move(answer));
    consume_messages();
  }

  void lose(const answer_ptr& answer) {
    answer->gone = true;
    if (answer->told) {
      std::exchange(answer->told, nullptr)();
    }
    consume_messages();
  }

  void pass(seconds time) {
    for (auto left = time; left.count() > 0; left -= seconds{5}) {
      advance_time(seconds{5});
      consume_messages();
    }
  }

  std::shared_ptr<bool> stop() {
    auto stopped = std::make_shared<bool>(false);
    sys.spawn([stopped, to = front_end](caf::event_based_actor* asking) {
      asking->request(to, seconds{60}, stop_atom::value)
          .then([stopped](caf::ok_atom) { *stopped = true; }, [](const caf::error&) {});
    });
    consume_messages();
    return stopped;
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<current_catalogue> configured;
  std::shared_ptr<scripted_runs> runs = std::make_shared<scripted_runs>();
  std::shared_ptr<admission_script> admission = std::make_shared<admission_script>();
  session_context scripted;
  http_front_end_actor front_end;
  std::string session;
  std::set<std::string> hasty; ///< principals whose requests come too fast,
  std::set<std::string> busy;  ///< whose calls would only wait,
  std::set<std::string> full;  ///< who has as many waiting as may,
  std::set<std::string> gone;  ///< and who are served no more
  std::string revision = "2025-11-25";
};

inline std::string text_of(const json& response) {
  return response.at("result").at("content").at(0).at("text").get<std::string>();
}

} // namespace bulkhead::testing
