#include <algorithm>
#include <array>
#include <cstdint>

#include "protocol/ascii.hpp"
#include "protocol/edit_distance.hpp"
#include "protocol/tool_documents.hpp"

namespace bulkhead {

namespace {

/// Names over this are no typing errors of one another; names of tools are shorter in practice.
constexpr std::size_t longest_compared = 128;
/// More differences than this are another name, however long both are.
constexpr std::size_t most_differences = 8;
/// Distances computed for one question; a guest may ask in a loop.
constexpr std::size_t most_comparisons = 1000;
constexpr std::size_t most_suggestions = 3;

/// A name in lower case, with how often each byte (modulo 32) is in it.
struct folded_name {
  std::array<char, longest_compared> bytes;
  std::array<std::uint8_t, 32> histogram{};
  std::size_t size = 0;

  explicit folded_name(std::string_view name) : size{name.size()} {
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = lower_case(name[i]);
      ++histogram[static_cast<unsigned char>(bytes[i]) % histogram.size()];
    }
  }

  std::string_view text() const { return {bytes.data(), size}; }
};

/// What no edit distance can be below: each edit moves at most one byte in and one out.
std::size_t least_distance(const folded_name& a, const folded_name& b) {
  std::size_t in = 0;
  std::size_t out = 0;
  for (std::size_t i = 0; i < a.histogram.size(); ++i) {
    in += b.histogram[i] > a.histogram[i] ? b.histogram[i] - a.histogram[i] : 0;
    out += a.histogram[i] > b.histogram[i] ? a.histogram[i] - b.histogram[i] : 0;
  }
  return std::max(in, out);
}

} // namespace

std::vector<std::string> similar_names(std::string_view name,
                                       const std::vector<std::string_view>& candidates) {
  if (name.empty() || name.size() > longest_compared) {
    return {};
  }
  const folded_name wanted{name};
  const auto tolerance = std::clamp<std::size_t>(wanted.size / 3, 2, most_differences);
  std::vector<std::pair<std::size_t, std::string_view>> close;
  std::size_t comparisons = 0;
  for (auto candidate : candidates) {
    if (candidate.size() > longest_compared || candidate.size() + tolerance < wanted.size) {
      continue;
    }
    const folded_name other{candidate};
    if (wanted.size >= 3 && other.text().find(wanted.text()) != std::string_view::npos) {
      // A name that holds the whole of what was asked is near, however much longer it is.
      close.emplace_back(std::min(other.size - wanted.size, tolerance), candidate);
    } else if (other.size <= wanted.size + tolerance &&
               least_distance(wanted, other) <= tolerance && comparisons < most_comparisons) {
      ++comparisons;
      auto distance = edit_distance(wanted.text(), other.text(), tolerance);
      if (distance <= tolerance) {
        close.emplace_back(distance, candidate);
      }
    }
  }
  std::sort(close.begin(), close.end());
  close.erase(std::unique(close.begin(), close.end()), close.end());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < std::min(most_suggestions, close.size()); ++i) {
    result.emplace_back(close[i].second);
  }
  return result;
}

std::vector<std::string> similar_names(std::string_view name,
                                       const std::vector<std::string>& candidates) {
  return similar_names(name, std::vector<std::string_view>{candidates.begin(), candidates.end()});
}

std::vector<std::string> similar_tools(std::string_view name,
                                       const std::vector<tool_document>& tools) {
  std::vector<std::string_view> names;
  names.reserve(tools.size());
  for (const auto& tool : tools) {
    names.push_back(tool.name);
  }
  return similar_names(name, names);
}

} // namespace bulkhead
