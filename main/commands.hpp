#pragma once

#include "main/account.hpp"
#include "main/application.hpp"
#include "main/command_line.hpp"
#include "main/output.hpp"

namespace bulkhead {

/// The commands; each answers the process's exit status. `out` is the descriptor for what was asked
/// for: the process's own fd 1 leads to stderr, so that nothing else can get there.

/// The stdio server: until the client closes its end, or a signal.
int serve_stdio(application& app, stop_signal& stop, int in, int out);

/// `serve`: MCP over HTTP for several tenants, until a signal. Prints its address; without a
/// configuration also the one token. 2 when the configuration can't be used, 1 when it can't listen
/// or something failed.
int serve_http(const command_line& line, const settings& config, const account& who, int out);

/// `conformance-server`, for tests: MCP over HTTP on loopback until whoever started it closes its
/// end, or a signal. Prints its URL, then the token it wants, a line each.
int serve_conformance(application& app, stop_signal& stop, const command_line& line, int in,
                      int out);

/// `conformance-client`, for tests: does what a scenario of the conformance suite's wants of a
/// client (MCP_CONFORMANCE_CONTEXT). 0 unless it couldn't list tools or wasn't let in.
int drive_conformance(application& app, stop_signal& stop, const command_line& line);

/// `run`: `code` was read before root was given up. Output comes as it is written. The status is
/// the code's own; 124 for a timeout, 125 when no sandbox could be had, 130 when interrupted, 137
/// out of memory.
int run_file(application& app, stop_signal& stop, const command_line& line, std::string code,
             int out);

/// `doctor`: 0 when every constraint holds, 1 when one doesn't or there is no runtime; with --sweep
/// 0 when the sweep succeeded. 130 when interrupted.
int run_doctor(application& app, stop_signal& stop, const command_line& line, int out);

/// `servers`: 0 unless the configuration has errors or a server that was asked failed. 130 when
/// interrupted.
int show_servers(application& app, stop_signal& stop, const command_line& line, int out);

/// `ledger`: reads the file alone; nothing is started.
int show_ledger(const command_line& line, const settings& config, int out);

/// `approve --list` and `approve --revoke`: the same.
int show_approvals(const command_line& line, const settings& config, int out);

/// `approve SERVER/TOOL`: starts the server to see how the tool is defined. 130 when interrupted.
int approve_tool(application& app, stop_signal& stop, const command_line& line, int out);

/// `login`: gets tokens for a server by OAuth, and keeps them. 0 when it is done, 130 when
/// interrupted, else 1.
int log_in_to_server(application& app, stop_signal& stop, const command_line& line, int out);

/// `logout`: forgets them, and has the authorization server forget them.
int log_out_of_server(application& app, stop_signal& stop, const command_line& line, int out);

/// `token new|list|revoke|rotate`: changes the file alone; nothing is started. 0 when it is done; 2
/// for a call that can't be meant, else 1. A token that couldn't be stored is printed all the same,
/// with what to write by hand.
int run_token(const command_line& line, const settings& config, const account& who, int out);

/// `image build`: becomes the builder; comes back only with an error. Its scripts go to a folder
/// below `runtime_dir`.
int build_image(const command_line& line, const settings& config, const std::string& runtime_dir);

} // namespace bulkhead
