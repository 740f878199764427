#include "protocol/cached_documents.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

/// Of the file; another one's is not read.
constexpr int format = 1;
constexpr std::size_t longest_name_shown = 40;
constexpr std::size_t most_nodes = 2'000'000;

} // namespace

std::uint64_t configuration_hash(const server_entry& entry) {
  auto text = json{entry.name, entry.command, entry.args,
                   entry.env,  entry.cwd,     static_cast<int>(entry.transport),
                   entry.url,  entry.headers}
                  .dump(-1, ' ', true, json::error_handler_t::replace);
  // FNV-1a, 64 bits: the same on every machine and in every version, which std::hash is not.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

std::string cached_documents_name(const server_entry& entry) {
  return fmt::format("{}-{:016x}.json", python_identifier(entry.name).substr(0, longest_name_shown),
                     configuration_hash(entry));
}

std::string encode_cached_documents(const server_documents& documents) {
  auto quoted = [](std::string_view text) { return json_quote(text); };
  auto out = fmt::format(R"({{"format":{},"server":{},"version":{},"description":{},"tools":[)",
                         format, quoted(documents.server), quoted(documents.version),
                         quoted(documents.description));
  bool first = true;
  for (const auto& tool : documents.tools) {
    out += fmt::format(R"({}{{"name":{},"title":{},"description":{},"inputSchema":)",
                       first ? "" : ",\n", quoted(tool.name), quoted(tool.title),
                       quoted(tool.description));
    first = false;
    append_json_line(out, tool.input_schema);
    for (const auto& [key, value] : {std::pair{"outputSchema", &tool.output_schema},
                                     std::pair{"annotations", &tool.annotations}}) {
      if (!value->empty()) {
        out += fmt::format(R"(,"{}":)", key);
        append_json_line(out, *value);
      }
    }
    out += '}';
  }
  return out + "]}\n";
}

expected<server_documents> decode_cached_documents(std::string_view text,
                                                   const server_entry& entry) {
  auto scanned = scan_json(text, {largest_cached_documents, 64, most_nodes});
  if (!scanned) {
    return tl::unexpected{scanned.error()};
  }
  if (scanned->find("format") != std::to_string(format) ||
      decode_json_string(scanned->find("server")) != entry.name) {
    return fail(errc::malformed, "it is of another server, or another version of Bulkhead");
  }
  auto page = parse_tool_page(text);
  if (!page) {
    return tl::unexpected{page.error()};
  }
  server_documents documents{entry.name, entry.alias,
                             decode_json_string(scanned->find("description")),
                             std::move(page->tools)};
  documents.version = decode_json_string(scanned->find("version"));
  if (!entry.description.empty()) {
    documents.description = entry.description;
  }
  assign_tool_aliases(documents.tools);
  return documents;
}

} // namespace bulkhead
