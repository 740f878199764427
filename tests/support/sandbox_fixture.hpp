#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "actors/sandbox.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/scripted_brake.hpp"
#include "tests/support/scripted_process_host.hpp"
#include "tests/support/scripted_services.hpp"
#include "tests/support/session_world.hpp"

// Its macros clash with everything else.
#include "caf/test/dsl.hpp"

namespace bulkhead::testing {

using nlohmann::json;
using namespace std::chrono_literals;

/// What a sandbox told its owner.
struct owner_log {
  std::vector<sandbox_up> ups;
  std::vector<guest_output> outputs;
  std::vector<guest_call> calls;
  std::vector<guest_cancel> cancels;
  std::vector<refused_call> refused;
  std::vector<guest_artifact> artifacts;
  std::vector<guest_done> dones;
  std::vector<sandbox_lost> losses;

  std::size_t events() const { return outputs.size() + calls.size() + refused.size(); }
  std::size_t ends() const { return dones.size() + losses.size(); }
};

inline sandbox_owner_actor::behavior_type recording_owner(sandbox_owner_actor::pointer,
                                                          std::shared_ptr<owner_log> log) {
  return {
      [log](const sandbox_up& up) { log->ups.push_back(up); },
      [log](const guest_output& output) { log->outputs.push_back(output); },
      [log](const guest_call& call) { log->calls.push_back(call); },
      [log](const guest_cancel& cancel) { log->cancels.push_back(cancel); },
      [log](const refused_call& call) { log->refused.push_back(call); },
      [log](const guest_artifact& artifact) { log->artifacts.push_back(artifact); },
      [log](const guest_done& done) { log->dones.push_back(done); },
      [log](const sandbox_lost& loss) { log->losses.push_back(loss); },
  };
}

/// A sandbox between a scripted driver, volume manager and process host, and a recording owner.
struct sandbox_fixture : test_coordinator_fixture<actor_config> {
  using phase = sandbox_state::phase;

  sandbox_fixture() {
    runtime->create.answer = container_handle{"id", "bulkhead-id", "/run/folder", 1, 4711, {}};
    runtime->classify.answer = exit_verdict{{errc::none, {}}, 0};
    volumes->run_folder.answer = "/run/folder";
    runtime->creating = [this](const container_request&, const child_owner_actor& owner) {
      processes->children.emplace_back(1, process_spec{}, owner);
    };
    // The guest reads and goes on, until the test says what else.
    processes->input_closed = [](const scripted_child&) {};
    processes->signalled = [](const scripted_child&, std::int32_t) {};
    host = sys.spawn(scripted_process_host, processes);
    driver = sys.spawn(scripted_runtime, runtime);
    folders = sys.spawn(scripted_volumes, volumes);
  }

  ~sandbox_fixture() override {
    for (const auto& actor :
         {caf::actor_cast<caf::actor>(box), caf::actor_cast<caf::actor>(owner),
          caf::actor_cast<caf::actor>(host), caf::actor_cast<caf::actor>(driver),
          caf::actor_cast<caf::actor>(folders), pool}) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
    consume_messages();
    processes->children.clear();
  }

  void make_box() {
    brake->frames = [this] { return frames().size(); };
    brake->removals = [this] { return runtime->destroy.asked; };
    box = sys.spawn(sandbox, sandbox_context{env, host, [this] { return driver; },
                                             [this] { return folders; }, boots, brake});
    box->attach_functor([flag = terminated] { *flag = true; });
  }

  /// Hands the sandbox its run; change the scripts and `env` before.
  void execute() {
    owner = sys.spawn(recording_owner, log);
    make_box();
    self->send(box, execute_atom::value,
               sandbox_run{"run-7", "print(1)", {{"files", "files", "all files"}}, {}, run_budget},
               owner);
    consume_messages();
  }

  /// Boots the sandbox without a run; the answer goes to `booted` or `boot_failures`.
  void boot() {
    make_box();
    owner = sys.spawn(recording_owner, log);
    pool = sys.spawn([this](caf::event_based_actor* asking) {
      asking->request(box, caf::infinite, boot_atom::value)
          .then([this](caf::ok_atom) { ++booted; },
                [this](const caf::error& reason) {
                  boot_failures.push_back(from_caf(reason, "boot").code);
                });
    });
    consume_messages();
  }

  /// As far as waiting for a run.
  void boot_fully() {
    boot();
    say(R"({"type":"ready","python":"3.13.5","protocol":1})");
    CAF_REQUIRE_EQUAL(booted, 1);
  }

  /// The guest says that it has taken its run.
  void begin(const std::string& run = "run-7") {
    say(R"({"type":"started","id":")" + run + R"("})");
  }

  /// The guest says that the run's code has ended.
  void finish(const std::string& id) {
    say(R"({"type":"done","id":")" + id + R"(","exitCode":0})");
  }

