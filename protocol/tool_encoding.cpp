#include "protocol/tool_encoding.hpp"

#include <fmt/format.h>

#include "protocol/json_text.hpp"
#include "protocol/tool_index.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t longest_summary = 240;

/// Writes one JSON object, member by member.
class object_writer {
public:
  explicit object_writer(std::string& out) : out_(out) { out_ += '{'; }
  ~object_writer() { out_ += '}'; }
  object_writer(const object_writer&) = delete;
  object_writer& operator=(const object_writer&) = delete;

  void text(std::string_view key, std::string_view value) {
    begin(key);
    append_json_string(out_, value);
  }
  void text_unless_empty(std::string_view key, std::string_view value) {
    if (!value.empty()) {
      text(key, value);
    }
  }
  /// `value` is JSON text that was scanned or written by us.
  void json(std::string_view key, std::string_view value) {
    begin(key);
    append_json_line(out_, value);
  }
  void json_unless_empty(std::string_view key, std::string_view value) {
    if (!value.empty()) {
      json(key, value);
    }
  }

private:
  void begin(std::string_view key) {
    if (out_.back() != '{') {
      out_ += ',';
    }
    append_json_string(out_, key);
    out_ += ':';
  }

  std::string& out_;
};

/// A description's first paragraph, cut to a few lines.
std::string summary_of(std::string_view description) {
  auto paragraph = description.substr(0, description.find("\n\n"));
  if (paragraph.size() <= longest_summary) {
    return std::string(paragraph);
  }
  auto kept = paragraph.substr(0, longest_summary);
  auto space = kept.find_last_of(" \n");
  kept = space != std::string_view::npos ? kept.substr(0, space) : trim_split_end(kept);
  return std::string(kept) + "…";
}

} // namespace

void append_tool_document(std::string& out, const server_documents& server,
                          const tool_document& tool, std::string_view signature, bool full_detail,
                          const tool_remarks& remarks) {
  object_writer object(out);
  object.text("server", server.server);
  object.text("serverAlias", server.alias);
  object.text("tool", tool.name);
  object.text("toolAlias", tool.alias);
  object.text("description", full_detail ? tool.description : summary_of(tool.description));
  object.text("signature", signature);
  if (full_detail) {
    object.json("inputSchema", tool.input_schema);
    object.json_unless_empty("outputSchema", tool.output_schema);
  }
  object.text_unless_empty("toCall", remarks.hint);
  object.json_unless_empty("score", remarks.score);
}

std::string encode_tool_list(const std::vector<tool_document>& tools) {
  std::string out = "[";
  for (const auto& tool : tools) {
    if (out.size() > 1) {
      out += ',';
    }
    object_writer object(out);
    object.text("name", tool.name);
    object.text("alias", tool.alias);
    object.text_unless_empty("title", tool.title);
    object.text_unless_empty("description", tool.description);
    object.json("inputSchema", tool.input_schema);
    object.json_unless_empty("outputSchema", tool.output_schema);
    object.json_unless_empty("annotations", tool.annotations);
  }
  return out + "]";
}

error no_such_tool(const server_documents& documents, std::string_view tool) {
  std::string hint;
  for (const auto& name : similar_tools(tool, documents.tools)) {
    hint += (hint.empty() ? "did you mean \"" : "\", \"") + name;
  }
  hint += hint.empty() ? fmt::format("list_tools(\"{}\") names its {}", documents.server,
                                     documents.tools.size())
                       : "\"?";
  return {errc::not_found, fmt::format("server \"{}\" has no tool \"{}\"; {}", documents.server,
                                       trim_split_end(tool.substr(0, longest_tool_name)), hint)};
}

expected<std::string> encode_tool_docs(const tool_index& index, std::string_view tool,
                                       bool full_detail, std::string_view hint) {
  const auto& documents = index.documents();
  const auto* only = tool.empty() ? nullptr : find_tool(documents.tools, tool);
  if (!tool.empty() && only == nullptr) {
    return tl::unexpected(no_such_tool(documents, tool));
  }
  std::string out = "[";
  for (std::size_t i = 0; i < documents.tools.size(); ++i) {
    const auto& each = documents.tools[i];
    if (only == nullptr || only == &each) {
      out += out.size() > 1 ? "," : "";
      append_tool_document(out, documents, each, index.signature(i), full_detail,
                           {{}, std::string{hint}});
    }
  }
  return out + "]";
}

} // namespace bulkhead
