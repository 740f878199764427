#include "main/conformance_login.hpp"

#include <caf/all.hpp>

#include "actors/credential_store.hpp"
#include "actors/http_headers.hpp"
#include "main/login.hpp"
#include "protocol/oauth_document.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr auto visit_budget = 10s;
constexpr auto store_budget = 10s;
/// The suite wants to see it, and fetches it from nowhere.
constexpr const char* document_url = "https://conformance-test.local/client-metadata.json";
constexpr const char* redirect_uri = "http://127.0.0.1:8765/callback";

/// Asks for the page as a browser would; the query of where it is sent.
expected<std::string> visit(blocking_http& http, const std::string& url) {
  http_request request;
  request.url = url;
  auto answer = http.call(request, visit_budget);
  if (!answer) {
    return tl::unexpected{answer.error()};
  }
  auto place = joined_headers(answer->headers, "Location");
  auto mark = place.find('?');
  if (!place.starts_with(redirect_uri) || mark == std::string::npos) {
    return fail(errc::malformed, "the authorization endpoint doesn't send its visitor back");
  }
  return place.substr(mark + 1);
}

/// The store answers when it has kept what it was told before: it is told by the way, and a login
/// by hand comes later.
void settle_store(application& app) {
  caf::scoped_actor self{app.system()};
  self->request(app.services().credentials, store_budget, token_atom::value,
                std::string{local_owner}, std::string{"http://nowhere.invalid/"},
                deadline::at(std::chrono::steady_clock::now() + store_budget))
      .receive([](const std::string&) {}, [](const caf::error&) {});
}

known_client client_of(const std::string& context) {
  known_client result{{}, {}, document_url};
  if (auto document = read_oauth_document(context, "the context")) {
    result.id = text_member(*document, "client_id");
    result.secret = text_member(*document, "client_secret");
  }
  return result;
}

} // namespace

expected<void> conformance_log_in(application& app, stop_signal& stop, const std::string& url,
                                  const std::string& context) {
  auto target = find_login_target({}, url);
  if (!target) {
    return tl::unexpected{target.error()};
  }
  blocking_http http{app, stop};
  settle_store(app);
  auto folder = credentials_of(*app.env()->config);
  auto challenge = find_challenge(folder, *target, http);
  if (!challenge) {
    return tl::unexpected{challenge.error()};
  }
  login_request request;
  request.owner = local_owner;
  request.server = target->url;
  request.challenge = *challenge;
  request.client = client_of(context);
  if (auto before = folder.read(local_owner, target->url.text()); before && *before) {
    request.granted = (*before)->scopes;
  }
  login_edges edges;
  edges.exchange = http.exchange();
  edges.random = app.env()->new_handle;
  edges.now = app.env()->wall_clock;
  edges.redirect_uri = redirect_uri;
  edges.authorize = [&](const std::string& page, const authorization_attempt&) {
    return visit(http, page);
  };
  auto credential = log_in(request, edges);
  if (!credential) {
    return tl::unexpected{credential.error()};
  }
  return keep_credential(folder, *target, http, *credential);
}

} // namespace bulkhead
