#include "protocol/upstream_text.hpp"

#include <algorithm>

#include "protocol/utf8.hpp"

namespace bulkhead::upstream {

namespace {

constexpr std::size_t shortest_secret = 6;
constexpr std::string_view hidden = "[hidden]";
constexpr std::string_view ellipsis = "…";

/// Control characters (C0, DEL, and C1 as UTF-8) become spaces; line ends stay if `lines`.
std::string without_controls(std::string text, bool lines) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) {
      text[i] = ' ';
      text[++i] = ' ';
    } else if ((byte < 0x20 && !(lines && byte == '\n')) || byte == 0x7F) {
      text[i] = ' ';
    }
  }
  return text;
}

} // namespace

std::string printable(std::string_view text, std::size_t most) {
  // U+FFFD takes at most three times the bytes it stands for, so this much is enough to look at.
  auto result = without_controls(to_utf8(text.substr(0, most + 4)), false);
  if (result.size() <= most && text.size() <= most) {
    return result;
  }
  auto room = most > ellipsis.size() ? most - ellipsis.size() : 0;
  return std::string{trim_split_end(std::string_view{result}.substr(0, room))}.append(ellipsis);
}

secret_filter::secret_filter(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    for (std::string_view rest = value; !rest.empty();) {
      auto end = std::min(rest.find('\n'), rest.size());
      if (end >= shortest_secret) {
        secrets_.emplace_back(rest.substr(0, end));
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  // A secret may contain another one.
  std::sort(secrets_.begin(), secrets_.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string secret_filter::hide(std::string text) const {
  for (const auto& secret : secrets_) {
    for (auto at = text.find(secret); at != std::string::npos;
         at = text.find(secret, at + hidden.size())) {
      text.replace(at, secret.size(), hidden);
    }
  }
  return text;
}

void stderr_tail::append(std::string_view bytes) {
  bytes_.append(bytes);
  // Twice as much is kept as is shown, so that no secret is cut in half by the cut that counts.
  if (bytes_.size() > 4 * most_) {
    bytes_.erase(0, bytes_.size() - 2 * most_);
    cut_ = true;
  }
}

void stderr_tail::clear() {
  bytes_.clear();
  cut_ = false;
}

std::string stderr_tail::text() const {
  auto clean = without_controls(to_utf8(filter_.hide(bytes_)), true);
  while (!clean.empty() && (clean.back() == '\n' || clean.back() == ' ')) {
    clean.pop_back();
  }
  if (clean.size() <= most_ && !cut_) {
    return clean;
  }
  std::string_view tail = clean;
  tail.remove_prefix(tail.size() - std::min(tail.size(), most_));
  if (auto line = tail.find('\n'); line != std::string_view::npos) {
    tail.remove_prefix(line + 1);
  }
  return std::string{trim_split_start(tail)};
}

} // namespace bulkhead::upstream
