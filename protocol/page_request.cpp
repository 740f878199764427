#include "protocol/page_request.hpp"

#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "protocol/ledger_report.hpp"
#include "protocol/page_answer.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

namespace {

using result = tl::expected<page_request, outgoing_answer>;
using form = std::map<std::string, std::string>;

/// The ledger gives no more at once.
constexpr std::uint64_t most_records = 200;
constexpr std::uint64_t most_skipped = 1'000'000;
constexpr std::size_t longest_value = 256;
constexpr std::string_view files_methods = "GET, HEAD";

tl::unexpected<outgoing_answer> refuse(std::uint32_t status, std::string_view message) {
  return tl::unexpected<outgoing_answer>(page_refusal(status, message));
}

tl::unexpected<outgoing_answer> nothing_here() {
  return refuse(404, "there is nothing here");
}

result only(const incoming_request& request, std::string_view methods, page_request wanted) {
  if (methods == request.method || (methods == files_methods && request.method == "HEAD") ||
      (methods == files_methods && request.method == "GET")) {
    return wanted;
  }
  auto answer = page_refusal(405, fmt::format("only {}", methods));
  answer.fields.push_back({"Allow", std::string{methods}});
  return tl::unexpected<outgoing_answer>(std::move(answer));
}

std::optional<std::uint64_t> number(const std::string& text, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  auto [read, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc{} && read == end && value <= most ? std::optional{value}
                                                                : std::nullopt;
}

/// Takes one field of the query; false when it can't be understood.
bool take_field(const std::string& name, const std::string& value, std::int64_t now,
                ledger_query& into) {
  const std::map<std::string_view, std::string*> texts = {{"text", &into.text},
                                                          {"server", &into.server},
                                                          {"tool", &into.tool},
                                                          {"outcome", &into.outcome}};
  if (auto found = texts.find(name); found != texts.end()) {
    *found->second = value;
    return value.size() <= longest_value;
  }
  if (name == "kind") {
    into.calls = value == "calls";
    return value == "calls" || value == "runs";
  }
  if (name == "since") {
    auto since = parse_since(value, now);
    into.since = since.value_or(0);
    return since.has_value();
  }
  const bool is_until = name == "until";
  auto most = is_until ? std::uint64_t{INT64_MAX} : name == "limit" ? most_records : most_skipped;
  auto parsed = number(value, most);
  if (!parsed || (!is_until && name != "limit" && name != "skip")) {
    return false;
  }
  if (is_until) {
    into.until = static_cast<std::int64_t>(*parsed);
  } else {
    (name == "limit" ? into.limit : into.skip) = *parsed;
  }
  return true;
}

result read_ledger(const incoming_request& request, std::string_view query, std::int64_t now) {
  page_request wanted;
  wanted.wish = page_wish::ledger;
  auto fields = decode_form(query);
  if (!fields) {
    return refuse(400, fields.error().message);
  }
  for (const auto& [name, value] : *fields) {
    if (!take_field(name, value, now, wanted.query)) {
      return refuse(400, fmt::format("the search can't be understood: what is wrong is the value "
                                     "of a field, or a field that isn't known: {}",
                                     name.substr(0, 40)));
    }
  }
  if (wanted.query.until == 0) {
    wanted.query.until = now;
  }
  return only(request, "GET", std::move(wanted));
}

result read_run(const incoming_request& request, std::string_view rest) {
  constexpr std::string_view cancel = "/cancel";
  page_request wanted;
  wanted.wish = page_wish::run;
  if (rest.ends_with(cancel)) {
    rest.remove_suffix(cancel.size());
    wanted.wish = page_wish::cancel;
  }
  if (!is_handle(rest)) {
    return nothing_here();
  }
  wanted.run = rest;
  auto method = wanted.wish == page_wish::cancel ? "POST" : "GET";
  return only(request, method, std::move(wanted));
}

result read_thing(const incoming_request& request, std::string_view uri_start,
                  std::string_view rest) {
  auto what = parse_resource_uri(fmt::format("{}{}", uri_start, rest));
  if (!what) {
    return nothing_here();
  }
  page_request wanted;
  wanted.wish = page_wish::thing;
  wanted.what = std::move(*what);
  return only(request, "GET", std::move(wanted));
}

result read_api(const incoming_request& request, std::string_view path, std::string_view query,
                std::int64_t now) {
  // A browser says where a request was born; another site's page has no business here.
  const auto* site = request.find("sec-fetch-site");
  if (site != nullptr && *site != "same-origin" && *site != "none") {
    return refuse(403, "pages of other sites may not use this one's");
  }
  path.remove_prefix(page_api.size());
  page_request wanted;
  if (path == "state" || path == "events") {
    wanted.wish = path == "state" ? page_wish::snapshot : page_wish::events;
    return only(request, "GET", std::move(wanted));
  }
  if (path == "ledger") {
    return read_ledger(request, query, now);
  }
  constexpr std::string_view runs = "runs/";
  constexpr std::string_view artifacts = "artifacts/";
  constexpr std::string_view outputs = "outputs/";
  if (path.starts_with(runs)) {
    return read_run(request, path.substr(runs.size()));
  }
  if (path.starts_with(artifacts)) {
    return read_thing(request, "bulkhead://artifacts/", path.substr(artifacts.size()));
  }
  return path.starts_with(outputs)
             ? read_thing(request, "bulkhead://output/", path.substr(outputs.size()))
             : nothing_here();
}

} // namespace

bool is_page_target(std::string_view target) {
  auto path = target.substr(0, target.find('?'));
  return path == page_root || path.starts_with(page_folder);
}

result read_page_request(const incoming_request& request, std::int64_t now) {
  std::string_view target = request.target;
  auto question = target.find('?');
  auto path = target.substr(0, question);
  auto query =
      question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
  if (path.starts_with(page_api)) {
    return read_api(request, path, query, now);
  }
  page_request wanted;
  if (path == page_root) {
    return only(request, files_methods, std::move(wanted));
  }
  wanted.wish = page_wish::file;
  wanted.name = path.substr(page_folder.size());
  if (wanted.name.empty()) {
    wanted.name = "index.html";
  }
  return only(request, files_methods, std::move(wanted));
}

} // namespace bulkhead
