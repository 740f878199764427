#include "protocol/oauth_login.hpp"

#include <optional>

#include <fmt/format.h>

namespace bulkhead {

namespace {

/// A login on its way from the server's URL to tokens.
class login_flow {
public:
  login_flow(const login_request& request, const login_edges& edges)
      : request_{request}, edges_{edges}, private_{request.private_network ||
                                                   request.server.is_private()} {}

  expected<oauth_credential> run() {
    auto resource = find_resource();
    if (!resource) {
      return tl::unexpected{resource.error()};
    }
    auto issuer = find_issuer(*resource);
    if (!issuer) {
      return tl::unexpected{issuer.error()};
    }
    auto scopes = wanted_scopes(request_.scopes, request_.challenge.scopes, resource->scopes,
                                request_.granted, *issuer);
    auto client = find_client(*issuer, scopes);
    if (!client) {
      return tl::unexpected{client.error()};
    }
    return authorize(*resource, *issuer, *client, scopes);
  }

private:
  /// The user chose the server's own host; others are named by it.
  oauth_exchange_request to(const std::string& url) const {
    oauth_exchange_request result;
    result.url = url;
    auto parts = read_web_url(url, "a URL");
    auto same = parts && parts->origin() == request_.server.origin();
    result.public_only = !same && !private_;
    result.headers = {{"Accept", "application/json"}};
    return result;
  }

  expected<resource_metadata> find_resource();
  expected<issuer_metadata> find_issuer(const resource_metadata& resource);
  expected<issuer_metadata> read_issuer(const std::string& issuer);
  expected<oauth_client> find_client(const issuer_metadata& issuer,
                                     const std::vector<std::string>& scopes);
  expected<oauth_credential> authorize(const resource_metadata& resource,
                                       const issuer_metadata& issuer, const oauth_client& client,
                                       const std::vector<std::string>& scopes);

  /// A server without metadata of its own is its own authorization server (MCP of 2025-03-26).
  resource_metadata assumed_resource() const {
    auto resource = request_.server;
    resource.query.clear();
    auto text = resource.text();
    text.erase(text.find_last_not_of('/') + 1);
    return {text, {request_.server.origin()}, {}};
  }

