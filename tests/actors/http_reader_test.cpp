#define CAF_SUITE http_reader

#include "actors/http_reader.hpp"
#include "tests/support/http_fixture.hpp"

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

struct fixture : test_coordinator_fixture<http_config> {
  fixture() {
    http_reader_context context;
    context.env = test_environment();
    context.read = [this](http_arrival arrival) { read.push_back(std::move(arrival)); };
    reader = sys.spawn(http_reader, std::move(context));
    consume_messages();
  }

  ~fixture() override {
    read.clear();
    caf::anon_send_exit(reader, caf::exit_reason::user_shutdown);
    consume_messages();
  }

  answer_ptr post(std::string body) {
    auto answer = std::make_shared<recorded_answer>();
    http_arrival arrival;
    arrival.request = {"POST", "/mcp", {}, std::move(body), "ali"};
    arrival.held = std::make_shared<memory_budget::share>();
    arrival.reply = std::make_shared<recording_reply>(answer);
    caf::anon_send(reader, std::move(arrival));
    consume_messages();
    return answer;
  }

  static std::string ping(std::size_t padding = 0) {
    return json{{"jsonrpc", "2.0"},
                {"id", 1},
                {"method", "ping"},
                {"params", {{"padding", std::string(padding, 'x')}}}}
        .dump();
  }

  static std::string large() { return ping(http_reader_state::large); }

  /// Whoever got what was read first has dealt with it.
  void done() {
    read.erase(read.begin());
    consume_messages();
  }

  std::vector<http_arrival> read;
  http_reader_actor reader;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(http_reader_tests, fixture)

CAF_TEST(small bodies are read as they come) {
  post(ping());
  post(ping());
  CAF_REQUIRE(read.size() == 2u);
  CAF_CHECK(read[1].posted.method == "ping");
}

CAF_TEST(one large body is on its way at a time and the order is kept) {
  post(large());
  post(ping());
  post(large());
  post(ping());
  CAF_CHECK(read.size() == 1u);
  done();
  CAF_REQUIRE(read.size() == 2u);
  CAF_CHECK(read[0].request.body.size() < http_reader_state::large);
  CAF_CHECK(read[1].request.body.size() >= http_reader_state::large);
  done();
  CAF_CHECK(read.size() == 1u);
  done();
  CAF_CHECK(read.size() == 1u);
}

CAF_TEST(a large body that is refused holds up nothing) {
  auto refused = post(std::string(http_reader_state::large, 'x'));
  CAF_CHECK(refused->whole.status == 400u);
  post(large());
  CAF_CHECK(read.size() == 1u);
}

CAF_TEST(what waits at the end is refused and what was read goes on) {
  auto going = post(large());
  auto waiting = post(ping());
  caf::anon_send(reader, stop_atom::value);
  consume_messages();
  CAF_CHECK(waiting->whole.status == 503u);
  CAF_CHECK(!waiting->field("Retry-After").empty());
  CAF_CHECK(!going->answered);
  done();
}

CAF_TEST_FIXTURE_SCOPE_END()
