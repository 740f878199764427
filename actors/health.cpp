#include "actors/health.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;

/// Actors that are alive answer within a millisecond.
constexpr seconds alive_patience{1};
/// What watches gives up after a few seconds, too. A driver that has found its engine answers at
/// once; looking for one may take longer, and goes on.
constexpr seconds runtime_patience{3};

std::string titled(const std::string& what, const std::string& of) {
  return of.empty() ? what : fmt::format("{} of {}", what, of);
}

/// A full probe boots a container or two, on a machine that may be busy.
constexpr seconds probe_patience{60};

/// Checks that come one by one; `then` gets them in their order once all are there.
class gathering {
public:
  gathering(std::size_t count, std::function<void(std::vector<health_check>)> then)
      : checks_(count), missing_{count}, then_{std::move(then)} {
    if (count == 0) {
      then_({});
    }
  }

  void put(std::size_t place, health_check check) {
    checks_[place] = std::move(check);
    if (--missing_ == 0) {
      then_(std::move(checks_));
    }
  }

private:
  std::vector<health_check> checks_;
  std::size_t missing_;
  std::function<void(std::vector<health_check>)> then_;
};

health_check alive_check(const std::string& of, const caf::error* failure) {
  health_check check{titled("actors", of), failure == nullptr};
  if (failure != nullptr) {
    check.detail = fmt::format("no answer within {} s: {}", alive_patience.count(),
                               from_caf(*failure, "ask the supervisor").message);
    check.remedy = "restart Bulkhead; its log may say what it is stuck at";
  }
  return check;
}

health_check runtime_check(const std::string& of, const runtime_report& report) {
  return {titled("container runtime", of), true,
          fmt::format("{} {}, image {}", report.engine, report.version, report.image)};
}

health_check runtime_failure(const std::string& of, std::string why, bool slow) {
  health_check check{titled("container runtime", of), false, std::move(why)};
  check.remedy =
      slow ? "wait: the engine is still being looked for, or is slow" : "run: bulkhead doctor";
  return check;
}

} // namespace

folder_state look_at_folder(const std::string& path) {
  folder_state result{path};
  // A file without a name says more than access rights do, and leaves nothing behind.
  int file = ::open(path.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) {
    ::close(file);
  } else if (errno == ENOSPC || errno == EDQUOT) {
    return result;
  } else if ((errno != EOPNOTSUPP && errno != EISDIR) || ::access(path.c_str(), W_OK | X_OK) != 0) {
    result.failure = std::strerror(errno);
    return result;
  }
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) {
    result.failure = std::strerror(errno);
    return result;
  }
  result.free_bytes = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  // Some file systems have no fixed number of files, and say 0.
  result.counts_files = disk.f_files > 0;
  result.free_files = disk.f_favail;
  return result;
}

void health_state::ask(question& which, http_arrival& arrival) {
  if (self->clock().now() < which.fresh_until) {
    arrival.reply->answer(which.answer);
    return;
  }
  // As many as the listener has connections.
  which.waiting.push_back(std::move(arrival.reply));
  if (!std::exchange(which.looking, true)) {
    (this->*which.look)();
  }
}

void health_state::found(question& which, const health_report& report) {
  which.looking = false;
  which.answer = encode_health(report);
  which.fresh_until = self->clock().now() + which.fresh;
  for (auto& reply : std::exchange(which.waiting, {})) {
    reply->answer(which.answer);
  }
}

void health_state::look_alive() {
  auto trees = context.trees();
  auto all = std::make_shared<gathering>(trees.size(), [this](std::vector<health_check> checks) {
    found(alive, {std::move(checks)});
  });
  std::size_t place = 0;
  for (const auto& [of, tree] : trees) {
    self->request(tree, alive_patience, ensure_atom::value)
        .then([all, place, of = of](caf::ok_atom) { all->put(place, alive_check(of, nullptr)); },
              [all, place, of = of](const caf::error& failure) {
                all->put(place, alive_check(of, &failure));
              });
    ++place;
  }
}