  const login_request& request_;
  const login_edges& edges_;
  bool private_; ///< other servers may be in a private network
};

/// The first document of those at `urls` that `read` takes. A place without one (servers also
/// answer with a page for people) isn't an error as long as another has it; a document that is
/// refused is.
template <class T, class Fetch, class Read>
expected<T> first_of(const std::vector<std::string>& urls, Fetch fetch, Read read) {
  error failure{errc::not_found, {}};
  for (const auto& url : urls) {
    auto answer = fetch(url);
    if (!answer) {
      failure = {answer.error().code, fmt::format("{}: {}", url, answer.error().message)};
      continue;
    }
    if (answer->status != 200) {
      continue;
    }
    auto document = read(answer->body);
    if (document || document.error().code == errc::denied) {
      return document;
    }
    failure = {document.error().code, fmt::format("{}: {}", url, document.error().message)};
  }
  return tl::unexpected{failure};
}

expected<resource_metadata> login_flow::find_resource() {
  const auto& named = request_.challenge.resource_metadata;
  if (!named.empty()) {
    if (auto sound = read_secure_url(named, "the server's OAuth metadata at", private_); !sound) {
      return tl::unexpected{sound.error()};
    }
  }
  auto found = first_of<resource_metadata>(
      resource_metadata_urls(request_.server, named),
      [&](const std::string& url) { return edges_.exchange(to(url)); },
      [&](const std::string& body) { return read_resource_metadata(body, request_.server); });
  if (!found && found.error().code == errc::not_found && named.empty()) {
    return assumed_resource();
  }
  if (!found && found.error().code == errc::not_found) {
    return fail(errc::unavailable,
                fmt::format("there is no OAuth metadata at {}, which it names", named));
  }
  return found;
}

expected<issuer_metadata> login_flow::read_issuer(const std::string& issuer) {
  auto url = read_secure_url(issuer, "the authorization server", private_);
  if (!url) {
    return tl::unexpected{url.error()};
  }
  auto found = first_of<issuer_metadata>(
      issuer_metadata_urls(*url),
      [&](const std::string& place) { return edges_.exchange(to(place)); },
      [&](const std::string& body) { return read_issuer_metadata(body, issuer, private_); });
  if (!found && found.error().code == errc::not_found) {
    return fail(errc::unavailable, fmt::format("the authorization server {} has no metadata where "
                                               "it should be, so a login isn't possible; perhaps "
                                               "the server takes a token in its headers instead",
                                               issuer));
  }
  return found;
}

expected<issuer_metadata> login_flow::find_issuer(const resource_metadata& resource) {
  std::optional<error> failure;
  for (const auto& issuer : resource.issuers) {
    auto found = read_issuer(issuer);
    if (found) {
      return found;
    }
    failure = failure.value_or(found.error());
  }
  return tl::unexpected{*failure};
}

expected<oauth_client> login_flow::find_client(const issuer_metadata& issuer,
                                               const std::vector<std::string>& scopes) {
  auto how = choose_registration(request_.client, issuer);
  if (!how) {
    return tl::unexpected{how.error()};
  }
  if (*how != registration::dynamic) {
    return made_client(request_.client, *how, issuer);
  }
  auto exchange = to(issuer.registration_endpoint);
  exchange.method = "POST";
  exchange.headers.emplace_back("Content-Type", "application/json");
  exchange.body = registration_request(issuer, edges_.redirect_uri, scopes);
  auto answer = edges_.exchange(exchange);
  if (!answer) {
    return fail(answer.error().code,
                fmt::format("register a client at {}: {}", issuer.registration_endpoint,
                            answer.error().message));
  }
  return read_registration(answer->status, answer->body, issuer);
}

expected<oauth_credential> login_flow::authorize(const resource_metadata& resource,
                                                 const issuer_metadata& issuer,
                                                 const oauth_client& client,
                                                 const std::vector<std::string>& scopes) {
  authorization_attempt attempt{edges_.random(), edges_.random() + edges_.random(),
                                edges_.redirect_uri, issuer.issuer, issuer.sends_issuer};
  auto query = edges_.authorize(
      authorization_url(attempt, issuer, client, scopes, resource.resource), attempt);
  if (!query) {
    return tl::unexpected{query.error()};
  }
  auto code = read_authorization_answer(attempt, *query);
  if (!code) {
    return tl::unexpected{code.error()};
  }
  auto form =
      code_request(client, *code, attempt.redirect_uri, attempt.verifier, resource.resource);
  auto answer = edges_.exchange(
      token_exchange(issuer.token_endpoint, form, to(issuer.token_endpoint).public_only));
  if (!answer) {
    return fail(answer.error().code, fmt::format("ask {} for a token: {}", issuer.token_endpoint,
                                                 answer.error().message));
  }
  auto grant = read_token_answer(answer->status, answer->body);
  if (!grant) {
    return tl::unexpected{grant.error().reason};
  }
  oauth_credential result;
  result.owner = request_.owner;
  result.url = request_.server.text();
  result.server = request_.name;
  result.issuer = issuer.issuer;
  result.resource = resource.resource;
  result.client = client;
  result.token_endpoint = issuer.token_endpoint;
  result.revocation_endpoint = issuer.revocation_endpoint;
  result.private_network = private_;
  take_grant(result, *grant, scopes, edges_.now());
  return result;
}

} // namespace

oauth_exchange_request token_exchange(const std::string& endpoint, const token_request& form,
                                      bool public_only) {
  oauth_exchange_request result;
  result.method = "POST";
  result.url = endpoint;
  result.headers = {{"Accept", "application/json"},
                    {"Content-Type", "application/x-www-form-urlencoded"}};
  if (!form.authorization.empty()) {
    result.headers.emplace_back("Authorization", form.authorization);
  }
  result.body = form.body;
  result.public_only = public_only;
  return result;
}

expected<oauth_credential> log_in(const login_request& request, const login_edges& edges) {
  return login_flow{request, edges}.run();
}

} // namespace bulkhead
