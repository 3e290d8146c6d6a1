#include "tools/results/results_schema.h"

#include <fmt/format.h>

#include <filesystem>

#include "models/campaign/campaign.h"

namespace railyard {

namespace {

constexpr std::int64_t application_id = 0x7261696c;  // "rail"

constexpr const char* tables = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Scenario files as they were read, each text once.
CREATE TABLE scenarios (
    scenario INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, file TEXT NOT NULL, toml TEXT NOT NULL);

-- A scenario with its settings: what can be simulated, and what came out over all its replicas so far.
-- key: digest of the scenario after its settings (not its title, not run.replicas), seed and version.
-- status: open, complete, stuck, limit, impossible, failed (problem says why). work: JSON, by what it can be
-- judged against others.
CREATE TABLE points (
    point INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, scenario INTEGER NOT NULL REFERENCES scenarios,
    settings TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL, seed INTEGER NOT NULL,
    status TEXT NOT NULL, problem TEXT, gpus INTEGER, replicas INTEGER NOT NULL,
    metric_list INTEGER, cause_list INTEGER, work TEXT, digest TEXT, trajectory TEXT);

-- The names that stand behind the lists in replicas; list is a digest of them.
CREATE TABLE name_lists (
    list INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, unit TEXT NOT NULL,
    PRIMARY KEY (list, position)) WITHOUT ROWID;
CREATE TABLE categories (position INTEGER PRIMARY KEY, category TEXT NOT NULL, meaning TEXT NOT NULL);

-- One replica of a point; metrics, ledger and interruptions are JSON lists: the views metrics, ledger and
-- interruptions have a row for each entry. A metric is a number, null, or [sum, count] of a mean.
CREATE TABLE replicas (
    point INTEGER NOT NULL REFERENCES points, replica INTEGER NOT NULL, ending TEXT NOT NULL,
    simulated_ns INTEGER NOT NULL, events INTEGER NOT NULL, outcome TEXT NOT NULL,
    trajectory TEXT NOT NULL, metrics TEXT NOT NULL, ledger TEXT NOT NULL, interruptions TEXT NOT NULL,
    PRIMARY KEY (point, replica)) WITHOUT ROWID;

-- Over a point's replicas, written when it is done. low, high: 95 % interval of the mean; NULL with one.
CREATE TABLE point_metrics (
    point INTEGER NOT NULL REFERENCES points, name TEXT NOT NULL, unit TEXT NOT NULL, mean REAL,
    deviation REAL, low REAL, high REAL, PRIMARY KEY (point, name)) WITHOUT ROWID;
CREATE TABLE point_ledger (
    point INTEGER NOT NULL REFERENCES points, category TEXT NOT NULL, gpu_s REAL NOT NULL,
    fraction REAL NOT NULL, PRIMARY KEY (point, category)) WITHOUT ROWID;
CREATE TABLE point_interruptions (
    point INTEGER NOT NULL REFERENCES points, cause TEXT NOT NULL, count REAL NOT NULL,
    PRIMARY KEY (point, cause)) WITHOUT ROWID;

-- steps: safe (checkpoint_safe, resumed, maintenance, finished, campaign_end) or lost (interruption).
CREATE TABLE events (
    point INTEGER NOT NULL REFERENCES points, replica INTEGER NOT NULL, time_ns INTEGER NOT NULL,
    kind TEXT NOT NULL, cause TEXT, slot INTEGER, steps INTEGER NOT NULL);
CREATE INDEX events_by_replica ON events (point, replica, time_ns);

-- What somebody asked for. kind: run, compare, sweep. status: running (or killed), complete, interrupted,
-- stuck, limit, impossible, failed (some or all points are). key: of a sweep, so that it is found again.
-- metric, better (higher, lower), why: by what compare and sweep have judged.
CREATE TABLE runs (
    run INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT UNIQUE, file TEXT NOT NULL, title TEXT NOT NULL,
    version TEXT NOT NULL, seed INTEGER NOT NULL, points_wanted INTEGER NOT NULL,
    replicas_wanted INTEGER NOT NULL, study TEXT, status TEXT NOT NULL, digest TEXT, trajectory TEXT,
    metric TEXT, better TEXT, why TEXT);
-- Which points a run is made of, in its order.
CREATE TABLE run_points (
    run INTEGER NOT NULL REFERENCES runs, position INTEGER NOT NULL,
    point INTEGER NOT NULL REFERENCES points, label TEXT NOT NULL,
    PRIMARY KEY (run, position)) WITHOUT ROWID;
-- The axes of a sweep and where each point lies on them; value: a number in the axis's unit, if it is one.
CREATE TABLE axes (
    run INTEGER NOT NULL REFERENCES runs, axis INTEGER NOT NULL, key TEXT NOT NULL, unit TEXT NOT NULL,
    PRIMARY KEY (run, axis)) WITHOUT ROWID;
CREATE TABLE axis_values (
    run INTEGER NOT NULL REFERENCES runs, position INTEGER NOT NULL, axis INTEGER NOT NULL,
    text TEXT NOT NULL, value REAL, PRIMARY KEY (run, position, axis)) WITHOUT ROWID;
-- Two points of a run in pairs of replicas; a, b: positions. difference = b - a, with its interval at
-- `confidence` (corrected for the number of pairs of points). verdict: a, b, equal, undecided.
CREATE TABLE comparisons (
    run INTEGER NOT NULL REFERENCES runs, metric TEXT NOT NULL, a INTEGER NOT NULL, b INTEGER NOT NULL,
    unit TEXT NOT NULL, better TEXT NOT NULL, pairs INTEGER NOT NULL, mean_a REAL, mean_b REAL,
    difference REAL, low REAL, high REAL, confidence REAL NOT NULL, correlation REAL, verdict TEXT NOT NULL,
    pairs_to_settle INTEGER, PRIMARY KEY (run, metric, a, b)) WITHOUT ROWID;
-- The machine's part, apart from the results: these differ from run to run.
CREATE TABLE run_times (run INTEGER PRIMARY KEY REFERENCES runs, cpu_s REAL, database_s REAL);
)sql";

constexpr const char* views = R"sql(
CREATE VIEW metrics AS
    SELECT r.point, r.replica, n.name, n.unit,
           CASE v.type WHEN 'array'
               THEN json_extract(v.value, '$[0]') * 1.0 / nullif(json_extract(v.value, '$[1]'), 0)
               ELSE v.value END AS value,
           CASE v.type WHEN 'array' THEN json_extract(v.value, '$[0]') END AS sum,
           CASE v.type WHEN 'array' THEN json_extract(v.value, '$[1]') END AS count
    FROM replicas r JOIN points p ON p.point = r.point JOIN json_each(r.metrics) v
         JOIN name_lists n ON n.list = p.metric_list AND n.position = v.key;
CREATE VIEW ledger AS
    SELECT r.point, r.replica, c.category, v.value * p.gpus * r.simulated_ns * 1e-9 AS gpu_s,
           v.value AS fraction
    FROM replicas r JOIN points p ON p.point = r.point JOIN json_each(r.ledger) v
         JOIN categories c ON c.position = v.key;
CREATE VIEW interruptions AS
    SELECT r.point, r.replica, n.name AS cause, v.value AS count
    FROM replicas r JOIN points p ON p.point = r.point JOIN json_each(r.interruptions) v
         JOIN name_lists n ON n.list = p.cause_list AND n.position = v.key;
CREATE VIEW metric_means AS
    SELECT rp.run, rp.position, rp.label, m.name, m.unit, p.replicas, m.mean, m.low, m.high, m.deviation
    FROM run_points rp JOIN points p ON p.point = rp.point JOIN point_metrics m ON m.point = rp.point;
CREATE VIEW ledger_means AS
    SELECT rp.run, rp.position, rp.label, l.category, l.gpu_s, l.fraction
    FROM run_points rp JOIN point_ledger l ON l.point = rp.point;
-- One line a point: is it done, and what are goodput and ETTR?
CREATE VIEW overview AS
    SELECT rp.run, rp.position, rp.label, rp.point, p.status, p.problem, p.gpus, p.replicas,
           g.mean AS goodput, g.low AS goodput_low, g.high AS goodput_high, e.mean AS ettr
    FROM run_points rp JOIN points p ON p.point = rp.point
         LEFT JOIN point_metrics g ON g.point = rp.point AND g.name = 'goodput'
         LEFT JOIN point_metrics e ON e.point = rp.point AND e.name = 'ettr';
-- One line for each value of each axis of a sweep: what it gives, over all values of the other axes.
CREATE VIEW axis_means AS
    SELECT v.run, a.key, a.unit, v.text, v.value, m.name, m.unit AS metric_unit, count(*) AS points,
           avg(m.mean) AS mean, min(m.mean) AS lowest, max(m.mean) AS highest
    FROM axis_values v JOIN axes a ON a.run = v.run AND a.axis = v.axis
         JOIN run_points rp ON rp.run = v.run AND rp.position = v.position
         JOIN point_metrics m ON m.point = rp.point
    GROUP BY v.run, v.axis, v.text, m.name;
)sql";

