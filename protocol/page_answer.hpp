#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http_messages.hpp"
#include "protocol/ledger_record.hpp"
#include "protocol/run_statistics.hpp"

namespace bulkhead {

/// A run as the page shows it while it goes on and after its end.
struct shown_run {
  std::string run;     ///< its id
  std::int64_t at = 0; ///< when it was asked for: milliseconds since 1970
  std::string client;  ///< name and version, as the client told them
  std::string client_version;
  std::vector<std::string> servers; ///< that it may call, raw names
  std::string session;              ///< see `session_name`; empty: none
  std::string stage = "queued";     ///< how far it is, for people; empty: it has ended
  std::uint64_t calls = 0;          ///< of tools, by now
  std::uint64_t written = 0;        ///< how often it was told what it wrote
  std::int64_t ended_at = 0;        ///< milliseconds since 1970; 0: it goes on
  std::string outcome;              ///< a run_status
  std::string error;                ///< an errc or the type of the exception; empty: none
  std::uint64_t duration_ms = 0;
  friend bool operator==(const shown_run&, const shown_run&) = default;
};

/// The answers of the web page. All but the files are JSON; whatever they are, browsers are told to
/// take them for nothing else, to keep no copy, to let no other site embed or read them, and, of
/// the page, to load and to run nothing that doesn't come from here.

/// A file of the page, by its name; 404 for an unknown one.
outgoing_answer page_file(std::string_view name);

/// Sends a browser from the page's root into its folder, whatever stands before both (a proxy's
/// prefix).
outgoing_answer page_moved();

outgoing_answer page_json(std::string body, std::uint32_t status = 200);

/// {"error":{"message":…}}; `retry_after`, in seconds, is left out when 0.
outgoing_answer page_refusal(std::uint32_t status, std::string_view message,
                             std::uint32_t retry_after = 0);

/// The head of a stream of server-sent events.
outgoing_answer page_stream_head();

/// One such event; `data` is JSON in one line.
std::string page_event(std::string_view name, std::string_view data);

/// The head of something that code made, of that name: to be saved, never to be shown as a page of
/// this server's.
outgoing_answer page_download_head(std::string_view name);

/// The texts below are JSON in one line.
std::string to_json(const shown_run& run);
/// {"running":[…],"ended":[…]}.
std::string runs_json(const std::vector<shown_run>& running, const std::vector<shown_run>& ended);
std::string to_json(const std::vector<run_minute>& minutes);
/// A record; with `texts` also the code or the arguments, as far as they are kept and up to 64 KiB.
std::string to_json(const ledger_run& run, bool texts);
std::string to_json(const ledger_call& call, bool texts);
/// {"kept":true,"kind":…,"records":[…],"more":…,"until":…}.
std::string ledger_json(const ledger_page& page, const ledger_query& query);
/// The same where no ledger is kept.
std::string no_ledger_json(const ledger_query& query);

/// Members of an object, in their order: names and JSON texts.
std::string json_object(const std::vector<std::pair<std::string_view, std::string>>& members);
std::string json_list(const std::vector<std::string>& texts);

} // namespace bulkhead
