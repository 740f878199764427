#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "main/commands.hpp"
#include "main/randomness.hpp"
#include "main/serve_file.hpp"
#include "protocol/setting_values.hpp"
#include "protocol/tenant_token.hpp"
#include "protocol/time_text.hpp"
#include "protocol/token_edit.hpp"

namespace bulkhead {

namespace {

using std::chrono::sys_seconds;

/// Nobody means more, and what is written stays a date that TOML has.
constexpr auto longest_expiry = std::chrono::years{100};

int refuse(const error& reason) {
  complain(reason.message);
  return reason.code == errc::invalid_argument ? 2 : 1;
}

sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string fresh_token() {
  return make_token(random_bytes(token_random_bytes));
}

/// What --expires says; nothing when it isn't given.
expected<std::optional<sys_seconds>> expiry(const command_line& line) {
  if (line.expires.empty()) {
    return std::nullopt;
  }
  auto span = parse_span(line.expires);
  auto moment = span ? std::optional(now() + *span) : parse_moment(line.expires);
  if (!moment || *moment <= now() || *moment > now() + longest_expiry) {
    return fail(errc::invalid_argument,
                fmt::format("--expires {}: expected 30m, 12h, 90d or 52w, or a date such as "
                            "2027-01-01, in the future",
                            shown_value(line.expires)));
  }
  return moment;
}

std::string until_text(const tenant_token& token) {
  return token.expires ? "until " + moment_text(*token.expires) : "without an end";
}

expected<const tenant*> find_tenant(const serve_config& config, const std::string& name,
                                    const std::string& path) {
  const auto* one = config.find(name);
  return one != nullptr ? expected<const tenant*>{one} : no_such_tenant(config, name, path);
}

const tenant_token* find_token(const tenant& one, std::string_view id) {
  auto found = std::find_if(one.tokens.begin(), one.tokens.end(),
                            [&](const tenant_token& each) { return each.id == id; });
  return found != one.tokens.end() ? &*found : nullptr;
}

/// The first of `prefix`1, `prefix`2, … that no token of the tenant has.
std::string free_id(const tenant* one, const std::string& prefix) {
  for (std::size_t number = 1;; ++number) {
    auto id = fmt::format("{}{}", prefix, number);
    if (one == nullptr || find_token(*one, id) == nullptr) {
      return id;
    }
  }
}

/// Tokens that `rotate --grace` kept of one and that are still valid, and how to take them away;
/// empty where there are none.
std::string left_by_rotation(const tenant& one, const std::string& id) {
  std::string text;
  for (const auto& each : one.tokens) {
    if (each.id.starts_with(id + ".") && is_valid(each, now())) {
      text += fmt::format("{}token \"{}\", which a rotation of it left, is still valid {}; take it "
                          "away, too: bulkhead token revoke {} {}",
                          text.empty() ? "" : "\n", each.id, until_text(each), one.name, each.id);
    }
  }
  return text;
}

/// One call of the command.
class token_command {
public:
  token_command(const command_line& line, const settings& config, const account& who, int out)
      : line_{line}, config_{config}, who_{who}, out_{out}, path_{serve_file_path(line.serve_config,
                                                                                  config)} {}

  int make();
  int list();
  int revoke();
  int rotate();

private:
  expected<serve_config> read(std::string_view text) const {
    auto read = read_serve_config(text, path_, config_);
    return read ? expected<serve_config>{std::move(*read)} : tl::unexpected(read.error().front());
  }
  template <class Change>
  expected<void> change(bool make, Change change) const {
    return change_serve_file(path_, config_, who_, make, change);
  }
  expected<std::string> with_new(std::string_view text, tenant_token& token) const;
  expected<std::string> with_rotated(std::string_view text, tenant_token& token, bool renew,
                                     std::chrono::seconds grace);
  int print(const std::string& token, const tenant_token& stored, const expected<void>& done,
            std::string_view remark) const;

