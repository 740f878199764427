#include "main/application.hpp"

namespace bulkhead {

expected<std::unique_ptr<application>> application::start(const account& who,
                                                          const settings& config, stop_signal& stop,
                                                          const std::optional<tenant>& one) {
  auto runtime_dir = make_runtime_dir(who);
  if (!runtime_dir) {
    return tl::unexpected{runtime_dir.error()};
  }
  std::unique_ptr<application> made{new application{config, stop}};
  engine_options options{who, one ? settings_for(config, *one) : config, *runtime_dir};
  if (one) {
    options.tenant = one->name;
    options.loading.own_only = true;
    options.rights.narrow = [one = *one](policy& rules) { add_rules(one, rules); };
  }
  auto started = engine::start(made->process_, std::move(options));
  if (!started) {
    return tl::unexpected{started.error()};
  }
  made->engine_ = std::move(*started);
  return made;
}

} // namespace bulkhead
