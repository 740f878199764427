#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>

#include "actors/messages.hpp"
#include "protocol/artifact.hpp"
#include "protocol/container_spec.hpp"
#include "protocol/error.hpp"
#include "protocol/ledger_record.hpp"
#include "protocol/run_answer.hpp"
#include "protocol/server_config.hpp"
#include "protocol/tool_approval.hpp"
#include "protocol/tool_documents.hpp"
#include "protocol/trace_context.hpp"
#include "protocol/wire.hpp"

/// Every typed actor interface of Bulkhead, a sentence a message. Requests answer or fail with a
/// `bulkhead::errc` (see actors/errors.hpp); none may be sent with an infinite timeout.

// Local only: they never leave the process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::documents_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::catalogue_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::tool_shelf_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::tool_question)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::guest_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::run_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::resource_range)

namespace bulkhead {
struct session_lease;
} // namespace bulkhead
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::session_lease)

CAF_BEGIN_TYPE_ID_BLOCK(bulkhead, caf::first_custom_type_id)

CAF_ADD_TYPE_ID(bulkhead, (bulkhead::errc))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::error))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::stream_id))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::guest_output))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::guest_call))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::guest_cancel))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::guest_artifact))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::guest_done))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::refused_call))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::run_answer))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::deadline))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::process_spec))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::child_started))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::child_output))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::child_written))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::child_exited))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::finished_process))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::socket_request))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::socket_answer))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::stream_request))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::sandbox_up))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::sandbox_lost))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::sandbox_run))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::session_claim))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::container_request))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::container_handle))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::exit_verdict))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::constraint_row))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::runtime_report))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::sweep_report))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::instance_folders))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::run_progress))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::http_request))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::http_response))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::http_head))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::http_body))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::http_end))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::tool_progress))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::server_question))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::client_question))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::ledger_run))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::ledger_call))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::ledger_query))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::ledger_page))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::tool_identity))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::trace_context))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::approval_state))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::client_status))
CAF_ADD_TYPE_ID(bulkhead, (std::vector<bulkhead::client_status>))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::session_status))
CAF_ADD_TYPE_ID(bulkhead, (std::vector<bulkhead::session_status>))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::documents_ptr))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::catalogue_ptr))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::tool_shelf_ptr))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::tool_question))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::stored_run))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::kept_bytes))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::resource_range))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::resource_part))
CAF_ADD_TYPE_ID(bulkhead, (bulkhead::resource_page))

