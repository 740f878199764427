// What people see of this client's runs on the web page.

#include "actors/mcp_session.hpp"

#include <caf/all.hpp>

#include "protocol/content_digest.hpp"

namespace bulkhead {

namespace {

std::int64_t milliseconds_now(const environment& env) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(env.wall_clock().time_since_epoch())
      .count();
}

} // namespace

/// However the session ends, none of its runs is shown for ever.
void mcp_session_state::show_in_book() {
  if (context.book) {
    self->attach_functor([book = context.book, env = context.env, keeper = self->id()](
                             const caf::error&) { book->left(keeper, milliseconds_now(*env)); });
  }
}

void mcp_session_state::show_asked(run_in_flight& run) {
  if (!context.book) {
    return;
  }
  // People see how far it is and what it writes, whether the client wants to know or not.
  run.what.live = true;
  run.what.observer = mcp_session_actor{self};
  shown_run shown;
  shown.run = run.what.id;
  shown.at = milliseconds_now(*context.env);
  shown.client = run.what.client;
  shown.client_version = run.what.client_version;
  shown.servers = run.what.servers;
  context.book->asked(std::move(shown), self->id(), [me = self->address(), id = run.what.id] {
    if (auto session = caf::actor_cast<mcp_session_impl_actor>(me)) {
      caf::anon_send(session, cancel_atom::value, id);
    }
  });
}

void mcp_session_state::show_session(const run_in_flight& run) {
  if (context.book && run.what.session) {
    context.book->in_session(run.what.id, session_name(run.what.session->handle), run.what.servers);
  }
}

void mcp_session_state::show_end(const std::string& run, const run_answer& answer) {
  if (context.book) {
    context.book->ended(run, answer, milliseconds_now(*context.env));
  }
}

} // namespace bulkhead
