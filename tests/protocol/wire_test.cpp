#include "protocol/wire.hpp"

#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using std::string_literals::operator""s;

const limits bounds;

template <class T>
T frame_of(std::string_view line) {
  const auto parsed = parse_guest_frame(line, bounds);
  if (!parsed) {
    ADD_FAILURE() << line.substr(0, 200) << ": " << parsed.error().message;
    return {};
  }
  if (const auto* refused = std::get_if<refused_call>(&*parsed)) {
    ADD_FAILURE() << line.substr(0, 200) << ": refused: " << refused->reason.message;
    return {};
  }
  const auto* frame = std::get_if<T>(&std::get<guest_frame>(*parsed));
  EXPECT_NE(frame, nullptr) << line.substr(0, 200);
  return frame == nullptr ? T{} : *frame;
}

errc error_of(std::string_view line) {
  const auto parsed = parse_guest_frame(line, bounds);
  return parsed ? errc::none : parsed.error().code;
}

/// The refusal of a line; its id is 0 if it wasn't refused as a call.
refused_call refusal_of(std::string_view line) {
  const auto parsed = parse_guest_frame(line, bounds);
  if (!parsed || !std::holds_alternative<refused_call>(*parsed)) {
    return {0, parsed ? error{} : parsed.error()};
  }
  return std::get<refused_call>(*parsed);
}

std::string call(std::string_view payload) {
  return R"({"type":"rpc_request","id":7,"payload":)" + std::string{payload} + "}";
}

TEST(wire, reads_ready) {
  EXPECT_EQ(frame_of<guest_ready>(R"({"type":"ready","python":"3.13.5","protocol":1})"),
            (guest_ready{"3.13.5", 1}));
  for (const auto* line :
       {R"({"type":"ready","protocol":1})", R"({"type":"ready","python":3,"protocol":1})",
        R"({"type":"ready","python":"3","protocol":"1"})",
        R"({"type":"ready","python":"3","protocol":1.0})", R"({"type":"ready","python":"3"})"}) {
    EXPECT_EQ(error_of(line), errc::malformed) << line;
  }
}

TEST(wire, reads_output) {
  EXPECT_EQ(frame_of<guest_output>(R"({"type":"stdout","data":"h\u00e9\n"})"),
            (guest_output{stream_id::out, "hé\n"}));
  EXPECT_EQ(frame_of<guest_output>(R"({"type":"stderr","b64":"gIE="})"),
            (guest_output{stream_id::err, "\x80\x81"}));
  EXPECT_EQ(frame_of<guest_output>(R"({"type":"stdout","data":""})"),
            (guest_output{stream_id::out, ""}));
  EXPECT_EQ(frame_of<guest_output>(R"({"type":"stdout","data":"a\u0000b"})").bytes, "a\0b"s);
  for (const auto* line :
       {R"({"type":"stdout"})", R"({"type":"stdout","data":1})", R"({"type":"stdout","b64":"*"})",
        R"({"type":"stdout","data":"a","b64":"gIE="})", R"({"type":"stdout","data":["a"]})",
        R"({"type":"stdin","data":"a"})", R"({"type":"stdout","data":"\ud800"})",
        "{\"type\":\"stdout\",\"data\":\"\xFF\"}"}) {
    EXPECT_EQ(error_of(line), errc::malformed) << line;
  }
}

TEST(wire, a_frame_needs_a_known_type) {
  for (const auto* line :
       {"", "{}", "[]", "123", "null", "hello", R"({"type":1})", R"({"type":"init"})",
        R"({"type":"artifact"})", R"({"type":"rpc_response","id":1})", R"({"type":""})",
        R"({"type":"stdout","type":"stderr","data":"x"})"}) {
    EXPECT_EQ(error_of(line), errc::malformed) << line;
  }
}

