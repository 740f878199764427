#include "tests/fuzz/catalogue_checks.hpp"

#include <algorithm>
#include <set>

#include "protocol/web_url.hpp"

namespace bulkhead::fuzz {

namespace {

void check_entry(const server_catalogue& catalogue, const server_entry& entry) {
  require(!entry.name.empty() && entry.name.size() <= longest_server_name &&
              entry.name.find('/') == std::string::npos && is_utf8(entry.name),
          "a server's name is one");
  require(!entry.alias.empty() && python_identifier(entry.alias) == entry.alias,
          "an alias is an identifier");
  require(catalogue.find(entry.name) == &entry, "a server is found by its name");
  require(entry.transport == server_transport::stdio ? !entry.command.empty() : !entry.url.empty(),
          "a server can be reached");
  require(entry.url.empty() || read_web_url(entry.url, "a URL"), "a server's URL is one");
  for (const auto& text : entry.args) {
    require(text.find('\0') == std::string::npos, "a process can take its arguments");
  }
  for (const auto& [name, value] : entry.env) {
    require(!name.empty() && name.find_first_of(std::string_view{"=\0", 2}) == std::string::npos &&
                value.find('\0') == std::string::npos,
            "a process can take its variables");
  }
  for (const auto& [name, value] : entry.headers) {
    require(!name.empty() &&
                (name + value).find_first_of(std::string_view{"\r\n\0", 3}) == std::string::npos,
            "a header is one line");
  }
  require(entry.start_timeout.count() > 0 && entry.call_timeout.count() > 0 && entry.most_calls > 0,
          "there are time and places for calls");
  for (const auto& shown : entry.shown_args) {
    require(shown.find("s3cret-value") == std::string::npos,
            "a variable isn't expanded to be shown");
  }
  require(entry.shown_url.find("s3cret-value") == std::string::npos,
          "a variable isn't expanded to be shown");
}

} // namespace

void check_catalogue(const server_catalogue& catalogue) {
  std::set<std::string> names;
  std::set<std::string> aliases;
  for (const auto& entry : catalogue.servers) {
    check_entry(catalogue, entry);
    require(names.insert(entry.name).second && aliases.insert(entry.alias).second,
            "each server is there once");
  }
  require(std::is_sorted(catalogue.servers.begin(), catalogue.servers.end(),
                         [](const auto& a, const auto& b) { return a.name < b.name; }),
          "servers are sorted");
  for (const auto& name : catalogue.allowed_servers()) {
    require(names.contains(name) && allows_server(catalogue.rules, name).allowed,
            "servers that are allowed are there");
  }
  for (const auto& problem : catalogue.problems) {
    require_message(problem.message);
    require(is_utf8(to_text(problem)), "a problem is told in UTF-8");
    require(problem.message.find("s3cret-value") == std::string::npos, "a problem tells no secret");
  }
}

} // namespace bulkhead::fuzz
