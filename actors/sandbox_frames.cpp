// A sandbox's frame channel. Nothing that comes from the guest is trusted: each frame is parsed
// within limits, and what breaks the protocol ends the sandbox.

#include "actors/sandbox.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "protocol/wire.hpp"

namespace bulkhead {

namespace {

/// A guest that keeps to the protocol reads an answer before it makes room for another call, and is
/// never behind by more than the calls in flight. One that doesn't may get that many refusals,
/// which are small, before it has read the first; large frames are bounded by the memory budget.
constexpr std::size_t most_unread_frames = 4096;

} // namespace

void sandbox_state::take_output(child_output& output) {
  auto size = output.bytes.size();
  container.child = output.id;
  if (output.stream == stream_id::err) {
    diagnosis += output.bytes;
    if (auto keep = context.env->bounds.stderr_tail; diagnosis.size() > keep) {
      diagnosis.erase(0, diagnosis.size() - keep);
    }
    give_credit(stream_id::err, size);
    return;
  }
  if (now == phase::ending || now == phase::destroying) {
    give_credit(stream_id::out, size);
    return;
  }
  auto held_before = splitter->held();
  auto advance = held_before;
  std::size_t accounted = 0;
  splitter->feed(output.bytes, {[&](std::string_view line) {
                                  accounted += line.size() + 1;
                                  advanced += std::exchange(advance, 0);
                                  take_line(line);
                                },
                                [&] {
                                  broken(errc::too_large,
                                         fmt::format("it sent a line of over {} bytes",
                                                     context.env->bounds.line));
                                }});
  // Bytes kept of an unfinished line are given back at once, as an advance: the splitter bounds
  // them. Those of forwarded lines are given back when the owner has dealt with them (see
  // `tell_owner`), less the advance.
  auto finished = accounted > held_before ? accounted - held_before : 0;
  if (finished < size) {
    give_credit(stream_id::out, size - finished);
  }
  charge_partial_line();
}

void sandbox_state::charge_partial_line() {
  auto held = splitter->held();
  if (held < partial_share.bytes()) {
    partial_share.release();
  }
  if (!context.env->budget->take_if_ample(held - partial_share.bytes(), partial_share)) {
    broken(errc::overloaded, "it sends more than the memory budget has room for");
  }
}

void sandbox_state::take_line(std::string_view line) {
  auto cost = line.size() + 1;
  if (now == phase::ending || now == phase::destroying || line.empty()) {
    give_credit(stream_id::out, cost);
    return;
  }
  auto parsed = parse_guest_frame(line, context.env->bounds);
  if (!parsed) {
    broken(parsed.error().code, parsed.error().message);
    give_credit(stream_id::out, cost);
    return;
  }
  auto* frame = std::get_if<guest_frame>(&*parsed);
  auto is_start = frame != nullptr && std::holds_alternative<guest_started>(*frame);
  if (used && (now == phase::idle || (now == phase::running && !begun && !is_start))) {
    pass_over(cost);
    return;
  }
  auto is_ready = frame != nullptr && std::holds_alternative<guest_ready>(*frame);
  if (now != phase::running && !is_ready) {
    give_credit(stream_id::out, cost);
    broken(errc::malformed, "it sent a frame before any code ran");
    return;
  }
  if (now == phase::running && is_start == begun) {
    give_credit(stream_id::out, cost);
    broken(errc::malformed,
           begun ? "it began its run twice" : "it sent a frame before it began its run");
    return;
  }
  if (frame != nullptr) {
    take_frame(*frame, cost);
    return;
  }
  auto& refused = std::get<refused_call>(*parsed);
  send(encode_refusal(refused.id, refused.reason));
  tell_owner(std::move(refused), cost);
}

/// A frame between two runs: threads and processes that survive a run belong to none, so that
/// what they say is dropped. Without credit the pipe fills up, and they wait.
void sandbox_state::pass_over(std::size_t cost) {
  if (now == phase::idle) {
    withheld += cost;
  } else {
    give_credit(stream_id::out, cost);
  }
}

void sandbox_state::take_frame(guest_frame& frame, std::size_t cost) {
  if (auto* ready = std::get_if<guest_ready>(&frame)) {
    give_credit(stream_id::out, cost);
    guest_is_ready(std::move(*ready));
    return;
  }
  if (auto* started = std::get_if<guest_started>(&frame)) {
    give_credit(stream_id::out, cost);
    run_has_begun(*started);
    return;
  }
  if (auto* finished = std::get_if<guest_done>(&frame)) {
    give_credit(stream_id::out, cost);
    if (finished->id != run.id) {
      broken(errc::malformed, "it ended a run that isn't its own");
      return;
    }
    if (owner) {
      self->send(owner, std::move(*finished));
    }
    if (owner && run.keep.count() > 0) {
      rest();
    } else {
      done = true;
      end();
    }
    return;
  }
  if (auto* output = std::get_if<guest_output>(&frame)) {
    tell_owner(std::move(*output), cost);
  } else if (auto* artifact = std::get_if<guest_artifact>(&frame)) {
    tell_owner(std::move(*artifact), cost);
  } else if (auto* cancel = std::get_if<guest_cancel>(&frame)) {
    tell_owner(*cancel, cost);
  } else {
    tell_owner(std::move(std::get<guest_call>(frame)), cost);
  }
}

void sandbox_state::run_has_begun(const guest_started& started) {
  if (started.id != run.id) {
    broken(errc::malformed, "it began a run that isn't its own");
    return;
  }
  begun = true;
  ++generation;
  if (owner) {
    self->send(owner, sandbox_up{python});
  }
}

template <class Event>
void sandbox_state::tell_owner(Event event, std::size_t cost) {
  if (!owner) {
    give_credit(stream_id::out, cost);
    return;
  }
  owed.push_back(cost);
  self->send(owner, std::move(event));
}

void sandbox_state::give_credit(stream_id stream, std::uint64_t bytes) {
  if (stream == stream_id::out) {
    auto given_before = std::min(bytes, advanced);
    advanced -= given_before;
    bytes -= given_before;
  }
  if (bytes > 0 && container.child != 0) {
    self->send(context.processes, credit_atom::value, container.child, stream, bytes);
  }
}

void sandbox_state::send(std::string frame) {
  if (now != phase::running && now != phase::ending) {
    return;
  }
  if (out->entries() > most_unread_frames) {
    broken(errc::overloaded, "it doesn't read the answers to its calls");
    return;
  }
  if (!out->push(std::move(frame))) {
    broken(errc::overloaded,
           "what it asked for and hasn't read is more than the memory budget has room for");
    return;
  }
  out->pump([this](std::string bytes) {
    self->send(context.processes, write_atom::value, container.child, std::move(bytes));
  });
}

void sandbox_state::broken(errc code, std::string what) {
  if (now == phase::ending || now == phase::destroying) {
    return;
  }
  context.env->log->warn("sandbox {}: the guest broke the frame protocol: {}", id, what);
  auto unanswered = now == phase::creating;
  lost({code,
        fmt::format("the sandbox was stopped because its frame channel was misused: {}", what)});
  if (!unanswered) {
    // Else the driver's answer is still on its way, and removes what it made.
    destroy();
  }
}

} // namespace bulkhead
