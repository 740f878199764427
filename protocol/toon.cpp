#include "protocol/toon.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "protocol/toon_scalar.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t indent_size = 2;

/// A column of a table; one with columns of its own holds objects (section 9.3).
struct column {
  const std::string* name;
  std::vector<column> nested;
};

/// The encoder for one kind of JSON value.
template <class Json>
class toon_writer {
public:
  explicit toon_writer(std::string& out) : out_{out} {}

  void write_document(const Json& value) {
    if (value.is_object()) {
      if (const auto columns = keyed_columns(value)) {
        write_keyed({}, value, *columns, 0);
      } else {
        write_fields(value, 0, false);
      }
    } else if (value.is_array()) {
      value.empty() ? write("[]") : write_array({}, value, 0);
    } else {
      write(encode_primitive(value));
    }
  }

private:
  using rows = std::vector<const Json*>;

  void write(std::string_view text) { out_ += text; }

  /// Starts a line at `depth`; lines are separated, not ended, by newlines.
  void start_line(std::size_t depth) {
    if (!out_.empty()) {
      out_ += '\n';
    }
    out_.append(depth * indent_size, ' ');
  }

  static bool is_primitive(const Json& value) { return !value.is_structured(); }

  static bool all_primitive(const Json& array) {
    for (const auto& element : array) {
      if (!is_primitive(element)) {
        return false;
      }
    }
    return true;
  }

  static std::string encode_primitive(const Json& value) {
    switch (value.type()) {
    case Json::value_t::boolean:
      return value.template get<bool>() ? "true" : "false";
    case Json::value_t::number_integer:
      return std::to_string(value.template get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return std::to_string(value.template get<std::uint64_t>());
    case Json::value_t::number_float:
      return toon_number(value.template get<double>());
    case Json::value_t::string:
      return toon_string(value.template get_ref<const std::string&>());
    default:
      return "null";
    }
  }

  /// The columns that all `objects` share, in the first one's order; nothing if they are no table.
  static std::optional<std::vector<column>> columns_of(const rows& objects) {
    std::vector<column> columns;
    for (const auto* object : objects) {
      if (!object->is_object() || object->empty() || object->size() != objects.front()->size()) {
        return std::nullopt;
      }
    }
    for (auto first = objects.front()->begin(); first != objects.front()->end(); ++first) {
      rows values;
      for (const auto* object : objects) {
        const auto found = object->find(first.key());
        if (found == object->end() || is_primitive(*found) != is_primitive(*first)) {
          return std::nullopt;
        }
        values.push_back(&*found);
      }
      auto nested = is_primitive(*first) ? std::vector<column>{} : columns_of(values);
      if (!nested) {
        return std::nullopt;
      }
      columns.push_back({&first.key(), std::move(*nested)});
    }
    return columns;
  }

  static rows elements_of(const Json& value) {
    rows elements;
    for (const auto& element : value) {
      elements.push_back(&element);
    }
    return elements;
  }

  /// Section 9.3: the columns of an array that is a table.
  static std::optional<std::vector<column>> tabular_columns(const Json& array) {
    return columns_of(elements_of(array));
  }

  /// Section 9.5: the columns of an object whose values are a table.
  static std::optional<std::vector<column>> keyed_columns(const Json& object) {
    return object.size() < 2 ? std::nullopt : columns_of(elements_of(object));
  }

  void write_columns(const std::vector<column>& columns) {
    char before = '{';
    for (const auto& each : columns) {
      out_ += before;
      before = toon_delimiter;
      write(toon_key(*each.name));
      if (!each.nested.empty()) {
        write_columns(each.nested);
      }
    }
    out_ += '}';
  }

  /// The cells of one row; `first` is true until one is written.
  void write_cells(const Json& object, const std::vector<column>& columns, bool& first) {
    for (const auto& each : columns) {
      const auto& value = *object.find(*each.name);
      if (!each.nested.empty()) {
        write_cells(value, each.nested, first);
        continue;
      }
      if (!first) {
        out_ += toon_delimiter;
      }
      first = false;
      write(encode_primitive(value));
    }
  }

  void write_row(const Json& object, const std::vector<column>& columns) {
    bool first = true;
    write_cells(object, columns, first);
  }

  /// Section 9.5. The line is started; `key` is encoded, and empty for the root.
  void write_keyed(std::string_view key, const Json& object, const std::vector<column>& columns,
                   std::size_t depth) {
    write(fmt::format("{}[{}:]", key, object.size()));
    write_columns(columns);
    out_ += ':';
    for (auto entry = object.begin(); entry != object.end(); ++entry) {
      start_line(depth + 1);
      write(toon_key(entry.key()));
      write(": ");
      write_row(*entry, columns);
    }
  }

  /// Section 9: an array that is not empty. The line is started; `key` is encoded, and empty for
  /// the root.
  void write_array(std::string_view key, const Json& array, std::size_t depth) {
    if (all_primitive(array)) {
      write_inline(key, array);
    } else if (const auto columns = tabular_columns(array)) {
      write(fmt::format("{}[{}]", key, array.size()));
      write_columns(*columns);
      out_ += ':';
      for (const auto& object : array) {
        start_line(depth + 1);
        write_row(object, *columns);
      }
    } else {
      write_list(key, array, depth);
    }
  }

  void write_inline(std::string_view key, const Json& array) {
    write(fmt::format("{}[{}]:", key, array.size()));
    char before = ' ';
    for (const auto& element : array) {
      out_ += before;
      before = toon_delimiter;
      write(encode_primitive(element));
    }
  }

  void write_list(std::string_view key, const Json& array, std::size_t depth) {
    write(fmt::format("{}[{}]:", key, array.size()));
    for (const auto& element : array) {
      start_line(depth + 1);
      out_ += '-';
      write_item(element, depth + 1);
    }
  }

  /// Sections 9.4 and 10: what follows the hyphen of a list item at `depth`.
  void write_item(const Json& element, std::size_t depth) {
    if (element.is_object()) {
      if (!element.empty()) {
        out_ += ' ';
        write_fields(element, depth + 1, true);
      }
      return;
    }
    out_ += ' ';
    if (is_primitive(element)) {
      write(encode_primitive(element));
    } else if (all_primitive(element)) {
      write_inline({}, element);
    } else {
      // A header with columns but no key is valid at the root only (section 6).
      write_list({}, element, depth);
    }
  }

  /// Section 8; with `line_started` the first field continues the current line.
  void write_fields(const Json& object, std::size_t depth, bool line_started) {
    for (auto field = object.begin(); field != object.end(); ++field) {
      if (!line_started) {
        start_line(depth);
      }
      line_started = false;
      write_field(toon_key(field.key()), *field, depth);
    }
  }

  void write_field(const std::string& key, const Json& value, std::size_t depth) {
    if (is_primitive(value)) {
      write(key + ": " + encode_primitive(value));
    } else if (value.is_array()) {
      value.empty() ? write(key + ": []") : write_array(key, value, depth);
    } else if (const auto columns = keyed_columns(value)) {
      write_keyed(key, value, *columns, depth);
    } else {
      write(key + ":");
      write_fields(value, depth + 1, false);
    }
  }

  std::string& out_;
};

template <class Json>
std::string encode(const Json& value) {
  std::string result;
  toon_writer<Json>{result}.write_document(value);
  return result;
}

} // namespace

std::string encode_toon(const nlohmann::json& value) {
  return encode(value);
}

std::string encode_toon(const nlohmann::ordered_json& value) {
  return encode(value);
}

} // namespace bulkhead
