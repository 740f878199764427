#include "protocol/container_rest.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bulkhead {

using nlohmann::json;

namespace {

constexpr std::size_t longest_complaint = 400;

/// The period of a cpu quota in microseconds, podman's own for --cpus.
constexpr std::uint64_t cpu_period = 100'000;

json private_namespace() {
  return {{"nsmode", "private"}};
}

json environment_object() {
  json result = json::object();
  for (auto variable : sandbox_environment) {
    auto sign = variable.find('=');
    result[std::string{variable.substr(0, sign)}] = variable.substr(sign + 1);
  }
  return result;
}

json ulimit(const char* name, std::uint64_t value) {
  return {{"type", name}, {"soft", value}, {"hard", value}};
}

json tmpfs(const char* target, std::uint64_t size) {
  return {{"type", "tmpfs"},
          {"source", "tmpfs"},
          {"destination", target},
          {"options",
           {"rw", "noexec", "nosuid", "nodev", fmt::format("size={}", size), "mode=1777",
            "notmpcopyup"}}};
}

json bind(const container_mount& mount) {
  return {{"type", "bind"},
          {"source", mount.source},
          {"destination", mount.target},
          {"options", {mount.read_only ? "ro" : "rw", "rbind", "nosuid", "nodev", "noexec"}}};
}

void add_isolation(json& to, const engine_profile& engine, const container_spec& spec) {
  to["netns"] = {{"nsmode", "none"}};
  for (const char* name : {"ipcns", "cgroupns", "pidns", "utsns"}) {
    to[name] = private_namespace();
  }
  to["use_image_hosts"] = true; // no file of hosts is made
  if (engine.rootless) {
    to["userns"] = {{"nsmode", "no-map"}};
  }
  to["user"] = fmt::format("{}:{}", spec.uid, spec.gid);
  to["cap_drop"] = {"all"};
  to["no_new_privileges"] = true;
  to["seccomp_profile_path"] = spec.seccomp_profile;
}

void add_limits(json& to, const engine_profile& engine, const container_spec& spec) {
  if (engine.limit_flags) {
    json limits = {{"memory", {{"limit", spec.memory}, {"swap", spec.memory}}},
                   {"pids", {{"limit", spec.pids}}}};
    if (spec.cpus) {
      limits["cpu"] = {{"quota", std::llround(*spec.cpus * static_cast<double>(cpu_period))},
                       {"period", cpu_period}};
    }
    to["resource_limits"] = std::move(limits);
  }
  to["r_limits"] = {ulimit("nofile", engine.nofile), ulimit("nproc", engine.nproc),
                    ulimit("fsize", largest_file(spec)), ulimit("core", 0)};
  to["oom_score_adj"] = 1000;
  if (spec.max_lifetime > 0) {
    to["timeout"] = spec.max_lifetime;
  }
}

void add_file_systems(json& to, const container_spec& spec) {
  to["read_only_filesystem"] = true;
  to["read_write_tmpfs"] = false;
  to["image_volume_mode"] = "ignore";
  to["shm_size"] = shm_size;
  to["mounts"] = {tmpfs("/tmp", spec.tmp_size), tmpfs("/workspace", spec.workspace_size)};
  for (const auto& mount : spec.mounts) {
    to["mounts"].push_back(bind(mount));
  }
  to["work_dir"] = "/workspace";
}

void add_surroundings(json& to) {
  to["init"] = true;
  to["healthconfig"] = {{"test", {"NONE"}}};
  // systemd mode mounts writable folders; a notify socket would be mounted into the container.
  to["systemd"] = "false";
  to["sdnotifyMode"] = "ignore";
  to["unsetenvall"] = true;
  to["env_host"] = false;
  to["httpproxy"] = false;
  to["env"] = environment_object();
}

bool is_hex_id(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A member of an untrusted object; null when there is none.
json member(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json{}) : json{};
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string{};
}

std::int32_t number_of(const json& value) {
  return value.is_number_integer() ? value.get<std::int32_t>() : 0;
}

} // namespace

// -- targets -------------------------------------------------------------------------------------

