// For tests only, so that it stands in no help: MCP over HTTP on loopback, with or without the
// things that the protocol's conformance suite wants to find.

#include <caf/all.hpp>

#include "actors/http_front_end.hpp"
#include "actors/io/http_listener.hpp"
#include "actors/io/stdio_channel.hpp"
#include "main/commands.hpp"
#include "protocol/conformance_fixtures.hpp"
#include "protocol/json_rpc.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;

constexpr seconds stop_budget{14};

/// Who has the one token there is.
http_rules rules_for(const std::string& token) {
  http_rules rules;
  if (!token.empty()) {
    rules.authenticate =
        [token](std::string_view given) -> tl::expected<std::string, outgoing_answer> {
      if (equal_secrets(given, token)) {
        return "local";
      }
      auto answer = refusal(401, rpc_code::invalid_request,
                            "this server wants the token that it printed: Authorization: Bearer "
                            "TOKEN");
      answer.fields.push_back({"WWW-Authenticate", "Bearer"});
      return tl::unexpected<outgoing_answer>(std::move(answer));
    };
  }
  return rules;
}

http_front_end_context front_end_context(application& app, const command_line& line) {
  http_front_end_context made;
  made.env = app.env();
  std::shared_ptr<const served_things> served;
  if (line.access == command_line::http_access::fixtures) {
    served = conformance_fixtures();
    made.mirrored = [served](std::string_view tool) { return served->mirrored(tool); };
  }
  made.session_of = [&app, &line, served](const std::string& principal) {
    auto context = app.context_of_sessions();
    context.owner = principal;
    context.served = served;
    if (line.access == command_line::http_access::no_runs) {
      context.start = nullptr;
    }
    return context;
  };
  return made;
}

} // namespace

int serve_conformance(application& app, stop_signal& stop, const command_line& line, int in,
                      int out) {
  using access = command_line::http_access;
  auto token = line.access == access::token ? app.env()->new_handle() : std::string{};
  http_front_end_actor front_end = app.system().spawn(http_front_end, front_end_context(app, line));
  io::http_listener_options options;
  options.port = line.port;
  options.rules = rules_for(token);
  options.budget = app.env()->budget;
  auto listener = io::http_listener::open(app.io(), options, http_requests_to(front_end));
  if (!listener) {
    complain(listener.error().message);
    return 1;
  }
  // Whoever started it closes its end to be done with it.
  io::stdio_channel::events events;
  events.line = [](const std::string&) {};
  events.overlong = [] {};
  events.end = [&stop] { stop.notify(); };
  const auto& bounds = app.env()->bounds;
  auto starter = std::make_shared<io::stdio_channel>(app.io(), in, out, bounds.control_frame,
                                                     bounds.write_ahead, std::move(events));
  starter->write(fmt::format("http://127.0.0.1:{}/mcp\n{}", (*listener)->port(),
                             token.empty() ? "" : token + "\n"));
  starter->start();
  stop.wait();
  (*listener)->close(stop_budget, {});
  caf::scoped_actor self{app.system()};
  self->request(front_end, stop_budget, stop_atom::value)
      .receive([](caf::ok_atom) {}, [](const caf::error&) {});
  return app.failed() ? 1 : 0;
}

} // namespace bulkhead
