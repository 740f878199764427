#include "protocol/client_info.hpp"

#include "protocol/limits.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t longest = 128;

json_outline outline_of(std::string_view json) {
  auto outline = scan_json(json, scan_limits{limits{}.control_frame});
  return outline ? *outline : json_outline{};
}

} // namespace

client_info read_client_info(const mcp_request& request) {
  auto text = request.find("clientInfo");
  json_outline meta;
  if (text.empty()) {
    meta = outline_of(request.find("_meta"));
    text = meta.find("io.modelcontextprotocol/clientInfo");
  }
  auto info = outline_of(text);
  return {shortened(decode_json_string(info.find("name")), longest),
          shortened(decode_json_string(info.find("version")), longest)};
}

} // namespace bulkhead
