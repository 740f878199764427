#include "main/logging.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string_view>

#include <spdlog/sinks/base_sink.h>

#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

/// Formats a record, then makes it harmless for a terminal.
class stderr_sink : public spdlog::sinks::base_sink<std::mutex> {
protected:
  void sink_it_(const spdlog::details::log_msg& record) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(record, buffer);
    auto text = printable({buffer.data(), buffer.size()});
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

std::shared_ptr<spdlog::logger> make_logger(log_level level) {
  auto logger = std::make_shared<spdlog::logger>("bulkhead", std::make_shared<stderr_sink>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n %l %v");
  logger->set_level(level_of(level));
  return logger;
}

} // namespace bulkhead
