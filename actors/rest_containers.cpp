#include "actors/rest_containers.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "actors/container_launch.hpp"
#include "actors/engine_errors.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Each step takes less than a tenth of a second on an idle machine.
constexpr auto step_budget = 20s;
constexpr auto removal_budget = 5s;
constexpr int max_attempts = 6;

class rest_start {
public:
  rest_start(driver_context& context, const runtime_facts& facts, container_request request,
             cgroup_limits limits, stdio_owner owner)
      : context_{context}, facts_{facts}, owner_{std::move(owner)} {
    record_.handle.id = std::move(request.id);
    record_.handle.name = container_name(record_.handle.id);
    record_.handle.folder = std::move(request.folder);
    record_.limits = limits;
  }

  task<expected<container_record>> run(std::vector<std::string> command) {
    auto plan = plan_container(context_, record_.handle.id, record_.handle.folder, record_.limits,
                               std::move(command));
    if (!plan) {
      co_return tl::unexpected{plan.error()};
    }
    auto body = create_body(facts_.engine, *plan);
    auto started = co_await try_to_start(body);
    if (!started && lost_before_its_start()) {
      started = co_await try_to_start(body);
    }
    if (!started) {
      co_return tl::unexpected{started.error()};
    }
    co_return record_;
  }

private:
  /// Nobody has heard of the container when its service went: another can make it.
  bool lost_before_its_start() const {
    return record_.service != 0 && record_.handle.child == 0 &&
           !context_.rest->is_current(record_.service);
  }

  task<expected<void>> try_to_start(std::string body) {
    co_await context_.rest->wait_for_turn();
    auto done = co_await create(std::move(body));
    if (done) {
      auto target = link_->targets.init(record_.handle.name);
      done = co_await post(std::move(target));
    }
    context_.rest->end_turn();
    if (done) {
      done = co_await start();
    }
    if (!done && record_.service != 0) {
      context_.sessions.erase(record_.handle.child);
      auto removed = co_await remove_by_rest(context_, facts_, record_);
      if (!removed) {
        context_.env->log->warn("{}", removed.error().message);
      }
    }
    co_return done;
  }

  task<expected<void>> create(std::string body) {
    for (bool again : {true, false}) {
      auto link = co_await context_.rest->ensure(facts_);
      if (!link) {
        co_return tl::unexpected{link.error()};
      }
      socket_request request{link->socket, "POST", link->targets.create(), body};
      auto answer = co_await context_.rest->call(link->number, std::move(request), step_budget);
      if (!answer && answer.error().code == errc::closed && again) {
        // It ended unnoticed, and was asked nothing.
        continue;
      }
      link_ = *link;
      record_.service = link->number;
      auto id = answer && answer->status == 201 ? read_created_id(answer->body)
                                                : expected<std::string>{refusal(answer)};
      if (!id) {
        co_return tl::unexpected{id.error()};
      }
      co_return take_id(*id);
    }
    co_return fail(errc::unavailable, "start a sandbox: podman's service ends again and again");
  }

  expected<void> take_id(const std::string& id) {
    record_.handle.cgroups.clear();
    record_.outer_cgroups.clear();
    for (const auto& folder : link_->cgroups) {
      record_.outer_cgroups.push_back(folder);
      record_.handle.cgroups.push_back(folder + "/" + id);
    }
    // As podman's command line would have left it.
    return write_small_file(record_.handle.folder + "/cid", id, 0600);
  }

  task<expected<void>> start() {
    const auto& name = record_.handle.name;
    stream_request request{link_->socket, link_->targets.attach(name), link_->targets.state(name),
                           link_->targets.remove(name)};
    completion<expected<child_started>> attached{[this, &request](auto done) {
      context_.services.attach(std::move(request), owner_.actor, std::move(done));
    }};
    auto child = co_await attached;
    if (!child) {
      co_return tl::unexpected{
          explain_service_failure("attach to a sandbox", context_.host, child.error().message)};
    }
    record_.handle.child = child->id;
    context_.rest->hold_stream(record_.service, child->id);
    if (owner_.probe != nullptr) {
      context_.sessions[child->id] = owner_.probe;
    }
    auto target = link_->targets.start(name);
    auto started = co_await post(std::move(target));
    co_return started;
  }

