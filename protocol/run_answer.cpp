#include "protocol/run_answer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/json_text.hpp"
#include "protocol/shown_answer.hpp"
#include "protocol/shown_artifacts.hpp"
#include "protocol/toon.hpp"

namespace bulkhead {

namespace {

constexpr std::array<std::pair<run_status, std::string_view>, 8> status_names = {{
    {run_status::success, "success"},
    {run_status::error, "error"},
    {run_status::timeout, "timeout"},
    {run_status::out_of_memory, "out_of_memory"},
    {run_status::cancelled, "cancelled"},
    {run_status::validation_error, "validation_error"},
    {run_status::unavailable, "unavailable"},
    {run_status::session_lost, "session_lost"},
}};

/// Builds the text of a JSON object; members that are empty are left out.
class object_text {
public:
  void add_json(std::string_view key, std::string_view json) {
    if (json.empty()) {
      return;
    }
    out_ += out_.empty() ? '{' : ',';
    append_json_string(out_, key);
    out_ += ':';
    append_json_line(out_, json);
  }

  void add_text(std::string_view key, std::string_view text) {
    if (!text.empty()) {
      add_json(key, json_quote(text));
    }
  }

  void add_number(std::string_view key, std::uint64_t number) {
    add_json(key, std::to_string(number));
  }

