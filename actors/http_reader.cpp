#include "actors/http_reader.hpp"

#include <memory>
#include <utility>

#include <caf/all.hpp>

namespace bulkhead {

void http_reader_state::go_on() {
  while (!large_on_its_way && !waiting.empty()) {
    auto next = std::move(waiting.front());
    waiting.pop_front();
    read(std::move(next));
  }
}

void http_reader_state::read(http_arrival arrival) {
  const auto& bounds = context.env->bounds;
  if (arrival.request.body.size() >= large) {
    large_on_its_way = true;
    // Whoever has dealt with the body, or refused it, lets go of its bytes.
    auto held = std::move(arrival.held);
    auto* bytes = held.get();
    arrival.held = {bytes, [held = std::move(held),
                            me = caf::actor_cast<caf::actor_addr>(http_reader_actor{self})](
                               memory_budget::share*) mutable {
                      held.reset();
                      if (auto reader = caf::actor_cast<http_reader_actor>(me)) {
                        caf::anon_send(reader, credit_atom::value);
                      }
                    }};
  }
  auto posted = read_post(arrival.request, {bounds.line, bounds.json_depth, bounds.json_nodes},
                          context.mirrored);
  if (!posted) {
    arrival.reply->answer(std::move(posted.error()));
    return;
  }
  arrival.posted = std::move(*posted);
  context.read(std::move(arrival));
}

void http_reader_state::stop() {
  for (auto& arrival : std::exchange(waiting, {})) {
    arrival.reply->answer(no_longer_served({}));
  }
  self->quit();
}

http_reader_actor::behavior_type http_reader_state::make_behavior() {
  return {
      [this](http_arrival& arrival) {
        waiting.push_back(std::move(arrival));
        go_on();
      },
      [this](credit_atom) {
        large_on_its_way = false;
        go_on();
      },
      [this](stop_atom) { stop(); },
  };
}

http_reader_actor::behavior_type
http_reader(http_reader_actor::stateful_pointer<http_reader_state> self,
            http_reader_context context) {
  self->state.context = std::move(context);
  return self->state.make_behavior();
}

} // namespace bulkhead
