#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/environment.hpp"
#include "actors/http_front_end.hpp"
#include "actors/interfaces.hpp"
#include "actors/run_book.hpp"
#include "protocol/http_rules.hpp"
#include "protocol/page_request.hpp"

namespace bulkhead {

/// All who look at the web page.
using web_page_actor = caf::typed_actor<
    /// A request for the page came (the I/O thread sends this).
    caf::reacts_to<http_arrival>,
    /// Who read the events under that number is gone (the I/O thread sends this).
    caf::reacts_to<end_atom, std::uint64_t>,
    /// It is time to look for changes.
    caf::reacts_to<tick_atom>,
    /// The download of that number may have room for more.
    caf::reacts_to<tick_atom, std::uint64_t>,
    /// Takes no more requests and ends all streams; answers when that is done.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// What a tenant's engine offers to the page.
struct page_context {
  environment_ptr env;
  std::string owner = "local";    ///< of the tenant's runs, sessions and records
  std::shared_ptr<run_book> book; ///< that the tenant's sessions write; not null
  std::function<catalogue_ptr()> catalogue;
  std::function<client_registry_actor()> registry;
  std::function<python_sessions_actor()> sessions;
  std::function<artifact_store_actor()> store;
  std::function<ledger_actor()> ledger;         ///< may give null: none is kept
  std::function<std::size_t()> ready_sandboxes; ///< that wait booted for a run
  /// Of tools, that each run which goes on has made by now, by its id; null: nobody counts.
  std::function<std::map<std::string, std::uint64_t>()> calls{};
};
using page_context_ptr = std::shared_ptr<const page_context>;

/// What those who look may cost.
struct page_allowance {
  std::size_t readers = 8;              ///< of the events, with one token's tenant…
  std::size_t all_readers = 64;         ///< … and in all
  std::size_t requests = 16;            ///< of one tenant that are worked on at once
  std::size_t shown_runs = 50;          ///< of those that go on, and of those that ended
  std::size_t unsent = 256 * kibibyte;  ///< bytes; a reader with more gets nothing new for now
  std::chrono::milliseconds look{500};  ///< between two looks for changes
  std::chrono::milliseconds ask{2'000}; ///< between two questions to other actors
  std::chrono::seconds sign_of_life{15};
  /// Then a stream ends and its reader comes back, with a token that is checked again.
  std::chrono::seconds longest{60};
};

struct web_page_context {
  environment_ptr env;
  /// What the principal sees, as it is when asked; null: nothing.
  std::function<page_context_ptr(const std::string& principal)> tenant;
  /// Counts a request of a principal, and may put it off. Null: none is.
  std::function<std::optional<too_soon>(const std::string& principal)> count_request{};
  std::string mcp = "../mcp"; ///< where MCP is, relative to the page
  page_allowance allowance{};
};

/// Answers requests for the page, each from what belongs to its principal's tenant alone. While
/// somebody reads the events, it looks for changes and sends the pieces that are others now.
struct web_page_state {
  explicit web_page_state(web_page_actor::pointer self);
  web_page_actor::behavior_type make_behavior();

  using time_point = std::chrono::steady_clock::time_point;

  /// A piece of what goes on, JSON text.
  struct piece {
    std::string text;
    std::uint64_t version = 0;
  };

  /// What there is to see of one principal's tenant.
  struct view {
    std::map<std::string, piece> pieces; ///< by name
    std::uint64_t last_version = 0;
    std::uint64_t book_seen = 0; ///< its changes at the last look
    bool book_read = false;
    std::uint32_t asking = 0; ///< other actors that have yet to answer
    time_point asked;
    std::vector<io::http_reply_ptr> waiting; ///< for a snapshot
  };

  /// Who reads the events.
  struct reader {
    std::string principal;
    io::http_reply_ptr to;
    std::map<std::string, std::uint64_t> given; ///< versions of pieces
    time_point since;
    time_point last_word;
  };

  /// Something that is sent in parts.
  struct download {
    std::string principal;
    page_context_ptr from;
    resource_uri what; ///< its offset is where the next part begins
    io::http_reply_ptr to;
    bool begun = false;
  };

  // Requests (web_page.cpp).
  void take(http_arrival& arrival);
  void dispatch(const page_request& wanted, const std::string& principal,
                const page_context_ptr& of, const io::http_reply_ptr& to);
  void cancel(const page_context& of, const std::string& run, io::http_reply& to) const;
  bool begin_work(const std::string& principal, io::http_reply& to);
  void end_work(const std::string& principal);
  caf::ok_atom stop();
  std::int64_t wall_time() const;

  // What goes on (web_page_view.cpp).
  void give_snapshot(const std::string& principal, const page_context& of, io::http_reply_ptr to);
  void add_reader(const std::string& principal, const page_context& of, io::http_reply_ptr to);
  void look(view& into, const page_context& of) const;
  void ask(const std::string& principal, view& into, const page_context& of);
  void asked(const std::string& principal, const std::string& name, std::string text);
  void give_changes(reader& which, const view& from);
  void tell_time(reader& which);
  void tick();
  bool tick_reader(reader& which);
  void drop_idle_views();

  // What is kept (web_page_reads.cpp).
  void read_ledger(const std::string& principal, const page_context& of, ledger_query query,
                   io::http_reply_ptr to);
  void read_run(const std::string& principal, const page_context& of, const std::string& run,
                const io::http_reply_ptr& to);
  void begin_download(const std::string& principal, const page_context_ptr& of,
                      const resource_uri& what, io::http_reply_ptr to);
  void next_part(std::uint64_t number);
  void take_part(std::uint64_t number, resource_part part);
  void end_download(std::uint64_t number);

  web_page_actor::pointer self;
  web_page_context context;
  std::map<std::string, view> views;           ///< by principal
  std::map<std::uint64_t, reader> readers;     ///< by a number of their own
  std::map<std::uint64_t, download> downloads; ///< likewise
  std::map<std::string, std::size_t> work;     ///< requests under way, by principal
  std::uint64_t last_number = 0;
  bool ticking = false;
  bool is_stopping = false;

  static inline const char* name = "web-page";
};

web_page_actor::behavior_type web_page(web_page_actor::stateful_pointer<web_page_state> self,
                                       web_page_context context);

/// The page's part of what a listener has (see http_rules): its files are public, the rest needs a
/// token.
std::vector<http_page> web_pages();

/// What a listener calls with each request for the page (see `is_page_target`).
std::function<void(incoming_request, memory_budget::share, io::http_reply_ptr)>
page_requests_to(const web_page_actor& to);

} // namespace bulkhead
