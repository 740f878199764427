#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

/// What a client lets a server ask of it.
struct client_abilities {
  bool elicitation_form = false; ///< since 2025-06-18
  bool elicitation_url = false;  ///< since 2025-11-25
  bool sampling = false;
  bool sampling_tools = false; ///< since 2025-11-25
  bool roots = false;
  friend bool operator==(const client_abilities&, const client_abilities&) = default;
};

/// Reads the capabilities that a client declares, a scanned JSON object or empty, as `revision`
/// knows them. An elicitation capability that names no mode is for forms (2025-11-25,
/// client/elicitation "Capabilities").
client_abilities read_client_abilities(std::string_view capabilities, std::string_view revision);

/// The capabilities, as a JSON object, that a client lacks for a request with that method and these
/// params (a scanned JSON object or empty); empty when it can be asked. A method that no client
/// answers lacks `{}`.
std::string lacking_capability(const client_abilities& abilities, std::string_view method,
                               std::string_view params);

/// The abilities as a client declares them, a JSON object.
std::string to_json(const client_abilities& abilities);

} // namespace bulkhead
