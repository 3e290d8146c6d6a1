#include "models/fabric/packet_flows.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard {

std::uint32_t PacketFlows::add(const PacketFlow& given, std::uint32_t queue_pair) {
    const auto index = static_cast<std::uint32_t>(records_.size());
    FlowRecord r;
    r.start = given.start;
    r.bytes = given.bytes;
    r.queue_pair = queue_pair;
    const std::int64_t payload = run_.spec.payload_bytes;
    const std::int64_t packets = (given.bytes + payload - 1) / payload;
    RY_CHECK(packets < PacketRun::none);  // they are counted in 32 bits
    r.packets = static_cast<std::uint32_t>(packets);
    if (given.joins >= 0) {
        r.joins = static_cast<std::uint32_t>(given.joins);
        if (joints_.size() <= r.joins) joints_.resize(r.joins + 1);
        RY_CHECK(joints_[r.joins].first_follower == PacketRun::none);
        ++joints_[r.joins].missing;
    }
    records_.push_back(r);
    ++unfinished_;
    if (given.after < 0 && given.after_joint < 0) {
        run_.schedule(given.start.count(), PacketEvent::flow_start, index);
    } else {
        RY_CHECK(given.after < 0 || given.after_joint < 0);
        std::uint32_t& first = given.after >= 0 ? records_[given.after].first_follower
                                                : joints_[given.after_joint].first_follower;
        records_[index].next_follower = std::exchange(first, index);
    }
    return index;
}

const FlowRecord& PacketFlows::start(std::uint32_t flow, std::uint32_t before,
                                     std::uint32_t first_packet, std::int64_t first_byte) {
    FlowRecord& r = records_[flow];
    if (before != PacketRun::none) records_[before].next = flow;
    r.first = first_packet;
    r.first_byte = first_byte;
    RY_CHECK(r.ends() > r.first);  // in 32 bits as well
    return r;
}

void PacketFlows::end(std::uint32_t flow) {
    FlowRecord& r = records_[flow];
    r.end = run_.time();
    --unfinished_;
    start_all(r.first_follower);
    if (r.joins != PacketRun::none && --joints_[r.joins].missing == 0) {
        start_all(joints_[r.joins].first_follower);
    }
}

// Those that waited for one end.
void PacketFlows::start_all(std::uint32_t first_follower) {
    for (std::uint32_t next = first_follower; next != PacketRun::none;
         next = records_[next].next_follower) {
        run_.schedule(std::max(run_.now, records_[next].start.count()), PacketEvent::flow_start,
                      next);
    }
}

void PacketFlows::fail(std::uint32_t flow) {
    std::vector<std::uint32_t> failing = {flow};
    while (!failing.empty()) {
        FlowRecord& r = records_[failing.back()];
        failing.pop_back();
        r.failed_at = run_.time();
        --unfinished_;
        std::uint32_t joint_follower = PacketRun::none;
        if (r.joins != PacketRun::none) {  // the first that fails takes all that waits with it
            joint_follower = std::exchange(joints_[r.joins].first_follower, PacketRun::none);
        }
        for (const std::uint32_t first : {r.first_follower, joint_follower}) {
            for (std::uint32_t next = first; next != PacketRun::none;
                 next = records_[next].next_follower) {
                failing.push_back(next);
            }
        }
    }
}

}  // namespace railyard
