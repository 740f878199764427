#define CAF_SUITE sandbox_frames

#include <random>

#include "tests/support/sandbox_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

std::string output_line(const std::string& text) {
  return json({{"type", "stdout"}, {"data", text}}).dump();
}

std::string call_line(std::uint64_t id, const std::string& padding = "") {
  return json({{"type", "rpc_request"},
               {"id", id},
               {"payload",
                {{"type", "call_tool"},
                 {"server", "files"},
                 {"tool", "read"},
                 {"arguments", {{"path", padding}}}}}})
      .dump();
}

/// A frame whose content is unusable but whose id is known.
std::string unusable_call(std::uint64_t id) {
  return R"({"type":"rpc_request","id":)" + std::to_string(id) + R"(,"payload":{"type":"fly"}})";
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(sandbox_frames_tests, sandbox_fixture)

CAF_TEST(frames_of_the_code_reach_the_owner_in_order) {
  run_code();
  say(output_line("one"));
  say(R"({"type":"stderr","b64":"//8="})");
  say(call_line(5));
  CAF_REQUIRE_EQUAL(log->outputs.size(), 2u);
  CAF_CHECK(log->outputs[0] == (guest_output{stream_id::out, "one"}));
  CAF_CHECK(log->outputs[1] == (guest_output{stream_id::err, "\xff\xff"}));
  CAF_REQUIRE_EQUAL(log->calls.size(), 1u);
  CAF_CHECK_EQUAL(log->calls[0].id, 5u);
  CAF_CHECK_EQUAL(log->calls[0].tool, "read");
  CAF_CHECK_EQUAL(log->ends(), 0u);
}

CAF_TEST(frames_may_come_in_any_pieces_with_blank_lines_and_returns) {
  run_code();
  auto text = output_line("one") + "\r\n\n\r\n" + output_line("two") + "\n";
  for (char byte : text) {
    say_bytes(std::string(1, byte));
  }
  CAF_REQUIRE_EQUAL(log->outputs.size(), 2u);
  CAF_CHECK_EQUAL(log->outputs[1].bytes, "two");
  CAF_CHECK_EQUAL(log->ends(), 0u);
}

CAF_TEST(a_call_with_unusable_content_is_refused_and_the_run_goes_on) {
  run_code();
  say(unusable_call(9));
  CAF_REQUIRE_EQUAL(log->refused.size(), 1u);
  CAF_CHECK_EQUAL(log->refused[0].id, 9u);
  auto answer = frames().back();
  CAF_CHECK_EQUAL(answer["type"], "rpc_response");
  CAF_CHECK_EQUAL(answer["id"], 9);
  CAF_CHECK_EQUAL(answer["success"], false);
  CAF_CHECK_EQUAL(answer["error"]["code"], "invalid_argument");
  CAF_CHECK(now() == phase::running);
}

CAF_TEST(what_breaks_the_protocol_ends_the_sandbox_and_nothing_after_it_counts) {
  const std::vector<std::string> broken = {
      "not json",
      "[]",
      "123",
      R"({"type":"stdout"})",
      R"({"type":"unknown"})",
      R"({"type":"stdout","data":"x","data":"y"})",
      "{\"type\":\"stdout\",\"data\":\"\xff\xfe\"}",
      R"({"type":"done","id":"run-8","exitCode":0})",
      R"({"type":"rpc_request","payload":{"type":"list_servers"}})",
      std::string("{\"type\":\"stdout\",\"data\":\"a\0b\"}", 30),
  };
  for (const auto& line : broken) {
    sandbox_fixture world;
    world.run_code();
    auto before = world.credit();
    world.say(line + "\n" + output_line("after"));
    CAF_MESSAGE("line: " << line);
    CAF_CHECK(world.lost_once(errc::malformed));
    CAF_CHECK(world.log->outputs.empty());
    CAF_CHECK(world.cleaned_up());
    CAF_CHECK_EQUAL(world.credit() - before, line.size() + output_line("after").size() + 2);
  }
}

CAF_TEST(nesting_and_sizes_over_the_limits_end_the_sandbox) {
  for (const auto& line : {std::string(100, '[') + std::string(100, ']'),
                           output_line(std::string(300 * kibibyte, 'x'))}) {
    sandbox_fixture world;
    world.run_code();
    world.say(line);
    CAF_CHECK(world.lost_once(errc::too_large));
    CAF_CHECK(world.cleaned_up());
  }
}

CAF_TEST(a_line_over_the_limit_ends_the_sandbox_as_soon_as_it_is_seen) {
  env->bounds.line = 1000;
  run_code();
  say_bytes(std::string(900, 'x'));
  CAF_CHECK_EQUAL(log->ends(), 0u);
  CAF_CHECK_EQUAL(env->budget->used(), 900u);
  auto credit_before = credit();
  say_bytes(std::string(200, 'x'));
  CAF_CHECK(lost_once(errc::too_large));
  CAF_CHECK(cleaned_up());
  CAF_CHECK_EQUAL(credit() - credit_before, 200u);
}

CAF_TEST(an_unfinished_line_is_charged_to_the_memory_budget_and_refused_over_it) {
  env->budget = std::make_shared<memory_budget>(5000);
  run_code();
  // What was written to the guest is acknowledged by now.
  CAF_CHECK_EQUAL(env->budget->used(), 0u);
  say_bytes(std::string(3000, 'x'));
  CAF_CHECK_EQUAL(env->budget->used(), 3000u);
  say_bytes(std::string(3000, 'x'));
  CAF_CHECK(lost_once(errc::overloaded));
  CAF_CHECK(cleaned_up());
}

CAF_TEST(a_finished_line_gives_its_memory_back) {
  run_code();
  auto line = output_line(std::string(1000, 'x'));
  say_bytes(line.substr(0, 900));
  CAF_CHECK_EQUAL(env->budget->used(), 900u);
  say_bytes(line.substr(900) + "\n" + line.substr(0, 10));
  CAF_CHECK_EQUAL(env->budget->used(), 10u);
}

CAF_TEST(a_guest_that_does_not_read_is_ended_when_the_budget_is_used_up) {
  run_code();
  processes->input_blocked = true;
  env->budget = nullptr;
  state().out.emplace(1000, std::make_shared<memory_budget>(3000));
  for (std::uint64_t call = 1; call <= 10 && !gone(); ++call) {
    self->send(box, respond_atom::value, call, "\"" + std::string(500, 'x') + "\"");
    consume_messages();
  }
  CAF_CHECK(lost_once(errc::overloaded));
  CAF_CHECK(gone());
}

CAF_TEST(what_waits_for_the_guest_is_charged_to_its_run) {
  run_budget = std::make_shared<memory_budget>(100'000, 0, env->budget);
  run_code();
  processes->input_blocked = true;
  self->send(box, respond_atom::value, std::uint64_t{1}, "\"" + std::string(50'000, 'x') + "\"");
  consume_messages();
  CAF_CHECK(run_budget->used() > 50'000);
  CAF_CHECK_EQUAL(env->budget->used(), run_budget->used());
  self->send(box, respond_atom::value, std::uint64_t{2}, "\"" + std::string(50'000, 'x') + "\"");
  consume_messages();
  CAF_CHECK(lost_once(errc::overloaded));
}

CAF_TEST(a_guest_may_be_behind_by_a_burst_of_answers_but_not_for_ever) {
  run_code();
  processes->input_blocked = true;
  auto refuse = [&](std::uint64_t count) {
    for (std::uint64_t call = 1; call <= count && !gone(); ++call) {
      self->send(box, refuse_atom::value, call, error{errc::limit, "too many"});
      consume_messages();
    }
  };
  refuse(1000);
  CAF_CHECK_EQUAL(log->ends(), 0u);
  refuse(5000);
  CAF_CHECK(lost_once(errc::overloaded));
}

CAF_TEST(answers_wait_in_the_outbox_until_earlier_ones_are_written) {
  env->bounds.write_ahead = 1000;
  run_code();
  auto before = processes->input[1].size();
  processes->input_blocked = true;
  for (std::uint64_t call = 1; call <= 5; ++call) {
    self->send(box, respond_atom::value, call, "\"" + std::string(500, 'x') + "\"");
  }
  consume_messages();
  auto first = processes->input[1].size() - before;
  CAF_CHECK(first > 500 && first <= 1000);
  CAF_CHECK(env->budget->used() > 2500u);
  caf::anon_send(box, child_written{1, first});
  consume_messages();
  CAF_CHECK(processes->input[1].size() - before > first);
  processes->input_blocked = false;
  caf::anon_send(box, child_written{1, first});
  consume_messages();
  auto answers = frames();
  CAF_REQUIRE_EQUAL(answers.size(), 7u);
  for (std::size_t call = 1; call <= 5; ++call) {
    CAF_CHECK_EQUAL(answers[call + 1]["id"], call);
  }
}

CAF_TEST(answers_refusals_and_interrupts_reach_the_guest) {
  run_code();
  self->send(box, respond_atom::value, std::uint64_t{3}, std::string{R"({"content":[]})"});
  self->send(box, refuse_atom::value, std::uint64_t{4}, error{errc::denied, "no"});
  self->send(box, interrupt_atom::value);
  consume_messages();
  auto got = frames();
  CAF_REQUIRE_EQUAL(got.size(), 5u);
  CAF_CHECK_EQUAL(got[2]["success"], true);
  CAF_CHECK_EQUAL(got[2]["payload"], (json{{"content", json::array()}}));
  CAF_CHECK_EQUAL(got[3]["error"]["code"], "denied");
  CAF_CHECK_EQUAL(got[4]["type"], "cancel");
  CAF_CHECK_EQUAL(got[4]["id"], "run-7");
}

CAF_TEST(nothing_is_written_to_a_guest_that_runs_no_code_yet) {
  reach(phase::booting);
  self->send(box, respond_atom::value, std::uint64_t{3}, std::string{"{}"});
  self->send(box, interrupt_atom::value);
  consume_messages();
  CAF_CHECK(processes->input[1].empty());
}

CAF_TEST(credit_for_a_frame_comes_back_when_the_owner_has_dealt_with_it) {
  run_code();
  auto start = credit();
  auto first = output_line("one");
  auto second = call_line(1);
  say(first);
  say(second);
  CAF_CHECK_EQUAL(credit(), start);
  acknowledge(1);
  CAF_CHECK_EQUAL(credit() - start, first.size() + 1);
  acknowledge(1);
  CAF_CHECK_EQUAL(credit() - start, first.size() + second.size() + 2);
  // Acknowledging more than there was gives nothing.
  acknowledge(7);
  CAF_CHECK_EQUAL(credit() - start, first.size() + second.size() + 2);
}

CAF_TEST(a_line_longer_than_the_read_ahead_still_arrives) {
  run_code();
  auto start = credit();
  auto line = call_line(1, std::string(100'000, 'x')) + "\n";
  for (std::size_t at = 0; at < line.size(); at += 4096) {
    // As the process host would: nothing is read without credit.
    CAF_REQUIRE(at <= credit() - start + 4096);
    say_bytes(line.substr(at, 4096));
  }
  CAF_CHECK_EQUAL(log->calls.size(), 1u);
}

CAF_TEST(frames_that_the_owner_holds_stop_the_reading_however_they_were_cut) {
  // Each frame comes in small pieces; all but the last of them are credited before it is whole.
  run_code();
  auto start = credit();
  std::uint64_t sent = 0;
  auto line = output_line(std::string(1000, 'x')) + "\n";
  const std::uint64_t window = 8 * line.size();
  for (int i = 0; i < 100; ++i) {
    for (std::size_t at = 0; at < line.size(); at += 100) {
      auto piece = line.substr(at, 100);
      if (sent + piece.size() > window + credit() - start) {
        break;
      }
      sent += piece.size();
      say_bytes(piece);
    }
  }
  CAF_CHECK(log->outputs.size() >= 7u);
  CAF_CHECK(log->outputs.size() <= 9u);
  acknowledge(static_cast<std::uint32_t>(log->outputs.size()));
  CAF_CHECK_EQUAL(credit() - start, sent);
}

CAF_TEST(every_byte_is_credited_exactly_once_however_it_is_cut_and_acknowledged) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    sandbox_fixture world;
    world.run_code();
    std::mt19937 random{seed};
    auto start = world.credit();
    std::string text;
    for (int i = 0; i < 30; ++i) {
      switch (random() % 4) {
      case 0:
        text += output_line(std::string(random() % 200, 'x')) + "\n";
        break;
      case 1:
        text += call_line(i + 1, std::string(random() % 200, 'y')) + "\r\n";
        break;
      case 2:
        text += unusable_call(i + 1) + "\n";
        break;
      default:
        text += random() % 2 == 0 ? "\n" : "\r\n";
      }
    }
    std::uint64_t sent = 0;
    while (sent < text.size()) {
      auto piece = text.substr(sent, 1 + random() % 150);
      sent += piece.size();
      world.say_bytes(piece);
      CAF_REQUIRE(world.credit() - start <= sent);
      if (random() % 3 == 0) {
        world.acknowledge(random() % 4);
      }
    }
    world.acknowledge(100);
    CAF_CHECK_EQUAL(world.credit() - start, sent);
    CAF_CHECK_EQUAL(world.log->ends(), 0u);
    // The end gives nothing back a second time.
    world.end();
    CAF_CHECK_EQUAL(world.credit() - start, sent);
  }
}

CAF_TEST(stderr_of_the_command_line_is_credited_at_once_and_its_tail_kept_for_the_diagnosis) {
  env->bounds.stderr_tail = 10;
  run_code();
  guest().err("0123456789");
  guest().err("abcde");
  consume_messages();
  CAF_CHECK_EQUAL(credit(stream_id::err), 15u);
  exit(1);
  CAF_CHECK_EQUAL(runtime->diagnoses.at(0), "56789abcde");
}

CAF_TEST_FIXTURE_SCOPE_END()