TEST(wire, reads_each_kind_of_call) {
  guest_call expected;
  expected.id = 7;
  EXPECT_EQ(frame_of<guest_call>(call(R"({"type":"list_servers"})")), expected);
  expected.kind = guest_call_kind::list_tools;
  expected.server = "a b";
  EXPECT_EQ(frame_of<guest_call>(call(R"({"type":"list_tools","server":"a b"})")), expected);
  expected.kind = guest_call_kind::call_tool;
  expected.tool = "t";
  EXPECT_EQ(frame_of<guest_call>(call(R"({"type":"call_tool","server":"a b","tool":"t"})")),
            expected);
  expected.arguments = R"({ "x": [1, {"y": null}] })";
  EXPECT_EQ(
      frame_of<guest_call>(call(
          R"({"type":"call_tool","server":"a b","tool":"t","arguments":{ "x": [1, {"y": null}] }})")),
      expected);
}

TEST(wire, reads_document_calls) {
  guest_call expected;
  expected.id = 7;
  expected.kind = guest_call_kind::query_tool_docs;
  expected.server = "s";
  EXPECT_EQ(frame_of<guest_call>(call(R"({"type":"query_tool_docs","server":"s","tool":null})")),
            expected);
  expected.tool = "t";
  expected.full_detail = true;
  EXPECT_EQ(frame_of<guest_call>(
                call(R"({"type":"query_tool_docs","server":"s","tool":"t","detail":"full"})")),
            expected);
  guest_call stubs;
  stubs.id = 7;
  stubs.kind = guest_call_kind::query_tool_docs;
  stubs.server = "s";
  stubs.stubs = true;
  EXPECT_EQ(
      frame_of<guest_call>(call(R"({"type":"query_tool_docs","server":"s","detail":"stubs"})")),
      stubs);
  guest_call search;
  search.id = 7;
  search.kind = guest_call_kind::search_tool_docs;
  search.query = "files";
  EXPECT_EQ(frame_of<guest_call>(call(R"({"type":"search_tool_docs","query":"files"})")), search);
  search.limit = 50;
  search.server = "s";
  EXPECT_EQ(
      frame_of<guest_call>(call(
          R"({"type":"search_tool_docs","query":"files","limit":50,"server":"s","detail":"summary"})")),
      search);
}

TEST(wire, an_id_is_an_integer_from_1_to_2_to_the_53) {
  const auto with_id = [](std::string_view id) {
    return R"({"type":"rpc_request","id":)" + std::string{id} +
           R"(,"payload":{"type":"list_servers"}})";
  };
  EXPECT_EQ(frame_of<guest_call>(with_id("1")).id, 1U);
  EXPECT_EQ(frame_of<guest_call>(with_id("9007199254740992")).id, 9007199254740992U);
  for (const auto* id : {"0", "-1", "1.0", "1e3", "\"1\"", "null", "true", "[1]",
                         "9007199254740993", "18446744073709551617", "-0"}) {
    EXPECT_EQ(error_of(with_id(id)), errc::malformed) << id;
  }
  EXPECT_EQ(error_of(R"({"type":"rpc_request","payload":{"type":"list_servers"}})"),
            errc::malformed);
}

TEST(wire, a_cancel_names_its_call) {
  EXPECT_EQ(frame_of<guest_cancel>(R"({"type":"rpc_cancel","id":7})").id, 7U);
  for (const auto* line :
       {R"({"type":"rpc_cancel"})", R"({"type":"rpc_cancel","id":0})",
        R"({"type":"rpc_cancel","id":"7"})", R"({"type":"rpc_cancel","id":-1})"}) {
    EXPECT_EQ(error_of(line), errc::malformed) << line;
  }
  EXPECT_EQ(error_of(R"({"type":"rpc_cancel","id":7,"pad":")" +
                     std::string(bounds.control_frame, 'x') + "\"}"),
            errc::too_large);
}

