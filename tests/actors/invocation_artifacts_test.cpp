#define CAF_SUITE invocation_artifacts

#include "tests/support/invocation_fixture.hpp"
#include "tests/support/scripted_store.hpp"

/// What a run leaves besides its answer.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string png = "\x89PNG\r\n\x1a\n";

struct fixture : invocation_fixture {
  fixture() {
    env->bounds.answer_stream = 100;
    kept->save.answer = "/host/file";
    store = sys.spawn(scripted_store, kept);
  }

  void write(const std::string& bytes, stream_id stream = stream_id::out) {
    tell(guest_output{stream, bytes});
  }

  void save(const std::string& name, const std::string& bytes,
            const std::string& type = "application/octet-stream") {
    tell(guest_artifact{name, type, bytes});
  }

  void end() { tell(guest_done{"run-7", 0, {}, {}, {}}); }

  std::uint64_t lost(const std::string& why) const {
    for (const auto& each : answers.at(0).artifacts_lost) {
      if (each.why.find(why) != std::string::npos) {
        return each.count;
      }
    }
    return 0;
  }

  std::shared_ptr<store_script> kept = std::make_shared<store_script>();
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(invocation_artifacts_tests, fixture)

CAF_TEST(output_that_the_answer_shows_is_not_kept) {
  start_code();
  write(std::string(100, 'x'));
  write("little", stream_id::err);
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK(kept->runs.empty());
  CAF_CHECK_EQUAL(answers[0].out_kept.uri, "");
  CAF_CHECK_EQUAL(sandbox->credit, 2u);
}

CAF_TEST(of_more_all_is_kept_from_its_first_byte) {
  start_code();
  std::string all;
  for (int i = 0; i < 50; ++i) {
    std::string piece = "piece " + std::to_string(i) + "\xFF\n";
    all += piece;
    write(piece);
  }
  write("little", stream_id::err);
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK(kept->streams[stream_id::out] == all);
  CAF_CHECK_EQUAL(kept->streams.count(stream_id::err), 0u);
  CAF_CHECK_EQUAL(answers[0].out.total, all.size());
  CAF_CHECK_EQUAL(answers[0].out_kept.kept.bytes, all.size());
  auto uri = output_uri(kept->runs[0].handle, stream_id::out);
  CAF_CHECK_EQUAL(answers[0].out_kept.uri, uri);
  CAF_REQUIRE_EQUAL(kept->sealed.size(), 1u);
  CAF_CHECK_EQUAL(kept->sealed[0].first, all.size());
  CAF_CHECK_EQUAL(kept->sealed[0].second, 6u);
  CAF_CHECK_EQUAL(kept->runs[0].owner, "local");
  CAF_CHECK_EQUAL(sandbox->credit, 51u);
}

CAF_TEST(little_output_that_takes_much_to_show_is_kept) {
  env->bounds.answer_stream = 16 * kibibyte;
  start_code();
  auto all = std::string(8000, '\x01');
  write(all);
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK(kept->streams[stream_id::out] == all);
  CAF_CHECK_EQUAL(answers[0].out_kept.kept.bytes, 8000u);
}

CAF_TEST(a_slow_disk_is_a_brake_and_delays_the_answer) {
  kept->append.held = true;
  kept->seal.held = true;
  start_code();
  write(std::string(101, 'a'));
  write(std::string(101, 'b'));
  CAF_CHECK_EQUAL(sandbox->credit, 0u);
  end();
  CAF_CHECK(answers.empty());
  CAF_CHECK_EQUAL(sandbox->ends, 1);
  write("late");
  open(kept->append);
  CAF_CHECK_EQUAL(sandbox->credit, 0u); // ended, it has no use for any
  CAF_CHECK(answers.empty());
  open(kept->seal);
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].out.total, 202u);
  CAF_CHECK_EQUAL(kept->streams[stream_id::out].size(), 202u);
}

CAF_TEST(a_store_that_never_answers_does_not_hold_the_run) {
  kept->append.held = true;
  kept->seal.held = true;
  request.timeout = 100s;
  start_code();
  write(std::string(101, 'a'));
  pass(31s);
  CAF_CHECK_EQUAL(sandbox->credit, 1u);
  end();
  CAF_CHECK(answers.empty());
  pass(31s);
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].out_kept.uri, "");
  CAF_CHECK(!answers[0].out_kept.kept.why.empty());
}

