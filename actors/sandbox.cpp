#include "actors/sandbox.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/engine_errors.hpp"
#include "actors/errors.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Finding, probing and starting an engine; a container's own boot takes a tenth of a second.
constexpr auto boot_budget = 90s;
/// What takes longer waits for something other than the processor, and others may boot meanwhile.
constexpr auto turn_limit = 2s;
/// A guest that waits begins a run within a millisecond.
constexpr auto start_budget = 30s;
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

caf::result<caf::ok_atom> sandbox_state::boot() {
  if (now != phase::fresh) {
    return to_caf(errc::internal, "a sandbox boots only once");
  }
  boot_promise = self->make_response_promise<caf::ok_atom>();
  begin_boot();
  return *boot_promise;
}

void sandbox_state::begin_boot() {
  boot_began = self->clock().now();
  if (!context.boots) {
    prepare();
    return;
  }
  enter(phase::queued, boot_budget);
  self->request(context.boots, boot_budget, admit_atom::value, context.env->tenant,
                deadline::at(boot_began + boot_budget))
      .then(
          [this](std::uint64_t ticket) {
            turn = ticket;
            if (now != phase::queued) {
              give_turn_back();
              self->quit();
              return;
            }
            self->delayed_send(self, turn_limit, release_atom::value);
            prepare();
          },
          [this](const caf::error& reason) {
            if (now == phase::queued) {
              lost(from_caf(reason, "wait for a turn to boot"));
            }
            self->quit();
          });
}

void sandbox_state::give_turn_back() {
  if (auto ticket = std::exchange(turn, {})) {
    self->send(context.boots, release_atom::value, *ticket);
  }
}