TEST(wire, refuses_a_bad_call_by_its_id) {
  for (const auto* payload :
       {"1",
        "null",
        "[]",
        "{}",
        R"({"type":1})",
        R"({"type":"exec"})",
        R"({"type":"list_tools"})",
        R"({"type":"list_tools","server":1})",
        R"({"type":"list_tools","server":""})",
        R"({"type":"call_tool","server":"s"})",
        R"({"type":"call_tool","tool":"t"})",
        R"({"type":"call_tool","server":"s","tool":"t","arguments":[]})",
        R"({"type":"call_tool","server":"s","tool":"t","arguments":"{}"})",
        R"({"type":"query_tool_docs"})",
        R"({"type":"query_tool_docs","server":"s","detail":"all"})",
        R"({"type":"query_tool_docs","server":"s","tool":"t","detail":"stubs"})",
        R"({"type":"search_tool_docs","query":"q","detail":"stubs"})",
        R"({"type":"search_tool_docs"})",
        R"({"type":"search_tool_docs","query":"q","limit":0})",
        R"({"type":"search_tool_docs","query":"q","limit":51})",
        R"({"type":"search_tool_docs","query":"q","limit":"5"})",
        R"({"type":"search_tool_docs","query":"q","limit":2.5})"}) {
    const auto refused = refusal_of(call(payload));
    EXPECT_EQ(refused.id, 7U) << payload;
    EXPECT_EQ(refused.reason.code, errc::invalid_argument) << payload;
    EXPECT_FALSE(refused.reason.message.empty());
  }
  EXPECT_EQ(refusal_of(R"({"type":"rpc_request","id":7})").id, 7U);
}

TEST(wire, names_and_queries_have_limits) {
  const auto with = [](std::string_view key, std::size_t size) {
    const auto type = key == "query" ? "search_tool_docs" : "list_tools";
    return call(R"({"type":")"s + type + "\",\"" + std::string{key} + "\":\"" +
                std::string(size, 'x') + "\"}");
  };
  EXPECT_EQ(frame_of<guest_call>(with("server", 256)).server.size(), 256U);
  EXPECT_EQ(refusal_of(with("server", 257)),
            (refused_call{7, refusal_of(with("server", 257)).reason}));
  EXPECT_EQ(refusal_of(with("server", 257)).reason.code, errc::too_large);
  EXPECT_EQ(refusal_of(with("server", 10'000)).reason.code, errc::too_large);
  EXPECT_EQ(frame_of<guest_call>(with("query", 1024)).query.size(), 1024U);
  EXPECT_EQ(refusal_of(with("query", 1025)).reason.code, errc::too_large);
}

TEST(wire, arguments_have_a_limit_of_their_own) {
  const auto with = [](std::size_t size) {
    return call(R"({"type":"call_tool","server":"s","tool":"t","arguments":{"a":")" +
                std::string(size - 8, 'x') + "\"}}");
  };
  EXPECT_EQ(frame_of<guest_call>(with(bounds.tool_payload)).arguments.size(), bounds.tool_payload);
  const auto refused = refusal_of(with(bounds.tool_payload + 1));
  EXPECT_EQ(refused.id, 7U);
  EXPECT_EQ(refused.reason.code, errc::too_large);
  // Beyond the line limit the scan refuses, but the id stands before the payload.
  EXPECT_EQ(refusal_of(with(bounds.line)).id, 7U);
}

TEST(wire, a_call_without_arguments_is_a_control_frame) {
  const auto padded = R"({"type":"rpc_request","id":7,"payload":{"type":"list_servers"},"pad":")" +
                      std::string(bounds.control_frame, 'x') + "\"}";
  EXPECT_EQ(refusal_of(padded).id, 7U);
  EXPECT_EQ(refusal_of(padded).reason.code, errc::too_large);
}

