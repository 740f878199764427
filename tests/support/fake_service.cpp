#include "tests/support/fake_service.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

namespace bulkhead::testing {

using nlohmann::json;

namespace {

bool is_service(const process_spec& spec) {
  return std::find(spec.argv.begin(), spec.argv.end(), "service") != spec.argv.end();
}

bool is_stream(const scripted_child& child) {
  return child.spec().argv.front() == "attach";
}

socket_answer refusal(int status, const std::string& message) {
  return {static_cast<std::uint32_t>(status), json{{"message", message}}.dump(), "4.3.1"};
}

} // namespace

std::string container_in(const std::string& target) {
  auto start = target.find("/containers/");
  if (start == std::string::npos) {
    return {};
  }
  start += std::string_view{"/containers/"}.size();
  return target.substr(start, target.find_first_of("/?", start) - start);
}

void fake_service::serve(command_script& script) {
  auto started = script.started;
  auto written = script.written;
  auto signalled = script.signalled;
  script.started = [this, started](const scripted_child& child) {
    if (!is_service(child.spec())) {
      started(child);
    } else if (starts) {
      process = child.id();
    } else {
      child.err("Error: unable to listen\n");
      child.exit(125);
    }
  };
  script.written = [this, written](const scripted_child& child, const std::string& text) {
    is_stream(child) ? probe(child, container_in(child.spec().argv[1]), text)
                     : written(child, text);
  };
  script.signalled = [this, &script, signalled](const scripted_child& child, std::int32_t signal) {
    if (is_service(child.spec()) && signal == SIGKILL) {
      die(script);
    } else if (is_stream(child) && signal == SIGHUP) {
      child.exit(0, SIGKILL);
    } else {
      signalled(child, signal);
    }
  };
  script.answer = [this, &script](const socket_request& request) {
    return answer(script, request);
  };
}

void fake_service::die(command_script& script) {
  if (auto id = std::exchange(process, 0)) {
    script.children[id - 1].exit(0, SIGKILL);
  }
  for (const auto& child : script.children) {
    if (is_stream(child)) {
      child.exit(0, SIGKILL);
    }
  }
}

expected<socket_answer> fake_service::answer(command_script& script,
                                             const socket_request& request) {
  if (process == 0 && !users_own) {
    return fail(errc::closed, "connect: nobody listens");
  }
  if (hangs) {
    return fail(errc::timeout, "it didn't answer in time");
  }
  auto line = request.method + " " + request.target;
  for (auto& [part, count] : refusals) {
    if (count > 0 && line.find(part) != std::string::npos) {
      --count;
      return refusal(500, "it can't be done now");
    }
  }
  if (process == 0 && !users_works && request.target.ends_with("/init")) {
    return refusal(500, "crun: not on this host");
  }
  auto name = container_in(request.target);
  if (request.target.ends_with("/_ping")) {
    return socket_answer{200, "OK", "4.3.1"};
  }
  if (request.target.ends_with("/exists")) {
    return socket_answer{engine_.image ? 204u : 404u, {}, "4.3.1"};
  }
  if (name == "create") {
    return create(request.body);
  }
  if (!engine_.containers.contains(name)) {
    return refusal(404, "no such container");
  }
  if (request.method == "DELETE") {
    return remove(script, name);
  }
  if (request.target.ends_with("/start")) {
    return start(script, name);
  }
  if (request.target.ends_with("/init")) {
    for (const auto& folder : cgroups_of(script, engine_.containers.at(name).cid)) {
      cgroups_->folders.insert(folder);
    }
  }
  if (request.target.ends_with("/json")) {
    return socket_answer{
        200, json{{"State", {{"Status", state}, {"OOMKilled", out_of_memory}}}}.dump(), "4.3.1"};
  }
  return socket_answer{204, {}, "4.3.1"};
}

socket_answer fake_service::create(const std::string& text) {
  auto body = json::parse(text);
  fake_container container;
  container.name = body["name"];
  container.instance = body["labels"]["org.bulkhead.instance"];
  container.cid = fmt::format("{:064x}", 0xdef000 + bodies.size());
  std::filesystem::create_directories(engine_.storage() + "/" + container.cid);
  bodies[container.name] = std::move(body);
  engine_.containers[container.name] = container;
  return {201, json{{"Id", container.cid}}.dump(), "4.3.1"};
}

socket_answer fake_service::start(command_script& script, const std::string& name) {
  auto& container = engine_.containers.at(name);
  for (const auto& child : script.children) {
    if (is_stream(child) && container_in(child.spec().argv[1]) == name) {
      container.child = child.id();
      if (bodies[name]["command"].back() == "/ipc/bulkhead_probe.py") {
        child.line(R"({"ready": "3.13.5"})");
      }
    }
  }
  return {204, {}, "4.3.1"};
}

/// Those that the OCI runtime makes below the service's.
std::vector<std::string> fake_service::cgroups_of(command_script& script,
                                                  const std::string& cid) const {
  std::vector<std::string> result;
  if (process != 0) {
    for (const auto& folder : script.children[process - 1].spec().cgroups) {
      result.push_back(folder + "/" + cid);
    }
  }
  return result;
}

socket_answer fake_service::remove(command_script& script, const std::string& name) {
  auto container = engine_.containers.at(name);
  engine_.containers.erase(name);
  for (const auto& folder : cgroups_of(script, container.cid)) {
    cgroups_->folders.erase(folder);
  }
  std::filesystem::remove_all(engine_.storage() + "/" + container.cid);
  if (container.child != 0) {
    script.children[container.child - 1].exit(137);
  }
  return {200, "[]", "4.3.1"};
}

void fake_service::probe(const scripted_child& child, const std::string& name,
                         const std::string& line) {
  if (line == "limits\n") {
    auto limits = bodies[name].value("resource_limits", json{});
    auto memory = limits.is_null() ? "max" : std::to_string(limits["memory"]["limit"].get<int>());
    auto pids = limits.is_null() ? "max" : std::to_string(limits["pids"]["limit"].get<int>());
    auto asked = json{{"memory", memory}, {"swap", limits.is_null() ? "max" : "0"}, {"pids", pids}};
    child.line((engine_.limits.is_null() ? asked : engine_.limits).dump());
  }
}

} // namespace bulkhead::testing