CAF_TEST(a_full_disk_ends_the_keeping_and_not_the_run) {
  start_code();
  write(std::string(150, 'a'));
  kept->append.answer = kept_bytes{150, "/host/stdout", "No space left on device"};
  write(std::string(150, 'b'));
  auto asked = kept->append.asked;
  write(std::string(150, 'c'));
  CAF_CHECK_EQUAL(kept->append.asked, asked);
  CAF_CHECK_EQUAL(sandbox->credit, 3u);
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].out.total, 450u);
  CAF_CHECK_EQUAL(answers[0].out_kept.kept.bytes, 150u);
  CAF_CHECK_EQUAL(answers[0].out_kept.kept.why, "No space left on device");
}

CAF_TEST(whoever_has_all_the_output_already_needs_none_kept) {
  request.keep_output = false;
  start_code();
  write(std::string(1000, 'a'));
  save("a", "b");
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK(kept->streams.empty());
  CAF_CHECK_EQUAL(answers[0].artifacts.size(), 1u);
}

CAF_TEST(artifacts_are_kept_and_told) {
  start_code();
  save("data.bin", std::string{"\0\xFF", 2});
  save("plot.png", png + "data", "image/png");
  save("fake.png", "<script>", "image/png");
  end();
  CAF_REQUIRE(over(run_status::success));
  const auto& all = answers[0].artifacts;
  CAF_REQUIRE_EQUAL(all.size(), 3u);
  CAF_REQUIRE_EQUAL(kept->artifacts.size(), 3u);
  CAF_CHECK(kept->artifacts[0].bytes == (std::string{"\0\xFF", 2}));
  auto uri = artifact_uri(kept->runs[0].handle, "data.bin");
  CAF_CHECK_EQUAL(all[0].uri, uri);
  CAF_CHECK_EQUAL(all[0].file, "/host/file");
  CAF_CHECK_EQUAL(all[0].image, "");
  CAF_CHECK(all[1].image == png + "data");
  CAF_CHECK_EQUAL(all[2].image, "");
  CAF_CHECK_EQUAL(kept->sealed.size(), 1u);
  CAF_CHECK_EQUAL(sandbox->credit, 3u);
  CAF_CHECK(answers[0].artifacts_lost.empty());
}

CAF_TEST(a_handle_is_not_what_the_guest_knows) {
  start_code();
  save("a", "b");
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK(kept->runs[0].handle != request.id);
}

CAF_TEST(the_last_artifact_of_a_name_counts) {
  start_code();
  save("a", "first");
  save("b", "x");
  save("a", "the second");
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_REQUIRE_EQUAL(answers[0].artifacts.size(), 2u);
  CAF_CHECK_EQUAL(answers[0].artifacts[1].name, "a");
  CAF_CHECK_EQUAL(answers[0].artifacts[1].bytes, 10u);
}

CAF_TEST(few_and_small_images_are_shown) {
  env->bounds.image = 100;
  env->bounds.images = 250;
  start_code();
  save("large.png", png + std::string(100, 'x'), "image/png");
  for (int i = 0; i < 6; ++i) {
    save(std::to_string(i) + ".png", png + std::string(i < 2 ? 92 : 10, 'x'), "image/png");
  }
  end();
  CAF_REQUIRE(over(run_status::success));
  std::vector<bool> shown;
  std::size_t bytes = 0;
  for (const auto& each : answers[0].artifacts) {
    shown.push_back(!each.image.empty());
    bytes += each.image.size();
  }
  CAF_CHECK(shown == (std::vector<bool>{false, true, true, true, true, false, false}));
  CAF_CHECK(bytes <= 250);
}

