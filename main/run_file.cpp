#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>

#include <unistd.h>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "main/commands.hpp"
#include "protocol/printable.hpp"
#include "protocol/run_answer.hpp"
#include "protocol/run_python.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Writes a run's output where the user wants it. It waits for the descriptor, hence has a thread
/// of its own; while it waits, the run's output waits in the sandbox. The first failure of `out`
/// goes to `failure`.
output_observer_actor::behavior_type console(output_observer_actor::pointer, int out,
                                             const std::shared_ptr<std::atomic<int>>& failure) {
  return {
      [out, failure](const guest_output& output) {
        int fd = output.stream == stream_id::out ? out : STDERR_FILENO;
        int lost = write_all(fd, ::isatty(fd) != 0 ? printable(output.bytes) : output.bytes);
        if (lost != 0 && fd == out && *failure == 0) {
          *failure = lost;
        }
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
    auto found = find_server(name, catalogue);
    if (!found) {
      return fail(found.error().code, "--server: " + found.error().message);
    }
    if (std::find(names.begin(), names.end(), *found) == names.end()) {
      names.push_back(std::move(*found));
    }
  }
  return names;
}

run_answer wait_for_answer(application& app, stop_signal& stop, const run_request& request) {
  auto run = app.starter()(request);
  auto answer = std::make_shared<run_answer>();
  // Starting a container has its own budget, and so have servers, so this is for a run that never
  // answers.
  auto longest = request.timeout + 5min;
  for (const auto& server : request.servers) {
    const auto* entry = app.catalogue()->find(server);
    longest += entry == nullptr ? 0ms : entry->start_timeout + entry->call_timeout;
  }
  auto watcher =
      app.system().spawn([=, &stop, output = request.output](caf::event_based_actor* self) {
        self->request(run, longest, run_atom::value)
            .then(
                [=, &stop](run_answer& result) {
                  *answer = std::move(result);
                  // What was written last may still be with the console.
                  auto done = [&stop] { stop.notify(); };
                  if (!output) {
                    done();
                    return;
                  }
                  self->request(output, caf::infinite, guest_output{})
                      .then([=](caf::ok_atom) { done(); }, [=](const caf::error&) { done(); });
                },
                [=, &stop](const caf::error& reason) {
                  answer->status = run_status::error;
                  answer->failure = from_caf(reason, "run the code");
                  stop.notify();
                });
      });
  auto signal = stop.wait().value_or(0);
  if (signal == 0) {
    return *answer;
  }
  caf::anon_send(run, cancel_atom::value);
  auto answered = stop.wait(2s) == 0;
  caf::anon_send_exit(watcher, caf::exit_reason::kill);
  if (!answered) {
    answer = std::make_shared<run_answer>(); // the run's own may still be written
    answer->status = run_status::cancelled;
  }
  if (answer->status == run_status::cancelled) {
    // To the engine, whoever asks it is a client.
    answer->failure = error{errc::cancelled, signal == SIGINT ? "you interrupted the run"
                                                              : "a signal ended the run: " +
                                                                    std::string{strsignal(signal)}};
  }
  return *answer;
}

/// Whoever is at this machine wants the files themselves.
run_answer with_file_uris(run_answer answer) {
  for (auto& each : answer.artifacts) {
    each.uri = file_uri(each.file);
  }
  for (auto* stream : {&answer.out_kept, &answer.err_kept}) {
    stream->uri = stream->kept.file.empty() ? std::string{} : file_uri(stream->kept.file);
  }
  return answer;
}

void tell_artifacts(const run_answer& answer) {
  for (const auto& each : answer.artifacts) {
    complain(fmt::format("artifact {} ({}, {} bytes): {}", printable(each.name), each.mime_type,
                         each.bytes, each.file));
  }
  for (const auto& each : answer.artifacts_lost) {
    complain(fmt::format("artifacts not kept: {} {}", each.count, each.why));
  }
}

} // namespace

int run_file(application& app, stop_signal& stop, const command_line& line, std::string code,
             int out) {
  auto servers = resolve_servers(*app.catalogue(), line.servers);
  if (!servers) {
    complain(servers.error().message);
    return 2;
  }
  run_request request;
  request.id = app.env()->new_handle();
  request.code = std::move(code);
  request.servers = std::move(*servers);
  request.client = "bulkhead run";
  request.client_version = BULKHEAD_VERSION;
  request.timeout = line.timeout.value_or(app.env()->config->timeout);
  request.patient = true;
  auto lost = std::make_shared<std::atomic<int>>(0);
  if (!line.json) {
    request.output = app.system().spawn<caf::detached>(console, out, lost);
    request.keep_output = false; // it is all shown
  }
  auto answer = wait_for_answer(app, stop, request);
  auto status = exit_status(answer);
  if (line.json) {
    return write_answer(out, printable(render_structured(with_file_uris(answer))) + "\n", status);
  }
  tell_artifacts(answer);
  if (answer.failure) {
    complain(fmt::format("{}: {}", to_string(answer.status), answer.failure->message));
  }
  if (*lost != 0) {
    complain(fmt::format("write to standard output: {}", strerror(*lost)));
    return status == 0 ? 1 : status;
  }
  return status;
}

} // namespace bulkhead
