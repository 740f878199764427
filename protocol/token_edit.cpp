#include "protocol/token_edit.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "protocol/setting_values.hpp"
#include "protocol/text_places.hpp"
#include "protocol/time_text.hpp"
#include "protocol/toml_fields.hpp"

namespace bulkhead {

namespace {

/// One way to edit a text; nothing where it doesn't fit.
using attempt = std::function<std::optional<std::string>()>;

/// `id = "x", sha256 = "…"`, with what parts them.
std::string fields_of(const tenant_token& token, std::string_view separator) {
  auto text = fmt::format("id = \"{}\"{}sha256 = \"{}\"", token.id, separator, token.sha256);
  if (token.expires) {
    text += fmt::format("{}expires = {}", separator, moment_text(*token.expires));
  }
  return text;
}

std::string inline_table(const tenant_token& token) {
  return fmt::format("{{ {} }}", fields_of(token, ", "));
}

std::string block(std::string_view tenant, const tenant_token& token) {
  return fmt::format("[[tenants.{}.tokens]]\n{}\n", tenant, fields_of(token, "\n"));
}

/// A text that is edited at places which its parser told.
class toml_text {
public:
  toml_text(std::string_view text, const toml::table& root) : text_{text}, root_{root} {}

  const toml::table* tenant_table(std::string_view tenant) const {
    return root_["tenants"][tenant].as_table();
  }
  const toml::array* tokens_of(std::string_view tenant) const {
    return root_["tenants"][tenant]["tokens"].as_array();
  }
  const toml::table* token_table(std::string_view tenant, std::string_view id) const;

  std::size_t begin(const toml::node& node) const {
    return offset_of(text_, node.source().begin.line, node.source().begin.column);
  }
  std::size_t end(const toml::node& node) const {
    return offset_of(text_, node.source().end.line, node.source().end.column);
  }
  /// Where the last value of a table that has no braces ends.
  std::size_t last_value(const toml::table& table) const;

  /// In the array's own brackets, after its last member.
  std::optional<std::string> add_member(const toml::array& members, const std::string& what) const;
  /// On the lines after a table's header.
  std::optional<std::string> add_below(const toml::table& table, const std::string& lines) const;
  std::string add_at_end(const std::string& lines) const;
  std::optional<std::string> remove_member(const toml::node& member) const;
  std::optional<std::string> remove_block(const toml::table& table) const;
  std::optional<std::string> set(const toml::table& table, std::string_view key,
                                 const std::string& value) const;

private:
  std::string with(std::size_t from, std::size_t to, std::string_view instead) const {
    return fmt::format("{}{}{}", text_.substr(0, from), instead, text_.substr(to));
  }

