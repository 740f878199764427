#include "protocol/json_scan.hpp"

#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using std::string_literals::operator""s;

constexpr scan_limits roomy{std::size_t{64} << 20};

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

errc code_of(std::string_view text, const scan_limits& limits = roomy) {
  const auto result = scan_json(text, limits);
  return result ? errc::none : result.error().code;
}

TEST(json_scan, accepts_what_the_grammar_has) {
  for (const auto* text : {"[]",
                           "{}",
                           "0",
                           "-0",
                           "1",
                           "-1",
                           "10",
                           "1.5",
                           "-0.0",
                           "1e5",
                           "1E+5",
                           "1e-5",
                           "0e1",
                           "123.456e-78",
                           "1e999",
                           "true",
                           "false",
                           "null",
                           "\"\"",
                           "\"a\"",
                           R"("\"\\\/\b\f\n\r\t")",
                           R"("\u0041\u00e9\u20AC\ud83d\ude00\uDBFF\uDFFF")",
                           R"("\u0000")",
                           "\"\x7F\"",
                           "\"é€😀\"",
                           "\"\u2028\"",
                           " [ 1 , 2 ] ",
                           "\t\r\n{ \"a\" : [ ] }\n",
                           R"({"":0})",
                           R"({"a":{"a":1},"b":[{"a":2}]})",
                           R"({"a":1,"A":2})",
                           "[[],[[]],{}]"}) {
    EXPECT_EQ(code_of(text), errc::none) << text;
  }
}

TEST(json_scan, refuses_what_the_grammar_lacks) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "["s,
                                  "]"s,
                                  "{"s,
                                  "}"s,
                                  "[1"s,
                                  "[1,"s,
                                  "[1,]"s,
                                  "[,1]"s,
                                  "[1 2]"s,
                                  "[1}"s,
                                  "{1:2}"s,
                                  R"({"a"})"s,
                                  R"({"a":})"s,
                                  R"({"a":1,})"s,
                                  R"({"a":1]})"s,
                                  R"({"a" 1})"s,
                                  R"({,"a":1})"s,
                                  "{a:1}"s,
                                  "{'a':1}"s,
                                  "1 2"s,
                                  "[] []"s,
                                  "01"s,
                                  "-"s,
                                  "-01"s,
                                  "+1"s,
                                  ".5"s,
                                  "1."s,
                                  "1.e5"s,
                                  "1e"s,
                                  "1e+"s,
                                  "0x1"s,
                                  "1_0"s,
                                  "--1"s,
                                  "NaN"s,
                                  "Infinity"s,
                                  "-Infinity"s,
                                  "tru"s,
                                  "truee"s,
                                  "True"s,
                                  "nul"s,
                                  "\""s,
                                  "\"a"s,
                                  "\"\n\""s,
                                  "\"\t\""s,
                                  "\"\0\""s,
                                  "[]\0"s,
                                  "\0"s,
                                  R"("\)"s,
                                  R"("\a")"s,
                                  R"("\u12")"s,
                                  R"("\u12G4")"s,
                                  R"("\U0041")"s,
                                  R"("\x41")"s,
                                  "[1]//"s,
                                  "/**/[1]"s,
                                  "\xEF\xBB\xBF[]"s,
                                  "[\u00A01]"s,
                                  "[\f1]"s}) {
    EXPECT_EQ(code_of(text), errc::malformed) << testing::PrintToString(text);
  }
}

TEST(json_scan, refuses_lone_surrogates_and_bad_utf8) {
  for (const auto* text :
       {R"("\ud800")", R"("\ud83d ")", R"("\ud83d\u0041")", R"("\ud83d\ud83d")", R"("\udc00")",
        R"("\ud83d\)", R"({"\ude00":1})", "\"\xFF\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"",
        "\"\xE2\x82\"", "{\"\x80\":1}", "\"\xF0\x9F\x98", "\xFF"}) {
    EXPECT_EQ(code_of(text), errc::malformed) << testing::PrintToString(text);
  }
}

