#include "protocol/cached_documents.hpp"

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

server_entry entry_of(const std::string& name) {
  server_entry entry;
  entry.name = name;
  entry.alias = "alias";
  entry.command = "npx";
  entry.args = {"-y", "server"};
  return entry;
}

server_documents documents_of(const std::string& name) {
  tool_document read;
  read.name = "read-file";
  read.title = "Read";
  read.description = "Reads \"a\" file.\nAll of it. ä";
  read.input_schema = R"({"type":"object","properties":{"z":{},"a":{}}})";
  read.output_schema = R"({"type":"object"})";
  read.annotations = R"({"readOnlyHint":true})";
  tool_document other;
  other.name = "read_file";
  server_documents documents{name, "alias", "about it", {read, other}, "1.2.3"};
  assign_tool_aliases(documents.tools);
  return documents;
}

TEST(cached_documents, come_back_as_they_were) {
  for (const auto* name : {"files", "my server \"x\""}) {
    auto documents = documents_of(name);
    auto back = decode_cached_documents(encode_cached_documents(documents), entry_of(name));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, documents);
  }
  server_documents none{"files", "alias", "", {}, ""};
  EXPECT_EQ(decode_cached_documents(encode_cached_documents(none), entry_of("files")), none);
}

TEST(cached_documents, the_entry_says_what_the_server_is_called_and_for) {
  auto entry = entry_of("files");
  entry.alias = "another";
  entry.description = "mine";
  auto back = decode_cached_documents(encode_cached_documents(documents_of("files")), entry);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->alias, "another");
  EXPECT_EQ(back->description, "mine");
}

TEST(cached_documents, damaged_files_are_refused) {
  auto whole = encode_cached_documents(documents_of("files"));
  for (const auto& text :
       {std::string{}, std::string{"{}"}, whole.substr(0, whole.size() / 2), std::string{"[1]"},
        std::string(1000, '['), std::string{R"({"format":1,"server":"files","tools":7})"},
        std::string{R"({"format":2,"server":"files","tools":[]})"}, whole + "x",
        encode_cached_documents(documents_of("others"))}) {
    EXPECT_FALSE(decode_cached_documents(text, entry_of("files"))) << text.substr(0, 60);
  }
  std::string huge = R"({"format":1,"server":"files","version":")" +
                     std::string(largest_cached_documents, 'x') + R"(","tools":[]})";
  EXPECT_FALSE(decode_cached_documents(huge, entry_of("files")));
}

TEST(cached_documents, another_configuration_is_another_file) {
  const auto entry = entry_of("files");
  const auto name = cached_documents_name(entry);
  EXPECT_EQ(name, cached_documents_name(entry_of("files")));
  EXPECT_EQ(name.find('/'), std::string::npos);
  std::vector<server_entry> others(8, entry);
  others[0].name = "Files";
  others[1].command = "uvx";
  others[2].args.push_back("more");
  others[3].env["TOKEN"] = "x";
  others[4].url = "https://example.com/mcp";
  others[5].headers["Authorization"] = "Bearer x";
  others[6].cwd = "/tmp";
  others[7].transport = server_transport::sse;
  for (const auto& other : others) {
    EXPECT_NE(cached_documents_name(other), name);
  }
  auto same = entry;
  same.description = "how it is told of changes nothing";
  same.source = "elsewhere.json";
  EXPECT_EQ(cached_documents_name(same), name);
  EXPECT_EQ(cached_documents_name(entry_of("../../etc/passwd")).find('/'), std::string::npos);
}

} // namespace
} // namespace bulkhead
