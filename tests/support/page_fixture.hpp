#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/errors.hpp"
#include "actors/web_page.hpp"
#include "tests/support/http_fixture.hpp"

namespace bulkhead::testing {

/// One tenant's services as the page sees them. Only for the deterministic scheduler.
struct page_tenant {
  std::shared_ptr<run_book> book;
  std::vector<client_status> servers;
  std::vector<session_status> sessions;
  ledger_page records;
  std::vector<ledger_query> queries;
  std::map<std::string, std::string> artifacts; ///< by handle and name
  std::size_t part = 10;                        ///< bytes of an artifact that one read gives
  std::size_t reads = 0;
  std::size_t most_reads = 1'000; ///< then the artifact is gone
  std::size_t asked = 0;          ///< how often the registry was
  std::size_t ready = 0;
  std::map<std::string, std::uint64_t> calls;
  client_registry_actor registry;
  python_sessions_actor sessions_actor;
  artifact_store_actor store;
  ledger_actor ledger;
};
using page_tenant_ptr = std::shared_ptr<page_tenant>;

inline client_registry_actor::behavior_type page_registry(client_registry_actor::pointer,
                                                          page_tenant_ptr of) {
  return {
      [](catalogue_atom) { return catalogue_ptr{}; },
      [](client_atom, const std::string&) -> caf::result<mcp_client_actor> {
        return caf::sec::unexpected_message;
      },
      [](catalogue_atom, const catalogue_ptr&) {},
      [of](status_atom) {
        ++of->asked;
        return of->servers;
      },
      [](stop_atom) { return caf::ok_atom::value; },
  };
}

inline python_sessions_actor::behavior_type page_sessions(python_sessions_actor::pointer,
                                                          page_tenant_ptr of) {
  return {
      [](lease_atom, const session_claim&) -> caf::result<session_lease> {
        return caf::sec::unexpected_message;
      },
      [](taken_atom) {},
      [](release_atom, const std::string&, std::uint64_t, const sandbox_actor&) {},
      [of](status_atom) { return of->sessions; },
  };
}

inline artifact_store_actor::behavior_type page_store(artifact_store_actor::pointer,
                                                      page_tenant_ptr of) {
  return {
      [](append_atom, const stored_run&, stream_id, const std::string&) { return kept_bytes{}; },
      [](save_atom, const stored_run&, const guest_artifact&) { return std::string{}; },
      [](seal_atom, const stored_run&, std::uint64_t, std::uint64_t) {
        return caf::ok_atom::value;
      },
      [of](read_atom, const resource_range& range) -> caf::result<resource_part> {
        const auto& what = range.what;
        auto found = of->artifacts.find(range.owner + "/" + what.handle + "/" + what.artifact);
        if (found == of->artifacts.end()) {
          return to_caf(errc::not_found, "there is no such thing");
        }
        resource_part part;
        part.kept = part.total = found->second.size();
        part.bytes = ++of->reads > of->most_reads ? std::string{}
                                                  : found->second.substr(what.offset, of->part);
        return part;
      },
      [](list_atom, const std::string&, const std::string&) { return resource_page{}; },
  };
}

inline ledger_actor::behavior_type page_ledger(ledger_actor::pointer, page_tenant_ptr of) {
  return {
      [](record_atom, const ledger_run&) {},
      [](record_atom, const ledger_call&) {},
      [of](read_atom, const ledger_query& query) {
        of->queries.push_back(query);
        ledger_page page;
        page.calls = query.calls ? of->records.calls : std::vector<ledger_call>{};
        page.runs = query.calls ? std::vector<ledger_run>{} : of->records.runs;
        return page;
      },
      [](stop_atom) { return caf::ok_atom::value; },
  };
}

/// A reply whose client takes nothing until the test says so.
class stuck_reply : public recording_reply {
public:
  stuck_reply(answer_ptr to, std::shared_ptr<std::size_t> waiting)
      : recording_reply{std::move(to)}, waiting_{std::move(waiting)} {}
  std::size_t unsent() const override { return *waiting_; }

private:
  std::shared_ptr<std::size_t> waiting_;
};

/// The page with two tenants, ali and eve.
struct page_fixture : test_coordinator_fixture<http_config> {
  page_fixture() {
    ali = make_tenant();
    eve = make_tenant();
    begin({});
  }

