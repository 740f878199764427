#include "protocol/import_record.hpp"

#include <fmt/format.h>

#include "protocol/content_digest.hpp"
#include "protocol/host_entry.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr std::size_t digest_size = 64;

tl::unexpected<error> damaged(std::string_view what) {
  return fail(errc::malformed, fmt::format("its record of an import has no usable \"{}\"; import "
                                           "anew, or remove the file",
                                           what));
}

std::optional<std::string> text_of(const json& object, const char* key) {
  const auto& value = member_of(object, key);
  return value.is_string() ? std::optional{value.get<std::string>()} : std::nullopt;
}

bool is_digest(std::string_view text) {
  return text.size() == digest_size &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A project's file counts with its approved content only.
std::optional<import_source> read_source(const json& value) {
  auto path = text_of(value, "file");
  auto scope = scope_from_string(text_of(value, "scope").value_or(""));
  auto digest = text_of(value, "sha256").value_or("");
  bool switches = member_of(value, "switches") == json(true);
  bool bound = scope == host_scope::project && !switches;
  if (!path || !path->starts_with('/') || !scope || (!digest.empty() && !is_digest(digest)) ||
      (bound && digest.empty())) {
    return std::nullopt;
  }
  return import_source{std::move(*path), *scope, switches, std::move(digest)};
}

} // namespace

json to_json(const import_record& record) {
  auto files = json::array();
  for (const auto& source : record.files) {
    json file{{"file", source.path}, {"scope", to_string(source.scope)}};
    if (source.switches) {
      file["switches"] = true;
    }
    if (!source.digest.empty()) {
      file["sha256"] = source.digest;
    }
    files.push_back(std::move(file));
  }
  json result{{"host", to_string(record.host)},
              {"linked", record.linked},
              {"home", record.home},
              {"files", std::move(files)}};
  if (!record.project.empty()) {
    result["project"] = record.project;
  }
  if (!record.env_files.empty()) {
    result["envFiles"] = record.env_files;
  }
  return result;
}

expected<std::optional<import_record>> read_import_record(const json& document) {
  const auto& value = member_of(document, "import");
  if (value.is_null() && !document.contains("import")) {
    return std::nullopt;
  }
  import_record record;
  auto host = host_from_string(text_of(value, "host").value_or(""));
  if (!host) {
    return damaged("host");
  }
  record.host = *host;
  if (!member_of(value, "linked").is_boolean()) {
    return damaged("linked");
  }
  record.linked = member_of(value, "linked").get<bool>();
  record.home = text_of(value, "home").value_or("");
  record.project = text_of(value, "project").value_or("");
  for (const auto& each : member_of(value, "files")) {
    auto source = read_source(each);
    if (!source || (source->scope != host_scope::user && record.project.empty())) {
      return damaged("files");
    }
    record.files.push_back(std::move(*source));
  }
  for (const auto& [path, digest] : object_of(member_of(value, "envFiles")).items()) {
    if (!digest.is_string() || !is_digest(digest.get_ref<const std::string&>())) {
      return damaged("envFiles");
    }
    record.env_files[path] = digest.get<std::string>();
  }
  return record;
}

std::string import_file_name(mcp_host host, std::string_view project) {
  if (project.empty()) {
    return fmt::format("imported-{}.json", to_string(host));
  }
  std::string name;
  for (char c : project.substr(project.rfind('/') + 1).substr(0, 40)) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-';
    name += plain ? c : '_';
  }
  return fmt::format("imported-{}-{}-{}.json", to_string(host), name,
                     content_digest(project).substr(0, 8));
}

void bind_env_files(json& servers, const std::map<std::string, std::string>& digests) {
  for (auto& entry : servers) {
    auto named = text_of(entry, "envFile");
    auto found = named ? digests.find(*named) : digests.end();
    if (found != digests.end()) {
      entry["envFileSha256"] = found->second;
    }
  }
}

} // namespace bulkhead
