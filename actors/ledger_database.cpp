#include "actors/ledger_database.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "actors/unique_descriptor.hpp"
#include "protocol/ascii.hpp"
#include "protocol/policy.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

constexpr int format_version = 1;
/// Records of one page.
constexpr std::uint64_t most_of_page = 200;
/// Rows that a transaction drops: others want to write meanwhile.
constexpr int rows_at_a_time = 5'000;

constexpr const char* schema = R"(
  CREATE TABLE runs(run TEXT PRIMARY KEY, at INTEGER NOT NULL, owner TEXT NOT NULL, client TEXT NOT NULL,
    client_version TEXT NOT NULL, session TEXT NOT NULL, code_sha256 TEXT NOT NULL, code_bytes INTEGER NOT NULL,
    code TEXT, servers TEXT NOT NULL, calls INTEGER NOT NULL, duration_ms INTEGER NOT NULL, outcome TEXT NOT NULL,
    error TEXT NOT NULL);
  CREATE INDEX runs_at ON runs(at);
  CREATE TABLE calls(id INTEGER PRIMARY KEY, run TEXT NOT NULL, at INTEGER NOT NULL, owner TEXT NOT NULL,
    server TEXT NOT NULL, tool TEXT NOT NULL, arguments_sha256 TEXT NOT NULL, arguments_bytes INTEGER NOT NULL,
    arguments TEXT, result_bytes INTEGER NOT NULL, duration_us INTEGER NOT NULL, outcome TEXT NOT NULL,
    rule TEXT NOT NULL);
  CREATE INDEX calls_at ON calls(at);
  CREATE INDEX calls_run ON calls(run);
  PRAGMA user_version = 1;
)";

/// A statement with its parameters and columns, taken in their order.
class statement {
public:
  statement(sqlite3* database, const std::string& sql) {
    sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &made_, nullptr);
  }
  ~statement() { sqlite3_finalize(made_); }
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;

  explicit operator bool() const { return made_ != nullptr; }

  statement& put(std::string_view text) {
    sqlite3_bind_text64(made_, ++parameter_, text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
    return *this;
  }
  statement& put(std::int64_t number) {
    sqlite3_bind_int64(made_, ++parameter_, number);
    return *this;
  }
  statement& put(std::uint64_t number) { return put(static_cast<std::int64_t>(number)); }
  statement& put_if(const std::optional<std::string>& text) {
    return text ? put(std::string_view{*text}) : (++parameter_, *this);
  }

  /// SQLITE_ROW, SQLITE_DONE, or what went wrong.
  int step() {
    column_ = -1;
    return made_ == nullptr ? SQLITE_ERROR : sqlite3_step(made_);
  }
  void reset() {
    sqlite3_reset(made_);
    sqlite3_clear_bindings(made_);
    parameter_ = 0;
  }

  std::string text() {
    const auto* bytes = sqlite3_column_text(made_, ++column_);
    auto size = static_cast<std::size_t>(sqlite3_column_bytes(made_, column_));
    return bytes == nullptr ? std::string{}
                            : std::string{reinterpret_cast<const char*>(bytes), size};
  }
  std::optional<std::string> optional_text() {
    bool there = sqlite3_column_type(made_, column_ + 1) != SQLITE_NULL;
    auto value = text();
    return there ? std::optional{std::move(value)} : std::nullopt;
  }
  std::int64_t number() { return sqlite3_column_int64(made_, ++column_); }
  std::uint64_t count() { return static_cast<std::uint64_t>(number()); }

private:
  sqlite3_stmt* made_ = nullptr;
  int parameter_ = 0;
  int column_ = -1;
};

std::string_view text_value(sqlite3_value* value) {
  const auto* bytes = sqlite3_value_text(value);
  return bytes == nullptr ? std::string_view{}
                          : std::string_view{reinterpret_cast<const char*>(bytes),
                                             static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

/// Patterns here are those of policy, which SQLite's own GLOB isn't.
void names(sqlite3_context* context, int, sqlite3_value** arguments) {
  sqlite3_result_int(context,
                     glob_match(text_value(arguments[0]), text_value(arguments[1])) ? 1 : 0);
}

/// Is the first text in the second?
void has(sqlite3_context* context, int, sqlite3_value** arguments) {
  bool there = contains_ignoring_case(text_value(arguments[1]), text_value(arguments[0]));
  sqlite3_result_int(context, there ? 1 : 0);
}

/// Makes the file, which nobody else may read, and answers its inode.
expected<std::uint64_t> prepare_file(const std::string& path, bool make) {
  std::error_code failure;
  if (make) {
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), failure);
  }
  auto flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (make ? O_CREAT : 0);
  unique_descriptor file{::open(path.c_str(), flags, 0600)};
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) {
    return fail(errno == ENOENT ? errc::not_found : errc::unavailable,
                fmt::format("open the ledger \"{}\": {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    return fail(errc::denied,
                fmt::format("the ledger \"{}\" is no file of this account (uid {}); move it away, "
                            "and Bulkhead begins a new one",
                            path, ::geteuid()));
  }
  if ((info.st_mode & 077) != 0 && ::fchmod(file.get(), 0600) != 0) {
    return fail(errc::unavailable,
                fmt::format("close the ledger \"{}\" to others: {}", path, std::strerror(errno)));
  }
  return static_cast<std::uint64_t>(info.st_ino);
}

