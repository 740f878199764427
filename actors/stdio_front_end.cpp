#include "actors/stdio_front_end.hpp"

#include <memory>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/io/stdio_channel.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;

/// The session bounds itself; this is for one that is stuck.
constexpr seconds session_stop_budget{12};
/// Lines that wait for the session; then the client's input waits. A longer line comes alone.
constexpr std::size_t lines_ahead = 64 * kibibyte;
/// What a client that no longer reads gets before its answers are dropped.
constexpr seconds flush_budget{2};

} // namespace

transport_opener stdio_transport(io::io_thread& io, int in, int out, const limits& bounds) {
  return [&io, in, out, bounds](const front_end_actor& to) {
    io::stdio_channel::events events;
    events.line = [to](std::string line) { caf::anon_send(to, line_atom::value, std::move(line)); };
    events.overlong = [to] { caf::anon_send(to, line_atom::value); };
    events.end = [to] { caf::anon_send(to, input_end_atom::value); };
    auto channel = std::make_shared<io::stdio_channel>(io, in, out, bounds.line, bounds.write_ahead,
                                                       std::move(events), lines_ahead);
    channel->start();
    return line_transport{
        [channel](std::string line) { channel->write(std::move(line)); },
        [channel](std::size_t bytes) { channel->taken(bytes); },
        [channel](std::function<void()> done) { channel->when_drained(std::move(done)); },
        [channel] { channel->close(); },
    };
  };
}

stdio_front_end_state::stdio_front_end_state(stdio_front_end_actor::pointer self) : self{self} {}

void stdio_front_end_state::stop() {
  if (now != phase::open) {
    return;
  }
  now = phase::stopping;
  self->request(session, session_stop_budget, stop_atom::value)
      .then([this](caf::ok_atom) { flush(); },
            [this](const caf::error& reason) {
              env->log->warn("stdio: the session didn't stop in order: {}", caf::to_string(reason));
              flush();
            });
}

void stdio_front_end_state::flush() {
  if (now == phase::flushing || now == phase::ended) {
    return;
  }
  now = phase::flushing;
  transport.when_drained([me = front_end_actor{self}] { caf::anon_send(me, drained_atom::value); });
  self->delayed_send(self, flush_budget, tick_atom::value);
}

void stdio_front_end_state::end() {
  if (now == phase::ended) {
    return;
  }
  now = phase::ended;
  transport.close();
  for (auto& promise : std::exchange(stopping, {})) {
    promise.deliver(caf::ok_atom::value);
  }
  self->quit();
}

stdio_front_end_actor::behavior_type stdio_front_end_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) {
    if (now == phase::open) {
      env->log->error("stdio: the session ended: {}; closing the connection",
                      caf::to_string(down.reason));
      flush();
    }
  });
  return {
      [this](message_atom, std::string& message) {
        if (now == phase::open || now == phase::stopping) {
          transport.write(std::move(message));
        }
      },
      [this](message_atom, const std::string&, std::string& message) {
        if (now == phase::open || now == phase::stopping) {
          transport.write(std::move(message));
        }
      },
      [this](line_atom, std::string& line) {
        if (now == phase::open) {
          self->send(session, message_atom::value, std::move(line));
        }
      },
      [this](line_atom) {
        if (now == phase::open) {
          self->send(session, refuse_atom::value,
                     error{errc::too_large, fmt::format("the message is over the limit of {} bytes "
                                                        "and was dropped",
                                                        env->bounds.line)});
        }
      },
      [this](credit_atom, std::uint64_t bytes) {
        if (now == phase::open) {
          transport.taken(static_cast<std::size_t>(bytes));
        }
      },
      [this](input_end_atom) { stop(); },
      [this](drained_atom) {
        if (now == phase::flushing) {
          end();
        }
      },
      [this](stop_atom) {
        auto promise = self->make_response_promise<caf::ok_atom>();
        stopping.push_back(promise);
        stop();
        return promise;
      },
      [this](tick_atom) { end(); },
  };
}

stdio_front_end_actor::behavior_type
stdio_front_end(stdio_front_end_actor::stateful_pointer<stdio_front_end_state> self,
                session_context context, const transport_opener& open) {
  auto& state = self->state;
  state.env = context.env;
  state.session =
      self->spawn<caf::monitored>(mcp_session, std::move(context), front_end_actor{self});
  state.transport = open(front_end_actor{self});
  return state.make_behavior();
}

} // namespace bulkhead
