#pragma once
// Waits so rare that no run shows enough of them, by multilevel splitting.
//
// An arrival waits longer than w if all servers will still be busy with those before it when w is over. So
// how near a queue is to such a wait is its height: how many of the jobs there will still be there by then.
// The rate at which it climbs to a height is that of a lower one times the mean number of such climbs in one
// stay above that; what the queue was like when it climbed is where stays above the next height begin, time
// and again. So a wait of one in 10^40 is a product of some fifty means, each of something that happens now
// and then:
//
//   mean(value) = climbs to the first level per arrival x climbs to each next one per stay x value per stay
//                 above the last
//
// Each stay is a job stream of its own, from the jobs that are there with what they have still to run. Where
// services have no memory, what is to come beyond w is drawn anew for each stay. No closed form is in it:
// where the levels are changes the spread of the product, and not its expectation.

#include <span>
#include <string>

#include "sim/statistics.h"
#include "tests/laws/oracles/textbook_queue.h"

namespace railyard {

struct ServedJob {
    Duration submit{};
    Duration start{};
    Duration end{};

    double wait_s() const { return seconds(start - submit); }
};

// Over all arrivals, of first come, first served.
struct RareMeans {
    Summary share;  // of those that wait longer than w
    Summary wait;   // in seconds, nothing for the others
};

// Leaves out the first `warm_up` arrivals; each of `batches` equal parts of the others gives an estimate.
// Products of many means are nearly log-normal: the intervals are those of the logarithm.
RareMeans rare_means(const TextbookQueue& queue, double w_s, std::span<const ServedJob> run,
                     std::size_t warm_up, std::size_t batches, std::uint64_t seed,
                     const std::string& name);

}  // namespace railyard