/// The conditions of a query, and their parameters in that order.
struct conditions {
  std::string sql = " WHERE at >= ?";
  std::vector<std::string> texts;

  void add(std::string_view condition, const std::string& value) {
    if (!value.empty()) {
      sql += fmt::format(" AND {}", condition);
      texts.insert(texts.end(), std::count(condition.begin(), condition.end(), '?'), value);
    }
  }
};

conditions common(const ledger_query& query) {
  conditions result;
  if (query.until > 0) {
    result.sql += fmt::format(" AND at <= {}", query.until);
  }
  result.add("owner = ?", query.owner);
  // Run ids are hex digits, all of which are less than g.
  result.add("run >= ? AND run < ? || 'g'", query.run);
  result.add("outcome = ?", query.outcome);
  return result;
}

void bind(statement& to, const ledger_query& query, const conditions& wanted) {
  to.put(query.since);
  for (const auto& text : wanted.texts) {
    to.put(std::string_view{text});
  }
  to.put(static_cast<std::int64_t>(std::min<std::uint64_t>(query.limit, INT64_MAX)));
  to.put(static_cast<std::int64_t>(std::min<std::uint64_t>(query.skip, INT64_MAX)));
}

ledger_run run_of(statement& row) {
  ledger_run result;
  result.run = row.text();
  result.at = row.number();
  result.owner = row.text();
  result.client = row.text();
  result.client_version = row.text();
  result.session = row.text();
  result.code = {row.text(), row.count(), row.optional_text()};
  auto servers = json::parse(row.text(), nullptr, false);
  for (const auto& server : servers.is_array() ? servers : json::array()) {
    result.servers.push_back(server.is_string() ? server.get<std::string>() : std::string{});
  }
  result.calls = row.count();
  result.duration_ms = row.count();
  result.outcome = row.text();
  result.error = row.text();
  return result;
}

ledger_call call_of(statement& row) {
  ledger_call result;
  result.run = row.text();
  result.at = row.number();
  result.owner = row.text();
  result.server = row.text();
  result.tool = row.text();
  result.arguments = {row.text(), row.count(), row.optional_text()};
  result.result_bytes = row.count();
  result.duration_us = row.count();
  result.outcome = row.text();
  result.rule = row.text();
  return result;
}

/// Hands out rows until that is enough; SQLITE_DONE, or why there are no more.
template <class Record>
int visit_rows(statement& rows, Record (*read)(statement&),
               const std::function<bool(Record)>& visitor) {
  auto status = rows.step();
  while (status == SQLITE_ROW) {
    status = visitor(read(rows)) ? rows.step() : SQLITE_DONE;
  }
  return status;
}

