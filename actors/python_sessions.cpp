#include "actors/python_sessions.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/activity.hpp"
#include "actors/errors.hpp"
#include "protocol/content_digest.hpp"

namespace bulkhead {

namespace {

/// Does the session have all that the claim wants?
bool has_servers(const python_sessions_state::session& which,
                 const std::vector<std::string>& wanted) {
  auto in = [](const std::vector<std::string>& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& name) {
    return in(which.servers, name) || in(which.loadable, name);
  });
}

} // namespace

error no_such_session() {
  return {errc::closed, "there is no such session (any more): it ended, was idle for too long, or "
                        "made room for another. What it held is gone; start one with session "
                        "\"new\""};
}

python_sessions_state::python_sessions_state(python_sessions_impl_actor::pointer self)
    : self{self} {}

caf::result<session_lease> python_sessions_state::claim(session_claim& what) {
  if (what.handle.empty()) {
    return open(what);
  }
  auto found = sessions.find(what.handle);
  if (found == sessions.end() || found->second.owner != what.owner) {
    return to_caf(no_such_session());
  }
  auto& which = found->second;
  if (!has_servers(which, what.servers)) {
    return to_caf(errc::denied,
                  fmt::format("a session's servers are fixed when it is made; this "
                              "one has: {}. For others start one with session "
                              "\"new\", or leave servers out",
                              which.servers.empty()
                                  ? "none"
                                  : fmt::format("{}", fmt::join(which.servers, ", "))));
  }
  if (which.lease == 0) {
    return lend(found, what, self->current_sender());
  }
  if (which.waiting.size() >= most_waiting) {
    return to_caf(errc::overloaded,
                  fmt::format("the session runs other code and {} more runs wait for it; try again "
                              "when they have ended",
                              which.waiting.size()));
  }
  auto holder = self->current_sender(); // the promise takes it
  watch(holder);
  auto promise = self->make_response_promise<session_lease>();
  self->delayed_send(self, what.due.remaining(self->clock().now()), tick_atom::value);
  which.waiting.push_back({std::move(what), std::move(holder), promise});
  return promise;
}

caf::result<session_lease> python_sessions_state::open(const session_claim& what) {
  const auto most = env->config->sessions;
  if (most == 0) {
    return to_caf(errc::overloaded,
                  "sessions are switched off here (MCP_BRIDGE_SESSIONS is 0); run without session");
  }
  auto running = std::count_if(sessions.begin(), sessions.end(),
                               [](const auto& each) { return each.second.lease != 0; });
  if (static_cast<std::size_t>(running) >= most) {
    return to_caf(errc::overloaded, fmt::format("all {} sessions are running code; try again when "
                                                "one is idle, or raise MCP_BRIDGE_SESSIONS",
                                                most));
  }
  auto made = sessions.emplace(env->new_handle(), session{}).first;
  env->activity->sessions_are(sessions.size());
  made->second.owner = what.owner;
  made->second.servers = what.servers;
  made->second.loadable = what.loadable;
  made->second.made_under = what.made_under;
  return lend(made, what, self->current_sender());
}

/// The idle session that was unused for longest.
python_sessions_state::sessions_map::iterator python_sessions_state::longest_idle() {
  auto oldest = sessions.end();
  for (auto it = sessions.begin(); it != sessions.end(); ++it) {
    if (it->second.lease == 0 &&
        (oldest == sessions.end() || it->second.last_used < oldest->second.last_used)) {
      oldest = it;
    }
  }
  return oldest;
}

void python_sessions_state::make_room() {
  while (sessions.size() > env->config->sessions) {
    auto oldest = longest_idle();
    if (oldest == sessions.end()) {
      return;
    }
    env->log->info("session {}: ends to make room for another", oldest->first.substr(0, 8));
    lose(oldest);
  }
}

session_lease python_sessions_state::lend(sessions_map::iterator to, const session_claim& what,
                                          const caf::strong_actor_ptr& holder) {
  auto& which = to->second;
  which.lease = ++last_lease;
  which.used_at = wall_time();
  which.holder = watch(holder);
  return {to->first,  which.lease,    which.servers,   which.sandbox,
          what.reset, which.loadable, which.made_under};
}

