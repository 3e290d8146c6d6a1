#pragma once
// The parts of a design that say by which metric it can be judged against others (study/deciding_metric.h).
// The database keeps them with each point.

#include <string>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

struct WorkBasis {
    bool many_jobs = false;
    std::vector<std::string> gpus;  // what they are; of many jobs those of each group of nodes
    double gpu_cap = 0;             // W
    std::int64_t gpu_count = 0;
    double computing = 0;   // GPU seconds in a step, for one token where a step has so many
    bool tokens = false;    // it is known how many tokens a step has
    bool priced = false;    // with [cost]
    // Where there are many jobs.
    bool modelled = false;  // the steps of some are modelled
    bool counted = false;   // what their work counts is given
    double alone = 0;       // GPU seconds that all of them take alone
    double load = 0;        // these, over what the cluster has in the campaign; 0: it has no end
};

WorkBasis work_of(const Scenario& scenario);

// As JSON, and back to the same bits.
std::string text_of(const WorkBasis& work);
WorkBasis read_work(const std::string& text);

}  // namespace railyard