  std::string_view text_;
  const toml::table& root_;
};

const toml::table* toml_text::token_table(std::string_view tenant, std::string_view id) const {
  const auto* tokens = tokens_of(tenant);
  for (std::size_t i = 0; tokens != nullptr && i < tokens->size(); ++i) {
    const auto* table = tokens->get_as<toml::table>(i);
    if (table != nullptr && (*table)["id"].value_or(std::string_view{}) == id) {
      return table;
    }
  }
  return nullptr;
}

std::size_t toml_text::last_value(const toml::table& table) const {
  auto result = end(table); // of the header
  for (const auto& [key, value] : table) {
    result = std::max(result, end(value));
  }
  return result;
}

std::optional<std::string> toml_text::add_member(const toml::array& members,
                                                 const std::string& what) const {
  if (members.empty()) {
    return with(begin(members) + 1, begin(members) + 1, fmt::format("\n  {},\n", what));
  }
  const auto& last = members.back();
  auto first_line = line_begin(text_, begin(members));
  auto own_line = line_begin(text_, begin(last));
  auto indent = text_.substr(own_line, begin(last) - own_line);
  bool a_line_each = own_line != first_line && is_blank(indent);
  auto behind = skip_toml_blank(text_, end(last));
  bool comma = behind < text_.size() && text_[behind] == ',';
  auto after = comma ? behind + 1 : end(last);
  std::string_view separator = comma ? "" : ",";
  if (!a_line_each) {
    return with(after, after, fmt::format("{} {}", separator, what));
  }
  // A comment behind the last one stays with it.
  auto next = line_end(text_, after);
  return fmt::format("{}{}{}\n{}{},{}", text_.substr(0, after), separator,
                     text_.substr(after, next - after), indent, what, text_.substr(next));
}

std::optional<std::string> toml_text::add_below(const toml::table& table,
                                                const std::string& lines) const {
  if (table.is_inline()) {
    return std::nullopt;
  }
  auto at = line_end(text_, begin(table));
  return with(at, at, "\n" + lines);
}

std::string toml_text::add_at_end(const std::string& lines) const {
  std::string_view gap = text_.empty() ? "" : text_.ends_with('\n') ? "\n" : "\n\n";
  return fmt::format("{}{}{}", text_, gap, lines);
}

std::optional<std::string> toml_text::remove_member(const toml::node& member) const {
  auto from = begin(member);
  auto to = end(member);
  auto behind = skip_toml_blank(text_, to);
  if (behind < text_.size() && text_[behind] == ',') {
    to = behind + 1;
  } else {
    auto before = text_.find_last_not_of(" \t\r\n", from - 1);
    if (before != std::string_view::npos && text_[before] == ',') {
      from = before;
      return with(from, to, "");
    }
  }
  auto line = line_begin(text_, from);
  auto rest = text_.substr(to, line_end(text_, to) - to);
  if (is_blank(text_.substr(line, from - line)) && is_blank(rest.substr(0, rest.find('#')))) {
    return with(line, std::min(line_end(text_, to) + 1, text_.size()), "");
  }
  return with(from, std::min(text_.find_first_not_of(" \t", to), text_.size()), "");
}

std::optional<std::string> toml_text::remove_block(const toml::table& table) const {
  auto from = line_begin(text_, begin(table));
  auto to = std::min(line_end(text_, last_value(table)) + 1, text_.size());
  // One of the blank lines around it goes, too.
  auto next_line = text_.substr(to, line_end(text_, to) - to);
  if (from >= 2 && text_.substr(from - 2, 2) == "\n\n" && is_blank(next_line)) {
    --from;
  }
  return with(from, to, "");
}

std::optional<std::string> toml_text::set(const toml::table& table, std::string_view key,
                                          const std::string& value) const {
  if (const auto* node = table.get(key)) {
    return with(begin(*node), end(*node), value);
  }
  std::size_t last = 0;
  for (const auto& [name, node] : table) {
    last = std::max(last, end(node));
  }
  if (table.is_inline()) {
    return with(last, last, fmt::format(", {} = {}", key, value));
  }
  auto at = line_end(text_, last);
  return with(at, at, fmt::format("\n{} = {}", key, value));
}

/// A file that is read, and what it shall say in the end.
class edit {
public:
  static expected<edit> open(std::string_view text, const std::string& file) {
    auto config = read_serve_config(text, file, settings{});
    if (!config) {
      return tl::unexpected(config.error().front());
    }
    auto root = parse_toml(text, file, largest_serve_config);
    return edit{std::string{text}, file, std::move(*root), std::move(*config)};
  }

  toml_text text() const { return {text_, root_}; }

  /// The tenant as it shall be.
  expected<tenant*> wanted_tenant(std::string_view name) {
    auto found = std::find_if(wanted.tenants.begin(), wanted.tenants.end(),
                              [&](const bulkhead::tenant& each) { return each.name == name; });
    return found != wanted.tenants.end()
               ? expected<tenant*>{&*found}
               : fail(errc::not_found,
                      fmt::format("there is no tenant \"{}\" in {}", shown_value(name), file_));
  }

  expected<std::vector<tenant_token>::iterator> wanted_token(bulkhead::tenant& one,
                                                             std::string_view id) {
    auto found = std::find_if(one.tokens.begin(), one.tokens.end(),
                              [&](const tenant_token& each) { return each.id == id; });
    if (found == one.tokens.end()) {
      return fail(errc::not_found, fmt::format("tenant \"{}\" has no token \"{}\" in {}", one.name,
                                               shown_value(id), file_));
    }
    return found;
  }

  /// The first of the attempts that says what is wanted.
  expected<std::string> choose(const std::vector<attempt>& attempts) const {
    for (const auto& each : attempts) {
      auto made = each();
      auto read =
          made ? read_serve_config(*made, file_, settings{}) : tl::unexpected(std::vector<error>{});
      // What is remarked of tenants without tokens may be said otherwise now.
      if (read) {
        read->remarks = wanted.remarks;
      }
      if (read && *read == wanted) {
        return *made;
      }
    }
    return fail(errc::unavailable,
                fmt::format("{} is laid out in a way that it can't be edited in safely", file_));
  }