  /// Empty if there are no members.
  std::string take() { return out_.empty() ? std::string{} : std::move(out_) + "}"; }

private:
  std::string out_;
};

std::string error_json(const run_answer& run) {
  object_text object;
  if (run.failure) {
    object.add_text("code", to_string(run.failure->code));
    object.add_text("message", run.failure->message);
  }
  if (run.exception) {
    object.add_text("type", run.exception->type);
    object.add_text("message", run.failure ? std::string_view{} : run.exception->message);
    object.add_text("traceback", run.exception->traceback);
  }
  return object.take();
}

std::string names_json(const std::vector<std::string>& names) {
  std::string array;
  for (const auto& name : names) {
    array += array.empty() ? '[' : ',';
    append_json_string(array, name);
  }
  return array.empty() ? array : array + "]";
}

std::string stream_json(const captured_stream& shown, const kept_stream& kept) {
  if (shown.omitted == 0) {
    return {};
  }
  object_text object;
  object.add_number("totalBytes", shown.total);
  object.add_number("omittedBytes", shown.omitted);
  object.add_text("uri", kept.uri);
  if (!kept.kept.why.empty()) {
    object.add_number("keptBytes", kept.kept.bytes);
    object.add_text("notKept", kept.kept.why);
  }
  return object.take();
}

std::string cut_json(std::uint64_t total, std::uint64_t omitted) {
  return omitted == 0 ? std::string{}
                      : fmt::format(R"({{"totalBytes":{},"omittedBytes":{}}})", total, omitted);
}

std::string truncated_json(const shown_answer& shown) {
  object_text object;
  object.add_json("stdout", stream_json(shown.run.out, shown.run.out_kept));
  object.add_json("stderr", stream_json(shown.run.err, shown.run.err_kept));
  object.add_json("result", cut_json(shown.result_total, shown.result_omitted));
  object.add_json("artifacts", missing_artifacts_json(shown.run));
  return object.take();
}

std::string structured_json(const shown_answer& shown) {
  const auto& run = shown.run;
  object_text object;
  object.add_text("status", to_string(run.status));
  if (run.exit_code) {
    object.add_json("exitCode", std::to_string(*run.exit_code));
  }
  object.add_text("stdout", run.out.text());
  object.add_text("stderr", run.err.text());
  if (run.result_json) {
    object.add_json("result", *run.result_json);
  } else if (run.result_repr) {
    object.add_text("result", *run.result_repr);
  }
  object.add_json("error", error_json(run));
  object.add_json("servers", names_json(run.servers));
  object.add_text("session", run.session);
  object.add_number("durationMs", run.duration_ms);
  object.add_json("truncated", truncated_json(shown));
  object.add_json("artifacts", artifacts_json(run));
  return object.take();
}

/// A result may hold a number that no double can; its repr then stands in for it.
std::string structured_toon(const shown_answer& shown) {
  auto tree = nlohmann::ordered_json::parse(structured_json(shown), nullptr, false);
  if (tree.is_discarded()) {
    auto without_value = shown;
    without_value.run.result_json.reset();
    tree = nlohmann::ordered_json::parse(structured_json(without_value), nullptr, false);
  }
  return encode_toon(tree);
}

/// Starts a section of a text on a line of its own.
void start_section(std::string& text) {
  if (!text.empty() && text.back() != '\n') {
    text += '\n';
  }
}

/// The guest prints a traceback as Python does, so that stderr as shown has it already, at least
/// its end. Not so if the program has closed or replaced its stderr, or has a hook of its own.
bool shows_traceback(std::string_view err, const guest_exception& exception) {
  constexpr std::size_t compared = 512;
  std::string_view traceback = exception.traceback;
  auto end = traceback.substr(traceback.size() - std::min(traceback.size(), compared));
  return !end.empty() && err.find(end) != std::string_view::npos;
}

/// The traceback, or, where it stands above, the error in a line.
std::string exception_text(const guest_exception& exception, std::string_view err) {
  auto above = shows_traceback(err, exception);
  if (!above && !exception.traceback.empty()) {
    return exception.traceback;
  }
  std::string_view message = exception.message;
  if (above) {
    message = message.substr(0, message.find('\n'));
  }
  return message.empty() ? exception.type : fmt::format("{}: {}", exception.type, message);
}

std::string ending_text(const run_answer& run) {
  if (run.failure && !run.failure->message.empty()) {
    return fmt::format("[{}: {}]", to_string(run.status), run.failure->message);
  }
  if (run.exit_code) {
    return fmt::format("[{}: exit code {}]", to_string(run.status), *run.exit_code);
  }
  return fmt::format("[{}]", to_string(run.status));
}

std::string compact_text(const shown_answer& shown) {
  const auto& run = shown.run;
  auto text = run.out.text();
  if (run.err.total > 0) {
    start_section(text);
    text += "[stderr]\n" + run.err.text();
  }
  if (run.result_repr || run.result_json) {
    start_section(text);
    text += "=> " + (run.result_repr ? *run.result_repr : *run.result_json);
  }
  if (auto kept = kept_text(run); !kept.empty()) {
    start_section(text);
    text += kept;
  }
  if (run.exception) {
    start_section(text);
    text += exception_text(*run.exception, run.err.text());
  }
  if (run.status != run_status::success) {
    start_section(text);
    text += ending_text(run);
  }
  if (!run.session.empty()) {
    start_section(text);
    text += fmt::format("[session: {}]", run.session);
  }
  return text.empty() ? "[success: no output]" : text;
}

answer_notation notation_of(output_mode mode) {
  switch (mode) {
  case output_mode::toon:
    return structured_toon;
  case output_mode::json:
    return structured_json;
  default:
    return compact_text;
  }
}

} // namespace

std::string_view to_string(run_status status) {
  for (const auto& [value, name] : status_names) {
    if (value == status) {
      return name;
    }
  }
  return "error";
}

std::string render_structured(const run_answer& answer, const limits& bounds) {
  return render_within(answer, bounds.answer_total / 2, structured_json);
}

std::string render_call_result(const run_answer& answer, output_mode mode, const limits& bounds,
                               bool links) {
  const auto text = render_within(answer, bounds.answer_total / 2, notation_of(mode));
  return fmt::format(
      R"({{"content":[{{"type":"text","text":{}}}{}],"structuredContent":{},"isError":{}}})",
      json_quote(text), artifact_blocks(answer, links), render_structured(answer, bounds),
      answer.status != run_status::success);
}

bool shows_all_captured(const run_answer& answer, output_mode mode, const limits& bounds) {
  // What is said of kept output comes on top.
  constexpr std::size_t margin = 1024;
  const auto fits = [&](output_mode shown_in) {
    return notation_of(shown_in)({answer, 0, 0}).size() + margin <= bounds.answer_total / 2;
  };
  return fits(output_mode::json) && fits(mode);
}

} // namespace bulkhead
