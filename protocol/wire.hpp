#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/limits.hpp"

namespace bulkhead {

/// The frames between host and guest: one JSON object a line. Everything that comes from the guest
/// is hostile until parsed here, and stays untrusted content afterwards.

/// Bytes of a name or run id in a frame from the guest.
inline constexpr std::size_t wire_name_limit = 256;
/// Bytes of a search query.
inline constexpr std::size_t wire_query_limit = 1024;
/// Results of one search.
inline constexpr std::uint32_t wire_search_limit = 50;
/// The largest id of a call: every JSON reader holds integers up to 2^53 exactly (RFC 8259, section
/// 6).
inline constexpr std::uint64_t wire_id_limit = std::uint64_t{1} << 53;

enum class stream_id : std::uint8_t { out = 1, err = 2 };

/// The guest can take frames.
struct guest_ready {
  std::string python;
  std::uint32_t protocol = 0;
  friend bool operator==(const guest_ready&, const guest_ready&) = default;
};

/// The guest has taken its run and begins it now; the first frame of every run.
struct guest_started {
  std::string id;
  friend bool operator==(const guest_started&, const guest_started&) = default;
};

/// Bytes that the code, or a child of it, wrote.
struct guest_output {
  stream_id stream = stream_id::out;
  std::string bytes;
  friend bool operator==(const guest_output&, const guest_output&) = default;
};

enum class guest_call_kind : std::uint8_t {
  list_servers,
  list_tools,
  call_tool,
  query_tool_docs,
  search_tool_docs,
};

/// The code asks the host for something (`rpc_request`).
struct guest_call {
  std::uint64_t id = 0;
  guest_call_kind kind = guest_call_kind::list_servers;
  std::string server;           ///< raw name or alias; empty where the kind needs none
  std::string tool;             ///< raw name or alias; empty where the kind needs none
  std::string arguments = "{}"; ///< call_tool: a scanned JSON object as text
  std::string query;            ///< search_tool_docs
  std::uint32_t limit = 5;      ///< search_tool_docs, 1 to 50
  bool full_detail = false;     ///< documents with schemas
  bool stubs = false;           ///< query_tool_docs: a type stub instead
  friend bool operator==(const guest_call&, const guest_call&) = default;
};

/// The code no longer waits for the answer to a call (`rpc_cancel`).
struct guest_cancel {
  std::uint64_t id = 0; ///< the call's
  friend bool operator==(const guest_cancel&, const guest_cancel&) = default;
};

/// An uncaught exception, as the guest tells it.
struct guest_exception {
  std::string type;
  std::string message;
  std::string traceback;
  friend bool operator==(const guest_exception&, const guest_exception&) = default;
};

/// A run ended by itself.
struct guest_done {
  std::string id;
  std::int32_t exit_code = 0;
  std::optional<std::string> result_repr;
  std::optional<std::string> result_json; ///< scanned JSON text
  std::optional<guest_exception> exception;
  friend bool operator==(const guest_done&, const guest_done&) = default;
};

/// Something that the code made for the client. Its size is not checked against `limits::artifact`.
struct guest_artifact {
  std::string name;      ///< see `is_artifact_name`
  std::string mime_type; ///< see `is_mime_type`
  std::string bytes;
  friend bool operator==(const guest_artifact&, const guest_artifact&) = default;
};

using guest_frame = std::variant<guest_ready, guest_started, guest_output, guest_call, guest_cancel,
                                 guest_artifact, guest_done>;

/// A call whose envelope was sound but whose content was not: answered to the guest by its id.
struct refused_call {
  std::uint64_t id = 0;
  error reason;
  friend bool operator==(const refused_call&, const refused_call&) = default;
};

/// Reads one line of the guest, given without its end. Members it doesn't know are ignored; `null`
/// counts as absent.
///
/// Sizes: an output frame has at most `bounds.output_frame` bytes as it travels; a call's arguments
/// `bounds.tool_payload`, all else of a call `bounds.control_frame`; a ready or cancel frame
/// `bounds.control_frame`; an artifact frame `bounds.line`; the result and exception of a done
/// frame together `bounds.control_frame` once decoded and the frame `bounds.output_frame`. Exit
/// codes are clamped to 0 … 255.
///
/// Errors: malformed, too_large. A bad rpc_request with a usable id comes back as a `refused_call`
/// (invalid_argument or too_large), also if the line is no valid JSON or over the scan's limits but
/// sound up to its payload.
expected<std::variant<guest_frame, refused_call>> parse_guest_frame(std::string_view line,
                                                                    const limits& bounds);

/// A server as the guest gets to know it.
struct server_brief {
  std::string name;
  std::string alias;
  std::string description;
  friend bool operator==(const server_brief&, const server_brief&) = default;
};

/// A file that the guest writes below /workspace before the code starts.
struct input_file {
  std::string path; ///< relative, see read_python_call
  std::string bytes;
  friend bool operator==(const input_file&, const input_file&) = default;
};

/// Host to guest; each is one line, its newline included. `payload` is scanned JSON text, which may
/// hold line ends between its tokens. `autoload`: the discovered servers may be called, too.
std::string encode_init(const std::vector<server_brief>& servers,
                        const std::vector<server_brief>& discovered, const limits& bounds,
                        bool autoload = false);
/// `session`: other runs may follow in the same interpreter.
std::string encode_execute(std::string_view run, std::string_view code, bool session = false,
                           const std::vector<input_file>& files = {});
std::string encode_response(std::uint64_t id, std::string_view payload);
std::string encode_refusal(std::uint64_t id, const error& reason);
std::string encode_cancel(std::string_view run);
std::string encode_shutdown();

/// The JSON array of `servers` that a guest sees.
std::string encode_servers(const std::vector<server_brief>& servers);

template <class Inspector>
auto inspect(Inspector& f, guest_ready& x) {
  return f(x.python, x.protocol);
}
template <class Inspector>
auto inspect(Inspector& f, guest_output& x) {
  return f(x.stream, x.bytes);
}
template <class Inspector>
auto inspect(Inspector& f, guest_call& x) {
  return f(x.id, x.kind, x.server, x.tool, x.arguments, x.query, x.limit, x.full_detail, x.stubs);
}
template <class Inspector>
auto inspect(Inspector& f, guest_cancel& x) {
  return f(x.id);
}
template <class Inspector>
auto inspect(Inspector& f, guest_artifact& x) {
  return f(x.name, x.mime_type, x.bytes);
}
template <class Inspector>
auto inspect(Inspector& f, input_file& x) {
  return f(x.path, x.bytes);
}
template <class Inspector>
auto inspect(Inspector& f, refused_call& x) {
  return f(x.id, x.reason);
}
template <class Inspector>
auto inspect(Inspector& f, server_brief& x) {
  return f(x.name, x.alias, x.description);
}

} // namespace bulkhead