CAF_ADD_ATOM(bulkhead, bulkhead, spawn_atom, "spawn")
CAF_ADD_ATOM(bulkhead, bulkhead, write_atom, "write")
CAF_ADD_ATOM(bulkhead, bulkhead, close_input_atom, "closeInput")
CAF_ADD_ATOM(bulkhead, bulkhead, signal_atom, "signal")
CAF_ADD_ATOM(bulkhead, bulkhead, credit_atom, "credit")
CAF_ADD_ATOM(bulkhead, bulkhead, command_atom, "command")
CAF_ADD_ATOM(bulkhead, bulkhead, attach_atom, "attach")
CAF_ADD_ATOM(bulkhead, bulkhead, kill_marked_atom, "killMarked")
CAF_ADD_ATOM(bulkhead, bulkhead, boot_atom, "boot")
CAF_ADD_ATOM(bulkhead, bulkhead, execute_atom, "execute")
CAF_ADD_ATOM(bulkhead, bulkhead, respond_atom, "respond")
CAF_ADD_ATOM(bulkhead, bulkhead, refuse_atom, "refuse")
CAF_ADD_ATOM(bulkhead, bulkhead, interrupt_atom, "interrupt")
CAF_ADD_ATOM(bulkhead, bulkhead, end_atom, "end")
CAF_ADD_ATOM(bulkhead, bulkhead, ensure_atom, "ensureUp")
CAF_ADD_ATOM(bulkhead, bulkhead, probe_atom, "probe")
CAF_ADD_ATOM(bulkhead, bulkhead, create_atom, "create")
CAF_ADD_ATOM(bulkhead, bulkhead, confine_atom, "confine")
CAF_ADD_ATOM(bulkhead, bulkhead, classify_atom, "classify")
CAF_ADD_ATOM(bulkhead, bulkhead, destroy_atom, "destroy")
CAF_ADD_ATOM(bulkhead, bulkhead, sweep_atom, "sweep")
CAF_ADD_ATOM(bulkhead, bulkhead, prepare_atom, "prepare")
CAF_ADD_ATOM(bulkhead, bulkhead, grant_atom, "grant")
CAF_ADD_ATOM(bulkhead, bulkhead, run_folder_atom, "runFolder")
CAF_ADD_ATOM(bulkhead, bulkhead, discard_atom, "discard")
CAF_ADD_ATOM(bulkhead, bulkhead, documents_atom, "documents")
CAF_ADD_ATOM(bulkhead, bulkhead, call_atom, "call")
CAF_ADD_ATOM(bulkhead, bulkhead, cancel_atom, "cancel")
CAF_ADD_ATOM(bulkhead, bulkhead, status_atom, "status")
CAF_ADD_ATOM(bulkhead, bulkhead, stop_atom, "stop")
CAF_ADD_ATOM(bulkhead, bulkhead, catalogue_atom, "catalogue")
CAF_ADD_ATOM(bulkhead, bulkhead, client_atom, "client")
CAF_ADD_ATOM(bulkhead, bulkhead, admit_atom, "admit")
CAF_ADD_ATOM(bulkhead, bulkhead, release_atom, "release")
CAF_ADD_ATOM(bulkhead, bulkhead, lease_atom, "lease")
CAF_ADD_ATOM(bulkhead, bulkhead, run_atom, "run")
CAF_ADD_ATOM(bulkhead, bulkhead, message_atom, "message")
CAF_ADD_ATOM(bulkhead, bulkhead, line_atom, "line")
CAF_ADD_ATOM(bulkhead, bulkhead, input_end_atom, "inputEnd")
CAF_ADD_ATOM(bulkhead, bulkhead, drained_atom, "drained")
CAF_ADD_ATOM(bulkhead, bulkhead, taken_atom, "taken")
CAF_ADD_ATOM(bulkhead, bulkhead, stamp_atom, "stamp")
CAF_ADD_ATOM(bulkhead, bulkhead, tick_atom, "tick")
CAF_ADD_ATOM(bulkhead, bulkhead, append_atom, "append")
CAF_ADD_ATOM(bulkhead, bulkhead, save_atom, "save")
CAF_ADD_ATOM(bulkhead, bulkhead, seal_atom, "seal")
CAF_ADD_ATOM(bulkhead, bulkhead, read_atom, "read")
CAF_ADD_ATOM(bulkhead, bulkhead, list_atom, "list")
CAF_ADD_ATOM(bulkhead, bulkhead, open_atom, "open")
CAF_ADD_ATOM(bulkhead, bulkhead, token_atom, "token")
CAF_ADD_ATOM(bulkhead, bulkhead, record_atom, "record")
CAF_ADD_ATOM(bulkhead, bulkhead, renew_atom, "renew")

CAF_END_TYPE_ID_BLOCK(bulkhead)

