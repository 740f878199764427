#include <unistd.h>

#include <chrono>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "actors/credential_store.hpp"
#include "actors/http_headers.hpp"
#include "actors/io/redirect_listener.hpp"
#include "main/blocking_http.hpp"
#include "main/browser.hpp"
#include "main/commands.hpp"
#include "main/configuration.hpp"
#include "main/login.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr auto probe_budget = 10s;
constexpr auto lock_budget = 30s;
constexpr auto lock_pause = 100ms;

/// What a server is asked to see what it wants: the first message of a client, without a token.
constexpr const char* probe_message =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
    R"("capabilities":{},"clientInfo":{"name":"bulkhead","version":")" BULKHEAD_VERSION R"("}}})";

int refuse(std::string_view what, const error& reason) {
  complain(fmt::format("{}: {}", what, reason.message));
  return reason.code == errc::cancelled ? 130 : 1;
}

http_request probe_request(const login_target& target) {
  http_request result;
  result.url = target.url.text();
  result.headers = {{"Accept", "application/json, text/event-stream"}};
  for (const auto& [name, value] : target.headers) {
    result.headers.push_back({name, value});
  }
  if (!target.is_sse) {
    result.method = "POST";
    result.headers.push_back({"Content-Type", "application/json"});
    result.body = probe_message;
  }
  return result;
}

/// Waits for the lock of a credential.
expected<credential_folder::lock> lock_credential(const credential_folder& folder,
                                                  const login_target& target, blocking_http& http) {
  auto until = std::chrono::steady_clock::now() + lock_budget;
  for (;;) {
    auto lock = folder.try_lock(local_owner, target.url.text());
    if (!lock) {
      return tl::unexpected{lock.error()};
    }
    if (*lock) {
      return std::move(**lock);
    }
    if (http.interrupted()) {
      return fail(errc::cancelled, "interrupted");
    }
    if (std::chrono::steady_clock::now() > until) {
      return fail(errc::timeout, "another process is at this login and doesn't end; try again");
    }
    std::this_thread::sleep_for(lock_pause);
  }
}

/// Shows the URL, and the browser with it, and waits.
expected<std::string> have_authorized(io::redirect_listener& listener, const command_line& line,
                                      blocking_http& http, const std::string& url,
                                      const authorization_attempt& attempt) {
  auto opened = line.browser && open_browser(url);
  write_all(STDERR_FILENO,
            printable(fmt::format("{}\n\n  {}\n\nWaiting for the answer (Ctrl-C gives up).\n",
                                  opened ? "Your browser opens this page to log in; if it doesn't:"
                                         : "Open this page in a browser on this machine to log in:",
                                  url)));
  auto answer = listener.wait([&](std::string_view query) { return has_state(attempt, query); },
                              std::chrono::steady_clock::now() + line.login_timeout,
                              [&] { return http.interrupted(); });
  if (!answer && answer.error().code == errc::timeout) {
    return fail(errc::timeout,
                fmt::format("no answer came from the browser within {} seconds{}; try again, with "
                            "more time by --timeout",
                            line.login_timeout / 1s,
                            listener.refused() > 0
                                ? ", only some that don't belong to this login (their state "
                                  "differs)"
                                : ""));
  }
  return answer;
}

login_edges edges_for(application& app, blocking_http& http, io::redirect_listener& listener,
                      const command_line& line) {
  login_edges edges;
  edges.exchange = http.exchange();
  edges.random = app.env()->new_handle;
  edges.now = app.env()->wall_clock;
  edges.redirect_uri = listener.uri();
  edges.authorize = [&](const std::string& url, const authorization_attempt& attempt) {
    return have_authorized(listener, line, http, url, attempt);
  };
  return edges;
}

/// The command line's client, else the configuration's.
known_client client_for(const command_line& line, const server_oauth& oauth) {
  known_client result{line.client_id, environment_variable("BULKHEAD_CLIENT_SECRET").value_or(""),
                      line.client_document};
  if (result.id.empty()) {
    result.id = oauth.client_id;
    result.secret = oauth.client_secret;
  }
  if (result.document_url.empty()) {
    result.document_url = oauth.client_document;
  }
  return result;
}

std::string success_text(const login_target& target, const oauth_credential& credential) {
  auto text = fmt::format("Logged in to {} at {}", target.shown, credential.issuer);
  if (!credential.scopes.empty()) {
    text += fmt::format(", for {}", scope_text(credential.scopes));
  }
  if (credential.refresh_token.empty() && credential.expires > 0) {
    text += fmt::format("; good until {:%Y-%m-%d %H:%M} UTC, as it can't be refreshed",
                        fmt::gmtime(static_cast<std::time_t>(credential.expires)));
  }
  return text + ".\n";
}

/// Asks the authorization server to forget the tokens; that it may fail is no reason to keep them.
void revoke(const oauth_credential& credential, blocking_http& http) {
  if (credential.revocation_endpoint.empty()) {
    return;
  }
  auto refresh = !credential.refresh_token.empty();
  auto form = revocation_request(credential.client,
                                 refresh ? credential.refresh_token : credential.access_token,
                                 refresh ? "refresh_token" : "access_token");
  auto answer = http.exchange()(
      token_exchange(credential.revocation_endpoint, form, !credential.private_network));
  if (!answer || answer->status != 200) {
    complain(
        fmt::format("{} could not be told that the login is over: {}", credential.issuer,
                    answer ? oauth_refusal(answer->status, answer->body) : answer.error().message));
  }
}

} // namespace

