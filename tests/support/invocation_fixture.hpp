#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/invocation.hpp"
#include "actors/python_sessions.hpp"
#include "actors/tool_library.hpp"
#include "tests/support/actor_config.hpp"
#include "tests/support/invocation_world.hpp"
#include "tests/support/session_world.hpp"

// Its macros clash with everything else.
#include "caf/test/dsl.hpp"

namespace bulkhead::testing {

using nlohmann::json;
using namespace std::chrono_literals;

inline tool_document tool_named(const std::string& name, const std::string& alias,
                                const std::string& description = "a tool") {
  tool_document tool;
  tool.name = name;
  tool.alias = alias;
  tool.description = description;
  return tool;
}

/// A run among scripted servers: `files` (asked for), `spare` (allowed, not asked for) and `vault`
/// (denied by policy). `files` has read-file, write-file and delete-all, of which policy denies the
/// last.
struct invocation_fixture : test_coordinator_fixture<actor_config> {
  invocation_fixture() {
    catalogue->rules.deny = {"vault", "files/delete-all"};
    for (const auto* name : {"files", "spare", "vault"}) {
      add_server(name, name);
    }
    auto documents = std::make_shared<server_documents>();
    documents->server = documents->alias = "files";
    documents->tools = {tool_named("read-file", "read_file", "reads some text"),
                        tool_named("write-file", "write_file", "writes some text"),
                        tool_named("delete-all", "delete_all", "deletes all text")};
    files->documents.answer = documents_ptr{documents};
    files->call.answer = R"({"content":[]})";
    registry->catalogue.answer = catalogue_ptr{catalogue};
    env->next_serial = [serial = std::uint64_t{100}]() mutable { return ++serial; };
    request.id = "run-7";
    request.code = "print(1)";
    request.servers = {"files"};
    request.timeout = 30s;
    registry_actor = sys.spawn(scripted_registry, registry);
    library = sys.spawn(tool_library, env, std::string{});
    box = sys.spawn(scripted_sandbox, sandbox);
    sessions_actor = sys.spawn(recording_sessions, sessions);
  }

  ~invocation_fixture() override {
    std::vector<caf::actor> all = {caf::actor_cast<caf::actor>(run),
                                   caf::actor_cast<caf::actor>(box),
                                   caf::actor_cast<caf::actor>(asker),
                                   caf::actor_cast<caf::actor>(library),
                                   caf::actor_cast<caf::actor>(store),
                                   caf::actor_cast<caf::actor>(sessions_actor),
                                   caf::actor_cast<caf::actor>(registry_actor),
                                   caf::actor_cast<caf::actor>(request.output)};
    for (const auto& [name, client] : registry->clients) {
      all.push_back(caf::actor_cast<caf::actor>(client));
    }
    for (const auto& actor : all) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
    consume_messages();
  }

  std::shared_ptr<client_script> add_server(const std::string& name, const std::string& alias) {
    server_entry entry;
    entry.name = name;
    entry.alias = alias;
    entry.description = "the server " + name;
    catalogue->servers.push_back(entry);
    auto script = std::make_shared<client_script>();
    auto documents = std::make_shared<server_documents>();
    documents->server = name;
    documents->alias = alias;
    script->documents.answer = documents_ptr{documents};
    servers[name] = script;
    registry->clients[name] = sys.spawn(scripted_client, script);
    if (name == "files") {
      files = script;
    }
    return script;
  }

