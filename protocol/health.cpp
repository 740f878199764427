#include "protocol/health.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bulkhead {

namespace {

constexpr std::uint64_t mebi = std::uint64_t{1024} * 1024;

std::string_view to_string(health_report::verdict verdict) {
  switch (verdict) {
  case health_report::verdict::ok:
    return "ok";
  case health_report::verdict::degraded:
    return "degraded";
  case health_report::verdict::failing:
    break;
  }
  return "failing";
}

nlohmann::ordered_json to_json(const health_check& check) {
  nlohmann::ordered_json object = {{"what", check.what}, {"status", check.good ? "ok" : "failing"}};
  if (!check.detail.empty()) {
    object["detail"] = check.detail;
  }
  if (!check.good && !check.remedy.empty()) {
    object["remedy"] = check.remedy;
  }
  return object;
}

std::string and_more(std::size_t count) {
  return count > 1 ? fmt::format(" (and {} more)", count - 1) : std::string{};
}

} // namespace

health_report::verdict health_report::result() const {
  auto worst = verdict::ok;
  for (const auto& check : checks) {
    if (!check.good) {
      worst = std::max(worst, check.vital ? verdict::failing : verdict::degraded);
    }
  }
  return worst;
}

outgoing_answer encode_health(const health_report& report) {
  auto checks = report.checks;
  std::stable_partition(checks.begin(), checks.end(), [](const auto& each) { return !each.good; });
  auto verdict = report.result();
  nlohmann::ordered_json body = {{"status", to_string(verdict)},
                                 {"checks", nlohmann::ordered_json::array()}};
  for (const auto& check : checks) {
    body["checks"].push_back(to_json(check));
  }
  outgoing_answer answer;
  answer.status = verdict == health_report::verdict::failing ? 503 : 200;
  answer.fields = {{"Content-Type", "application/json"}};
  answer.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return answer;
}

health_check check_folder(const std::string& what, const folder_state& folder) {
  health_check result{what, false};
  if (!folder.failure.empty()) {
    result.detail = fmt::format("can't write to {}: {}", folder.path, folder.failure);
    result.remedy = "make the folder writable for the account that Bulkhead runs as, and for "
                    "nobody else";
  } else if (folder.free_bytes < least_room) {
    result.detail = fmt::format("{} MiB are free where {} lies; {} are needed",
                                folder.free_bytes / mebi, folder.path, least_room / mebi);
    result.remedy = "make room on that disk";
  } else if (folder.counts_files && folder.free_files < least_files) {
    result.detail =
        fmt::format("only {} more files can be made where {} lies", folder.free_files, folder.path);
    result.remedy = "remove files from that disk; it has room, but no inodes";
  } else {
    result.good = true;
    result.detail = fmt::format("{} MiB are free", folder.free_bytes / mebi);
  }
  return result;
}

health_check check_configuration(const std::string& path, const std::vector<error>& errors) {
  health_check result{"configuration", errors.empty()};
  result.vital = false;
  if (!errors.empty()) {
    result.detail = fmt::format("{}{}; what was read before counts meanwhile",
                                errors.front().message, and_more(errors.size()));
    result.remedy = fmt::format("correct {}: a start would fail now", path);
  }
  return result;
}

health_check check_definitions(const std::string& what,
                               const std::vector<config_problem>& problems) {
  auto is_error = [](const config_problem& each) { return each.kind == problem_kind::error; };
  auto first = std::find_if(problems.begin(), problems.end(), is_error);
  health_check result{what, first == problems.end()};
  result.vital = false;
  if (first != problems.end()) {
    auto count = std::count_if(problems.begin(), problems.end(), is_error);
    result.detail = fmt::format("{}{}", to_text(*first), and_more(static_cast<std::size_t>(count)));
    result.remedy = "correct the file; `bulkhead servers --tenant NAME` shows all that is wrong";
  }
  return result;
}

health_check check_issuer(const std::string& issuer, const std::string& failure, bool has_keys) {
  health_check result{fmt::format("keys of the issuer {}", issuer), failure.empty()};
  result.vital = false;
  if (!failure.empty()) {
    result.detail = fmt::format("{}; {}", failure,
                                has_keys ? "those that are known count meanwhile"
                                         : "none of its access tokens is believed");
    result.remedy = "see that the authorization server can be reached from here; it is asked again "
                    "by itself";
  } else if (!has_keys) {
    result.detail = "they are being fetched";
  }
  return result;
}

void judge_together(std::vector<health_check>& checks) {
  bool any = std::any_of(checks.begin(), checks.end(), [](const auto& each) { return each.good; });
  for (auto& check : checks) {
    check.vital = !any;
  }
}

} // namespace bulkhead
