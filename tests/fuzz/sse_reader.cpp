#include "protocol/sse_reader.hpp"

#include <algorithm>
#include <vector>

#include "protocol/http_mcp.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

struct heard {
  std::vector<std::string> events;
  std::size_t overlong = 0;
  std::string last_id;
  std::optional<std::chrono::milliseconds> retry;
  friend bool operator==(const heard&, const heard&) = default;
};

heard read(std::string_view text, std::size_t piece, std::size_t most) {
  heard result;
  sse_reader reader{most};
  const sse_reader::sink sink{
      [&](const sse_event& event) {
        require(!event.type.empty(), "an event has a type");
        require(event.data.size() + event.type.size() <= most + sizeof "message",
                "an event is bounded");
        result.events.push_back(event.type + '\0' + event.data + '\0' + event.id.value_or("none"));
      },
      [&] { ++result.overlong; }};
  while (!text.empty()) {
    reader.feed(text.substr(0, piece), sink);
    require(reader.held() <= most + 1, "what is held is bounded");
    text.remove_prefix(std::min(piece, text.size()));
  }
  result.last_id = reader.last_id();
  result.retry = reader.retry();
  require(result.last_id.find_first_of("\r\n") == std::string::npos, "an id is one line");
  require(!result.retry || (result.retry->count() >= 0 && *result.retry <= std::chrono::hours{1}),
          "a wait is bounded");
  return result;
}

/// Our own events come out as they went in.
void check_own(std::string_view message) {
  if (message.find_first_of("\r\n") != std::string_view::npos) {
    return;
  }
  auto stream = encode_retry(5) + encode_priming_event("1-0") + encode_keep_alive() +
                encode_event("1-1", message);
  auto result = read(stream, stream.size(), stream.size());
  require(result.events.size() == 2 && result.last_id == "1-1" && result.overlong == 0 &&
              result.events[1] ==
                  std::string{"message"} + '\0' + std::string{message} + '\0' + "1-1",
          "an event of ours is read as it was written");
}

} // namespace

void sse_reader_target(std::string_view input) {
  const auto piece = 1 + take_number(input, 31);
  const auto most = 8 * (1 + take_number(input, 31));
  auto whole = read(input, std::max<std::size_t>(input.size(), 1), 1 << 16);
  require(whole.overlong == 0 || input.size() > 1 << 16, "nothing short is overlong");
  require(read(input, piece, 1 << 16) == whole, "pieces make no difference");
  read(input, piece, most);
  check_own(input);
}

} // namespace bulkhead::fuzz
