#include "protocol/tool_documents.hpp"
#include "protocol/tool_index.hpp"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;

TEST(parse_tool_page, reads_tools_and_cursor) {
  auto page = parse_tool_page(R"({"tools":[
    {"name":"read-file","title":"Read","description":"Reads\na file.",
     "inputSchema":{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer"}},"required":["path"]},
     "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
    {"name":"bare"},
    {"name":"titled","annotations":{"title":"From annotations"}}],"nextCursor":"abc"})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->tools.size(), 3U);
  EXPECT_EQ(page->next_cursor, "abc");
  const auto& tool = page->tools[0];
  EXPECT_EQ(tool.name, "read-file");
  EXPECT_EQ(tool.title, "Read");
  EXPECT_EQ(tool.description, "Reads\na file.");
  EXPECT_EQ(tool.input_schema, R"({"type":"object","properties":{"path":{"type":"string"},)"
                               R"("head":{"type":"integer"}},"required":["path"]})")
      << "the author's order is kept";
  EXPECT_EQ(tool.output_schema, R"({"type":"object"})");
  EXPECT_EQ(tool.annotations, R"({"readOnlyHint":true})");
  EXPECT_EQ(page->tools[1].input_schema, "{}");
  EXPECT_EQ(page->tools[1].output_schema, "");
  EXPECT_EQ(page->tools[2].title, "From annotations");
}

TEST(parse_tool_page, leaves_out_what_cannot_be_called) {
  json tools =
      json::array({json{{"name", ""}}, json{{"name", 7}}, json{{"title", "x"}}, json("text"),
                   json{{"name", std::string(257, 'n')}}, json{{"name", "a\nb"}},
                   json{{"name", "task"}, {"execution", {{"taskSupport", "required"}}}},
                   json{{"name", "maybe"}, {"execution", {{"taskSupport", "optional"}}}},
                   json{{"name", std::string(256, 'n')}}});
  auto page = parse_tool_page(json{{"tools", tools}}.dump());
  ASSERT_TRUE(page);
  ASSERT_EQ(page->tools.size(), 2U);
  EXPECT_EQ(page->tools[0].name, "maybe");
}

TEST(parse_tool_page, optional_members_of_a_wrong_type_are_absent) {
  auto page = parse_tool_page(
      R"({"tools":[{"name":"x","title":1,"description":[],"inputSchema":"s","outputSchema":null,"annotations":[]}],"nextCursor":null})");
  ASSERT_TRUE(page);
  tool_document expected_tool;
  expected_tool.name = "x";
  EXPECT_EQ(page->tools, std::vector{expected_tool});
  EXPECT_EQ(page->next_cursor, "");
}

TEST(parse_tool_page, malformed) {
  for (auto text : {"", "[]", "{}", "null", R"({"tools":{}})", R"({"tools":[],"nextCursor":5})"}) {
    auto page = parse_tool_page(text);
    ASSERT_FALSE(page) << text;
    EXPECT_EQ(page.error().code, errc::malformed);
  }
}

tool_document named(const std::string& name, const std::string& schema = "{}") {
  tool_document tool;
  tool.name = name;
  tool.alias = name;
  tool.input_schema = schema;
  return tool;
}

TEST(tool_aliases, are_unique_and_found) {
  std::vector<tool_document> tools = {named("get-x"), named("get_x"), named("import"),
                                      named("get-x")};
  assign_tool_aliases(tools);
  std::set<std::string> aliases;
  for (const auto& tool : tools) {
    aliases.insert(tool.alias);
  }
  EXPECT_EQ(aliases.size(), 4U);
  EXPECT_EQ(tools[2].alias, "import_");
  EXPECT_EQ(find_tool(tools, "import_"), &tools[2]);
  EXPECT_EQ(find_tool(tools, "get_x"), &tools[1]);
  EXPECT_EQ(find_tool(tools, tools[0].alias), &tools[0]);
  EXPECT_EQ(find_tool(tools, "nope"), nullptr);
  EXPECT_EQ(find_tool({}, ""), nullptr);
}

TEST(similar_names, best_first) {
  std::vector<std::string> names = {"read_file", "write_file", "list_directory", "read_files",
                                    "ReadFile"};
  EXPECT_EQ(similar_names("raed_file", names),
            (std::vector<std::string>{"read_file", "ReadFile", "read_files"}));
  EXPECT_EQ(similar_names("directory", names), (std::vector<std::string>{"list_directory"}));
  EXPECT_TRUE(similar_names("deploy", names).empty());
  EXPECT_TRUE(similar_names("", names).empty());
  EXPECT_TRUE(similar_names(std::string(5000, 'x'), names).empty());
  EXPECT_TRUE(similar_names("x", std::vector<std::string>{}).empty());
}

