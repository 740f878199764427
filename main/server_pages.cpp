#include "main/server_pages.hpp"

#include <string_view>
#include <utility>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "protocol/oauth_resource.hpp"
#include "protocol/page_answer.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view alive_path = "/healthz";
constexpr std::string_view ready_path = "/readyz";
constexpr std::string_view metrics_path = "/metrics";

/// Leaves out everything but the verdict: what is wrong with whom is the operator's to know.
class verdict_only : public io::http_reply {
public:
  explicit verdict_only(io::http_reply_ptr to) : to_{std::move(to)} {}

  void answer(outgoing_answer whole) override {
    auto report = nlohmann::json::parse(whole.body, nullptr, false);
    auto status = report.is_object() ? report.value("status", "failing") : std::string{"failing"};
    whole.body = nlohmann::json{{"status", status}}.dump();
    to_->answer(std::move(whole));
  }
  void begin(outgoing_answer head) override { to_->begin(std::move(head)); }
  void write(std::string bytes) override { to_->write(std::move(bytes)); }
  void end() override { to_->end(); }
  bool gone() const override { return to_->gone(); }
  std::size_t unsent() const override { return to_->unsent(); }
  void when_gone(std::function<void()> told) override { to_->when_gone(std::move(told)); }

private:
  io::http_reply_ptr to_;
};

std::string_view path_of(const incoming_request& request) {
  std::string_view target = request.target;
  return target.substr(0, target.find('?'));
}

void ask_health(const health_actor& health, http_arrival arrival) {
  if (path_of(arrival.request) == alive_path) {
    caf::anon_send(health, status_atom::value, std::move(arrival));
  } else {
    caf::anon_send(health, ensure_atom::value, std::move(arrival));
  }
}

http_page public_page(std::string_view path) {
  return {std::string{path}, {"GET"}, false};
}

} // namespace

health_actor spawn_health(shared_process& process, const tenants& all,
                          std::function<bool()> stopping,
                          std::function<std::vector<health_check>()> more) {
  health_context context;
  context.trees = [&all] {
    std::vector<std::pair<std::string, supervisor_actor>> found;
    for (auto& each : all.parts()) {
      found.emplace_back("tenant " + each.name, std::move(each.tree));
    }
    return found;
  };
  context.runtimes = [&all] {
    std::vector<health_context::driver> found;
    for (auto& each : all.parts()) {
      auto session = all.context_of(each.name);
      found.push_back({"tenant " + each.name, session ? session->env->config->image : "",
                       std::move(each.runtime)});
    }
    return found;
  };
  context.more = [&all, more = std::move(more)] {
    auto found = more ? more() : std::vector<health_check>{};
    for (const auto& each : all.parts()) {
      if (auto session = all.context_of(each.name)) {
        found.push_back(check_definitions("definitions of MCP servers of tenant " + each.name,
                                          session->configured->get()->problems));
      }
    }
    return found;
  };
  context.log = process.log();
  context.folders = [&all] {
    std::vector<std::pair<std::string, std::string>> found;
    for (auto& each : all.parts()) {
      found.emplace_back("state folder of tenant " + each.name, std::move(each.state_dir));
    }
    for (auto& [name, folder] : all.missing()) {
      found.emplace_back("state folder of tenant " + name + ", which isn't served", folder);
    }
    return found;
  };
  context.stopping = std::move(stopping);
  return process.system().spawn<caf::detached>(health, std::move(context));
}

std::vector<http_page> client_pages() {
  auto pages = web_pages();
  pages.push_back(public_page(alive_path));
  pages.push_back(public_page(ready_path));
  pages.push_back(public_page(resource_document_root));
  pages.push_back(public_page(std::string{resource_document_root} + "/"));
  return pages;
}

io::http_request_handler client_requests(const client_services& to) {
  return [health = to.health, has_page = to.has_page, to_mcp = http_requests_to(to.mcp),
          to_page = page_requests_to(to.page), metadata = to.metadata](
             incoming_request request, memory_budget::share held, io::http_reply_ptr reply) {
    if (auto path = path_of(request); path == alive_path || path == ready_path) {
      ask_health(health,
                 {std::move(request), {}, {}, std::make_shared<verdict_only>(std::move(reply))});
    } else if (path.starts_with(resource_document_root)) {
      reply->answer(metadata(path));
    } else if (!is_page_target(request.target)) {
      to_mcp(std::move(request), std::move(held), std::move(reply));
    } else if (has_page()) {
      to_page(std::move(request), std::move(held), std::move(reply));
    } else {
      reply->answer(page_refusal(404, "there is no web page here ([ui] enabled is false, or the "
                                      "address is not loopback)"));
    }
  };
}

std::vector<http_page> operator_pages() {
  return {public_page(alive_path), public_page(ready_path), public_page(metrics_path)};
}

io::http_request_handler operator_requests(shared_process& process, const health_actor& health) {
  return [&process, health](incoming_request request, memory_budget::share, io::http_reply_ptr to) {
    auto path = path_of(request);
    if (path == alive_path || path == ready_path) {
      ask_health(health, {std::move(request), {}, {}, std::move(to)});
    } else if (path != metrics_path) {
      to->answer(refusal(404, rpc_code::invalid_request, "MCP is served at another address"));
    } else {
      // It takes a while with many series, which the I/O thread hasn't got.
      process.system().spawn([&process, to](caf::event_based_actor*) {
        outgoing_answer answer;
        answer.fields = {{"Content-Type", std::string{metrics::content_type}}};
        answer.body = process.figures()->render(*process.board(), process.budget().get());
        to->answer(std::move(answer));
      });
    }
  };
}

} // namespace bulkhead
