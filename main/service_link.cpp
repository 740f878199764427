#include "main/service_link.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

namespace bulkhead {

namespace {

void note(shared_process& process, const expected<void>& told) {
  if (!told) {
    process.log()->warn("{}", told.error().message);
  }
}

/// Answers as soon as the actors' threads get to it.
io::service_watchdog::question ask_actors(caf::actor_system& system) {
  return [&system](std::function<void()> answered) {
    system.spawn([answered = std::move(answered)] { answered(); });
  };
}

} // namespace

expected<service_link> service_link::take() {
  auto handed = io::take_handed_sockets();
  if (!handed) {
    return tl::unexpected{handed.error()};
  }
  if (handed->size() > 1) {
    return fail(errc::invalid_argument,
                fmt::format("{} sockets were handed over, and one can be served; leave one "
                            "ListenStream= in the socket's unit",
                            handed->size()));
  }
  service_link made;
  if (!handed->empty()) {
    made.socket_ = handed->front().descriptor;
  }
  return made;
}

service_link::~service_link() {
  if (watchdog_) {
    watchdog_->stop();
  }
}

service_link::service_link(service_link&&) noexcept = default;

void service_link::ready(shared_process& process, std::string_view status) {
  note(process, io::service_notice::ready(status));
  auto time = io::watchdog_time();
  if (time && !watchdog_) {
    watchdog_ = io::service_watchdog::start(process.io(), *time, ask_actors(process.system()),
                                            [log = process.log()] {
                                              if (auto told = io::service_notice::alive(); !told) {
                                                log->warn("{}", told.error().message);
                                              }
                                            });
  }
}

void service_link::reloading(shared_process& process) {
  note(process, io::service_notice::reloading());
}

void service_link::stopping(shared_process& process) {
  note(process, io::service_notice::stopping("answers that are under way come to their end"));
}

} // namespace bulkhead
