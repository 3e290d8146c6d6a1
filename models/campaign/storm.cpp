#include "models/campaign/storm.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

// What the campaign needs of a window.
struct Course {
    WindowEnding ending = WindowEnding::resolved;
    Picoseconds end{};   // of the last flow
    Picoseconds over{};  // of the window
    Picoseconds first_failure = PacketEngine::never;
    bool detected = false;  // the switches' watchdog has named the queue
    std::int64_t lost_lossless = 0;
};

Course run(const Scenario& s, Catalogue& catalogue, const ClusterNetwork& network,
           const PacketWindow& window) {
    const auto r = s.windows->run(catalogue, network.topology, network.packets, window);
    Course course{r->ending,
                  {},
                  r->end,
                  r->first_failure,
                  r->totals.storms_detected > 0,
                  r->totals.lost_lossless};
    for (const Picoseconds end : r->ends) {
        if (end != PacketEngine::never) course.end = std::max(course.end, end);
    }
    return course;
}

Duration to_duration(Picoseconds t) {
    return std::chrono::duration_cast<Duration>(t);
}

const StormProblem unsettled = {
    "its packet window did not settle within window.time_max and window.events_max",
    "railyard window shows how far it came"};

StormProblem losses(const Course& course) {
    return {fmt::format("{} packets of a lossless class found no room in its packet window",
                        course.lost_lossless),
            "more headroom, pauses on every switch, or window.allow_loss = true"};
}

}  // namespace

StormProblem feel_storm(const Scenario& s, Catalogue& catalogue, StormSpec& spec) {
    Storm& storm = spec.cause.storm.emplace();
    storm.stalls_storage = s.converged;  // it pauses every lossless class
    std::vector<NetworkWindow> windows = packet_windows(s);
    if (windows.empty() || windows[0].network != s.networks.data()) return {};  // holds up nothing
    PacketWindow& window = windows[0].window;
    window.faults.clear();
    const Course calm = run(s, catalogue, *windows[0].network, window);
    if (calm.ending != WindowEnding::resolved) return unsettled;
    if (calm.lost_lossless > 0 && !s.window.allow_loss) return losses(calm);
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
    const Picoseconds killed_at =
        fault.start + catalogue.time("detection", "pytorch_watchdog", "time");
    window.time_max = std::max(window.time_max, killed_at);
    const Course course = run(s, catalogue, *windows[0].network, window);
    if (course.lost_lossless > 0 && !s.window.allow_loss) return losses(course);
    if (course.ending == WindowEnding::out_of_events) {
        storm.stall = to_duration(course.over - fault.start);
        s.limits->add(fmt::format("failures.storm: {} had not ended when window.events_max was "
                                  "reached, it is taken to hold the job up for {}",
                                  spec.cause.name, to_text(storm.stall)),
                      "a larger window.events_max");
        return {};
    }
    const bool resolved = course.ending == WindowEnding::resolved;
    // Others than those that were held up may have had it easier meanwhile.
    const Picoseconds stall =
        resolved ? std::max(Picoseconds{}, course.end - calm.end) : PacketEngine::never;
    const Picoseconds dies_at = std::min(course.first_failure, killed_at);
    storm.fatal = course.first_failure != PacketEngine::never || stall > killed_at - fault.start;
    storm.stall = to_duration(storm.fatal ? dies_at - fault.start : stall);
    // The error names the connection; which NIC it is that pauses, only the switches' watchdog does.
    // Without it the network stays frozen for whatever is started next.
    if (storm.fatal)
        spec.cause.detection = course.detected || spec.duration ? Duration{} : spec.found_after;
    return {};
}

}  // namespace railyard
