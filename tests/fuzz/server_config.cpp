#include "protocol/server_config.hpp"

#include "protocol/config_text.hpp"
#include "protocol/json_scan.hpp"
#include "tests/fuzz/catalogue_checks.hpp"

namespace bulkhead::fuzz {

namespace {

server_catalogue read(const std::vector<config_file>& files) {
  return read_server_config(files, look_up, "/home/u", {},
                            [](const std::string& path, bool) -> expected<std::string> {
                              if (path.ends_with(".env")) {
                                return "NAME=value\nTOKEN=s3cret-value\n";
                              }
                              return fail(errc::not_found, "there is no such file");
                            });
}

void check_comments(std::string_view text) {
  auto plain = strip_json_comments(text);
  require(plain.size() == text.size(), "comments leave their room");
  for (std::size_t i = 0; i < text.size(); ++i) {
    require(plain[i] == text[i] || plain[i] == ' ', "comments become spaces");
    require(plain[i] == text[i] || text[i] != '\n', "lines stay lines");
  }
  require(strip_json_comments(plain) == plain, "what has no comments stays as it is");
  // Plain JSON means the same, so that a string is never taken for a comment.
  if (scan_json(text, {text.size()})) {
    require(plain == text, "JSON stays as it is");
  }
}

} // namespace

/// One file, or two parted by a zero.
void server_config_target(std::string_view input) {
  check_comments(input);
  auto first = std::string{take_until(input, '\0')};
  auto second = input.empty() ? std::string{"{}"} : std::string{input};
  const config_file one{"/home/u/MCPs/one.json", first};
  const config_file two{"/home/u/MCPs/two.json", second};
  auto alone = read({one});
  check_catalogue(alone);
  require(read_config_json(first, {largest_config_file}).has_value() || !alone.rules.closed.empty(),
          "a file that can't be read closes the policy");
  require(alone.rules.closed.empty() || alone.allowed_servers().empty(),
          "a closed policy allows no server");
  auto both = read({one, two});
  check_catalogue(both);
  require(alone.rules.closed.empty() || !both.rules.closed.empty(),
          "no file opens what another closes");
  require(read({one, two}) == both, "files say the same each time");
}

} // namespace bulkhead::fuzz
