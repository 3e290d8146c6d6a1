#pragma once
// Creates or opens that many clients ask of one store at once.
//
// Each client asks for one file after another; the store serves one request per 1 / rate, in the order of
// their arrival, and an answer is back after `latency` when nobody is before it. All times are whole
// picoseconds until they leave as nanoseconds, rounded up.

#include <vector>

#include "sim/units.h"

namespace railyard {

class MetadataQueue {
  public:
    // `per_s`: of all clients together; 0: the store never makes anybody wait.
    MetadataQueue(double per_s, Duration latency);

    // When client number `client` of `clients`, counted from 0, has the last of its `files`:
    // latency + client x D + (files - 1) max(clients x D, latency), D being 1 / rate. The service is
    // deterministic and nobody overtakes, so this is the queue's own answer.
    Duration ready(std::int64_t client, std::int64_t clients, std::int64_t files) const;

    // The same of every client, request by request.
    std::vector<Duration> one_by_one(std::int64_t clients, std::int64_t files) const;

  private:
    std::int64_t service_ps_ = 0;
    std::int64_t latency_ps_ = 0;  // service included
};

}  // namespace railyard
