#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/client_abilities.hpp"
#include "protocol/error.hpp"
#include "protocol/json_rpc.hpp"
#include "protocol/trace_context.hpp"
#include "protocol/upstream_questions.hpp"

/// The client's side of MCP: what is asked of an upstream server, and how its answers are read.
/// Whatever comes from a server is untrusted; texts taken from it are cut and made printable.
namespace bulkhead::upstream {

/// MCP has two generations: revisions up to 2025-11-25 with a handshake, and the stateless
/// 2026-07-28. Which one a server speaks is found out by asking `server/discover` first.
enum class era : std::uint8_t { unknown, legacy, modern };

inline constexpr std::string_view modern_revision = "2026-07-28";
inline constexpr std::string_view latest_legacy_revision = "2025-11-25";

/// What a server says of itself.
struct identity {
  std::string name;
  std::string title;
  std::string version;
  std::string revision;  ///< of the protocol, as agreed
  bool has_tools = true; ///< it declares tools, or didn't get to say
  friend bool operator==(const identity&, const identity&) = default;
};

// Requests and notifications, each one line with its newline.

// `abilities` is what servers may ask of the client: legacy ones are told once, modern ones with
// each request.

std::string encode_discover(std::uint64_t id, const client_abilities& abilities = {});
std::string encode_initialize(std::uint64_t id, const client_abilities& abilities = {});
std::string encode_initialized();

/// `cursor` is empty for the first page.
std::string encode_list(std::uint64_t id, era generation, std::string_view cursor,
                        const client_abilities& abilities = {});

/// What a call has besides its tool and arguments.
struct call_details {
  client_abilities abilities;
  bool progress = false;                 ///< asked for, with the request's id as token
  std::vector<input_response> responses; ///< when it is made again, with the input it required
  std::string state;                     ///< JSON text, then; empty when there was none
  trace_context trace{};                 ///< told in the modern era
};

/// `arguments` is a scanned JSON object.
std::string encode_call(std::uint64_t id, era generation, std::string_view tool,
                        std::string_view arguments, const call_details& details = {});

std::string encode_cancelled(std::uint64_t id, std::string_view reason);

/// The answer to a request of the server that isn't for the client behind (see `is_for_client`):
/// pings are answered, and roots are listed if there are any, file:// URIs; nothing else is
/// offered.
std::string answer_request(const rpc_message& request, const std::vector<std::string>& roots = {});

/// The number of an id that is a plain integer, as ours are.
std::optional<std::uint64_t> response_id(std::string_view id);

/// Reads the answer to `server/discover`: the server's identity if it speaks the modern revision.
/// Nothing: it is to be asked to initialize (it doesn't know the method, or only other revisions).
std::optional<identity> read_discover(const rpc_message& answer);

/// Reads the result of `initialize`. Errors: server_failed for a revision that isn't understood,
/// malformed.
expected<identity> read_initialize(std::string_view result);

/// The error object of an answer, its message cut to 1 KiB.
struct failure {
  std::int64_t code = 0;
  std::string message;
  /// What the call needs and its client can't do or hasn't done, for people; empty for others.
  std::string needs{};
  friend bool operator==(const failure&, const failure&) = default;
};

failure read_failure(std::string_view error);

/// Does the server say that it has no such tool? Servers use various codes for it, so the text
/// decides.
bool tells_unknown_tool(const failure& reason, std::string_view tool);

/// How long a modern list stays fresh (`ttlMs`), kept between 30 seconds and an hour: a tool list
/// is asked for with each run, so that "don't cache" would double the traffic. Nothing: no such
/// hint.
std::optional<std::chrono::milliseconds> read_time_to_live(std::string_view result);

} // namespace bulkhead::upstream
