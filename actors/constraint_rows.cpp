#include "actors/constraint_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/limit_checks.hpp"

namespace bulkhead {

using nlohmann::json;

namespace {

const char* const update_advice =
    "update podman and the image (bulkhead image build); report it if it "
    "stays";

std::string in_mib(std::uint64_t bytes) {
  return bytes % mebibyte == 0 ? fmt::format("{} MiB", bytes / mebibyte)
                               : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / mebibyte);
}

std::string join(const std::vector<std::string>& words, std::string_view separator = ", ") {
  return fmt::format("{}", fmt::join(words, separator));
}

/// Reads an untrusted answer: what is missing or of another type is empty, and never throws.
class answer {
public:
  explicit answer(const json& value) : value_{value} {}

  answer operator[](const std::string& name) const {
    static const json nothing;
    bool there = value_.is_object() && value_.contains(name);
    return answer{there ? value_[name] : nothing};
  }
  std::string text() const {
    return value_.is_string() ? value_.get<std::string>() : std::string{};
  }
  std::uint64_t number() const {
    return value_.is_number_unsigned() ? value_.get<std::uint64_t>() : 0;
  }
  bool present() const { return !value_.is_null(); }
  const json& raw() const { return value_; }
  std::vector<std::string> words() const {
    std::vector<std::string> result;
    if (value_.is_array()) {
      for (const auto& each : value_) {
        result.push_back(answer{each}.text());
      }
    }
    return result;
  }

private:
  const json& value_;
};

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const char* const gvisor_mount_advice =
    "gVisor keeps no nosuid and nodev; no-new-privileges and the lack of capabilities make up for "
    "them; unset MCP_BRIDGE_OCI_RUNTIME to use crun or runc, which have them";

class row_writer {
public:
  row_writer(const settings& config, const runtime_facts& facts, const json& inside,
             const constraint_evidence& evidence, const std::string& remedy)
      : config_{config}, facts_{facts}, inside_{inside}, evidence_{evidence}, remedy_{remedy} {}

  std::vector<constraint_row> write() {
    network();
    file_systems();
    identity();
    privileges();
    memory();
    pids();
    if (config_.cpus) {
      cpus();
    }
    idle_sessions();
    ulimits();
    mounts();
    surroundings();
    return std::move(rows_);
  }

private:
  void add(std::string name, std::string asked, std::string found, bool held, std::string advice) {
    rows_.push_back({std::move(name), std::move(asked),
                     found.empty() ? "nothing" : std::move(found), held,
                     held ? std::string{} : std::move(advice)});
  }

  void network() {
    auto interfaces = inside_["interfaces"].words();
    bool alone = inside_["interfaces"].present() &&
                 (interfaces.empty() || interfaces == std::vector<std::string>{"lo"});
    auto routes = inside_["routes"].number();
    add("network", "none", fmt::format("interfaces: {}; routes: {}", join(interfaces), routes),
        alone && routes == 0, update_advice);
    std::vector<std::string> found;
    bool blocked = true;
    for (const auto* call : {"socket(AF_VSOCK)", "socket(AF_NETLINK)", "socket(AF_PACKET)"}) {
      auto result = inside_["calls"][call].text();
      blocked = blocked && !result.empty() && result != "ok";
      found.push_back(fmt::format("{}: {}", call, result));
    }
    add("other sockets", "refused (vsock, netlink, packet)", join(found), blocked,
        "the seccomp profile isn't applied: install an engine built with seccomp");
  }

  void file_systems() {
    auto root = inside_["mounts"]["/"]["options"].words();
    add("root file system", "read-only", has(root, "ro") ? "read-only" : "writable",
        has(root, "ro") && inside_["writable"]["/"].text() != "ok", update_advice);
    std::vector<std::string> open;
    for (const auto* folder :
         {"/run", "/var/tmp", "/var", "/etc", "/usr", "/home", "/root", "/dev", "/sys/fs/cgroup"}) {
      if (inside_["writable"][folder].text() == "ok") {
        open.emplace_back(folder);
      }
    }
    add("other writable folders", "none", open.empty() ? "none" : join(open),
        open.empty() && inside_["writable"]["/"].present(),
        "use podman: docker has no --read-only-tmpfs=false");
    scratch("/tmp", 64 * mebibyte);
    scratch("/workspace", 128 * mebibyte);
    scratch("/dev/shm", 64 * mebibyte);
  }