TEST(wire, refuses_calls_over_the_scan_limits_by_the_id_before_the_payload) {
  const auto deep = std::string(200, '[') + std::string(200, ']');
  std::string wide = "[0";
  for (std::size_t i = 0; i < bounds.json_nodes; ++i) {
    wide += ",0";
  }
  wide += "]";
  for (const auto& value : {deep, wide}) {
    const auto payload =
        R"({"type":"call_tool","server":"s","tool":"t","arguments":{"a":)" + value + "}}";
    EXPECT_EQ(refusal_of(call(payload)).id, 7U);
    EXPECT_EQ(refusal_of(call(payload)).reason.code, errc::too_large);
    const auto spaced = R"({ "id" : 8 , "type" : "rpc_request" , "payload" : )" + payload + " }";
    EXPECT_EQ(refusal_of(spaced).id, 8U);
  }
  const auto surrogate =
      call(R"({"type":"call_tool","server":"s","tool":"t","arguments":{"a":"\ud800"}})");
  EXPECT_EQ(refusal_of(surrogate).id, 7U);
  EXPECT_EQ(refusal_of(surrogate).reason.code, errc::invalid_argument);
}

TEST(wire, guesses_no_id_where_it_is_not_certain) {
  const auto deep = std::string(200, '[');
  for (const auto& line : {
           R"({"type":"rpc_request","payload":)" + deep + R"(,"id":7})",
           R"({"type":"stdout","id":7,"payload":)" + deep,
           R"({"type":"rpc_request","id":7.5,"payload":)" + deep,
           R"({"type":"rpc_request","id":7,"id":8,"payload":)" + deep,
           R"({"x":{"type":"rpc_request","id":7,"payload":)" + deep,
           R"({"type":"rpc_request","x":",\"id\":7,"payload":)" + deep,
           R"([{"type":"rpc_request","id":7,"payload":)" + deep,
           "{\"type\":\"rpc_request\",\"id\":7,\"pad\":\"" + std::string(600, 'x') +
               R"(","payload":)" + deep,
       }) {
    EXPECT_EQ(refusal_of(line).id, 0U) << line.substr(0, 80);
    EXPECT_NE(error_of(line), errc::none) << line.substr(0, 80);
  }
}

TEST(wire, output_frames_have_a_limit) {
  const auto line = [](std::size_t size) {
    const auto frame = R"({"type":"stdout","data":""})"s;
    return frame.substr(0, 25) + std::string(size - frame.size(), 'x') + "\"}";
  };
  EXPECT_EQ(frame_of<guest_output>(line(bounds.output_frame)).bytes.size(),
            bounds.output_frame - 27);
  EXPECT_EQ(error_of(line(bounds.output_frame + 1)), errc::too_large);
}

TEST(wire, reads_done) {
  EXPECT_EQ(frame_of<guest_done>(R"({"type":"done","id":"r1","exitCode":0})"),
            (guest_done{"r1", 0, {}, {}, {}}));
  EXPECT_EQ(
      frame_of<guest_done>(
          R"({"type":"done","id":"r1","exitCode":0,"result":{"repr":"[42]","value":[ 42 ]}})"),
      (guest_done{"r1", 0, "[42]", "[ 42 ]", {}}));
  EXPECT_EQ(frame_of<guest_done>(
                R"({"type":"done","id":"r1","exitCode":0,"result":{"repr":"<x>"},"error":null})"),
            (guest_done{"r1", 0, "<x>", {}, {}}));
  EXPECT_EQ(
      frame_of<guest_done>(
          R"({"type":"done","id":"r1","exitCode":1,"error":{"type":"E","message":"m","traceback":"t"}})"),
      (guest_done{"r1", 1, {}, {}, guest_exception{"E", "m", "t"}}));
}

TEST(wire, clamps_exit_codes) {
  const auto code = [](std::string_view token) {
    return frame_of<guest_done>(R"({"type":"done","id":"r","exitCode":)" + std::string{token} + "}")
        .exit_code;
  };
  EXPECT_EQ(code("3"), 3);
  EXPECT_EQ(code("255"), 255);
  EXPECT_EQ(code("256"), 255);
  EXPECT_EQ(code("-1"), 0);
  EXPECT_EQ(code("99999999999999999999999"), 255);
  EXPECT_EQ(code("-99999999999999999999999"), 0);
}

