#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/environment.hpp"
#include "actors/http_transport.hpp"
#include "protocol/http_mcp.hpp"

namespace bulkhead {

/// Reads what one principal posts, in order.
using http_reader_actor = caf::typed_actor<
    /// A POST.
    caf::reacts_to<http_arrival>,
    /// The large body that was read last has been dealt with.
    caf::reacts_to<credit_atom>,
    /// Refuses what waits, and ends.
    caf::reacts_to<stop_atom>>;

struct http_reader_context {
  environment_ptr env;
  mirrored_parameters mirrored; ///< null: no tool has any
  /// Takes what was read; what can't be is answered.
  std::function<void(http_arrival read)> read;
};

/// Large bodies take a while here, and again where they go to. There is one of a principal on that
/// way at a time, so that they take turns with what others send, whoever sends how many.
struct http_reader_state {
  explicit http_reader_state(http_reader_actor::pointer self) : self{self} {}
  http_reader_actor::behavior_type make_behavior();

  /// Bytes; smaller ones are dealt with in less time than it takes to tell of that.
  static constexpr std::size_t large = 64 * 1024;

  void go_on();
  void read(http_arrival arrival);
  void stop();

  http_reader_actor::pointer self;
  http_reader_context context;
  std::deque<http_arrival> waiting; ///< no more than the principal has connections
  bool large_on_its_way = false;

  static inline const char* name = "http_reader";
};

http_reader_actor::behavior_type
http_reader(http_reader_actor::stateful_pointer<http_reader_state> self,
            http_reader_context context);

} // namespace bulkhead
