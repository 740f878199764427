#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "protocol/error.hpp"
#include "protocol/setting_values.hpp"
#include "protocol/toml_library.hpp"

namespace bulkhead {

/// What is wrong in a TOML file.
class toml_findings {
public:
  explicit toml_findings(std::string file) : file_{std::move(file)} {}

  void refuse(const toml::source_region& where, std::string_view why) {
    errors_.push_back(
        {errc::invalid_argument, fmt::format("{}:{}: {}", file_, where.begin.line, why)});
  }

  const std::string& file() const { return file_; }
  std::vector<error>& errors() { return errors_; }

private:
  std::string file_;
  std::vector<error> errors_;
};

/// Reads one table, and tells in the end which of its keys nobody asked for. Keep it no longer than
/// the table and the findings.
class toml_fields {
public:
  /// `path` is the table's, empty for the root.
  toml_fields(const toml::table& table, std::string path, toml_findings& findings)
      : table_{table}, path_{std::move(path)}, findings_{findings} {}

  /// The key's value, or null; from now on it is a known key.
  const toml::node* take(std::string_view key);

  /// Stores the value that a text, a number or a truth value stands for; true if there is a usable
  /// one.
  template <class T, class Value>
  bool take(std::string_view key, T& target, const value_kind<Value>& kind) {
    const auto* node = take(key);
    auto text = node != nullptr ? scalar(key, *node, kind.expectation) : std::nullopt;
    if (!text) {
      return false;
    }
    auto value = kind.parse(*text);
    if (!value) {
      refuse(
          key, *node,
          fmt::format(" = {} can't be used: expected {}", quoted(*node, *text), kind.expectation));
      return false;
    }
    target = std::move(*value);
    return true;
  }

  /// A table below this one, or null.
  const toml::table* take_table(std::string_view key);

  /// A list whose members `each` gets, or nothing; `expectation` is what the list may be.
  template <class Each>
  bool take_list(std::string_view key, std::string_view expectation, Each each) {
    const auto* node = take(key);
    if (node == nullptr) {
      return false;
    }
    const auto* list = node->as_array();
    if (list == nullptr) {
      refuse(key, *node, fmt::format(" must be {}", expectation));
      return false;
    }
    for (const auto& member : *list) {
      each(member);
    }
    return true;
  }

  /// A list of texts for which `usable` answers what is wrong with one, or nothing.
  template <class Fault>
  void take_texts(std::string_view key, std::string_view expectation,
                  std::optional<std::vector<std::string>>& target, Fault fault) {
    std::vector<std::string> texts;
    bool given = take_list(key, expectation, [&](const toml::node& member) {
      const auto* text = member.as_string();
      auto why = text == nullptr ? fmt::format("must be {}", expectation) : fault(text->get());
      if (!why.empty()) {
        refuse(key, member,
               text == nullptr ? " " + why
                               : fmt::format(": \"{}\" {}", shown_value(text->get()), why));
      } else {
        texts.push_back(text->get());
      }
    });
    if (given) {
      target = std::move(texts);
    }
  }

  /// An error about a key: `FILE:LINE: PATH.KEY` and `how`.
  void refuse(std::string_view key, const toml::node& where, std::string_view how) {
    findings_.refuse(where.source(), fmt::format("{}{}", path_of(key), how));
  }

  /// Unknown keys are errors.
  void finish();

  std::string path_of(std::string_view key) const;

private:
  /// The text of a scalar; others are refused.
  std::optional<std::string> scalar(std::string_view key, const toml::node& node,
                                    std::string_view expectation);
  static std::string quoted(const toml::node& node, std::string_view text);

  const toml::table& table_;
  std::string path_;
  toml_findings& findings_;
  std::vector<std::string_view> known_;
};

/// The text of a file as TOML. Errors, which never quote what stands there: too_large, malformed.
expected<toml::table> parse_toml(std::string_view text, const std::string& file, std::size_t most);

} // namespace bulkhead
