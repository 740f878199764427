#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

/// What a person says to a call of a tool. Whatever isn't a clear yes is a no.
enum class approval_decision : std::uint8_t { no, once, always };

/// The params of `elicitation/create` (MCP 2025-11-25, client/elicitation) that ask for it: JSON
/// text. Names and arguments come from servers and code, so they are shown harmless to whoever
/// reads them, and no more than 2 KiB of the arguments, with a word on what is left out.
std::string approval_question(std::string_view server, std::string_view tool,
                              std::string_view arguments, std::string_view rule, bool changed);

/// Reads an ElicitResult, JSON text.
approval_decision read_decision(std::string_view result);

} // namespace bulkhead
