#include "actors/sandbox.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Finding, probing and starting an engine; a container's own boot takes a tenth of a second.
constexpr auto boot_budget = 90s;
/// The time that a guest has to exit once asked; it needs a few milliseconds.
constexpr auto exit_grace = 1500ms;
/// The driver bounds its own attempts; this is for a driver that doesn't answer.
constexpr auto driver_patience = 60s;
constexpr int max_destroy_attempts = 3;

} // namespace

sandbox_state::sandbox_state(sandbox_impl_actor::pointer self) : self{self} {}

void sandbox_state::enter(phase next, std::chrono::nanoseconds limit) {
  now = next;
  self->delayed_send(self, limit, tick_atom::value, ++generation);
}

// -- boot ----------------------------------------------------------------------------------------

void sandbox_state::prepare() {
  id = context.env->new_handle();
  enter(phase::preparing, boot_budget);
  self->request(context.volumes, boot_budget, run_folder_atom::value, id)
      .then([this](std::string& path) { create(path); },
            [this](const caf::error& reason) {
              lost(from_caf(reason, "make the run's folder"));
              self->quit();
            });
}

void sandbox_state::create(const std::string& path) {
  folder = path;
  if (now != phase::preparing) {
    discard_folder();
    return;
  }
  enter(phase::creating, boot_budget);
  self->request(context.runtime, boot_budget, create_atom::value, container_request{id, folder},
                child_owner_actor{self})
      .then(
          [this](container_handle& handle) {
            container = std::move(handle);
            if (now != phase::creating) {
              destroy();
              return;
            }
            enter(phase::booting, boot_budget);
            if (early_ready) {
              guest_is_ready(std::move(*early_ready));
            } else if (exited) {
              child_is_gone(*exited);
            }
          },
          [this](const caf::error& reason) {
            auto why = from_caf(reason, "start the container");
            if (now == phase::creating) {
              lost(std::move(why));
            }
            discard_folder();
          });
}

void sandbox_state::guest_is_ready(guest_ready ready) {
  if (now == phase::creating) {
    // The driver's answer is still on its way.
    early_ready = std::move(ready);
    return;
  }
  if (now != phase::booting) {
    broken(errc::malformed, "it said \"ready\" twice");
    return;
  }
  enter(phase::confining, boot_budget);
  self->request(context.runtime, boot_budget, confine_atom::value, container)
      .then(
          [this, python = std::move(ready.python)](caf::ok_atom) {
            if (now == phase::confining) {
              start_code(python);
            }
          },
          [this](const caf::error& reason) {
            if (now == phase::confining) {
              lost(from_caf(reason, "set the container's limits"));
              destroy();
            }
          });
}

void sandbox_state::start_code(const std::string& python) {
  now = phase::running;
  ++generation;
  send(encode_init(run.servers, run.discovered, context.env->bounds));
  send(encode_execute(run.id, run.code));
  run.code.clear();
  if (owner) {
    self->send(owner, sandbox_up{python});
  }
}

// -- frames --------------------------------------------------------------------------------------

void sandbox_state::take_output(child_output& output) {
  auto size = output.bytes.size();
  container.child = output.id;
  if (output.stream == stream_id::err) {
    diagnosis += output.bytes;
    if (auto keep = context.env->bounds.stderr_tail; diagnosis.size() > keep) {
      diagnosis.erase(0, diagnosis.size() - keep);
    }
    give_credit(stream_id::err, size);
    return;
  }
  if (now == phase::ending || now == phase::destroying) {
    give_credit(stream_id::out, size);
    return;
  }
  auto held_before = splitter->held();
  std::size_t accounted = 0;
  splitter->feed(output.bytes, {[&](std::string_view line) {
                                  accounted += line.size() + 1;
                                  take_line(line);
                                },
                                [&] {
                                  broken(errc::too_large,
                                         fmt::format("it sent a line of over {} bytes",
                                                     context.env->bounds.line));
                                }});
  // Bytes kept of an unfinished line are given back at once: the splitter bounds them. Those of
  // forwarded lines are given back when the owner has dealt with them (see `tell_owner`).
  auto finished = accounted > held_before ? accounted - held_before : 0;
  if (finished < size) {
    give_credit(stream_id::out, size - finished);
  }
  charge_partial_line();
}

