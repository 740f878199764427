#include "protocol/run_answer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "protocol/limits.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {
namespace {

using nlohmann::json;

captured_stream whole(const std::string& text) {
  return {text, "", text.size(), 0};
}

captured_stream captured(const std::string& text) {
  output_capture capture{limits{}.answer_stream};
  capture.append(text);
  return capture.take();
}

json call_result(const run_answer& answer, output_mode mode = output_mode::compact) {
  const auto text = render_call_result(answer, mode);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  return json::parse(text);
}

std::string text_of(const run_answer& answer, output_mode mode = output_mode::compact) {
  return call_result(answer, mode)["content"][0]["text"];
}

json structured(const run_answer& answer) {
  return json::parse(render_structured(answer));
}

run_answer successful(const std::string& out) {
  run_answer answer;
  answer.exit_code = 0;
  answer.out = whole(out);
  answer.duration_ms = 12;
  return answer;
}

TEST(run_answer, names_every_status) {
  EXPECT_EQ(to_string(run_status::success), "success");
  EXPECT_EQ(to_string(run_status::out_of_memory), "out_of_memory");
  EXPECT_EQ(to_string(run_status::session_lost), "session_lost");
}

TEST(run_answer, a_plain_success_is_its_output) {
  const auto answer = successful("hello\n");
  EXPECT_EQ(
      call_result(answer),
      (json{{"content", {{{"type", "text"}, {"text", "hello\n"}}}},
            {"structuredContent",
             {{"status", "success"}, {"exitCode", 0}, {"stdout", "hello\n"}, {"durationMs", 12}}},
            {"isError", false}}));
  EXPECT_EQ(text_of(successful("")), "[success: no output]");
}

TEST(run_answer, names_the_session_that_goes_on) {
  auto answer = successful("o");
  answer.session = "00ff";
  EXPECT_EQ(text_of(answer), "o\n[session: 00ff]");
  EXPECT_EQ(json::parse(render_structured(answer))["session"], "00ff");
}

TEST(run_answer, keeps_members_in_order) {
  auto answer = successful("o");
  answer.err = whole("e");
  answer.result_json = "1";
  answer.servers = {"b", "a"};
  EXPECT_EQ(render_structured(answer),
            R"({"status":"success","exitCode":0,"stdout":"o","stderr":"e","result":1,)"
            R"("servers":["b","a"],"durationMs":12})");
}

TEST(run_answer, shows_stderr_and_the_result_in_sections) {
  auto answer = successful("out");
  answer.err = whole("warn\n");
  answer.result_repr = "[1, 2]";
  answer.result_json = "[1,2]";
  EXPECT_EQ(text_of(answer), "out\n[stderr]\nwarn\n=> [1, 2]");
  EXPECT_EQ(structured(answer)["result"], json::array({1, 2}));
  answer.result_json.reset();
  EXPECT_EQ(structured(answer)["result"], "[1, 2]");
}

TEST(run_answer, shows_an_exception) {
  auto answer = successful("");
  answer.status = run_status::error;
  answer.exit_code = 1;
  answer.exception = guest_exception{"ValueError", "bad", "Traceback…\nValueError: bad\n"};
  EXPECT_EQ(text_of(answer), "Traceback…\nValueError: bad\n[error: exit code 1]");
  EXPECT_TRUE(call_result(answer)["isError"]);
  EXPECT_EQ(structured(answer)["error"], (json{{"type", "ValueError"},
                                               {"message", "bad"},
                                               {"traceback", "Traceback…\nValueError: bad\n"}}));
  answer.exception->traceback.clear();
  EXPECT_EQ(text_of(answer), "ValueError: bad\n[error: exit code 1]");
  EXPECT_EQ(structured(answer)["error"], (json{{"type", "ValueError"}, {"message", "bad"}}));
}

TEST(run_answer, shows_a_traceback_once) {
  auto answer = successful("");
  answer.status = run_status::error;
  answer.exit_code = 1;
  const std::string traceback = "Traceback…\n  " + std::string(600, 'x') + "\nValueError: a\nb\n";
  answer.exception = guest_exception{"ValueError", "a\nb", traceback};
  answer.err = whole("warning\n" + traceback + "at exit\n");
  EXPECT_EQ(text_of(answer),
            "[stderr]\nwarning\n" + traceback + "at exit\nValueError: a\n[error: exit code 1]");
  EXPECT_EQ(structured(answer)["error"]["traceback"], traceback);
  EXPECT_EQ(structured(answer)["stderr"], "warning\n" + traceback + "at exit\n");
  answer.err = whole("my own hook: a\n");
  EXPECT_EQ(text_of(answer), "[stderr]\nmy own hook: a\n" + traceback + "[error: exit code 1]");
}

TEST(run_answer, tells_why_there_is_no_ordinary_end) {
  run_answer answer;
  answer.status = run_status::timeout;
  answer.out = whole("partial");
  answer.failure = error{errc::timeout, "the run took longer than 30 s"};
  EXPECT_EQ(text_of(answer), "partial\n[timeout: the run took longer than 30 s]");
  EXPECT_EQ(structured(answer),
            (json{{"status", "timeout"},
                  {"stdout", "partial"},
                  {"error", {{"code", "timeout"}, {"message", "the run took longer than 30 s"}}},
                  {"durationMs", 0}}));
  answer.exception = guest_exception{"KeyboardInterrupt", "", "Traceback: line 3\n"};
  EXPECT_EQ(text_of(answer),
            "partial\nTraceback: line 3\n[timeout: the run took longer than 30 s]");
  EXPECT_EQ(structured(answer)["error"], (json{{"code", "timeout"},
                                               {"message", "the run took longer than 30 s"},
                                               {"type", "KeyboardInterrupt"},
                                               {"traceback", "Traceback: line 3\n"}}));
}

TEST(run_answer, counts_what_a_stream_leaves_out) {
  auto answer = successful("");
  answer.out = captured(std::string(100'000, 'x'));
  const auto shown = structured(answer);
  EXPECT_EQ(shown["truncated"],
            (json{{"stdout", {{"totalBytes", 100'000}, {"omittedBytes", 83'616}}}}));
  EXPECT_EQ(shown["stdout"], answer.out.text());
  EXPECT_EQ(text_of(answer), answer.out.text());
}

TEST(run_answer, replaces_bytes_that_are_no_text) {
  const auto answer = successful("\xFF\x80ok");
  EXPECT_EQ(text_of(answer), "\uFFFD\uFFFDok");
  EXPECT_EQ(structured(answer)["stdout"], "\uFFFD\uFFFDok");
}

TEST(run_answer, toon_and_json_show_the_structured_content) {
  auto answer = successful("hi");
  answer.result_json = R"([{"b":1,"a":"x"},{"b":2,"a":"y"}])";
  answer.result_repr = "…";
  EXPECT_EQ(text_of(answer, output_mode::json), render_structured(answer));
  EXPECT_EQ(
      text_of(answer, output_mode::toon),
      "status: success\nexitCode: 0\nstdout: hi\nresult[2]{b,a}:\n  1,x\n  2,y\ndurationMs: 12");
}

TEST(run_answer, a_number_beyond_doubles_is_shown_as_repr_in_toon) {
  auto answer = successful("");
  answer.result_json = "1e999";
  answer.result_repr = "10**999";
  const auto result = render_call_result(answer, output_mode::toon);
  EXPECT_NE(result.find(R"("status: success\nexitCode: 0\nresult: 10**999\ndurationMs: 12")"),
            std::string::npos);
  EXPECT_NE(render_structured(answer).find("\"result\":1e999"), std::string::npos);
}

TEST(run_answer, a_result_that_is_too_long_gives_way_to_its_repr) {
  auto answer = successful("");
  answer.result_json = "\"" + std::string(20'000, 'v') + "\"";
  answer.result_repr = "'" + std::string(20'000, 'v') + "'";
  const auto shown = structured(answer);
  EXPECT_EQ(shown["truncated"]["result"], (json{{"totalBytes", 20'002}, {"omittedBytes", 20'002}}));
  const std::string repr = shown["result"];
  EXPECT_LT(repr.size(), 4'200U);
  EXPECT_NE(repr.find("[… 15906 bytes left out …]"), std::string::npos);
}

/// Each answer is as large as what the limits of frames let through.
std::vector<run_answer> large_answers() {
  const auto flood = [](const std::string& unit) {
    std::string text;
    while (text.size() < 100'000) {
      text += unit;
    }
    return captured(text);
  };
  std::vector<run_answer> answers;
  for (const auto& unit : {std::string{"plain line\n"}, std::string(1, '\0'), std::string{"\xFF"},
                           std::string{"😀\"\\"}}) {
    run_answer answer;
    answer.status = run_status::timeout;
    answer.out = flood(unit);
    answer.err = flood(unit);
    answer.failure = error{errc::timeout, std::string(50'000, 'm')};
    answer.exception = guest_exception{"E", std::string(20'000, '\x01'), std::string(40'000, '\n')};
    answer.servers = {"one", "two"};
    answer.result_json = std::string(60, '[') + std::string(60, ']');
    answer.result_repr = std::string(60'000, '\x02');
    answers.push_back(answer);
  }
  std::string deep = "[0";
  for (int i = 0; i < 4000; ++i) {
    deep += ",[]";
  }
  auto nested = successful("");
  nested.result_json = std::string(60, '[') + deep + "]" + std::string(60, ']');
  nested.result_repr = "nested";
  answers.push_back(nested);
  return answers;
}

TEST(run_answer, stays_within_its_budget_whatever_comes) {
  for (const auto& answer : large_answers()) {
    const auto structured_size = render_structured(answer).size();
    for (const auto mode : {output_mode::compact, output_mode::toon, output_mode::json}) {
      const auto result = call_result(answer, mode);
      const std::string text = result["content"][0]["text"];
      EXPECT_TRUE(is_utf8(text));
      EXPECT_LE(text.size() + structured_size, limits{}.answer_total);
      EXPECT_EQ(result["structuredContent"]["status"], to_string(answer.status));
    }
  }
}

TEST(run_answer, uses_the_room_there_is) {
  run_answer answer;
  answer.out = captured(std::string(100'000, 'x'));
  answer.err = captured(std::string(100'000, 'y'));
  answer.result_repr = "1";
  const auto text = text_of(answer);
  EXPECT_GT(text.size(), limits{}.answer_total / 2 - 600);
  const auto shown = structured(answer);
  const std::uint64_t left_out = shown["truncated"]["stdout"]["omittedBytes"];
  EXPECT_GE(left_out, 100'000U - limits{}.answer_stream);
  EXPECT_NE(shown["stdout"].get<std::string>().find(std::to_string(left_out)), std::string::npos);
}

} // namespace
} // namespace bulkhead