  task<expected<void>> post(std::string target) {
    socket_request request{link_->socket, "POST", std::move(target), {}};
    auto answer = co_await context_.rest->call(link_->number, std::move(request), step_budget);
    // 304: it is so already.
    if (!answer || (answer->status != 204 && answer->status != 304)) {
      co_return refusal(answer);
    }
    co_return expected<void>{};
  }

  tl::unexpected<error> refusal(const expected<socket_answer>& answer) const {
    return tl::unexpected{explain_service_failure(
        "start a sandbox", context_.host,
        answer ? rest_complaint(answer->status, answer->body) : answer.error().message)};
  }

  driver_context& context_;
  const runtime_facts& facts_;
  stdio_owner owner_;
  container_record record_;
  std::optional<rest_link> link_;
};

/// Without its monitor a container is removed and yet not deleted in the OCI runtime.
bool oci_runtime_has(const runtime_facts& facts, const std::string& cid) {
  std::error_code ignored;
  return !cid.empty() && !facts.oci_root.empty() &&
         std::filesystem::exists(facts.oci_root + "/" + cid, ignored);
}

/// One attempt; what remains, or nothing.
task<std::string> try_to_delete(driver_context& context, rest_link link, std::string name) {
  socket_request request{link.socket, "DELETE", link.targets.remove(name), {}};
  auto answer = co_await context.rest->call(link.number, std::move(request), removal_budget);
  if (!answer) {
    co_return answer.error().message;
  }
  bool gone = answer->status == 200 || answer->status == 204 || answer->status == 404;
  co_return gone ? std::string{} : rest_complaint(answer->status, answer->body);
}

task<bool> delete_until_gone(driver_context& context, const runtime_facts& facts,
                             container_record record) {
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    if (attempt > 0) {
      // One that ends while it is removed is refused with 500, and works a moment later.
      co_await context.pause(25ms * (1 << attempt));
    }
    // What a lost service leaves may be more than its successor knows.
    if (record.handle.child == 0 || !context.rest->is_current(record.service)) {
      co_return false;
    }
    auto link = co_await context.rest->ensure(facts);
    if (!link) {
      co_return false;
    }
    auto remains = co_await try_to_delete(context, *link, record.handle.name);
    if (remains.empty()) {
      bool cleared = co_await clear_cgroups(context, facts.engine, record.handle.cgroups);
      co_return cleared && !oci_runtime_has(facts, read_container_id(record.handle.folder));
    }
    context.env->log->debug("remove container {}: {}", record.handle.name, remains);
  }
  co_return false;
}

} // namespace

task<expected<container_record>> start_by_rest(driver_context& context, const runtime_facts& facts,
                                               container_request request, cgroup_limits limits,
                                               std::vector<std::string> command,
                                               stdio_owner owner) {
  rest_start work{context, facts, std::move(request), limits, std::move(owner)};
  auto result = co_await work.run(std::move(command));
  co_return result;
}

task<expected<void>> remove_by_rest(driver_context& context, const runtime_facts& facts,
                                    container_record record) {
  context.rest->release_stream(record.handle.child);
  bool gone = co_await delete_until_gone(context, facts, record);
  if (gone) {
    co_return expected<void>{};
  }
  auto result = co_await remove_container(context, facts, std::move(record), true);
  co_return result;
}

task<bool> ran_out_of_memory_by_rest(driver_context& context, const runtime_facts& facts,
                                     container_handle handle) {
  auto told = memory_ran_out_in(*context.host.cgroups, handle.cgroups);
  // The note isn't signed: it is only asked where the container's cgroup has gone.
  bool noted = context.rest->take_out_of_memory_note();
  if (told || noted) {
    co_return told.value_or(noted);
  }
  auto link = co_await context.rest->ensure(facts);
  if (!link) {
    co_return false;
  }
  socket_request request{link->socket, "GET", link->targets.state(handle.name), {}};
  auto answer = co_await context.rest->call(link->number, std::move(request), removal_budget);
  auto state = answer && answer->status == 200 ? read_rest_state(answer->body)
                                               : expected<rest_state>{rest_state{}};
  co_return state && state->out_of_memory;
}

} // namespace bulkhead
