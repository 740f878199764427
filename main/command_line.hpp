#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead {

/// What the user asked for.
struct command_line {
  enum class verb { stdio, run, doctor, servers, servers_import, image_build };
  verb what = verb::stdio;

  // run, servers import
  std::string file; ///< a path, or "-" for standard input

  // run
  std::vector<std::string> servers;
  std::optional<std::chrono::milliseconds> timeout;

  // servers import
  std::string import_host; ///< the name of an mcp_host
  std::string project;     ///< a folder, or empty
  bool link = false;
  bool copy = false; ///< which is what happens without `link`
  bool yes = false;
  bool dry_run = false;

  // image build
  bool pull = false;
  std::string image_reference;
  std::string profile; ///< one of image_profiles, or empty
  bool rebuild = false;

  // doctor, servers, run
  bool json = false;
  bool sweep = false;
  bool tools = false;

  std::string account = "bulkhead"; ///< what root becomes
};

/// Parses argv. Exits by itself for --help, --version (on `out`) and for errors (on stderr, status
/// 2).
command_line parse_command_line(int argc, char** argv, int out);

} // namespace bulkhead