TEST(wire, refuses_bad_done_frames) {
  for (const auto* line :
       {R"({"type":"done","exitCode":0})", R"({"type":"done","id":"","exitCode":0})",
        R"({"type":"done","id":1,"exitCode":0})", R"({"type":"done","id":"r"})",
        R"({"type":"done","id":"r","exitCode":"0"})", R"({"type":"done","id":"r","exitCode":0.0})",
        R"({"type":"done","id":"r","exitCode":0,"result":1})",
        R"({"type":"done","id":"r","exitCode":0,"result":{}})",
        R"({"type":"done","id":"r","exitCode":0,"result":{"repr":1}})",
        R"({"type":"done","id":"r","exitCode":0,"error":"x"})",
        R"({"type":"done","id":"r","exitCode":0,"error":{"message":"m"}})",
        R"({"type":"done","id":"r","exitCode":0,"error":{"type":"E","traceback":[]}})"}) {
    EXPECT_EQ(error_of(line), errc::malformed) << line;
  }
}

TEST(wire, bounds_what_a_done_frame_carries) {
  const auto line = [](std::size_t repr, std::size_t traceback) {
    return R"({"type":"done","id":"r","exitCode":0,"result":{"repr":")" + std::string(repr, 'x') +
           R"("},"error":{"type":"E","traceback":")" + std::string(traceback, 'y') + "\"}}";
  };
  EXPECT_EQ(error_of(line(32'767, 32'768)), errc::none);
  EXPECT_EQ(error_of(line(32'768, 32'768)), errc::too_large);
  EXPECT_EQ(error_of(line(bounds.output_frame, 0)), errc::too_large);
}

TEST(wire, a_line_over_the_limit_is_too_large) {
  EXPECT_EQ(error_of(std::string(bounds.line + 1, ' ')), errc::too_large);
}

TEST(wire, survives_any_bytes) {
  const std::vector<std::string> seeds = {
      R"({"type":"done","id":"r","exitCode":1,"result":{"repr":"x","value":[1]},"error":{"type":"E"}})",
      R"({"type":"stdout","b64":"gIE="})", call(R"({"type":"list_tools","server":"s"})"),
      call(R"({"type":"call_tool","server":"s","tool":"t","arguments":{"a":"\u00e9"}})")};
  std::mt19937 random{1};
  int sound = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto line = seeds[random() % seeds.size()];
    for (auto count = random() % 4; count > 0; --count) {
      const auto at = random() % line.size();
      if (random() % 2 == 0) {
        line[at] = static_cast<char>(random() % 256);
      } else {
        line.erase(at, 1 + random() % 2);
      }
    }
    const auto parsed = parse_guest_frame(line, bounds);
    sound += parsed ? 1 : 0;
    EXPECT_TRUE(parsed || !parsed.error().message.empty());
  }
  EXPECT_GT(sound, 5000);
}

nlohmann::json decoded(const std::string& line) {
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  return nlohmann::json::parse(line);
}

TEST(wire, reads_artifacts) {
  EXPECT_EQ(frame_of<guest_artifact>(
                R"({"type":"artifact","name":"plot é.png","mimeType":"image/png","b64":"AP8K"})"),
            (guest_artifact{"plot é.png", "image/png", "\0\xFF\n"s}));
  EXPECT_EQ(
      frame_of<guest_artifact>(
          R"({"type":"artifact","name":"x","mimeType":"text/plain; charset=utf-8","b64":""})"),
      (guest_artifact{"x", "text/plain; charset=utf-8", ""}));
}

TEST(wire, an_artifact_of_twelve_mebibytes_fits_into_a_line) {
  const auto size = bounds.artifact;
  const auto line = R"({"type":"artifact","name":"x","mimeType":"a/b","b64":")" +
                    std::string(size / 3 * 4, 'A') + "\"}";
  ASSERT_LE(line.size(), bounds.line);
  EXPECT_EQ(frame_of<guest_artifact>(line).bytes.size(), size);
}

