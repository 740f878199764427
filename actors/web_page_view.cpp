// What goes on now, in pieces, and those who read how it changes.

#include "actors/web_page.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/errors.hpp"
#include "protocol/fair_share.hpp"
#include "protocol/json_text.hpp"
#include "protocol/page_answer.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

namespace {

using json = nlohmann::ordered_json;
using std::chrono::seconds;

/// For other actors, which have what they are asked for at hand; then the piece stays as it was.
constexpr seconds patience{5};

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

double in_seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1e3;
}

std::string about_json(const page_context& of, const std::string& mcp) {
  const auto& config = *of.env->config;
  return dumped({{"tenant", of.owner},
                 {"version", BULKHEAD_VERSION},
                 {"mcp", mcp},
                 {"concurrentRuns", config.concurrent_runs},
                 {"sessions", config.sessions},
                 {"timeout", in_seconds(config.timeout)},
                 {"maxTimeout", in_seconds(config.max_timeout)},
                 {"ledger", config.ledger != ledger_mode::off}});
}

std::string pool_json(const page_context& of) {
  return dumped({{"waiting", of.ready_sandboxes()}, {"ceiling", of.env->config->pool.ceiling}});
}

std::string servers_json(const server_catalogue& configured,
                         const std::vector<client_status>& known) {
  auto made = json::array();
  for (const auto& entry : configured.servers) {
    if (!allows_server(configured.rules, entry.name).allowed) {
      continue;
    }
    auto found = std::find_if(known.begin(), known.end(),
                              [&](const auto& each) { return each.server == entry.name; });
    auto status =
        found == known.end() ? client_status{entry.name, "not started", {}, 0, {}} : *found;
    made.push_back({{"name", entry.name},
                    {"alias", entry.alias},
                    {"description", entry.description},
                    {"state", status.state},
                    {"version", status.version},
                    {"tools", status.tools},
                    {"lastError", status.last_error}});
  }
  return dumped(made);
}

std::string sessions_json(const std::vector<session_status>& all, const std::string& owner) {
  auto made = json::array();
  for (const auto& each : all) {
    if (each.owner == owner) {
      made.push_back({{"session", each.session},
                      {"servers", each.servers},
                      {"busy", each.busy},
                      {"usedAt", each.used_at}});
    }
  }
  return dumped(made);
}

void set(web_page_state::view& into, const std::string& name, std::string text) {
  auto& piece = into.pieces[name];
  if (piece.version == 0 || piece.text != text) {
    piece = {std::move(text), ++into.last_version};
  }
}

std::string snapshot_of(const web_page_state::view& from) {
  std::vector<std::pair<std::string_view, std::string>> members;
  for (const auto& [name, piece] : from.pieces) {
    members.emplace_back(name, piece.text);
  }
  return json_object(members);
}

} // namespace

/// What is to be had without asking anybody.
void web_page_state::look(view& into, const page_context& of) const {
  set(into, "about", about_json(of, context.mcp));
  set(into, "pool", pool_json(of));
  set(into, "charts", to_json(of.book->last_hour(wall_time())));
  auto changes = of.book->changes();
  auto& runs = into.pieces["runs"];
  bool counted = of.calls && runs.text.find(R"("stage":)") != std::string::npos;
  if (into.book_read && changes == into.book_seen && !counted) {
    return;
  }
  into.book_read = true;
  into.book_seen = changes;
  auto shown = of.book->now(context.allowance.shown_runs);
  if (of.calls && !shown.running.empty()) {
    auto calls = of.calls();
    for (auto& run : shown.running) {
      auto found = calls.find(run.run);
      run.calls = found == calls.end() ? 0 : found->second;
    }
  }
  set(into, "runs", runs_json(shown.running, shown.ended));
}

void web_page_state::ask(const std::string& principal, view& into, const page_context& of) {
  if (into.asking > 0) {
    return;
  }
  into.asking = 2;
  into.asked = self->clock().now();
  self->request(of.registry(), patience, status_atom::value)
      .then(
          [this, principal, configured = of.catalogue()](const std::vector<client_status>& known) {
            asked(principal, "servers", servers_json(*configured, known));
          },
          [this, principal, configured = of.catalogue()](const caf::error&) {
            asked(principal, "servers", servers_json(*configured, {}));
          });
  self->request(of.sessions(), patience, status_atom::value)
      .then(
          [this, principal, owner = of.owner](const std::vector<session_status>& all) {
            asked(principal, "sessions", sessions_json(all, owner));
          },
          [this, principal](const caf::error&) { asked(principal, "sessions", "[]"); });
}