CAF_TEST(what_is_over_the_limits_is_dropped_and_counted) {
  env->bounds.artifact = 100;
  env->bounds.artifacts = 250;
  env->bounds.artifact_count = 4;
  start_code();
  save("large", std::string(101, 'x'));
  save("a", std::string(100, 'x'));
  save("b", std::string(100, 'x'));
  save("c", std::string(100, 'x'));
  save("d", std::string(50, 'x'));
  save("e", "");
  for (int i = 0; i < 10; ++i) {
    save("f", "");
  }
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].artifacts.size(), 4u);
  CAF_CHECK_EQUAL(lost("over 100 bytes"), 1u);
  CAF_CHECK_EQUAL(lost("over 250 bytes of a run"), 1u);
  CAF_CHECK_EQUAL(lost("over 4 of a run"), 10u);
  CAF_CHECK_EQUAL(sandbox->credit, 16u);
}

CAF_TEST(an_artifact_that_cannot_be_kept_fails_nothing) {
  kept->save.refuse_with(errc::unavailable, "No space left on device");
  start_code();
  save("a", "b");
  save("c", "d");
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK(answers[0].artifacts.empty());
  CAF_CHECK_EQUAL(lost("No space left"), 2u);
}

CAF_TEST(artifacts_are_charged_to_the_memory_budget) {
  kept->save.held = true;
  env->bounds.run_memory = 1000;
  start_code();
  save("a", std::string(900, 'x'));
  save("b", std::string(900, 'x'));
  CAF_CHECK_EQUAL(sandbox->credit, 0u);
  open(kept->save);
  save("c", std::string(900, 'x'));
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].artifacts.size(), 2u);
  CAF_CHECK_EQUAL(lost("memory budget"), 1u);
}

CAF_TEST(what_comes_after_the_end_counts_no_more) {
  kept->seal.held = true;
  start_code();
  save("a", "b");
  end();
  save("late", "x");
  write(std::string(1000, 'x'));
  open(kept->seal);
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(answers[0].artifacts.size(), 1u);
  CAF_CHECK_EQUAL(kept->artifacts.size(), 1u);
  CAF_CHECK_EQUAL(answers[0].out.total, 0u);
}

CAF_TEST(what_a_cancelled_run_left_is_finished_too) {
  start_code();
  save("a", "b");
  cancel();
  CAF_REQUIRE(over(run_status::cancelled));
  CAF_CHECK_EQUAL(kept->sealed.size(), 1u);
}

CAF_TEST(without_a_store_artifacts_are_counted) {
  caf::anon_send_exit(store, caf::exit_reason::kill);
  store = nullptr;
  start_code();
  save("a", "b");
  write(std::string(1000, 'x'));
  end();
  CAF_REQUIRE(over(run_status::success));
  CAF_CHECK_EQUAL(lost("no place"), 1u);
}

CAF_TEST(live_output_comes_at_a_bounded_rate_and_is_neutralised) {
  auto told = std::make_shared<std::vector<run_progress>>();
  request.observer = sys.spawn([told]() -> run_observer_actor::behavior_type {
    return {[told](const run_progress& step) { told->push_back(step); },
            [](const client_question& question) -> caf::result<std::string> {
              return to_caf(errc::unavailable, question.method);
            }};
  });
  request.live = true;
  start_code();
  told->clear();
  for (int i = 0; i < 500; ++i) {
    write("line " + std::to_string(i) + "\x1b[2J\n");
  }
  CAF_CHECK(told->empty());
  CAF_CHECK_EQUAL(sandbox->credit, 500u);
  advance_time(250ms);
  consume_messages();
  CAF_REQUIRE_EQUAL(told->size(), 1u);
  const auto& text = told->front().message;
  CAF_CHECK(told->front().output);
  CAF_CHECK(text.size() <= kibibyte);
  CAF_CHECK(text.starts_with("line "));
  CAF_CHECK(text.ends_with("line 499\\u001b[2J"));
  CAF_CHECK(text.find('\x1b') == std::string::npos);
  advance_time(250ms);
  consume_messages();
  CAF_CHECK_EQUAL(told->size(), 1u);
  write("10%\r20%");
  advance_time(250ms);
  consume_messages();
  CAF_REQUIRE_EQUAL(told->size(), 2u);
  CAF_CHECK_EQUAL(told->back().message, "10%\n20%");
  write("never told");
  end();
  pass(1s);
  CAF_CHECK_EQUAL(told->size(), 2u);
  caf::anon_send_exit(request.observer, caf::exit_reason::kill);
}

CAF_TEST_FIXTURE_SCOPE_END()
