#include "tools/results/results_db.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "sim/fingerprint.h"
#include "tools/language/scenario_files.h"
#include "tools/program/json_text.h"
#include "tools/program/program.h"
#include "tools/results/work_basis.h"

namespace railyard {

namespace {

std::string hex(std::uint64_t value) {
    return fmt::format("{:016x}", value);
}

std::optional<double> finite(double value) {
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string settings_text(const std::vector<std::string>& settings) {
    return one_line(nlohmann::json(settings));
}

ResultsDb::ResultsDb(const std::string& path) : lock_(path), db_(path, Database::Open::write) {
    // Large pages, because the kernel's work is by the page; room for what a second of a sweep writes. A log
    // beside the file: readers see the last commit while a sweep writes, and each commit is on disk.
    db_.execute(
        "PRAGMA page_size = 16384; PRAGMA cache_size = -16384; PRAGMA journal_mode = WAL; PRAGMA "
        "synchronous = FULL; PRAGMA wal_autocheckpoint = 1000; BEGIN IMMEDIATE");
    prepare_results(db_);
    db_.execute("COMMIT; BEGIN IMMEDIATE");
    committed_ = began_ = now_seconds();
}

// One file is left, that any folder can hold and any reader can open. Where somebody reads it just now, or a
// failure has ended the transaction, the log stays beside it.
ResultsDb::~ResultsDb() {
    for (const char* each : {"ROLLBACK", "PRAGMA journal_mode = DELETE"}) {
        try {
            db_.execute(each);
        } catch (const DatabaseError&) {
            continue;
        }
    }
}

void ResultsDb::commit() {
    write_replicas();
    db_.check_there();
    db_.execute("COMMIT; BEGIN IMMEDIATE");
    committed_ = now_seconds();
}

void ResultsDb::commit_when_due() {
    const double now = now_seconds();
    constexpr double seconds_between_commits = 1;
    constexpr double slow_replica_s = 0.02;
    const bool slow = now - began_ > slow_replica_s * static_cast<double>(added_);
    if (slow || now - committed_ > seconds_between_commits) commit();
}

std::int64_t ResultsDb::begin_run(const RunSpec& spec) {
    db_.run(
        "INSERT INTO runs (kind, key, file, title, version, seed, points_wanted, replicas_wanted, "
        "study, status) VALUES (?, nullif(?, ''), ?, ?, ?, ?, ?, ?, nullif(?, ''), 'running')",
        spec.kind, spec.key, visible(spec.file), spec.title, spec.version,
        static_cast<std::int64_t>(spec.seed), spec.points_wanted, spec.replicas_wanted, spec.study);
    return db_.last_row();
}

std::int64_t ResultsDb::point(const PointSpec& spec) {
    if (const auto found = db_.integer("SELECT point FROM points WHERE key = ?", spec.key.text)) {
        return *found;
    }
    db_.run(
        "INSERT INTO points (key, scenario, settings, title, version, seed, status, replicas) "
        "VALUES (?, ?, ?, ?, ?, ?, 'open', 0)",
        spec.key.text, scenario(spec.file, spec.toml), settings_text(spec.settings), spec.title,
        spec.version, static_cast<std::int64_t>(spec.key.seed));
    return db_.last_row();
}

std::int64_t ResultsDb::scenario(const std::string& file, const std::string& written) {
    const std::string toml = in_one_file(written, file);
    const std::string text = file + "\n" + toml;
    if (text == scenario_.first) return scenario_.second;
    const std::string digest = digest_of(text);
    db_.run("INSERT OR IGNORE INTO scenarios (digest, file, toml) VALUES (?, ?, ?)", digest,
            visible(file), toml);
    const auto found = db_.integer("SELECT scenario FROM scenarios WHERE digest = ?", digest);
    scenario_ = {text, found.value_or(0)};
    return scenario_.second;
}

void ResultsDb::attach(std::int64_t run, std::int64_t position, std::int64_t point,
                       const std::string& label) {
    db_.run("INSERT OR REPLACE INTO run_points VALUES (?, ?, ?, ?)", run, position, point, label);
}

void ResultsDb::add_axis(std::int64_t run, std::int64_t axis, const std::string& key,
                         const std::string& unit) {
    db_.run("INSERT INTO axes VALUES (?, ?, ?, ?)", run, axis, key, unit);
}

void ResultsDb::add_axis_value(std::int64_t run, std::int64_t position, std::int64_t axis,
                               const std::string& text, std::optional<double> value) {
    db_.run("INSERT INTO axis_values VALUES (?, ?, ?, ?, ?)", run, position, axis, text, value);
}

StoredPoint ResultsDb::stored_point(const std::string& key, const std::string& metric) {
    StoredPoint out;
    db_.query(
        "SELECT p.point, p.status, p.replicas, p.metric_list IS NOT NULL, m.mean, m.low, m.high "
        "FROM points p LEFT JOIN point_metrics m ON m.point = p.point AND m.name = ? WHERE p.key = "
        "?",
        [&](const Row& row) {
            out.id = row.integer(0);
            out.status = row.text(1);
            out.replicas = row.integer(2);
            out.described = row.integer(3) != 0;
            constexpr double none = std::numeric_limits<double>::quiet_NaN();
            out.summary.mean = row.null(4) ? none : row.real(4);
            out.summary.ci95 = {row.null(5) ? none : row.real(5), row.null(6) ? none : row.real(6)};
        },
        metric, key);
    return out;
}

std::int64_t ResultsDb::replica_count(std::int64_t point) {
    return db_.integer("SELECT count(*) FROM replicas WHERE point = ?", point).value_or(0);
}

void ResultsDb::each_replica(std::int64_t point, const std::function<void(StoredReplica)>& take) {
    std::vector<Metric> names;
    db_.query(
        "SELECT name FROM name_lists n JOIN points p ON n.list = p.metric_list WHERE p.point = ? "
        "ORDER BY position",
        [&](const Row& row) { names.push_back(plain_metric(row.text(0), 0)); }, point);
    db_.query(
        "SELECT replica, ending, simulated_ns, events, outcome, trajectory, metrics, ledger, "
        "interruptions FROM replicas WHERE point = ? ORDER BY replica",
        [&](const Row& row) {
            StoredReplica r;
            r.index = row.integer(0);
            r.ending = ending_of(row.text(1));
            r.simulated_ns = row.integer(2);
            r.events = row.integer(3);
            constexpr int hexadecimal = 16;
            r.outcome = std::stoull(row.text(4), nullptr, hexadecimal);
            r.trajectory = std::stoull(row.text(5), nullptr, hexadecimal);
            read_texts({row.text(6), row.text(7), row.text(8)}, names, r);
            take(std::move(r));
        },
        point);
}

void ResultsDb::describe_point(std::int64_t point, const Scenario& scenario,
                               const StoredReplica& first) {
    NameList metrics;
    for (const Metric& m : first.metrics) metrics.emplace_back(m.name, unit_of(m.name));
    NameList causes;
    for (const FailureCause& cause : scenario.causes) causes.emplace_back(cause.name, "1");
    db_.run("UPDATE points SET gpus = ?, metric_list = ?, cause_list = ?, work = ? WHERE point = ?",
            scenario.gpus(), name_list(metrics), name_list(causes), text_of(work_of(scenario)),
            point);
}

void ResultsDb::add(std::int64_t point, const ReplicaHead& r, RecordTexts texts) {
    replicas_.emplace_back(point, r.index, ending_name(r.ending), r.simulated_ns, r.events,
                           hex(r.outcome), hex(r.trajectory), std::move(texts.metrics),
                           std::move(texts.ledger), std::move(texts.interruptions));
    constexpr std::size_t rows_max = 32;
    if (replicas_.size() == rows_max) write_replicas();
    ++added_;
}

void ResultsDb::write_replicas() {
    // One that is there is another run's: the same numbers, and not to be touched.
    db_.insert("INSERT OR IGNORE INTO replicas VALUES", replicas_);
    replicas_.clear();
}

void ResultsDb::add_events(std::int64_t point, std::int64_t replica,
                           const std::vector<CampaignEvent>& log) {
    db_.run("DELETE FROM events WHERE point = ? AND replica = ?", point, replica);
    for (const CampaignEvent& e : log) {
        db_.run("INSERT INTO events VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, -1), ?)", point,
                replica, std::int64_t{e.at.time_since_epoch().count()}, e.kind, e.cause, e.slot,
                e.steps);
    }
}

// The list's number is a digest of what is in it, so that it does not depend on which point came first.
std::int64_t ResultsDb::name_list(const NameList& names) {
    const auto known = std::ranges::find_if(lists_, [&](const auto& list) {
        return std::equal(names.begin(), names.end(), list.names.begin(), list.names.end(),
                          [](const auto& a, const auto& b) {
                              return a.first == b.first && a.second == b.second;
                          });
    });
    if (known != lists_.end()) return known->number;
    Fingerprint digest;
    for (const auto& [name, unit] : names) digest.add_all(name, unit);
    const auto list = static_cast<std::int64_t>(digest.value() >> 1);
    std::int64_t position = 0;
    for (const auto& [name, unit] : names) {
        db_.run("INSERT OR IGNORE INTO name_lists VALUES (?, ?, ?, ?)", list, position++, name,
                unit);
    }
    lists_.push_back({list, {names.begin(), names.end()}});
    return list;
}

void ResultsDb::finish_point(std::int64_t point, const std::vector<FailureCause>& causes,
                             const ReplicaSums& sums, const std::string& status,
                             const std::string& problem) {
    // More replicas than these may have been summed up before.
    const auto had = db_.integer("SELECT replicas FROM points WHERE point = ?", point);
    if (had.value_or(0) > sums.replicas) return;
    db_.run(
        "UPDATE points SET status = ?, problem = nullif(?, ''), replicas = ?, digest = ?, "
        "trajectory = ? WHERE point = ?",
        status, problem, sums.replicas, sums.digest, sums.trajectory, point);
    add_metrics(point, sums.metrics);
    using Share = std::tuple<std::int64_t, std::string_view, double, double>;
    std::vector<Share> ledger;
    for (std::size_t i = 0; i < category_count; ++i) {
        ledger.emplace_back(point, category_name(static_cast<Category>(i)), sums.gpu_s[i],
                            sums.ledger[i]);
    }
    std::ranges::sort(ledger);
    db_.insert("INSERT OR REPLACE INTO point_ledger VALUES", ledger);
    std::vector<std::tuple<std::int64_t, std::string_view, double>> counts;
    for (std::size_t i = 0; i < causes.size(); ++i) {
        counts.emplace_back(point, causes[i].name, sums.interruptions[i]);
    }
    std::ranges::sort(counts);
    db_.insert("INSERT OR REPLACE INTO point_interruptions VALUES", counts);
}

void ResultsDb::add_metrics(std::int64_t point, const std::vector<MetricSummary>& metrics) {
    using Mean = std::optional<double>;
    std::vector<
        std::tuple<std::int64_t, std::string_view, std::string_view, Mean, double, Mean, Mean>>
        rows;
    for (const MetricSummary& m : metrics) {
        rows.emplace_back(point, m.name, unit_of(m.name), finite(m.summary.mean),
                          m.summary.deviation, finite(m.summary.ci95.low),
                          finite(m.summary.ci95.high));
    }
    std::ranges::sort(rows,
                      [](const auto& a, const auto& b) { return std::get<1>(a) < std::get<1>(b); });
    db_.insert("INSERT OR REPLACE INTO point_metrics VALUES", rows);
}

void ResultsDb::fail_point(std::int64_t point, const std::string& status,
                           const std::string& problem) {
    db_.run("UPDATE points SET status = ?, problem = ? WHERE point = ?", status, problem, point);
}

void ResultsDb::decide(std::int64_t run, const std::string& metric, Better better,
                       const std::string& why) {
    db_.run("UPDATE runs SET metric = ?, better = ?, why = ? WHERE run = ?", metric,
            better_name(better), why, run);
}

void ResultsDb::add_comparison(std::int64_t run, const MetricComparison& m) {
    const PairedComparison& p = m.pairs;
    db_.run(
        "INSERT OR REPLACE INTO comparisons VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?)",
        run, m.metric, static_cast<std::int64_t>(m.a), static_cast<std::int64_t>(m.b),
        std::string(unit_of(m.metric)), better_name(m.better), static_cast<std::int64_t>(p.pairs),
        finite(p.mean_a), finite(p.mean_b), finite(p.difference), finite(p.interval.low),
        finite(p.interval.high), p.confidence, p.correlation, verdict_name(p.verdict),
        p.pairs_to_settle);
}

void ResultsDb::finish_run(std::int64_t run, const std::string& status, const std::string& digest,
                           const std::string& trajectory) {
    db_.run(
        "UPDATE runs SET status = ?, digest = nullif(?, ''), trajectory = nullif(?, '') WHERE run "
        "= ?",
        status, digest, trajectory, run);
}

void ResultsDb::merge(const std::string& path) {
    db_.execute("COMMIT");  // a database can't be attached inside a transaction
    db_.run("ATTACH ? AS shard", path);
    db_.execute("BEGIN IMMEDIATE");
    db_.execute(R"sql(
        CREATE TEMP TABLE merged AS SELECT theirs.point AS theirs, ours.point AS ours
            FROM shard.points theirs JOIN main.points ours ON ours.key = theirs.key
            WHERE ours.replicas <= theirs.replicas;
        INSERT OR IGNORE INTO main.name_lists SELECT * FROM shard.name_lists;
        INSERT OR REPLACE INTO main.replicas
            SELECT ours, replica, ending, simulated_ns, events, outcome, trajectory, metrics, ledger,
                   interruptions
            FROM shard.replicas JOIN merged ON theirs = point;
        INSERT OR REPLACE INTO main.point_metrics
            SELECT ours, name, unit, mean, deviation, low, high
            FROM shard.point_metrics JOIN merged ON theirs = point;
        INSERT OR REPLACE INTO main.point_ledger
            SELECT ours, category, gpu_s, fraction
            FROM shard.point_ledger JOIN merged ON theirs = point;
        INSERT OR REPLACE INTO main.point_interruptions
            SELECT ours, cause, count FROM shard.point_interruptions JOIN merged ON theirs = point;
        UPDATE main.points SET
            (status, problem, gpus, replicas, metric_list, cause_list, work, digest, trajectory) =
            (SELECT status, problem, gpus, replicas, metric_list, cause_list, work, digest,
                    trajectory FROM shard.points JOIN merged ON theirs = point WHERE ours = main.points.point)
            WHERE point IN (SELECT ours FROM merged);
        DROP TABLE temp.merged;
        COMMIT;
        DETACH shard;
        BEGIN IMMEDIATE;)sql");
}

void ResultsDb::add_times(std::int64_t run, double cpu_s, std::optional<double> database_s) {
    db_.run(
        "INSERT INTO run_times VALUES (?, ?, ?) ON CONFLICT (run) DO UPDATE SET cpu_s = cpu_s + "
        "excluded.cpu_s, database_s = database_s + excluded.database_s",
        run, cpu_s, database_s);
}

}  // namespace railyard
