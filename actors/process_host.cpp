#include "actors/process_host.hpp"

#include <algorithm>
#include <csignal>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "actors/io/attached_stream.hpp"
#include "actors/io/child_process.hpp"
#include "actors/io/http_exchange.hpp"
#include "actors/io/process_table.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t command_output = mebibyte;
constexpr std::uint64_t unlimited_credit = UINT64_MAX / 2;

/// A command on the I/O thread: collects what it writes, and ends it at its deadline.
struct running_command : std::enable_shared_from_this<running_command> {
  running_command(boost::asio::io_context& context, io::child_ptr process)
      : timer{context}, child{std::move(process)} {}

  void run(child_id id, std::string input, deadline due, const process_host_impl_actor& host) {
    io::child_events events;
    auto self = shared_from_this();
    events.output = [self](stream_id stream, const std::string& bytes) {
      auto& into = stream == stream_id::out ? self->result.out : self->result.err;
      into.append(bytes, 0, command_output - std::min(into.size(), command_output));
    };
    events.written = [](std::uint64_t) {};
    events.exited = [self, id, host](std::int32_t code, std::int32_t) {
      self->timer.cancel();
      self->result.exit_code = code;
      caf::anon_send(host, command_atom::value, id, std::move(self->result), self->late);
    };
    child->begin(std::move(events), unlimited_credit);
    child->write(std::move(input));
    child->close_input();
    timer.expires_at(due.when());
    timer.async_wait([self](const auto& cancelled) {
      if (!cancelled) {
        self->late = true;
        self->child->signal(SIGKILL);
      }
    });
  }

  boost::asio::steady_timer timer;
  io::child_ptr child;
  finished_process result;
  bool late = false;
};

/// The events of a child, sent to its owner; the host learns of the end only.
io::child_events events_for(child_id id, const child_owner_actor& owner,
                            const process_host_impl_actor& host) {
  // A weak reference: a child doesn't keep its owner alive.
  auto weak = caf::actor_cast<caf::actor_addr>(owner);
  auto send = [weak](auto message) {
    if (auto strong = caf::actor_cast<child_owner_actor>(weak)) {
      caf::anon_send(strong, std::move(message));
    }
  };
  io::child_events events;
  events.output = [id, send](stream_id stream, std::string bytes) {
    send(child_output{id, stream, std::move(bytes)});
  };
  events.written = [id, send](std::uint64_t bytes) { send(child_written{id, bytes}); };
  events.exited = [id, send, host](std::int32_t code, std::int32_t signal) {
    send(child_exited{id, code, signal});
    caf::anon_send(host, child_exited{id, code, signal});
  };
  return events;
}

} // namespace

process_host_state::process_host_state(process_host_impl_actor::pointer self) : self{self} {}

template <class Function>
void process_host_state::with_child(child_id id, Function function) {
  auto found = children.find(id);
  if (found != children.end() && found->second.process) {
    boost::asio::post(io->context(),
                      [process = found->second.process, function = std::move(function)]() mutable {
                        function(*process);
                      });
  }
}

caf::typed_response_promise<child_started>
process_host_state::expect_child(child_id id, const child_owner_actor& owner) {
  auto promise = self->make_response_promise<child_started>();
  children.emplace(id, child{nullptr, owner, promise});
  self->monitor(owner);
  return promise;
}

caf::result<child_started> process_host_state::spawn(process_spec& spec,
                                                     const child_owner_actor& owner) {
  auto id = ++last_id;
  auto promise = expect_child(id, owner);
  process_host_impl_actor host{self};
  boost::asio::post(io->context(), [this, io = io, id, spec = std::move(spec), host] {
    auto process = io::child_process::start(*io, spec);
    caf::anon_send(host, spawn_atom::value, id, process ? io::child_ptr{*process} : nullptr,
                   process ? error{errc::none, {}} : process.error());
  });
  return promise;
}

caf::result<child_started> process_host_state::attach(stream_request& request,
                                                      const child_owner_actor& owner) {
  auto id = ++last_id;
  auto promise = expect_child(id, owner);
  process_host_impl_actor host{self};
  boost::asio::post(io->context(), [io = io, id, request = std::move(request), host]() mutable {
    io::attached_stream::open(
        *io, std::move(request), [id, host](expected<std::shared_ptr<io::attached_stream>> opened) {
          caf::anon_send(host, spawn_atom::value, id, opened ? io::child_ptr{*opened} : nullptr,
                         opened ? error{errc::none, {}} : opened.error());
        });
  });
  return promise;
}

caf::result<socket_answer> process_host_state::call(socket_request& request, deadline due) {
  auto id = ++last_id;
  auto promise = self->make_response_promise<socket_answer>();
  calls.emplace(id, promise);
  process_host_impl_actor host{self};
  boost::asio::post(io->context(), [io = io, id, request = std::move(request), due,
                                    host]() mutable {
    io::exchange(*io, std::move(request), due.when(), [id, host](expected<socket_answer> answer) {
      auto failure = answer ? error{errc::none, {}} : answer.error();
      caf::anon_send(host, call_atom::value, id, answer ? std::move(*answer) : socket_answer{},
                     std::move(failure));
    });
  });
  return promise;
}

