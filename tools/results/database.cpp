#include "tools/results/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace railyard {

bool Row::null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
std::int64_t Row::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}
double Row::real(int column) const {
    return sqlite3_column_double(statement_, column);
}
std::string Row::text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr
               ? std::string()
               : std::string(text,
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}
nlohmann::ordered_json Row::json() const {
    nlohmann::ordered_json out;
    for (int i = 0; i < sqlite3_column_count(statement_); ++i) {
        nlohmann::ordered_json& value = out[sqlite3_column_name(statement_, i)];
        const int type = sqlite3_column_type(statement_, i);
        if (type == SQLITE_INTEGER) value = integer(i);
        if (type == SQLITE_FLOAT) value = real(i);
        if (type == SQLITE_TEXT) value = text(i);
    }
    return out;
}

namespace {

// A file as SQLite's URIs have it.
std::string uri_of(const std::string& path) {
    std::string out = "file:";
    for (const char c : path) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' ||
                           c == '.' || c == '-' || c == '_';
        out += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
    return out;
}

// Readers of a file with a log (WAL) share an index beside it, which a folder that takes no files has no
// place for. With nothing in the log the file alone is all there is, and nobody there can change it.
bool never_changes(const std::string& path) {
    std::error_code none;
    const std::filesystem::path folder = std::filesystem::absolute(path, none).parent_path();
    struct stat log {};
    const bool logged = stat((path + "-wal").c_str(), &log) == 0 && log.st_size > 0;
    return access(folder.c_str(), W_OK) != 0 && !logged;
}

constexpr const char* busy_help =
    "another program is writing to it: wait for it, or write to another file";
constexpr const char* place_help = "the file and its folder must be writable";

const char* help_for(int code) {
    switch (code) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return busy_help;
        case SQLITE_READONLY:
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
            return place_help;
        case SQLITE_NOTADB:
            return "it is not a database: choose another file";
        case SQLITE_CORRUPT:
            return "the file is damaged: 'sqlite3 FILE .recover' saves what can be saved";
        case SQLITE_FULL:
        case SQLITE_IOERR:
            return "the disk is full, or can't be written; what was committed before is safe";
        default:
            return "";
    }
}

}  // namespace

Database::Database(std::string path, Open how) : path_(std::move(path)) {
    if (path_ == ":memory:") {
        throw DatabaseError("a database in memory is gone when the program ends",
                            "give the name of a file");
    }
    const int flags = how == Open::read ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
                                        : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    const std::string name =
        how == Open::write ? path_ : uri_of(path_) + (never_changes(path_) ? "?immutable=1" : "");
    if (sqlite3_open_v2(name.c_str(), &db_, flags | SQLITE_OPEN_NOMUTEX, nullptr) == SQLITE_OK)
        return;
    try {
        fail("can't open");
    } catch (...) {
        sqlite3_close(db_);
        throw;
    }
}

Database::~Database() {
    for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
}

void Database::check_there() const {
    int moved = 0;
    if (sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || !moved) {
        return;
    }
    throw DatabaseError(
        fmt::format("can't write the database {}: it was removed or renamed meanwhile", path_),
        "nobody finds what is written to it from now on");
}

void Database::execute(const std::string& sql) {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail("can't write");
}

std::int64_t Database::last_row() const {
    return sqlite3_last_insert_rowid(db_);
}

sqlite3_stmt* Database::prepared(std::string_view sql) {
    const auto found = statements_.find(sql);
    if (found != statements_.end()) return found->second;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                           &statement, nullptr) != SQLITE_OK) {
        fail("can't use");
    }
    return statements_.emplace(sql, statement).first->second;
}

sqlite3_stmt* Database::prepared_rows(std::string_view insert, std::size_t columns,
                                      std::size_t rows) {
    const auto found = row_statements_.find({insert, rows});
    if (found != row_statements_.end()) return found->second;
    std::string row = "(?";
    for (std::size_t i = 1; i < columns; ++i) row += ",?";
    row += ")";
    std::string sql(insert);
    for (std::size_t i = 0; i < rows; ++i) sql += (i == 0 ? " " : ",") + row;
    sqlite3_stmt* statement = prepared(sql);
    row_statements_.emplace(std::pair(insert, rows), statement);
    return statement;
}

void Database::finish(sqlite3_stmt* statement) {
    const int status = sqlite3_step(statement);
    // The reset repeats the failure; it also ends the statement's hold on the file.
    if (sqlite3_reset(statement) != SQLITE_OK || (status != SQLITE_DONE && status != SQLITE_ROW)) {
        fail("can't write");
    }
}

void Database::walk(sqlite3_stmt* statement, const std::function<void(const Row&)>& each) {
    struct Reset {
        sqlite3_stmt* statement;
        ~Reset() { sqlite3_reset(statement); }
    };
    int status = SQLITE_ROW;
    try {
        const Reset reset{statement};
        while ((status = sqlite3_step(statement)) == SQLITE_ROW) each(Row(statement));
    } catch (const ScenarioError&) {
        throw;
    } catch (const std::logic_error& error) {  // of a number's digits
        damaged(error.what());
    } catch (const nlohmann::json::exception& error) {
        damaged(error.what());
    }
    if (status != SQLITE_DONE) fail("can't read");
}

void Database::bind(sqlite3_stmt* s, int i, std::int64_t v) {
    sqlite3_bind_int64(s, i, v);
}
void Database::bind(sqlite3_stmt* s, int i, double v) {
    sqlite3_bind_double(s, i, v);
}
void Database::bind(sqlite3_stmt* s, int i, std::string_view v) {
    // Static: the caller's value outlives the statement's run, and each run binds all of them.
    sqlite3_bind_text(s, i, v.data(), static_cast<int>(v.size()), SQLITE_STATIC);
}
void Database::bind(sqlite3_stmt* s, int i, std::nullopt_t) {
    sqlite3_bind_null(s, i);
}

void Database::damaged(const std::string& what) const {
    throw DatabaseError(fmt::format("can't read the database {}: {}", path_, what),
                        help_for(SQLITE_CORRUPT));
}

void Database::fail(const char* what) const {
    throw DatabaseError(fmt::format("{} the database {}: {}", what, path_, sqlite3_errmsg(db_)),
                        help_for(sqlite3_errcode(db_) & 0xff));
}

WriterLock::WriterLock(const std::string& path) : lock_path_(path + "-writer") {
    for (;;) {
        file_ = open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (file_ < 0) {
            throw DatabaseError(
                fmt::format("can't open the database {}: {}", path, std::strerror(errno)),
                place_help);
        }
        if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
            close(file_);
            throw DatabaseError(
                fmt::format("can't write the database {}: database is locked", path), busy_help);
        }
        // The one before may have removed the file between the two calls: then this lock is nobody's.
        struct stat mine {};
        struct stat theirs {};
        if (fstat(file_, &mine) == 0 && stat(lock_path_.c_str(), &theirs) == 0 &&
            mine.st_ino == theirs.st_ino) {
            return;
        }
        close(file_);
    }
}

WriterLock::~WriterLock() {
    unlink(lock_path_.c_str());
    close(file_);
}

}  // namespace railyard
