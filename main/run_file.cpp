#include <csignal>
#include <cstring>
#include <future>

#include <unistd.h>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "main/commands.hpp"
#include "main/logging.hpp"
#include "protocol/run_answer.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Writes a run's output where the user wants it. It waits for the descriptor, hence has a thread
/// of its own; while it waits, the run's output waits in the sandbox.
output_observer_actor::behavior_type console(output_observer_actor::pointer, int out) {
  return {
      [out](const guest_output& output) {
        int fd = output.stream == stream_id::out ? out : STDERR_FILENO;
        write_all(fd, ::isatty(fd) != 0 ? printable(output.bytes) : output.bytes);
        return caf::ok_atom::value;
      },
  };
}

int exit_status(const run_answer& answer) {
  switch (answer.status) {
  case run_status::success:
  case run_status::error:
    return answer.exit_code.value_or(1);
  case run_status::timeout:
    return 124;
  case run_status::out_of_memory:
    return 137;
  case run_status::cancelled:
    return 130;
  case run_status::validation_error:
    return 2;
  case run_status::unavailable:
  case run_status::session_lost:
    break;
  }
  return 125;
}

/// Raw names for what the user named by name or alias. Errors: not_found, denied.
expected<std::vector<std::string>> resolve_servers(const server_catalogue& catalogue,
                                                   const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const auto& name : wanted) {
    const auto* entry = catalogue.find(name);
    if (entry == nullptr) {
      return fail(errc::not_found,
                  fmt::format("no MCP server \"{}\" is configured; see: bulkhead servers", name));
    }
    if (auto verdict = allows_server(catalogue.rules, entry->name); !verdict.allowed) {
      return fail(errc::denied,
                  fmt::format("MCP server \"{}\" is denied by policy: {}", name, verdict.rule));
    }
    if (std::find(names.begin(), names.end(), entry->name) == names.end()) {
      names.push_back(entry->name);
    }
  }
  return names;
}

run_answer wait_for_answer(application& app, stop_signal& stop, const run_request& request) {
  auto run = app.starter()(request);
  auto answer = std::make_shared<run_answer>();
  auto watcher = app.system().spawn([=, &stop](caf::event_based_actor* self) {
    // Starting a container has its own budget, so this is for a run that never answers.
    self->request(run, request.timeout + 5min, run_atom::value)
        .then(
            [=, &stop](run_answer& result) {
              *answer = std::move(result);
              stop.notify();
            },
            [=, &stop](const caf::error& reason) {
              answer->status = run_status::error;
              answer->failure = from_caf(reason, "run the code");
              stop.notify();
            });
  });
  if (stop.wait().value_or(0) != 0) {
    caf::anon_send(run, cancel_atom::value);
    stop.wait(2s);
  }
  return *answer;
}

} // namespace

int run_file(application& app, stop_signal& stop, const command_line& line, std::string code,
             int out) {
  auto servers = resolve_servers(*app.catalogue(), line.servers);
  if (!servers) {
    write_all(STDERR_FILENO, fmt::format("bulkhead: {}\n", servers.error().message));
    return 2;
  }
  run_request request;
  request.id = app.env()->new_handle();
  request.code = std::move(code);
  request.servers = std::move(*servers);
  request.timeout = app.env()->config.timeout;
  if (line.timeout) {
    request.timeout = std::chrono::milliseconds{static_cast<std::int64_t>(*line.timeout * 1000)};
  }
  if (!line.json) {
    request.output = app.system().spawn<caf::detached>(console, out);
  }
  auto answer = wait_for_answer(app, stop, request);
  if (line.json) {
    write_all(out, render_structured(answer) + "\n");
  } else if (answer.failure) {
    write_all(STDERR_FILENO, fmt::format("bulkhead: {}: {}\n", to_string(answer.status),
                                         printable(answer.failure->message)));
  }
  return exit_status(answer);
}

} // namespace bulkhead
