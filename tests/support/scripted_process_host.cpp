#include "tests/support/scripted_process_host.hpp"

#include <caf/all.hpp>

#include "actors/errors.hpp"

namespace bulkhead::testing {

void scripted_child::write(stream_id stream, std::string bytes) const {
  if (alive()) {
    caf::anon_send(owner_, child_output{id_, stream, std::move(bytes)});
  }
}

void scripted_child::line(std::string text) const {
  out(std::move(text) + "\n");
}

void scripted_child::out(std::string bytes) const {
  write(stream_id::out, std::move(bytes));
}

void scripted_child::err(std::string bytes) const {
  write(stream_id::err, std::move(bytes));
}

void scripted_child::exit(std::int32_t code, std::int32_t signal) const {
  if (alive()) {
    *alive_ = false;
    caf::anon_send(owner_, child_exited{id_, signal != 0 ? 128 + signal : code, signal});
  }
}

std::vector<std::string> process_script::lines_of(child_id id) const {
  std::vector<std::string> result;
  auto found = input.find(id);
  std::string_view rest = found == input.end() ? std::string_view{} : found->second;
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    result.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return result;
}

const scripted_child* scripted_process_host_state::find(child_id id) const {
  return id > 0 && id <= script->children.size() ? &script->children[id - 1] : nullptr;
}

void scripted_process_host_state::deliver(const scripted_child& child, const std::string& bytes) {
  auto& held = partial[child.id()];
  held += bytes;
  std::size_t start = 0;
  for (auto end = held.find('\n'); end != std::string::npos; end = held.find('\n', start)) {
    if (script->line) {
      script->line(child, std::string_view{held}.substr(start, end - start));
    }
    start = end + 1;
  }
  held.erase(0, start);
}

process_host_actor::behavior_type scripted_process_host_state::make_behavior() {
  return {
      [this](spawn_atom, process_spec& spec,
             const child_owner_actor& owner) -> caf::result<child_started> {
        auto promise = self->make_response_promise<child_started>();
        if (script->spawn_hangs) {
          return promise;
        }
        if (auto reason = script->refuse ? script->refuse(spec) : std::nullopt) {
          promise.deliver(to_caf(*reason));
          return promise;
        }
        auto id = static_cast<child_id>(script->children.size() + 1);
        scripted_child child{id, std::move(spec), owner};
        script->children.push_back(child);
        promise.deliver(child_started{id, static_cast<std::int32_t>(1000 + id)});
        if (script->started) {
          script->started(child);
        }
        return promise;
      },
      [this](write_atom, child_id id, const std::string& bytes) {
        const auto* found = find(id);
        if (found == nullptr || !found->alive()) {
          return;
        }
        auto child = *found;
        script->input[id] += bytes;
        if (!script->input_blocked) {
          caf::anon_send(child.owner(), child_written{id, bytes.size()});
          deliver(child, bytes);
        }
      },
      [this](close_input_atom, child_id id) {
        script->closed_inputs.push_back(id);
        if (const auto* found = find(id)) {
          auto child = *found;
          script->input_closed ? script->input_closed(child) : child.exit(0);
        }
      },
      [this](signal_atom, child_id id, std::int32_t signal) {
        script->signals.emplace_back(id, signal);
        if (const auto* found = find(id)) {
          auto child = *found;
          script->signalled ? script->signalled(child, signal) : child.exit(0, signal);
        }
      },
      [this](credit_atom, child_id id, stream_id stream, std::uint64_t bytes) {
        script->credit[{id, stream}] += bytes;
      },
      [](command_atom, const process_spec& spec, const std::string&,
         deadline) -> caf::result<finished_process> {
        return to_caf(errc::internal, "no script for the command " + spec.argv.front());
      },
      [](call_atom, const socket_request& request, deadline) -> caf::result<socket_answer> {
        return to_caf(errc::internal, "no script for the request " + request.target);
      },
      [](attach_atom, const stream_request& request,
         const child_owner_actor&) -> caf::result<child_started> {
        return to_caf(errc::internal, "no script for the stream " + request.attach);
      },
      [this](kill_marked_atom, const std::string& mark) -> caf::result<std::uint32_t> {
        script->killed_marks.push_back(mark);
        return std::uint32_t{0};
      },
  };
}

process_host_actor::behavior_type
scripted_process_host(process_host_actor::stateful_pointer<scripted_process_host_state> self,
                      std::shared_ptr<process_script> script) {
  self->state.script = std::move(script);
  return self->state.make_behavior();
}

} // namespace bulkhead::testing