void sandbox_state::prepare() {
  id = context.env->new_handle();
  enter(phase::preparing, boot_budget);
  self->request(context.volumes(), boot_budget, run_folder_atom::value, id)
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
  self->request(context.runtime(), boot_budget, create_atom::value, container_request{id, folder},
                child_owner_actor{self})
      .then(
          [this](container_handle& handle) {
            container = std::move(handle);
            if (now != phase::creating) {
              destroy();
              return;
            }
            enter(phase::booting, boot_budget);
            if (exited) {
              child_is_gone(*exited);
            } else if (early_ready) {
              guest_is_ready(std::move(*early_ready));
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
  if (now == phase::creating && !early_ready) {
    // The driver's answer is still on its way.
    early_ready = std::move(ready);
    return;
  }
  if (now != phase::booting) {
    broken(errc::malformed, "it said \"ready\" twice");
    return;
  }
  python = std::move(ready.python);
  enter(phase::confining, boot_budget);
  self->request(context.runtime(), boot_budget, confine_atom::value, container)
      .then(
          [this](caf::ok_atom) {
            if (now == phase::confining) {
              confined();
            }
          },
          [this](const caf::error& reason) {
            if (now == phase::confining) {
              lost(from_caf(reason, "set the container's limits"));
              destroy();
            }
          });
}

void sandbox_state::confined() {
  now = phase::idle;
  ++generation;
  give_turn_back();
  context.env->activity->sandbox_booted(self->clock().now() - boot_began);
  if (auto promise = std::exchange(boot_promise, {})) {
    promise->deliver(caf::ok_atom::value);
  }
  if (owner) {
    start_code();
  }
}

void sandbox_state::execute(sandbox_run& what, const sandbox_owner_actor& who) {
  if (owner || (now != phase::fresh && now != phase::idle)) {
    // Died while it waited, or it has its run.
    self->send(who, sandbox_lost{{errc::closed, "the sandbox takes no run any more"}, 0});
    return;
  }
  run = std::move(what);
  if (run.budget) {
    out->charge_to(run.budget);
  }
  owner = who;
  self->monitor(owner);
  now == phase::fresh ? begin_boot() : start_code();
}

void sandbox_state::start_code() {
  if (!let_go()) {
    lost({errc::closed, "the sandbox can't be let go on"});
    destroy();
    return;
  }
  enter(phase::running, start_budget);
  give_credit(stream_id::out, std::exchange(withheld, 0));
  send(
      encode_init(run.servers, run.discovered, context.env->bounds, context.env->config->autoload));
  send(encode_execute(run.id, run.code, run.keep.count() > 0, run.files));
  run.code.clear();
  run.files.clear();
}

// -- end -----------------------------------------------------------------------------------------

void sandbox_state::lost(error reason, std::int32_t exit_code) {
  now = phase::destroying;
  ++generation;
  give_turn_back();
  if (auto promise = std::exchange(boot_promise, {})) {
    promise->deliver(to_caf(reason));
  }
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
  // No code ran if the container itself ended before the run began: another can take the run. Where
  // the engine's command was killed, or gave up, the word of it may have been lost.
  bool unused =
      now == phase::running && !begun && exit.signal == 0 && !is_engine_exit_code(exit.exit_code);
  now = phase::destroying;
  ++generation;
  self->request(context.runtime(), driver_patience, classify_atom::value, container, exit,
                diagnosis)
      .then(
          [this, unused](exit_verdict& verdict) {
            if (unused) {
              verdict.reason.code = errc::closed;
            }
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
  if (auto promise = std::exchange(boot_promise, {})) {
    promise->deliver(to_caf(errc::closed, "boot a sandbox: it isn't wanted any more"));
  }
  for (auto cost : std::exchange(owed, {})) {
    give_credit(stream_id::out, cost);
  }
  switch (now) {
  case phase::fresh:
    self->quit();
    break;
  case phase::queued:
  case phase::preparing:
  case phase::creating:
    // The answer on its way finds nobody waiting and cleans up.
    now = phase::destroying;
    ++generation;
    break;
  case phase::running:
    if (done) {
      send(encode_shutdown());
      if (now != phase::running) {
        break;
      }
      self->send(context.processes, close_input_atom::value, container.child);
      enter(phase::ending, exit_grace);
      break;
    }
    [[fallthrough]];
  case phase::booting:
  case phase::confining:
  case phase::idle:
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
  // What can't work dies late on cgroup v1, or not at all.
  let_go();
  now = phase::destroying;
  ++generation;
  ++destroy_attempts;
  self->request(context.runtime(), driver_patience, destroy_atom::value, container)
      .then([this](caf::ok_atom) { discard_folder(); },
            [this](const caf::error& reason) {
              auto why = from_caf(reason, "remove container " + container.name);
              context.env->log->error("sandbox {}: {}", id, why.message);
              destroy_attempts < max_destroy_attempts ? destroy() : discard_folder();
            });
}

void sandbox_state::discard_folder() {
  self->request(context.volumes(), driver_patience, discard_atom::value, id)
      .then([this](caf::ok_atom) { self->quit(); },
            [this](const caf::error& reason) {
              auto why = from_caf(reason, "remove folder " + folder);
              context.env->log->error("sandbox {}: {}", id, why.message);
              self->quit();
            });
}

void sandbox_state::on_tick() {
  switch (now) {
  case phase::queued:
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
  case phase::running:
    lost({errc::runtime_lost, fmt::format("the sandbox didn't begin the run within {} s",
                                          std::chrono::seconds{start_budget}.count())});
    destroy();
    break;
  case phase::idle: // nobody has come back to the session
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
      [this](boot_atom) { return boot(); },
      [this](execute_atom, sandbox_run& what, const sandbox_owner_actor& who) {
        execute(what, who);
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
      [this](release_atom) { give_turn_back(); },
      [this](tick_atom, std::uint64_t set_in) {
        if (set_in == generation) {
          on_tick();
        }
      },
  };
}

sandbox_impl_actor::behavior_type sandbox(sandbox_impl_actor::stateful_pointer<sandbox_state> self,
                                          sandbox_context context) {
  self->state.splitter.emplace(context.env->bounds.line);
  self->state.out.emplace(context.env->bounds.write_ahead, context.env->budget);
  self->state.context = std::move(context);
  return self->state.make_behavior();
}

} // namespace bulkhead
