#include "main/bearer_gate.hpp"

#include <chrono>
#include <mutex>
#include <utility>

#include <caf/all.hpp>

#include "actors/http_host.hpp"
#include "actors/jwks_store.hpp"
#include "main/configuration.hpp"
#include "protocol/http_rules.hpp"
#include "protocol/json_rpc.hpp"

namespace bulkhead {

/// What requests need, whose thread may be ahead of the gate's end.
struct bearer_gate::parts {
  std::shared_ptr<const current_tokens> tokens;
  std::shared_ptr<key_ring> keys = std::make_shared<key_ring>();
  std::shared_ptr<spdlog::logger> log;
  std::mutex mutex;
  jwks_store_actor store; ///< null before there is one, and after the end

  void tell(const std::function<void(const jwks_store_actor&)>& what) {
    std::lock_guard guard{mutex};
    if (store) {
      what(store);
    }
  }
};

bearer_gate::bearer_gate(shared_process& process, std::shared_ptr<const current_tokens> tokens)
    : process_{process}, parts_{std::make_shared<parts>()} {
  parts_->tokens = std::move(tokens);
  parts_->log = process.log();
}

bearer_gate::~bearer_gate() {
  jwks_store_actor store;
  {
    std::lock_guard guard{parts_->mutex};
    store = std::exchange(parts_->store, nullptr);
  }
  if (!store) {
    return;
  }
  caf::scoped_actor self{process_.system()};
  for (const auto& each :
       {caf::actor_cast<caf::actor>(store), caf::actor_cast<caf::actor>(http_)}) {
    self->monitor(each);
    self->send_exit(each, caf::exit_reason::kill);
    self->receive([](const caf::down_msg&) {}, caf::after(std::chrono::seconds{1}) >> [] {});
  }
}

void bearer_gate::apply(const std::optional<oauth_resource>& resource) {
  parts_->keys->set_resource(resource);
  std::lock_guard guard{parts_->mutex};
  if (parts_->store) {
    caf::anon_send(parts_->store, catalogue_atom::value);
  } else if (resource) {
    http_ = process_.system().spawn(http_host, &process_.io(),
                                    environment_lookup{environment_variable});
    parts_->store = process_.system().spawn(jwks_store, parts_->keys, process_.log(),
                                            [http = http_] { return http; });
  }
}

std::function<tl::expected<std::string, outgoing_answer>(std::string_view)>
bearer_gate::check() const {
  bearer_check check;
  check.tokens = parts_->tokens;
  check.keys = parts_->keys;
  check.wall_clock = [] {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  };
  check.clock = [] { return key_ring::clock::now(); };
  check.fetch = [parts = parts_](const std::string& issuer) {
    parts->tell(
        [&](const jwks_store_actor& store) { caf::anon_send(store, renew_atom::value, issuer); });
  };
  check.note = [log = parts_->log](const std::string& reason) {
    log->debug("an access token is refused: {}", reason);
  };
  return check;
}

std::function<outgoing_answer(std::string_view)> bearer_gate::metadata() const {
  return [keys = parts_->keys](std::string_view path) {
    auto known = keys->get();
    // Clients that find nothing at the resource's own path look at the root's.
    if (!known->resource ||
        (path != resource_document_path(*known->resource) && path != resource_document_root)) {
      return refusal(404, rpc_code::invalid_request, "nothing is told of where to get tokens");
    }
    outgoing_answer answer;
    answer.fields = {{"Content-Type", "application/json"}};
    answer.body = resource_document(*known->resource);
    return answer;
  };
}

std::vector<health_check> bearer_gate::checks() const {
  auto known = parts_->keys->get();
  std::vector<health_check> found;
  if (!known->resource) {
    return found;
  }
  for (const auto& each : known->resource->issuers) {
    auto failure = known->failures.find(each.issuer);
    found.push_back(check_issuer(each.issuer,
                                 failure != known->failures.end() ? failure->second : "",
                                 known->keys.count(each.issuer) != 0));
  }
  return found;
}

} // namespace bulkhead
