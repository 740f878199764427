#include "protocol/resource_uri.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "protocol/artifact.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view output_prefix = "bulkhead://output/";
constexpr std::string_view artifact_prefix = "bulkhead://artifacts/";
constexpr std::size_t handle_size = 32;

/// RFC 3986, section 2.3.
bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string percent_encoded(std::string_view text, char kept = 'A') {
  std::string result;
  for (const char c : text) {
    if (is_unreserved(c) || c == kept) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      result += text[at];
      continue;
    }
    unsigned byte = 0;
    const auto* digits = text.data() + at + 1;
    if (at + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return std::nullopt;
    }
    result += static_cast<char>(byte);
    at += 2;
  }
  return result;
}

std::optional<std::uint64_t> parse_position(std::string_view text) {
  std::uint64_t number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = failure == std::errc{} && end == text.data() + text.size() && !text.empty();
  return whole && number < wire_id_limit ? std::optional{number} : std::nullopt;
}

bool read_range(std::string_view query, resource_uri& into) {
  std::optional<std::uint64_t> offset;
  while (!query.empty()) {
    const auto parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(parameter.size() + 1, query.size()));
    const auto equals = parameter.find('=');
    const auto name = parameter.substr(0, equals);
    const auto value = parse_position(
        equals == std::string_view::npos ? std::string_view{} : parameter.substr(equals + 1));
    auto& target = name == "offset" ? offset : into.length;
    if (!value || target || (name != "offset" && name != "length")) {
      return false;
    }
    target = value;
  }
  into.offset = offset.value_or(0);
  return true;
}

} // namespace

std::string_view to_string(stream_id stream) {
  return stream == stream_id::out ? "stdout" : "stderr";
}

bool is_handle(std::string_view text) {
  return text.size() == handle_size &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string output_uri(std::string_view handle, stream_id stream) {
  return fmt::format("{}{}/{}", output_prefix, handle, to_string(stream));
}

std::string artifact_uri(std::string_view handle, std::string_view name) {
  return fmt::format("{}{}/{}", artifact_prefix, handle, percent_encoded(name));
}

std::string file_uri(std::string_view path) {
  return "file://" + percent_encoded(path, '/');
}

std::string uri_from(std::string_view uri, std::uint64_t offset) {
  return fmt::format("{}?offset={}", uri, offset);
}

std::optional<resource_uri> parse_resource_uri(std::string_view uri) {
  const bool output = uri.starts_with(output_prefix);
  if (!output && !uri.starts_with(artifact_prefix)) {
    return std::nullopt;
  }
  uri.remove_prefix(output ? output_prefix.size() : artifact_prefix.size());
  const auto question = uri.find('?');
  const auto path = uri.substr(0, question);
  const auto slash = path.find('/');
  resource_uri result;
  result.handle = path.substr(0, slash);
  if (slash == std::string_view::npos || !is_handle(result.handle) ||
      (question != std::string_view::npos && !read_range(uri.substr(question + 1), result))) {
    return std::nullopt;
  }
  const auto name = percent_decoded(path.substr(slash + 1));
  if (output && (name == "stdout" || name == "stderr")) {
    result.stream = name == "stdout" ? stream_id::out : stream_id::err;
    return result;
  }
  if (output || !name || !is_artifact_name(*name)) {
    return std::nullopt;
  }
  result.artifact = *name;
  return result;
}

} // namespace bulkhead
