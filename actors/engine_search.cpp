#include "actors/engine_search.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "actors/engine_errors.hpp"
#include "protocol/image_profiles.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Does the reference start with the name of a registry, other than localhost?
bool is_registry_image(const std::string& image) {
  auto host = image.substr(0, image.find('/'));
  return host.size() < image.size() && host.find_first_of(".:") != std::string::npos &&
         !host.starts_with("localhost:");
}

constexpr std::string_view vfs_warning =
    "podman's storage driver is vfs: it copies the image for every container; write [storage] "
    "driver = \"overlay\" into ~/.config/containers/storage.conf, then: podman system reset, and "
    "build the image again";

constexpr auto command_budget = 20s;

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> result;
  std::istringstream fields{line};
  for (std::string field; std::getline(fields, field, separator);) {
    result.push_back(field);
  }
  return result;
}

class engine_search {
public:
  engine_search(driver_context& context, runtime_facts& facts) : context_{context}, facts_{facts} {}

  task<expected<void>> run() {
    if (auto found = find_engine(); !found) {
      co_return found;
    }
    auto usable = co_await check_account();
    if (!usable) {
      co_return usable;
    }
    auto image = co_await find_image();
    co_return image;
  }

private:
  bool podman() const { return facts_.engine.engine == container_engine::podman; }

  expected<void> find_engine() {
    const auto& wanted = context_.env->config->runtime;
    std::vector<std::string> names = {"podman", "docker"};
    bool without_engine = wanted == oci_driver;
    if (without_engine) {
      // Its store has the image, and its user namespace is the account's.
      names = {"podman"};
    } else if (!wanted.empty()) {
      names = {wanted};
    }
    for (const auto& name : names) {
      auto path = context_.find_program(name);
      if (!path.empty()) {
        auto base = std::filesystem::path{name}.filename().string();
        bool docker = base.find("docker") != std::string::npos;
        facts_.engine.engine = docker ? container_engine::docker : container_engine::podman;
        facts_.engine.binary = path;
        facts_.report.engine = docker ? "docker" : "podman";
        facts_.report.driver = without_engine ? "oci" : "cli";
        facts_.report.image = context_.env->config->image;
        return {};
      }
    }
    if (without_engine) {
      return fail(errc::unavailable,
                  "find podman: it isn't on PATH; with MCP_BRIDGE_RUNTIME=oci the image still "
                  "comes from its store; install it (Debian: apt install podman uidmap)");
    }
    return fail(
        errc::unavailable,
        wanted.empty()
            ? std::string{"find a container engine: neither podman nor docker is on PATH; install "
                          "podman (Debian: apt install podman uidmap crun), or name one in "
                          "MCP_BRIDGE_RUNTIME"}
            : fmt::format("find the container engine: MCP_BRIDGE_RUNTIME says \"{}\", which isn't "
                          "an executable on PATH; install it or correct the setting",
                          wanted));
  }

  /// Is it rootless, or may it be rootful? Does the account have what rootless needs?
  task<expected<void>> check_account() {
    auto& engine = facts_.engine;
    if (podman()) {
      engine.rootless = context_.host.uid != 0;
    } else {
      auto asked = co_await ask_docker();
      if (!asked) {
        co_return tl::unexpected{asked.error()};
      }
    }
    facts_.report.rootless = engine.rootless;
    if (!engine.rootless && !context_.env->config->allow_rootful) {
      co_return fail(errc::unavailable, rootful_refusal());
    }
    if (podman() && engine.rootless && context_.find_program("newuidmap").empty()) {
      co_return fail(errc::unavailable, "use rootless podman: newuidmap isn't on PATH; install the "
                                        "package uidmap (Debian: apt install uidmap)");
    }
    co_return expected<void>{};
  }

  std::string rootful_refusal() const {
    return podman() ? "use podman: this process is root, and root's containers aren't confined to "
                      "an account; "
                      "run as an ordinary user, or set up the account \"bulkhead\" once "
                      "(deploy/setup.sh) and "
                      "start as root, or accept the risk with MCP_BRIDGE_ALLOW_ROOTFUL=1"
                    : "use docker: its daemon runs as root; use podman or a rootless docker daemon "
                      "(DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock), or accept the risk with "
                      "MCP_BRIDGE_ALLOW_ROOTFUL=1";
  }