std::string list_of(const std::vector<std::string>& texts) {
  return json(texts).dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

void ledger_database::closer::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

ledger_database::ledger_database(rules how, sqlite3* database)
    : how_{std::move(how)}, database_{database} {}

ledger_database::ledger_database(ledger_database&&) noexcept = default;
ledger_database& ledger_database::operator=(ledger_database&&) noexcept = default;
ledger_database::~ledger_database() = default;

tl::unexpected<error> ledger_database::failure(std::string_view what) const {
  return fail(errc::unavailable,
              fmt::format("{} the ledger \"{}\": {}", what, how_.path,
                          database_ ? sqlite3_errmsg(database_.get()) : "no memory"));
}

expected<ledger_database> ledger_database::open(rules how, access as) {
  auto inode = prepare_file(how.path, as == access::write);
  if (!inode) {
    return tl::unexpected{inode.error()};
  }
  sqlite3* made = nullptr;
  auto path = how.path;
  auto status =
      sqlite3_open_v2(path.c_str(), &made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  ledger_database result{std::move(how), made};
  result.file_ = *inode;
  if (status != SQLITE_OK) {
    return result.failure("open");
  }
  if (auto settled = result.settle(as); !settled) {
    return tl::unexpected{settled.error()};
  }
  return result;
}

bool ledger_database::in_place() const {
  struct stat info {};
  return ::lstat(how_.path.c_str(), &info) == 0 && info.st_ino == file_;
}

expected<void> ledger_database::run(const char* sql) const {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return failure("write");
  }
  return {};
}

std::uint64_t ledger_database::number(const char* sql) const {
  statement query{database_.get(), sql};
  return query.step() == SQLITE_ROW ? query.count() : 0;
}

expected<void> ledger_database::settle(access as) {
  auto* database = database_.get();
  sqlite3_busy_timeout(database, static_cast<int>(how_.patience.count()));
  sqlite3_create_function(database, "names", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, names,
                          nullptr, nullptr);
  sqlite3_create_function(database, "has", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, has,
                          nullptr, nullptr);
  statement version{database, "PRAGMA user_version"};
  if (version.step() != SQLITE_ROW) {
    return failure("read");
  }
  auto format = version.number();
  version.reset();
  if (format > format_version) {
    return fail(errc::denied,
                fmt::format("the ledger \"{}\" was written by a later version of Bulkhead (format "
                            "{}; this one knows {}): use that version, or move the file away to "
                            "begin a new ledger",
                            how_.path, format, format_version));
  }
  if (format == 0 && number("SELECT count(*) FROM sqlite_master") > 0) {
    // Another process may have made it a moment ago, tables and version at once.
    format = static_cast<decltype(format)>(number("PRAGMA user_version"));
    if (format == 0) {
      return fail(errc::denied,
                  fmt::format("\"{}\" is a database, but no ledger; move it away, and "
                              "Bulkhead begins a new one",
                              how_.path));
    }
  }
  if (as == access::read) {
    return format == 0 ? fail(errc::not_found, fmt::format("the ledger \"{}\" is empty", how_.path))
                       : run("PRAGMA query_only = 1");
  }
  // What the power's failure may take is the last moment; a run never waits for the disk.
  std::vector<const char*> pragmas = {"PRAGMA synchronous = NORMAL",
                                      "PRAGMA journal_size_limit = 4194304"};
  if (format == 0) {
    // The file keeps these; to ask for them again would wait for whoever writes.
    pragmas.insert(pragmas.begin(),
                   {"PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA journal_mode = WAL"});
  }
  for (const auto* sql : pragmas) {
    if (auto done = run(sql); !done) {
      return done;
    }
  }
  return format == 0 ? settle_schema() : expected<void>{};
}

expected<void> ledger_database::settle_schema() {
  if (auto begun = run("BEGIN IMMEDIATE"); !begun) {
    return begun;
  }
  // Another process may have been quicker.
  auto made = number("PRAGMA user_version") > 0 ? expected<void>{} : run(schema);
  auto ended = run(made ? "COMMIT" : "ROLLBACK");
  return made ? ended : made;
}

expected<void> ledger_database::store(const std::vector<ledger_run>& runs,
                                      const std::vector<ledger_call>& calls) {
  if (auto begun = run("BEGIN IMMEDIATE"); !begun) {
    return begun;
  }
  statement add_run{database_.get(),
                    "INSERT OR IGNORE INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)"};
  statement add_call{database_.get(), "INSERT INTO calls VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?)"};
  bool sound = true;
  auto done = [&sound](statement& insertion) {
    sound = sound && insertion.step() == SQLITE_DONE;
    insertion.reset();
  };
  for (const auto& each : runs) {
    add_run.put(each.run).put(each.at).put(each.owner).put(each.client).put(each.client_version);
    add_run.put(each.session).put(each.code.sha256).put(each.code.bytes).put_if(each.code.text);
    add_run.put(list_of(each.servers)).put(each.calls).put(each.duration_ms);
    done(add_run.put(each.outcome).put(each.error));
  }
  for (const auto& each : calls) {
    add_call.put(each.run).put(each.at).put(each.owner).put(each.server).put(each.tool);
    add_call.put(each.arguments.sha256).put(each.arguments.bytes).put_if(each.arguments.text);
    done(add_call.put(each.result_bytes).put(each.duration_us).put(each.outcome).put(each.rule));
  }
  auto result = sound ? run("COMMIT") : expected<void>{failure("write")};
  if (!result) {
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return result;
}

expected<void> ledger_database::visit_runs(const ledger_query& query,
                                           const std::function<bool(ledger_run)>& visitor) const {
  auto wanted = common(query);
  wanted.add("EXISTS(SELECT 1 FROM json_each(servers) WHERE names(?, value))", query.server);
  wanted.add("EXISTS(SELECT 1 FROM calls WHERE calls.run = runs.run AND names(?, tool))",
             query.tool);
  wanted.add("has(?, client || char(10) || session || char(10) || servers || char(10) || error || "
             "char(10) || coalesce(code, ''))",
             query.text);
  statement rows{database_.get(), "SELECT run, at, owner, client, client_version, session, "
                                  "code_sha256, code_bytes, code, servers, calls, duration_ms, "
                                  "outcome, error FROM runs" +
                                      wanted.sql +
                                      " ORDER BY at DESC, rowid DESC LIMIT ? OFFSET ?"};
  bind(rows, query, wanted);
  return visit_rows(rows, run_of, visitor) == SQLITE_DONE ? expected<void>{} : failure("read");
}

expected<void> ledger_database::visit_calls(const ledger_query& query,
                                            const std::function<bool(ledger_call)>& visitor) const {
  auto wanted = common(query);
  wanted.add("names(?, server)", query.server);
  wanted.add("names(?, tool)", query.tool);
  wanted.add("has(?, server || char(10) || tool || char(10) || rule || char(10) || "
             "coalesce(arguments, ''))",
             query.text);
  statement rows{database_.get(), "SELECT run, at, owner, server, tool, arguments_sha256, "
                                  "arguments_bytes, arguments, result_bytes, duration_us, "
                                  "outcome, rule FROM calls" +
                                      wanted.sql + " ORDER BY at DESC, id DESC LIMIT ? OFFSET ?"};
  bind(rows, query, wanted);
  return visit_rows(rows, call_of, visitor) == SQLITE_DONE ? expected<void>{} : failure("read");
}

expected<ledger_page> ledger_database::read(ledger_query query) const {
  auto most = std::min(query.limit, most_of_page);
  query.limit = most + 1; // one more tells whether there are more
  ledger_page page;
  auto visited = query.calls ? visit_calls(query,
                                           [&](ledger_call each) {
                                             page.calls.push_back(std::move(each));
                                             return true;
                                           })
                             : visit_runs(query, [&](ledger_run each) {
                                 page.runs.push_back(std::move(each));
                                 return true;
                               });
  if (!visited) {
    return tl::unexpected{visited.error()};
  }
  page.more = page.runs.size() > most || page.calls.size() > most;
  page.runs.resize(std::min<std::size_t>(page.runs.size(), most));
  page.calls.resize(std::min<std::size_t>(page.calls.size(), most));
  return page;
}

/// `sql` drops some rows; it is run until it finds no more.
expected<std::uint64_t> ledger_database::drop(const char* sql, std::int64_t value) {
  statement deletion{database_.get(), sql};
  std::uint64_t dropped = 0;
  for (int now = rows_at_a_time; now == rows_at_a_time;) {
    deletion.reset();
    if (deletion.put(value).put(std::int64_t{rows_at_a_time}).step() != SQLITE_DONE) {
      return failure("prune");
    }
    now = sqlite3_changes(database_.get());
    dropped += static_cast<std::uint64_t>(now);
  }
  return dropped;
}

bool ledger_database::too_large() const {
  auto pages = number("PRAGMA page_count") - number("PRAGMA freelist_count");
  return pages * number("PRAGMA page_size") > how_.most_bytes;
}

expected<std::uint64_t> ledger_database::prune(std::int64_t now) {
  constexpr const char* old_calls =
      "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE at < ? LIMIT ?)";
  constexpr const char* old_runs =
      "DELETE FROM runs WHERE run IN (SELECT run FROM runs WHERE at < ? LIMIT ?)";
  auto before = now - std::int64_t{how_.days} * 86'400'000;
  std::uint64_t dropped = 0;
  for (bool more = true; more;) {
    for (const auto* sql : {old_calls, old_runs}) {
      auto count = drop(sql, before);
      if (!count) {
        return count;
      }
      dropped += *count;
    }
    // Over the size, what is oldest goes, a tenth of the time that the ledger covers at once.
    more = too_large() && before < now;
    auto oldest = static_cast<std::int64_t>(
        number("SELECT coalesce(min(at), 0) FROM (SELECT min(at) AS at FROM runs UNION ALL "
               "SELECT min(at) FROM calls)"));
    before = std::max(oldest, before) + std::max<std::int64_t>((now - oldest) / 10, 1);
  }
  if (auto freed = run("PRAGMA incremental_vacuum"); !freed) {
    return tl::unexpected{freed.error()};
  }
  return dropped;
}

} // namespace bulkhead
