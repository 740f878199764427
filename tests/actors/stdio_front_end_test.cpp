#define CAF_SUITE stdio_front_end

#include "actors/stdio_front_end.hpp"

#include <chrono>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/actor_config.hpp"
#include "tests/support/session_world.hpp"

#include "caf/test/dsl.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;
using nlohmann::json;
using std::chrono::seconds;

namespace {

/// The client's end of a scripted transport.
struct scripted_transport {
  std::vector<json> written;
  std::size_t taken = 0;
  std::function<void()> drained; ///< set once the front end waits for it
  bool drains_at_once = true;
  bool closed = false;
};

struct fixture : test_coordinator_fixture<actor_config> {
  fixture() {
    context = scripted_context(sys, env, runs, admission, std::make_shared<server_catalogue>());
    auto open = [to = transport](const front_end_actor&) {
      return line_transport{
          [to](const std::string& line) {
            CAF_CHECK_EQUAL(line.back(), '\n');
            to->written.push_back(json::parse(line));
          },
          [to](std::size_t bytes) { to->taken += bytes; },
          [to](std::function<void()> done) {
            to->drains_at_once ? done() : void(to->drained = std::move(done));
          },
          [to] { to->closed = true; },
      };
    };
    front_end = sys.spawn(bulkhead::stdio_front_end, context, open);
    watcher = sys.spawn([gone = gone, of = front_end](caf::event_based_actor* watching) {
      watching->monitor(of);
      watching->set_down_handler([gone](const caf::down_msg&) { *gone = true; });
      return caf::behavior{[](int) {}};
    });
    consume_messages();
  }

  ~fixture() override {
    for (auto& run : *runs) {
      caf::anon_send_exit(run->actor, caf::exit_reason::user_shutdown);
    }
    caf::anon_send_exit(front_end, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(context.admission, caf::exit_reason::user_shutdown);
    consume_messages();
  }

  void line(std::string text) {
    caf::anon_send(front_end, line_atom::value, std::move(text));
    consume_messages();
  }

  void call() {
    line(R"({"jsonrpc":"2.0","id":1,"method":"tools/call",)"
         R"("params":{"name":"run_python","arguments":{"code":"1"}}})");
  }

  void end_input() {
    caf::anon_send(front_end, input_end_atom::value);
    consume_messages();
  }

  void finish_run() {
    caf::anon_send(runs->at(0)->actor, end_atom::value, run_answer{});
    consume_messages();
  }

  void pass(seconds time) {
    for (auto left = time; left.count() > 0; --left) {
      advance_time(seconds{1});
      consume_messages();
    }
  }

  std::shared_ptr<environment> env = test_environment();
  std::shared_ptr<scripted_runs> runs = std::make_shared<scripted_runs>();
  std::shared_ptr<admission_script> admission = std::make_shared<admission_script>();
  std::shared_ptr<scripted_transport> transport = std::make_shared<scripted_transport>();
  std::shared_ptr<bool> gone = std::make_shared<bool>(false);
  session_context context;
  front_end_actor front_end;
  caf::actor watcher;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(stdio_front_end_tests, fixture)

CAF_TEST(lines become answers) {
  line(R"({"jsonrpc":"2.0","id":0,"method":"ping"})");
  CAF_REQUIRE_EQUAL(transport->written.size(), 1u);
  CAF_CHECK_EQUAL(transport->written[0], json::parse(R"({"jsonrpc":"2.0","id":0,"result":{}})"));
}

CAF_TEST(lines are given back once they are dealt with) {
  line("12345");
  line("");
  CAF_CHECK_EQUAL(transport->taken, 7u);
  CAF_CHECK_EQUAL(transport->written.size(), 1u);
}

CAF_TEST(an overlong line is reported and the connection goes on) {
  caf::anon_send(front_end, line_atom::value);
  consume_messages();
  CAF_REQUIRE_EQUAL(transport->written.size(), 1u);
  CAF_CHECK(transport->written[0]["id"].is_null());
  CAF_CHECK_EQUAL(transport->written[0]["error"]["code"], json(-32600));
  line(R"({"jsonrpc":"2.0","id":0,"method":"ping"})");
  CAF_CHECK_EQUAL(transport->written.size(), 2u);
}

CAF_TEST(at the end of input the front end ends) {
  line(R"({"jsonrpc":"2.0","id":0,"method":"ping"})");
  end_input();
  CAF_CHECK(transport->closed);
  CAF_CHECK(*gone);
}

CAF_TEST(requests before the end of input are answered) {
  caf::anon_send(front_end, line_atom::value,
                 std::string{R"({"jsonrpc":"2.0","id":0,"method":"ping"})"});
  caf::anon_send(front_end, input_end_atom::value);
  consume_messages();
  CAF_CHECK_EQUAL(transport->written.size(), 1u);
  CAF_CHECK(*gone);
}

CAF_TEST(runs are cancelled when the client goes and waited for) {
  call();
  end_input();
  CAF_CHECK(runs->at(0)->cancelled);
  CAF_CHECK(!*gone);
  finish_run();
  CAF_CHECK(transport->written.empty());
  CAF_CHECK(*gone);
}

CAF_TEST(what is written goes out before the connection closes) {
  transport->drains_at_once = false;
  end_input();
  CAF_CHECK(!transport->closed);
  CAF_REQUIRE(transport->drained);
  transport->drained();
  consume_messages();
  CAF_CHECK(transport->closed);
  CAF_CHECK(*gone);
}

CAF_TEST(a client that does not read is not waited for) {
  transport->drains_at_once = false;
  end_input();
  pass(seconds{3});
  CAF_CHECK(transport->closed);
  CAF_CHECK(*gone);
}

CAF_TEST(a stop is answered when all is done) {
  call();
  auto stopped = std::make_shared<bool>(false);
  sys.spawn([stopped, to = front_end](caf::event_based_actor* asking) {
    asking->request(to, seconds{60}, stop_atom::value)
        .then([stopped](caf::ok_atom) { *stopped = true; }, [](const caf::error&) {});
  });
  consume_messages();
  CAF_CHECK(!*stopped);
  line(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
  CAF_CHECK(transport->written.empty());
  finish_run();
  CAF_CHECK(*stopped);
  CAF_CHECK(*gone);
}

CAF_TEST(a run that does not end holds up the end for a bounded time only) {
  call();
  end_input();
  pass(seconds{13});
  CAF_CHECK(*gone);
}

CAF_TEST(a lost session closes the connection) {
  auto& state =
      deref<std::remove_pointer_t<stdio_front_end_actor::stateful_pointer<stdio_front_end_state>>>(
          front_end)
          .state;
  caf::anon_send_exit(state.session, caf::exit_reason::kill);
  consume_messages();
  CAF_CHECK(transport->closed);
  CAF_CHECK(*gone);
}

CAF_TEST_FIXTURE_SCOPE_END()
