#include "actors/runtime_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <nlohmann/json.hpp>

namespace bulkhead {

using nlohmann::json;

namespace {

json describe_file(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) {
    return nullptr;
  }
  return {path, static_cast<std::int64_t>(info.st_size),
          static_cast<std::int64_t>(info.st_mtim.tv_sec),
          static_cast<std::int64_t>(info.st_mtim.tv_nsec)};
}

json describe_cgroups(const std::vector<cgroup_base>& bases) {
  auto result = json::array();
  for (const auto& base : bases) {
    result.push_back({{"controller", base.controller}, {"folder", base.folder}});
  }
  return result;
}

json describe_ranges(const std::vector<id_range>& ranges) {
  auto result = json::array();
  for (const auto& range : ranges) {
    result.push_back({range.inside, range.outside, range.count});
  }
  return result;
}

std::vector<id_range> ranges_from(const json& text) {
  std::vector<id_range> result;
  for (const auto& range : text) {
    result.push_back({range.at(0), range.at(1), range.at(2)});
  }
  return result;
}

json describe_oci(const std::optional<oci_facts>& oci) {
  if (!oci) {
    return nullptr;
  }
  return {{"manager", oci->manager},
          {"store", oci->store},
          {"image", oci->image},
          {"place", oci->place},
          {"init", oci->init},
          {"uids", describe_ranges(oci->uids)},
          {"gids", describe_ranges(oci->gids)}};
}

std::optional<oci_facts> oci_from(const json& text) {
  if (text.is_null()) {
    return std::nullopt;
  }
  return oci_facts{text.at("manager").get<cgroup_manager>(),
                   text.at("store"),
                   text.at("image"),
                   text.at("place"),
                   text.at("init"),
                   ranges_from(text.at("uids")),
                   ranges_from(text.at("gids")),
                   {}};
}

json describe_gvisor(const std::optional<gvisor_facts>& gvisor) {
  return gvisor ? json{{"platform", gvisor->platform}, {"outsideRoot", gvisor->outside_root}}
                : json{};
}

std::optional<gvisor_facts> gvisor_from(const json& text) {
  if (text.is_null()) {
    return std::nullopt;
  }
  return gvisor_facts{text.at("platform"), text.at("outsideRoot")};
}

json to_json(const runtime_facts& facts) {
  const auto& report = facts.report;
  return {{"engine", report.engine},
          {"version", report.version},
          {"driver", report.driver},
          {"ociRuntime", report.oci_runtime},
          {"ociVersion", report.oci_version},
          {"rootless", report.rootless},
          {"cgroupMode", report.cgroup_mode},
          {"image", report.image},
          {"imageId", report.image_id},
          {"python", report.python},
          {"warnings", report.warnings},
          {"limitFlags", facts.engine.limit_flags},
          {"profileRuntime", facts.engine.oci_runtime},
          {"nofile", facts.engine.nofile},
          {"nproc", facts.engine.nproc},
          {"ociBinary", facts.oci_binary},
          {"ociRoot", facts.oci_root},
          {"storage", facts.storage},
          {"cgroups", describe_cgroups(facts.cgroup_bases)},
          {"outsideUid", facts.outside_uid},
          {"memoryEnforced", facts.memory_enforced},
          {"pidsEnforced", facts.pids_enforced},
          {"oci", describe_oci(facts.oci)},
          {"gvisor", describe_gvisor(facts.gvisor)},
          {"ownService", facts.own_service}};
}

/// Throws nlohmann::json::exception on a missing or mistyped member.
runtime_facts from_json(const json& text) {
  runtime_facts facts;
  auto& report = facts.report;
  text.at("engine").get_to(report.engine);
  text.at("version").get_to(report.version);
  text.at("driver").get_to(report.driver);
  text.at("ociRuntime").get_to(report.oci_runtime);
  text.at("ociVersion").get_to(report.oci_version);
  text.at("rootless").get_to(report.rootless);
  text.at("cgroupMode").get_to(report.cgroup_mode);
  text.at("image").get_to(report.image);
  text.at("imageId").get_to(report.image_id);
  text.at("python").get_to(report.python);
  text.at("warnings").get_to(report.warnings);
  facts.engine.rootless = report.rootless;
  text.at("limitFlags").get_to(facts.engine.limit_flags);
  text.at("profileRuntime").get_to(facts.engine.oci_runtime);
  text.at("nofile").get_to(facts.engine.nofile);
  text.at("nproc").get_to(facts.engine.nproc);
  text.at("ociBinary").get_to(facts.oci_binary);
  text.at("ociRoot").get_to(facts.oci_root);
  text.at("storage").get_to(facts.storage);
  for (const auto& base : text.at("cgroups")) {
    facts.cgroup_bases.push_back({base.at("controller"), base.at("folder")});
  }
  text.at("outsideUid").get_to(facts.outside_uid);
  text.at("memoryEnforced").get_to(facts.memory_enforced);
  text.at("pidsEnforced").get_to(facts.pids_enforced);
  facts.oci = oci_from(text.at("oci"));
  facts.gvisor = gvisor_from(text.at("gvisor"));
  text.at("ownService").get_to(facts.own_service);
  return facts;
}

/// Nobody else may decide what is believed of the engine.
bool is_ours_alone(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 022) == 0;
}

} // namespace

