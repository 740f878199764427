#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/container_brake.hpp"
#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/outbox.hpp"
#include "protocol/line_splitter.hpp"

namespace bulkhead {

/// What a sandbox talks to.
struct sandbox_context {
  environment_ptr env;
  process_host_actor processes;
  /// The current ones: they may be started again.
  std::function<container_runtime_actor()> runtime;
  std::function<volume_manager_actor()> volumes;
  admission_actor boots = {}; ///< gives turns to boot; null: each boots at once
  std::shared_ptr<container_brake> brake = real_container_brake();
};

/// The sandbox with the timers it sends itself.
using sandbox_impl_actor = sandbox_actor::extend<
    /// A timer set in this generation of the state machine fires.
    caf::reacts_to<tick_atom, std::uint64_t>,
    /// The boot has had its turn long enough.
    caf::reacts_to<release_atom>>;

/// One container from its folder to its certain removal.
struct sandbox_state {
  explicit sandbox_state(sandbox_impl_actor::pointer self);
  sandbox_impl_actor::behavior_type make_behavior();

  enum class phase : std::uint8_t {
    fresh,      ///< nothing exists yet
    queued,     ///< waits for its turn to boot
    preparing,  ///< the run's folder is being made
    creating,   ///< the driver starts the container
    booting,    ///< waiting for the guest's `ready`
    confining,  ///< the exact limits are being set
    idle,       ///< waits for its run: the first, or another in the same interpreter
    running,    ///< the code runs
    ending,     ///< asked to exit politely
    destroying, ///< the driver removes what is left
  };

  // Boot and end (sandbox.cpp).
  void begin_boot();
  void give_turn_back();
  void prepare();
  void create(const std::string& folder);
  void guest_is_ready(guest_ready ready);
  caf::result<caf::ok_atom> boot();
  void confined();
  void execute(sandbox_run& what, const sandbox_owner_actor& who);
  void start_code();
  void lost(error reason, std::int32_t exit_code = 0);
  void child_is_gone(const child_exited& exit);
  void end();
  void destroy();
  void discard_folder();
  void on_tick();
  void enter(phase next, std::chrono::nanoseconds limit);

  // Between two runs (sandbox_rest.cpp).
  void rest();
  void hold();
  bool let_go();

  // Frames (sandbox_frames.cpp).
  void take_output(child_output& output);
  void take_line(std::string_view line);
  void charge_partial_line();
  void pass_over(std::size_t cost);
  void take_frame(guest_frame& frame, std::size_t cost);
  void run_has_begun(const guest_started& started);
  template <class Event>
  void tell_owner(Event event, std::size_t cost);
  void give_credit(stream_id stream, std::uint64_t bytes);
  void send(std::string frame);
  void broken(errc code, std::string what);

  sandbox_impl_actor::pointer self;
  sandbox_context context;
  std::optional<line_splitter> splitter;
  std::optional<outbox> out;
  phase now = phase::fresh;
  std::string id;
  std::string folder;
  container_handle container;
  sandbox_owner_actor owner;
  sandbox_run run;
  std::optional<guest_ready> early_ready;
  std::string python; ///< the guest's version, once it is ready
  std::chrono::steady_clock::time_point boot_began;
  std::optional<caf::typed_response_promise<caf::ok_atom>> boot_promise;
  std::optional<child_exited> exited;
  std::optional<std::uint64_t> turn;  ///< the ticket for the boot
  memory_budget::share partial_share; ///< for a frame that hasn't ended
  bool begun = false;                 ///< the guest has taken its run
  bool used = false;                  ///< a run has ended here, and its interpreter is kept
  bool done = false;                  ///< the code ended by itself
  std::uint64_t generation = 0;       ///< of the phase, so that stale timers are told
  std::string diagnosis;              ///< the tail of the CLI's own stderr
  std::deque<std::size_t> owed;       ///< bytes of frames the owner hasn't dealt with
  std::uint64_t withheld = 0; ///< bytes that came between two runs, not to be answered by credit
  std::uint64_t advanced = 0; ///< of `owed`: given back when the frames were unfinished lines
  int destroy_attempts = 0;
  std::optional<container_cgroups> cgroups; ///< of the container, once they are looked for
  std::optional<container_hold> held;       ///< while no run goes on in a kept interpreter

  static inline const char* name = "sandbox";
};

sandbox_impl_actor::behavior_type sandbox(sandbox_impl_actor::stateful_pointer<sandbox_state> self,
                                          sandbox_context context);

} // namespace bulkhead
