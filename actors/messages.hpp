#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/memory_budget.hpp"
#include "protocol/container_spec.hpp"
#include "protocol/error.hpp"
#include "protocol/server_config.hpp"
#include "protocol/tool_documents.hpp"
#include "protocol/wire.hpp"

/// The structs that travel between actors.

namespace bulkhead {

/// A point in time of the actor clock (virtual in tests) until which an answer is worth anything.
struct deadline {
  std::int64_t nanoseconds = 0; ///< since the steady clock's epoch
  friend bool operator==(const deadline&, const deadline&) = default;

  using clock = std::chrono::steady_clock;
  static deadline at(clock::time_point when) {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count()};
  }
  clock::time_point when() const {
    return clock::time_point{std::chrono::nanoseconds{nanoseconds}};
  }
  /// What is left at `now`, never negative.
  std::chrono::nanoseconds remaining(clock::time_point now) const {
    auto left = when() - now;
    return left > clock::duration::zero() ? left : clock::duration::zero();
  }
};

using child_id = std::uint64_t;

/// How to start a process.
struct process_spec {
  std::vector<std::string> argv;    ///< argv[0] is looked up in the PATH of `env`
  std::vector<std::string> env;     ///< NAME=VALUE, the whole environment
  std::string cwd;                  ///< empty: the parent's
  std::vector<std::string> cgroups; ///< cgroup folders (v1) to join before the program starts
  bool kill_group_at_exit = true;   ///< what the leader leaves of its process group is killed
  /// The program starts another one with its stdio, writes that one's pid into this file and exits
  /// with 0: from then on that one is the child. Empty: it does no such thing.
  std::string successor_file;
  friend bool operator==(const process_spec&, const process_spec&) = default;
};

struct child_started {
  child_id id = 0;
  std::int32_t pid = 0;
  friend bool operator==(const child_started&, const child_started&) = default;
};

struct child_output {
  child_id id = 0;
  stream_id stream = stream_id::out;
  std::string bytes;
  friend bool operator==(const child_output&, const child_output&) = default;
};

struct child_written {
  child_id id = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const child_written&, const child_written&) = default;
};

struct child_exited {
  child_id id = 0;
  std::int32_t exit_code = 0; ///< 128 + signal when a signal ended it
  std::int32_t signal = 0;    ///< 0 for an ordinary exit
  friend bool operator==(const child_exited&, const child_exited&) = default;
};

/// What a short command left; each stream cut at 1 MiB.
struct finished_process {
  std::int32_t exit_code = 0;
  std::string out;
  std::string err;
  friend bool operator==(const finished_process&, const finished_process&) = default;
};

/// One HTTP request to a service of this account that listens on a unix socket.
struct socket_request {
  std::string socket; ///< its path
  std::string method;
  std::string target; ///< path and query
  std::string body;   ///< JSON, or empty
  friend bool operator==(const socket_request&, const socket_request&) = default;
};

struct socket_answer {
  std::uint32_t status = 0;
  std::string body;    ///< at most 1 MiB
  std::string version; ///< the header Libpod-API-Version
  friend bool operator==(const socket_answer&, const socket_answer&) = default;
};

/// A container whose stdio is to be had through its engine's socket.
struct stream_request {
  std::string socket;
  std::string attach; ///< target of the POST that turns the connection into the container's stdio
  std::string state;  ///< target of the GET that tells how the container is
  std::string remove; ///< target of the DELETE that kills and removes it
  friend bool operator==(const stream_request&, const stream_request&) = default;
};

struct sandbox_up {
  std::string python;
  friend bool operator==(const sandbox_up&, const sandbox_up&) = default;
};

/// Why a sandbox ended without `guest_done`.
struct sandbox_lost {
  /// out_of_memory, runtime_lost, malformed (it broke the protocol), unavailable (never booted), or
  /// none: the program ended its process itself with `exit_code`.
  error reason;
  std::int32_t exit_code = 0;
  friend bool operator==(const sandbox_lost&, const sandbox_lost&) = default;
};

