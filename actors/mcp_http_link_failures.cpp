#include "actors/mcp_http_link.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "protocol/oauth_credential.hpp"

/// Answers that are none: refusals, sessions that ended, servers that speak something else.
namespace bulkhead {

/// An answer of status 3xx to 5xx.
void mcp_http_link_state::conclude_failure(exchange done) {
  const auto id = done.sent.id;
  if (done.sent.method == "notifications/initialized" && step == session_step::announcing) {
    announced(); // if that is of importance, the next request shows it
    return;
  }
  if (done.status == 401 || done.status == 403) {
    refuse_access(std::move(done));
    return;
  }
  auto said = upstream::describe_status(done.status, done.kind, done.body);
  if (done.what == role::resume) {
    refuse(id, {errc::server_failed,
                fmt::format("its answer broke off, and the rest can't be had any more ({}); {}",
                            said, not_repeated)});
    return;
  }
  bool in_session = !done.session.empty() || (goes == way::events && met);
  if (in_session && !done.sent.renews && done.sent.method != "initialize" &&
      upstream::ends_session(done.status, done.body)) {
    session_lost(std::move(done));
    return;
  }
  if (done.sent.renews) {
    renewal_failed({errc::server_failed, said});
    return;
  }
  if (id == 0 || !awaited.contains(id)) {
    return;
  }
  if (auto line = upstream::error_line(done.body, id, scan_bounds()); !line.empty()) {
    awaited.erase(id);
    deliver(std::move(line));
    return;
  }
  if (done.sent.method == "server/discover" && done.status != 429) {
    // No modern server; the next question is `initialize`.
    awaited.erase(id);
    deliver(encode_error(std::to_string(id), rpc_code::method_not_found, said));
    return;
  }
  bool older = done.status == 400 || done.status == 404 || done.status == 405;
  if (done.sent.method == "initialize" && older && goes == way::post && !met) {
    // 2025-11-25, "Backwards Compatibility"
    goes = way::events;
    done.sent.headers.clear();
    queue.push_front(std::move(done.sent));
    pump();
    return;
  }
  refuse(id, {errc::server_failed, "it answered " + said});
  if (older && awaited.empty()) {
    end_child(); // another server may be there now: it is to be met anew
  }
}

void mcp_http_link_state::refuse_access(exchange done) {
  auto store = services.credentials ? services.credentials() : credential_store_actor{};
  if (store && !done.challenge.empty()) {
    self->send(store, record_atom::value, std::string{local_owner}, entry.url, done.challenge);
  }
  auto said = upstream::describe_status(done.status, done.kind, done.body);
  auto what = done.status == 401 ? "it wants to know who asks" : "it doesn't allow that";
  auto remedy =
      !store || names_credentials()
          ? fmt::format("correct the header \"Authorization\" in {}", entry.source)
          : fmt::format("run: bulkhead login {}; or give it a header \"Authorization\" in {}",
                        entry.name, entry.source);
  // Without a challenge, 403 is about something else than who asks.
  bool advise = done.status == 401 || !done.challenge.empty();
  error reason{errc::denied,
               fmt::format("{} ({}){}", what, said, advise ? "; " + remedy : std::string{})};
  // A login made meanwhile, by another process, counts from the next message on.
  if (token == done.token) {
    token.clear();
    token_known = false;
  }
  if (done.status == 401 && uses_token() && done.sent.tries == 0 && !done.token.empty()) {
    self->send(store, refuse_atom::value, std::string{local_owner}, entry.url, done.token);
  }
  bool waits = done.sent.id == 0 || awaited.contains(done.sent.id);
  if (done.status == 401 && uses_token() && done.sent.tries == 0 && done.what == role::post &&
      waits) {
    // It wasn't carried out, so it may be sent again.
    if (done.token.empty()) {
      done.sent.refusal = std::move(reason);
    }
    ++done.sent.tries;
    if (done.sent.renews) {
      step = session_step::none;
    }
    queue.push_front(std::move(done.sent));
    pump();
    return;
  }
  if (done.sent.renews) {
    renewal_failed(reason);
  } else {
    refuse(done.sent.id, std::move(reason));
  }
}

} // namespace bulkhead
