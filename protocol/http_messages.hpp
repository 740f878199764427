#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

/// HTTP as our listener takes and answers it.

/// A field of a header; names compare without case, values have no white space around them.
struct http_field {
  std::string name;
  std::string value;
  friend bool operator==(const http_field&, const http_field&) = default;
};

/// A request that a client made of us.
struct incoming_request {
  std::string method;
  std::string target; ///< as it came, e.g. "/mcp?x=1"
  std::vector<http_field> fields;
  std::string body;
  std::string principal; ///< who asks, once that is known
  friend bool operator==(const incoming_request&, const incoming_request&) = default;

  /// The value of a field that may be there once; null when it is absent. The first of several:
  /// `count` tells.
  const std::string* find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
};

/// What we answer; the length of the body and what concerns the connection are the listener's to
/// add.
struct outgoing_answer {
  std::uint32_t status = 200;
  std::vector<http_field> fields;
  std::string body;
  friend bool operator==(const outgoing_answer&, const outgoing_answer&) = default;
};

/// Do two names of fields, methods or hosts agree but for the case of ASCII letters?
bool same_name(std::string_view one, std::string_view other);

} // namespace bulkhead
