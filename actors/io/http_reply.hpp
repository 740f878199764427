#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "protocol/http_messages.hpp"

namespace bulkhead::io {

/// Where the answer to one request goes: either whole (`answer`), or as a stream (`begin`, then
/// `write` and in the end `end`). Thread-safe; what is said after the end, or once the client is
/// gone, is dropped. Letting go of it without an answer answers with 500, so that no client waits
/// for an actor that is no more; letting go of a stream breaks its connection. The answer to a HEAD
/// is made as if it were a GET; a stream's client then goes away after its head.
class http_reply {
public:
  virtual ~http_reply() = default;

  virtual void answer(outgoing_answer whole) = 0;

  /// Begins a stream; the answer's own body is not sent.
  virtual void begin(outgoing_answer head) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end() = 0;

  /// Has the client closed its connection, or been given up?
  virtual bool gone() const = 0;

  /// Bytes that the client has yet to take.
  virtual std::size_t unsent() const = 0;

  /// Calls back on the I/O thread when the client goes away before the end, also if it has already.
  virtual void when_gone(std::function<void()> told) = 0;
};

using http_reply_ptr = std::shared_ptr<http_reply>;

} // namespace bulkhead::io
