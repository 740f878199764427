#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "protocol/config_text.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr int deepest = 64;

/// Aliases make a tree larger than its text, or endless.
class yaml_reader {
public:
  explicit yaml_reader(std::size_t nodes) : left_{nodes} {}

  /// Throws YAML::RepresentationException.
  json read(const YAML::Node& node, int depth = 0) {
    if (depth > deepest || left_-- == 0) {
      left_ = 0;
      throw YAML::RepresentationException{node.Mark(), "too much"};
    }
    switch (node.Type()) {
    case YAML::NodeType::Map:
      return read_map(node, depth);
    case YAML::NodeType::Sequence: {
      auto result = json::array();
      for (const auto& element : node) {
        result.push_back(read(element, depth + 1));
      }
      return result;
    }
    case YAML::NodeType::Scalar:
      return read_scalar(node);
    default:
      return nullptr;
    }
  }

private:
  json read_map(const YAML::Node& node, int depth) {
    auto result = json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar()) {
        throw YAML::RepresentationException{member.first.Mark(), "a key that is no text"};
      }
      result[member.first.Scalar()] = read(member.second, depth + 1);
    }
    return result;
  }

  static json read_scalar(const YAML::Node& node) {
    static constexpr std::array<std::string_view, 3> yes = {"true", "True", "TRUE"};
    static constexpr std::array<std::string_view, 3> no = {"false", "False", "FALSE"};
    const auto& text = node.Scalar();
    bool quoted = node.Tag() == "!";
    auto is_one_of = [&](const auto& words) {
      return !quoted && std::find(words.begin(), words.end(), text) != words.end();
    };
    if (is_one_of(yes)) {
      return true;
    }
    if (is_one_of(no)) {
      return false;
    }
    return text;
  }

  std::size_t left_;
};

} // namespace

expected<json> read_config_yaml(std::string_view text, const config_text_limits& limits) {
  if (text.size() > limits.bytes) {
    return fail(errc::too_large,
                fmt::format("has {} bytes, more than the {} allowed", text.size(), limits.bytes));
  }
  if (!is_utf8(text)) {
    return fail(errc::malformed, "is no UTF-8 text; save it as UTF-8");
  }
  try {
    auto document = YAML::Load(std::string{text});
    if (!document.IsMap()) {
      return fail(errc::malformed, "must hold a YAML mapping");
    }
    return yaml_reader{limits.nodes}.read(document);
  } catch (const YAML::RepresentationException& failure) {
    return fail(
        errc::too_large,
        fmt::format("line {}, column {}: this is nested too deeply, grows too large, or has "
                    "a key that is no text",
                    failure.mark.line + 1, failure.mark.column + 1));
  } catch (const YAML::Exception& failure) {
    return fail(errc::malformed, fmt::format("line {}, column {}: this is no valid YAML",
                                             failure.mark.line + 1, failure.mark.column + 1));
  }
}

} // namespace bulkhead
