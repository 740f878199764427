#include "protocol/trace_context.hpp"

#include <gtest/gtest.h>

#include "protocol/http_mcp.hpp"
#include "protocol/mcp_client_protocol.hpp"
#include "protocol/mcp_request.hpp"

namespace bulkhead {
namespace {

const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(trace_context, a_sound_traceparent_is_kept_as_it_came) {
  auto context = read_trace_context(parent, "vendor=1,other=2");
  EXPECT_EQ(context.parent, parent);
  EXPECT_EQ(context.state, "vendor=1,other=2");
  EXPECT_EQ(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(trace_context, an_unusable_traceparent_is_none_and_takes_the_state_along) {
  for (std::string bad : {
           "",
           "00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067aa0ba902b7-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
           " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
       }) {
    EXPECT_EQ(read_trace_context(bad, "vendor=1"), trace_context{}) << bad;
  }
}

TEST(trace_context, a_later_version_is_read_as_the_first_with_the_flag_that_is_known) {
  auto of = [](const char* flags) {
    return read_trace_context(
               "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-" + std::string{flags}, {})
        .parent;
  };
  auto begin = parent.substr(0, parent.size() - 2);
  EXPECT_EQ(of("01"), begin + "01");
  EXPECT_EQ(of("ff-what-comes-next"), begin + "01");
  EXPECT_EQ(of("fe"), begin + "00");
}

TEST(trace_context, a_state_that_is_unusable_is_dropped_alone) {
  for (const auto& bad : {std::string(513, 'a'), std::string{"a=\x01"}, std::string{"a=\xc3\xa9"},
                          std::string{"a=1\r\nX-Other: 1"}}) {
    auto context = read_trace_context(parent, bad);
    EXPECT_EQ(context.parent, parent);
    EXPECT_EQ(context.state, "");
  }
  EXPECT_EQ(read_trace_context(parent, std::string(512, 'a')).state.size(), 512U);
}

TEST(trace_context, a_header_gives_one) {
  incoming_request request;
  EXPECT_EQ(trace_of(request), trace_context{});
  request.fields = {{"TraceParent", parent}, {"tracestate", "a=1"}, {"Tracestate", "b=2"}};
  EXPECT_EQ(trace_of(request), (trace_context{parent, "a=1,b=2"}));
  request.fields.push_back({"traceparent", parent});
  EXPECT_EQ(trace_of(request), trace_context{});
}

mcp_request request_with(const std::string& meta) {
  auto text = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":)" + meta + "}}";
  auto message = parse_rpc(text, {4096});
  EXPECT_TRUE(message);
  auto request = read_mcp_request(*message, {4096});
  EXPECT_TRUE(request);
  return request ? *request : mcp_request{};
}

TEST(trace_context, the_meta_of_a_request_gives_one_in_either_era) {
  auto traced = R"("traceparent":")" + parent + R"(","tracestate":"a=1")";
  EXPECT_EQ(request_with("{" + traced + "}").trace, (trace_context{parent, "a=1"}));
  auto modern = request_with(R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                             R"("io.modelcontextprotocol/clientCapabilities":{},)" +
                             traced + "}");
  EXPECT_TRUE(modern.modern);
  EXPECT_EQ(modern.trace, (trace_context{parent, "a=1"}));
  // It is no reason to refuse a request.
  for (const auto* odd : {R"({"traceparent":7})", R"({"traceparent":"x"})",
                          R"({"tracestate":"a=1"})", R"({"traceparent":{"a":"b"}})"}) {
    EXPECT_EQ(request_with(odd).trace, trace_context{}) << odd;
  }
}

TEST(trace_context, a_modern_server_is_told_and_a_legacy_one_is_not) {
  upstream::call_details details;
  details.trace = {parent, "a=\"1\""};
  auto modern = upstream::encode_call(1, upstream::era::modern, "read", "{}", details);
  EXPECT_NE(modern.find(R"("traceparent":")" + parent + R"(","tracestate":"a=\"1\"")"),
            std::string::npos)
      << modern;
  EXPECT_TRUE(parse_rpc(modern.substr(0, modern.size() - 1), {4096}));
  auto legacy = upstream::encode_call(1, upstream::era::legacy, "read", "{}", details);
  EXPECT_EQ(legacy.find("trace"), std::string::npos);
  details.trace = {};
  EXPECT_EQ(upstream::encode_call(1, upstream::era::modern, "read", "{}", details).find("trace"),
            std::string::npos);
}

} // namespace
} // namespace bulkhead