void web_page_state::asked(const std::string& principal, const std::string& name,
                           std::string text) {
  auto found = views.find(principal);
  if (found == views.end()) {
    return;
  }
  auto& which = found->second;
  set(which, name, std::move(text));
  if (--which.asking > 0) {
    return;
  }
  for (const auto& to : std::exchange(which.waiting, {})) {
    to->answer(page_json(snapshot_of(which)));
    end_work(principal);
  }
  for (auto& [number, each] : readers) {
    if (each.principal == principal) {
      give_changes(each, which);
    }
  }
  drop_idle_views();
}

void web_page_state::give_snapshot(const std::string& principal, const page_context& of,
                                   io::http_reply_ptr to) {
  if (!begin_work(principal, *to)) {
    return;
  }
  auto& which = views[principal];
  which.waiting.push_back(std::move(to));
  look(which, of);
  ask(principal, which, of);
}

void web_page_state::add_reader(const std::string& principal, const page_context& of,
                                io::http_reply_ptr to) {
  auto of_principal =
      static_cast<std::size_t>(std::count_if(readers.begin(), readers.end(), [&](const auto& each) {
        return each.second.principal == principal;
      }));
  if (!fair_share(of_principal, readers.size(), context.allowance.all_readers,
                  context.allowance.readers)) {
    to->answer(page_refusal(
        429, "too many pages read what goes on already; close one, or try again later", 15));
    return;
  }
  auto number = ++last_number;
  to->when_gone(
      [me = web_page_actor{self}, number] { caf::anon_send(me, end_atom::value, number); });
  to->begin(page_stream_head());
  auto now = self->clock().now();
  auto& made = readers[number] = {principal, std::move(to), {}, now, now};
  tell_time(made);
  auto& which = views[principal];
  look(which, of);
  give_changes(made, which);
  ask(principal, which, of);
  if (!std::exchange(ticking, true)) {
    self->delayed_send(self, context.allowance.look, tick_atom::value);
  }
}

void web_page_state::give_changes(reader& which, const view& from) {
  if (which.to->unsent() > context.allowance.unsent) {
    return;
  }
  for (const auto& [name, piece] : from.pieces) {
    auto& given = which.given[name];
    if (piece.version > given) {
      given = piece.version;
      which.to->write(page_event(name, piece.text));
      which.last_word = self->clock().now();
    }
  }
}

/// Keeps a silent stream from looking dead, and lets the page tell how old something is.
void web_page_state::tell_time(reader& which) {
  which.last_word = self->clock().now();
  which.to->write(page_event("time", std::to_string(wall_time())));
}

void web_page_state::tick() {
  ticking = false;
  auto now = self->clock().now();
  for (auto& [principal, which] : views) {
    auto of = context.tenant(principal);
    bool read = std::any_of(readers.begin(), readers.end(), [&, &name = principal](auto& each) {
      return each.second.principal == name;
    });
    if (of && read) {
      look(which, *of);
      if (now - which.asked >= context.allowance.ask) {
        ask(principal, which, *of);
      }
    }
  }
  for (auto each = readers.begin(); each != readers.end();) {
    each = tick_reader(each->second) ? std::next(each) : readers.erase(each);
  }
  drop_idle_views();
  if (!readers.empty()) {
    ticking = true;
    self->delayed_send(self, context.allowance.look, tick_atom::value);
  }
}

/// False when it reads no more.
bool web_page_state::tick_reader(reader& which) {
  auto now = self->clock().now();
  auto found = views.find(which.principal);
  bool over = now - which.since >= context.allowance.longest || !context.tenant(which.principal);
  if (over || found == views.end()) {
    which.to->end();
    return false;
  }
  give_changes(which, found->second);
  if (now - which.last_word >= context.allowance.sign_of_life) {
    tell_time(which);
  }
  return !which.to->gone();
}

void web_page_state::drop_idle_views() {
  std::erase_if(views, [this](const auto& each) {
    const auto& [principal, which] = each;
    return which.asking == 0 && which.waiting.empty() &&
           std::none_of(readers.begin(), readers.end(), [&, &name = principal](const auto& reader) {
             return reader.second.principal == name;
           });
  });
}

} // namespace bulkhead