void health_state::look_ready() {
  // Those of the round before, when all who use an image had said that it has changed.
  if (!looking_anew) {
    look_at_next();
  }
  auto drivers = context.runtimes();
  auto all = std::make_shared<gathering>(drivers.size(), [this](std::vector<health_check> checks) {
    judge_together(checks);
    for (const auto& [what, path] : context.folders()) {
      checks.push_back(check_folder(what, look_at_folder(path)));
    }
    for (auto& each : context.more()) {
      checks.push_back(std::move(each));
    }
    if (context.stopping()) {
      checks.push_back({"process", false, "it is stopping", "ask another one"});
    }
    found(ready, {std::move(checks)});
  });
  for (std::size_t place = 0; place < drivers.size(); ++place) {
    look_at_driver(drivers[place],
                   [all, place](health_check check) { all->put(place, std::move(check)); });
  }
}

void health_state::look_at_driver(const health_context::driver& which,
                                  std::function<void(health_check)> then) {
  self->request(which.runtime, runtime_patience, ensure_atom::value)
      .then(
          [this, which, then](const runtime_report& report) {
            auto bad = unusable.find(which.image);
            if (bad != unusable.end()) {
              then(runtime_failure(which.of, bad->second, false));
              look_anew(which.image); // it may have been for the moment
              return;
            }
            then(runtime_check(which.of, report));
            self->request(which.runtime, runtime_patience, stamp_atom::value)
                .then([this, which](const std::string& stamp) { compare(which, stamp); },
                      [](const caf::error&) {}); // it has to find its engine first
          },
          [which, then](const caf::error& failure) {
            auto reason = from_caf(failure, "find the container engine");
            then(runtime_failure(which.of, reason.message, reason.code == errc::timeout));
          });
}

void health_state::look_first(std::vector<health_context::driver> left) {
  if (left.empty() || context.stopping()) {
    return;
  }
  auto which = std::move(left.back());
  left.pop_back();
  std::erase_if(left, [&](const auto& each) { return each.image == which.image; });
  self->request(which.runtime, probe_patience, ensure_atom::value)
      .then([this, left](const runtime_report&) { look_first(left); },
            [this, left, which](const caf::error& failure) {
              auto reason = from_caf(failure, "find the container engine");
              if (reason.code == errc::unavailable) {
                context.log->warn("{}: no run can start: {}", which.of, reason.message);
              }
              look_first(left);
            });
}

void health_state::compare(const health_context::driver& which, const std::string& stamp) {
  auto [known, first] = stamps.try_emplace(which.of, stamp);
  if (!first && std::exchange(known->second, stamp) != stamp) {
    look_anew(which.image);
  }
}

void health_state::look_anew(std::string image) {
  if (std::find(doubtful.begin(), doubtful.end(), image) == doubtful.end()) {
    doubtful.push_back(std::move(image));
  }
}

void health_state::look_at_next() {
  looking_anew = false;
  while (!doubtful.empty() && !looking_anew && !context.stopping()) {
    auto image = std::move(doubtful.front());
    doubtful.pop_front();
    auto drivers = context.runtimes();
    auto user = std::find_if(drivers.begin(), drivers.end(),
                             [&](const auto& each) { return each.image == image; });
    if (user == drivers.end()) {
      continue;
    }
    looking_anew = true;
    self->request(user->runtime, probe_patience, probe_atom::value)
        .then([this, image](const runtime_report&) { judged(image, nullptr); },
              [this, image](const caf::error& failure) { judged(image, &failure); });
  }
}

void health_state::judged(const std::string& image, const caf::error* failure) {
  auto reason = failure != nullptr ? from_caf(*failure, "look at the container engine anew")
                                   : error{errc::none, {}};
  if (reason.code == errc::unavailable) {
    context.log->warn("no run of tenants with the image {} can start: {}", image, reason.message);
    unusable[image] = std::move(reason.message);
  } else if (failure == nullptr && unusable.erase(image) > 0) {
    context.log->info("runs of tenants with the image {} can start again", image);
  }
  look_at_next();
}

health_actor::behavior_type health_state::make_behavior() {
  return {
      [this](status_atom, http_arrival& arrival) { ask(alive, arrival); },
      [this](ensure_atom, http_arrival& arrival) { ask(ready, arrival); },
  };
}

health_actor::behavior_type health(health_actor::stateful_pointer<health_state> self,
                                   health_context context) {
  self->state.context = std::move(context);
  self->state.look_first(self->state.context.runtimes());
  return self->state.make_behavior();
}

} // namespace bulkhead
