#include "actors/tool_shelf.hpp"

#include <fmt/format.h>

namespace bulkhead {

namespace {

/// Some milliseconds' worth, where a schema and its value are small.
constexpr schema_bounds quick_bounds{.steps = 20'000};

} // namespace

std::shared_ptr<const json_schema> tool_shelf::schema_of(const tool_document& tool) const {
  std::lock_guard guard{lock_};
  auto [found, is_new] = schemas_.try_emplace(&tool);
  if (is_new) {
    if (auto compiled = json_schema::compile(tool.input_schema)) {
      found->second = std::make_shared<const json_schema>(std::move(*compiled));
    }
  }
  return found->second;
}

std::string check_arguments(const tool_shelf& shelf, const tool_document& tool,
                            std::string_view arguments, bool quick) {
  if (tool.input_schema == "{}") {
    return {};
  }
  auto schema = shelf.schema_of(tool);
  if (!schema) {
    return {};
  }
  auto verdict = schema->check(arguments, quick ? quick_bounds : schema_bounds{});
  return verdict.what == schema_verdict::kind::misfits ? std::move(verdict.text) : std::string{};
}

error unfit_arguments(std::string_view server, std::string_view tool, std::string_view why) {
  return {errc::invalid_argument,
          fmt::format("tool \"{}\" of \"{}\" was not called, as its arguments don't fit: {}", tool,
                      server, why)};
}

} // namespace bulkhead
