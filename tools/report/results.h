#pragma once
// What a results database says, as a report's data: runs, points, metrics, ledgers, comparisons.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/results/database.h"

namespace railyard {

// A point to look at more closely: simulated again from what the database keeps of it.
struct FeaturedPoint {
    std::int64_t index = 0;  // among the report's points
    std::string file;
    std::string toml;
    std::vector<std::string> settings;
    std::string version;
    std::string outcome;  // of replica 0
};

struct ReportResults {
    nlohmann::ordered_json data;          // as tools/report/src/data.js reads it
    std::vector<FeaturedPoint> featured;  // of the newest run: at most so many as were asked for
};

// Throws ScenarioError when there is no run in it. Columns of metrics that don't fit into `bytes_max` are
// left out, least important first, and named in data.left_out.
ReportResults report_results(Database& db, std::size_t featured_max, std::size_t bytes_max);

}  // namespace railyard