TEST(similar_names, counts_every_kind_of_edit) {
  std::vector<std::string> names = {"kitten_sitting"};
  for (const auto* near : {"kitten_sittin", "kitten_sittings", "kitten_setting", "itten_sitting",
                           "KITTEN-SITTING", "kitten__siting", "mitten_sit_ting"}) {
    EXPECT_EQ(similar_names(near, names), names) << near;
  }
  for (const auto* far : {"kittem", "sitting_kitten_x", "nettik_gnittis"}) {
    EXPECT_TRUE(similar_names(far, names).empty()) << far;
  }
}

TEST(similar_names, long_names_have_no_neighbours) {
  std::vector<std::string> names = {std::string(129, 'a'), std::string(128, 'a')};
  EXPECT_EQ(similar_names(std::string(127, 'a'), names), (std::vector<std::string>{names[1]}));
  EXPECT_TRUE(similar_names(std::string(129, 'a'), names).empty());
}

TEST(tool_signature, types_and_defaults) {
  EXPECT_EQ(tool_signature(named("t")), "t()");
  EXPECT_EQ(tool_signature(named("t", "not json")), "t()");
  EXPECT_EQ(
      tool_signature(named(
          "read_file",
          R"({"properties":{"head":{"type":"integer"},"path":{"type":"string"}},"required":["path"]})")),
      "read_file(path: str, head: int = None)");
  auto of = [](const std::string& property) {
    auto text = tool_signature(named(
        "t",
        R"({"properties":{"p":)" + property +
            R"(},"required":["p"],"$defs":{"d":{"type":"boolean"},"loop":{"$ref":"#/$defs/loop"}}})"));
    return text.substr(5, text.size() - 6); // between "t(p: " … is left of "p: "
  };
  EXPECT_EQ(of(R"({"type":"number"})"), "float");
  EXPECT_EQ(of(R"({"type":"boolean"})"), "bool");
  EXPECT_EQ(of(R"({"type":"object"})"), "dict");
  EXPECT_EQ(of(R"({"type":"array"})"), "list");
  EXPECT_EQ(of(R"({"type":"array","items":{"type":"array","items":{"type":"string"}}})"),
            "list[list[str]]");
  EXPECT_EQ(of(R"({"type":["string","null"]})"), "str | None");
  EXPECT_EQ(of(R"({"anyOf":[{"type":"string"},{"type":"integer"},{"type":"string"}]})"),
            "str | int");
  EXPECT_EQ(of(R"({"oneOf":[{"type":"string"},{}]})"), "Any");
  EXPECT_EQ(of(R"({"enum":["a","b",null,true]})"), R"(Literal["a", "b", None, True])");
  EXPECT_EQ(of(R"({"const":3})"), "Literal[3]");
  EXPECT_EQ(of(R"({"enum":["1","2","3","4","5","6","7","8","9"]})"), "str");
  EXPECT_EQ(of(R"({"$ref":"#/$defs/d"})"), "bool");
  EXPECT_EQ(of(R"({"$ref":"#/$defs/loop"})"), "Any");
  EXPECT_EQ(of(R"({"$ref":"https://elsewhere/x"})"), "Any");
  EXPECT_EQ(of("{}"), "Any");
  EXPECT_EQ(of("true"), "Any");
  EXPECT_EQ(of(R"({"type":"widget"})"), "Any");
  EXPECT_EQ(of(R"({"enum":[]})"), "Any");
}

TEST(tool_signature, defaults_as_python_writes_them) {
  auto of = [](const std::string& value) {
    return tool_signature(named("t", R"({"properties":{"p":{"default":)" + value + "}}}"));
  };
  EXPECT_EQ(of("10"), "t(p: Any = 10)");
  EXPECT_EQ(of("false"), "t(p: Any = False)");
  EXPECT_EQ(of("null"), "t(p: Any = None)");
  EXPECT_EQ(of(R"("a\"b")"), R"(t(p: Any = "a\"b"))");
  EXPECT_EQ(of("[]"), "t(p: Any = [])");
  EXPECT_EQ(of("[1]"), "t(p: Any = ...)");
  EXPECT_EQ(of('"' + std::string(100, 'x') + '"'), "t(p: Any = ...)");
}

TEST(tool_signature, odd_names_come_last_and_quoted) {
  EXPECT_EQ(
      tool_signature(named(
          "t",
          R"({"properties":{"max-depth":{"type":"integer","default":3},"class":{"type":"string"},"b":{}},"required":["class"]})")),
      R"(t(b: Any = None, **{"class": str}, **{"max-depth": int = 3}))");
  auto forged = tool_signature(named("t", R"({"properties":{"x)\nimport os #":{}}})"));
  EXPECT_EQ(forged.find('\n'), std::string::npos);
}

TEST(tool_signature, many_parameters_are_cut) {
  json schema;
  for (int i = 0; i < 1000; ++i) {
    schema["properties"]["p" + std::to_string(i)] = json::object();
  }
  auto text = tool_signature(named("t", schema.dump()));
  EXPECT_LT(text.size(), 2000U);
  EXPECT_TRUE(text.ends_with(", …)"));
}

server_documents files() {
  server_documents result{"my-files", "my_files", "Files", {}};
  result.tools.push_back(
      named("read_file",
            R"({"type":"object","properties":{"path":{"type":"string"}},"required":["path"]})"));
  result.tools.push_back(named("write_file"));
  result.tools[0].description = "Reads a file.\n\nLong explanation with \"quotes\".";
  result.tools[0].output_schema = R"({"type":"object"})";
  result.tools[0].annotations = R"({"readOnlyHint":true})";
  result.tools[1].title = "Write";
  return result;
}

TEST(encode_tool_list, is_what_the_wire_says) {
  auto text = encode_tool_list(files().tools);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  auto value = json::parse(text);
  EXPECT_EQ(value, json::parse(R"([
    {"name":"read_file","alias":"read_file","description":"Reads a file.\n\nLong explanation with \"quotes\".",
     "inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},
     "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
    {"name":"write_file","alias":"write_file","title":"Write","inputSchema":{}}])"));
  EXPECT_EQ(encode_tool_list({}), "[]");
}

TEST(encode_tool_docs, one_tool_in_both_details) {
  auto summary = encode_tool_docs(tool_index{files()}, "read_file", false);
  ASSERT_TRUE(summary);
  EXPECT_EQ(json::parse(*summary), json::parse(R"j([{"server":"my-files","serverAlias":"my_files",
    "tool":"read_file","toolAlias":"read_file","description":"Reads a file.","signature":"read_file(path: str)"}])j"));
  auto full = encode_tool_docs(tool_index{files()}, "read_file", true);
  ASSERT_TRUE(full);
  auto document = json::parse(*full)[0];
  EXPECT_EQ(document["description"], "Reads a file.\n\nLong explanation with \"quotes\".");
  EXPECT_EQ(document["inputSchema"]["required"][0], "path");
  EXPECT_EQ(document["outputSchema"]["type"], "object");
}

TEST(encode_tool_docs, all_tools_and_none) {
  auto all = encode_tool_docs(tool_index{files()}, "", false);
  ASSERT_TRUE(all);
  EXPECT_EQ(json::parse(*all).size(), 2U);
  EXPECT_EQ(encode_tool_docs(tool_index{server_documents{"s", "s", "", {}}}, "", true).value(),
            "[]");
}

TEST(encode_tool_docs, an_unknown_tool_gets_suggestions) {
  auto result = encode_tool_docs(tool_index{files()}, "red_file", false);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, errc::not_found);
  EXPECT_EQ(result.error().message,
            "server \"my-files\" has no tool \"red_file\"; did you mean \"read_file\"?");
  EXPECT_EQ(encode_tool_docs(tool_index{files()}, "deploy", false).error().message,
            "server \"my-files\" has no tool \"deploy\"; list_tools(\"my-files\") names its 2");
  auto huge = encode_tool_docs(tool_index{files()}, std::string(100'000, 'x'), false);
  EXPECT_LT(huge.error().message.size(), 500U);
}

TEST(encode_tool_docs, a_long_summary_is_cut_at_a_word) {
  auto documents = files();
  documents.tools[0].description.clear();
  for (int i = 0; i < 100; ++i) {
    documents.tools[0].description += "größer ";
  }
  auto text =
      json::parse(
          encode_tool_docs(tool_index{documents}, "read_file", false).value())[0]["description"]
          .get<std::string>();
  EXPECT_LE(text.size(), 243U);
  EXPECT_TRUE(text.ends_with("größer…")) << text;
  documents.tools[0].description = std::string(239, 'x') + "ößöß"; // a cut at 240 splits the ö
  text = json::parse(
             encode_tool_docs(tool_index{documents}, "read_file", false).value())[0]["description"]
             .get<std::string>();
  EXPECT_EQ(text, std::string(239, 'x') + "…");
}

TEST(encode_tool_docs, bytes_that_are_no_utf8_do_not_break_the_frame) {
  auto documents = files();
  documents.tools[0].description = "bad \xff byte";
  documents.tools[0].input_schema = "{\n \"type\":\n \"object\"}";
  auto text = encode_tool_docs(tool_index{documents}, "read_file", true);
  ASSERT_TRUE(text);
  EXPECT_TRUE(json::accept(*text));
  EXPECT_EQ(text->find('\n'), std::string::npos);
}

} // namespace
} // namespace bulkhead