TEST(json_scan, compares_keys_after_decoding_them) {
  for (const auto* text :
       {R"({"a":1,"a":1})", R"({"a":1,"\u0061":2})", R"({"\u0061":1,"\u0061":2})",
        R"([{"x":[{"k":1,"b":2,"k":3}]}])", R"({"é":1,"\u00e9":2})", R"({"":1,"":2})",
        R"({"a/b":1,"a\/b":2})", R"({"\ud83d\ude00":1,"😀":2})"}) {
    EXPECT_EQ(code_of(text), errc::malformed) << text;
  }
  const auto twin = scan_json(R"({"k":1,"b":2,"k":3})", roomy);
  EXPECT_EQ(twin.error().message, "no valid JSON at byte 13: a key that its object already has");
  EXPECT_EQ(code_of(R"({"a":{"b":1},"b":{"a":1,"b":{"a":0}},"c":[{"a":1},{"a":2}]})"), errc::none);
}

TEST(json_scan, many_keys_with_one_twin) {
  std::string text = "{";
  for (int i = 0; i < 40'000; ++i) {
    text += "\"key" + std::to_string(i) + "\":0,";
  }
  EXPECT_EQ(code_of(text + "\"last\":0}"), errc::none);
  EXPECT_EQ(code_of(text + "\"key1\":0}"), errc::malformed);
}

TEST(json_scan, outlines_the_outermost_members) {
  const auto outline = scan_json(
      " { \"a\" : [1, 2] ,\"\\u0062\":{\"c\":1 } , \"d\":-1.5e3 ,\"e\":\"x\\n\" } ", roomy);
  ASSERT_TRUE(outline);
  EXPECT_TRUE(outline->is_object);
  ASSERT_EQ(outline->members.size(), 4U);
  EXPECT_EQ(outline->members[1].key, "b");
  EXPECT_EQ(outline->find("a"), "[1, 2]");
  EXPECT_EQ(outline->find("b"), "{\"c\":1 }");
  EXPECT_EQ(outline->find("d"), "-1.5e3");
  EXPECT_EQ(outline->find("e"), "\"x\\n\"");
  EXPECT_EQ(outline->find("c"), "");
  EXPECT_EQ(outline->text.front(), '{');
  EXPECT_EQ(outline->text.back(), '}');

  const auto array = scan_json(" [{\"a\":1}] ", roomy);
  ASSERT_TRUE(array);
  EXPECT_FALSE(array->is_object);
  EXPECT_TRUE(array->members.empty());
  EXPECT_EQ(array->text, "[{\"a\":1}]");
  EXPECT_EQ(scan_json(" 7 ", roomy)->text, "7");
}

TEST(json_scan, holds_each_limit_exactly) {
  EXPECT_EQ(code_of(nested(64)), errc::none);
  EXPECT_EQ(code_of(nested(65)), errc::too_large);
  EXPECT_EQ(code_of("[1,2,3]", {7, 64, 4}), errc::none);
  EXPECT_EQ(code_of("[1,2,3]", {6, 64, 4}), errc::too_large);
  EXPECT_EQ(code_of("[1,2,3]", {7, 64, 3}), errc::too_large);
  EXPECT_EQ(code_of(R"({"a":1})", {99, 64, 3}), errc::none);
  EXPECT_EQ(code_of(R"({"a":1})", {99, 64, 2}), errc::too_large);
  EXPECT_EQ(code_of("[]", {99, 0, 9}), errc::too_large);
}

