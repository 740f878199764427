#include "protocol/toon.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

std::string toon(const char* text) {
  return encode_toon(nlohmann::ordered_json::parse(text));
}

TEST(toon, root_primitives_and_empty_values) {
  EXPECT_EQ(toon("{}"), "");
  EXPECT_EQ(toon("[]"), "[]");
  EXPECT_EQ(toon("null"), "null");
  EXPECT_EQ(toon("true"), "true");
  EXPECT_EQ(toon("-3"), "-3");
  EXPECT_EQ(toon("\"two words\""), "two words");
  EXPECT_EQ(toon("\"\""), "\"\"");
}

TEST(toon, numbers_are_canonical) {
  EXPECT_EQ(toon("[1.0,-0.0,1.5000,1e6,1e-6,0.1,-2.50]"), "[7]: 1,0,1.5,1000000,0.000001,0.1,-2.5");
  EXPECT_EQ(toon("[18446744073709551615,-9223372036854775808]"),
            "[2]: 18446744073709551615,-9223372036854775808");
  EXPECT_EQ(toon("[1e20,1e21,1e-7,1.5e300,-2.5e-10]"),
            "[5]: 100000000000000000000,1e+21,1e-7,1.5e+300,-2.5e-10");
  EXPECT_EQ(encode_toon(nlohmann::json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(encode_toon(nlohmann::json(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(toon, strings_are_quoted_only_where_they_must_be) {
  for (const auto* bare :
       {"hello", "a b", "héllo 😀", "a/b", "x-y", "a#b", "True", "NULL", "1a", "1.",
        ".5",    "0x1", "1e",      "(x)", "a|b", "a;b", "'q'",  "+",    "e5", "1.2.3"}) {
    EXPECT_EQ(encode_toon(nlohmann::json(bare)), bare);
  }
  for (const auto* quoted :
       {"true", "false", "null", "42", "-3.14", "05",  "+1",  "1e-6", "1E5", "0e+9", " a",
        "a ",   "-",     "-x",   "#",  "# c",   "a:b", "a,b", "[",    "]",   "{x",   "y}"}) {
    EXPECT_EQ(encode_toon(nlohmann::json(quoted)), "\"" + std::string{quoted} + "\"");
  }
  EXPECT_EQ(encode_toon(nlohmann::json("\xEF\xBB\xBFx")), "\"\xEF\xBB\xBFx\"");
}

TEST(toon, strings_are_escaped) {
  EXPECT_EQ(encode_toon(nlohmann::json("a\"b\\c")), R"("a\"b\\c")");
  EXPECT_EQ(encode_toon(nlohmann::json("\n\r\t")), R"("\n\r\t")");
  EXPECT_EQ(encode_toon(nlohmann::json(std::string{"\x01\0\x1f", 3})), R"("\u0001\u0000\u001f")");
  EXPECT_EQ(encode_toon(nlohmann::json("a\xFF")), "a\uFFFD");
}

TEST(toon, objects_nest_by_indentation) {
  EXPECT_EQ(toon(R"({"id":1,"name":"Ada","user":{"x":null,"deep":{"y":[]}},"none":{}})"),
            "id: 1\nname: Ada\nuser:\n  x: null\n  deep:\n    y: []\nnone:");
}

TEST(toon, keys_are_quoted_unless_they_are_words) {
  EXPECT_EQ(toon(R"({"a.b":1,"_x9":2,"9x":3,"a-b":4,"":5,"a b":6,"é":7,"q\"":8,"n\n":9})"),
            "a.b: 1\n_x9: 2\n\"9x\": 3\n\"a-b\": 4\n\"\": 5\n\"a b\": 6\n\"é\": 7\n\"q\\\"\": 8\n"
            "\"n\\n\": 9");
  EXPECT_EQ(toon(R"({"my-key":[1],"x y":[{"a-b":1}],"o o":{"k":1}})"),
            "\"my-key\"[1]: 1\n\"x y\"[1]{\"a-b\"}:\n  1\n\"o o\":\n  k: 1");
}

TEST(toon, primitive_arrays_are_inline) {
  EXPECT_EQ(toon(R"({"tags":["a","b,c","",true,null,"7"]})"),
            "tags[6]: a,\"b,c\",\"\",true,null,\"7\"");
  EXPECT_EQ(toon(R"([1,2])"), "[2]: 1,2");
}

TEST(toon, uniform_objects_are_a_table) {
  EXPECT_EQ(toon(R"({"users":[{"id":1,"name":"Ada"},{"name":"Bob: x","id":2}]})"),
            "users[2]{id,name}:\n  1,Ada\n  2,\"Bob: x\"");
  EXPECT_EQ(toon(R"([{"a":1},{"a":null}])"), "[2]{a}:\n  1\n  null");
}

TEST(toon, uniform_nested_objects_are_column_groups) {
  EXPECT_EQ(toon(R"({"orders":[{"id":1,"c":{"n":"A","geo":{"x":1,"y":2}},"t":5},)"
                 R"({"id":2,"t":6,"c":{"geo":{"y":4,"x":3},"n":"B"}}]})"),
            "orders[2]{id,c{n,geo{x,y}},t}:\n  1,A,1,2,5\n  2,B,3,4,6");
}

TEST(toon, what_is_not_uniform_is_a_list) {
  EXPECT_EQ(toon(R"({"a":[{"x":1},{"y":1}]})"), "a[2]:\n  - x: 1\n  - y: 1");
  EXPECT_EQ(toon(R"({"a":[{"x":1},{"x":1,"y":2}]})"), "a[2]:\n  - x: 1\n  - x: 1\n    y: 2");
  EXPECT_EQ(toon(R"({"a":[{"x":[1]},{"x":[2]}]})"), "a[2]:\n  - x[1]: 1\n  - x[1]: 2");
  EXPECT_EQ(toon(R"({"a":[{"x":null},{"x":{"y":1}}]})"), "a[2]:\n  - x: null\n  - x:\n      y: 1");
  EXPECT_EQ(toon(R"({"a":[{},{}]})"), "a[2]:\n  -\n  -");
  EXPECT_EQ(toon(R"({"a":[1,{"b":2},"- x",[3,4],[],null]})"),
            "a[6]:\n  - 1\n  - b: 2\n  - \"- x\"\n  - [2]: 3,4\n  - [0]:\n  - null");
}

TEST(toon, arrays_of_arrays_are_lists) {
  EXPECT_EQ(toon(R"({"pairs":[[1,2],[3,4]]})"), "pairs[2]:\n  - [2]: 1,2\n  - [2]: 3,4");
  EXPECT_EQ(toon(R"([[[1]],[{"a":1},{"a":2}]])"),
            "[2]:\n  - [1]:\n    - [1]: 1\n  - [2]:\n    - a: 1\n    - a: 2");
}

TEST(toon, fields_of_list_items_stand_one_level_deeper) {
  EXPECT_EQ(toon(R"({"i":[{"users":[{"id":1},{"id":2}],"s":"x","o":{"p":1}},{"s":"y"}]})"),
            "i[2]:\n  - users[2]{id}:\n      1\n      2\n    s: x\n    o:\n      p: 1\n  - s: y");
  EXPECT_EQ(toon(R"({"i":[{"o":{"p":1},"l":[1,[2]]},1]})"),
            "i[2]:\n  - o:\n      p: 1\n    l[2]:\n      - 1\n      - [1]: 2\n  - 1");
}

TEST(toon, objects_of_uniform_objects_are_a_keyed_table) {
  EXPECT_EQ(toon(R"({"m":{"a b":{"x":1,"y":"p,q"},"c":{"y":"r","x":2}}})"),
            "m[2:]{x,y}:\n  \"a b\": 1,\"p,q\"\n  c: 2,r");
  EXPECT_EQ(toon(R"({"a":{"x":1},"b":{"x":2}})"), "[2:]{x}:\n  a: 1\n  b: 2");
  EXPECT_EQ(toon(R"({"a":{"x":1},"b":2})"), "a:\n  x: 1\nb: 2");
  EXPECT_EQ(toon(R"({"m":{"a":{"x":1}}})"), "m:\n  a:\n    x: 1");
  EXPECT_EQ(toon(R"({"m":{"a":{},"b":{}}})"), "m:\n  a:\n  b:");
}

TEST(toon, a_keyed_table_needs_a_key_or_the_root) {
  EXPECT_EQ(toon(R"({"i":[{"c":{"a":{"x":1},"b":{"x":2}},"s":1},{"s":2}]})"),
            "i[2]:\n  - c[2:]{x}:\n      a: 1\n      b: 2\n    s: 1\n  - s: 2");
  EXPECT_EQ(toon(R"({"i":[{"a":{"x":1},"b":{"x":2}},5]})"),
            "i[2]:\n  - a:\n      x: 1\n    b:\n      x: 2\n  - 5");
}

TEST(toon, a_sorted_tree_is_encoded_as_it_is_sorted) {
  EXPECT_EQ(encode_toon(nlohmann::json::parse(R"({"b":1,"a":2})")), "a: 2\nb: 1");
}

} // namespace
} // namespace bulkhead
