#include "actors/jwks_store.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "protocol/oauth_metadata.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Of one exchange; the metadata may be at three places, and the keys are one more.
constexpr auto exchange_budget = 5s;
/// How soon a key that an issuer withdraws is believed no more.
constexpr auto refresh_pause = 1h;
constexpr auto first_retry = 10s;
constexpr auto longest_retry = 10min;
constexpr auto tick_interval = 5s;
/// What is denied is denied because it isn't public.
constexpr std::string_view private_remedy =
    "; if that is where the keys are meant to be, set private_network = true in the issuer's "
    "[[oauth.issuers]]";

std::chrono::steady_clock::duration retry_pause(std::uint32_t failures) {
  auto doublings = std::min(failures, 10U);
  return std::min<std::chrono::steady_clock::duration>(first_retry * (1U << doublings),
                                                       longest_retry);
}

} // namespace

jwks_store_state::jwks_store_state(jwks_store_impl_actor::pointer self) : self{self} {}

std::optional<oauth_issuer> jwks_store_state::definition(const std::string& issuer) const {
  auto known = ring->get();
  const auto* found = known->resource ? known->resource->find(issuer) : nullptr;
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

void jwks_store_state::adopt() {
  auto known = ring->get();
  std::erase_if(sources, [&](const auto& each) { return !definition(each.first); });
  if (known->resource) {
    for (const auto& each : known->resource->issuers) {
      // Also one whose keys lie elsewhere now: the ring has dropped them.
      auto [source, first] = sources.try_emplace(each.issuer);
      if (first || known->keys.count(each.issuer) == 0) {
        source->second.due = self->clock().now();
      }
    }
  }
  fetch_due();
}

void jwks_store_state::fetch_due() {
  std::vector<std::string> due;
  for (const auto& [issuer, source] : sources) {
    if (source.due <= self->clock().now()) {
      due.push_back(issuer);
    }
  }
  for (const auto& issuer : due) {
    fetch(issuer, false);
  }
}

void jwks_store_state::fetch(const std::string& issuer, bool begun) {
  if (!begun && !ring->begin(issuer, self->clock().now())) {
    return;
  }
  auto configured = definition(issuer);
  auto source = sources.find(issuer);
  if (!configured || source == sources.end()) {
    ring->end(issuer);
    return;
  }
  source->second.jwks_uri = configured->jwks_uri;
  source->second.asked = configured;
  source->second.urls.clear();
  if (source->second.jwks_uri.empty()) {
    if (auto url = read_secure_url(issuer, "the issuer", true)) {
      source->second.urls = issuer_metadata_urls(*url);
    }
  }
  find_keys(issuer);
}

void jwks_store_state::find_keys(const std::string& issuer) {
  auto source = sources.find(issuer);
  if (source == sources.end()) {
    ring->end(issuer);
    return;
  }
  auto failed = [this, issuer](const std::string& why) { fail(issuer, why); };
  if (!source->second.jwks_uri.empty()) {
    get(
        issuer, source->second.jwks_uri,
        [this, issuer](const http_response& answer) { take_keys(issuer, answer); }, failed);
    return;
  }
  if (source->second.urls.empty()) {
    fail(issuer, "it publishes no metadata at the well-known places; name its jwks_uri");
    return;
  }
  auto url = source->second.urls.front();
  source->second.urls.erase(source->second.urls.begin());
  get(
      issuer, url,
      [this, issuer](const http_response& answer) {
        auto uri = answer.status == 200 ? read_jwks_uri(answer.body, issuer)
                                        : expected<std::string>{std::string{}};
        if (!uri) {
          fail(issuer, uri.error().message);
          return;
        }
        if (auto found = sources.find(issuer); found != sources.end()) {
          found->second.jwks_uri = *uri; // empty: the next place is tried
        }
        find_keys(issuer);
      },
      failed);
}

void jwks_store_state::get(const std::string& issuer, const std::string& url,
                           std::function<void(const http_response&)> take,
                           std::function<void(const std::string&)> failed) {
  auto configured = definition(issuer);
  if (!configured) {
    finish(issuer, refresh_pause);
    return;
  }
  http_request request;
  request.url = url;
  request.headers = {{"Accept", "application/json"}};
  request.most_bytes = largest_oauth_document;
  request.public_only = !configured->private_network;
  auto due = deadline::at(self->clock().now() + exchange_budget);
  self->request(http(), exchange_budget + 1s, call_atom::value, std::move(request), due)
      .then(std::move(take), [failed, url](const caf::error& reason) {
        auto cause = from_caf(reason, "fetch " + url);
        failed(cause.code == errc::denied ? cause.message + std::string{private_remedy}
                                          : cause.message);
      });
}

void jwks_store_state::take_keys(const std::string& issuer, const http_response& answer) {
  auto asked = sources.find(issuer);
  if (asked == sources.end() || definition(issuer) != asked->second.asked) {
    // It is defined otherwise since: these keys may come from where no keys are believed any more.
    ring->end(issuer);
    fetch(issuer, false);
    return;
  }
  if (answer.status != 200) {
    fail(issuer, fmt::format("the key set is answered with HTTP {}", answer.status));
    return;
  }
  auto keys = read_key_set(answer.body);
  if (!keys) {
    fail(issuer, keys.error().message);
    return;
  }
  log->info("{} keys of the issuer {}", keys->keys().size(), issuer);
  ring->set_keys(issuer, std::make_shared<const key_set>(std::move(*keys)));
  if (auto source = sources.find(issuer); source != sources.end()) {
    source->second.failures = 0;
  }
  finish(issuer, refresh_pause);
}

void jwks_store_state::fail(const std::string& issuer, const std::string& why) {
  auto source = sources.find(issuer);
  auto pause = retry_pause(source != sources.end() ? source->second.failures++ : 0);
  log->warn("the keys of the issuer {} can't be had: {}; {}", issuer, why,
            ring->get()->keys.count(issuer) != 0 ? "those that are known count meanwhile"
                                                 : "none of its tokens is believed until then");
  ring->set_failure(issuer, why);
  finish(issuer, pause);
}

void jwks_store_state::finish(const std::string& issuer, clock::duration pause) {
  if (auto source = sources.find(issuer); source != sources.end()) {
    source->second.due = self->clock().now() + pause;
  }
  ring->end(issuer);
}

jwks_store_impl_actor::behavior_type jwks_store_state::make_behavior() {
  self->delayed_send(self, tick_interval, tick_atom::value);
  adopt();
  return {
      [this](catalogue_atom) { adopt(); },
      [this](renew_atom, const std::string& issuer) { fetch(issuer, true); },
      [this](tick_atom) {
        fetch_due();
        self->delayed_send(self, tick_interval, tick_atom::value);
      },
  };
}

jwks_store_impl_actor::behavior_type
jwks_store(jwks_store_impl_actor::stateful_pointer<jwks_store_state> self,
           std::shared_ptr<key_ring> ring, std::shared_ptr<spdlog::logger> log,
           std::function<http_host_actor()> http) {
  self->state.ring = std::move(ring);
  self->state.log = std::move(log);
  self->state.http = std::move(http);
  return self->state.make_behavior();
}

} // namespace bulkhead
