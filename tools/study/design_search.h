#pragma once
// The search for the best design of a question's space: what each needs, which keep the limits, and a race
// among these, cheap fidelity first. Points and replicas go to a database, as a sweep's do: stopped, the
// same search goes on from there, and comes to the same end.

#include <atomic>

#include "tools/results/results_db.h"
#include "tools/study/design_facts.h"
#include "tools/study/design_question.h"
#include "tools/study/design_race.h"
#include "tools/study/sweep_work.h"
#include "tools/study/trials.h"

namespace railyard {

struct SearchedDesign {
    DesignSpace::Point point;
    std::string label;
    std::vector<std::string> own;  // settings of the point, of those that may win
    DesignFacts facts;
    std::string limit;  // that it breaks before anything runs; empty: none
    Fate fate = Fate::waiting;
    std::vector<double> values;  // the objective's figure, by replica
    std::vector<bool> kept;
    std::vector<double> spent;  // as DesignSearch::figures names them, means
    std::string problem;        // why its replicas come to no end
    std::int64_t stored = 0;    // its point in the database

    bool ran() const { return !values.empty(); }
    double mean() const { return summarise(values).mean; }
    double kept_share() const;
};

// b's figure of the objective less a's, over the replicas that both have.
PairedComparison compare_designs(const DesignQuestion& question, const SearchedDesign& a,
                                 const SearchedDesign& b);

// The two are one answer: the same in each replica, or the whole interval of the difference is within the
// question's indifference. That they are not told apart is not enough: few replicas tell nothing apart.
bool as_good(const DesignQuestion& question, const PairedComparison& pairs);

struct DesignSearch {
    std::vector<SearchedDesign> designs;  // of the space, in its order
    // Those that may win, best first; of those that are as good as the best the cheapest leads.
    std::vector<std::size_t> best;
    std::optional<std::size_t> cheaper;  // the cheapest one that is not told from the first
    std::vector<std::size_t> front;      // of those that ran and keep the limits
    std::vector<std::string> figures;    // "cost", "days", "power": what a front is of
    std::size_t tuned = 0;               // settings of free axes that were tried
    std::int64_t plans_tried = 0;
    std::int64_t replicas = 0;    // that were looked at
    std::int64_t exhaustive = 0;  // that all designs with as many as the last ones take
    std::int64_t looks = 0;
    double level = 0;            // of one comparison
    std::size_t finalists = 0;   // that were raced on flows
    std::size_t on_packets = 0;  // of them, on packets
    bool interrupted = false;
};

struct SearchOptions {
    unsigned threads = 1;
    const std::atomic<bool>* cancelled = nullptr;
    std::shared_ptr<WindowCache> windows;
    // "84 designs in the race, best 31.2 MUSD", so many of so many points done.
    std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;
    std::function<std::string(double)> figure_text;  // of the objective
    std::function<void(const Deadlock&)> deadlocked{};
    // Simulates points into the database; none: run_points, here.
    std::function<void(std::vector<SweepPoint>, const SweepOptions&)> run;
};

// Throws ScenarioError when no design can be the answer: each is impossible, or breaks a limit (which, and
// which two contradict each other), or none keeps the deadline (the nearest, and what it would take), or all
// have the same figure.
DesignSearch search_designs(const DesignQuestion& question, const SearchOptions& options,
                            ResultsDb& db);

}  // namespace railyard