TEST(wire, refuses_bad_artifacts) {
  const auto frame = [](const std::string& name, const std::string& type, const std::string& b64) {
    return R"({"type":"artifact","name":")" + name + R"(","mimeType":")" + type + R"(","b64":)" +
           b64 + "}";
  };
  EXPECT_EQ(error_of(frame("x", "a/b", "\"\"")), errc::none);
  for (const auto& name : {""s, "."s, ".."s, "a/b"s, "../x"s, "a\\u0000b"s, "a\\nb"s, "\\u009b"s}) {
    EXPECT_EQ(error_of(frame(name, "a/b", "\"\"")), errc::malformed) << name;
  }
  EXPECT_EQ(error_of(frame(std::string(256, 'n'), "a/b", "\"\"")), errc::too_large);
  for (const auto& type : {""s, "png"s, "a/b; c=d"s, "a/b\\r\\nX"s}) {
    EXPECT_EQ(error_of(frame("x", type, "\"\"")), errc::malformed) << type;
  }
  for (const auto* b64 : {"\"A\"", "\"AP8K\\n\"", "7", "null", "{}", "\"AP8\""}) {
    EXPECT_EQ(error_of(frame("x", "a/b", b64)), errc::malformed) << b64;
  }
  EXPECT_EQ(error_of(R"({"type":"artifact","name":"x","mimeType":"a/b"})"), errc::malformed);
}

TEST(wire, tells_that_servers_are_loaded_on_first_use) {
  EXPECT_FALSE(decoded(encode_init({}, {}, bounds)).contains("autoload"));
  EXPECT_EQ(decoded(encode_init({}, {}, bounds, true))["autoload"], true);
}

TEST(wire, encodes_host_frames) {
  using nlohmann::json;
  const std::vector<server_brief> servers = {{"my server", "my_server", "does \"x\""}};
  const auto brief =
      json{{"name", "my server"}, {"alias", "my_server"}, {"description", "does \"x\""}};
  EXPECT_EQ(decoded(encode_init(servers, {}, bounds)), (json{{"type", "init"},
                                                             {"servers", json::array({brief})},
                                                             {"discovered", json::array()},
                                                             {"limits",
                                                              {{"callsInFlight", 32},
                                                               {"frameBytes", 16777216},
                                                               {"outputChunkBytes", 262144},
                                                               {"artifactBytes", 12582912},
                                                               {"artifactsBytes", 67108864},
                                                               {"artifacts", 64}}}}));
  EXPECT_EQ(decoded(encode_execute("r1", "print('é')\n\"\"")),
            (json{{"type", "execute"}, {"id", "r1"}, {"code", "print('é')\n\"\""}}));
  EXPECT_EQ(
      decoded(encode_execute("r1", "1", true, {{"data/in.csv", "a,b"}, {"raw", "\0\xFF"s}})),
      (json{{"type", "execute"},
            {"id", "r1"},
            {"code", "1"},
            {"session", true},
            {"files",
             {{{"path", "data/in.csv"}, {"b64", "YSxi"}}, {{"path", "raw"}, {"b64", "AP8="}}}}}));
  EXPECT_EQ(decoded(encode_response(7, "[\n1,\r\n{}]")), (json{{"type", "rpc_response"},
                                                               {"id", 7},
                                                               {"success", true},
                                                               {"payload", {1, json::object()}}}));
  EXPECT_EQ(decoded(encode_refusal(8, {errc::denied, "no\n"})),
            (json{{"type", "rpc_response"},
                  {"id", 8},
                  {"success", false},
                  {"error", {{"code", "denied"}, {"message", "no\n"}}}}));
  EXPECT_EQ(decoded(encode_cancel("r\"1")), (json{{"type", "cancel"}, {"id", "r\"1"}}));
  EXPECT_EQ(decoded(encode_shutdown()), (json{{"type", "shutdown"}}));
  EXPECT_EQ(json::parse(encode_servers({servers[0], servers[0]})), json::array({brief, brief}));
}

} // namespace
} // namespace bulkhead
