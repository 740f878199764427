// That stubs are valid Python is tested where Python is: tests/integration/test_discovery.py.

#include <gtest/gtest.h>

#include "protocol/tool_documents.hpp"

namespace bulkhead {
namespace {

tool_document tool(const std::string& name, const std::string& description,
                   const std::string& schema = "{}") {
  tool_document result;
  result.name = name;
  result.description = description;
  result.input_schema = schema;
  return result;
}

std::string stubs_of(std::vector<tool_document> tools) {
  assign_tool_aliases(tools);
  return tool_stubs({"files", "files", "", std::move(tools), "1.0"});
}

TEST(tool_stubs, functions_with_types_and_docstrings) {
  EXPECT_EQ(stubs_of({tool("read-file", "Reads a file.", R"({"properties":{
                        "path":{"type":"string"},"head":{"type":"integer","default":3},
                        "max-depth":{"type":"integer"}},"required":["path"]})"),
                      tool("now", "")}),
            R"("Tools of the MCP server \"files\". Version 1.0."
from typing import Any, Literal

def read_file(*, path: str, head: int = ..., **others: Any) -> Any:
    "Reads a file.\n\nThe tool \"read-file\".\n\nFurther, by **{…}:\n    \"max-depth\": int = None"
    ...

def now() -> Any:
    ...
)");
}

TEST(tool_stubs, no_name_or_text_ends_its_string) {
  auto text =
      stubs_of({tool("x\"\"\"\nimport os", "\"\"\"\n'''\\\nos.system('x')\n#",
                     R"({"properties":{"a\"):\n  x":{"enum":["\"\n","b"]},"others":{}}})")});
  for (std::size_t at = text.find('\n'), next = 0; at != std::string::npos; at = next) {
    next = text.find('\n', at + 1);
    auto line = text.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    EXPECT_TRUE(line.empty() || line.starts_with("    \"") || line == "    ..." ||
                line.starts_with("def x____import_os(") || line.starts_with("from typing"))
        << line;
  }
  EXPECT_NE(text.find("**others_: Any"), std::string::npos) << "a parameter has that name";
}

} // namespace
} // namespace bulkhead
