#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "main/commands.hpp"
#include "main/doctor.hpp"
#include "main/logging.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// A full probe starts a few containers; the first ever also copies the image for its id range.
constexpr auto probe_budget = 120s;
constexpr auto sweep_budget = 60s;

diagnosis diagnose(application& app, bool sweep) {
  diagnosis found;
  caf::scoped_actor self{app.system()};
  auto runtime = app.services().runtime;
  auto failed = [&](const caf::error& reason) { found.failure = from_caf(reason, "diagnose"); };
  if (sweep) {
    self->request(runtime, sweep_budget, sweep_atom::value)
        .receive([&](const sweep_report& swept) { found.swept = swept; }, failed);
  }
  self->request(runtime, probe_budget, probe_atom::value)
      .receive([&](const runtime_report& report) { found.report = report; }, failed);
  return found;
}

} // namespace

int run_doctor(application& app, const command_line& line, int out) {
  auto found = diagnose(app, line.sweep);
  write_all(out, printable(line.json ? render_doctor_json(found) : render_doctor_table(found)));
  return all_is_well(found) ? 0 : 1;
}

} // namespace bulkhead
