#include "protocol/resource_contents.hpp"

#include <utility>

#include <fmt/format.h>

#include "protocol/base64.hpp"
#include "protocol/json_text.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

/// Is it a text, apart from a character that its end splits? Then it loses that beginning of one.
bool make_text(std::string& bytes, bool more_follows) {
  if (is_utf8(bytes)) {
    return true;
  }
  const auto whole = trim_split_end(bytes);
  if (!more_follows || whole.empty() || !is_utf8(whole)) {
    return false;
  }
  bytes.resize(whole.size());
  return true;
}

std::string range_json(const resource_part& part, std::uint64_t offset, std::uint64_t end) {
  auto text = fmt::format(R"({{"offset":{},"bytes":{},"keptBytes":{},"totalBytes":{})", offset,
                          part.bytes.size(), part.kept, part.total);
  if (end < part.kept) {
    text += fmt::format(R"(,"nextOffset":{})", end);
  }
  if (!part.why.empty()) {
    text += fmt::format(R"(,"notKept":{})", json_quote(part.why));
  }
  return text + "}";
}

std::string note(std::string_view uri, const resource_part& part, std::uint64_t offset,
                 std::uint64_t end) {
  auto text = fmt::format("[{} bytes from {} of {}", part.bytes.size(), offset, part.total);
  if (end < part.kept) {
    text += fmt::format("; go on with {}", uri_from(uri, end));
  }
  if (part.kept < part.total) {
    text += fmt::format("; only the first {} are kept: {}", part.kept, part.why);
  }
  return text + "]";
}

} // namespace

std::string part_contents(std::string_view uri, std::uint64_t offset, resource_part part) {
  const bool text = make_text(part.bytes, offset + part.bytes.size() < part.kept);
  const auto end = offset + part.bytes.size();
  auto items = fmt::format(R"({{"uri":{},"mimeType":{},"{}":{},"_meta":{{"bulkhead/range":{}}}}})",
                           json_quote(uri), json_quote(part.mime_type), text ? "text" : "blob",
                           text ? json_quote(part.bytes) : "\"" + encode_base64(part.bytes) + "\"",
                           range_json(part, offset, end));
  if (end < part.kept || part.kept < part.total) {
    items += fmt::format(R"(,{{"uri":{},"mimeType":"text/plain","text":{}}})",
                         json_quote(end < part.kept ? uri_from(uri, end) : std::string{uri}),
                         json_quote(note(uri, part, offset, end)));
  }
  return items;
}

} // namespace bulkhead
