#include "tools/results_db.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>

#include "sim/check.h"

namespace railyard {

namespace {

constexpr int schema_version = 1;
constexpr int application_id = 0x7261696c;  // "rail"

constexpr const char* schema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
-- One row per 'railyard run'. status: running (or killed), complete, interrupted, stuck, limit.
CREATE TABLE runs (
    run INTEGER PRIMARY KEY, scenario TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL,
    seed INTEGER NOT NULL, replicas_wanted INTEGER NOT NULL, replicas_done INTEGER NOT NULL,
    settings TEXT NOT NULL, scenario_toml TEXT NOT NULL, gpus INTEGER NOT NULL, status TEXT NOT NULL,
    digest TEXT, trajectory TEXT, cpu_s REAL);
CREATE TABLE replicas (
    run INTEGER NOT NULL REFERENCES runs, replica INTEGER NOT NULL, ending TEXT NOT NULL,
    simulated_ns INTEGER NOT NULL, events INTEGER NOT NULL, outcome TEXT NOT NULL, trajectory TEXT NOT NULL,
    PRIMARY KEY (run, replica)) WITHOUT ROWID;
-- A mean over things that are counted in each replica (the cost of an interruption) has their sum and count:
-- over replicas it is all sums over all counts, as in metric_means.
CREATE TABLE metrics (
    run INTEGER NOT NULL, replica INTEGER NOT NULL, name TEXT NOT NULL, unit TEXT NOT NULL, value REAL,
    sum REAL, count REAL,
    PRIMARY KEY (run, replica, name)) WITHOUT ROWID;
CREATE TABLE ledger (
    run INTEGER NOT NULL, replica INTEGER NOT NULL, category TEXT NOT NULL, gpu_s REAL NOT NULL,
    fraction REAL NOT NULL, PRIMARY KEY (run, replica, category)) WITHOUT ROWID;
CREATE TABLE interruptions (
    run INTEGER NOT NULL, replica INTEGER NOT NULL, cause TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (run, replica, cause)) WITHOUT ROWID;
-- steps: safe (checkpoint_safe, resumed, maintenance, finished, campaign_end) or lost (interruption).
CREATE TABLE events (
    run INTEGER NOT NULL, replica INTEGER NOT NULL, time_ns INTEGER NOT NULL, kind TEXT NOT NULL,
    cause TEXT, slot INTEGER, steps INTEGER NOT NULL);
CREATE INDEX events_by_replica ON events (run, replica, time_ns);
CREATE VIEW metric_means AS
    SELECT run, name, unit, count(*) AS replicas,
           coalesce(sum(sum) / nullif(sum(count), 0), avg(value)) AS mean, min(value) AS lowest,
           max(value) AS highest FROM metrics GROUP BY run, name;
CREATE VIEW ledger_means AS
    SELECT run, category, avg(gpu_s) AS gpu_s, avg(fraction) AS fraction FROM ledger GROUP BY run, category;
)sql";

double now_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

// The connection and its prepared statements. Every failure becomes a ScenarioError with SQLite's
// words.
class ResultsDb::Connection {
  public:
    explicit Connection(const std::string& path) : path_(path) {
        if (sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                            nullptr) != SQLITE_OK) {
            const ScenarioError error = failure("can't open");
            sqlite3_close(db_);
            throw error;
        }
    }
    ~Connection() { sqlite3_close(db_); }
    Connection(const Connection&) = delete;

    void execute(const char* sql) {
        if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
            throw failure("can't write");
    }
    std::int64_t last_row() const { return sqlite3_last_insert_rowid(db_); }

    std::int64_t scalar(const char* sql) {
        sqlite3_stmt* statement = prepare(sql);
        const int status = sqlite3_step(statement);
        const std::int64_t value = status == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
        sqlite3_finalize(statement);
        if (status != SQLITE_ROW && status != SQLITE_DONE) throw failure("can't read");
        return value;
    }

    template <class... Values>
    void insert(const char* sql, const Values&... values) {
        sqlite3_stmt* statement = prepare(sql);
        int index = 0;
        (bind(statement, ++index, values), ...);
        const int status = sqlite3_step(statement);
        sqlite3_finalize(statement);
        if (status != SQLITE_DONE) throw failure("can't write");
    }

    ScenarioError failure(const char* what) const {
        const int code = sqlite3_errcode(db_);
        std::string help;
        if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
            help = "another program is writing to it: wait for it, or write to another file";
        } else if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM) {
            help = "the file and its folder must be writable";
        } else if (code == SQLITE_NOTADB) {
            help = "it is not a database: choose another file";
        } else if (code == SQLITE_FULL) {
            help = "the disk is full; what was committed before is safe";
        }
        return ScenarioError(
            fmt::format("{} the database {}: {}", what, path_, sqlite3_errmsg(db_)), help);
    }

  private:
    sqlite3_stmt* prepare(const char* sql) {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr) != SQLITE_OK)
            throw failure("can't use");
        return statement;
    }
    static void bind(sqlite3_stmt* s, int i, std::int64_t v) { sqlite3_bind_int64(s, i, v); }
    static void bind(sqlite3_stmt* s, int i, double v) { sqlite3_bind_double(s, i, v); }
    static void bind(sqlite3_stmt* s, int i, const std::string& v) {
        sqlite3_bind_text(s, i, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT);
    }
    static void bind(sqlite3_stmt* s, int i, const char* v) { bind(s, i, std::string(v)); }

    std::string path_;
    sqlite3* db_ = nullptr;
};

