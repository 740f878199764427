#define CAF_SUITE outbox

#include "actors/outbox.hpp"

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "actors/memory_budget.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;

namespace {

struct fixture {
  void pump() {
    box.pump([this](std::string bytes) { written.push_back(std::move(bytes)); });
  }

  std::shared_ptr<memory_budget> budget = std::make_shared<memory_budget>(100);
  outbox box{10, budget};
  std::vector<std::string> written;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(outbox_tests, fixture)

CAF_TEST(the_window_bounds_what_is_on_the_way) {
  CAF_CHECK(box.empty());
  box.push("aaaa");
  box.push("bbbb");
  box.push("cccc");
  pump();
  CAF_CHECK(written == (std::vector<std::string>{"aaaa", "bbbb"}));
  box.acknowledge(1);
  pump();
  CAF_CHECK_EQUAL(written.size(), 2u);
  box.acknowledge(1);
  pump();
  CAF_CHECK_EQUAL(written.size(), 3u);
  box.acknowledge(10);
  CAF_CHECK(box.empty());
}

CAF_TEST(a_message_over_the_window_goes_out_alone) {
  box.push("a");
  box.push(std::string(50, 'b'));
  box.push("c");
  pump();
  CAF_CHECK_EQUAL(written.size(), 1u);
  box.acknowledge(1);
  pump();
  CAF_CHECK_EQUAL(written.size(), 2u);
  box.acknowledge(49);
  pump();
  CAF_CHECK_EQUAL(written.size(), 3u);
}

CAF_TEST(bytes_are_charged_until_they_are_written) {
  box.push(std::string(8, 'a'));
  box.push(std::string(20, 'b'));
  CAF_CHECK_EQUAL(budget->used(), 28u);
  pump();
  CAF_CHECK_EQUAL(budget->used(), 28u);
  box.acknowledge(4);
  CAF_CHECK_EQUAL(budget->used(), 28u);
  box.acknowledge(4);
  CAF_CHECK_EQUAL(budget->used(), 20u);
  pump();
  box.acknowledge(20);
  CAF_CHECK_EQUAL(budget->used(), 0u);
}

CAF_TEST(what_the_budget_refuses_is_not_queued) {
  CAF_CHECK(box.push(std::string(90, 'a')));
  CAF_CHECK(!box.push(std::string(11, 'b')));
  CAF_CHECK(box.push(std::string(10, 'c')));
  CAF_CHECK_EQUAL(budget->used(), 100u);
  pump();
  box.acknowledge(90);
  pump();
  CAF_REQUIRE_EQUAL(written.size(), 2u);
  CAF_CHECK_EQUAL(written[1], std::string(10, 'c'));
}

CAF_TEST(acknowledging_more_than_was_written_does_no_harm) {
  box.push("aaaa");
  pump();
  box.acknowledge(1000);
  CAF_CHECK(box.empty());
  box.push("bbbb");
  pump();
  CAF_CHECK_EQUAL(written.size(), 2u);
  CAF_CHECK_EQUAL(budget->used(), 4u);
}

CAF_TEST(an_outbox_that_ends_gives_all_back) {
  {
    outbox other{10, budget};
    other.push(std::string(9, 'a'));
    other.push(std::string(9, 'b'));
    other.pump([](const std::string&) {});
    CAF_CHECK_EQUAL(budget->used(), 18u);
  }
  CAF_CHECK_EQUAL(budget->used(), 0u);
}

CAF_TEST(any_course_keeps_order_window_and_budget) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random{seed};
    auto all = std::make_shared<memory_budget>(1000);
    outbox one{20, all};
    std::string pushed;
    std::string out;
    std::size_t acknowledged = 0;
    for (int step = 0; step < 60; ++step) {
      if (random() % 2 == 0) {
        std::string bytes(1 + random() % 15, static_cast<char>('a' + step % 26));
        CAF_REQUIRE(one.push(bytes));
        pushed += bytes;
      }
      one.pump([&](const std::string& bytes) { out += bytes; });
      CAF_REQUIRE(out.size() - acknowledged <= 20);
      auto count = random() % (out.size() - acknowledged + 1);
      one.acknowledge(count);
      acknowledged += count;
      CAF_REQUIRE(all->used() >= pushed.size() - acknowledged);
    }
    while (!one.empty()) {
      one.pump([&](const std::string& bytes) { out += bytes; });
      one.acknowledge(out.size() - acknowledged);
      acknowledged = out.size();
    }
    CAF_CHECK_EQUAL(out, pushed);
    CAF_CHECK_EQUAL(all->used(), 0u);
  }
}

