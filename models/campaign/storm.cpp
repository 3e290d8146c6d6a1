#include "models/campaign/storm.h"

#include <algorithm>

namespace railyard {

namespace {

// What the campaign needs of a window.
struct Course {
    WindowEnding ending = WindowEnding::resolved;
    Picoseconds end{};  // of the last flow
    Picoseconds first_failure = PacketEngine::never;
    bool detected = false;  // the watchdog has named the queue
};

Course run(Catalogue& catalogue, const ClusterNetwork& network, const PacketWindow& window) {
    const auto r = run_window_once(catalogue, network.topology, network.packets, window);
    Course course{r->ending, {}, r->first_failure, r->totals.storms_detected > 0};
    for (const Picoseconds end : r->ends) {
        if (end != PacketEngine::never) course.end = std::max(course.end, end);
    }
    return course;
}

Duration to_duration(Picoseconds t) {
    return std::chrono::duration_cast<Duration>(t);
}

}  // namespace

bool feel_storm(const Scenario& s, Catalogue& catalogue, StormSpec& spec) {
    Storm& storm = spec.cause.storm.emplace();
    storm.stalls_storage = s.converged;  // it pauses every lossless class
    std::vector<NetworkWindow> windows = packet_windows(s);
    if (windows.empty() || windows[0].network != s.networks.data())
        return true;  // nothing to hold up
    PacketWindow& window = windows[0].window;
    window.faults.clear();
    const Course calm = run(catalogue, *windows[0].network, window);
    if (calm.ending != WindowEnding::resolved) return false;
    Picoseconds begin = calm.end;
    for (const PacketFlow& flow : window.flows) begin = std::min(begin, flow.start);
    WindowFault fault;
    fault.start = begin + (calm.end - begin) / 2;
    if (spec.duration) fault.end = fault.start + *spec.duration;
    for (const LinkId link : spec.links) {
        fault.link = link;
        window.faults.push_back(fault);
    }
    window.until_failure = true;
    const Course course = run(catalogue, *windows[0].network, window);
    storm.fatal = course.first_failure != PacketEngine::never;
    if (!storm.fatal && course.ending != WindowEnding::resolved) return false;
    if (storm.fatal) {
        storm.stall = to_duration(course.first_failure - fault.start);
        // The error names the connection; which NIC it is that pauses, only the watchdog does. Without it the
        // network stays frozen for whatever is started next.
        spec.cause.detection = course.detected || spec.duration ? Duration{} : spec.found_after;
    } else {
        // Others than those that were held up may have had it easier meanwhile.
        storm.stall = to_duration(std::max(Picoseconds{}, course.end - calm.end));
    }
    return true;
}

}  // namespace railyard
