#pragma once
// A question: which design of a space is best, by what, under which limits. The file is a scenario with
// [design]; README.md has the language.

#include "models/campaign/campaign.h"
#include "sim/comparison.h"
#include "tools/study/design_space.h"

namespace railyard {

// What is wanted, as a figure of a replica's metric: scale x metric, or scale / metric.
struct DesignObjective {
    std::string name;    // "the cost of 1e+12 tokens"
    std::string metric;  // of a replica
    double scale = 1;
    bool inverse = false;
    Better better = Better::higher;
    std::string unit;  // of the figure; empty: the metric's
    bool in_use =
        false;  // the metric counts time in use, the figure all days: see cost.utilisation

    // What the metric is worth of a design that is in use for such a share of its days.
    double in_calendar(double value, double utilisation) const {
        return in_use ? value * utilisation : value;
    }
    double of(double value, double utilisation) const {
        const double v = in_calendar(value, utilisation);
        return inverse ? scale / v : scale * v;
    }
};

// What a replica's metric may be.
struct MetricLimit {
    std::string metric;
    double value = 0;     // in the metric's own unit
    bool at_most = true;  // else at least
    std::string text;     // as the file has it
    std::string path;
    Position at{};
};

// What a design must keep. The first three are known before anything runs.
struct DesignLimits {
    std::optional<double> capital;  // USD, at typical prices
    std::optional<double> power;    // W, what nodes and switches are rated for, at the meter
    std::optional<double> racks;
    std::optional<double> spend;       // USD over `over`
    std::optional<double> deadline_s;  // to the tokens, or the work
    std::vector<MetricLimit> metrics;
    double probability = 0.9;  // of the deadline, of what is spent, and of the metrics
    // Some are kept by luck.
    bool open() const { return deadline_s || spend || !metrics.empty(); }
};

struct DesignQuestion {
    std::string file;
    std::string title;
    std::string text;                        // of the file
    std::vector<std::string> base_settings;  // of all designs
    DesignObjective objective;
    DesignLimits limits;
    double tokens = 0;  // to be trained; 0: not given
    double work = 0;    // of a mix of jobs, to be done; 0: not given
    double over_s = 0;  // what is spent, and tokens or work counted, over
    // What is to be done, if anything is: how much, what a day does of it, and what a unit of it costs.
    struct Job {
        double amount = 0;
        const char* per_day = nullptr;
        double units = 1;  // of what unit_cost is the cost of, in one
        const char* unit_cost = nullptr;
    };
    std::optional<Job> job() const;
    // The cheaper of two that are as good is the answer. An objective of money has said it all.
    bool price_decides() const { return priced && cost_metric(objective.metric) == nullptr; }
    // The parallel plan of each design: the file's, or the fastest that fits on an ideal network, or for
    // finalists the fastest on their own flows.
    enum class Plans : std::uint8_t { given, ideal, flow } plans = Plans::ideal;
    Fidelity fidelity = Fidelity::analytic;  // the scenario's own, for the last ones only
    std::int64_t finalists = 0;              // on flows
    std::int64_t replicas_first = 4;
    std::int64_t replicas_most = 64;
    double chance = 0.05;  // of having dropped the best, at most
    double indifference = 0.001;
    std::int64_t worlds = 64;
    std::int64_t shown = 5;
    DesignSpace space;
    bool priced = false;  // it has [cost]
    bool phased = false;  // the cluster changes on some days
};

constexpr double designs_max = 1'000'000;

// Reads and checks the question with settings on it ("design.chance=0.01") and on its scenario. Throws
// ScenarioError with all that is wrong.
DesignQuestion read_question(const std::string& path, const std::vector<std::string>& settings);

// What may stand in [design], as it is read.
std::vector<SchemaRow> design_schema();

}  // namespace railyard
