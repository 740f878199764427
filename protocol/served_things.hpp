#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/client_abilities.hpp"
#include "protocol/client_questions.hpp"
#include "protocol/http_mcp.hpp"
#include "protocol/mcp_request.hpp"

namespace bulkhead {

/// Things that a session serves besides its own: nothing in production; in the tests what the
/// conformance suite wants to find. They say what happens, and the session does it.

/// A `tools/call` or `prompts/get` of such a thing, as far as it has got.
struct served_call {
  std::string method;
  std::string name;
  std::string arguments; ///< scanned JSON object, or empty
  client_abilities abilities;
  std::map<std::string, std::string, std::less<>> answers;  ///< of the client, JSON, by key
  std::map<std::string, std::string, std::less<>> refusals; ///< why it gave none, by key
  std::uint32_t steps = 0;                                  ///< that it has taken
};

/// What such a call does next. It ends with a step that has a result or a refusal.
struct served_step {
  enum class list : std::uint8_t { none, tools, prompts };

  std::chrono::milliseconds pause{0};    ///< before all else
  std::optional<std::uint32_t> progress; ///< of 100
  std::string log;                       ///< said at level info
  list changed = list::none;             ///< tells who subscribed that this list is another now
  bool breaks_off = false;               ///< the client is to come back for the rest
  std::vector<input_request> questions;  ///< for the client; the next step has its answers
  std::string result;                    ///< the members of the result, JSON without braces
  std::optional<rpc_refusal> refusal;
};

class served_things {
public:
  enum class kind : std::uint8_t { tools, resources, templates, prompts };

  virtual ~served_things() = default;

  /// The entries of a list, JSON texts.
  virtual std::vector<std::string> entries(kind of) const = 0;

  /// Is there such a thing to call with this method?
  virtual bool knows(std::string_view method, std::string_view name) const = 0;

  /// What a call of one that is known does next.
  virtual served_step next(const served_call& call) const = 0;

  /// The one content, JSON text, of a resource; empty when there is none.
  virtual std::string content(std::string_view uri) const = 0;

  /// The parameters of a tool that clients mirror in headers.
  virtual std::vector<mirrored_parameter> mirrored(std::string_view tool) const = 0;
};

} // namespace bulkhead