caf::result<finished_process> process_host_state::run(process_spec& spec, std::string& input,
                                                      deadline due) {
  auto id = ++last_id;
  auto promise = self->make_response_promise<finished_process>();
  commands.emplace(id, command{spec, {}, due, promise});
  process_host_impl_actor host{self};
  boost::asio::post(io->context(), [io = io, id, spec = std::move(spec), input = std::move(input),
                                    due, host]() mutable {
    auto process = io::child_process::start(*io, spec);
    if (!process) {
      caf::anon_send(host, spawn_atom::value, id, io::child_ptr{}, process.error());
      return;
    }
    std::make_shared<running_command>(io->context(), *process)
        ->run(id, std::move(input), due, host);
  });
  return promise;
}

void process_host_state::started(child_id id, const io::child_ptr& process, const error& failure) {
  if (auto found = commands.find(id); found != commands.end()) {
    found->second.promise.deliver(to_caf(failure));
    commands.erase(found);
    return;
  }
  auto found = children.find(id);
  if (found == children.end()) {
    // The owner died meanwhile.
    if (process) {
      boost::asio::post(io->context(), [process] {
        process->begin({[](auto, auto) {}, [](auto) {}, [](auto, auto) {}}, unlimited_credit);
        process->signal(SIGKILL);
      });
    }
    return;
  }
  auto& entry = found->second;
  if (!process) {
    entry.promise.deliver(to_caf(failure));
    forget(id);
    return;
  }
  entry.process = process;
  // The answer is on its way before the first event can be.
  entry.promise.deliver(child_started{id, process->pid()});
  boost::asio::post(
      io->context(),
      [process, events = events_for(id, entry.owner, process_host_impl_actor{self}),
       credit = bounds.read_ahead]() mutable { process->begin(std::move(events), credit); });
}

void process_host_state::owner_died(const caf::actor_addr& owner) {
  for (auto entry = children.begin(); entry != children.end();) {
    if (entry->second.owner.address() != owner) {
      ++entry;
      continue;
    }
    if (!entry->second.process) {
      entry->second.promise.deliver(
          to_caf(errc::closed, "start process: its owner ended meanwhile"));
      entry = children.erase(entry);
      continue;
    }
    with_child(entry->first, [](io::child& process) {
      process.mute();
      process.signal(SIGKILL);
    });
    ++entry;
  }
}

void process_host_state::forget(child_id id) {
  auto found = children.find(id);
  if (found == children.end()) {
    return;
  }
  auto owner = found->second.owner.address();
  children.erase(found);
  // One demonitor ends all monitoring of an actor: not while it owns another child.
  if (std::none_of(children.begin(), children.end(),
                   [&](const auto& entry) { return entry.second.owner.address() == owner; })) {
    self->demonitor(owner);
  }
}

process_host_impl_actor::behavior_type process_host_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { owner_died(down.source); });
  return {
      [this](spawn_atom, process_spec& spec, const child_owner_actor& owner) {
        return spawn(spec, owner);
      },
      [this](write_atom, child_id id, std::string& bytes) {
        with_child(id, [bytes = std::move(bytes)](io::child& process) mutable {
          process.write(std::move(bytes));
        });
      },
      [this](close_input_atom, child_id id) {
        with_child(id, [](io::child& process) { process.close_input(); });
      },
      [this](signal_atom, child_id id, std::int32_t signal) {
        with_child(id, [signal](io::child& process) { process.signal(signal); });
      },
      [this](credit_atom, child_id id, stream_id stream, std::uint64_t bytes) {
        with_child(id, [stream, bytes](io::child& process) { process.add_credit(stream, bytes); });
      },
      [this](command_atom, process_spec& spec, std::string& input, deadline due) {
        return run(spec, input, due);
      },
      [this](call_atom, socket_request& request, deadline due) { return call(request, due); },
      [this](attach_atom, stream_request& request, const child_owner_actor& owner) {
        return attach(request, owner);
      },
      [](kill_marked_atom, const std::string& value) -> caf::result<std::uint32_t> {
        std::uint32_t killed = 0;
        for (const auto& process : io::processes_marked_with(io::child_marker)) {
          killed += process.value == value && ::kill(process.pid, SIGKILL) == 0 ? 1 : 0;
        }
        return killed;
      },
      [this](spawn_atom, child_id id, const io::child_ptr& process, const error& failure) {
        started(id, process, failure);
      },
      [this](const child_exited& exit) { forget(exit.id); },
      [this](command_atom, child_id id, finished_process& result, bool late) {
        if (auto found = commands.find(id); found != commands.end()) {
          auto& entry = found->second;
          late ? entry.promise.deliver(to_caf(errc::timeout, "run \"" + entry.spec.argv.front() +
                                                                 "\": killed at its deadline"))
               : entry.promise.deliver(std::move(result));
          commands.erase(found);
        }
      },
      [this](call_atom, child_id id, socket_answer& answer, const error& failure) {
        if (auto entry = calls.extract(id)) {
          failure.code == errc::none ? entry.mapped().deliver(std::move(answer))
                                     : entry.mapped().deliver(to_caf(failure));
        }
      },
  };
}

process_host_impl_actor::behavior_type
process_host(process_host_impl_actor::stateful_pointer<process_host_state> self, io::io_thread* io,
             limits bounds) {
  self->state.io = io;
  self->state.bounds = bounds;
  return self->state.make_behavior();
}

} // namespace bulkhead
