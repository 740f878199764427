#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include "actors/environment.hpp"
#include "actors/errors.hpp"
#include "actors/mcp_client.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/scripted_process_host.hpp"

// Its macros clash with everything else.
#include "caf/test/dsl.hpp"

namespace bulkhead::testing {

using nlohmann::json;
using namespace std::chrono_literals;

/// What became of a request.
template <class T>
struct outcome {
  std::optional<T> value;
  std::optional<error> failure;
  bool pending() const { return !value && !failure; }
};

template <class T>
using outcome_ptr = std::shared_ptr<outcome<T>>;

/// The methods of a scripted server; each is given a request or notification of the client.
using methods = std::map<std::string, std::function<void(const scripted_child&, const json&)>>;

inline void answer(const scripted_child& child, const json& request, const json& result) {
  child.line(json({{"jsonrpc", "2.0"}, {"id", request["id"]}, {"result", result}}).dump());
}

inline void refuse(const scripted_child& child, const json& request, int code,
                   const std::string& text) {
  child.line(json({{"jsonrpc", "2.0"},
                   {"id", request["id"]},
                   {"error", {{"code", code}, {"message", text}}}})
                 .dump());
}

inline void ignore(const scripted_child&, const json&) {}

/// Answers with one tool, `echo`, and its calls with their arguments.
inline methods tool_methods() {
  return {
      {"tools/list",
       [](const auto& child, const auto& request) {
         answer(child, request, {{"tools", {{{"name", "echo"}, {"inputSchema", json::object()}}}}});
       }},
      {"tools/call", [](const auto& child, const auto& request) {
         answer(
             child, request,
             {{"content", json::array()}, {"structuredContent", request["params"]["arguments"]}});
       }}};
}

/// A server of revision 2025-11-25 that knows no server/discover.
inline methods legacy_methods() {
  auto result = tool_methods();
  result["initialize"] = [](const auto& child, const auto& request) {
    answer(child, request,
           {{"protocolVersion", "2025-11-25"},
            {"capabilities", {{"tools", json::object()}}},
            {"serverInfo", {{"name", "scripted"}, {"title", "A title"}, {"version", "1.0"}}}});
  };
  result["notifications/initialized"] = ignore;
  return result;
}

/// A server of revision 2026-07-28 that knows no initialize.
inline methods modern_methods() {
  auto result = tool_methods();
  result["server/discover"] = [](const auto& child, const auto& request) {
    answer(child, request,
           {{"supportedVersions", {"2026-07-28"}},
            {"capabilities", {{"tools", json::object()}}},
            {"resultType", "complete"}});
  };
  return result;
}

struct client_fixture : test_coordinator_fixture<actor_config> {
  client_fixture() {
    script->line = [this](const scripted_child& child, std::string_view line) {
      auto request = json::parse(line);
      auto found = server.find(request.value("method", ""));
      if (found != server.end()) {
        found->second(child, request);
      } else if (request.contains("id") && request.contains("method")) {
        refuse(child, request, -32601, "Method not found");
      }
    };
    env->instance = "0123456789abcdef";
    env->home = "/home/user";
    env->variable = [](std::string_view name) -> std::optional<std::string> {
      return name == "PATH" ? std::optional<std::string>{"/usr/bin"} : std::nullopt;
    };
    env->new_handle = [this] { return "handle-" + std::to_string(++handles); };
    env->budget = std::make_shared<memory_budget>(env->bounds.memory_budget);
    env->log =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    entry.name = "srv";
    entry.alias = "srv";
    entry.command = "srv-command";
    entry.source = "servers.json";
    host = sys.spawn(scripted_process_host, script);
  }

  ~client_fixture() override {
    caf::anon_send_exit(client, caf::exit_reason::kill);
    caf::anon_send_exit(host, caf::exit_reason::kill);
    for (const auto& asker : askers) {
      caf::anon_send_exit(asker, caf::exit_reason::kill);
    }
    consume_messages();
    script->children.clear();
  }

  /// Makes the client; change `entry`, `env->bounds` and `server` before.
  void make_client() { client = sys.spawn(mcp_client, env, host, entry); }

  deadline in(std::chrono::milliseconds time) { return deadline::at(sched.clock().now() + time); }

  /// Lets time pass, in steps, so that what one timeout causes gets its turn.
  void pass(std::chrono::milliseconds time) {
    constexpr auto step = 10ms;
    consume_messages();
    for (; time > 0ms; time -= step) {
      advance_time(std::min<std::chrono::milliseconds>(time, step));
      consume_messages();
    }
  }

  template <class T, class... Ts>
  outcome_ptr<T> ask(Ts... arguments) {
    auto result = std::make_shared<outcome<T>>();
    auto function = [=, receiver = client](caf::event_based_actor* self) {
      self->request(receiver, caf::infinite, arguments...)
          .then([=](const T& value) { result->value = value; },
                [=](const caf::error& reason) { result->failure = from_caf(reason, "test"); });
    };
    askers.push_back(sys.spawn(function));
    consume_messages();
    return result;
  }

  outcome_ptr<std::string> call(std::string tool, std::string arguments = "{}",
                                std::chrono::milliseconds time = 60s) {
    return ask<std::string>(
        call_atom::value,
        tool_call{++last_call, std::move(tool), std::move(arguments), in(time), {}});
  }

  void cancel(std::uint64_t id) {
    self->send(client, cancel_atom::value, id);
    consume_messages();
  }

  outcome_ptr<documents_ptr> documents(std::chrono::milliseconds time = 60s) {
    return ask<documents_ptr>(documents_atom::value, in(time));
  }

  client_status status() {
    auto result = ask<client_status>(status_atom::value);
    return result->value.value_or(client_status{});
  }

  outcome_ptr<caf::ok_atom> stop() { return ask<caf::ok_atom>(stop_atom::value); }

  /// The methods of all messages that the child got, in order.
  std::vector<std::string> methods_of(child_id child) const {
    std::vector<std::string> result;
    for (const auto& line : script->lines_of(child)) {
      auto message = json::parse(line);
      result.push_back(message.contains("method") ? message["method"].get<std::string>() : "");
    }
    return result;
  }

  json last_line(child_id child) const { return json::parse(script->lines_of(child).back()); }

  std::shared_ptr<environment> env = std::make_shared<environment>();
  std::shared_ptr<process_script> script = std::make_shared<process_script>();
  methods server = legacy_methods();
  server_entry entry;
  process_host_actor host;
  mcp_client_actor client;
  std::vector<caf::actor> askers;
  std::uint64_t last_call = 0;
  int handles = 0;
};

/// Does the error have this code and contain all these texts?
inline bool tells(const std::optional<error>& failure, errc code,
                  const std::vector<std::string>& texts) {
  bool right = failure && failure->code == code;
  for (const auto& text : texts) {
    right = right && failure->message.find(text) != std::string::npos;
  }
  if (!right) {
    CAF_MESSAGE("the error is: " << (failure ? std::string{to_string(failure->code)} + ": " +
                                                   failure->message
                                             : std::string{"none"}));
  }
  return right;
}

} // namespace bulkhead::testing