CAF_TEST(a_budget_gives_exactly_what_it_has) {
  memory_budget::share first;
  memory_budget::share second;
  CAF_CHECK(budget->take(60, first));
  CAF_CHECK(!budget->take(41, second));
  CAF_CHECK_EQUAL(second.bytes(), 0u);
  CAF_CHECK(budget->take(40, second));
  CAF_CHECK(!budget->take(1, first));
  CAF_CHECK(budget->take(0, first));
  first.release();
  first.release();
  CAF_CHECK_EQUAL(budget->used(), 40u);
  CAF_CHECK(!budget->take(SIZE_MAX, first));
}

CAF_TEST(a_share_that_moves_gives_back_once) {
  memory_budget::share first;
  budget->take(30, first);
  budget->take(5, first);
  CAF_CHECK_EQUAL(first.bytes(), 35u);
  memory_budget::share second{std::move(first)};
  CAF_CHECK_EQUAL(budget->used(), 35u);
  memory_budget::share third;
  budget->take(20, third);
  third = std::move(second);
  CAF_CHECK_EQUAL(budget->used(), 35u);
  third.release();
  CAF_CHECK_EQUAL(budget->used(), 0u);
}

CAF_TEST(threads_share_a_budget_without_losing_a_byte) {
  auto work = [this] {
    for (int i = 0; i < 20'000; ++i) {
      memory_budget::share share;
      budget->take(40, share);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(work);
  }
  for (auto& thread : threads) {
    thread.join();
  }
  CAF_CHECK_EQUAL(budget->used(), 0u);
}

CAF_TEST(what_is_taken_of_a_part_is_taken_of_the_whole) {
  auto whole = std::make_shared<memory_budget>(100, 20);
  auto part = std::make_shared<memory_budget>(60, 10, whole);
  memory_budget::share share;
  memory_budget::share other;
  CAF_CHECK(!part->take_if_ample(51, share));
  CAF_CHECK(part->take_if_ample(50, share));
  CAF_CHECK(!part->take_if_ample(1, share));
  CAF_CHECK(part->take(10, share));
  CAF_CHECK(!part->take(1, share));
  CAF_CHECK_EQUAL(share.bytes(), 60u);
  CAF_CHECK_EQUAL(whole->used(), 60u);
  CAF_CHECK(!whole->take_if_ample(21, other));
  CAF_CHECK(whole->take(40, other));
  part->take(0, share);
  share.release();
  CAF_CHECK_EQUAL(part->used(), 0u);
  CAF_CHECK_EQUAL(whole->used(), 40u);
  // Small calls may use the reserve, large ones may not.
  auto large = std::make_shared<memory_budget>(4 * memory_budget::small, 3 * memory_budget::small);
  memory_budget::share call;
  CAF_CHECK(!large->take_for_call(memory_budget::small + 1, call));
  CAF_CHECK(large->take_for_call(memory_budget::small, call));
  CAF_CHECK(large->take_for_call(memory_budget::small, call));
  // What the whole refuses isn't held by the part.
  CAF_CHECK(whole->take(50, other));
  CAF_CHECK(!part->take(20, share));
  CAF_CHECK_EQUAL(part->used(), 0u);
}

CAF_TEST_FIXTURE_SCOPE_END()
