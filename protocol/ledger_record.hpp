#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead {

/// What the ledger keeps of code and arguments.
enum class ledger_mode : std::uint8_t {
  off,
  hashes, ///< their SHA-256 and size
  full,   ///< besides, the texts themselves, up to `ledger_text_limit` each
};

/// Longer texts are never stored, in bytes.
inline constexpr std::size_t ledger_text_limit = 65'536;

/// Code or arguments, as far as they are kept.
struct ledger_text {
  std::string sha256{}; ///< hex
  std::uint64_t bytes = 0;
  std::optional<std::string> text{}; ///< none: not asked for, or over the limit
  friend bool operator==(const ledger_text&, const ledger_text&) = default;
};

/// One run of code.
struct ledger_run {
  std::string run{};   ///< its id
  std::int64_t at = 0; ///< when it was asked for: milliseconds since 1970, UTC
  std::string owner{};
  std::string client{}; ///< name and version, as the client told them
  std::string client_version{};
  std::string session{}; ///< a name for the session, from which its handle can't be had
  ledger_text code{};
  std::vector<std::string> servers{}; ///< that it could call, raw names
  std::uint64_t calls = 0;            ///< tool calls, whatever became of them
  std::uint64_t duration_ms = 0;
  std::string outcome{}; ///< a run_status
  std::string error{};   ///< an errc, or the type of the exception; empty: none
  friend bool operator==(const ledger_run&, const ledger_run&) = default;
};

/// One tool call by code.
struct ledger_call {
  std::string run{};
  std::int64_t at = 0;
  std::string owner{};
  std::string server{}; ///< raw names; as the code gave them where there is no such thing
  std::string tool{};
  ledger_text arguments{};
  std::uint64_t result_bytes = 0;
  std::uint64_t duration_us = 0;
  std::string outcome{}; ///< "success", "tool_error" (the tool's own), or an errc
  std::string rule{};    ///< of policy that denied it, or asked a person
  friend bool operator==(const ledger_call&, const ledger_call&) = default;
};

/// Which records are wanted.
struct ledger_query {
  bool calls = false;      ///< else runs
  std::string owner = {};  ///< empty: of all
  std::string run = {};    ///< id or its beginning; empty: all
  std::string server = {}; ///< globs; empty: all
  std::string tool = {};
  std::string outcome = {};
  std::int64_t since = 0; ///< milliseconds since 1970
  std::uint64_t limit = 100;
  /// In some text of the record, whatever the case of the letters A to Z: a run's client, session,
  /// servers, error or code, a call's server, tool, rule or arguments; empty: all.
  std::string text = {};
  std::int64_t until = 0; ///< milliseconds since 1970, what is later doesn't fit; 0: all
  std::uint64_t skip = 0; ///< so many of the newest that fit are left out
  friend bool operator==(const ledger_query&, const ledger_query&) = default;
};

/// The newest first.
struct ledger_page {
  std::vector<ledger_run> runs;
  std::vector<ledger_call> calls;
  bool more = false; ///< there are others that fit
  friend bool operator==(const ledger_page&, const ledger_page&) = default;
};

/// The text stays within the process.
template <class I>
auto inspect(I& f, ledger_text& x) {
  return f(x.sha256, x.bytes);
}
template <class I>
auto inspect(I& f, ledger_run& x) {
  return f(x.run, x.at, x.owner, x.client, x.client_version, x.session, x.code, x.servers, x.calls,
           x.duration_ms, x.outcome, x.error);
}
template <class I>
auto inspect(I& f, ledger_call& x) {
  return f(x.run, x.at, x.owner, x.server, x.tool, x.arguments, x.result_bytes, x.duration_us,
           x.outcome, x.rule);
}
template <class I>
auto inspect(I& f, ledger_query& x) {
  return f(x.calls, x.owner, x.run, x.server, x.tool, x.outcome, x.since, x.limit, x.text, x.until,
           x.skip);
}
template <class I>
auto inspect(I& f, ledger_page& x) {
  return f(x.runs, x.calls, x.more);
}

} // namespace bulkhead
