#include "serve/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

namespace tensordiff::serve {
namespace {

// A change of these tables raises the version; an older file is then changed step by step.
constexpr int kVersion = 1;
constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS sources(id TEXT PRIMARY KEY, name TEXT, kind TEXT, path TEXT,
                                     created INTEGER);
  CREATE TABLE IF NOT EXISTS sessions(id TEXT PRIMARY KEY, settings TEXT, created INTEGER,
                                      updated INTEGER);
  CREATE TABLE IF NOT EXISTS notes(session TEXT, a TEXT, b TEXT, text TEXT,
                                   PRIMARY KEY(session, a, b));
  CREATE TABLE IF NOT EXISTS orders(session TEXT PRIMARY KEY, names TEXT);
  CREATE TABLE IF NOT EXISTS results(session TEXT PRIMARY KEY, files TEXT, names TEXT,
                                     verdict TEXT, pairs INTEGER, report BLOB);
  CREATE TABLE IF NOT EXISTS uploads(id TEXT PRIMARY KEY, name TEXT, size INTEGER, chunk INTEGER,
                                     received BLOB, source TEXT, created INTEGER);
  CREATE TABLE IF NOT EXISTS runs(session TEXT PRIMARY KEY, attempts INTEGER, state TEXT,
                                  error TEXT);
)";

// What went wrong on this thread is told to the innermost of these.
thread_local Store::Faults* watching = nullptr;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Error fault_of(sqlite3* database) {
  switch (sqlite3_errcode(database)) {
    case SQLITE_FULL:
      return Error("the disk is full");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error("the database of sessions is damaged ({}); move it away to start with none",
                   sqlite3_errmsg(database));
    default:
      return Error("the database of sessions: {}", sqlite3_errmsg(database));
  }
}

// SQLite would make it for everybody to read; what it puts beside it has the mode of this one.
Result<void> make_private(const std::string& path) {
  const int file =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return Error("{}: {}", path, std::strerror(errno));
  struct stat facts {};
  const bool ours = fstat(file, &facts) == 0 && facts.st_uid == geteuid();
  if (ours && (facts.st_mode & (S_IRWXG | S_IRWXO))) fchmod(file, S_IRUSR | S_IWUSR);
  close(file);
  if (!ours) return Error("{}: it belongs to somebody else", path);
  return {};
}

void bind(sqlite3_stmt* statement, int index, const Store::Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value))
    sqlite3_bind_int64(statement, index, *number);
  else if (const auto* text = std::get_if<std::string_view>(&value))
    sqlite3_bind_text64(statement, index, text->data() ? text->data() : "", text->size(),
                        SQLITE_STATIC, SQLITE_UTF8);
  else if (const auto* blob = std::get_if<Store::Blob>(&value))
    sqlite3_bind_blob64(statement, index, blob->bytes.data() ? blob->bytes.data() : "",
                        blob->bytes.size(), SQLITE_STATIC);
}

}  // namespace

struct Store::State {
  std::unique_ptr<sqlite3, CloseDatabase> database;
  std::mutex mutex;

  Result<void> script(const char* sql) const {
    if (sqlite3_exec(database.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
      return fault_of(database.get());
    return {};
  }
};

Store::Faults::Faults() : outer_(std::exchange(watching, this)) {}
Store::Faults::~Faults() { watching = outer_; }

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store::~Store() = default;

int64_t Store::Row::number(int column) const {
  return sqlite3_column_int64(static_cast<sqlite3_stmt*>(statement_), column);
}

std::string Store::Row::text(int column) const {
  auto* statement = static_cast<sqlite3_stmt*>(statement_);
  const void* bytes = sqlite3_column_blob(statement, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return bytes ? std::string(static_cast<const char*>(bytes), size) : std::string();
}

Result<Store> Store::open(const std::string& path) {
  if (path != ":memory:") TRY(make_private(path));
  auto state = std::make_unique<State>();
  sqlite3* opened = nullptr;
  const int status = sqlite3_open(path.c_str(), &opened);
  state->database.reset(opened);
  if (status != SQLITE_OK) return fault_of(opened).in(path);
  sqlite3_busy_timeout(opened, 5000);
  TRY(state->script("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;").in(path));
  int64_t version = 0;
  Store store(std::move(state));
  TRY(store.read("PRAGMA user_version", {}, [&](const Row& row) { version = row.number(0); })
          .in(path));
  if (version > kVersion)
    return Error("{}: written by a newer tensordiff; --state names another folder", path);
  TRY(store.state_->script(kTables).in(path));
  TRY(store.state_->script(fmt::format("PRAGMA user_version={}", kVersion).c_str()).in(path));
  return store;
}

Result<void> Store::run(const char* sql, std::initializer_list<Value> values) {
  return read(sql, values, [](const Row&) {});
}

Result<void> Store::read(const char* sql, std::initializer_list<Value> values,
                         const std::function<void(const Row&)>& each) {
  const std::lock_guard lock(state_->mutex);
  sqlite3* database = state_->database.get();
  const auto failed = [&] {
    if (watching) watching->seen_ = true;
    return fault_of(database);
  };
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(database, sql, -1, &prepared, nullptr) != SQLITE_OK) return failed();
  const Statement statement(prepared);
  int index = 0;
  for (const Value& value : values) bind(prepared, ++index, value);
  for (;;) {
    const int status = sqlite3_step(prepared);
    if (status == SQLITE_DONE) return {};
    if (status != SQLITE_ROW) return failed();
    each(Row(prepared));
  }
}

}  // namespace tensordiff::serve
