#include <memory>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "main/commands.hpp"
#include "main/doctor.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// A full probe starts a few containers; the first ever also copies the image for its id range.
constexpr auto probe_budget = 120s;
constexpr auto sweep_budget = 60s;

/// Asks the driver; `found` is complete once `stop` is notified.
caf::actor diagnose(application& app, stop_signal& stop, bool sweep,
                    const std::shared_ptr<diagnosis>& found) {
  auto runtime = app.services().runtime;
  return app.system().spawn([=, &stop](caf::event_based_actor* self) {
    auto failed = [=, &stop](const caf::error& reason) {
      found->failure = from_caf(reason, sweep ? "sweep" : "diagnose");
      stop.notify();
    };
    if (sweep) {
      self->request(runtime, sweep_budget, sweep_atom::value)
          .then(
              [=, &stop](const sweep_report& swept) {
                found->swept = swept;
                stop.notify();
              },
              failed);
      return;
    }
    self->request(runtime, probe_budget, probe_atom::value)
        .then(
            [=, &stop](const runtime_report& report) {
              found->report = report;
              stop.notify();
            },
            failed);
  });
}

} // namespace

int run_doctor(application& app, stop_signal& stop, const command_line& line, int out) {
  auto found = std::make_shared<diagnosis>();
  auto asker = diagnose(app, stop, line.sweep, found);
  if (stop.wait().value_or(0) != 0) {
    // It would wait for its answer, and the actor system for it.
    caf::anon_send_exit(asker, caf::exit_reason::kill);
    complain("interrupted");
    return 130;
  }
  if (!line.sweep) {
    found->remarks = app.env()->config->remarks;
    found->problems = app.catalogue()->problems;
  } else if (found->failure) {
    complain(found->failure->message);
    return 1;
  }
  auto text = line.json ? render_doctor_json(*found) : render_doctor_table(*found);
  return write_answer(out, printable(text), all_is_well(*found) ? 0 : 1);
}

} // namespace bulkhead
