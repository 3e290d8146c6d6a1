#include "models/storage/metadata_queue.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace railyard {

namespace {

constexpr std::int64_t ps_per_ns = 1000;

Duration to_nanoseconds(__int128 ps) {
    const __int128 ns = (ps + ps_per_ns - 1) / ps_per_ns;
    return std::min(Duration(static_cast<std::int64_t>(std::min<__int128>(ns, INT64_MAX))),
                    time_max);
}

struct Request {
    std::int64_t arrival_ps;
    std::int64_t client;
    std::int64_t files_left;                      // this one included
    bool operator<(const Request& other) const {  // a queue's front is its greatest
        return arrival_ps != other.arrival_ps ? arrival_ps > other.arrival_ps
                                              : client > other.client;
    }
};

}  // namespace

MetadataQueue::MetadataQueue(double per_s, Duration latency)
    : service_ps_(per_s > 0 ? std::llround(std::min(1e12 / per_s, 1e18)) : 0),
      latency_ps_(std::max(latency.count() * ps_per_ns, service_ps_)) {}

Duration MetadataQueue::ready(std::int64_t client, std::int64_t clients, std::int64_t files) const {
    if (files == 0) return {};
    const __int128 round = std::max<__int128>(__int128{clients} * service_ps_, latency_ps_);
    return to_nanoseconds(latency_ps_ + __int128{client} * service_ps_ + (files - 1) * round);
}

std::vector<Duration> MetadataQueue::one_by_one(std::int64_t clients, std::int64_t files) const {
    std::vector<Duration> ready(static_cast<std::size_t>(clients));
    if (files == 0) return ready;
    std::priority_queue<Request> requests;
    for (std::int64_t c = 0; c < clients; ++c) requests.push({0, c, files});
    std::int64_t free_ps = 0;
    while (!requests.empty()) {
        Request r = requests.top();
        requests.pop();
        free_ps = std::max(free_ps, r.arrival_ps) + service_ps_;
        const std::int64_t answered = free_ps + latency_ps_ - service_ps_;
        if (--r.files_left == 0) {
            ready[r.client] = to_nanoseconds(answered);
        } else {
            requests.push({answered, r.client, r.files_left});
        }
    }
    return ready;
}

}  // namespace railyard