/// What a sandbox is to run.
struct sandbox_run {
  std::string id;
  std::string code;
  std::vector<server_brief> servers;    ///< those it may call
  std::vector<server_brief> discovered; ///< all it may know of
  /// What is sent to the run is charged to this; null: to the whole process's. Stays within the
  /// process.
  std::shared_ptr<memory_budget> budget;
  /// How long the interpreter waits for another run after this one; zero: it ends with the run.
  std::chrono::seconds keep{};
  std::vector<input_file> files{}; ///< to be written before the code starts
  friend bool operator==(const sandbox_run&, const sandbox_run&) = default;
};

struct server_catalogue;
using catalogue_ptr = std::shared_ptr<const server_catalogue>;

/// Asks for a session's interpreter for one run.
struct session_claim {
  std::string owner;  ///< whose session it is; others can't claim it
  std::string handle; ///< empty: a new session
  bool reset = false; ///< begin afresh: what the interpreter holds is dropped
  std::vector<std::string>
      servers; ///< raw names; a session that exists has its own, none means these
  std::vector<std::string> loadable; ///< a new session's: it may call them besides, on first use
  deadline due;                      ///< until when to wait while others run in it
  /// What is configured; its policy bounds a session made now for as long as it lives. Null:
  /// nothing does. Stays within the process.
  catalogue_ptr made_under{};
  friend bool operator==(const session_claim&, const session_claim&) = default;
};

/// What to make a container of; the driver fills in the rest from settings and its probe.
struct container_request {
  std::string id;     ///< 128 random bits, hex; names container, cgroup and folder
  std::string folder; ///< the run's working folder
  friend bool operator==(const container_request&, const container_request&) = default;
};

/// A container that was started; enough to destroy it.
struct container_handle {
  std::string id;
  std::string name;
  std::string folder;
  child_id child = 0;   ///< the attached CLI process, the OCI runtime, or an attached stream
  std::int32_t pid = 0; ///< of that process; 0 where there is none
  std::vector<std::string> cgroups; ///< the run's own cgroup folders (v1); empty elsewhere
  friend bool operator==(const container_handle&, const container_handle&) = default;
};

struct exit_verdict {
  /// none (the program itself exited with `exit_code`), out_of_memory, runtime_lost, unavailable.
  error reason;
  std::int32_t exit_code = 0;
  friend bool operator==(const exit_verdict&, const exit_verdict&) = default;
};

/// One line of doctor's table.
struct constraint_row {
  std::string name;  ///< e.g. "memory limit"
  std::string asked; ///< e.g. "512 MiB, swap included"
  std::string found; ///< what was read back from inside
  bool held = false;
  std::string remedy; ///< what to do when it isn't held
  friend bool operator==(const constraint_row&, const constraint_row&) = default;
};

/// What is known of the container engine.
struct runtime_report {
  std::string engine; ///< podman or docker
  std::string version;
  std::string driver; ///< cli, rest or oci
  std::string oci_runtime;
  std::string oci_version;
  bool rootless = false;
  std::string cgroup_mode; ///< "v1 delegated", "v1", "v2", …
  std::string image;
  std::string image_id;
  std::string python;                      ///< the image's Python; empty until probed in full
  std::vector<constraint_row> constraints; ///< only after a full probe
  std::vector<std::string> warnings;
  friend bool operator==(const runtime_report&, const runtime_report&) = default;
};

struct sweep_report {
  std::uint32_t containers = 0;
  std::uint32_t processes = 0;
  std::uint32_t cgroups = 0;
  std::uint32_t folders = 0;
  friend bool operator==(const sweep_report&, const sweep_report&) = default;
};

/// Where an instance keeps what it mounts.
struct instance_folders {
  std::string root;            ///< 0700, removed at stop
  std::string ipc;             ///< mounted at /ipc, read-only
  std::string projects;        ///< mounted at /projects
  std::string seccomp_profile; ///< a file
  friend bool operator==(const instance_folders&, const instance_folders&) = default;
};

/// How far a run is.
struct run_progress {
  std::string run;     ///< the run's id
  std::string message; ///< for people, e.g. "booting"
  bool output = false; ///< the message is what the code wrote last
  friend bool operator==(const run_progress&, const run_progress&) = default;
};