ResultsDb::ResultsDb(const std::string& path, const Scenario& scenario,
                     const std::string& scenario_text, const std::string& settings,
                     const std::string& version)
    : db_(std::make_unique<Connection>(path)), scenario_(scenario) {
    // Exclusive from the first write until the process ends: a second writer is told at once.
    db_->execute("PRAGMA locking_mode = EXCLUSIVE");
    db_->execute("BEGIN EXCLUSIVE");
    const std::int64_t found_id = db_->scalar("PRAGMA application_id");
    const std::int64_t found_version = db_->scalar("PRAGMA user_version");
    const std::int64_t tables = db_->scalar("SELECT count(*) FROM sqlite_master");
    if (tables == 0) {
        db_->execute(fmt::format("PRAGMA application_id = {}", application_id).c_str());
        db_->execute(fmt::format("PRAGMA user_version = {}", schema_version).c_str());
        db_->execute(schema);
        db_->insert("INSERT INTO meta VALUES ('schema_version', ?)",
                    std::to_string(schema_version));
    } else if (found_id != application_id) {
        throw ScenarioError(fmt::format("{} is a database of something else", path),
                            "choose another file");
    } else if (found_version != schema_version) {
        throw ScenarioError(fmt::format("{} has schema version {}, this railyard writes {}", path,
                                        found_version, schema_version),
                            "choose another file");
    }
    db_->insert(
        "INSERT INTO runs (scenario, title, version, seed, replicas_wanted, replicas_done, "
        "settings, "
        "scenario_toml, gpus, status) VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, 'running')",
        scenario.file, scenario.title, version, static_cast<std::int64_t>(scenario.seed),
        scenario.replicas, settings, scenario_text, scenario.gpus());
    run_ = db_->last_row();
    db_->execute("COMMIT; BEGIN");
    committed_ = began_ = now_seconds();
}

ResultsDb::~ResultsDb() = default;

namespace {

const char* ending_name(Ending ending) {
    switch (ending) {
        case Ending::complete:
            return "complete";
        case Ending::stuck:
            return "stuck";
        case Ending::limit:
            return "limit";
    }
    return "";
}

std::string hex(std::uint64_t value) {
    return fmt::format("{:016x}", value);
}

}  // namespace

void ResultsDb::add(const ReplicaResult& r) {
    db_->insert("INSERT INTO replicas VALUES (?, ?, ?, ?, ?, ?, ?)", run_, r.index,
                ending_name(r.ending), std::int64_t{r.simulated.count()},
                static_cast<std::int64_t>(r.events), hex(r.outcome), hex(r.trajectory));
    for (const Metric& m : r.metrics) {
        db_->insert(
            "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, iif(?7 < 0, NULL, ?6), nullif(?7, -1.0))",
            run_, r.index, m.name, m.unit, m.value, m.sum, m.count);
    }
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        db_->insert("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", run_, r.index,
                    std::string(category_name(category)),
                    static_cast<double>(r.ledger.booked(category)) * 1e-9,
                    r.ledger.fraction(category));
    }
    for (std::size_t i = 0; i < scenario_.causes.size(); ++i) {
        db_->insert("INSERT INTO interruptions VALUES (?, ?, ?, ?)", run_, r.index,
                    scenario_.causes[i].name, r.job.interruptions[i]);
    }
    for (const CampaignEvent& e : r.log) {
        db_->insert("INSERT INTO events VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, -1), ?)", run_,
                    r.index, std::int64_t{e.at.time_since_epoch().count()}, e.kind, e.cause, e.slot,
                    e.steps);
    }
    db_->insert("UPDATE runs SET replicas_done = replicas_done + 1 WHERE run = ?", run_);
    // Slow replicas are committed one by one; a commit for each of many fast ones would take longer than
    // they do.
    ++added_;
    const double now = now_seconds();
    constexpr double seconds_between_commits = 0.5;
    constexpr double slow_replica_seconds = 0.02;
    const bool slow = now - began_ > slow_replica_seconds * static_cast<double>(added_);
    if (slow || now - committed_ > seconds_between_commits) {
        db_->execute("COMMIT; BEGIN");
        committed_ = now;
    }
}

void ResultsDb::finish(const CampaignResult& result) {
    const std::string status = result.cancelled ? "interrupted" : ending_name(result.ending());
    db_->insert("UPDATE runs SET status = ?, digest = ?, trajectory = ?, cpu_s = ? WHERE run = ?",
                status, result.digest, result.trajectory, result.cpu_s, run_);
    db_->execute("COMMIT");
}

}  // namespace railyard
