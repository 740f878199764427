#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/http_transport.hpp"
#include "actors/interfaces.hpp"
#include "actors/supervisor.hpp"
#include "protocol/health.hpp"

namespace bulkhead {

/// Tells whoever watches the process how it is. Looks at files, on a thread of its own.
using health_actor = caf::typed_actor<
    /// Is the process alive (GET /healthz): do its actors answer within a second? Answers the
    /// request.
    caf::reacts_to<status_atom, http_arrival>,
    /// Can it serve (GET /readyz): is the container runtime there with its image, and is there room
    /// for files? Answers the request.
    caf::reacts_to<ensure_atom, http_arrival>>;

/// What is looked at, each asked for anew.
struct health_context {
  /// The trees of actors, by what they serve, e.g. "tenant alpha".
  std::function<std::vector<std::pair<std::string, supervisor_actor>>()> trees;
  /// A container driver.
  struct driver {
    std::string of;    ///< what it serves, e.g. "tenant alpha"
    std::string image; ///< that it is to use
    container_runtime_actor runtime;
  };
  std::function<std::vector<driver>()> runtimes;
  /// Folders that have to be writable and have room, by what they are.
  std::function<std::vector<std::pair<std::string, std::string>>()> folders;
  /// Has the end begun? It serves nobody new then. Called on the actor's thread.
  std::function<bool()> stopping;
  /// What else counts for whether it is ready, judged already; may look at files. Called on the
  /// actor's thread.
  std::function<std::vector<health_check>()> more;
  std::shared_ptr<spdlog::logger> log;
};

/// Looks at most once in a few seconds at each of the two questions, however many ask. What a
/// driver found out once it goes on believing, so an image that is gone is noticed here: when what
/// sandboxes are made from has changed, a driver is made to look anew, one for each image and one
/// after the other, from the next question on. At the start it is looked at what each image is good
/// for, for the log.
struct health_state {
  explicit health_state(health_actor::pointer self) : self{self} {}
  health_actor::behavior_type make_behavior();

  using time_point = std::chrono::steady_clock::time_point;

  /// One of the two questions.
  struct question {
    void (health_state::*look)(); ///< ends in `found`
    std::chrono::seconds fresh;   ///< how long an answer is
    bool looking = false;
    outgoing_answer answer{};
    time_point fresh_until{};
    std::vector<io::http_reply_ptr> waiting{};
  };

  void ask(question& which, http_arrival& arrival);
  void look_alive();
  void look_ready();
  void found(question& which, const health_report& report);
  void look_at_driver(const health_context::driver& which, std::function<void(health_check)> then);
  void look_first(std::vector<health_context::driver> left);
  void compare(const health_context::driver& which, const std::string& stamp);
  void look_anew(std::string image);
  void look_at_next();
  void judged(const std::string& image, const caf::error* failure);

  health_actor::pointer self;
  health_context context;
  question alive{&health_state::look_alive, std::chrono::seconds{2}};
  question ready{&health_state::look_ready, std::chrono::seconds{5}};
  std::map<std::string, std::string> stamps;   ///< of drivers, by what they serve
  std::map<std::string, std::string> unusable; ///< images, and why
  std::deque<std::string> doubtful;            ///< images that are to be looked at anew
  bool looking_anew = false;

  static inline const char* name = "health";
};

/// Spawn it detached.
health_actor::behavior_type health(health_actor::stateful_pointer<health_state> self,
                                   health_context context);

/// The folder as it is now.
folder_state look_at_folder(const std::string& path);

} // namespace bulkhead
