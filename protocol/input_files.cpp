#include "protocol/input_files.hpp"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/artifact.hpp"
#include "protocol/base64.hpp"
#include "protocol/config_keys.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr std::size_t longest_path = 1024;
constexpr std::string_view shape = "each {path, text} or {path, b64}";

tl::unexpected<error> invalid(std::string message) {
  return fail(errc::invalid_argument, "files: " + std::move(message));
}

/// Why `path` can't be a file below a folder; empty when it can.
std::string_view fault_of(std::string_view path) {
  if (path.empty() || path.size() > longest_path) {
    return "it must have 1 to 1024 bytes";
  }
  if (path.front() == '/') {
    return "it must be relative: it is a path below /workspace";
  }
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find('/', start), path.size());
    // A part is what may name an artifact: the same rules hold, for the same reasons.
    if (!is_artifact_name(path.substr(start, end - start))) {
      return "each part between \"/\" must have 1 to 255 bytes, no control characters, and not be "
             "\".\" or \"..\"";
    }
    start = end + 1;
  }
  return {};
}

/// The paths of files, told from folders on the way to them.
class path_set {
public:
  /// Why `path` can't be added; empty when it was.
  std::string add(const std::string& path) {
    if (folders_.contains(path)) {
      return "it is a folder of another file's path, too";
    }
    for (auto at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      auto folder = path.substr(0, at);
      if (files_.contains(folder)) {
        return fmt::format("\"{}\" is a file, too", shown_name(folder));
      }
      folders_.insert(std::move(folder));
    }
    return files_.insert(path).second ? std::string{} : "it is there twice";
  }

private:
  std::set<std::string> files_;
  std::set<std::string> folders_;
};

expected<std::string> read_bytes(const json& entry, std::string_view path) {
  const auto text = entry.find("text");
  const auto encoded = entry.find("b64");
  if ((text == entry.end()) == (encoded == entry.end())) {
    return invalid(fmt::format("\"{}\" needs exactly one of text and b64", shown_name(path)));
  }
  const auto& value = text != entry.end() ? *text : *encoded;
  if (!value.is_string()) {
    return invalid(fmt::format("{} of \"{}\" must be a string",
                               text != entry.end() ? "text" : "b64", shown_name(path)));
  }
  if (text != entry.end()) {
    return value.get<std::string>();
  }
  auto bytes = decode_base64(value.get_ref<const std::string&>());
  if (!bytes) {
    return invalid(fmt::format("b64 of \"{}\" is no base64 with padding (RFC 4648, section 4)",
                               shown_name(path)));
  }
  return std::move(*bytes);
}

expected<input_file> read_file(const json& entry) {
  if (!entry.is_object()) {
    return invalid(fmt::format("it must be an array of objects, {}", shape));
  }
  for (const auto& [key, value] : entry.items()) {
    if (key != "path" && key != "text" && key != "b64") {
      return invalid(fmt::format("there is no \"{}\": {}", shown_name(key), shape));
    }
  }
  const auto path = entry.find("path");
  if (path == entry.end() || !path->is_string()) {
    return invalid(fmt::format("path must be a string: {}", shape));
  }
  input_file file{path->get<std::string>(), {}};
  if (auto fault = fault_of(file.path); !fault.empty()) {
    return invalid(fmt::format("path \"{}\": {}", shown_name(file.path), fault));
  }
  auto bytes = read_bytes(entry, file.path);
  if (!bytes) {
    return tl::unexpected<error>(std::move(bytes.error()));
  }
  file.bytes = std::move(*bytes);
  return file;
}

} // namespace

expected<std::vector<input_file>> read_input_files(std::string_view token, const limits& bounds) {
  std::vector<input_file> files;
  if (token.empty() || token == "null") {
    return files;
  }
  const auto entries = json::parse(token, nullptr, false);
  if (!entries.is_array()) {
    return invalid(fmt::format("it must be an array, {}", shape));
  }
  if (entries.size() > bounds.input_files) {
    return fail(errc::too_large,
                fmt::format("files: {} are more than {}", entries.size(), bounds.input_files));
  }
  std::size_t size = 0;
  path_set paths;
  for (const auto& entry : entries) {
    auto file = read_file(entry);
    if (!file) {
      return tl::unexpected<error>(std::move(file.error()));
    }
    if (auto fault = paths.add(file->path); !fault.empty()) {
      return invalid(fmt::format("path \"{}\": {}", shown_name(file->path), fault));
    }
    size += file->bytes.size();
    files.push_back(std::move(*file));
  }
  if (size > bounds.input_bytes) {
    return fail(errc::too_large,
                fmt::format("files: {} bytes in all are over the limit of {} bytes; larger data "
                            "comes by way of an MCP server",
                            size, bounds.input_bytes));
  }
  return files;
}

} // namespace bulkhead
