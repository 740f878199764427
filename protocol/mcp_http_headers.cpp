#include "protocol/mcp_http_headers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/ascii.hpp"
#include "protocol/base64.hpp"
#include "protocol/http_token.hpp"
#include "protocol/upstream_text.hpp"

namespace bulkhead::upstream {

namespace {

using nlohmann::json;

constexpr const char* annotation = "x-mcp-header";
constexpr std::string_view encoded_start = "=?base64?";
constexpr std::string_view encoded_end = "?=";

/// Integers beyond aren't the same in every implementation (RFC 8259, 6).
constexpr double largest_safe = 9007199254740991;

/// Values in headers are short; servers and proxies allow 8 KiB and less for all of them.
constexpr std::size_t longest_value = 4096;
constexpr std::size_t most_headers = 32;

bool is_plain(std::string_view text) {
  auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  if (text.empty() || is_blank(text.front()) || is_blank(text.back()) ||
      (text.starts_with(encoded_start) && text.ends_with(encoded_end))) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

/// Walks a schema. Annotations are allowed where a chain of `properties` leads; anywhere else they
/// make the tool unusable, so everything is looked at.
class annotation_reader {
public:
  expected<std::vector<param_header>> read(const json& schema) {
    walk(schema, true);
    if (!fault_.empty()) {
      return fail(errc::malformed, fault_);
    }
    return std::move(found_);
  }

private:
  void walk(const json& schema, bool reachable) {
    if (!schema.is_object() || !fault_.empty()) {
      return;
    }
    if (auto named = schema.find(annotation); named != schema.end()) {
      take(schema, *named, reachable);
    }
    for (const auto& [keyword, value] : schema.items()) {
      if (keyword == "properties" && value.is_object()) {
        for (const auto& [name, property] : value.items()) {
          path_.push_back(name);
          walk(property, reachable);
          path_.pop_back();
        }
      } else if (keyword != "const" && keyword != "enum" && keyword != "default" &&
                 keyword != "examples") {
        walk_others(value);
      }
    }
  }

  void walk_others(const json& value) {
    if (value.is_array()) {
      for (const auto& each : value) {
        walk(each, false);
      }
    } else if (value.is_object()) {
      walk(value, false);
      for (const auto& [name, each] : value.items()) {
        walk(each, false);
      }
    }
  }

  void take(const json& schema, const json& name, bool reachable) {
    auto type = schema.find("type");
    auto kind =
        type != schema.end() && type->is_string() ? type->get<std::string>() : std::string{};
    if (!reachable || path_.empty()) {
      fault_ = "x-mcp-header stands where no chain of properties leads";
    } else if (!name.is_string() || !is_token(name.get_ref<const std::string&>())) {
      fault_ = "x-mcp-header is no name of a header";
    } else if (kind != "string" && kind != "integer" && kind != "boolean") {
      fault_ = "x-mcp-header stands at what is no string, integer or boolean";
    } else if (!names_.insert(lower_case(name.get_ref<const std::string&>())).second) {
      fault_ = "x-mcp-header has the same name twice";
    } else if (found_.size() == most_headers) {
      fault_ = fmt::format("x-mcp-header stands there over {} times", most_headers);
    } else {
      found_.push_back({path_, name.get<std::string>()});
    }
  }

  std::vector<std::string> path_;
  std::set<std::string> names_;
  std::vector<param_header> found_;
  std::string fault_;
};

const json* at_path(const json& arguments, const std::vector<std::string>& path) {
  const json* here = &arguments;
  for (const auto& name : path) {
    if (!here->is_object()) {
      return nullptr;
    }
    auto next = here->find(name);
    if (next == here->end()) {
      return nullptr;
    }
    here = &*next;
  }
  return here;
}

std::optional<std::string> text_of(const json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_boolean()) {
    return value.get<bool>() ? "true" : "false";
  }
  if (!value.is_number() || std::abs(value.get<double>()) > largest_safe) {
    return std::nullopt;
  }
  auto number = value.get<double>();
  return number == std::floor(number) ? std::optional{fmt::format("{:.0f}", number)} : std::nullopt;
}

} // namespace

std::string encode_header_value(std::string_view text) {
  return is_plain(text) ? std::string{text}
                        : fmt::format("{}{}{}", encoded_start, encode_base64(text), encoded_end);
}

expected<std::vector<param_header>> read_param_headers(const json& schema) {
  return annotation_reader{}.read(schema);
}

std::vector<std::pair<std::string, std::string>>
encode_param_headers(const std::vector<param_header>& wanted, std::string_view arguments) {
  std::vector<std::pair<std::string, std::string>> result;
  auto tree =
      wanted.empty() ? json{} : json::parse(arguments.begin(), arguments.end(), nullptr, false);
  for (const auto& header : wanted) {
    const auto* value = at_path(tree, header.path);
    auto text = value != nullptr ? text_of(*value) : std::nullopt;
    if (text && text->size() <= longest_value) {
      result.emplace_back("Mcp-Param-" + header.name, encode_header_value(*text));
    }
  }
  return result;
}

page_headers read_page_headers(std::string_view result) {
  page_headers found;
  if (result.find(annotation) == std::string_view::npos) {
    return found;
  }
  auto page = json::parse(result.begin(), result.end(), nullptr, false);
  auto tools = page.is_object() ? page.find("tools") : page.end();
  if (!page.is_object() || tools == page.end() || !tools->is_array()) {
    return found;
  }
  json usable = json::array();
  for (const auto& tool : *tools) {
    auto name = tool.is_object() && tool.contains("name") && tool["name"].is_string()
                    ? tool["name"].get<std::string>()
                    : std::string{};
    auto headers = read_param_headers(
        tool.is_object() && tool.contains("inputSchema") ? tool["inputSchema"] : json{});
    if (!headers) {
      found.refused.push_back(fmt::format("its tool \"{}\" can't be used: {}", printable(name, 128),
                                          headers.error().message));
      continue;
    }
    if (!headers->empty()) {
      found.tools[name] = std::move(*headers);
    }
    usable.push_back(tool);
  }
  if (!found.refused.empty()) {
    *tools = std::move(usable);
    found.result = page.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return found;
}

} // namespace bulkhead::upstream