caf::actor_addr python_sessions_state::watch(const caf::strong_actor_ptr& holder) {
  auto address = caf::actor_cast<caf::actor_addr>(holder);
  if (holders.insert(address).second) {
    self->monitor(address);
  }
  return address;
}

void python_sessions_state::release(const std::string& handle, std::uint64_t lease,
                                    const sandbox_actor& sandbox) {
  auto found = sessions.find(handle);
  if (found == sessions.end() || found->second.lease != lease) {
    if (sandbox) {
      self->send(sandbox, end_atom::value);
    }
    return;
  }
  auto& which = found->second;
  if (!sandbox) {
    // It has ended already, or never was.
    which.sandbox = nullptr;
    lose(found);
    return;
  }
  if (sandbox != which.sandbox) {
    which.sandbox = sandbox;
    self->monitor(sandbox);
  }
  which.lease = 0;
  which.holder = nullptr;
  which.last_used = self->clock().now();
  which.used_at = wall_time();
  lend_to_next(found);
  make_room();
}

void python_sessions_state::lend_to_next(sessions_map::iterator which) {
  auto& waiting = which->second.waiting;
  while (!waiting.empty() && which->second.lease == 0) {
    auto next = std::move(waiting.front());
    waiting.pop_front();
    next.promise.deliver(lend(which, next.what, next.holder));
  }
}

void python_sessions_state::lose(sessions_map::iterator which) {
  auto gone = std::move(which->second);
  sessions.erase(which);
  env->activity->sessions_are(sessions.size());
  if (gone.sandbox) {
    self->send(gone.sandbox, end_atom::value);
  }
  for (auto& claim : gone.waiting) {
    claim.promise.deliver(to_caf(no_such_session()));
  }
}

void python_sessions_state::refuse_late_claims() {
  auto now = self->clock().now();
  for (auto& [handle, which] : sessions) {
    std::erase_if(which.waiting, [&](auto& claim) {
      auto late = claim.what.due.remaining(now) == std::chrono::nanoseconds::zero();
      if (late) {
        claim.promise.deliver(
            to_caf(errc::timeout, "the session ran other code all the time; try again later"));
      }
      return late;
    });
  }
}

void python_sessions_state::actor_died(const caf::actor_addr& which) {
  holders.erase(which);
  for (auto it = sessions.begin(); it != sessions.end();) {
    auto current = it++;
    auto& session = current->second;
    std::erase_if(session.waiting, [&](const auto& claim) {
      return caf::actor_cast<caf::actor_addr>(claim.holder) == which;
    });
    bool died = session.sandbox && session.sandbox.address() == which;
    if (died) {
      session.sandbox = nullptr;
    }
    // While code runs in it, the run itself tells how that ended.
    if (session.lease == 0 ? died : session.holder == which) {
      lose(current);
    }
  }
}

std::int64_t python_sessions_state::wall_time() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(env->wall_clock().time_since_epoch())
      .count();
}

std::vector<session_status> python_sessions_state::status() const {
  std::vector<session_status> all;
  for (const auto& [handle, which] : sessions) {
    all.push_back(
        {session_name(handle), which.owner, which.servers, which.lease != 0, which.used_at});
  }
  std::sort(all.begin(), all.end(), [](const auto& one, const auto& other) {
    return one.used_at != other.used_at ? one.used_at > other.used_at : one.session < other.session;
  });
  return all;
}

python_sessions_impl_actor::behavior_type python_sessions_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { actor_died(down.source); });
  return {
      [this](lease_atom, session_claim& what) { return claim(what); },
      [this](taken_atom) { make_room(); },
      [this](release_atom, const std::string& handle, std::uint64_t lease,
             const sandbox_actor& sandbox) { release(handle, lease, sandbox); },
      [this](status_atom) { return status(); },
      [this](tick_atom) { refuse_late_claims(); },
  };
}

python_sessions_impl_actor::behavior_type
python_sessions(python_sessions_impl_actor::stateful_pointer<python_sessions_state> self,
                environment_ptr env) {
  self->state.env = std::move(env);
  // Those of an actor that failed are lost.
  self->state.env->activity->sessions_are(0);
  return self->state.make_behavior();
}

} // namespace bulkhead
