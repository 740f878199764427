// What a run leaves besides its answer: artifacts, and output that is more than the answer shows.
// Neither may slow the run down for longer than the disk takes, or fail it.

#include "actors/invocation.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "protocol/printable.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// For one piece on a slow disk; then the rest isn't kept.
constexpr auto store_patience = 30s;
/// Between two messages of what was written last.
constexpr auto live_interval = 250ms;
constexpr std::size_t live_size = kibibyte;

/// The last whole lines of `text` in at most `most` bytes, or the end of one that is longer.
std::string_view last_lines(std::string_view text, std::size_t most) {
  if (text.size() <= most) {
    return text;
  }
  auto end = text.substr(text.size() - most);
  const auto newline = end.find('\n');
  return newline + 1 < end.size() ? end.substr(newline + 1) : trim_split_start(end);
}

} // namespace

// -- output --------------------------------------------------------------------------------------

void invocation_state::need_handle() {
  if (stored.handle.empty()) {
    stored = {context.env->new_handle(), request.owner};
  }
}

bool invocation_state::wants_spill(const spill& of, std::uint64_t total) const {
  return request.keep_output && context.store && of.kept.why.empty() &&
         (of.begun || total > context.env->bounds.answer_stream);
}

void invocation_state::keep_output(guest_output& output, const std::function<void()>& done) {
  const bool is_out = output.stream == stream_id::out;
  auto& capture = is_out ? out : err;
  auto& to = is_out ? out_spill : err_spill;
  const bool spilling = wants_spill(to, capture.total() + output.bytes.size());
  // Before the first piece is spilled, the capture has all that came.
  auto before = spilling && !to.begun ? capture.take().head : std::string{};
  capture.append(output.bytes);
  note_live(output.bytes);
  if (spilling) {
    append_to_store(output.stream, std::move(before), output.bytes, done);
  }
}

void invocation_state::append_to_store(stream_id stream, std::string before,
                                       const std::string& bytes,
                                       const std::function<void()>& done) {
  auto& to = stream == stream_id::out ? out_spill : err_spill;
  to.begun = true;
  need_handle();
  ++store_pending;
  before += bytes;
  auto settled = [this, stream, done](kept_bytes kept) {
    auto& of = stream == stream_id::out ? out_spill : err_spill;
    if (of.kept.why.empty()) {
      of.kept = std::move(kept);
    }
    --store_pending;
    done();
    deliver_when_kept();
  };
  self->request(context.store, store_patience, append_atom::value, stored, stream,
                std::move(before))
      .then([settled](kept_bytes& kept) { settled(std::move(kept)); },
            [this, stream, settled](const caf::error& reason) {
              auto kept = (stream == stream_id::out ? out_spill : err_spill).kept;
              kept.why = from_caf(reason, "keep the output").message;
              settled(std::move(kept));
            });
}

// -- artifacts -----------------------------------------------------------------------------------

void invocation_state::lose_artifact(std::string why) {
  auto found = std::find_if(answer.artifacts_lost.begin(), answer.artifacts_lost.end(),
                            [&](const auto& each) { return each.why == why; });
  if (found == answer.artifacts_lost.end()) {
    found = answer.artifacts_lost.insert(found, {0, std::move(why)});
  }
  ++found->count;
}

void invocation_state::take_artifact(guest_artifact& artifact) {
  const auto& bounds = context.env->bounds;
  const auto size = artifact.bytes.size();
  auto share = std::make_shared<memory_budget::share>();
  std::string refused;
  if (now != phase::running && now != phase::interrupting) {
    return;
  }
  if (!context.store) {
    refused = "there is no place for them";
  } else if (size > bounds.artifact) {
    refused = fmt::format("over {} bytes", bounds.artifact);
  } else if (artifacts_taken >= bounds.artifact_count) {
    refused = fmt::format("over {} of a run", bounds.artifact_count);
  } else if (artifact_bytes + size > bounds.artifacts) {
    refused = fmt::format("over {} bytes of a run", bounds.artifacts);
  } else if (!budget->take_if_ample(size, *share)) {
    refused = "the memory budget had no room";
  }
  if (!refused.empty()) {
    lose_artifact(std::move(refused));
    dealt_with_call();
    return;
  }
  ++artifacts_taken;
  artifact_bytes += size;
  store_artifact(artifact, share);
}

