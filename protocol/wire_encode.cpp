#include "protocol/wire.hpp"

#include <fmt/format.h>

#include "protocol/base64.hpp"
#include "protocol/json_text.hpp"

namespace bulkhead {

std::string encode_servers(const std::vector<server_brief>& servers) {
  std::string result = "[";
  for (const auto& server : servers) {
    result += result.size() > 1 ? ",{\"name\":" : "{\"name\":";
    append_json_string(result, server.name);
    result += ",\"alias\":";
    append_json_string(result, server.alias);
    result += ",\"description\":";
    append_json_string(result, server.description);
    result += '}';
  }
  return result + "]";
}

std::string encode_init(const std::vector<server_brief>& servers,
                        const std::vector<server_brief>& discovered, const limits& bounds,
                        bool autoload) {
  return fmt::format(R"({{"type":"init","servers":{},"discovered":{}{},"limits":)"
                     R"({{"callsInFlight":{},"frameBytes":{},"outputChunkBytes":{},)"
                     R"("artifactBytes":{},"artifactsBytes":{},"artifacts":{}}}}})"
                     "\n",
                     encode_servers(servers), encode_servers(discovered),
                     autoload ? R"(,"autoload":true)" : "", bounds.calls_in_flight,
                     bounds.tool_payload, bounds.output_frame, bounds.artifact, bounds.artifacts,
                     bounds.artifact_count);
}

std::string encode_execute(std::string_view run, std::string_view code, bool session,
                           const std::vector<input_file>& files) {
  std::string result = R"({"type":"execute","id":)";
  append_json_string(result, run);
  result += R"(,"code":)";
  append_json_string(result, code);
  if (session) {
    result += R"(,"session":true)";
  }
  std::string_view before = R"(,"files":[{"path":)";
  for (const auto& file : files) {
    result += before;
    before = R"(,{"path":)";
    append_json_string(result, file.path);
    result += R"(,"b64":")" + encode_base64(file.bytes) + "\"}";
  }
  return result + (files.empty() ? "}\n" : "]}\n");
}

std::string encode_response(std::uint64_t id, std::string_view payload) {
  auto result = fmt::format(R"({{"type":"rpc_response","id":{},"success":true,"payload":)", id);
  result.reserve(result.size() + payload.size() + 2);
  append_json_line(result, payload);
  return result + "}\n";
}

std::string encode_refusal(std::uint64_t id, const error& reason) {
  return fmt::format(
      R"({{"type":"rpc_response","id":{},"success":false,"error":{{"code":{},"message":{}}}}})"
      "\n",
      id, json_quote(to_string(reason.code)), json_quote(reason.message));
}

std::string encode_cancel(std::string_view run) {
  return fmt::format(R"({{"type":"cancel","id":{}}})"
                     "\n",
                     json_quote(run));
}

std::string encode_shutdown() {
  return "{\"type\":\"shutdown\"}\n";
}

} // namespace bulkhead
