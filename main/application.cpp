#include "main/application.hpp"

namespace bulkhead {

expected<std::unique_ptr<application>>
application::start(const account& who, const settings& config, stop_signal& stop) {
  auto runtime_dir = make_runtime_dir(who);
  if (!runtime_dir) {
    return tl::unexpected{runtime_dir.error()};
  }
  std::unique_ptr<application> made{new application{config, stop}};
  auto started = engine::start(made->process_, {who, config, *runtime_dir});
  if (!started) {
    return tl::unexpected{started.error()};
  }
  made->engine_ = std::move(*started);
  return made;
}

} // namespace bulkhead
