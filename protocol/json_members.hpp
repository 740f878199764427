#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/json_scan.hpp"

namespace bulkhead {

/// Reads the members of a scanned object by type and keeps the first error, so that a reader of a
/// message is a straight list of its members. After an error the values read are of no use. A
/// member that is `null` counts as absent. The outline must outlive the reader.
class json_members {
public:
  /// `what` names the object in error texts, e.g. "a done frame"; `wrong` is the error's code for a
  /// member that is missing, of the wrong type or out of range.
  json_members(const json_outline& object, std::string_view what, errc wrong)
      : object_{object}, what_{what}, wrong_{wrong} {}

  /// The member's JSON text; empty when absent.
  std::string_view json(std::string_view key) const;

  /// A string of at most `max_bytes` bytes once decoded; over it the error is too_large.
  std::optional<std::string> optional_text(std::string_view key, std::size_t max_bytes);

  /// The same, but it must be there and not be empty.
  std::string text(std::string_view key, std::size_t max_bytes);

  /// An integer from `low` to `high`, written without sign, fraction and exponent.
  std::optional<std::uint64_t> optional_number(std::string_view key, std::uint64_t low,
                                               std::uint64_t high);
  std::uint64_t number(std::string_view key, std::uint64_t low, std::uint64_t high);

  /// An integer of any size, clamped to `low` … `high`.
  std::int32_t clamped(std::string_view key, std::int32_t low, std::int32_t high);

  /// The JSON text of an object; empty when absent.
  std::string_view optional_object(std::string_view key);

  /// Records `reason` about the member `key`, unless there is an error already.
  void reject(errc code, std::string_view key, std::string_view reason);

  bool sound() const { return error_.code == errc::none; }
  const error& reason() const { return error_; }

private:
  const json_outline& object_;
  std::string_view what_;
  errc wrong_;
  error error_{errc::none, {}};
};

} // namespace bulkhead
