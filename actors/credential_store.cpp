#include "actors/credential_store.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Of one refresh, with the wait for another process that is at it.
constexpr auto refresh_budget = 30s;
constexpr auto lock_pause = 50ms;

/// What a user can do when a credential is of no more use.
std::string login_again(const oauth_credential& credential) {
  return fmt::format("bulkhead login {}",
                     credential.server.empty() ? credential.url : credential.server);
}

error ended(const oauth_credential& credential, std::string_view why) {
  return {errc::denied, fmt::format("the login at {} is no longer good ({}); log in again: {}",
                                    credential.issuer, why, login_again(credential))};
}

} // namespace

credential_folder credentials_of(const settings& config) {
  return credential_folder{config.state_dir + "/credentials"};
}

http_request to_http(const oauth_exchange_request& exchange) {
  http_request result;
  result.method = exchange.method;
  result.url = exchange.url;
  for (const auto& [key, value] : exchange.headers) {
    result.headers.push_back({key, value});
  }
  result.body = exchange.body;
  result.most_bytes = largest_oauth_document;
  result.public_only = exchange.public_only;
  return result;
}

credential_store_state::credential_store_state(credential_store_impl_actor::pointer self)
    : self{self} {}

bool credential_store_state::usable(const oauth_credential& credential) const {
  auto bad = refused.find(credential_name(credential.owner, credential.url));
  return is_fresh(credential, env->wall_clock()) &&
         (bad == refused.end() || bad->second != credential.access_token);
}

caf::result<std::string> credential_store_state::token(const std::string& owner,
                                                       const std::string& url) {
  auto bound = credential_url(url);
  if (!bound) {
    // It has a user name in it, say; there can't have been a login.
    return std::string{};
  }
  auto credential = folder->read(owner, *bound);
  if (!credential) {
    return to_caf(credential.error());
  }
  if (!*credential) {
    return std::string{};
  }
  if (usable(**credential)) {
    return (*credential)->access_token;
  }
  auto key = credential_name(owner, *bound);
  auto waits = self->make_response_promise<std::string>();
  auto [entry, first] = refreshes.try_emplace(key);
  entry->second.waiting.push_back(waits);
  if (first) {
    entry->second.owner = owner;
    entry->second.url = *bound;
    entry->second.due = deadline::at(self->clock().now() + refresh_budget);
    begin(key);
  }
  return waits;
}

void credential_store_state::begin(const std::string& key) {
  auto found = refreshes.find(key);
  if (found == refreshes.end()) {
    return;
  }
  auto& each = found->second;
  auto lock = folder->try_lock(each.owner, each.url);
  if (!lock) {
    finish(key, tl::unexpected{lock.error()});
    return;
  }
  if (!*lock) {
    if (self->clock().now() >= each.due.when()) {
      finish(key, fail(errc::timeout, fmt::format("another process has been refreshing the login "
                                                  "for {} for too long; try again",
                                                  each.url)));
      return;
    }
    self->delayed_send(self, lock_pause, tick_atom::value, key);
    return;
  }
  each.lock = std::move(*lock);
  // Another process may have refreshed it, or the user logged out.
  auto credential = folder->read(each.owner, each.url);
  if (!credential) {
    finish(key, tl::unexpected{credential.error()});
  } else if (!*credential) {
    finish(key, std::string{});
  } else if (usable(**credential)) {
    finish(key, (*credential)->access_token);
  } else if ((*credential)->refresh_token.empty()) {
    drop(**credential);
    finish(key, tl::unexpected{ended(**credential, "it has expired, or the server refuses it")});
  } else {
    ask(key, **credential);
  }
}

void credential_store_state::ask(const std::string& key, const oauth_credential& credential) {
  auto form = refresh_request(credential.client, credential.refresh_token, credential.resource);
  auto request =
      to_http(token_exchange(credential.token_endpoint, form, !credential.private_network));
  auto due = refreshes[key].due;
  auto failed = [this, key, endpoint = credential.token_endpoint](const caf::error& reason) {
    auto cause = from_caf(reason, "refresh a login");
    finish(key,
           fail(cause.code, fmt::format("refresh a login at {}: {}", endpoint, cause.message)));
  };
  self->request(http(), refresh_budget, call_atom::value, std::move(request), due)
      .then([this, key, credential](const http_response& answer) { take(key, credential, answer); },
            failed);
}

void credential_store_state::take(const std::string& key, oauth_credential credential,
                                  const http_response& answer) {
  auto grant = read_token_answer(answer.status, answer.body);
  if (!grant && grant.error().final) {
    drop(credential);
    finish(key, tl::unexpected{ended(credential, grant.error().reason.message)});
    return;
  }
  if (!grant) {
    finish(key, tl::unexpected{grant.error().reason});
    return;
  }
  take_grant(credential, *grant, credential.scopes, env->wall_clock());
  if (auto written = folder->write(credential); !written) {
    // The tokens are good all the same, for as long as this process lives.
    env->log->error("a refreshed login can't be kept, so it has to be repeated: {}",
                    written.error().message);
  }
  refused.erase(key);
  finish(key, credential.access_token);
}

void credential_store_state::drop(const oauth_credential& credential) {
  if (auto removed = folder->remove(credential.owner, credential.url); !removed) {
    env->log->warn("a login that is no longer good can't be removed: {}", removed.error().message);
  }
  refused.erase(credential_name(credential.owner, credential.url));
}

void credential_store_state::finish(const std::string& key, const expected<std::string>& outcome) {
  auto done = refreshes.extract(key);
  if (!done) {
    return;
  }
  for (auto& each : done.mapped().waiting) {
    if (outcome) {
      each.deliver(*outcome);
    } else {
      each.deliver(to_caf(outcome.error()));
    }
  }
}

credential_store_impl_actor::behavior_type credential_store_state::make_behavior() {
  return {
      [this](token_atom, const std::string& owner, const std::string& url, deadline) {
        return token(owner, url);
      },
      [this](refuse_atom, const std::string& owner, const std::string& url,
             const std::string& bad) {
        if (auto bound = credential_url(url)) {
          refused[credential_name(owner, *bound)] = bad;
        }
      },
      [this](record_atom, const std::string& owner, const std::string& url,
             const std::string& challenge) {
        auto bound = credential_url(url);
        if (!bound || folder->challenge(owner, *bound) == challenge) {
          return;
        }
        if (auto kept = folder->write_challenge(owner, *bound, challenge); !kept) {
          env->log->warn("what a server asks for can't be kept for a login: {}",
                         kept.error().message);
        }
      },
      [this](tick_atom, const std::string& key) { begin(key); },
  };
}

credential_store_impl_actor::behavior_type
credential_store(credential_store_impl_actor::stateful_pointer<credential_store_state> self,
                 environment_ptr env, std::function<http_host_actor()> http) {
  self->state.folder.emplace(credentials_of(*env->config));
  self->state.env = std::move(env);
  self->state.http = std::move(http);
  return self->state.make_behavior();
}

} // namespace bulkhead