/// One header of an HTTP message; names compare without case.
struct http_header {
  std::string name;
  std::string value;
  friend bool operator==(const http_header&, const http_header&) = default;
};

/// What to ask a web server.
struct http_request {
  std::string method = "GET";
  std::string url; ///< http or https
  std::vector<http_header> headers;
  std::string body;
  std::uint64_t most_bytes = mebibyte; ///< of the answer's body; more fails with too_large
  /// Only hosts of the public internet, whatever their names resolve to: for URLs that others name.
  bool public_only = false;
  /// Redirects that are followed; to another host they carry neither credentials nor a body.
  std::uint32_t redirects = 0;
  friend bool operator==(const http_request&, const http_request&) = default;
};

/// A whole answer.
struct http_response {
  std::uint32_t status = 0;
  std::vector<http_header> headers; ///< of the last answer, if redirects were followed
  std::string body;
  friend bool operator==(const http_response&, const http_response&) = default;
};

using exchange_id = std::uint64_t;

/// The beginning of an answer that is read while it comes.
struct http_head {
  exchange_id id = 0;
  std::uint32_t status = 0;
  std::vector<http_header> headers;
  friend bool operator==(const http_head&, const http_head&) = default;
};

struct http_body {
  exchange_id id = 0;
  std::string bytes;
  friend bool operator==(const http_body&, const http_body&) = default;
};

/// The last word of an exchange.
struct http_end {
  exchange_id id = 0;
  error reason; ///< none: the answer is complete
  friend bool operator==(const http_end&, const http_end&) = default;
};

/// How far a tool call is, as its server tells it.
struct tool_progress {
  std::uint64_t call = 0; ///< the tool_call's id
  double progress = 0;
  double total = 0; ///< 0: unknown
  std::string message;
  friend bool operator==(const tool_progress&, const tool_progress&) = default;
};

/// What a server asks in the middle of a call.
struct server_question {
  std::uint64_t call = 0; ///< the tool_call's id
  std::string method;     ///< elicitation/create, sampling/createMessage
  std::string params;     ///< scanned JSON object
  friend bool operator==(const server_question&, const server_question&) = default;
};

/// What only the client, or the person in front of it, can answer.
struct client_question {
  std::string run;
  std::string server; ///< raw name of who wants to know; empty: Bulkhead itself
  std::string method; ///< elicitation/create, sampling/createMessage
  std::string params; ///< scanned JSON object
  deadline due;
  std::string key{}; ///< its name in a result that asks for more; empty: one is made
  friend bool operator==(const client_question&, const client_question&) = default;
};

/// How an upstream server is, for people.
struct client_status {
  std::string server;
  std::string state; ///< idle, starting, ready, backing off, failed, stopping
  std::string version;
  std::uint32_t tools = 0;
  std::string last_error;
  friend bool operator==(const client_status&, const client_status&) = default;
};

/// A kept interpreter, for people.
struct session_status {
  std::string session;              ///< its name (see `session_name`), from which nobody gets in
  std::string owner;                ///< whose it is
  std::vector<std::string> servers; ///< that it may call
  bool busy = false;                ///< code runs in it
  std::int64_t used_at = 0; ///< when its last run began or ended: milliseconds since 1970, UTC
  friend bool operator==(const session_status&, const session_status&) = default;
};

using documents_ptr = std::shared_ptr<const server_documents>;

struct tool_shelf;
using tool_shelf_ptr = std::shared_ptr<const tool_shelf>;

/// What a run's code wants to know of tools.
struct tool_question {
  guest_call call;
  std::vector<tool_shelf_ptr> among;   ///< the server's, where the run has it; not for a search
  answer_room room;                    ///< for the answer
  catalogue_ptr catalogue{};           ///< whose servers may be told of
  std::vector<std::string> callable{}; ///< those that the run may call as it is, raw names
  error failure{errc::none, {}};       ///< of a server of the run: told if nothing else is
  /// call_tool: what to check against the tool's schema; the call itself comes without.
  std::shared_ptr<const std::string> arguments{};
  friend bool operator==(const tool_question&, const tool_question&) = default;
};