  void hand_over(const std::string& run) {
    self->send(box, execute_atom::value, sandbox_run{run, "print(1)", {}, {}, run_budget}, owner);
    consume_messages();
  }

  /// Goes as far as `wanted` and stays there.
  void reach(phase wanted) {
    volumes->run_folder.held = wanted == phase::preparing;
    runtime->create.held = wanted == phase::creating;
    runtime->confine.held = wanted == phase::confining;
    execute();
    if (wanted >= phase::confining) {
      say(R"({"type":"ready","python":"3.13.5","protocol":1})");
    }
    if (wanted >= phase::running) {
      begin();
    }
    if (wanted == phase::ending) {
      say(R"({"type":"done","id":"run-7","exitCode":0})");
    }
    if (wanted == phase::destroying) {
      runtime->destroy.held = true;
      end();
    }
    CAF_REQUIRE(now() == wanted);
  }

  void run_code() { reach(phase::running); }

  /// Answers all that was held back, and what that leads to.
  void let_go() {
    for (int round = 0; round < 4; ++round) {
      open(volumes->run_folder);
      open(runtime->create);
      open(runtime->confine);
      open(runtime->classify);
      open(runtime->destroy);
      open(volumes->discard);
    }
  }

  template <class T>
  void open(gate<T>& which) {
    which.held = false;
    which.release();
    consume_messages();
  }

  const scripted_child& guest() const { return processes->children.front(); }

  /// The guest writes bytes as they are.
  void say_bytes(std::string bytes) {
    guest().out(std::move(bytes));
    consume_messages();
  }

  void say(std::string line) { say_bytes(std::move(line) + "\n"); }

  void exit(std::int32_t code, std::int32_t signal = 0) {
    guest().exit(code, signal);
    consume_messages();
  }

  void end() {
    self->send(box, end_atom::value);
    consume_messages();
  }

  void acknowledge(std::uint32_t events) {
    self->send(box, credit_atom::value, events);
    consume_messages();
  }

  void kill_owner() {
    caf::anon_send_exit(owner, caf::exit_reason::kill);
    consume_messages();
  }

  /// Lets time pass, in steps, so that what one timeout causes gets its turn.
  void pass(std::chrono::milliseconds time) {
    constexpr auto step = 500ms;
    for (; time > 0ms; time -= step) {
      advance_time(std::min<std::chrono::milliseconds>(time, step));
      consume_messages();
    }
  }

  sandbox_state& state() {
    using pointer = sandbox_impl_actor::stateful_pointer<sandbox_state>;
    return deref<std::remove_pointer_t<pointer>>(box).state;
  }

  /// Only while the sandbox isn't gone.
  phase now() { return state().now; }

  bool gone() const { return *terminated; }

  /// The messages that the guest got, parsed.
  std::vector<json> frames() const {
    std::vector<json> result;
    for (const auto& line : processes->lines_of(1)) {
      result.push_back(json::parse(line));
    }
    return result;
  }

  std::uint64_t credit(stream_id stream = stream_id::out) const {
    auto found = processes->credit.find({1, stream});
    return found == processes->credit.end() ? 0 : found->second;
  }

  /// Is there one loss with this code, and nothing else that ends the run?
  bool lost_once(errc code) const {
    bool right = log->ends() == 1 && log->losses.size() == 1 && log->losses[0].reason.code == code;
    if (!right) {
      for (const auto& loss : log->losses) {
        CAF_MESSAGE("lost: " << std::string{to_string(loss.reason.code)} << ": "
                             << loss.reason.message);
      }
    }
    return right;
  }

  /// Are container and folder gone, with the sandbox itself?
  bool cleaned_up() {
    return gone() && runtime->destroyed.size() == 1 &&
           runtime->destroyed[0].name == "bulkhead-id" && volumes->discarded == volumes->made &&
           env->budget->used() == 0;
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<process_script> processes = std::make_shared<process_script>();
  std::shared_ptr<runtime_script> runtime = std::make_shared<runtime_script>();
  std::shared_ptr<scripted_brake> brake = std::make_shared<scripted_brake>();
  std::shared_ptr<volume_script> volumes = std::make_shared<volume_script>();
  std::shared_ptr<bool> terminated = std::make_shared<bool>(false);
  std::shared_ptr<owner_log> log = std::make_shared<owner_log>();
  process_host_actor host;
  container_runtime_actor driver;
  volume_manager_actor folders;
  admission_actor boots; ///< null: each boots at once
  sandbox_owner_actor owner;
  sandbox_impl_actor box;
  std::shared_ptr<memory_budget> run_budget; ///< handed to the sandbox with its run
  caf::actor pool;                           ///< who asked for a boot
  int booted = 0;
  std::vector<errc> boot_failures;
};

} // namespace bulkhead::testing
