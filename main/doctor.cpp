#include "main/doctor.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/expected_limits.hpp"

namespace bulkhead {

using nlohmann::json;

namespace {

std::string runtime_lines(const runtime_report& report) {
  auto text = fmt::format("engine       {} {} ({}, {})\n", report.engine, report.version,
                          report.driver, report.rootless ? "rootless" : "rootful");
  text += fmt::format("OCI runtime  {} {}\n", report.oci_runtime, report.oci_version);
  text += fmt::format("cgroups      {}\n", report.cgroup_mode);
  text += fmt::format("image        {} ({})\n", report.image, report.image_id.substr(0, 19));
  if (!report.python.empty()) {
    text += fmt::format("Python       {}\n", report.python);
  }
  return text;
}

std::string constraint_lines(const std::vector<constraint_row>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) {
    width = std::max(width, row.name.size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("{}  {:<{}}  asked: {}\n", row.held ? "held" : "NOT ", row.name, width,
                        row.asked);
    text += fmt::format("      {:<{}}  found: {}\n", "", width, row.found);
    if (!row.remedy.empty()) {
      text += fmt::format("      {:<{}}  to do: {}\n", "", width, row.remedy);
    }
  }
  return text;
}

std::string configuration_lines(const diagnosis& found) {
  std::string text;
  for (const auto& remark : found.remarks) {
    text += fmt::format("\nsettings: {}\n", remark);
  }
  for (const auto& problem : found.problems) {
    text += fmt::format("\nconfiguration ({}): {}\n", to_string(problem.kind), to_text(problem));
  }
  return text;
}

std::string conclusion(const diagnosis& found) {
  const auto& rows = found.report->constraints;
  auto broken = std::count_if(rows.begin(), rows.end(), [](const auto& row) { return !row.held; });
  return broken == 0 ? fmt::format("All {} constraints hold.\n", rows.size())
                     : fmt::format("{} of {} constraints don't hold.\n", broken, rows.size());
}

json expected_object(const runtime_report& report) {
  auto found = expected_limits(report);
  return found ? json{{"memory limit", found->memory}, {"pids limit", found->pids}} : json{};
}

json runtime_object(const runtime_report& report) {
  return {{"expected", expected_object(report)},
          {"engine", report.engine},
          {"version", report.version},
          {"driver", report.driver},
          {"ociRuntime", report.oci_runtime},
          {"ociVersion", report.oci_version},
          {"rootless", report.rootless},
          {"cgroups", report.cgroup_mode},
          {"image", report.image},
          {"imageId", report.image_id},
          {"python", report.python}};
}

} // namespace

bool all_is_well(const diagnosis& found) {
  if (found.swept) {
    return !found.failure;
  }
  return found.report &&
         std::all_of(found.report->constraints.begin(), found.report->constraints.end(),
                     [](const auto& row) { return row.held; });
}

std::string render_doctor_table(const diagnosis& found) {
  if (found.swept) {
    const auto& swept = *found.swept;
    return fmt::format(
        "Swept: {} containers, {} processes, {} cgroups, {} folders of dead instances "
        "removed.\n",
        swept.containers, swept.processes, swept.cgroups, swept.folders);
  }
  if (!found.report) {
    return fmt::format("No sandbox can be started.\n{}\n{}",
                       found.failure ? found.failure->message : "the reason is unknown",
                       configuration_lines(found));
  }
  auto text = runtime_lines(*found.report) + "\n" + constraint_lines(found.report->constraints);
  for (const auto& warning : found.report->warnings) {
    text += fmt::format("\nwarning: {}\n", warning);
  }
  return text + configuration_lines(found) + "\n" + conclusion(found);
}

std::string render_doctor_json(const diagnosis& found) {
  json result = {{"ok", all_is_well(found)}};
  if (found.failure) {
    result["error"] = {{"code", to_string(found.failure->code)},
                       {"message", found.failure->message}};
  }
  if (found.report) {
    result["runtime"] = runtime_object(*found.report);
    result["warnings"] = found.report->warnings;
    result["constraints"] = json::array();
    for (const auto& row : found.report->constraints) {
      json item = {
          {"name", row.name}, {"asked", row.asked}, {"found", row.found}, {"held", row.held}};
      if (!row.remedy.empty()) {
        item["remedy"] = row.remedy;
      }
      result["constraints"].push_back(std::move(item));
    }
  }
  if (!found.remarks.empty()) {
    result["settings"] = found.remarks;
  }
  for (const auto& problem : found.problems) {
    result["configuration"].push_back({{"kind", to_string(problem.kind)},
                                       {"file", problem.file},
                                       {"entry", problem.entry},
                                       {"message", problem.message}});
  }
  if (found.swept) {
    result["swept"] = {{"containers", found.swept->containers},
                       {"processes", found.swept->processes},
                       {"cgroups", found.swept->cgroups},
                       {"folders", found.swept->folders}};
  }
  // What an engine wrote need not be UTF-8.
  return result.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace bulkhead
