#include "actors/http_host.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "actors/io/http_client.hpp"

namespace bulkhead {

namespace {

/// Whole exchanges have ids of the host's own; those that owners chose count up from zero.
constexpr exchange_id first_call = exchange_id{1} << 63;

constexpr std::uint64_t unlimited_credit = UINT64_MAX;

/// The events of a whole exchange: its answer is put together.
io::http_events collect(exchange_id id, const http_host_impl_actor& host) {
  auto answer = std::make_shared<http_response>();
  io::http_events events;
  events.head = [answer](std::uint32_t status, std::vector<http_header> headers) {
    answer->status = status;
    answer->headers = std::move(headers);
  };
  events.body = [answer](const std::string& bytes) { answer->body += bytes; };
  events.end = [answer, id, host](error reason) {
    caf::anon_send(host, call_atom::value, id, std::move(*answer), std::move(reason));
  };
  return events;
}

/// The events of a streamed exchange, sent to its owner; the host learns of the end only.
io::http_events pass_on(exchange_id id, const http_owner_actor& owner,
                        const http_host_impl_actor& host) {
  // A weak reference: an exchange doesn't keep its owner alive.
  auto weak = caf::actor_cast<caf::actor_addr>(owner);
  auto send = [weak](auto message) {
    if (auto strong = caf::actor_cast<http_owner_actor>(weak)) {
      caf::anon_send(strong, std::move(message));
    }
  };
  io::http_events events;
  events.head = [id, send](std::uint32_t status, std::vector<http_header> headers) {
    send(http_head{id, status, std::move(headers)});
  };
  events.body = [id, send](std::string bytes) { send(http_body{id, std::move(bytes)}); };
  events.end = [id, send, host](error reason) {
    send(http_end{id, std::move(reason)});
    caf::anon_send(host, end_atom::value, id);
  };
  return events;
}

} // namespace

http_host_state::http_host_state(http_host_impl_actor::pointer self)
    : self{self}, last_call{first_call} {}

template <class Function>
void http_host_state::on_io(Function function) {
  boost::asio::post(io->context(), [client = client, function = std::move(function)]() mutable {
    function(*client);
  });
}

caf::result<http_response> http_host_state::call(http_request& request, deadline due) {
  auto id = ++last_call;
  auto promise = self->make_response_promise<http_response>();
  calls.emplace(id, promise);
  on_io([id, request = std::move(request), due,
         events = collect(id, http_host_impl_actor{self})](io::http_client& client) mutable {
    client.begin(id, std::move(request), due.when(), unlimited_credit, std::move(events));
  });
  return promise;
}

void http_host_state::open(exchange_id id, http_request& request, const http_owner_actor& owner) {
  if (!owner) {
    return;
  }
  if (!owners.emplace(id, owner.address()).second) {
    self->send(owner, http_end{id, {errc::internal, "the id of an HTTP exchange is in use"}});
    return;
  }
  self->monitor(owner);
  on_io([id, request = std::move(request),
         events = pass_on(id, owner, http_host_impl_actor{self})](io::http_client& client) mutable {
    client.begin(id, std::move(request), std::nullopt, http_credit, std::move(events));
  });
}

void http_host_state::cancel(exchange_id id) {
  if (owners.contains(id)) {
    on_io([id](io::http_client& client) { client.cancel(id); });
    forget(id);
  }
}

void http_host_state::owner_died(const caf::actor_addr& owner) {
  for (auto entry = owners.begin(); entry != owners.end();) {
    if (entry->second != owner) {
      ++entry;
      continue;
    }
    on_io([id = entry->first](io::http_client& client) { client.cancel(id); });
    entry = owners.erase(entry);
  }
}

void http_host_state::forget(exchange_id id) {
  auto found = owners.find(id);
  if (found == owners.end()) {
    return;
  }
  auto owner = found->second;
  owners.erase(found);
  // One demonitor ends all monitoring of an actor: not while it owns another exchange.
  if (std::none_of(owners.begin(), owners.end(),
                   [&](const auto& entry) { return entry.second == owner; })) {
    self->demonitor(owner);
  }
}

http_host_impl_actor::behavior_type http_host_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { owner_died(down.source); });
  return {
      [this](call_atom, http_request& request, deadline due) { return call(request, due); },
      [this](open_atom, exchange_id id, http_request& request, const http_owner_actor& owner) {
        open(id, request, owner);
      },
      [this](credit_atom, exchange_id id, std::uint64_t bytes) {
        on_io([id, bytes](io::http_client& client) { client.add_credit(id, bytes); });
      },
      [this](cancel_atom, exchange_id id) { cancel(id); },
      [this](call_atom, exchange_id id, http_response& answer, const error& failure) {
        if (auto entry = calls.extract(id)) {
          failure.code == errc::none ? entry.mapped().deliver(std::move(answer))
                                     : entry.mapped().deliver(to_caf(failure));
        }
      },
      [this](end_atom, exchange_id id) { forget(id); },
  };
}

http_host_impl_actor::behavior_type
http_host(http_host_impl_actor::stateful_pointer<http_host_state> self, io::io_thread* io,
          environment_lookup variable) {
  auto& state = self->state;
  state.io = io;
  // It ends where it lived, whoever lets go of it last.
  state.client = {new io::http_client{*io, std::move(variable)}, [io](io::http_client* client) {
                    boost::asio::post(io->context(),
                                      [owned = std::unique_ptr<io::http_client>{client}] {});
                  }};
  return state.make_behavior();
}

} // namespace bulkhead