void invocation_state::store_artifact(guest_artifact& artifact,
                                      const std::shared_ptr<memory_budget::share>& share) {
  need_handle();
  kept_artifact kept{artifact.name,
                     artifact.mime_type,
                     artifact.bytes.size(),
                     artifact_uri(stored.handle, artifact.name),
                     {},
                     {}};
  if (kept.bytes <= context.env->bounds.image &&
      is_shown_image(artifact.mime_type, artifact.bytes)) {
    kept.image = artifact.bytes;
  }
  ++outputs_shown;
  ++store_pending;
  auto settled = [this, share] {
    share->release();
    --store_pending;
    output_dealt_with();
    deliver_when_kept();
  };
  self->request(context.store, store_patience, save_atom::value, stored, std::move(artifact))
      .then(
          [this, kept, settled](std::string& file) mutable {
            kept.file = std::move(file);
            add_artifact(std::move(kept));
            settled();
          },
          [this, settled](const caf::error& reason) {
            lose_artifact(from_caf(reason, "keep it").message);
            settled();
          });
}

void invocation_state::add_artifact(kept_artifact kept) {
  auto& all = answer.artifacts;
  std::erase_if(all, [&](const auto& each) { return each.name == kept.name; });
  const auto& bounds = context.env->bounds;
  std::size_t bytes = kept.image.size();
  std::size_t count = 1;
  for (const auto& each : all) {
    bytes += each.image.size();
    count += each.image.empty() ? 0 : 1;
  }
  if (count > bounds.image_count || bytes > bounds.images) {
    kept.image.clear();
  }
  all.push_back(std::move(kept));
}

// -- the end -------------------------------------------------------------------------------------

void invocation_state::keep_what_is_not_shown() {
  if (!context.store || !request.keep_output ||
      shows_all_captured(answer, context.env->config->output, context.env->bounds)) {
    return;
  }
  // Little was written, but what it takes to show it is more than there is room for.
  for (auto stream : {stream_id::out, stream_id::err}) {
    const auto& shown = stream == stream_id::out ? answer.out : answer.err;
    const auto& of = stream == stream_id::out ? out_spill : err_spill;
    if (shown.total > 0 && !of.begun) {
      append_to_store(stream, {}, shown.head, [] {});
    }
  }
}

void invocation_state::deliver_when_kept() {
  if (now != phase::over || store_pending > 0 || sealing) {
    return;
  }
  if (stored.handle.empty()) {
    deliver();
    return;
  }
  sealing = true;
  self->request(context.store, store_patience, seal_atom::value, stored, out.total(), err.total())
      .then([this](caf::ok_atom) { deliver(); },
            [this](const caf::error& reason) {
              auto why = from_caf(reason, "finish what is kept").message;
              out_spill.kept = {0, {}, why};
              err_spill.kept = {0, {}, why};
              deliver();
            });
}

void invocation_state::deliver() {
  auto tell = [this](const spill& of, stream_id stream, kept_stream& into) {
    into.kept = of.kept;
    into.uri = of.kept.bytes > 0 ? output_uri(stored.handle, stream) : std::string{};
  };
  tell(out_spill, stream_id::out, answer.out_kept);
  tell(err_spill, stream_id::err, answer.err_kept);
  promise.deliver(std::move(answer));
  self->quit();
}

// -- live output ---------------------------------------------------------------------------------

void invocation_state::note_live(std::string_view bytes) {
  if (!request.live || !request.observer) {
    return;
  }
  latest += bytes.substr(bytes.size() - std::min(bytes.size(), 2 * live_size));
  if (latest.size() > 4 * live_size) {
    latest.erase(0, latest.size() - 2 * live_size);
  }
  if (!std::exchange(live_due, true)) {
    self->delayed_send(self, live_interval, tick_atom::value, run_atom::value);
  }
}

void invocation_state::tell_latest() {
  live_due = false;
  if (now != phase::running) {
    return;
  }
  tell_latest_progress();
  auto text = std::exchange(latest, {});
  // Where a line is written over, as progress bars are, each version is a line.
  std::replace(text.begin(), text.end(), '\r', '\n');
  // Neutralising makes it longer.
  const auto neutral = printable(to_utf8(last_lines(text, live_size)));
  std::string shown{last_lines(neutral, live_size)};
  while (!shown.empty() && shown.back() == '\n') {
    shown.pop_back();
  }
  if (!shown.empty()) {
    self->send(request.observer, run_progress{request.id, std::move(shown), true});
  }
}

} // namespace bulkhead
