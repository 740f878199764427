#include <unistd.h>

#include <caf/all.hpp>

#include "actors/mcp_session.hpp"
#include "actors/stdio_front_end.hpp"
#include "main/commands.hpp"

namespace bulkhead {

namespace {

constexpr const char* greeting =
    "bulkhead: an MCP server that speaks JSON-RPC on stdin and stdout; an agent starts it.\n"
    "Register it, e.g.: claude mcp add bulkhead -- {}\n"
    "or in a configuration file: {{\"mcpServers\": {{\"bulkhead\": {{\"command\": \"{}\"}}}}}}\n"
    "Try it without an agent: bulkhead run FILE; what is enforced here: bulkhead doctor\n"
    "Ctrl-D or Ctrl-C ends it.\n";

} // namespace

int serve_stdio(application& app, stop_signal& stop, int in, int out) {
  if (::isatty(in) != 0) {
    auto self = app.env()->executable;
    write_all(STDERR_FILENO, fmt::format(greeting, self, self));
  }
  auto context = app.context_of_sessions();
  context.only_client = true;
  app.watch_configuration();
  front_end_actor front_end = app.system().spawn(
      stdio_front_end, context, stdio_transport(app.io(), in, out, app.env()->bounds));
  // The front end ends when its client is done.
  front_end->attach_functor([&stop](const caf::error&) { stop.notify(); });
  stop.wait();
  caf::scoped_actor self{app.system()};
  self->request(front_end, std::chrono::seconds{1}, stop_atom::value)
      .receive([](caf::ok_atom) {}, [](const caf::error&) {});
  return app.failed() ? 1 : 0;
}

} // namespace bulkhead
