#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "protocol/container_spec.hpp"
#include "protocol/error.hpp"
#include "protocol/wire.hpp"

/// podman's REST service ("libpod") as far as sandboxes need it: what is asked of it, what it
/// answers, and the framing of a container's stdio. The field names are those of podman's
/// SpecGenerator.

namespace bulkhead {

/// The targets of the service's API at a version, as its answer to `ping_target` tells it, e.g.
/// "4.3.1".
class rest_targets {
public:
  static constexpr const char* ping_target = "/libpod/_ping";

  /// Errors: malformed, for anything but digits and dots.
  static expected<rest_targets> at_version(std::string_view version);

  std::string create() const { return prefix_ + "/containers/create"; }
  std::string init(const std::string& name) const { return of(name) + "/init"; }
  std::string start(const std::string& name) const { return of(name) + "/start"; }
  /// Neither the output so far nor detach keys, which would be looked for in the input.
  std::string attach(const std::string& name) const;
  std::string state(const std::string& name) const { return of(name) + "/json"; }
  /// Kills it, too, without a grace time.
  std::string remove(const std::string& name) const;
  std::string image_exists(const std::string& id) const;

private:
  explicit rest_targets(std::string prefix) : prefix_{std::move(prefix)} {}
  std::string of(const std::string& name) const { return prefix_ + "/containers/" + name; }

  std::string prefix_;
};

/// The body of a `create` request: the same container that `run_arguments` makes, as JSON. As with
/// that, `check_container_spec` comes first. For podman only.
std::string create_body(const engine_profile& engine, const container_spec& spec);

/// The new container's id (64 hex digits) in the answer to `create`. Errors: malformed.
expected<std::string> read_created_id(std::string_view body);

/// How a container is, from the answer to `state`.
struct rest_state {
  std::string status; ///< created, initialized, running, stopped, exited, removing, …
  std::int32_t exit_code = 0;
  bool out_of_memory = false;
  std::int32_t pid = 0; ///< 0 when it doesn't run
  bool ended() const { return status == "stopped" || status == "exited"; }
  friend bool operator==(const rest_state&, const rest_state&) = default;
};

/// Errors: malformed.
expected<rest_state> read_rest_state(std::string_view body);

/// Why the service refused: the message in an answer's body, on one line without control
/// characters, cut at 400 bytes; or the status alone.
std::string rest_complaint(std::uint32_t status, std::string_view body);

/// Takes the two output streams of a container apart, which an attached connection carries in
/// chunks with a header of 8 bytes each: the stream (1 or 2), three zeros, and the length, most
/// significant byte first (docker's API, "Stream format").
class stream_demultiplexer {
public:
  using sink = std::function<void(stream_id, std::string_view)>;

  /// Hands on what the bytes hold of either stream, in order. Errors: malformed; nothing may be fed
  /// after that.
  expected<void> feed(std::string_view bytes, const sink& take);

private:
  std::array<unsigned char, 8> header_{};
  std::size_t header_size_ = 0; ///< bytes of the next header that are there
  std::uint32_t left_ = 0;      ///< bytes of the current chunk to come
  stream_id stream_ = stream_id::out;
};

} // namespace bulkhead
