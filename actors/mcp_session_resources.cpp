// Resources: the guide, and what runs left.

#include "actors/mcp_session.hpp"

#include <utility>

#include <caf/all.hpp>
#include <embedded/guest.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "protocol/json_rpc.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;

/// For a read or a list on a slow disk.
constexpr seconds store_patience{20};
/// Reads and lists of one client at once: each may be some megabytes on their way.
constexpr std::size_t most_reads = 16;

/// The guide to the helpers, the same text that the code in the sandbox can print.
std::string_view guide() {
  for (const auto& file : embedded::guest()) {
    if (file.name == "capabilities.md") {
      return file.content;
    }
  }
  return {};
}

rpc_refusal failed_read(const error& reason) {
  return {rpc_code::internal_error, reason.message, {}};
}

} // namespace

bool mcp_session_state::begin_read(const rpc_message& message) {
  if (reads.size() < most_reads) {
    reads.insert(message.id);
    return true;
  }
  refuse(message.id, {rpc_code::internal_error,
                      fmt::format("{}: {} reads are under way already; try again when they are "
                                  "answered",
                                  message.method, most_reads),
                      {}});
  return false;
}

/// False when the client has cancelled it meanwhile.
bool mcp_session_state::end_read(const std::string& request) {
  return reads.erase(request) > 0;
}

void mcp_session_state::read_resource(const rpc_message& message, const mcp_request& request) {
  auto uri = request.text("uri");
  auto form = form_for(request);
  if (!uri) {
    refuse(message.id, {rpc_code::invalid_params, "resources/read: uri must be a string", {}});
  } else if (*uri == capabilities_uri) {
    respond(message.id, capabilities_result(guide(), *context.catalogue(), form));
  } else if (*uri == output_schema_uri) {
    respond(message.id, text_resource_result(*uri, "application/schema+json",
                                             run_python_output_schema(), form));
  } else if (auto what = parse_resource_uri(*uri); what && context.store) {
    read_stored(message, *what, std::move(*uri), form);
  } else {
    refuse(message.id, resource_not_found(*uri, form));
  }
}

void mcp_session_state::read_stored(const rpc_message& message, const resource_uri& what,
                                    std::string uri, answer_form form) {
  if (!begin_read(message)) {
    return;
  }
  self->request(context.store(), store_patience, read_atom::value,
                resource_range{context.owner, what})
      .then(
          [this, id = message.id, what, form](resource_part& part) {
            if (end_read(id)) {
              respond(id, resource_part_result(what, std::move(part), form));
            }
          },
          [this, id = message.id, uri = std::move(uri), form](const caf::error& cause) {
            if (end_read(id)) {
              auto reason = from_caf(cause, "read " + uri);
              refuse(id, reason.code == errc::not_found ? resource_not_found(uri, form)
                                                        : failed_read(reason));
            }
          });
}

void mcp_session_state::list_resources(const rpc_message& message, const mcp_request& request) {
  auto form = form_for(request);
  auto cursor = request.text("cursor").value_or("");
  bool first = request.find("cursor").empty();
  if (!first && (cursor.empty() || !context.store)) {
    refuse(message.id, {rpc_code::invalid_params, "Invalid cursor", {}});
    return;
  }
  if (!context.store) {
    respond(message.id, resource_list_result(form));
    return;
  }
  if (!begin_read(message)) {
    return;
  }
  self->request(context.store(), store_patience, list_atom::value, context.owner, cursor)
      .then(
          [this, id = message.id, form, first](const resource_page& page) {
            if (end_read(id)) {
              respond(id, resource_list_result(form, page, first));
            }
          },
          [this, id = message.id](const caf::error& cause) {
            if (end_read(id)) {
              auto reason = from_caf(cause, "list resources");
              refuse(id, reason.code == errc::invalid_argument
                             ? rpc_refusal{rpc_code::invalid_params,
                                           "Invalid cursor: use one that a list gave",
                                           {}}
                             : failed_read(reason));
            }
          });
}

} // namespace bulkhead
