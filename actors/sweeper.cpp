#include "actors/sweeper.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/container_launch.hpp"
#include "actors/container_removal.hpp"
#include "actors/engine_errors.hpp"
#include "actors/instance.hpp"
#include "actors/io/process_table.hpp"
#include "actors/oci_removal.hpp"

namespace bulkhead {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr auto command_budget = 20s;
constexpr std::size_t instance_length = 16;
constexpr std::size_t id_length = 32;
/// A starting instance makes its folder a moment before it holds its lock.
constexpr std::time_t youngest = 10;

bool is_hex(std::string_view text, std::size_t length) {
  return text.size() == length && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Is this INSTANCE-ID?
bool is_cgroup_of(const std::string& instance, const std::string& name) {
  return name.size() == instance_length + 1 + id_length && name.starts_with(instance + "-") &&
         is_hex(std::string_view{name}.substr(instance_length + 1), id_length);
}

class sweeping {
public:
  sweeping(driver_context& context, facts_ptr facts)
      : context_{context}, facts_{std::move(facts)}, runtime_dir_{context.env->runtime_dir} {}

  task<sweep_report> run() {
    find_dead();
    co_await remove_containers();
    co_await remove_oci_leftovers();
    co_await remove_bundles();
    co_await remove_by_folder();
    co_await remove_cgroup_folders();
    co_await end_processes();
    remove_folders();
    co_return report_;
  }

private:
  const std::string& own() const { return context_.env->instance; }

  void find_dead() {
    for (const auto& instance : known_instances(runtime_dir_)) {
      struct stat info {};
      auto folder = runtime_dir_ + "/" + instance;
      bool settled =
          ::stat(folder.c_str(), &info) == 0 && info.st_mtim.tv_sec + youngest < std::time(nullptr);
      if (instance != own() && settled && !instance_alive(runtime_dir_, instance)) {
        dead_.insert(instance);
      }
    }
  }

  /// Does `path`, something of a container's, lie in the folder of an instance of this account that
  /// is dead or gone? Other accounts may share a docker daemon with us.
  bool belongs_to_dead(const std::string& path) const {
    auto prefix = runtime_dir_ + "/";
    if (!path.starts_with(prefix)) {
      return false;
    }
    auto instance = path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size());
    if (!is_hex(instance, instance_length) || instance == own()) {
      return false;
    }
    std::error_code ignored;
    return dead_.contains(instance) ||
           !std::filesystem::exists(runtime_dir_ + "/" + instance, ignored);
  }

  /// What is left of `instance` keeps its folder, so that the next sweep tries again; of any
  /// instance where that isn't known.
  void complain(const std::string& what, const std::string& why, const std::string& instance = {}) {
    instance.empty() ? void(failed_ = true) : void(unfinished_.insert(instance));
    context_.env->log->warn("sweep: {}: {}", what, why);
  }

  /// Runs a command; its stdout, or nothing after a complaint.
  task<std::optional<std::string>> ask(std::string what, std::vector<std::string> argv,
                                       std::string instance = {}) {
    auto result = co_await context_.run(std::move(argv), command_budget);
    if (!result) {
      complain(what, result.error().message, instance);
      co_return std::nullopt;
    }
    if (result->exit_code != 0) {
      complain(what, engine_complaint(result->err), instance);
      co_return std::nullopt;
    }
    co_return std::move(result->out);
  }

  task<void> remove_containers() {
    auto listed = co_await ask("list containers", list_arguments(facts_->engine));
    std::istringstream lines{listed.value_or("")};
    for (std::string name, instance; lines >> name >> instance;) {
      if (!is_hex(instance, instance_length) || instance == own()) {
        continue;
      }
      bool dead = dead_.contains(instance);
      if (!dead && !instance_alive(runtime_dir_, instance)) {
        dead = co_await is_mounted_from_dead(name);
      }
      if (!dead) {
        continue;
      }
      auto removed = co_await ask("remove container " + name,
                                  remove_arguments(facts_->engine, name), instance);
      report_.containers += removed ? 1 : 0;
    }
  }

  task<bool> is_mounted_from_dead(std::string name) {
    std::vector<std::string> argv = {facts_->engine.binary,
                                     "inspect",
                                     "--type",
                                     "container",
                                     "--format",
                                     "{{range .Mounts}}{{println .Source}}{{end}}",
                                     name};
    auto sources = co_await context_.run(std::move(argv), command_budget);
    if (sources && sources->exit_code != 0 && facts_->engine.engine == container_engine::podman) {
      // podman lists only the account's own, and fails on what was half made: nothing runs in it.
      co_return true;
    }
    std::istringstream lines{sources ? sources->out : std::string{}};
    bool result = false;
    for (std::string source; std::getline(lines, source);) {
      result = result || belongs_to_dead(source);
    }
    co_return result;
  }

  /// What podman no longer lists since its command line was killed in the middle of a start.
  task<void> remove_oci_leftovers() {
    if (facts_->oci_binary.empty() || facts_->oci_root.empty()) {
      co_return;
    }
    std::vector<std::string> list = {facts_->oci_binary, "--root", facts_->oci_root, "list",
                                     "--format",         "json"};
    auto text = co_await ask("list what the OCI runtime has", std::move(list));
    auto containers = json::parse(text.value_or(""), nullptr, false);
    if (!containers.is_array()) {
      co_return;
    }
    for (const auto& container : containers) {
      auto id = text_of(container, "id");
      auto bundle = text_of(container, "bundle");
      if (!is_hex(id, 64) || !belongs_to_dead(cid_file_of(container, bundle))) {
        continue;
      }
      std::vector<std::string> argv = {facts_->oci_binary, "--root",  facts_->oci_root,
                                       "delete",           "--force", id};
      auto removed = co_await ask("remove OCI container " + id, std::move(argv));
      report_.containers += removed ? 1 : 0;
    }
  }

  /// Containers of the OCI driver, which nobody lists but their runtime, in the run's own folder.
  task<void> remove_bundles() {
    for (const auto& instance : dead_) {
      for (const auto& run : runs_of(instance)) {
        auto left = co_await delete_containers(context_, facts_->oci_binary, run);
        report_.containers += left.deleted;
        if (!left.failure.empty()) {
          complain("remove containers of " + run, left.failure, instance);
        }
      }
    }
  }

  std::vector<std::string> runs_of(const std::string& instance) const {
    std::vector<std::string> result;
    std::error_code failure;
    using walk = std::filesystem::directory_iterator;
    for (walk run{runtime_dir_ + "/" + instance + "/runs", failure}; !failure && run != walk{};
         run.increment(failure)) {
      if (is_hex(run->path().filename().string(), id_length)) {
        result.push_back(run->path().string());
      }
    }
    return result;
  }

  static std::string text_of(const json& object, const char* name) {
    bool there = object.is_object() && object.contains(name) && object[name].is_string();
    return there ? object[name].get<std::string>() : std::string{};
  }

  /// podman notes the path of the cid file, which lies in the run's folder, in the annotations.
  static std::string cid_file_of(const json& container, const std::string& bundle) {
    static constexpr const char* note = "io.podman.annotations.cid-file";
    auto listed = container.value("annotations", json{});
    auto path = text_of(listed, note);
    if (path.empty()) {
      auto config =
          json::parse(read_small_file(bundle + "/config.json").value_or(""), nullptr, false);
      path = config.is_object() ? text_of(config.value("annotations", json{}), note) : path;
    }
    return path;
  }

  /// What podman doesn't list because its start was cut short before that: a start leaves a folder
  /// first.
  task<void> remove_by_folder() {
    std::vector<std::string> names;
    for (const auto& instance : dead_) {
      for (const auto& run : runs_of(instance)) {
        names.push_back(container_name(std::filesystem::path{run}.filename().string()));
      }
    }
    if (names.empty() || facts_->engine.engine != container_engine::podman) {
      co_return;
    }
    auto argv = remove_arguments(facts_->engine, names.front());
    argv.insert(argv.end(), names.begin() + 1, names.end());
    auto removed = co_await ask("remove containers whose start was cut short", std::move(argv));
    auto text = removed.value_or("");
    report_.containers += static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
  }

  using folders_by_name = std::map<std::string, std::vector<std::string>>;

  /// The folders of an instance below a base; one that was left empty is removed at once.
  void collect_cgroups(const std::string& base, const std::string& instance,
                       folders_by_name& into) {
    auto folder = base + "/" + instance;
    for (const auto& name : context_.host.cgroups->folders_in(folder)) {
      if (is_cgroup_of(instance, name)) {
        into[name].push_back(folder + "/" + name);
      }
    }
    context_.host.cgroups->remove_folder(folder);
  }

  task<void> remove_cgroup_folders() {
    folders_by_name of_dead;
    folders_by_name of_nobody;
    for (const auto& base : find_delegated_cgroups(context_.host)) {
      for (const auto& instance : context_.host.cgroups->folders_in(base.folder)) {
        if (dead_.contains(instance)) {
          collect_cgroups(base.folder, instance, of_dead);
        } else if (is_hex(instance, instance_length) &&
                   belongs_to_dead(runtime_dir_ + "/" + instance)) {
          collect_cgroups(base.folder, instance, of_nobody);
        }
      }
    }
    for (const auto& [name, folders] : of_dead) {
      bool cleared = co_await clear_cgroups(context_, facts_->engine, folders);
      report_.cgroups += cleared ? 1 : 0;
      if (!cleared) {
        complain("remove cgroup " + name, "processes keep it", name.substr(0, instance_length));
      }
    }
    for (const auto& [name, folders] : of_nobody) {
      // Its instance has gone, folder and all, or has its folder elsewhere: then processes keep it.
      report_.cgroups += remove_cgroups(*context_.host.cgroups, folders) ? 1 : 0;
    }
  }

  /// Upstream servers, marked in their environment.
  task<void> end_processes() {
    std::set<std::string> values;
    for (const auto& process : io::processes_marked_with(io::child_marker)) {
      if (dead_.contains(process.value.substr(0, process.value.find('/')))) {
        values.insert(process.value);
      }
    }
    for (const auto& value : values) {
      completion<expected<std::uint32_t>> killed{
          [this, &value](auto done) { context_.services.kill_marked(value, std::move(done)); }};
      auto count = co_await killed;
      if (count) {
        report_.processes += *count;
      } else {
        complain("end processes of " + value, count.error().message,
                 value.substr(0, value.find('/')));
      }
    }
  }

  /// Last, since it is by its folder that a dead instance is known.
  void remove_folders() {
    for (const auto& instance : dead_) {
      std::error_code failure;
      if (!failed_ && !unfinished_.contains(instance)) {
        std::filesystem::remove_all(runtime_dir_ + "/" + instance, failure);
        report_.folders += failure ? 0 : 1;
      }
      if (failure) {
        complain("remove folder of " + instance, failure.message());
      }
    }
  }

  driver_context& context_;
  facts_ptr facts_;
  std::string runtime_dir_;
  std::set<std::string> dead_;
  sweep_report report_;
  bool failed_ = false;
  std::set<std::string> unfinished_; ///< instances of which something couldn't be removed
};

} // namespace

task<sweep_report> sweep(driver_context& context, facts_ptr facts) {
  sweeping work{context, std::move(facts)};
  auto result = co_await work.run();
  co_return result;
}

} // namespace bulkhead
