#include "protocol/shown_artifacts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "protocol/base64.hpp"
#include "protocol/json_text.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

/// Bytes for entries, so that they leave room for output.
constexpr std::size_t entries_room = 12 * kibibyte;

std::string entry_json(const kept_artifact& each) {
  return fmt::format(R"({{"name":{},"mimeType":{},"bytes":{},"uri":{}}})", json_quote(each.name),
                     json_quote(each.mime_type), each.bytes, json_quote(each.uri));
}

/// How many of the artifacts have entries.
std::size_t entries_shown(const run_answer& run) {
  std::size_t size = 0;
  std::size_t count = 0;
  for (const auto& each : run.artifacts) {
    size += entry_json(each).size() + 1;
    if (size > entries_room) {
      break;
    }
    ++count;
  }
  return count;
}

std::uint64_t lost_count(const run_answer& run) {
  std::uint64_t count = 0;
  for (const auto& each : run.artifacts_lost) {
    count += each.count;
  }
  return count;
}

std::string lost_causes(const run_answer& run) {
  std::string text;
  for (const auto& each : run.artifacts_lost) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", each.count, each.why);
  }
  return text;
}

void add_line(std::string& text, std::string line) {
  text += text.empty() ? "" : "\n";
  text += line;
}

void add_stream(std::string& text, std::string_view name, const captured_stream& shown,
                const kept_stream& stream) {
  const auto& kept = stream.kept;
  if (shown.omitted == 0) {
    return;
  }
  if (kept.why.empty()) {
    if (!stream.uri.empty()) {
      add_line(text, fmt::format("[{}: all {} bytes: {}]", name, shown.total, stream.uri));
    }
    return;
  }
  add_line(text, stream.uri.empty()
                     ? fmt::format("[{}: nothing but the above is kept: {}]", name, kept.why)
                     : fmt::format("[{}: the first {} of {} bytes: {}; no more is kept: {}]", name,
                                   kept.bytes, shown.total, stream.uri, kept.why));
}

} // namespace

std::string artifacts_json(const run_answer& run) {
  std::string array;
  const auto count = entries_shown(run);
  for (std::size_t i = 0; i < count; ++i) {
    array += (i == 0 ? "[" : ",") + entry_json(run.artifacts[i]);
  }
  return array.empty() ? array : array + "]";
}

std::string missing_artifacts_json(const run_answer& run) {
  const auto not_shown = run.artifacts.size() - entries_shown(run);
  if (not_shown == 0 && run.artifacts_lost.empty()) {
    return {};
  }
  if (run.artifacts_lost.empty()) {
    return fmt::format(R"({{"notShown":{}}})", not_shown);
  }
  auto first = not_shown == 0 ? std::string{} : fmt::format(R"("notShown":{},)", not_shown);
  return fmt::format(R"({{{}"lost":{},"why":{}}})", first, lost_count(run),
                     json_quote(lost_causes(run)));
}

std::string kept_text(const run_answer& run) {
  std::string text;
  add_stream(text, "stdout", run.out, run.out_kept);
  add_stream(text, "stderr", run.err, run.err_kept);
  const auto count = entries_shown(run);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& each = run.artifacts[i];
    add_line(text, fmt::format("[artifact {}: {}, {} bytes: {}]", printable(each.name),
                               each.mime_type, each.bytes, each.uri));
  }
  if (const auto more = run.artifacts.size() - count; more > 0) {
    add_line(text, fmt::format("[{} more artifacts: see resources/list]", more));
  }
  if (!run.artifacts_lost.empty()) {
    add_line(text, fmt::format("[artifacts not kept: {}]", lost_causes(run)));
  }
  return text;
}

std::string artifact_blocks(const run_answer& run, bool links) {
  std::string blocks;
  for (const auto& each : run.artifacts) {
    if (!each.image.empty()) {
      blocks += fmt::format(R"(,{{"type":"image","mimeType":{},"data":"{}"}})",
                            json_quote(each.mime_type), encode_base64(each.image));
    }
  }
  const auto count = links ? entries_shown(run) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& each = run.artifacts[i];
    if (each.image.empty()) {
      blocks += fmt::format(
          R"(,{{"type":"resource_link","uri":{},"name":{},"mimeType":{},"size":{}}})",
          json_quote(each.uri), json_quote(each.name), json_quote(each.mime_type), each.bytes);
    }
  }
  return blocks;
}

} // namespace bulkhead
