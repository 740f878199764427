#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/environment.hpp"
#include "actors/host_view.hpp"
#include "actors/interfaces.hpp"
#include "actors/io/spawn.hpp"
#include "actors/messages.hpp"
#include "actors/task.hpp"
#include "protocol/container_spec.hpp"

namespace bulkhead {

/// What the driver asks other actors for, each with a callback for the answer. The driver actor
/// fills this in with requests; the parts of the driver see functions only.
struct driver_services {
  template <class T>
  using callback = std::function<void(expected<T>)>;

  std::function<void(process_spec, std::string, std::chrono::milliseconds,
                     callback<finished_process>)>
      run;
  /// For a null owner the child is the driver's own; likewise with `attach`.
  std::function<void(process_spec, child_owner_actor, callback<child_started>)> spawn;
  std::function<void(stream_request, child_owner_actor, callback<child_started>)> attach;
  std::function<void(socket_request, std::chrono::milliseconds, callback<socket_answer>)> call;
  std::function<void(child_id, stream_id, std::uint64_t)> credit;
  std::function<void(child_id, std::string)> write;
  std::function<void(child_id, std::int32_t)> signal;
  std::function<void(std::string, callback<std::uint32_t>)> kill_marked;
  std::function<void(std::string, callback<std::string>)> make_folder; ///< of a run, by its id
  std::function<void(std::string)> discard_folder;
  std::function<void(callback<instance_folders>)> prepare_folders;
  std::function<void(std::uint32_t, callback<std::string>)> grant_folders; ///< to the guest's uid
  std::function<void(std::chrono::milliseconds, std::function<void(bool)>)> after;
};

class probe_session;
class rest_service;

/// A lock on a file that is given back with its holder.
using file_lock = std::shared_ptr<const io::descriptor>;

/// A process that keeps namespaces open; see oci_namespaces.hpp.
struct namespace_holder {
  std::int32_t pid = 0;
  std::uint64_t start_time = 0; ///< tells it from a later process of that pid
  bool starting = false;
  std::vector<std::function<void(expected<void>)>> waiting; ///< for the one that is starting
};

/// What all parts of the driver share; outlives their tasks.
struct driver_context {
  environment_ptr env;
  host_view host;
  driver_services services;
  instance_folders folders;                     ///< filled in before the first container
  std::map<child_id, probe_session*> sessions;  ///< the driver's own children
  std::shared_ptr<rest_service> rest;           ///< podman's service; started when it is needed
  namespace_holder namespaces;                  ///< none before the first container needs them
  std::map<std::string, file_lock> image_locks; ///< on unpacked images in use, by their names

  /// Runs an engine's command line, once more if podman had to be mended first. Errors: what
  /// `services.run` answers; an exit code isn't one.
  task<expected<finished_process>> run(std::vector<std::string> argv,
                                       std::chrono::milliseconds budget);
  task<void> pause(std::chrono::milliseconds time);

  /// The environment of every command line of an engine, and nothing else of ours.
  std::vector<std::string> engine_environment() const;

  /// The path of a program on the engine's PATH; empty when there is none.
  std::string find_program(const std::string& name) const;

  /// Ends processes, also those of sub-uids (through the account's user namespace).
  task<void> kill_processes(const engine_profile& engine, std::vector<pid_t> pids);

private:
  task<expected<finished_process>> run_once(std::vector<std::string> argv,
                                            std::chrono::milliseconds budget);
};

} // namespace bulkhead
