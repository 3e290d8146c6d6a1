#pragma once
// Writing results: runs, the points that they are made of, and their replicas. The tables are in
// results_schema.cpp and README.md.

#include <string>

#include "sim/comparison.h"
#include "tools/results/database.h"
#include "tools/results/point_key.h"
#include "tools/results/replica_record.h"
#include "tools/results/results_schema.h"

namespace railyard {

// A scenario file with settings on top.
struct PointSpec {
    std::string file;
    std::string toml;
    std::vector<std::string> settings;
    PointKey key;
    std::string title;
    std::string version;
};

// What somebody asked for.
struct RunSpec {
    std::string kind;      // run, compare, sweep
    std::string key = {};  // of a sweep; empty: not to be found again
    std::string file = {};
    std::string title;
    std::string version;
    std::uint64_t seed = 1;
    std::int64_t points_wanted = 1;
    std::int64_t replicas_wanted = 1;  // of each point; the most with a stopping rule
    std::string study = {};            // a sweep's file
};

// A point as it is in the database.
struct StoredPoint {
    std::int64_t id = 0;
    std::string status;
    std::int64_t replicas = 0;  // summed up
    bool described = false;
    Summary summary;  // of a metric
};

// points.settings.
std::string settings_text(const std::vector<std::string>& settings);

class ResultsDb {
  public:
    // Opens or creates `path` as its only writer; others may read. Throws ScenarioError when that isn't
    // possible: not writable, not ours, another schema version, another writer.
    explicit ResultsDb(const std::string& path);
    ~ResultsDb();

    std::int64_t begin_run(const RunSpec& spec);
    // The point with this key, made when there is none.
    std::int64_t point(const PointSpec& spec);
    void attach(std::int64_t run, std::int64_t position, std::int64_t point,
                const std::string& label);

    void add_axis(std::int64_t run, std::int64_t axis, const std::string& key,
                  const std::string& unit);
    void add_axis_value(std::int64_t run, std::int64_t position, std::int64_t axis,
                        const std::string& text, std::optional<double> value);

    // The point with this key, which must be there, and what it has in `metric`.
    StoredPoint stored_point(const std::string& key, const std::string& metric);
    std::int64_t replica_count(std::int64_t point);
    // Its replicas, by index; there may be gaps.
    void each_replica(std::int64_t point, const std::function<void(StoredReplica)>& take);

    // What the point's replicas have in common; before the first of them is added.
    void describe_point(std::int64_t point, const Scenario& scenario, const StoredReplica& first);
    // Replaces the replica that is there. It is safe on disk at the next commit.
    void add(std::int64_t point, const ReplicaHead& replica, RecordTexts texts);
    void add_events(std::int64_t point, std::int64_t replica,
                    const std::vector<CampaignEvent>& log);
    // What came out over the replicas so far. Status: open (more are to come), complete, stuck or limit;
    // the problem says why it is not complete.
    void finish_point(std::int64_t point, const std::vector<FailureCause>& causes,
                      const ReplicaSums& sums, const std::string& status,
                      const std::string& problem = {});
    // A point without replicas: impossible, or stuck before its first step.
    void fail_point(std::int64_t point, const std::string& status, const std::string& problem);
    // By what the run is judged.
    void decide(std::int64_t run, const std::string& metric, Better better, const std::string& why);
    // a and b are positions in the run.
    void add_comparison(std::int64_t run, const MetricComparison& comparison);
    void finish_run(std::int64_t run, const std::string& status, const std::string& digest,
                    const std::string& trajectory);
    // Adds CPU time of everything, and of writing to the database where that was measured.
    void add_times(std::int64_t run, double cpu_s, std::optional<double> database_s);

    // Adds all replicas and results of another database to the points of the same key here, and commits. Once
    // or twice is the same.
    void merge(const std::string& path);

    void commit();
    // Commits when the last commit is a second ago, or replicas take so long that each is worth one.
    void commit_when_due();

    Database& database() { return db_; }

  private:
    void write_replicas();
    void add_metrics(std::int64_t point, const std::vector<MetricSummary>& metrics);
    using NameList = std::vector<std::pair<std::string_view, std::string_view>>;  // name, unit
    std::int64_t name_list(const NameList& names);
    std::int64_t scenario(const std::string& file, const std::string& toml);

    WriterLock lock_;  // outlives the connection
    Database db_;
    using ReplicaRow =
        std::tuple<std::int64_t, std::int64_t, const char*, std::int64_t, std::int64_t, std::string,
                   std::string, std::string, std::string, std::string>;
    std::vector<ReplicaRow> replicas_;  // added, not yet written
    struct KnownList {
        std::int64_t number;
        std::vector<std::pair<std::string, std::string>> names;
    };
    std::vector<KnownList> lists_;                   // that this has written: a handful
    std::pair<std::string, std::int64_t> scenario_;  // the last text and its number
    double began_ = 0;
    double committed_ = 0;
    std::int64_t added_ = 0;
};

}  // namespace railyard
