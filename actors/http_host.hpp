#pragma once

#include <memory>
#include <unordered_map>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/interfaces.hpp"
#include "actors/io/io_thread.hpp"
#include "protocol/limits.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

namespace io {
class http_client;
} // namespace io

/// What the I/O thread tells the HTTP host, besides the interface that all see.
using http_host_impl_actor = http_host_actor::extend<
    /// A whole exchange is over; the answer, or why there is none.
    caf::reacts_to<call_atom, exchange_id, http_response, error>,
    /// A streamed exchange is over; its owner knows.
    caf::reacts_to<end_atom, exchange_id>>;

/// Bytes of a streamed answer that come before its owner has dealt with any.
inline constexpr std::uint64_t http_credit = 512 * kibibyte;

/// Hands exchanges over to the I/O thread, where they live, and answers for it.
struct http_host_state {
  explicit http_host_state(http_host_impl_actor::pointer self);
  http_host_impl_actor::behavior_type make_behavior();

  caf::result<http_response> call(http_request& request, deadline due);
  void open(exchange_id id, http_request& request, const http_owner_actor& owner);
  void cancel(exchange_id id);
  void owner_died(const caf::actor_addr& owner);
  void forget(exchange_id id);
  template <class Function>
  void on_io(Function function);

  http_host_impl_actor::pointer self;
  io::io_thread* io = nullptr;
  std::shared_ptr<io::http_client> client; ///< touched on the I/O thread only
  exchange_id last_call = 0;
  std::unordered_map<exchange_id, caf::typed_response_promise<http_response>> calls;
  std::unordered_map<exchange_id, caf::actor_addr> owners; ///< of streamed exchanges

  static inline const char* name = "http-host";
};

http_host_impl_actor::behavior_type
http_host(http_host_impl_actor::stateful_pointer<http_host_state> self, io::io_thread* io,
          environment_lookup variable);

} // namespace bulkhead
