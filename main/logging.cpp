#include "main/logging.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string_view>

#include <spdlog/sinks/base_sink.h>

#include "actors/log_scope.hpp"
#include "protocol/log_line.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view whole_process = "bulkhead";
constexpr std::string_view of_tenant = "bulkhead/";

std::string_view view_of(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

/// Formats a record, then makes it harmless for a terminal.
class stderr_sink : public spdlog::sinks::base_sink<std::mutex> {
public:
  explicit stderr_sink(log_format format) : format_{format} {}

protected:
  void sink_it_(const spdlog::details::log_msg& record) override {
    auto text = format_ == log_format::json ? as_json(record) : as_text(record);
    // A log that can't be written is no reason to fail, and one that nobody reads none to wait: a
    // pipe that polls writable has room for PIPE_BUF bytes.
    for (std::string_view rest = text; !rest.empty();) {
      pollfd ready{STDERR_FILENO, POLLOUT, 0};
      if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) {
        return;
      }
      auto count =
          ::write(STDERR_FILENO, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
      if (count <= 0) {
        return;
      }
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void flush_() override {}

private:
  /// One line, whatever names it tells: who chooses a name forges no record with it.
  std::string as_text(const spdlog::details::log_msg& record) {
    spdlog::memory_buf_t buffer;
    formatter_->format(record, buffer);
    std::string_view line{buffer.data(), buffer.size()};
    line.remove_suffix(line.ends_with('\n') ? 1 : 0);
    std::string text;
    for (auto part : printable(line)) {
      part == '\n' ? text += "\\n" : text += part;
    }
    return text + '\n';
  }

  /// Called by the thread that logs.
  static std::string as_json(const spdlog::details::log_msg& record) {
    auto tenant = view_of(record.logger_name);
    tenant = tenant.starts_with(of_tenant) ? tenant.substr(of_tenant.size()) : std::string_view{};
    return encode_log_line({record.time, view_of(spdlog::level::to_string_view(record.level)),
                            tenant, view_of(record.payload), log_scope::current()});
  }

  log_format format_;
};

spdlog::level::level_enum level_of(log_level level) {
  switch (level) {
  case log_level::trace:
    return spdlog::level::trace;
  case log_level::debug:
    return spdlog::level::debug;
  case log_level::info:
    return spdlog::level::info;
  case log_level::warning:
    return spdlog::level::warn;
  case log_level::error:
    return spdlog::level::err;
  case log_level::off:
    break;
  }
  return spdlog::level::off;
}

} // namespace

std::shared_ptr<spdlog::logger> make_logger(log_level level, log_format format) {
  auto logger = std::make_shared<spdlog::logger>(std::string{whole_process},
                                                 std::make_shared<stderr_sink>(format));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n %l %v");
  logger->set_level(level_of(level));
  return logger;
}

std::shared_ptr<spdlog::logger> logger_of_tenant(spdlog::logger& whole, const std::string& tenant) {
  return whole.clone(std::string{of_tenant} + tenant);
}

} // namespace bulkhead
