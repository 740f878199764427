#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::upstream {

/// `text` for a message to people: valid UTF-8, control characters (terminal escapes among them) as
/// spaces, cut at a character so that at most `most` bytes remain, "…" included.
std::string printable(std::string_view text, std::size_t most);

/// Hides the values of a server's configured environment, which are often credentials, in what the
/// server says.
class secret_filter {
public:
  secret_filter() = default;

  /// Values shorter than six bytes ("1", "true", "info") are no secrets; of longer ones each line
  /// counts for itself.
  explicit secret_filter(const std::map<std::string, std::string>& env);

  /// `text` with every secret replaced by "[hidden]".
  std::string hide(std::string text) const;

private:
  std::vector<std::string> secrets_; ///< longest first
};

/// The last words of a server, for error texts.
class stderr_tail {
public:
  stderr_tail(std::size_t most, secret_filter filter) : most_{most}, filter_{std::move(filter)} {}

  void append(std::string_view bytes);
  void clear();

  /// At most the given number of bytes: whole lines where possible, secrets hidden, control
  /// characters other than line ends as spaces.
  std::string text() const;

private:
  std::size_t most_;
  secret_filter filter_;
  std::string bytes_;
  bool cut_ = false;
};

} // namespace bulkhead::upstream
