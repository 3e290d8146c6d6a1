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
    std::vector<Picoseconds> begun, ends;  // of each flow
};

Course run(const Scenario& s, Catalogue& catalogue, const ClusterNetwork& network,
           const PacketWindow& window) {
    const auto r = s.windows->run(catalogue, network.topology, network.packets, window);
    Course course{r->ending,
                  {},
                  r->end,
                  r->first_failure,
                  r->totals.storms_detected > 0,
                  r->totals.lost_lossless,
                  r->begun,
                  r->ends};
    for (const Picoseconds end : r->ends) {
        if (end != PacketEngine::never) course.end = std::max(course.end, end);
    }
    return course;
}

Duration to_duration(Picoseconds t) {
    return std::chrono::duration_cast<Duration>(t);
}

// Whether a flow waits for the NIC at the end of these links: what goes to it does, and where there are
// credits the acknowledgements of what it sends.
bool waits_for(const PacketFlow& flow, const std::vector<LinkId>& links, FlowControl control) {
    return std::any_of(links.begin(), links.end(), [&](LinkId link) {
        return flow.path.back() == link ||
               (control == FlowControl::credits && flow.path.front() == reverse_link(link));
    });
}

// The middle of the time in which such flows run, of which there are some.
Picoseconds middle(const PacketWindow& window, const Course& course,
                   const std::vector<LinkId>& links, FlowControl control) {
    Picoseconds begin = PacketEngine::never;
    Picoseconds end{};
    for (std::size_t f = 0; f < window.flows.size(); ++f) {
        if (!waits_for(window.flows[f], links, control)) continue;
        begin = std::min(begin, course.begun[f]);
        end = std::max(end, course.ends[f]);
    }
    return begin + (end - begin) / 2;
}

StormProblem unsettled(WindowEnding ending) {
    return {
        fmt::format("its packet window, before the storm begins, was not through within window.{}",
                    ending == WindowEnding::out_of_events ? "events_max" : "time_max"),
        "railyard window shows how far it came", false};
}

const StormProblem idle = {"has no effect: nothing in its packet window waits for this NIC",
                           "window.traffic says what is sent, nic which NIC storms", true};

StormProblem losses(const Course& course) {
    return {fmt::format("{} packets of a lossless class found no room in its packet window",
                        course.lost_lossless),
            "more headroom, pauses on every switch, or window.allow_loss = true", false};
}

}  // namespace

StormProblem feel_storm(const Scenario& s, Catalogue& catalogue, const std::vector<LinkId>& links,
                        StormSpec& spec) {
    Storm& storm = spec.cause.storm.emplace();
    storm.stalls_storage = s.converged;  // it pauses every lossless class
    std::vector<NetworkWindow> windows = packet_windows(s);
    if (windows.empty() || windows[0].network != s.networks.data()) return idle;
    PacketWindow& window = windows[0].window;
    window.faults.clear();
    const FlowControl control = windows[0].network->packets.flow_control;
    if (std::ranges::none_of(window.flows, [&](const PacketFlow& flow) {
            return waits_for(flow, links, control);
        })) {
        return idle;
    }
    if (!s.windows) return {};  // nobody asks for more
    const Course calm = run(s, catalogue, *windows[0].network, window);
    if (calm.ending != WindowEnding::resolved) return unsettled(calm.ending);
    if (calm.lost_lossless > 0 && !s.window.allow_loss) return losses(calm);
    WindowFault fault;
    fault.start = middle(window, calm, links, control);
    if (spec.duration) fault.end = fault.start + *spec.duration;
    for (const LinkId link : links) {
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
    // Without it the network stays frozen for whatever is started next, while the storm lasts.
    const Duration left =
        spec.duration ? std::max(Duration{}, *spec.duration - storm.stall) : Duration::max();
    if (storm.fatal)
        spec.cause.detection = course.detected ? Duration{} : std::min(spec.found_after, left);
    return {};
}

}  // namespace railyard