void sandbox_state::charge_partial_line() {
  auto held = splitter->held();
  if (held < partial_share.bytes()) {
    partial_share.release();
  }
  if (!context.env->budget->take(held - partial_share.bytes(), partial_share)) {
    broken(errc::overloaded, "it sends more than the memory budget has room for");
  }
}

void sandbox_state::take_line(std::string_view line) {
  auto cost = line.size() + 1;
  if (now == phase::ending || now == phase::destroying || line.empty()) {
    give_credit(stream_id::out, cost);
    return;
  }
  auto parsed = parse_guest_frame(line, context.env->bounds);
  if (!parsed) {
    broken(parsed.error().code, parsed.error().message);
    give_credit(stream_id::out, cost);
    return;
  }
  if (auto* refused = std::get_if<refused_call>(&*parsed)) {
    send(encode_refusal(refused->id, refused->reason));
    tell_owner(std::move(*refused), cost);
    return;
  }
  take_frame(std::get<guest_frame>(*parsed), cost);
}

void sandbox_state::take_frame(guest_frame& frame, std::size_t cost) {
  if (auto* ready = std::get_if<guest_ready>(&frame)) {
    give_credit(stream_id::out, cost);
    guest_is_ready(std::move(*ready));
    return;
  }
  if (now != phase::running) {
    give_credit(stream_id::out, cost);
    broken(errc::malformed, "it sent a frame before any code ran");
    return;
  }
  if (auto* finished = std::get_if<guest_done>(&frame)) {
    give_credit(stream_id::out, cost);
    if (finished->id != run.id) {
      broken(errc::malformed, "it ended a run that isn't its own");
      return;
    }
    done = true;
    if (owner) {
      self->send(owner, std::move(*finished));
    }
    end();
    return;
  }
  if (auto* output = std::get_if<guest_output>(&frame)) {
    tell_owner(std::move(*output), cost);
  } else {
    tell_owner(std::move(std::get<guest_call>(frame)), cost);
  }
}

template <class Event>
void sandbox_state::tell_owner(Event event, std::size_t cost) {
  if (!owner) {
    give_credit(stream_id::out, cost);
    return;
  }
  owed.push_back(cost);
  self->send(owner, std::move(event));
}

void sandbox_state::give_credit(stream_id stream, std::uint64_t bytes) {
  if (bytes > 0 && container.child != 0) {
    self->send(context.processes, credit_atom::value, container.child, stream, bytes);
  }
}

void sandbox_state::send(std::string frame) {
  if (now != phase::running && now != phase::ending) {
    return;
  }
  if (!out->push(std::move(frame))) {
    broken(errc::overloaded, "it doesn't read what it asked for, and the memory budget is used up");
    return;
  }
  out->pump([this](std::string bytes) {
    self->send(context.processes, write_atom::value, container.child, std::move(bytes));
  });
}

void sandbox_state::broken(errc code, std::string what) {
  if (now == phase::ending || now == phase::destroying) {
    return;
  }
  context.env->log->warn("sandbox {}: the guest broke the frame protocol: {}", id, what);
  lost({code, fmt::format("the sandbox was stopped because its frame channel was misused: {}", what)});
  destroy();
}

// -- end -----------------------------------------------------------------------------------------

void sandbox_state::lost(error reason, std::int32_t exit_code) {
  now = phase::destroying;
  ++generation;
  if (auto to = std::exchange(owner, nullptr)) {
    self->send(to, sandbox_lost{std::move(reason), exit_code});
  }
}

void sandbox_state::child_is_gone(const child_exited& exit) {
  exited = exit;
  if (now == phase::ending) {
    destroy();
    return;
  }
  if (now == phase::destroying || now == phase::creating) {
    // Creating: the driver's answer is still on its way, and comes back to this.
    return;
  }
  now = phase::destroying;
  ++generation;
  self->request(context.runtime, driver_patience, classify_atom::value, container, exit, diagnosis)
      .then(
          [this](exit_verdict& verdict) {
            lost(std::move(verdict.reason), verdict.exit_code);
            destroy();
          },
          [this](const caf::error& reason) {
            lost(from_caf(reason, "find out why the sandbox ended"));
            destroy();
          });
}