std::string cache_folder(const environment& env) {
  auto folder = env.variable("XDG_CACHE_HOME").value_or("");
  return (folder.empty() ? env.home + "/.cache" : folder) + "/bulkhead";
}

std::string probe_cache_path(const environment& env) {
  return cache_folder(env) +
         (env.tenant.empty() ? "/probe.json" : "/probe-" + env.tenant + ".json");
}

json probe_cache_key(const driver_context& context, const engine_profile& engine,
                     const std::string& image_id) {
  const auto& config = *context.env->config;
  auto oci = json::array();
  for (const auto& name : {std::string{"crun"}, std::string{"runc"}, config.oci_runtime}) {
    oci.push_back(name.empty() ? json{} : describe_file(context.find_program(name)));
  }
  auto variables = json::array();
  for (const auto* name :
       {"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "DOCKER_HOST", "DOCKER_CONTEXT",
        "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINER_HOST"}) {
    variables.push_back(context.env->variable(name).value_or(""));
  }
  return {{"bulkhead", BULKHEAD_VERSION},
          {"executable", describe_file(context.env->executable)},
          {"driver", config.runtime == oci_driver ? "oci" : "cli"},
          {"engine", describe_file(engine.binary)},
          {"rootless", engine.rootless},
          {"oci", oci},
          {"image", {config.image, image_id}},
          {"boot", boot_id(context.host)},
          {"uid", context.host.uid},
          {"subuids", read_small_file(context.host.subuid_file).value_or("")},
          {"home", context.env->home},
          {"variables", variables},
          {"cgroups", describe_cgroups(find_delegated_cgroups(context.host))},
          {"settings",
           {config.oci_runtime, config.driver, config.container_uid, config.container_gid,
            config.memory, config.pids, config.cpus.value_or(0)}}};
}

std::optional<runtime_facts> load_probe(const driver_context& context, const json& key) {
  auto path = probe_cache_path(*context.env);
  if (!is_ours_alone(path)) {
    return std::nullopt;
  }
  auto text = json::parse(read_small_file(path).value_or(""), nullptr, false);
  try {
    if (text.is_object() && text.at("key") == key) {
      return from_json(text.at("facts"));
    }
  } catch (const json::exception& wrong) {
    context.env->log->warn("ignore \"{}\": {}", path, wrong.what());
  }
  return std::nullopt;
}

void store_probe(const driver_context& context, const json& key, const runtime_facts& facts) {
  auto path = probe_cache_path(*context.env);
  std::error_code failure;
  auto folder = std::filesystem::path{path}.parent_path();
  if (std::filesystem::create_directories(folder, failure)) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failure);
  }
  auto written = write_small_file(path, json{{"key", key}, {"facts", to_json(facts)}}.dump(), 0600);
  if (!written) {
    context.env->log->info("the next start probes the container engine again: {}",
                           written.error().message);
  }
}

std::string sandbox_stamp(const driver_context& context, const runtime_facts& facts) {
  // Beside ".../overlay-containers" lies ".../overlay-images/images.json".
  auto images = facts.storage;
  if (auto cut = images.rfind("-containers"); cut != std::string::npos) {
    images.replace(cut, std::string::npos, "-images/images.json");
  }
  const auto& config = *context.env->config;
  return json{config.image,
              config.memory,
              config.pids,
              config.cpus.value_or(0),
              facts.report.image_id,
              describe_file(images),
              describe_file(facts.engine.binary),
              describe_file(facts.oci_binary),
              read_small_file(context.host.subuid_file).value_or("")}
      .dump();
}

void forget_probe(const driver_context& context) {
  ::unlink(probe_cache_path(*context.env).c_str());
}

} // namespace bulkhead