  void scratch(const std::string& folder, std::uint64_t size) {
    auto mount = inside_["mounts"][folder];
    auto options = mount["options"].words();
    bool flags = has(options, "noexec") && has(options, "nosuid") && has(options, "nodev");
    auto program = inside_["programs"][folder].text();
    bool runs = program == "ok";
    add(folder, in_mib(size) + ", noexec, nosuid, nodev",
        fmt::format("{} {}, {}; a program in it: {}", mount["type"].text(),
                    in_mib(mount["size"].number()), join(options, ","), program),
        mount["type"].text() == "tmpfs" && mount["size"].number() == size && flags && !runs,
        facts_.gvisor ? gvisor_mount_advice : update_advice);
  }

  void identity() {
    auto uid = inside_["status"]["Uid"].text();
    auto gid = inside_["status"]["Gid"].text();
    auto same = [](std::uint32_t id) { return fmt::format("{0}\t{0}\t{0}\t{0}", id); };
    add("user inside", fmt::format("{}:{}", config_.container_uid, config_.container_gid),
        fmt::format("{}:{}", uid.substr(0, uid.find('\t')), gid.substr(0, gid.find('\t'))),
        uid == same(config_.container_uid) && gid == same(config_.container_gid), update_advice);
    auto outside = evidence_.uid_on_host;
    // gVisor's kernel, which is all that the host sees, has another sub-uid than its guest.
    bool as_planned = outside && (facts_.gvisor || *outside == facts_.outside_uid);
    bool apart = as_planned && *outside != evidence_.account && *outside != 0;
    auto planned = facts_.gvisor ? "a sub-uid" : std::to_string(facts_.outside_uid);
    add("user outside", fmt::format("{}, not the account ({})", planned, evidence_.account),
        outside ? std::to_string(*outside) : "unknown", apart,
        "give the account sub-uids of its own in /etc/subuid, then: podman system migrate");
  }

  void privileges() {
    auto status = inside_["status"];
    std::vector<std::string> sets;
    for (const auto* name : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      // What may be permitted bounds the ambient ones (capabilities(7)), which gVisor doesn't list.
      bool implied = name == std::string_view{"CapAmb"} && sets.empty();
      auto value = status[name].text();
      if (implied && value.empty()) {
        continue;
      }
      if (value.empty() || value.find_first_not_of('0') != std::string::npos) {
        sets.push_back(fmt::format("{} {}", name, value));
      }
    }
    add("capabilities", "none", sets.empty() ? "none" : join(sets), sets.empty(), update_advice);
    add("no new privileges", "1", status["NoNewPrivs"].text(), status["NoNewPrivs"].text() == "1",
        update_advice);
    auto netlink = inside_["calls"]["socket(AF_NETLINK)"].text();
    auto chroot = inside_["calls"]["chroot"].text();
    bool ours = !netlink.empty() && netlink != "ok" && !chroot.empty() && chroot != "ok";
    add("seccomp", "filter, our profile",
        fmt::format("mode {}; netlink: {}, chroot: {}", status["Seccomp"].text(), netlink, chroot),
        status["Seccomp"].text() == "2" && ours, "install an engine built with seccomp");
  }

  void memory() {
    auto limits = inside_["limits"];
    auto asked = in_mib(config_.memory);
    auto found =
        evidence_.killed
            ? fmt::format("a probe limited to {} was killed{}", in_mib(evidence_.limits.memory),
                          evidence_.kill_was_told ? ", and the engine said why"
                                                  : ", but the engine didn't say why")
            : fmt::format("a probe limited to {} used twice that", in_mib(evidence_.limits.memory));
    add("memory limit", asked, found, evidence_.killed && evidence_.kill_was_told, remedy_);
    auto swap = limits["swap"].present() ? limits["swap"].text() : limits["memsw"].text();
    bool held = memory_limit_holds(limits.raw(), evidence_.limits.memory);
    add("swap", "none beyond the memory limit",
        swap.empty()               ? "not accounted by the kernel"
        : limits["swap"].present() ? "swap limit: " + swap
                                   : "memory and swap together: " + swap,
        held, remedy_);
  }