  task<expected<void>> ask_docker() {
    std::vector<std::string> argv = {
        "info", "--format",
        "{{.ServerVersion}}|{{.CgroupVersion}}|{{.DefaultRuntime}}|{{json .SecurityOptions}}"};
    auto line =
        co_await run_engine(context_, facts_.engine, "ask docker's daemon", std::move(argv));
    if (!line) {
      // Without a daemon `info` complains of the format; this one says what is wrong.
      std::vector<std::string> simple = {"version", "--format", "{{.Server.Version}}"};
      auto reached =
          co_await run_engine(context_, facts_.engine, "reach docker's daemon", std::move(simple));
      co_return tl::unexpected{reached ? line.error() : reached.error()};
    }
    auto fields = split(*line, '|');
    if (fields.size() < 4) {
      co_return fail(errc::unavailable,
                     fmt::format("read docker's info: \"{}\" isn't what it answers "
                                 "when its daemon runs; start the daemon",
                                 *line));
    }
    facts_.report.version = fields[0];
    facts_.report.cgroup_mode = "v" + fields[1];
    facts_.report.oci_runtime = fields[2];
    facts_.engine.rootless = fields[3].find("name=rootless") != std::string::npos;
    co_return expected<void>{};
  }

  task<expected<void>> find_image() {
    const auto& image = context_.env->config->image;
    std::vector<std::string> argv = {
        facts_.engine.binary,
        "image",
        "inspect",
        "--format",
        podman() ? "{{.Id}}|{{.GraphDriver.Name}}|{{index .GraphDriver.Data \"UpperDir\"}}"
                 : "{{.Id}}",
        image};
    auto result = co_await context_.run(std::move(argv), command_budget);
    if (!result) {
      co_return tl::unexpected{
          error{errc::unavailable, "look for the image: " + result.error().message}};
    }
    if (result->exit_code != 0) {
      bool missing = result->err.find("not known") != std::string::npos ||
                     result->err.find("No such image") != std::string::npos ||
                     result->err.find("no such image") != std::string::npos;
      if (missing) {
        co_return fail(
            errc::unavailable,
            fmt::format("container image \"{}\" is not in {}'s store; {}", image,
                        facts_.report.engine,
                        is_registry_image(image)
                            ? fmt::format("fetch it with: {0} pull {1} (as the account that runs "
                                          "bulkhead), or: bulkhead image build --pull {1}",
                                          facts_.report.engine, image)
                            : how_to_build_image(image)));
      }
      co_return tl::unexpected{explain_engine_failure(
          "look for the image", facts_.engine, context_.host, result->exit_code, result->err)};
    }
    take_image(first_line(result->out));
    co_return expected<void>{};
  }

  void take_image(const std::string& line) {
    auto fields = split(line, '|');
    fields.resize(3);
    facts_.report.image_id = fields[0];
    if (fields[1] == "vfs") {
      facts_.report.warnings.emplace_back(vfs_warning);
    }
    // …/STORE/overlay/LAYER/diff: containers lie in …/STORE/overlay-containers.
    auto layer = std::filesystem::path{fields[2]};
    if (layer.is_absolute()) {
      auto store = layer.parent_path().parent_path().parent_path();
      facts_.storage = (store / (fields[1] + "-containers")).string();
    }
  }

  driver_context& context_;
  runtime_facts& facts_;
};

} // namespace

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string rootless_state_folder(const driver_context& context) {
  if (auto set = context.env->variable("XDG_RUNTIME_DIR").value_or(""); !set.empty()) {
    return set;
  }
  auto temporary = context.env->variable("TMPDIR").value_or("");
  const auto uid = context.host.uid;
  for (const auto& folder :
       {fmt::format("{}/user/{}", context.host.run, uid),
        fmt::format("{}/podman-run-{}", temporary.empty() ? "/tmp" : temporary, uid)}) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid &&
        (info.st_mode & S_IRWXU) == S_IRWXU) {
      return folder;
    }
  }
  return {};
}

task<expected<std::string>> run_engine(driver_context& context, engine_profile engine,
                                       const char* action, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), engine.binary);
  auto result = co_await context.run(std::move(arguments), command_budget);
  if (!result) {
    co_return fail(errc::unavailable,
                   fmt::format("{}: {}; see: bulkhead doctor", action, result.error().message));
  }
  if (result->exit_code != 0) {
    co_return tl::unexpected{
        explain_engine_failure(action, engine, context.host, result->exit_code, result->err)};
  }
  co_return first_line(result->out);
}

task<expected<void>> find_engine_and_image(driver_context& context, runtime_facts& facts) {
  engine_search search{context, facts};
  auto result = co_await search.run();
  co_return result;
}

} // namespace bulkhead