template <class I>
auto inspect(I& f, deadline& x) {
  return f(x.nanoseconds);
}
template <class I>
auto inspect(I& f, process_spec& x) {
  return f(x.argv, x.env, x.cwd, x.cgroups, x.kill_group_at_exit, x.successor_file);
}
template <class I>
auto inspect(I& f, child_started& x) {
  return f(x.id, x.pid);
}
template <class I>
auto inspect(I& f, child_output& x) {
  return f(x.id, x.stream, x.bytes);
}
template <class I>
auto inspect(I& f, child_written& x) {
  return f(x.id, x.bytes);
}
template <class I>
auto inspect(I& f, child_exited& x) {
  return f(x.id, x.exit_code, x.signal);
}
template <class I>
auto inspect(I& f, finished_process& x) {
  return f(x.exit_code, x.out, x.err);
}
template <class I>
auto inspect(I& f, socket_request& x) {
  return f(x.socket, x.method, x.target, x.body);
}
template <class I>
auto inspect(I& f, socket_answer& x) {
  return f(x.status, x.body, x.version);
}
template <class I>
auto inspect(I& f, stream_request& x) {
  return f(x.socket, x.attach, x.state, x.remove);
}
template <class I>
auto inspect(I& f, sandbox_up& x) {
  return f(x.python);
}
template <class I>
auto inspect(I& f, sandbox_lost& x) {
  return f(x.reason, x.exit_code);
}
template <class I>
auto inspect(I& f, sandbox_run& x) {
  return f(x.id, x.code, x.servers, x.discovered, x.files);
}
template <class I>
auto inspect(I& f, session_claim& x) {
  return f(x.owner, x.handle, x.reset, x.servers, x.loadable, x.due);
}
template <class I>
auto inspect(I& f, container_request& x) {
  return f(x.id, x.folder);
}
template <class I>
auto inspect(I& f, container_handle& x) {
  return f(x.id, x.name, x.folder, x.child, x.pid, x.cgroups);
}
template <class I>
auto inspect(I& f, exit_verdict& x) {
  return f(x.reason, x.exit_code);
}
template <class I>
auto inspect(I& f, constraint_row& x) {
  return f(x.name, x.asked, x.found, x.held, x.remedy);
}
template <class I>
auto inspect(I& f, runtime_report& x) {
  return f(x.engine, x.version, x.driver, x.oci_runtime, x.oci_version, x.rootless, x.cgroup_mode,
           x.image, x.image_id, x.python, x.constraints, x.warnings);
}
template <class I>
auto inspect(I& f, sweep_report& x) {
  return f(x.containers, x.processes, x.cgroups, x.folders);
}
template <class I>
auto inspect(I& f, instance_folders& x) {
  return f(x.root, x.ipc, x.projects, x.seccomp_profile);
}
template <class I>
auto inspect(I& f, run_progress& x) {
  return f(x.run, x.message, x.output);
}
template <class I>
auto inspect(I& f, http_header& x) {
  return f(x.name, x.value);
}
template <class I>
auto inspect(I& f, http_request& x) {
  return f(x.method, x.url, x.headers, x.body, x.most_bytes, x.public_only, x.redirects);
}
template <class I>
auto inspect(I& f, http_response& x) {
  return f(x.status, x.headers, x.body);
}
template <class I>
auto inspect(I& f, http_head& x) {
  return f(x.id, x.status, x.headers);
}
template <class I>
auto inspect(I& f, http_body& x) {
  return f(x.id, x.bytes);
}
template <class I>
auto inspect(I& f, http_end& x) {
  return f(x.id, x.reason);
}
template <class I>
auto inspect(I& f, tool_progress& x) {
  return f(x.call, x.progress, x.total, x.message);
}
template <class I>
auto inspect(I& f, server_question& x) {
  return f(x.call, x.method, x.params);
}
template <class I>
auto inspect(I& f, client_question& x) {
  return f(x.run, x.server, x.method, x.params, x.due, x.key);
}
template <class I>
auto inspect(I& f, client_status& x) {
  return f(x.server, x.state, x.version, x.tools, x.last_error);
}
template <class I>
auto inspect(I& f, session_status& x) {
  return f(x.session, x.owner, x.servers, x.busy, x.used_at);
}

} // namespace bulkhead
