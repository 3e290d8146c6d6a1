#pragma once
// Textbook queues as job streams: jobs of one GPU on c GPUs, from random arrivals and services; and, with
// processor sharing, readers of a store.

#include <optional>
#include <string>
#include <vector>

#include "sim/statistics.h"
#include "tools/csv_table.h"

namespace railyard {

struct QueueJob;

// Simulates rows of the table of queueing oracles (71). Rows of one queue, one after another, are run once.
class QueueRuns {
  public:
    QueueRuns();
    ~QueueRuns();

    // The mean of batches of one long stream, with its interval. Nothing when a job stream can't
    // express the row, or so few of its jobs wait that their share says nothing.
    std::optional<Summary> simulate(const Fields& row);

  private:
    std::string queue_;  // whose jobs these are, in the row's words
    std::vector<QueueJob> jobs_;
};

}  // namespace railyard
