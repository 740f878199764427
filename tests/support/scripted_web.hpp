#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "actors/errors.hpp"
#include "actors/interfaces.hpp"
#include "protocol/ascii.hpp"

namespace bulkhead::testing {

/// An exchange as a scripted web server sees it. Only for the deterministic scheduler.
struct web_exchange {
  exchange_id id = 0;
  http_request request;
  http_owner_actor owner;

  std::string header(const std::string& name) const {
    for (const auto& each : request.headers) {
      if (lower_case(each.name) == lower_case(name)) {
        return each.value;
      }
    }
    return {};
  }
  nlohmann::json body() const { return nlohmann::json::parse(request.body, nullptr, false); }
  std::string method() const {
    auto message = body();
    return message.is_object() ? message.value("method", "") : std::string{};
  }

  void head(std::uint32_t status, std::vector<http_header> headers) const {
    caf::anon_send(owner, http_head{id, status, std::move(headers)});
  }
  void bytes(std::string text) const { caf::anon_send(owner, http_body{id, std::move(text)}); }
  void end(error reason = {errc::none, {}}) const {
    caf::anon_send(owner, http_end{id, std::move(reason)});
  }

  void answer(std::uint32_t status, const std::string& type, std::string text,
              std::vector<http_header> more = {}) const {
    if (!type.empty()) {
      more.push_back({"Content-Type", type});
    }
    head(status, std::move(more));
    if (!text.empty()) {
      bytes(std::move(text));
    }
    end();
  }
  void result(const nlohmann::json& result, std::vector<http_header> more = {}) const {
    answer(200, "application/json", response(result), std::move(more));
  }
  std::string response(const nlohmann::json& result) const {
    return nlohmann::json{{"jsonrpc", "2.0"}, {"id", body()["id"]}, {"result", result}}.dump();
  }
  void events() const { head(200, {{"Content-Type", "text/event-stream"}}); }
  void event(const std::string& data, const std::string& event_id = {}) const {
    bytes((event_id.empty() ? "" : "id: " + event_id + "\n") + "data: " + data + "\n\n");
  }
};

/// Everything a scripted web was asked.
struct web_script {
  std::function<void(const web_exchange&)> serve;
  std::vector<web_exchange> opened;
  std::vector<exchange_id> cancelled;
  std::map<exchange_id, std::uint64_t> credit;

  std::vector<web_exchange> of(const std::string& method) const {
    std::vector<web_exchange> result;
    for (const auto& each : opened) {
      if (each.method() == method) {
        result.push_back(each);
      }
    }
    return result;
  }
  std::vector<web_exchange> with(const std::string& http_method) const {
    std::vector<web_exchange> result;
    for (const auto& each : opened) {
      if (each.request.method == http_method) {
        result.push_back(each);
      }
    }
    return result;
  }
  bool was_cancelled(exchange_id id) const {
    return std::find(cancelled.begin(), cancelled.end(), id) != cancelled.end();
  }
};

inline http_host_actor::behavior_type scripted_web(http_host_actor::pointer,
                                                   std::shared_ptr<web_script> script) {
  return {
      [](call_atom, const http_request& request, deadline) -> caf::result<http_response> {
        return to_caf(errc::unavailable, request.url);
      },
      [script](open_atom, exchange_id id, const http_request& request,
               const http_owner_actor& owner) {
        script->opened.push_back({id, request, owner});
        script->serve(web_exchange{id, request, owner});
      },
      [script](credit_atom, exchange_id id, std::uint64_t bytes) { script->credit[id] += bytes; },
      [script](cancel_atom, exchange_id id) { script->cancelled.push_back(id); },
  };
}

} // namespace bulkhead::testing