expected<rest_targets> rest_targets::at_version(std::string_view version) {
  if (version.empty() || version.size() > 20 ||
      version.find_first_not_of("0123456789.") != std::string_view::npos) {
    return fail(errc::malformed, "the service's answer names no version of podman's API");
  }
  return rest_targets{fmt::format("/v{}/libpod", version)};
}

std::string rest_targets::attach(const std::string& name) const {
  return of(name) + "/attach?stream=true&stdin=true&stdout=true&stderr=true&logs=false&detachKeys=";
}

std::string rest_targets::remove(const std::string& name) const {
  return of(name) + "?force=true&v=true&timeout=0";
}

std::string rest_targets::image_exists(const std::string& id) const {
  return prefix_ + "/images/" + id + "/exists";
}

// -- a container's making and its state ----------------------------------------------------------

std::string create_body(const engine_profile& engine, const container_spec& spec) {
  json body = {{"name", spec.name},
               {"image", spec.image},
               {"pull_policy", "never"},
               {"entrypoint", json::array()},
               {"command", spec.command},
               {"stdin", true},
               {"terminal", false},
               {"labels", {{owner_label, spec.instance}}},
               {"log_configuration", {{"driver", "none"}}},
               {"hostname", "sandbox"}};
  if (!engine.oci_runtime.empty()) {
    body["oci_runtime"] = engine.oci_runtime;
  }
  if (!spec.cid_file.empty()) {
    // As podman's command line notes it; a sweep of the OCI runtime's containers goes by it.
    body["annotations"] = {{"io.podman.annotations.cid-file", spec.cid_file}};
  }
  add_isolation(body, engine, spec);
  add_limits(body, engine, spec);
  add_file_systems(body, spec);
  add_surroundings(body);
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

expected<std::string> read_created_id(std::string_view body) {
  auto id = text_of(member(json::parse(body, nullptr, false), "Id"));
  if (!is_hex_id(id)) {
    return fail(errc::malformed, "podman's service gave no id for the container it made");
  }
  return id;
}

expected<rest_state> read_rest_state(std::string_view body) {
  auto state = member(json::parse(body, nullptr, false), "State");
  auto status = text_of(member(state, "Status"));
  if (status.empty()) {
    return fail(errc::malformed, "podman's service didn't tell the container's state");
  }
  return rest_state{std::move(status), number_of(member(state, "ExitCode")),
                    member(state, "OOMKilled") == true, number_of(member(state, "Pid"))};
}

std::string rest_complaint(std::uint32_t status, std::string_view body) {
  auto message = text_of(member(json::parse(body, nullptr, false), "message"));
  std::erase_if(message, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (message.size() > longest_complaint) {
    message.resize(longest_complaint);
    // Not in the middle of a character.
    while (!message.empty() && (static_cast<unsigned char>(message.back()) & 0x80) != 0) {
      message.pop_back();
    }
    message += "…";
  }
  return message.empty() ? fmt::format("it answered {} and gave no reason", status) : message;
}

// -- the streams ---------------------------------------------------------------------------------

expected<void> stream_demultiplexer::feed(std::string_view bytes, const sink& take) {
  while (!bytes.empty()) {
    if (left_ > 0) {
      auto chunk = bytes.substr(0, left_);
      left_ -= static_cast<std::uint32_t>(chunk.size());
      bytes.remove_prefix(chunk.size());
      take(stream_, chunk);
      continue;
    }
    header_[header_size_++] = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (header_size_ < header_.size()) {
      continue;
    }
    header_size_ = 0;
    bool known = (header_[0] == 1 || header_[0] == 2) && header_[1] == 0 && header_[2] == 0 &&
                 header_[3] == 0;
    if (!known) {
      return fail(errc::malformed, "the container's stream isn't framed as podman frames it");
    }
    stream_ = header_[0] == 1 ? stream_id::out : stream_id::err;
    left_ = static_cast<std::uint32_t>(header_[4]) << 24 |
            static_cast<std::uint32_t>(header_[5]) << 16 |
            static_cast<std::uint32_t>(header_[6]) << 8 | header_[7];
  }
  return {};
}

} // namespace bulkhead
