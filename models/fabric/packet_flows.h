#pragma once
// Flows as they were given: when each began, ended or failed, and who waits for whom.

#include <cstdint>
#include <vector>

#include "models/fabric/packet_run.h"

namespace railyard {

struct FlowRecord {
    Picoseconds start{};
    Picoseconds end = Picoseconds::max();
    Picoseconds failed_at = Picoseconds::max();
    std::int64_t bytes = 0;
    std::int64_t first_byte = 0;  // of its queue pair's
    std::uint32_t queue_pair = 0;
    std::uint32_t first = PacketRun::none;  // packet, of its queue pair's; none: it has not started
    std::uint32_t packets = 0;
    std::uint32_t next = PacketRun::none;  // to have started on its queue pair
    std::uint32_t first_follower = PacketRun::none;
    std::uint32_t next_follower = PacketRun::none;
    std::uint32_t joins = PacketRun::none;

    std::uint32_t ends() const { return first + packets; }
};

class PacketFlows {
  public:
    explicit PacketFlows(PacketRun& run) : run_(run) {}
    void expect(std::size_t flows) { records_.reserve(flows); }

    // Its index. It is going to start when all has ended that it waits for.
    std::uint32_t add(const PacketFlow& given, std::uint32_t queue_pair);
    const FlowRecord& operator[](std::size_t flow) const { return records_[flow]; }
    const std::vector<FlowRecord>& all() const { return records_; }
    bool unfinished() const { return unfinished_ > 0; }

    // It begins with this packet and byte of its queue pair's, behind `before`, if that is one.
    const FlowRecord& start(std::uint32_t flow, std::uint32_t before, std::uint32_t first_packet,
                            std::int64_t first_byte);
    // It has ended: those start that have waited for it alone.
    void end(std::uint32_t flow);
    // With all that waits for it.
    void fail(std::uint32_t flow);

  private:
    struct Joint {
        std::uint32_t missing = 0;  // flows that join it and have not ended
        std::uint32_t first_follower = PacketRun::none;
    };

    void start_all(std::uint32_t first_follower);

    PacketRun& run_;
    std::vector<FlowRecord> records_;
    std::vector<Joint> joints_;
    std::size_t unfinished_ = 0;
};

}  // namespace railyard
