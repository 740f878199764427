#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/ledger_record.hpp"

namespace bulkhead {

/// What the user asked for.
struct command_line {
  enum class verb {
    stdio,
    serve,
    run,
    doctor,
    servers,
    servers_import,
    ledger,
    approve,
    login,
    logout,
    image_build,
    token_new,
    token_list,
    token_revoke,
    token_rotate,
    conformance_server,
    conformance_client,
  };
  verb what = verb::stdio;

  // serve
  std::string listen; ///< HOST:PORT, in place of what the configuration says

  // run, servers import
  std::string file; ///< a path, or "-" for standard input

  // run
  std::vector<std::string> servers;
  std::optional<std::chrono::milliseconds> timeout;

  // login, logout
  std::string server; ///< a name, or a URL
  bool browser = true;
  std::string scope; ///< parted by spaces
  std::string client_id;
  std::string client_document; ///< the URL of a client-id metadata document
  std::uint16_t callback_port = 0;
  bool private_network = false;
  std::chrono::seconds login_timeout{300};

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

  // ledger
  ledger_query records;
  std::string since; ///< as it was typed
  bool csv = false;
  std::string export_file; ///< empty: standard output

  // approve
  std::string tool; ///< SERVER/TOOL
  bool list = false;
  bool revoke = false;

  // serve, token, and what looks at a tenant (ledger, servers)
  std::string serve_config; ///< the path of bulkhead.toml, absolute; empty: where it usually is
  std::string tenant;       ///< empty where it looks at none
  std::string token_id;
  std::string expires; ///< as it was typed
  std::string grace;   ///< as it was typed
  bool add_tenant = false;

  // doctor, servers, run, ledger
  bool json = false;
  bool sweep = false;
  bool tools = false;

  // servers
  bool stubs = false;
  std::string only_server; ///< raw name or alias; empty: all

  // conformance-server
  enum class http_access {
    token,    ///< who has the token that is printed
    fixtures, ///< everybody; there are things to serve that only the conformance suite wants
    no_runs,  ///< everybody, but no code is run
  };
  http_access access = http_access::token;
  std::uint16_t port = 0; ///< of the loopback address; 0: one that is free

  std::string account = "bulkhead"; ///< what root becomes
};

/// Parses argv. Exits by itself for --help, --version (on `out`) and for errors (on stderr, status
/// 2).
command_line parse_command_line(int argc, char** argv, int out);

} // namespace bulkhead
