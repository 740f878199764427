#include "actors/runtime_probe.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/container_drive.hpp"
#include "actors/engine_errors.hpp"
#include "actors/engine_search.hpp"
#include "actors/gvisor.hpp"
#include "actors/limit_checks.hpp"
#include "actors/oci_search.hpp"
#include "actors/probe_session.hpp"
#include "actors/rest_service.hpp"
#include "actors/runtime_cache.hpp"

namespace bulkhead {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr auto command_budget = 20s;

std::uint64_t at_most_hard_limit(int resource, std::uint64_t wanted) {
  rlimit limit{};
  bool bounded = ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 &&
                 limit.rlim_max != RLIM_INFINITY;
  return bounded ? std::min<std::uint64_t>(wanted, limit.rlim_max) : wanted;
}

/// One search for a usable engine; its members are the steps, in this order.
class runtime_search {
public:
  explicit runtime_search(driver_context& context) : context_{context} {}

  task<expected<facts_ptr>> run(bool afresh) {
    auto engine = co_await find_engine_and_image(context_, *facts_);
    if (!engine) {
      co_return tl::unexpected{engine.error()};
    }
    auto folders = co_await prepare_folders();
    if (!folders) {
      co_return tl::unexpected{folders.error()};
    }
    auto key = probe_cache_key(context_, facts_->engine, facts_->report.image_id);
    auto kept = afresh ? std::nullopt : load_probe(context_, key);
    if (kept) {
      kept->engine.engine = facts_->engine.engine;
      kept->engine.binary = facts_->engine.binary;
      *facts_ = std::move(*kept);
    } else {
      auto probed = co_await probe();
      if (!probed) {
        co_return tl::unexpected{probed.error()};
      }
      store_probe(context_, key, *facts_);
    }
    auto adapted = co_await make_gvisor_ready(context_, *facts_);
    if (!adapted) {
      co_return tl::unexpected{adapted.error()};
    }
    auto unpacked = co_await make_oci_ready(context_, *facts_);
    if (!unpacked) {
      co_return tl::unexpected{unpacked.error()};
    }
    auto accepted = co_await accept();
    if (!accepted) {
      co_return tl::unexpected{accepted.error()};
    }
    co_return facts_ptr{facts_};
  }

private:
  bool podman() const { return facts_->engine.engine == container_engine::podman; }

  task<expected<void>> prepare_folders() {
    completion<expected<instance_folders>> prepared{
        [this](auto done) { context_.services.prepare_folders(std::move(done)); }};
    auto folders = co_await prepared;
    if (!folders) {
      co_return tl::unexpected{folders.error()};
    }
    context_.folders = std::move(*folders);
    co_return expected<void>{};
  }

  task<expected<void>> probe() {
    auto identified = co_await find_identity();
    if (!identified) {
      co_return identified;
    }
    auto& engine = facts_->engine;
    engine.nofile = at_most_hard_limit(RLIMIT_NOFILE, engine.nofile);
    engine.nproc = at_most_hard_limit(RLIMIT_NPROC, engine.nproc);
    choose_cgroups();
    auto prepared = co_await prepare_oci(context_, *facts_);
    if (!prepared) {
      co_return prepared;
    }
    auto suits = co_await find_gvisor(context_, *facts_);
    if (!suits) {
      co_return suits;
    }
    error last{errc::unavailable, {}};
    for (const auto& runtime : oci_candidates()) {
      choose_runtime(runtime.name, runtime.platform);
      auto ready = co_await make_gvisor_ready(context_, *facts_);
      if (!ready) {
        co_return ready;
      }
      for (bool limit_flags : limit_candidates()) {
        engine.limit_flags = limit_flags;
        choose_cgroup_manager(context_, *facts_);
        bool works = co_await try_runtime(last);
        if (works) {
          co_await read_oci_version();
          auto driver = co_await choose_driver();
          co_return driver;
        }
        if (!host_refused_) {
          co_return tl::unexpected{last};
        }
        if (!controller_missing_) {
          break;
        }
      }
    }
    co_return tl::unexpected{last};
  }

