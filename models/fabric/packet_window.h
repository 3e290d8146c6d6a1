#pragma once
// A packet window: some traffic and some faults on a network, packet by packet, from the start until every
// flow has ended or failed, or until a budget is spent; and what it was like.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/fabric/packet_profile.h"
#include "models/fabric/routing.h"

namespace railyard {

// Something that goes wrong while the window runs.
struct WindowFault {
    enum class Kind : std::uint8_t {
        pause,  // the NIC at the end of the link takes nothing: it pauses, or grants no credits
        slow_receiver,  // it takes no more than `rate`
        link_down,      // the cable carries nothing, either way
        bit_errors,     // the link loses packets at `bit_error_rate`, all the time
    };
    Kind kind = Kind::pause;
    LinkId link = 0;
    Picoseconds start{};
    Picoseconds end = PacketEngine::never;
    Bandwidth rate;
    double bit_error_rate = 0;
};

struct PacketWindow {
    std::vector<PacketFlow> flows;
    // Switches whose aggregation nodes flows come from or go to, over links behind the topology's
    // (from_aggregation_node()).
    std::vector<VertexId> aggregating;
    std::vector<WindowFault> faults;
    RoutingSpec routing;         // by which paths are found that avoid a cable that is down
    bool until_failure = false;  // the first flow that fails ends it
    // Flows from here on are there to be in the way: the window is resolved when all others are.
    std::size_t background_from = SIZE_MAX;
    Picoseconds time_max = PacketEngine::never;
    std::uint64_t events_max = UINT64_MAX;
};

// When each flow could begin, if they ended then.
std::vector<Picoseconds> begins_of(const std::vector<PacketFlow>& flows,
                                   const std::vector<Picoseconds>& ends);

// "node-3.nic-0", or "leaf-1.sharp" for the aggregation node of a switch.
std::string source_name(const Topology& topology, const PacketWindow& window,
                        const PacketFlow& flow);
std::string target_name(const Topology& topology, const PacketWindow& window,
                        const PacketFlow& flow);

enum class WindowEnding : std::uint8_t {
    resolved,       // every flow has ended or failed, or one has failed and that was to be the end
    stuck,          // some never will: nothing is left that could move them
    out_of_time,    // some have not by time_max
    out_of_events,  // nor after so many events
    cancelled,
};

// Where the flows stood at an instant. Still: begun, not ended, and without a byte since the sample before.
struct WindowSample {
    Picoseconds at{};
    std::int64_t moving = 0;
    std::int64_t still = 0;
    std::int64_t paused_links = 0;
};

struct WindowLink {
    LinkId link = 0;
    std::int64_t pauses = 0;
    Picoseconds paused{};
    std::int64_t queue_bytes_max = 0;  // of its fullest class
    std::int64_t overflows = 0;        // packets of a lossless class that found no room at its end
    bool stormed = false;              // the watchdog has it
};

struct WindowResult {
    WindowEnding ending = WindowEnding::resolved;
    Picoseconds end{};               // the clock's last instant
    std::vector<Picoseconds> begun;  // of each flow: its start, or the end of the one it waited for
    std::vector<Picoseconds> ends;   // of each flow; never: it has not ended
    std::vector<bool> failed;        // of each flow
    std::vector<std::int64_t> received_bytes;
    std::int64_t failures = 0;
    Picoseconds first_failure = PacketEngine::never;  // to the sample
    // From the first fault's start until for the first time no flow moved in 100 us, and links were paused
    // all the while; never: that did not happen.
    Picoseconds frozen_after = PacketEngine::never;
    std::int64_t still_max = 0;     // flows that stood still at once
    std::vector<WindowLink> links;  // those that were paused, had a queue or lost
    std::vector<WindowSample> timeline;
    PacketEngine::Totals totals;
    // When most links were paused: who waits for whom, from the first of them to what holds all of it up.
    std::int64_t paused_most = 0;
    Picoseconds paused_most_at{};
    std::string pauser_chain;
    std::string deadlock;  // the links that wait for each other in a circle, by name; empty: none
    Picoseconds deadlock_seen{};  // to the sample
    bool deadlock_left = false;   // at the end: nothing had broken it
    std::string digest;

    std::int64_t lost() const {
        return totals.lost_lossless + totals.lost_lossy + totals.lost_to_watchdog +
               totals.lost_to_lifetime + totals.lost_on_links;
    }
};

// A hash of all that a window's result follows from: equal for equal windows.
std::uint64_t window_key(Catalogue& catalogue, const Topology& topology,
                         const PacketProfile& profile, const PacketWindow& window);

// A link's queue from this sample on, all classes together.
struct QueueSample {
    Picoseconds at{};
    LinkId link = 0;
    std::int64_t bytes = 0;
};

// A window from instant to instant, for those that look at one.
struct WindowRecord {
    std::vector<PauseEdge> pauses;    // of the topology's links, to the picosecond
    std::vector<QueueSample> queues;  // those that changed, at the timeline's instants
};

// Who waits for a window: between its samples it looks whether it is to end, and says how far it is.
struct WindowObserver {
    const std::atomic<bool>* cancelled = nullptr;
    std::function<void(std::int64_t ended, std::int64_t flows)>
        progress{};  // all of them at the end
};

// `record` is filled when it is given. Neither it nor the observer changes what the window comes to.
WindowResult run_window(Catalogue& catalogue, const Topology& topology,
                        const PacketProfile& profile, const PacketWindow& window,
                        const WindowObserver& observer = {}, WindowRecord* record = nullptr);

}  // namespace railyard
