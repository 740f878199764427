#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/container_runtime.hpp"
#include "actors/rest_service.hpp"

/// What the parts of the driver ask other actors for.

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// What an answer may take on top of a command's own budget.
constexpr auto answer_margin = 5s;
constexpr auto start_budget = 30s;
constexpr auto folder_budget = 20s;

} // namespace

void container_runtime_state::connect() {
  context.rest = std::make_shared<rest_service>(context);
  auto& services = context.services;
  services.run = [this](process_spec spec, std::string input, std::chrono::milliseconds budget,
                        auto done) {
    auto due = deadline::at(self->clock().now() + budget);
    auto what = fmt::format("run {} {}", spec.argv[0], spec.argv.size() > 1 ? spec.argv[1] : "");
    ask<finished_process>(processes, budget + answer_margin, std::move(what), std::move(done),
                          command_atom::value, std::move(spec), std::move(input), due);
  };
  auto owner_or_self = [this](child_owner_actor owner) {
    return owner ? owner : child_owner_actor{container_runtime_impl_actor{self}};
  };
  services.spawn = [this, owner_or_self](process_spec spec, child_owner_actor owner, auto done) {
    ask<child_started>(processes, start_budget, "start a container", std::move(done),
                       spawn_atom::value, std::move(spec), owner_or_self(std::move(owner)));
  };
  services.attach = [this, owner_or_self](stream_request request, child_owner_actor owner,
                                          auto done) {
    ask<child_started>(processes, start_budget, "attach to a container", std::move(done),
                       attach_atom::value, std::move(request), owner_or_self(std::move(owner)));
  };
  services.call = [this](socket_request request, std::chrono::milliseconds budget, auto done) {
    auto due = deadline::at(self->clock().now() + budget);
    ask<socket_answer>(processes, budget + answer_margin, "ask podman's service", std::move(done),
                       call_atom::value, std::move(request), due);
  };
  services.credit = [this](child_id child, stream_id stream, std::uint64_t bytes) {
    self->send(processes, credit_atom::value, child, stream, bytes);
  };
  services.write = [this](child_id child, std::string bytes) {
    self->send(processes, write_atom::value, child, std::move(bytes));
  };
  services.signal = [this](child_id child, std::int32_t signal) {
    self->send(processes, signal_atom::value, child, signal);
  };
  services.kill_marked = [this](std::string value, auto done) {
    ask<std::uint32_t>(processes, folder_budget, "end left-over processes", std::move(done),
                       kill_marked_atom::value, std::move(value));
  };
  services.prepare_folders = [this](auto done) {
    ask<instance_folders>(volumes(), folder_budget, "make the instance's folders", std::move(done),
                          prepare_atom::value);
  };
  services.grant_folders = [this](std::uint32_t guest, auto done) {
    ask<std::string>(volumes(), folder_budget, "share /projects", std::move(done),
                     grant_atom::value, guest);
  };
  services.make_folder = [this](std::string id, auto done) {
    ask<std::string>(volumes(), folder_budget, "make a folder", std::move(done),
                     run_folder_atom::value, std::move(id));
  };
  services.discard_folder = [this](const std::string& id) {
    ask<caf::ok_atom>(
        volumes(), folder_budget, "remove folder " + id,
        [log = context.env->log](expected<caf::ok_atom> result) {
          if (!result) {
            log->warn("{}", result.error().message);
          }
        },
        discard_atom::value, id);
  };
  services.after = [this](std::chrono::milliseconds time, auto done) {
    pauses[++last_pause] = std::move(done);
    self->delayed_send(self, time, tick_atom::value, last_pause);
  };
}

} // namespace bulkhead
