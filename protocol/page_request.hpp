#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "protocol/http_messages.hpp"
#include "protocol/ledger_record.hpp"
#include "protocol/resource_uri.hpp"

namespace bulkhead {

/// The web page's own part of the listener: files that hold nothing and are public, and, below
/// `page_api`, what belongs to the tenant of the token.
inline constexpr std::string_view page_root = "/ui";
inline constexpr std::string_view page_folder = "/ui/";
inline constexpr std::string_view page_api = "/ui/api/";

/// Does a request's target lead to the page?
bool is_page_target(std::string_view target);

/// What a request to the page wants.
enum class page_wish : std::uint8_t {
  root,     ///< the page under a name whose relative links would miss it
  file,     ///< a file of the page
  snapshot, ///< GET api/state: all that goes on, once
  events,   ///< GET api/events: all that goes on, and what changes, as server-sent events
  ledger, ///< GET api/ledger?kind=runs|calls&text=…&server=…&tool=…&outcome=…&since=…&until=…
          ///< &skip=…&limit=…
  run,    ///< GET api/runs/ID: what is known of one run
  cancel, ///< POST api/runs/ID/cancel
  thing,  ///< GET api/artifacts/HANDLE/NAME, api/outputs/HANDLE/stdout|stderr: to be saved
};

struct page_request {
  page_wish wish = page_wish::root;
  std::string name;   ///< of a file
  std::string run;    ///< its id
  resource_uri what;  ///< of a thing
  ledger_query query; ///< its owner is for whoever asks the ledger to fill in
  friend bool operator==(const page_request&, const page_request&) = default;
};

/// Reads the target of a request; `now`, in milliseconds since 1970, is what times in it are
/// relative to. Refuses: what there isn't (404), another method than it has (405), a query that
/// can't be understood (400), a request that a page of another site makes, as browsers tell it
/// (403; Fetch Metadata, `Sec-Fetch-Site`).
tl::expected<page_request, outgoing_answer> read_page_request(const incoming_request& request,
                                                              std::int64_t now);

} // namespace bulkhead
