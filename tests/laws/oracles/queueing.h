#pragma once
// Textbook queues as job streams: jobs of one GPU on c GPUs, from random arrivals and services; and, with
// processor sharing, readers of a store.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/statistics.h"
#include "tests/laws/oracles/rare_waits.h"
#include "tools/program/csv_table.h"

namespace railyard {

struct QueueJob;

// Simulates rows of the table of queueing oracles (71). Rows of one queue, one after another, are run once.
class QueueRuns {
  public:
    explicit QueueRuns(std::uint64_t seed = 1);
    ~QueueRuns();

    // The mean of batches of one long stream, with its interval; where too few of its jobs wait to say
    // anything, by splitting (rare_waits.h). Nothing when a job stream can't express the row.
    std::optional<Summary> simulate(const Fields& row);

  private:
    std::string queue_;  // whose jobs these are, in the row's words
    std::vector<QueueJob> jobs_;
    std::vector<ServedJob> served_;  // the same, where somebody serves them one by one
    std::map<double, RareMeans> rare_;
    std::uint64_t seed_;
};

}  // namespace railyard