  ~page_fixture() override {
    caf::anon_send_exit(page, caf::exit_reason::kill);
    for (const auto& each : {ali, eve}) {
      caf::anon_send_exit(each->registry, caf::exit_reason::kill);
      caf::anon_send_exit(each->sessions_actor, caf::exit_reason::kill);
      caf::anon_send_exit(each->store, caf::exit_reason::kill);
      caf::anon_send_exit(each->ledger, caf::exit_reason::kill);
    }
    consume_messages();
  }

  page_tenant_ptr make_tenant() {
    auto made = std::make_shared<page_tenant>();
    made->book = std::make_shared<run_book>(env->budget);
    made->registry = sys.spawn(page_registry, made);
    made->sessions_actor = sys.spawn(page_sessions, made);
    made->store = sys.spawn(page_store, made);
    made->ledger = sys.spawn(page_ledger, made);
    return made;
  }

  page_context_ptr context_of(const std::string& principal) {
    if (principal != "ali" && principal != "eve") {
      return nullptr;
    }
    auto of = principal == "ali" ? ali : eve;
    auto made = std::make_shared<page_context>();
    made->env = env;
    made->owner = principal;
    made->book = of->book;
    made->catalogue = [this] { return catalogue; };
    made->registry = [of] { return of->registry; };
    made->sessions = [of] { return of->sessions_actor; };
    made->store = [of] { return of->store; };
    made->ledger = [of] { return of->ledger; };
    made->ready_sandboxes = [of] { return of->ready; };
    made->calls = [of] { return of->calls; };
    return made;
  }

  void begin(page_allowance allowance) {
    if (page) {
      caf::anon_send_exit(page, caf::exit_reason::kill);
    }
    web_page_context context;
    context.env = env;
    context.allowance = allowance;
    context.tenant = [this](const std::string& principal) {
      return gone ? nullptr : context_of(principal);
    };
    page = sys.spawn(web_page, std::move(context));
    consume_messages();
  }

  answer_ptr ask(const std::string& target, const std::string& method = "GET",
                 const std::string& principal = "ali", std::shared_ptr<std::size_t> stuck = {}) {
    auto answer = std::make_shared<recorded_answer>();
    auto reply = stuck ? std::make_shared<stuck_reply>(answer, stuck)
                       : std::make_shared<recording_reply>(answer);
    page_requests_to(page)({method, target, {}, {}, principal}, {}, std::move(reply));
    consume_messages();
    return answer;
  }

  void pass(std::chrono::milliseconds time) {
    for (auto left = time; left.count() > 0; left -= std::chrono::milliseconds{500}) {
      advance_time(std::chrono::milliseconds{500});
      consume_messages();
    }
  }

  /// The newest piece of that name on a stream; null when there is none.
  static json piece(const answer_ptr& from, const std::string& name) {
    auto head = "event: " + name + "\ndata: ";
    auto at = from->stream.rfind(head);
    if (at == std::string::npos) {
      return nullptr;
    }
    at += head.size();
    return json::parse(from->stream.substr(at, from->stream.find('\n', at) - at), nullptr, false);
  }

  static std::size_t pieces(const answer_ptr& from, const std::string& name) {
    std::size_t count = 0;
    auto head = "event: " + name + "\n";
    for (auto at = from->stream.find(head); at != std::string::npos;
         at = from->stream.find(head, at + 1)) {
      ++count;
    }
    return count;
  }

  static std::string id_of(char digit) { return std::string(32, digit); }

  static shown_run a_run(char digit) {
    shown_run run;
    run.run = id_of(digit);
    run.client = "agent";
    return run;
  }

  static run_answer answer_with(std::string out) {
    run_answer answer;
    answer.exit_code = 0;
    answer.out = {std::move(out), {}, 0, 0};
    answer.out.total = answer.out.head.size();
    return answer;
  }

  std::shared_ptr<environment> env = test_environment();
  catalogue_ptr catalogue = std::make_shared<server_catalogue>();
  page_tenant_ptr ali;
  page_tenant_ptr eve;
  bool gone = false; ///< no tenant is there any more
  web_page_actor page;
};

} // namespace bulkhead::testing
