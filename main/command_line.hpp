#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "protocol/ledger_record.hpp"

namespace bulkhead {

/// What the user asked for.
struct command_line {
  enum class verb { stdio, run, doctor, servers, image_build, ledger, approve };
  verb what = verb::stdio;

  // run
  std::string file; ///< a path, or "-" for standard input
  std::vector<std::string> servers;
  std::optional<std::chrono::milliseconds> timeout;

  // image build
  bool pull = false;
  std::string image_reference;
  std::string profile; ///< one of image_profiles, or empty
  bool rebuild = false;

  // ledger
  ledger_query records;
  std::string since; ///< as it was typed
  bool csv = false;
  std::string export_file; ///< empty: standard output

  // approve
  std::string tool; ///< SERVER/TOOL
  bool list = false;
  bool revoke = false;

  // doctor, servers, run, ledger
  bool json = false;
  bool sweep = false;
  bool tools = false;

  std::string account = "bulkhead"; ///< what root becomes
};

/// Parses argv. Exits by itself for --help, --version (on `out`) and for errors (on stderr, status
/// 2).
command_line parse_command_line(int argc, char** argv, int out);

} // namespace bulkhead