namespace bulkhead {

/// Whoever owns a child process.
using child_owner_actor = caf::typed_actor<
    /// The child wrote; give the bytes back as credit once they are dealt with. No bytes: a living
    /// child has closed the stream.
    caf::reacts_to<child_output>,
    /// Bytes of earlier writes reached the child's pipe.
    caf::reacts_to<child_written>,
    /// The child ended and all it wrote was delivered; the last message about it.
    caf::reacts_to<child_exited>>;

/// Whoever owns a child that is an MCP server's.
using server_owner_actor = child_owner_actor::extend<
    /// The request of that id gets no answer; why, as the end of a sentence about the request.
    caf::reacts_to<refuse_atom, std::uint64_t, error>>;

/// Starts children and moves their bytes. A server that is reached over the network is a child like
/// any other to its client: its host speaks for it.
using child_host_actor = caf::typed_actor<
    /// Starts a child in a process group of its own; the owner gets its events. Should the owner
    /// die, the child's group is killed.
    caf::replies_to<spawn_atom, process_spec, child_owner_actor>::with<child_started>,
    /// Queues bytes for the child's stdin; `child_written` tells when they are gone.
    caf::reacts_to<write_atom, child_id, std::string>,
    /// Closes the child's stdin after what is queued.
    caf::reacts_to<close_input_atom, child_id>,
    /// Sends a signal to the child's process group; ignored when it has ended.
    caf::reacts_to<signal_atom, child_id, std::int32_t>,
    /// Allows that many more bytes to be read from the child's stream.
    caf::reacts_to<credit_atom, child_id, stream_id, std::uint64_t>,
    /// Kills every process whose environment marks it as ours with this value (see
    /// io::child_marker), in or out of a known group; answers how many.
    caf::replies_to<kill_marked_atom, std::string>::with<std::uint32_t>>;

/// The only place that spawns, signals and reaps processes.
using process_host_actor = child_host_actor::extend<
    /// Runs a short command to its end with `input` on its stdin; killed at the deadline
    /// (errc::timeout).
    caf::replies_to<command_atom, process_spec, std::string, deadline>::with<finished_process>,
    /// Makes one HTTP exchange over a unix socket. Fails with closed (nobody listens: nothing was
    /// sent), runtime_lost (cut off), too_large or timeout.
    caf::replies_to<call_atom, socket_request, deadline>::with<socket_answer>,
    /// Attaches to a container's stdio through its engine's socket: from then on it is a child like
    /// any other, whose exit code is the container's. SIGKILL removes the container; other signals
    /// do nothing. Its exit by SIGKILL means that the engine's service was lost, or the container
    /// without a word.
    caf::replies_to<attach_atom, stream_request, child_owner_actor>::with<child_started>>;

/// Whoever runs code in a sandbox.
using sandbox_owner_actor = caf::typed_actor<
    /// The guest has begun the run.
    caf::reacts_to<sandbox_up>,
    /// The code wrote.
    caf::reacts_to<guest_output>,
    /// The code calls the host.
    caf::reacts_to<guest_call>,
    /// The code gave up on a call; it is answered all the same.
    caf::reacts_to<guest_cancel>,
    /// The code's call was unusable and has been refused already.
    caf::reacts_to<refused_call>,
    /// The code made something for the client.
    caf::reacts_to<guest_artifact>,
    /// The code ended by itself; nothing of this run follows.
    caf::reacts_to<guest_done>,
    /// The sandbox is gone without `guest_done`; nothing follows. With errc::closed it had ended
    /// before the run began, and another sandbox can take it.
    caf::reacts_to<sandbox_lost>>;

/// One container: boot, frames in and out, exit reason, certain death. It lives until its container
/// is destroyed and its folder discarded, also when its owner is gone.
using sandbox_actor = child_owner_actor::extend<
    /// Boots the container; answers when it waits for its run.
    caf::replies_to<boot_atom>::with<caf::ok_atom>,
    /// Hands the sandbox its run; the owner gets its events and gives each guest_output,
    /// guest_call, guest_cancel, refused_call and guest_artifact back as credit. Boots the
    /// container if need be. It is the only one, unless the run says that the interpreter is kept:
    /// then it waits for another after `guest_done`.
    caf::reacts_to<execute_atom, sandbox_run, sandbox_owner_actor>,
    /// The owner has dealt with that many events.
    caf::reacts_to<credit_atom, std::uint32_t>,
    /// Answers a guest call with scanned JSON text.
    caf::reacts_to<respond_atom, std::uint64_t, std::string>,
    /// Answers a guest call with an error.
    caf::reacts_to<refuse_atom, std::uint64_t, error>,
    /// Interrupts the code (KeyboardInterrupt).
    caf::reacts_to<interrupt_atom>,
    /// The owner is done with it: no event follows; the container ends, by force if need be.
    caf::reacts_to<end_atom>>;

/// The driver of a container engine.
using container_runtime_actor = caf::typed_actor<
    /// Finds and probes the engine once (lazily) and answers what it found; fails with unavailable
    /// and the remedy. Later requests share the first one's result.
    caf::replies_to<ensure_atom>::with<runtime_report>,
    /// Probes afresh and in full: each constraint read back from inside a container (for doctor).
    caf::replies_to<probe_atom>::with<runtime_report>,
    /// Starts a container whose stdio is the frame channel; the owner gets the child's events.
    caf::replies_to<create_atom, container_request, child_owner_actor>::with<container_handle>,
    /// The guest has booted and runs no code yet: sets the exact limits where they could not be set
    /// before (a delegated cgroup v1); fails when a limit that was promised can't be set.
    caf::replies_to<confine_atom, container_handle>::with<caf::ok_atom>,
    /// Tells why the container's process ended; `diagnosis` is what it wrote to its stderr last.
    caf::replies_to<classify_atom, container_handle, child_exited, std::string>::with<exit_verdict>,
    /// What sandboxes are made from (image, engine, OCI runtime), in short: one that was booted
    /// under another answer is stale. Cheap; needs an engine that was found.
    caf::replies_to<stamp_atom>::with<std::string>,
    /// Ends and removes a container and all that belongs to it; idempotent, retried until gone.
    caf::replies_to<destroy_atom, container_handle>::with<caf::ok_atom>,
    /// Removes what dead instances left: containers (also those that only the OCI runtime lists),
    /// cgroups, folders, upstream server processes.
    caf::replies_to<sweep_atom>::with<sweep_report>,
    /// Ends what the driver itself keeps running; the last request.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// Host folders: /ipc, /projects, one working folder a run.
using volume_manager_actor = caf::typed_actor<
    /// Makes the instance's folders (idempotent) and answers where they are.
    caf::replies_to<prepare_atom>::with<instance_folders>,
    /// Lets the guest's uid, as the host sees it, write in /projects; answers a warning for people,
    /// empty when all is well.
    caf::replies_to<grant_atom, std::uint32_t>::with<std::string>,
    /// Makes the working folder of a run and answers its path.
    caf::replies_to<run_folder_atom, std::string>::with<std::string>,
    /// Removes the working folder of a run.
    caf::replies_to<discard_atom, std::string>::with<caf::ok_atom>,
    /// Removes all folders of this instance; the last request.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// Whoever waits for the answer of a web server.
using http_owner_actor = caf::typed_actor<
    /// The answer begins.
    caf::reacts_to<http_head>,
    /// A piece of it; give the bytes back as credit once they are dealt with.
    caf::reacts_to<http_body>,
    /// It is complete, or there is no more of it; the last message of the exchange.
    caf::reacts_to<http_end>>;

/// The only place that speaks HTTP to servers elsewhere.
using http_host_actor = caf::typed_actor<
    /// Makes one exchange and answers it whole. Fails with timeout, unavailable (no connection, no
    /// such host, TLS: nothing was sent), closed (the connection broke: the request may have been
    /// carried out), denied (an address that the request rules out, a redirect that would carry it
    /// elsewhere), malformed, too_large, invalid_argument or overloaded.
    caf::replies_to<call_atom, http_request, deadline>::with<http_response>,
    /// Begins an exchange whose answer is read while it comes, under an id that the owner chose
    /// (environment::next_serial). Should the owner die, the exchange is dropped.
    caf::reacts_to<open_atom, exchange_id, http_request, http_owner_actor>,
    /// Allows that many more bytes of the answer to be read.
    caf::reacts_to<credit_atom, exchange_id, std::uint64_t>,
    /// Drops the exchange; no message about it follows.
    caf::reacts_to<cancel_atom, exchange_id>>;

/// The tokens by which servers let us in, each of one owner and one server's URL.
using credential_store_actor = caf::typed_actor<
    /// A token for an owner's server, refreshed if need be; empty if there is none. Fails with
    /// denied, and what to do, if there was one that is of no use any more.
    caf::replies_to<token_atom, std::string, std::string, deadline>::with<std::string>,
    /// The server refused that token of an owner's: it is refreshed before it is given out again.
    caf::reacts_to<refuse_atom, std::string, std::string, std::string>,
    /// The server of an owner's wants this before it lets a request pass (the value of
    /// WWW-Authenticate with a 401 or 403); kept for the next login.
    caf::reacts_to<record_atom, std::string, std::string, std::string>>;

/// The keys of the authorization servers whose access tokens let tenants in; it fetches them into a
/// `key_ring`.
using jwks_store_actor = caf::typed_actor<
    /// The ring has other issuers: keys of those that are new are fetched.
    caf::reacts_to<catalogue_atom>,
    /// Fetches an issuer's keys now; from whom `key_ring::ask` told to begin.
    caf::reacts_to<renew_atom, std::string>>;

/// Whoever calls a tool of an upstream server.
using tool_caller_actor = caf::typed_actor<
    /// The call goes on.
    caf::reacts_to<tool_progress>,
    /// The server wants something before it can go on; answers the result as scanned JSON text.
    /// Fails with denied or unavailable where nobody can be asked.
    caf::replies_to<server_question>::with<std::string>>;

struct tool_call {
  std::uint64_t id = 0;  ///< unique within the process, for cancelling
  std::string tool;      ///< raw name
  std::string arguments; ///< scanned JSON object
  deadline due;
  answer_room room;           ///< for the result; stays within the process
  tool_caller_actor caller{}; ///< null: nobody wants to know, nobody answers
  trace_context trace{};      ///< that the call is a part of
  friend bool operator==(const tool_call&, const tool_call&) = default;
};

template <class I>
auto inspect(I& f, tool_call& x) {
  return f(x.id, x.tool, x.arguments, x.due, x.caller, x.trace);
}

/// One upstream MCP server.
using mcp_client_actor = caf::typed_actor<
    /// The server's tool documents; starts the server if need be.
    caf::replies_to<documents_atom, deadline>::with<documents_ptr>,
    /// Calls a tool by its raw name; answers the CallToolResult as scanned JSON text.
    caf::replies_to<call_atom, tool_call>::with<std::string>,
    /// The caller gave up on a call; the server is told, other calls go on.
    caf::reacts_to<cancel_atom, std::uint64_t>,
    /// How it is, for people.
    caf::replies_to<status_atom>::with<client_status>,
    /// Closes the server's stdin, then SIGTERM, then SIGKILL; answers when it is gone.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// Which MCP servers exist; hands out their clients.
using client_registry_actor = caf::typed_actor<
    /// All servers that the configuration gives and policy allows, and its problems.
    caf::replies_to<catalogue_atom>::with<catalogue_ptr>,
    /// The client of a server, by raw name; one per server, made on demand.
    caf::replies_to<client_atom, std::string>::with<mcp_client_actor>,
    /// The configuration is another now: new clients are made from it, and those whose entries are
    /// not what they were are stopped once their calls have ended.
    caf::reacts_to<catalogue_atom, catalogue_ptr>,
    /// How the clients made so far are.
    caf::replies_to<status_atom>::with<std::vector<client_status>>,
    /// Stops all clients; answers when their servers are gone.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// Keeps sandboxes booted (see sandbox_shelf, where they wait).
using sandbox_pool_actor = caf::typed_actor<
    /// A run has started; true when its sandbox came from the shelf.
    caf::reacts_to<taken_atom, bool>>;

/// What there is to know of tools, worked out where nobody else waits for it.
using tool_library_actor = caf::typed_actor<
    /// What the catalogue's policy allows of a server's documents, ready to be asked about; the
    /// newest of each server is kept, here and on disk.
    caf::replies_to<documents_atom, catalogue_ptr, documents_ptr>::with<tool_shelf_ptr>,
    /// Answers list_tools, query_tool_docs and search_tool_docs as JSON text; the last two also of
    /// servers that the run doesn't have, if they are known from earlier: nothing is started. A
    /// call_tool fails with not_found (no such tool) or invalid_argument (arguments that don't fit
    /// its schema), and is answered by nothing else.
    caf::replies_to<tool_question>::with<std::string>>;

/// Keeps what runs leave: artifacts, and outputs that are more than their answers show. Works on
/// files, on a thread of its own.
using artifact_store_actor = caf::typed_actor<
    /// Adds to a stream of a run's output; answers what is kept of the stream so far. A stream of
    /// which something couldn't be kept gets no more, so that what is kept is its beginning. Should
    /// the sender die before `seal_atom`, the run's things go.
    caf::replies_to<append_atom, stored_run, stream_id, std::string>::with<kept_bytes>,
    /// Keeps an artifact of a run, in place of an earlier one of that name; answers the path of its
    /// file. Fails with unavailable (the disk) or limit (the quota).
    caf::replies_to<save_atom, stored_run, guest_artifact>::with<std::string>,
    /// The run is over, and wrote that many bytes to stdout and stderr; what it left can be read.
    caf::replies_to<seal_atom, stored_run, std::uint64_t, std::uint64_t>::with<caf::ok_atom>,
    /// A part of an artifact or a stream. Fails with not_found, whatever the cause.
    caf::replies_to<read_atom, resource_range>::with<resource_part>,
    /// What an owner's runs left, the latest first; the cursor, if not empty, is an earlier page's.
    /// Fails with invalid_argument for any other cursor.
    caf::replies_to<list_atom, std::string, std::string>::with<resource_page>>;

/// Notes each run and each tool call (see `ledger_writer`, which bounds what waits here). Works on
/// a file, on a thread of its own.
using ledger_actor = caf::typed_actor<
    /// A run has ended, or couldn't begin.
    caf::reacts_to<record_atom, ledger_run>,
    /// A tool call has ended, or was refused.
    caf::reacts_to<record_atom, ledger_call>,
    /// The newest records that fit; fails with unavailable (the file).
    caf::replies_to<read_atom, ledger_query>::with<ledger_page>,
    /// Answers when all that came before is stored, or can't be.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// The tools that a person approved of for good. Works on a file, on a thread of its own.
using approval_store_actor = caf::typed_actor<
    /// Is the tool, as it is defined now, approved of? Fails with unavailable or malformed (the
    /// file).
    caf::replies_to<read_atom, tool_identity>::with<approval_state>,
    /// Approves of it.
    caf::replies_to<save_atom, tool_identity>::with<caf::ok_atom>>;

/// Bounds how many runs go on at once, of each tenant and of all together.
using admission_actor = caf::typed_actor<
    /// A ticket for one run of a tenant; waits in the tenant's bounded queue until the deadline.
    /// Fails with overloaded.
    caf::replies_to<admit_atom, std::string, deadline>::with<std::uint64_t>,
    /// Gives the ticket back; also done when its holder dies.
    caf::reacts_to<release_atom, std::uint64_t>>;

/// A session's interpreter, lent for one run.
struct session_lease {
  std::string handle;
  std::uint64_t number = 0;            ///< of this lease, so that a stale release is told
  std::vector<std::string> servers;    ///< that the session may call, raw names
  sandbox_actor sandbox;               ///< where it lives; null: it has yet to be made
  bool reset = false;                  ///< the run is to begin in another, and end this one
  std::vector<std::string> loadable{}; ///< see session_claim
  catalogue_ptr made_under{};          ///< whose policy bounds the session; null: none does
  friend bool operator==(const session_lease&, const session_lease&) = default;
};

/// The sessions: interpreters that are kept between runs.
using python_sessions_actor = caf::typed_actor<
    /// Lends an interpreter for one run, to one run at a time. Fails with closed (lost, ended, of
    /// another owner or unknown: alike), denied (other servers than the session has), overloaded,
    /// timeout.
    caf::replies_to<lease_atom, session_claim>::with<session_lease>,
    /// A run with a lease begins, so that a new session takes its place now: the one unused for
    /// longest ends if there are too many.
    caf::reacts_to<taken_atom>,
    /// The run of this session under this lease is over; the interpreter lives on in the sandbox,
    /// or the session is lost (null). Also done, as lost, when who claimed it dies.
    caf::reacts_to<release_atom, std::string, std::uint64_t, sandbox_actor>,
    /// Those that are kept now, the one used last first.
    caf::replies_to<status_atom>::with<std::vector<session_status>>>;

/// Whoever wants a run's output while it is written.
using output_observer_actor = caf::typed_actor<
    /// The code wrote; answered when the bytes are dealt with, and no sooner does more come.
    caf::replies_to<guest_output>::with<caf::ok_atom>>;

/// One run of code; it calls tools for the code.
using invocation_actor = sandbox_owner_actor::extend<
    /// A tool call goes on.
    caf::reacts_to<tool_progress>,
    /// The server of a tool call wants something of the client.
    caf::replies_to<server_question>::with<std::string>,
    /// Runs it; exactly one answer, whatever happens.
    caf::replies_to<run_atom>::with<run_answer>,
    /// The client gave up: the run ends with status cancelled, at once or, in a session, when its
    /// code has been interrupted.
    caf::reacts_to<cancel_atom>>;

/// The transport side of a connection with a client. It ends after the client closed its end, or
/// once it was stopped.
using front_end_actor = caf::typed_actor<
    /// Sends one message (a JSON text with its newline) to the client.
    caf::reacts_to<message_atom, std::string>,
    /// Sends one message that belongs to the client's request with that id (JSON text): its answer,
    /// or what is said or asked before it.
    caf::reacts_to<message_atom, std::string, std::string>,
    /// A line from the client arrived (the I/O thread sends this).
    caf::reacts_to<line_atom, std::string>,
    /// A line over the limit arrived and was dropped (the I/O thread sends this).
    caf::reacts_to<line_atom>,
    /// The session has dealt with that many bytes of lines, and with their answers as far as they
    /// are ready; as many more may be read.
    caf::reacts_to<credit_atom, std::uint64_t>,
    /// The client closed its end (the I/O thread sends this).
    caf::reacts_to<input_end_atom>,
    /// All that was written reached the client or never will (the I/O thread sends this).
    caf::reacts_to<drained_atom>,
    /// Takes no more messages and cancels what runs; answers when all is written.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// Whoever wants to know how far a run is.
using run_observer_actor = caf::typed_actor<
    /// The run reached another stage.
    caf::reacts_to<run_progress>,
    /// The run needs an answer of the client; answers the result as scanned JSON text. Fails with
    /// unavailable (the client can't be asked that), denied, cancelled, timeout.
    caf::replies_to<client_question>::with<std::string>>;

/// MCP of both eras on one connection.
using mcp_session_actor = run_observer_actor::extend<
    /// A message from the client, as text without its newline.
    caf::reacts_to<message_atom, std::string>,
    /// The same, with the trace that the transport says it is a part of.
    caf::reacts_to<message_atom, std::string, trace_context>,
    /// A message from the client could not be taken; the client gets the reason.
    caf::reacts_to<refuse_atom, error>,
    /// The configured servers are others now; clients that want to know are told.
    caf::reacts_to<catalogue_atom>,
    /// The client is gone or the process stops: cancels what runs; answers when nothing is left,
    /// and the session ends.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

} // namespace bulkhead

// Handles that travel in messages. The block stands last since it needs the types above.
CAF_BEGIN_TYPE_ID_BLOCK(bulkhead_handles, caf::id_block::bulkhead::end)

CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::child_owner_actor))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::sandbox_owner_actor))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::mcp_client_actor))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::http_owner_actor))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::tool_caller_actor))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::tool_call))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::sandbox_actor))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::session_lease))
CAF_ADD_TYPE_ID(bulkhead_handles, (bulkhead::mcp_session_actor))

CAF_END_TYPE_ID_BLOCK(bulkhead_handles)