  void pids() {
    bool held = evidence_.threads && *evidence_.threads < evidence_.threads_asked &&
                *evidence_.threads <= evidence_.limits.pids;
    auto started = evidence_.threads ? std::to_string(*evidence_.threads) : "an unknown number";
    add("pids limit", std::to_string(config_.pids),
        fmt::format("a probe limited to {} started {} of {} threads", evidence_.limits.pids,
                    started, evidence_.threads_asked),
        held, remedy_);
  }

  void cpus() {
    auto limits = inside_["limits"];
    auto text = limits["cpu"].present() ? limits["cpu"].text()
                                        : limits["quota"].text() + " " + limits["period"].text();
    double quota = 0;
    double period = 0;
    bool read = std::sscanf(text.c_str(), "%lf %lf", &quota, &period) == 2 && period > 0;
    bool held = read && quota > 0 && std::abs(quota / period - *config_.cpus) < 0.02;
    add("cpus", fmt::format("{}", *config_.cpus),
        text == " " ? "nothing" : fmt::format("{} µs (quota and period)", text), held, remedy_);
  }

  void idle_sessions() {
    add("idle sessions", "no CPU time between two runs, or next to none",
        std::string{to_string(evidence_.idle)}, evidence_.idle != brake_kind::none, remedy_);
  }

  void ulimits() {
    const std::array<std::pair<const char*, std::uint64_t>, 4> wanted = {
        {{"nofile", facts_.engine.nofile},
         {"nproc", facts_.engine.nproc},
         {"fsize", 128 * mebibyte},
         {"core", 0}}};
    std::vector<std::string> asked;
    std::vector<std::string> found;
    bool held = true;
    for (const auto& [name, value] : wanted) {
      auto limit = inside_["ulimits"][name];
      asked.push_back(fmt::format("{} {}", name, value));
      found.push_back(fmt::format("{} {}", name, limit.raw().dump()));
      held = held && limit.raw().is_number_unsigned() && limit.number() <= value;
    }
    add("ulimits", join(asked), join(found), held, update_advice);
  }

  void mounts() {
    auto ipc = inside_["mounts"]["/ipc"]["options"].words();
    auto write = inside_["writable"]["/ipc"].text();
    add("/ipc", "read-only", join(ipc, ","), has(ipc, "ro") && !write.empty() && write != "ok",
        update_advice);
    auto projects = inside_["mounts"]["/projects"]["options"].words();
    auto result = inside_["writable"]["/projects"].text();
    add("/projects", "writable by the sandbox",
        fmt::format("{}; a new file: {}", join(projects, ","), result), result == "ok",
        "put the state folder (MCP_BRIDGE_STATE_DIR) on a file system with ACLs");
  }

  void surroundings() {
    auto init = inside_["init"].text();
    add("init process", "reaps orphans", init,
        init.find("init") != std::string::npos || init.find("catatonit") != std::string::npos,
        "install catatonit (podman) or docker-init");
    static const std::set<std::string> fixed = {"PATH",
                                                "HOME",
                                                "LANG",
                                                "TMPDIR",
                                                "MPLCONFIGDIR",
                                                "PYTHONDONTWRITEBYTECODE",
                                                "PYTHONNOUSERSITE",
                                                "HOSTNAME",
                                                "container",
                                                "LC_CTYPE"};
    std::vector<std::string> foreign;
    for (const auto& name : inside_["environment"].words()) {
      // docker can only empty the proxy variables, not leave them out.
      bool proxy = name.ends_with("_proxy") || name.ends_with("_PROXY");
      if (!fixed.contains(name) && !proxy) {
        foreign.push_back(name);
      }
    }
    add("environment", "a fixed list", foreign.empty() ? "nothing else" : join(foreign),
        foreign.empty() && inside_["environment"].present(),
        "remove env settings from containers.conf and the image");
  }

  const settings& config_;
  const runtime_facts& facts_;
  answer inside_;
  const constraint_evidence& evidence_;
  const std::string& remedy_;
  std::vector<constraint_row> rows_;
};

} // namespace

std::vector<constraint_row> constraint_rows(const settings& config, const runtime_facts& facts,
                                            const json& inside, const constraint_evidence& evidence,
                                            const std::string& limits_remedy) {
  return row_writer{config, facts, inside, evidence, limits_remedy}.write();
}

} // namespace bulkhead