void sandbox_state::end() {
  owner = nullptr;
  for (auto cost : std::exchange(owed, {})) {
    give_credit(stream_id::out, cost);
  }
  switch (now) {
    case phase::fresh:
      self->quit();
      break;
    case phase::preparing:
    case phase::creating:
      // The answer on its way finds nobody waiting and cleans up.
      now = phase::destroying;
      ++generation;
      break;
    case phase::running:
      if (done) {
        send(encode_shutdown());
        self->send(context.processes, close_input_atom::value, container.child);
        enter(phase::ending, exit_grace);
        break;
      }
      [[fallthrough]];
    case phase::booting:
    case phase::confining:
      now = phase::destroying;
      ++generation;
      destroy();
      break;
    case phase::ending:
    case phase::destroying:
      break;
  }
}

void sandbox_state::destroy() {
  now = phase::destroying;
  ++generation;
  ++destroy_attempts;
  self->request(context.runtime, driver_patience, destroy_atom::value, container)
      .then([this](caf::ok_atom) { discard_folder(); },
            [this](const caf::error& reason) {
              auto why = from_caf(reason, "remove container " + container.name);
              context.env->log->error("sandbox {}: {}", id, why.message);
              destroy_attempts < max_destroy_attempts ? destroy() : discard_folder();
            });
}

void sandbox_state::discard_folder() {
  self->request(context.volumes, driver_patience, discard_atom::value, id)
      .then([this](caf::ok_atom) { self->quit(); },
            [this](const caf::error& reason) {
              auto why = from_caf(reason, "remove folder " + folder);
              context.env->log->error("sandbox {}: {}", id, why.message);
              self->quit();
            });
}

void sandbox_state::on_tick() {
  switch (now) {
    case phase::preparing:
    case phase::creating:
      lost({errc::unavailable,
            fmt::format("the sandbox didn't start within {} s; see: bulkhead doctor",
                        std::chrono::seconds{boot_budget}.count())});
      break;
    case phase::booting:
    case phase::confining:
      lost({errc::unavailable,
            fmt::format("the container started but its Python said nothing within {} s; see: "
                        "bulkhead doctor",
                        std::chrono::seconds{boot_budget}.count())});
      destroy();
      break;
    case phase::ending:
      destroy();
      break;
    default:
      break;
  }
}

sandbox_impl_actor::behavior_type sandbox_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) {
    if (owner && down.source == owner.address()) {
      end();
    }
  });
  return {
      [this](child_output& output) { take_output(output); },
      [this](const child_written& written) {
        out->acknowledge(written.bytes);
        out->pump([this](std::string bytes) {
          self->send(context.processes, write_atom::value, container.child, std::move(bytes));
        });
      },
      [this](const child_exited& exit) { child_is_gone(exit); },
      [this](execute_atom, sandbox_run& what, const sandbox_owner_actor& who) {
        run = std::move(what);
        owner = who;
        self->monitor(owner);
        prepare();
      },
      [this](credit_atom, std::uint32_t events) {
        for (; events > 0 && !owed.empty(); --events) {
          give_credit(stream_id::out, owed.front());
          owed.pop_front();
        }
      },
      [this](respond_atom, std::uint64_t call, const std::string& payload) {
        send(encode_response(call, payload));
      },
      [this](refuse_atom, std::uint64_t call, const error& reason) {
        send(encode_refusal(call, reason));
      },
      [this](interrupt_atom) { send(encode_cancel(run.id)); },
      [this](end_atom) { end(); },
      [this](tick_atom, std::uint64_t set_in) {
        if (set_in == generation) {
          on_tick();
        }
      },
  };
}

sandbox_impl_actor::behavior_type
sandbox(sandbox_impl_actor::stateful_pointer<sandbox_state> self, sandbox_context context) {
  self->state.splitter.emplace(context.env->bounds.line);
  self->state.out.emplace(context.env->bounds.write_ahead, context.env->budget);
  self->state.context = std::move(context);
  return self->state.make_behavior();
}

} // namespace bulkhead
