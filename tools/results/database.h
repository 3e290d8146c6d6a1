#pragma once
// An SQLite file: one connection, its prepared statements, and errors that say what to do.

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace railyard {

// The row that a query stands on; columns count from 0.
class Row {
  public:
    explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
    bool null(int column) const;
    std::int64_t integer(int column) const;
    double real(int column) const;
    std::string text(int column) const;
    nlohmann::ordered_json json() const;  // all of it, by the columns' names

  private:
    sqlite3_stmt* statement_;
};

// A database that can't be opened, read or written: SQLite's words and what to do.
class DatabaseError : public ScenarioError {
  public:
    using ScenarioError::ScenarioError;
};

// Every failure leaves as DatabaseError. For one thread at a time.
class Database {
  public:
    enum class Open : std::uint8_t { read, write };  // write makes the file when there is none
    Database(std::string path, Open how);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    const std::string& path() const { return path_; }
    // Throws for content that SQLite accepts and that cannot be right.
    [[noreturn]] void damaged(const std::string& what) const;
    // Throws when the file has been removed or renamed since it was opened: nobody finds what is written.
    void check_there() const;
    void execute(const std::string& sql);  // any number of statements, no values

    // One statement with values for its ?s: integers, doubles (not a number becomes NULL), texts, nullopt.
    // It is prepared once.
    template <class... Values>
    void run(std::string_view sql, const Values&... values) {
        sqlite3_stmt* statement = prepared(sql);
        int index = 0;
        (bind(statement, ++index, values), ...);
        finish(statement);
    }
    // One INSERT of as many rows as there are: `insert` is a literal that ends in VALUES. Cheapest in the
    // order of the table's key.
    template <class... Values>
    void insert(std::string_view insert, const std::vector<std::tuple<Values...>>& rows) {
        if (rows.empty()) return;
        sqlite3_stmt* statement = prepared_rows(insert, sizeof...(Values), rows.size());
        int index = 0;
        for (const auto& row : rows) {
            std::apply([&](const auto&... values) { (bind(statement, ++index, values), ...); },
                       row);
        }
        finish(statement);
    }
    // Like run; calls `each` with every row.
    template <class... Values>
    void query(std::string_view sql, const std::function<void(const Row&)>& each,
               const Values&... values) {
        sqlite3_stmt* statement = prepared(sql);
        int index = 0;
        (bind(statement, ++index, values), ...);
        walk(statement, each);
    }
    // The first column of the first row; none when there is no row or it is NULL.
    template <class... Values>
    std::optional<std::int64_t> integer(std::string_view sql, const Values&... values) {
        std::optional<std::int64_t> out;
        query(
            sql,
            [&](const Row& row) {
                if (!out && !row.null(0)) out = row.integer(0);
            },
            values...);
        return out;
    }
    // The first column of every row.
    template <class... Values>
    std::vector<std::string> texts(std::string_view sql, const Values&... values) {
        std::vector<std::string> out;
        query(
            sql, [&](const Row& row) { out.push_back(row.text(0)); }, values...);
        return out;
    }
    std::int64_t last_row() const;

  private:
    sqlite3_stmt* prepared(std::string_view sql);
    sqlite3_stmt* prepared_rows(std::string_view insert, std::size_t columns, std::size_t rows);
    void finish(sqlite3_stmt* statement);
    void walk(sqlite3_stmt* statement, const std::function<void(const Row&)>& each);
    static void bind(sqlite3_stmt* s, int i, std::int64_t v);
    static void bind(sqlite3_stmt* s, int i, double v);
    static void bind(sqlite3_stmt* s, int i, std::string_view v);
    static void bind(sqlite3_stmt* s, int i, std::nullopt_t);
    template <class T>
    static void bind(sqlite3_stmt* s, int i, const std::optional<T>& v) {
        if (v) {
            bind(s, i, *v);
        } else {
            bind(s, i, std::nullopt);
        }
    }
    [[noreturn]] void fail(const char* what) const;

    std::string path_;
    sqlite3* db_ = nullptr;
    std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
    std::map<std::pair<std::string_view, std::size_t>, sqlite3_stmt*> row_statements_;  // by rows
};

// Held while a file is written: a second writer is told at once, readers come and go. It is a lock of the
// kernel's on PATH-writer, so a killed program leaves none behind.
class WriterLock {
  public:
    explicit WriterLock(const std::string& path);
    ~WriterLock();
    WriterLock(const WriterLock&) = delete;
    WriterLock& operator=(const WriterLock&) = delete;

  private:
    std::string lock_path_;
    int file_ = -1;
};

}  // namespace railyard