expected<login_target> find_login_target(const server_catalogue& catalogue,
                                         const std::string& server) {
  login_target result;
  const auto* entry = catalogue.find(server);
  if (entry != nullptr && entry->transport == server_transport::stdio) {
    return fail(errc::invalid_argument, "it is started by a command, and a login is for servers "
                                        "that have a URL");
  }
  if (entry == nullptr && !server.starts_with("http://") && !server.starts_with("https://")) {
    return fail(errc::not_found, "there is no such server; \"bulkhead servers\" shows those there "
                                 "are, and a URL will do, too");
  }
  auto url = read_web_url(entry != nullptr ? entry->url : server, "the server's URL");
  if (!url) {
    return tl::unexpected{url.error()};
  }
  result.url = *url;
  result.shown = entry != nullptr ? entry->name : url->text();
  if (entry != nullptr) {
    result.name = entry->name;
    result.headers = entry->headers;
    result.is_sse = entry->transport == server_transport::sse;
    result.oauth = entry->oauth;
  }
  return result;
}

expected<bearer_challenge> find_challenge(const credential_folder& folder,
                                          const login_target& target, blocking_http& http) {
  auto kept = read_bearer_challenge(folder.challenge(local_owner, target.url.text()));
  if (kept) {
    return *kept;
  }
  auto answer = http.call(probe_request(target), probe_budget);
  if (!answer && (answer.error().code == errc::timeout || answer.error().code == errc::too_large)) {
    // It streams, so it lets us in; perhaps not for everything.
    return bearer_challenge{};
  }
  if (!answer) {
    return tl::unexpected{answer.error()};
  }
  return read_bearer_challenge(joined_headers(answer->headers, "WWW-Authenticate"))
      .value_or(bearer_challenge{});
}

expected<void> keep_credential(const credential_folder& folder, const login_target& target,
                               blocking_http& http, const oauth_credential& credential) {
  auto lock = lock_credential(folder, target, http);
  if (!lock) {
    return tl::unexpected{lock.error()};
  }
  auto written = folder.write(credential);
  if (written) {
    folder.remove_challenge(local_owner, target.url.text());
  }
  return written;
}

int log_in_to_server(application& app, stop_signal& stop, const command_line& line, int out) {
  auto what = fmt::format("log in to \"{}\"", line.server);
  auto target = find_login_target(*app.catalogue(), line.server);
  if (!target) {
    return refuse(what, target.error());
  }
  blocking_http http{app, stop};
  auto folder = credentials_of(*app.env()->config);
  auto challenge = find_challenge(folder, *target, http);
  if (!challenge) {
    return refuse(what, challenge.error());
  }
  auto listener = io::redirect_listener::open(
      line.callback_port != 0 ? line.callback_port : target->oauth.callback_port);
  if (!listener) {
    return refuse(what, listener.error());
  }
  login_request request;
  request.owner = local_owner;
  request.name = target->name;
  request.server = target->url;
  request.challenge = *challenge;
  request.client = client_for(line, target->oauth);
  request.scopes = read_scopes(line.scope.empty() ? target->oauth.scope : line.scope);
  request.private_network = line.private_network;
  if (auto before = folder.read(local_owner, target->url.text()); before && *before) {
    request.granted = (*before)->scopes;
  }
  auto credential = log_in(request, edges_for(app, http, **listener, line));
  if (!credential) {
    return refuse(what, credential.error());
  }
  if (auto kept = keep_credential(folder, *target, http, *credential); !kept) {
    return refuse(what, kept.error());
  }
  return write_answer(out, printable(success_text(*target, *credential)), 0);
}

int log_out_of_server(application& app, stop_signal& stop, const command_line& line, int out) {
  auto what = fmt::format("log out of \"{}\"", line.server);
  auto target = find_login_target(*app.catalogue(), line.server);
  if (!target) {
    return refuse(what, target.error());
  }
  blocking_http http{app, stop};
  auto folder = credentials_of(*app.env()->config);
  auto lock = lock_credential(folder, *target, http);
  if (!lock) {
    return refuse(what, lock.error());
  }
  auto credential = folder.read(local_owner, target->url.text());
  auto removed = folder.remove(local_owner, target->url.text());
  if (!removed) {
    return refuse(what, removed.error());
  }
  folder.remove_challenge(local_owner, target->url.text());
  if (credential && *credential) {
    revoke(**credential, http);
  }
  auto text =
      fmt::format("{} {}.\n", *removed ? "Logged out of" : "There was no login to", target->shown);
  return write_answer(out, printable(text), 0);
}

} // namespace bulkhead