void check_results(Database& db) {
    if (db.integer("PRAGMA application_id").value_or(0) != application_id) {
        if (db.integer("SELECT count(*) FROM sqlite_master") == 0) {
            throw ScenarioError(
                fmt::format("{} is empty: no run has been written to it", db.path()),
                "'railyard run SCENARIO.toml --db FILE' writes one");
        }
        throw ScenarioError(fmt::format("{} is a database of something else", db.path()),
                            "choose another file");
    }
    const std::int64_t found = db.integer("PRAGMA user_version").value_or(0);
    if (found != results_schema_version) {
        throw ScenarioError(
            fmt::format("{} has schema version {}, this railyard reads and writes {}", db.path(),
                        found, results_schema_version),
            "write to another file; what is in this one stays as it is, and its scenarios can be "
            "run again");
    }
}

}  // namespace

void prepare_results(Database& db) {
    if (db.integer("SELECT count(*) FROM sqlite_master").value_or(0) > 0) {
        check_results(db);
        return;
    }
    db.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", application_id,
                           results_schema_version));
    db.execute(tables);
    db.execute(views);
    db.run("INSERT INTO meta VALUES ('schema_version', ?)", std::to_string(results_schema_version));
    for (std::size_t i = 0; i < category_count; ++i) {
        const auto category = static_cast<Category>(i);
        db.run("INSERT INTO categories VALUES (?, ?, ?)", static_cast<std::int64_t>(i),
               category_name(category), category_doc(category));
    }
}

std::unique_ptr<Database> open_results(const std::string& path) {
    if (!std::filesystem::exists(path)) {
        throw ScenarioError(fmt::format("can't open the database {}: there is no such file", path),
                            "'railyard run SCENARIO.toml --db FILE' makes one");
    }
    auto db = std::make_unique<Database>(path, Database::Open::read);
    check_results(*db);
    return db;
}

}  // namespace railyard