TEST(json_scan, hostile_sizes_are_refused_early) {
  const auto deep = std::string(200'000, '[');
  EXPECT_EQ(code_of(deep), errc::too_large);
  std::string some;
  for (int i = 0; i < 10'000; ++i) {
    some += "{},";
  }
  std::string wide = "[";
  while (wide.size() + some.size() + 3 <= roomy.bytes) {
    wide += some;
  }
  EXPECT_EQ(code_of(wide + "{}]"), errc::too_large);
}

TEST(json_scan, decodes_strings) {
  EXPECT_EQ(decode_json_string(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(decode_json_string(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "Aé€😀");
  EXPECT_EQ(decode_json_string(R"("x\u0000y")"), "x\0y"s);
  EXPECT_EQ(decode_json_string("\"\""), "");
  EXPECT_EQ(decode_json_string("7"), "");
  EXPECT_EQ(decode_json_string(""), "");
}

TEST(json_scan, tells_kinds_of_tokens) {
  EXPECT_TRUE(is_json_integer("-12"));
  EXPECT_TRUE(is_json_integer("0"));
  for (const auto* other : {"1.0", "1e3", "\"1\"", "null", "", "[1]"}) {
    EXPECT_FALSE(is_json_integer(other)) << other;
  }
  EXPECT_TRUE(is_json_object("{}"));
  EXPECT_TRUE(is_json_array("[]"));
  EXPECT_TRUE(is_json_string("\"\""));
  EXPECT_FALSE(is_json_string(""));
}

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> texts = {
      R"({"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x","arguments":{}}})",
      R"([1,-2.5e+10,0.001,true,false,null,"é€😀\ud83d\ude00\u00e9\\\"",[],{},[[1],[2]]])",
      R"({"a":{"b":{"c":[1,2,{"d":"e"}]}},"f":"\n\t\/","g":-0,"h":[{"i":1},{"i":2}]})",
      R"( [ "x" , { "y" : [ 1E5 , 2e-3 ] } ] )",
      R"("just a string with \u0041 and é")",
      "-12.75e-2"};
  return texts;
}

std::string mutate(std::string text, std::mt19937& random) {
  static const std::string bytes =
      "{}[]:,\"\\/0123456789.eE+-truefalsnbu \n\t\x7F\x01\x80\xC3\xA9\xED"
      "\xA0\xF0\x9F\xFF";
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (auto count = 1 + below(3); count > 0 && !text.empty(); --count) {
    const auto at = below(text.size());
    const auto byte = bytes[below(bytes.size())];
    switch (below(5)) {
    case 0:
      text[at] = byte;
      break;
    case 1:
      text.insert(at, 1, byte);
      break;
    case 2:
      text.erase(at, 1 + below(3));
      break;
    case 3:
      text.insert(at, text.substr(below(text.size()), 1 + below(8)));
      break;
    default:
      text.resize(at);
    }
  }
  return text;
}

bool number_out_of_range(const std::string& text) {
  try {
    const auto tree = nlohmann::json::parse(text);
    return tree.is_discarded();
  } catch (const nlohmann::json::out_of_range&) {
    return true;
  } catch (const nlohmann::json::parse_error&) {
    return false;
  }
}

TEST(json_scan, agrees_with_another_reader) {
  std::mt19937 random{20251125};
  int valid = 0;
  int invalid = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto text = mutate(seeds()[random() % seeds().size()], random);
    const auto ours = scan_json(text, roomy);
    const bool theirs = nlohmann::json::accept(text);
    if (ours) {
      ++valid;
      EXPECT_TRUE(theirs || number_out_of_range(text)) << testing::PrintToString(text);
    } else {
      ++invalid;
      const bool twin = ours.error().message.find("a key that") != std::string::npos;
      EXPECT_TRUE(!theirs || twin) << testing::PrintToString(text) << ours.error().message;
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(invalid, 5000);
}

TEST(json_scan, decodes_as_another_reader_does) {
  std::mt19937 random{7};
  int compared = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto text = mutate(seeds()[4], random);
    if (scan_json(text, roomy) && text.front() == '"') {
      ++compared;
      const auto token = std::string{scan_json(text, roomy)->text};
      EXPECT_EQ(decode_json_string(token), nlohmann::json::parse(token).get<std::string>());
    }
  }
  EXPECT_GT(compared, 1000);
}

} // namespace
} // namespace bulkhead