  const command_line& line_;
  const settings& config_;
  const account& who_;
  int out_;
  std::string path_;
  std::string kept_; ///< what became of a token that was rotated, for people
};

expected<std::string> token_command::with_new(std::string_view text, tenant_token& token) const {
  auto config = read(text);
  if (!config) {
    return tl::unexpected(config.error());
  }
  const auto* one = config->find(line_.tenant);
  if (one == nullptr && !line_.add_tenant) {
    return no_such_tenant(*config, line_.tenant, path_);
  }
  if (token.id.empty()) {
    token.id = free_id(one, "token-");
  }
  auto base = one != nullptr ? expected<std::string>{std::string{text}}
                             : add_tenant(text, path_, line_.tenant);
  return base ? add_token(*base, path_, line_.tenant, token) : base;
}

int token_command::make() {
  auto expires = expiry(line_);
  if (!expires) {
    return refuse(expires.error());
  }
  if (!line_.token_id.empty() && !is_token_id(line_.token_id)) {
    return refuse({errc::invalid_argument,
                   fmt::format("--id {}: expected 1 to 64 letters, digits, -, _ and .",
                               shown_value(line_.token_id))});
  }
  auto token = fresh_token();
  tenant_token stored{line_.token_id, token_hash(token), *expires};
  auto done =
      change(line_.add_tenant, [&](std::string_view text) { return with_new(text, stored); });
  return print(token, stored, done, {});
}

int token_command::print(const std::string& token, const tenant_token& stored,
                         const expected<void>& done, std::string_view remark) const {
  // The file may be root's, or be laid out in a way that only a person can edit.
  bool by_hand = !done && done.error().code == errc::unavailable && !stored.id.empty();
  if (!done && !by_hand) {
    return refuse(done.error());
  }
  auto status = write_answer(out_, token + "\n", 0);
  if (by_hand) {
    complain(fmt::format("{}; the token above isn't valid until you have written into {}, {}{}",
                         done.error().message, path_, token_lines(line_.tenant, stored), remark));
    return 1;
  }
  complain(fmt::format("token \"{}\" of tenant \"{}\", valid {}, is in {}; it isn't shown again{}",
                       stored.id, line_.tenant, until_text(stored), path_, remark));
  return status;
}

int token_command::list() {
  auto text = read_serve_file(path_, config_, who_);
  auto config = text ? read(*text) : tl::unexpected(text.error());
  if (!config) {
    return refuse(config.error());
  }
  if (!line_.tenant.empty()) {
    if (auto one = find_tenant(*config, line_.tenant, path_); !one) {
      return refuse(one.error());
    }
  }
  std::string shown;
  for (const auto& one : config->tenants) {
    for (const auto& token : one.tokens) {
      if (line_.tenant.empty() || line_.tenant == one.name) {
        shown += fmt::format("{}  {}  {}{}  {}\n", one.name, token.id,
                             is_valid(token, now()) ? "" : "expired, was valid ", until_text(token),
                             token.sha256.substr(0, 12));
      }
    }
  }
  return write_answer(out_, shown, 0);
}

int token_command::revoke() {
  std::string left;
  auto done = change(false, [&](std::string_view text) -> expected<std::string> {
    auto config = read(text);
    auto one = config ? find_tenant(*config, line_.tenant, path_) : tl::unexpected(config.error());
    left = one ? left_by_rotation(**one, line_.token_id) : std::string{};
    return one ? remove_token(text, path_, line_.tenant, line_.token_id)
               : tl::unexpected(one.error());
  });
  if (!done && done.error().code == errc::unavailable) {
    return refuse(
        {errc::unavailable,
         fmt::format("{}; the token is still valid: remove \"{}\" of tenant \"{}\" from {} "
                     "by hand",
                     done.error().message, shown_value(line_.token_id), line_.tenant, path_)});
  }
  if (!done) {
    return refuse(done.error());
  }
  auto status = write_answer(
      out_, fmt::format("revoked token \"{}\" of tenant \"{}\"\n", line_.token_id, line_.tenant),
      0);
  if (!left.empty()) {
    complain(left);
  }
  return status;
}

expected<std::string> token_command::with_rotated(std::string_view text, tenant_token& token,
                                                  bool renew, std::chrono::seconds grace) {
  auto config = read(text);
  auto one = config ? find_tenant(*config, line_.tenant, path_) : tl::unexpected(config.error());
  if (!one) {
    return tl::unexpected(one.error());
  }
  const auto* old = find_token(**one, token.id);
  if (old != nullptr && !renew) {
    token.expires = old->expires;
    if (!is_valid(token, now())) {
      return fail(
          errc::invalid_argument,
          fmt::format("token \"{}\" has expired: say until when the new one shall be valid, "
                      "e.g. --expires 90d",
                      token.id));
    }
  }
  auto result = change_token(text, path_, line_.tenant, token);
  // Those that earlier rotations left and that are no longer valid go.
  for (const auto& each : (*one)->tokens) {
    bool left = each.id.starts_with(token.id + ".") && !is_valid(each, now());
    result = result && left ? remove_token(*result, path_, line_.tenant, each.id) : result;
  }
  if (!result || grace == std::chrono::seconds{0} || !is_valid(*old, now())) {
    return result;
  }
  tenant_token kept{free_id(*one, token.id + "."), old->sha256, now() + grace};
  kept.expires = old->expires ? std::min(*old->expires, *kept.expires) : kept.expires;
  kept_ = fmt::format("; the old one is \"{}\", valid {}", kept.id, until_text(kept));
  return add_token(*result, path_, line_.tenant, kept);
}

int token_command::rotate() {
  auto expires = expiry(line_);
  if (!expires) {
    return refuse(expires.error());
  }
  auto grace = line_.grace.empty() ? std::chrono::seconds{0} : parse_span(line_.grace);
  if (!grace || *grace > longest_expiry) {
    return refuse(
        {errc::invalid_argument, fmt::format("--grace {}: expected a span such as 30m, 12h or 7d",
                                             shown_value(line_.grace))});
  }
  auto token = fresh_token();
  tenant_token stored{line_.token_id, token_hash(token), *expires};
  auto done = change(false, [&](std::string_view text) {
    return with_rotated(text, stored, expires->has_value(), *grace);
  });
  return print(token, stored, done,
               done ? kept_ : fmt::format("in place of the token \"{}\" there", stored.id));
}

} // namespace

int run_token(const command_line& line, const settings& config, const account& who, int out) {
  token_command command{line, config, who, out};
  switch (line.what) {
  case command_line::verb::token_new:
    return command.make();
  case command_line::verb::token_list:
    return command.list();
  case command_line::verb::token_revoke:
    return command.revoke();
  default:
    return command.rotate();
  }
}

} // namespace bulkhead
