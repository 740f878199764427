#include "protocol/run_answer.hpp"

#include <nlohmann/json.hpp>

#include "protocol/json_scan.hpp"
#include "protocol/json_schema.hpp"
#include "protocol/run_python.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

captured_stream captured(std::string_view bytes, std::size_t capacity) {
  output_capture capture{capacity};
  capture.append(bytes);
  return capture.take();
}

/// Lines of `input` become the parts of a run; the last one is its output.
::bulkhead::run_answer read_run(std::string_view& input, std::size_t capacity) {
  ::bulkhead::run_answer run;
  run.status = static_cast<run_status>(take_number(input, 7));
  const auto parts = take_number(input, 255);
  auto text = [&] { return to_utf8(take_until(input, '\n')); };
  // What the configuration and the host give is never cut.
  auto name = [&] { return to_utf8(take_until(input, '\n').substr(0, 40)); };
  if ((parts & 1U) != 0) {
    run.result_repr = text();
    auto value = text();
    if (scan_json(value, {value.size(), 32, 1000})) {
      run.result_json = value;
    }
  }
  if ((parts & 2U) != 0) {
    run.exception = guest_exception{text(), text(), text()};
  }
  if ((parts & 4U) != 0) {
    run.failure = error{errc::limit, text()};
  }
  if ((parts & 8U) != 0) {
    run.servers = {name(), "time"};
  }
  if ((parts & 16U) != 0) {
    run.session = name();
    run.exit_code = static_cast<std::int32_t>(parts);
  }
  if ((parts & 32U) != 0) {
    run.artifacts = {{name(), "image/png", 3, "bulkhead://artifacts/1/a", "", "\x89PN"},
                     {"b", "text/plain", 300, "bulkhead://artifacts/1/b", "", ""}};
    run.artifacts_lost = {{2, name()}};
  }
  if ((parts & 64U) != 0) {
    run.out_kept = {"bulkhead://output/1/stdout", {5, "/kept", name()}};
  }
  run.err = captured(take_until(input, '\0'), capacity);
  run.out = captured(input, capacity);
  return run;
}

const bulkhead::json_schema& output_schema() {
  static const auto schema = bulkhead::json_schema::compile(run_python_output_schema());
  require(schema.has_value(), "the output's schema is one");
  return *schema;
}

void check_structured(std::string_view json, const ::bulkhead::run_answer& run, output_mode mode,
                      const limits& bounds) {
  require(json.size() <= bounds.answer_total / 2, "structured content is bounded");
  auto verdict = output_schema().check(json);
  // A number that no double holds leaves it unchecked.
  require(verdict.what != schema_verdict::kind::misfits, "structured content fits its schema");
  auto outline = scan_json(json, {json.size()});
  require(!shows_all_captured(run, mode, bounds) ||
              (decode_json_string(outline->find("stdout")) == run.out.text() &&
               decode_json_string(outline->find("stderr")) == run.err.text()),
          "what is said to be shown is shown");
}

void check_content(std::string_view json, const limits& bounds) {
  auto blocks = nlohmann::json::parse(json);
  require(!blocks.empty() && blocks[0]["type"] == "text", "the first block is a text");
  const auto& text = blocks[0]["text"].get_ref<const std::string&>();
  require(!text.empty(), "a text says something");
  require(text.size() <= bounds.answer_total / 2, "a text is bounded");
}

void check_answer(const ::bulkhead::run_answer& run, output_mode mode, const limits& bounds) {
  auto text = render_call_result(run, mode, bounds);
  require(text.find('\n') == std::string::npos, "an answer is one line");
  auto answer = scan_json(text, {text.size(), 64, 100'000});
  require(answer.has_value(), "an answer is JSON");
  check_structured(answer->find("structuredContent"), run, mode, bounds);
  check_content(answer->find("content"), bounds);
  require(answer->find("isError") == (run.status == run_status::success ? "false" : "true"),
          "an answer says whether it is an error");
  require(render_call_result(run, mode, bounds) == text, "an answer is written in one way");
}

} // namespace

void run_answer_target(std::string_view input) {
  limits bounds;
  // Room for what can't be cut, and for what has to be.
  bounds.answer_total = 8192 + 256 * take_number(input, 255);
  const auto mode = static_cast<output_mode>(take_number(input, 2));
  bounds.answer_stream = 32 + 16 * take_number(input, 255);
  check_answer(read_run(input, bounds.answer_stream), mode, bounds);
}

} // namespace bulkhead::fuzz