  /// Lets the run's log be read from `log_text`.
  void keep_log() {
    env->log = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_text));
  }

  /// How often the log has this text.
  std::size_t logged(const std::string& text) const {
    std::size_t count = 0;
    auto all = log_text.str();
    for (auto at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) {
      ++count;
    }
    return count;
  }

  /// Asks for the run's answer; change `request` and the scripts before.
  void start() {
    auto make_sandbox = [this](bool booted_will_do) {
      booted_would_do.push_back(booted_will_do);
      return ++sandboxes == 1 && first_box ? first_box : box;
    };
    run = sys.spawn(invocation,
                    invocation_context{env, registry_actor, library,
                                       [this] { return sessions_actor; }, make_sandbox, store,
                                       configured, ledger, approvals},
                    request);
    run->attach_functor([flag = terminated] { *flag = true; });
    asker = sys.spawn([this](caf::event_based_actor* asking) {
      asking->request(run, caf::infinite, run_atom::value)
          .then([this](const run_answer& value) { answers.push_back(value); },
                [this](const caf::error& reason) { failures.push_back(from_caf(reason, "run")); });
    });
    consume_messages();
  }

  /// Makes the test answer what is asked about tools; before `start`.
  void script_library(const std::shared_ptr<library_script>& script) {
    caf::anon_send_exit(library, caf::exit_reason::kill);
    library = sys.spawn(scripted_library, script);
  }

  /// Makes what is configured another while a run goes on; `configured` must be there.
  template <class Change>
  void reconfigure(Change change) {
    auto next = std::make_shared<server_catalogue>(*catalogue);
    change(*next);
    configured->set(next);
  }

  /// As far as running code.
  void start_code() {
    start();
    tell(sandbox_up{"3.13.5"});
  }

  template <class Event>
  void tell(Event event) {
    caf::anon_send(run, std::move(event));
    consume_messages();
  }

  void cancel() {
    caf::anon_send(run, cancel_atom::value);
    consume_messages();
  }

  void call(std::uint64_t id, const std::string& server, const std::string& tool,
            const std::string& arguments = "{}") {
    guest_call what;
    what.id = id;
    what.kind = guest_call_kind::call_tool;
    what.server = server;
    what.tool = tool;
    what.arguments = arguments;
    tell(what);
  }

  void ask(std::uint64_t id, guest_call_kind kind, const std::string& server = "",
           const std::string& text = "") {
    guest_call what;
    what.id = id;
    what.kind = kind;
    what.server = server;
    (kind == guest_call_kind::search_tool_docs ? what.query : what.tool) = text;
    tell(what);
  }

  /// Lets time pass, in steps, so that what one timeout causes gets its turn.
  void pass(std::chrono::milliseconds time) {
    constexpr auto step = 500ms;
    for (; time > 0ms; time -= step) {
      advance_time(std::min<std::chrono::milliseconds>(time, step));
      consume_messages();
    }
  }

  template <class T>
  void open(gate<T>& which) {
    which.held = false;
    which.release();
    consume_messages();
  }

  /// The answer to a guest's call, null if there is none or more than one.
  json response(std::uint64_t id) const {
    std::vector<json> found;
    for (const auto& [call, payload] : sandbox->responses) {
      if (call == id) {
        found.push_back(json::parse(payload));
      }
    }
    return found.size() == 1 ? found[0] : json{};
  }

  /// Was the call refused once with this code and a text that holds all of `texts`?
  bool refused(std::uint64_t id, errc code, const std::vector<std::string>& texts = {}) const {
    int times = 0;
    bool right = true;
    for (const auto& [call, reason] : sandbox->refusals) {
      if (call != id) {
        continue;
      }
      ++times;
      right = right && reason.code == code;
      for (const auto& text : texts) {
        right = right && reason.message.find(text) != std::string::npos;
      }
      CAF_MESSAGE("refused: " << std::string{to_string(reason.code)} << ": " << reason.message);
    }
    return times == 1 && right;
  }

  bool unanswered(std::uint64_t id) const {
    auto is_it = [id](const auto& entry) { return entry.first == id; };
    return std::none_of(sandbox->responses.begin(), sandbox->responses.end(), is_it) &&
           std::none_of(sandbox->refusals.begin(), sandbox->refusals.end(), is_it);
  }

  /// Is there exactly one answer, with this status, and nothing left?
  bool over(run_status status) const {
    bool right = answered(status) && sandbox->ends == sandboxes;
    if (!right) {
      CAF_MESSAGE("answers: " << answers.size() << ", failures: " << failures.size() << ", status: "
                              << (answers.empty() ? std::string{"none"}
                                                  : std::string{to_string(answers[0].status)})
                              << ", ends: " << sandbox->ends);
    }
    return right;
  }

  bool answered(run_status status) const {
    return answers.size() == 1 && failures.empty() && answers[0].status == status && *terminated;
  }

  /// The one answer's failure; internal if there is none.
  errc failure() const {
    return answers.size() == 1 && answers[0].failure ? answers[0].failure->code : errc::internal;
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<server_catalogue> catalogue = std::make_shared<server_catalogue>();
  std::shared_ptr<current_catalogue> configured; ///< null: nothing changes
  std::shared_ptr<registry_script> registry = std::make_shared<registry_script>();
  std::shared_ptr<sandbox_log> sandbox = std::make_shared<sandbox_log>();
  std::shared_ptr<sessions_log> sessions = std::make_shared<sessions_log>();
  std::map<std::string, std::shared_ptr<client_script>> servers;
  std::shared_ptr<client_script> files;
  run_request request;
  client_registry_actor registry_actor;
  tool_library_actor library;
  artifact_store_actor store; ///< null: nothing is kept
  ledger_writer ledger{};
  std::function<approval_store_actor()> approvals{}; ///< null: nothing is approved
  python_sessions_actor sessions_actor;
  sandbox_actor box;
  sandbox_actor first_box; ///< in its place for the first request, when set
  std::vector<bool> booted_would_do;
  invocation_impl_actor run;
  caf::actor asker;
  int sandboxes = 0;
  std::shared_ptr<bool> terminated = std::make_shared<bool>(false);
  std::vector<run_answer> answers;
  std::vector<error> failures;
  std::ostringstream log_text;
};

} // namespace bulkhead::testing