  /// podman's service saves a process of its command line for each sandbox. It is used where it is
  /// asked for, and on cgroup v2 where the limits of its containers hold as well.
  task<expected<void>> choose_driver() {
    const auto& wanted = context_.env->config->driver;
    if (facts_->oci) {
      co_return wanted.empty()
          ? expected<void>{}
          : fail(errc::unavailable,
                 fmt::format("MCP_BRIDGE_RUNTIME=oci starts sandboxes without an engine, and "
                             "MCP_BRIDGE_DRIVER={} with one; unset one of them",
                             wanted));
    }
    if (wanted == rest_driver && !podman()) {
      co_return fail(errc::unavailable, "use a REST service (MCP_BRIDGE_DRIVER=rest): only podman "
                                        "has one that suits; unset MCP_BRIDGE_DRIVER, or set "
                                        "MCP_BRIDGE_RUNTIME=podman");
    }
    bool suits = podman() && facts_->report.cgroup_mode == "v2" && !facts_->gvisor;
    if (wanted != rest_driver && !(wanted.empty() && suits)) {
      co_return expected<void>{};
    }
    const auto by_command = *facts_;
    facts_->report.driver = rest_driver;
    error last{errc::unavailable, {}};
    bool works = co_await try_runtime(last);
    if (!works && context_.rest->leave_users_own()) {
      // It may have another OCI runtime, for one.
      context_.env->log->info("the account's own podman service isn't used: {}", last.message);
      facts_->own_service = true;
      works = co_await try_runtime(last);
    }
    if (works && (wanted == rest_driver || holds_as_much_as(by_command))) {
      co_return expected<void>{};
    }
    if (wanted == rest_driver) {
      co_return fail(errc::unavailable,
                     last.message + "; unset MCP_BRIDGE_DRIVER to use podman's command line");
    }
    context_.env->log->info("podman's service isn't used: {}",
                            works ? "limits of its containers don't hold" : last.message);
    *facts_ = by_command;
    co_return expected<void>{};
  }

  bool holds_as_much_as(const runtime_facts& other) const {
    return facts_->memory_enforced >= other.memory_enforced &&
           facts_->pids_enforced >= other.pids_enforced;
  }

  /// Version and the uid outside that stands for the container's user.
  task<expected<void>> find_identity() {
    auto uid = context_.env->config->container_uid;
    if (!podman()) {
      auto range = find_sub_uids(context_.host);
      // In rootless docker's user namespace uid 0 is the account and 1 its first sub-uid.
      facts_->outside_uid = facts_->engine.rootless && range ? range->first + uid - 1 : uid;
      co_return expected<void>{};
    }
    std::vector<std::string> ask_version = {"version", "--format", "{{.Client.Version}}"};
    auto version = co_await run_engine(context_, facts_->engine, "ask podman's version",
                                       std::move(ask_version));
    if (!version) {
      co_return tl::unexpected{version.error()};
    }
    if (version->empty() || std::isdigit(static_cast<unsigned char>(version->front())) == 0) {
      co_return fail(errc::unavailable,
                     fmt::format("use \"{}\" as podman: asked for its version, it says \"{}\"; set "
                                 "MCP_BRIDGE_RUNTIME to podman or docker, or unset it",
                                 facts_->engine.binary, version->substr(0, 80)));
    }
    facts_->report.version = *version;
    facts_->outside_uid = uid;
    if (facts_->engine.rootless) {
      auto mapped = co_await find_sub_uid(uid);
      co_return mapped;
    }
    co_return expected<void>{};
  }

  task<expected<void>> find_sub_uid(std::uint32_t uid) {
    std::vector<std::string> argv = {facts_->engine.binary, "unshare", "cat", "/proc/self/uid_map"};
    auto result = co_await context_.run(std::move(argv), command_budget);
    if (!result || result->exit_code != 0) {
      co_return tl::unexpected{explain_engine_failure(
          "enter podman's user namespace", facts_->engine, context_.host,
          result ? result->exit_code : -1, result ? result->err : result.error().message)};
    }
    // Without the account in it (nomap), a container's uid 0 is the account's first sub-uid, which
    // is uid 1 of the namespace that this map describes.
    auto outside = map_uid(result->out, uid + 1);
    if (!outside) {
      co_return fail(
          errc::unavailable,
          fmt::format("map the sandbox's user {}: account {} has too few sub-uids; as root: "
                      "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {}; then: "
                      "podman system migrate",
                      uid, context_.host.account, context_.host.account));
    }
    facts_->outside_uid = *outside;
    co_return expected<void>{};
  }

  void choose_cgroups() {
    if (!podman()) {
      return;
    }
    facts_->report.cgroup_mode = cgroup_version(context_.host);
    if (facts_->engine.rootless && facts_->report.cgroup_mode == "v1") {
      facts_->cgroup_bases = find_delegated_cgroups(context_.host);
      if (!facts_->cgroup_bases.empty()) {
        facts_->report.cgroup_mode = "v1 delegated";
      }
    }
  }

  struct oci_candidate {
    std::string name;
    std::string platform; ///< gVisor's
  };

  /// What to try, best first.
  std::vector<oci_candidate> oci_candidates() const {
    const auto& wanted = context_.env->config->oci_runtime;
    if (facts_->gvisor) {
      // ptrace is slow, but asks nothing of the host; every version has it.
      return {{wanted, {}}, {wanted, "ptrace"}};
    }
    if (!wanted.empty() || !podman()) {
      return {{wanted, {}}};
    }
    std::vector<std::string> names = {"crun", "runc"};
    if (cgroups_are_hybrid(context_.host)) {
      std::reverse(names.begin(), names.end());
    }
    std::erase_if(names, [&](const auto& name) { return context_.find_program(name).empty(); });
    std::vector<oci_candidate> result;
    for (const auto& name : names) {
      result.push_back({name, {}});
    }
    return result.empty() ? std::vector<oci_candidate>{{}} : result;
  }

