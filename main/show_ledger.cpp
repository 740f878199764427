#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "actors/ledger.hpp"
#include "actors/unique_descriptor.hpp"
#include "main/commands.hpp"
#include "protocol/ledger_report.hpp"

namespace bulkhead {

namespace {

/// Records shown where nobody says how many.
constexpr std::uint64_t shown_by_default = 100;

ledger_format format_of(const command_line& line) {
  if (line.csv || (line.export_file.ends_with(".csv") && !line.json)) {
    return ledger_format::csv;
  }
  return line.json || !line.export_file.empty() ? ledger_format::json : ledger_format::text;
}

/// Writes records as they come from the database, whatever their number.
class record_printer {
public:
  record_printer(int out, bool calls, ledger_format format, std::uint64_t most)
      : out_{out}, format_{format}, most_{most} {
    write(format == ledger_format::json ? "[" : ledger_head(calls, format));
  }

  template <class Record>
  bool operator()(const Record& record) {
    if (count_ == most_) {
      more_ = true;
      return false;
    }
    auto first = count_++ == 0;
    write((format_ != ledger_format::json ? "" : first ? "\n" : ",\n") + to_text(record, format_));
    return failure_ == 0;
  }

  /// The errno of what couldn't be written, or 0.
  int end() {
    if (format_ == ledger_format::json) {
      write("\n]\n");
    }
    return failure_;
  }

  bool more() const { return more_; }
  std::uint64_t count() const { return count_; }

private:
  void write(const std::string& text) {
    if (failure_ == 0) {
      failure_ = write_all(out_, text);
    }
  }

  int out_;
  ledger_format format_;
  std::uint64_t most_;
  std::uint64_t count_ = 0;
  bool more_ = false;
  int failure_ = 0;
};

/// Writes what is asked for. Errors: unavailable.
expected<std::uint64_t> print(const ledger_database& from, ledger_query query, ledger_format format,
                              int out) {
  record_printer printer{out, query.calls, format, query.limit};
  query.limit += query.limit < UINT64_MAX ? 1 : 0; // one more tells whether there are more
  auto visited = query.calls
                     ? from.visit_calls(query, [&](const auto& each) { return printer(each); })
                     : from.visit_runs(query, [&](const auto& each) { return printer(each); });
  auto failure = printer.end();
  if (!visited) {
    return tl::unexpected{visited.error()};
  }
  if (failure != 0) {
    return fail(errc::unavailable, fmt::format("write the records: {}", std::strerror(failure)));
  }
  if (printer.more()) {
    complain(fmt::format("there are more; --limit N shows them, --export FILE all of them"));
  }
  return printer.count();
}

int refuse(const error& reason, int status = 1) {
  complain(reason.message);
  return status;
}

} // namespace

int show_ledger(const command_line& line, const settings& config, int out) {
  auto query = line.records;
  auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  if (!line.since.empty()) {
    auto since = parse_since(line.since, now.count());
    if (!since) {
      return refuse({since.error().code, "--since: " + since.error().message}, 2);
    }
    query.since = *since;
  }
  auto how = ledger_rules(config);
  auto database = ledger_database::open(how, ledger_database::access::read);
  if (!database) {
    auto nothing = database.error().code == errc::not_found;
    return refuse({database.error().code,
                   nothing ? fmt::format("nothing is in the ledger \"{}\" yet{}", how.path,
                                         config.ledger == ledger_mode::off
                                             ? ", and MCP_BRIDGE_LEDGER=off keeps none"
                                             : "")
                           : database.error().message});
  }
  unique_descriptor file;
  if (!line.export_file.empty()) {
    file = unique_descriptor{::open(line.export_file.c_str(),
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (!file) {
      return refuse({errc::unavailable, fmt::format("make the file \"{}\": {}", line.export_file,
                                                    std::strerror(errno))});
    }
  }
  if (query.limit == 0) {
    query.limit = file ? UINT64_MAX : shown_by_default;
  }
  auto printed = print(*database, query, format_of(line), file ? file.get() : out);
  if (!printed) {
    return refuse(printed.error());
  }
  if (file) {
    complain(fmt::format("{} records are in {}", *printed, line.export_file));
  }
  return 0;
}

} // namespace bulkhead
