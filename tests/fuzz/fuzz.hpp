#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "protocol/utf8.hpp"

namespace bulkhead::fuzz {

/// A target reads hostile bytes as the program would and holds what comes of them to what the
/// program promises. It throws `broken_promise`, or lets a sanitizer speak; it takes nothing from
/// its surroundings, so that the same bytes always do the same.
using target = void (*)(std::string_view input);

struct broken_promise : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, std::string_view promise) {
  if (!holds) {
    throw broken_promise{std::string{promise}};
  }
}

/// The part of `rest` before the first `end`, which is taken with it; all if there is none.
inline std::string_view take_until(std::string_view& rest, char end) {
  auto part = rest.substr(0, rest.find(end));
  rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : rest.size());
  return part;
}

/// The first byte of `rest`, taken, as a number from 0 to `most`.
inline std::size_t take_number(std::string_view& rest, std::size_t most) {
  if (rest.empty()) {
    return 0;
  }
  auto number = static_cast<unsigned char>(rest.front()) % (most + 1);
  rest.remove_prefix(1);
  return number;
}

/// What an error says, whatever size that is of which it speaks.
inline void require_message(std::string_view message) {
  require(!message.empty(), "an error says something");
  require(message.size() <= 16384, "an error says it in few words");
}

// One for each file of this folder; `corpus/NAME` has inputs that each of them went through.
void guest_frame_target(std::string_view input);
void host_config_target(std::string_view input);
void http_post_target(std::string_view input);
void json_rpc_target(std::string_view input);
void json_schema_target(std::string_view input);
void oauth_challenge_target(std::string_view input);
void oauth_documents_target(std::string_view input);
void policy_target(std::string_view input);
void printable_target(std::string_view input);
void run_answer_target(std::string_view input);
void server_config_target(std::string_view input);
void sse_reader_target(std::string_view input);
void tenant_config_target(std::string_view input);
void toon_target(std::string_view input);
void web_url_target(std::string_view input);

} // namespace bulkhead::fuzz