  std::vector<bool> limit_candidates() const {
    bool ignored = podman() && facts_->engine.rootless &&
                   (facts_->report.cgroup_mode != "v2" || facts_->gvisor);
    return ignored ? std::vector<bool>{false} : std::vector<bool>{true, false};
  }

  void choose_runtime(const std::string& name, const std::string& platform) {
    facts_->engine.oci_runtime = name;
    if (!podman()) {
      return;
    }
    auto base = std::filesystem::path{name}.filename().string();
    if (facts_->gvisor) {
      facts_->gvisor->platform = platform;
      facts_->engine.oci_runtime = gvisor_script(*context_.env);
      base = "runsc";
    }
    facts_->report.oci_runtime = base.empty() ? "podman's default" : base;
    facts_->oci_binary = name.empty() ? std::string{} : context_.find_program(name);
    auto state = facts_->engine.rootless ? rootless_state_folder(context_) : context_.host.run;
    facts_->oci_root =
        base.empty() || state.empty() || facts_->oci ? std::string{} : state + "/" + base;
  }

  task<bool> try_runtime(error& last) {
    auto limits = configured_limits(*context_.env->config);
    probe_session session{context_, *facts_};
    auto python = co_await session.open(limits);
    expected<std::string> answer = fail(errc::unavailable, "");
    if (python) {
      answer = co_await session.ask("limits");
    }
    if (facts_->oci) {
      // Whatever it says, another runtime or cgroup manager may do.
      host_refused_ = !answer;
      controller_missing_ = !answer;
    } else {
      host_refused_ = session.ended() && is_host_refusal(session.exit_code(), session.complaint());
      controller_missing_ = is_missing_controller(session.complaint());
    }
    auto closed = co_await session.close();
    if (!closed) {
      context_.env->log->warn("{}", closed.error().message);
    }
    if (!answer) {
      auto reason = python ? answer.error() : python.error();
      context_.env->log->debug("OCI runtime \"{}\" doesn't do: {}", facts_->engine.oci_runtime,
                               reason.message);
      bool one_of_several = facts_->oci && !last.message.empty();
      last = one_of_several ? error{reason.code, last.message + "; " + reason.message} : reason;
      co_return false;
    }
    auto found = json::parse(*answer, nullptr, false);
    facts_->report.python = *python;
    facts_->memory_enforced = memory_limit_holds(found, limits.memory);
    facts_->pids_enforced = pids_limit_holds(found, limits.pids);
    co_return true;
  }

  task<void> read_oci_version() {
    if (facts_->oci_binary.empty()) {
      co_return;
    }
    std::vector<std::string> argv = {facts_->oci_binary, "--version"};
    auto result = co_await context_.run(std::move(argv), command_budget);
    if (result && result->exit_code == 0) {
      auto line = first_line(result->out);
      facts_->report.oci_version = line.substr(line.rfind(' ') + 1);
    }
  }

  /// Warnings and refusals that depend on settings and folders, not on the probe.
  task<expected<void>> accept() {
    bool held = facts_->memory_enforced && facts_->pids_enforced;
    if (!held) {
      auto what = fmt::format("the sandbox's {} limit isn't enforced on this host; {}",
                              facts_->memory_enforced ? "pids"
                              : facts_->pids_enforced ? "memory"
                                                      : "memory and pids",
                              limits_remedy(*facts_, context_.host));
      if (context_.env->config->strict) {
        co_return fail(errc::unavailable, what + " (refused because of MCP_BRIDGE_STRICT)");
      }
      facts_->report.warnings.push_back(what);
    }
    if (!facts_->engine.rootless) {
      facts_->report.warnings.push_back(
          "containers are root's (MCP_BRIDGE_ALLOW_ROOTFUL): what breaks "
          "out of one is root on this machine");
    }
    completion<expected<std::string>> granted{[this](auto done) {
      context_.services.grant_folders(facts_->outside_uid, std::move(done));
    }};
    auto warning = co_await granted;
    if (!warning) {
      co_return tl::unexpected{warning.error()};
    }
    if (!warning->empty()) {
      facts_->report.warnings.push_back(*warning);
    }
    co_return expected<void>{};
  }

  driver_context& context_;
  std::shared_ptr<runtime_facts> facts_ = std::make_shared<runtime_facts>();
  bool host_refused_ = false;
  bool controller_missing_ = false;
};

} // namespace

task<expected<facts_ptr>> find_runtime(driver_context& context, bool afresh) {
  runtime_search search{context};
  auto result = co_await search.run(afresh);
  co_return result;
}

} // namespace bulkhead