  serve_config wanted;

private:
  edit(std::string text, std::string file, toml::table root, serve_config config)
      : wanted{std::move(config)}, text_{std::move(text)}, file_{std::move(file)}, root_{std::move(
                                                                                       root)} {}

  std::string text_;
  std::string file_;
  toml::table root_;
};

} // namespace

expected<std::string> add_token(std::string_view text, const std::string& file,
                                std::string_view tenant, const tenant_token& token) {
  auto opened = edit::open(text, file);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  auto one = opened->wanted_tenant(tenant);
  if (!one) {
    return tl::unexpected(one.error());
  }
  if (opened->wanted_token(**one, token.id)) {
    return fail(
        errc::invalid_argument,
        fmt::format("tenant \"{}\" has a token \"{}\" already, in {}", tenant, token.id, file));
  }
  (*one)->tokens.push_back(token);
  auto source = opened->text();
  const auto* tokens = source.tokens_of(tenant);
  return opened->choose({
      [&] {
        return tokens != nullptr ? source.add_member(*tokens, inline_table(token)) : std::nullopt;
      },
      [&]() -> std::optional<std::string> {
        return tokens == nullptr
                   ? source.add_below(*source.tenant_table(tenant),
                                      fmt::format("tokens = [\n  {},\n]", inline_table(token)))
                   : std::nullopt;
      },
      [&] { return std::optional{source.add_at_end(block(tenant, token))}; },
  });
}

expected<std::string> remove_token(std::string_view text, const std::string& file,
                                   std::string_view tenant, std::string_view id) {
  auto opened = edit::open(text, file);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  auto one = opened->wanted_tenant(tenant);
  if (!one) {
    return tl::unexpected(one.error());
  }
  auto token = opened->wanted_token(**one, id);
  if (!token) {
    return tl::unexpected(token.error());
  }
  (*one)->tokens.erase(*token);
  auto source = opened->text();
  const auto* table = source.token_table(tenant, id);
  return opened->choose({[&] {
    return table->is_inline() ? source.remove_member(*table) : source.remove_block(*table);
  }});
}

expected<std::string> change_token(std::string_view text, const std::string& file,
                                   std::string_view tenant, const tenant_token& token) {
  auto opened = edit::open(text, file);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  auto one = opened->wanted_tenant(tenant);
  if (!one) {
    return tl::unexpected(one.error());
  }
  auto old = opened->wanted_token(**one, token.id);
  if (!old) {
    return tl::unexpected(old.error());
  }
  // One edit after the other, since each moves what comes behind it.
  auto hashed = [&](const edit& from) {
    auto source = from.text();
    return source.set(*source.token_table(tenant, token.id), "sha256",
                      fmt::format("\"{}\"", token.sha256));
  };
  (*old)->sha256 = token.sha256;
  auto result = opened->choose({[&] { return hashed(*opened); }});
  if (!result || !token.expires) {
    return result;
  }
  auto again = edit::open(*result, file);
  if (!again) {
    return tl::unexpected(again.error());
  }
  (*again->wanted_token(**again->wanted_tenant(tenant), token.id))->expires = token.expires;
  auto source = again->text();
  return again->choose({[&] {
    return source.set(*source.token_table(tenant, token.id), "expires",
                      moment_text(*token.expires));
  }});
}

expected<std::string> add_tenant(std::string_view text, const std::string& file,
                                 std::string_view tenant) {
  auto opened = edit::open(text, file);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  if (!is_tenant_name(tenant)) {
    return fail(errc::invalid_argument,
                fmt::format("\"{}\" can't be a tenant's name: expected 1 to 32 lower case "
                            "letters, digits and -, e.g. team-a",
                            shown_value(tenant)));
  }
  if (opened->wanted_tenant(tenant)) {
    return fail(errc::invalid_argument,
                fmt::format("there is a tenant \"{}\" already, in {}", tenant, file));
  }
  auto made = opened->text().add_at_end(fmt::format("[tenants.{}]\n", tenant));
  auto read = read_serve_config(made, file, settings{});
  if (!read) {
    return fail(errc::unavailable,
                fmt::format("{} is laid out in a way that it can't be edited in safely", file));
  }
  return made;
}

std::string token_lines(std::string_view tenant, const tenant_token& token) {
  return fmt::format("below [tenants.{}], in the list \"tokens\":\n  {},\n", tenant,
                     inline_table(token));
}

} // namespace bulkhead
