#include <fmt/format.h>

#include <algorithm>

#include "models/campaign/sections.h"
#include "sim/text.h"

namespace railyard {

namespace {

// ---- storms: what one does to the job is seen in a packet window, once ----

// Why a window tells nothing of a storm, with a hint; both empty: it does.
struct StormProblem {
    std::string text;
    std::string hint;
    bool warning = false;  // the storm then holds up nothing; else it can't be felt
};

std::shared_ptr<const WindowResult> run(const Scenario& s, Catalogue& catalogue,
                                        const NetworkWindow& window) {
    const ClusterNetwork& network = *window.network;
    return s.windows->run(catalogue, network.topology, network.packets, window.window);
}

// When the last of the flows that have ended did.
Picoseconds last_end(const WindowResult& window) {
    Picoseconds end{};
    for (const Picoseconds each : window.ends) {
        if (each != PacketEngine::never) end = std::max(end, each);
    }
    return end;
}

Duration to_duration(Picoseconds t) {
    return std::chrono::duration_cast<Duration>(t);
}

// Whether a flow waits for the NIC at the end of these links: what goes to it does, and where there are
// credits the acknowledgements of what it sends.
bool waits_for(const PacketFlow& flow, const std::vector<LinkId>& links, FlowControl control) {
    return std::ranges::any_of(links, [&](LinkId link) {
        return flow.path.back() == link ||
               (control == FlowControl::credits && flow.path.front() == reverse_link(link));
    });
}

// The middle of the time in which such flows run, of which there are some.
Picoseconds middle(const PacketWindow& window, const WindowResult& course,
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
    return {fmt::format("its packet window, before the storm begins, did not end within window.{}",
                        ending == WindowEnding::out_of_events ? "events_max" : "time_max"),
            "railyard window shows how far it came", false};
}

const StormProblem no_waiter = {"has no effect: nothing in its packet window waits for this NIC",
                                "window.traffic says what is sent, nic which NIC storms", true};

StormProblem losses(const WindowResult& course) {
    return {fmt::format("{} packets of a lossless class found no room in its packet window",
                        course.totals.lost_lossless),
            "more headroom, pauses on every switch, or window.allow_loss = true", false};
}

// What a storm does: the window's traffic on the compute network, with the NIC at the end of `links` pausing
// in the middle of what waits for it, against the same without. Sets the storm of `spec.cause`, and how long
// a fatal one goes unnoticed. What stands still until the collectives' own watchdog (PyTorch's) would end
// the job ends it then. A storm whose window runs out of events first is noted in the scenario's limits.
// Where windows are not run, only what can be said without one. Throws NoPath.
StormProblem feel_storm(const Scenario& s, Catalogue& catalogue, const std::vector<LinkId>& links,
                        StormSpec& spec) {
    Storm& storm = spec.cause.storm.emplace();
    storm.stalls_storage = s.converged;  // it pauses every lossless class
    std::vector<NetworkWindow> windows = packet_windows(s);
    if (windows.empty() || windows[0].network->name != s.networks[0].name) return no_waiter;
    PacketWindow& window = windows[0].window;
    window.faults.clear();
    const FlowControl control = windows[0].network->packets.flow_control;
    if (std::ranges::none_of(window.flows, [&](const PacketFlow& flow) {
            return waits_for(flow, links, control);
        })) {
        return no_waiter;
    }
    if (!s.windows) return {};  // nobody asks for more
    const auto calm = run(s, catalogue, windows[0]);
    if (calm->ending != WindowEnding::resolved) return unsettled(calm->ending);
    if (calm->totals.lost_lossless > 0 && !s.window.allow_loss) return losses(*calm);
    WindowFault fault;
    fault.start = middle(window, *calm, links, control);
    if (spec.duration) fault.end = fault.start + *spec.duration;
    for (const LinkId link : links) {
        fault.link = link;
        window.faults.push_back(fault);
    }
    window.until_failure = true;
    const Picoseconds killed_at =
        fault.start + catalogue.time("detection", "pytorch_watchdog", "time");
    window.time_max = std::max(window.time_max, killed_at);
    const auto course = run(s, catalogue, windows[0]);
    if (course->totals.lost_lossless > 0 && !s.window.allow_loss) return losses(*course);
    if (course->ending == WindowEnding::out_of_events) {
        storm.stall = to_duration(course->end - fault.start);
        s.limits->add(fmt::format("failures.storm: {} had not ended when window.events_max was "
                                  "reached, it is taken to hold the job up for {}",
                                  spec.cause.name, to_text(storm.stall)),
                      "a larger window.events_max");
        return {};
    }
    const bool resolved = course->ending == WindowEnding::resolved;
    // Others than those that were held up may have had it easier meanwhile.
    const Picoseconds stall = resolved
                                  ? std::max(Picoseconds{}, last_end(*course) - last_end(*calm))
                                  : PacketEngine::never;
    const Picoseconds dies_at = std::min(course->first_failure, killed_at);
    storm.fatal = course->first_failure != PacketEngine::never || stall > killed_at - fault.start;
    storm.stall = to_duration(storm.fatal ? dies_at - fault.start : stall);
    // The error names the connection; which NIC it is that pauses, only the switches' watchdog does.
    // Without it the network stays frozen for whatever is started next, while the storm lasts.
    const Duration left =
        spec.duration ? std::max(Duration{}, *spec.duration - storm.stall) : Duration::max();
    if (storm.fatal)
        spec.cause.detection =
            course->totals.storms_detected > 0 ? Duration{} : std::min(spec.found_after, left);
    return {};
}

// ---- [failures] ----

class FailureReader {
  public:
    FailureReader(Section& top, Catalogue& catalogue, Scenario& scenario)
        : top_(top), catalogue_(catalogue), s_(scenario) {}

    void read();

  private:
    void add_storm(Section& section);
    std::vector<LinkId> links_to(Section& section, const std::string& nic) const;
    void run_storm(Section& section, StormSpec& storm, const std::vector<LinkId>& links);
    void add_cause(Section& section, const CauseSpec& spec);
    bool slowdowns_fit_the_world(Section& section, const CauseSpec& spec) const;
    void add_slow_part(Section& section, const CauseSpec& spec, FailureCause& cause);
    void add_repair(Section& failures);
    void settle(Section& failures, double scale, std::optional<Duration> detection);

    Section& top_;
    Catalogue& catalogue_;
    Scenario& s_;
};

// A NIC that pauses the compute network: its window is run here, since what it does to the job is always
// the same.
void FailureReader::add_storm(Section& section) {
    StormSpec storm =
        read_storm(section, catalogue_, {s_.node.nics, s_.job.nodes, s_.world != nullptr});
    if (top_.describing()) return;
    keep_within(section, "duration", storm.duration, packet_time_max);
    if (s_.world && s_.converged) {
        section.error(
            "", "on a network that carries storage too, not modelled for the jobs of a [scheduler]",
            "storage.network = \"own\"");
    }
    if (!section.ok()) return;
    const std::vector<LinkId> links = links_to(section, storm.nic);
    if (!section.ok() || !s_.no_path.empty()) return;  // nothing that could be held up
    run_storm(section, storm, links);
}

// The links by which the NIC pauses the compute network.
std::vector<LinkId> FailureReader::links_to(Section& section, const std::string& nic) const {
    const Topology& topology = s_.networks[0].topology;
    const std::optional<VertexId> at = topology.find(nic);
    if (!at || topology.level(*at) > 0) {
        section.error("nic", fmt::format("the compute network has no NIC '{}'", nic),
                      "node-0.nic-0 is the first");
        return {};
    }
    if (s_.networks[0].packets.flow_control == FlowControl::none) {
        section.error("", "nothing can pause the compute network: it has no flow control",
                      "fabric.compute.kind = \"roce\" with pfc, or \"infiniband\"");
        return {};
    }
    std::vector<LinkId> links;
    for (const LinkId up : topology.up_links(*at)) links.push_back(reverse_link(up));
    return links;
}

void FailureReader::run_storm(Section& section, StormSpec& storm,
                              const std::vector<LinkId>& links) {
    try {
        const StormProblem problem = feel_storm(s_, catalogue_, links, storm);
        if (problem.warning) {
            section.warning("nic", problem.text, problem.hint);
        } else if (!problem.text.empty()) {
            section.error("", problem.text, problem.hint);
            return;
        }
    } catch (const NoPath& no_path) {
        section.error("", fmt::format("its packet window can't be run: {}", no_path.what()),
                      "window.traffic says what is sent, fabric.compute.fault what is cut");
        return;
    }
    s_.causes.push_back(storm.cause);
}

// What the cause as it is written means for the scenario's jobs, nodes and networks.
void FailureReader::add_cause(Section& section, const CauseSpec& spec) {
    FailureCause cause = spec.cause;
    if (spec.network_part) {
        if (section.ok()) {
            add_network_cause(section, cause, *spec.network_part, spec.speed.value_or(0), s_);
        }
        return;
    }
    if (!section.describing()) {
        std::vector<FailureDomains>& all = s_.nodes.domains;
        all.resize(domain_kind_names.size());
        FailureDomains& domains = all[static_cast<std::size_t>(cause.domain)];
        if (cause.domain != DomainKind::node && domains.count() == 0) {
            domains = domains_of(cause.domain, s_, section);
        }
        if (spec.slow_part) add_slow_part(section, spec, cause);
        if (cause.silent && !s_.job.recovery.recompute) {
            section.error("silent", "without recomputation nothing that is wrong can be undone",
                          "job.recovery.recompute = true");
        }
    }
    s_.causes.push_back(cause);
}

// Steps of jobs with a model follow from the part's speed; what other work takes longer must be said.
bool FailureReader::slowdowns_fit_the_world(Section& section, const CauseSpec& spec) const {
    const auto& models = s_.world->models;
    const auto modelled =
        std::ranges::count_if(models, [](const auto& model) { return model != nullptr; });
    if (modelled > 0 && !spec.speed) {
        section.error("slows",
                      "some of the jobs have a model: their step follows from the part's speed",
                      "speed = 0.5");
    } else if (modelled < std::ssize(models) && !spec.slowdown) {
        section.error("slows",
                      "some of the jobs have no model: what their work takes longer must be said",
                      "slowdown = 0.1");
    } else if ((modelled == 0 && spec.speed) || (modelled == std::ssize(models) && spec.slowdown)) {
        section.error(spec.speed && modelled == 0 ? "speed" : "slowdown",
                      "has no effect on any of the jobs");
    } else {
        return true;
    }
    return false;
}

void FailureReader::add_slow_part(Section& section, const CauseSpec& spec, FailureCause& cause) {
    const bool given = s_.given_step;
    if (s_.world && !slowdowns_fit_the_world(section, spec)) return;
    if (cause.domain != DomainKind::node || cause.silent) {
        section.error("slows", "a slow part is one node's, and no silent corruption");
    } else if (!s_.world &&
               (given != spec.slowdown.has_value() || given == spec.speed.has_value())) {
        section.error("slows",
                      given ? "job.step.time is measured: what a step takes longer must be too"
                            : "what a step takes longer is modelled from the part's speed",
                      given ? "slowdown = 0.1" : "speed = 0.5");
    } else if (spec.speed && *spec.speed <= 0) {
        section.error("speed", "expected more than 0: what has stopped altogether is no slow part");
    } else if (s_.slow_parts.size() == slow_conditions_max) {
        section.error("slows", fmt::format("a scenario has at most {} kinds of slow parts",
                                           slow_conditions_max));
    } else {
        PartFault fault;
        fault.part = static_cast<Part>(*spec.slow_part);
        fault.speed = spec.speed.value_or(1);
        cause.slow = {static_cast<std::uint32_t>(s_.slow_parts.size()), spec.lasts};
        s_.slow_parts.push_back(fault);
        s_.given_slowdowns.push_back(spec.slowdown.value_or(0));
    }
}

void FailureReader::add_repair(Section& failures) {
    const auto any = [this](const auto& is) { return std::ranges::any_of(s_.causes, is); };
    const WhatFails what{
        .anything_slow = !s_.slow_parts.empty(),
        .slow_for_good =
            any([](const FailureCause& c) { return c.slow && c.slow->lasts == Duration{}; }),
        .anything_leaves =
            s_.causes.empty() || !s_.network_faults.causes.empty() || top_.has("inject") ||
            top_.has("power") ||
            any([](const FailureCause& c) { return c.slow || c.remedy != Remedy::restart; })};
    const RepairSpec spec = read_repair(failures, what);
    if (s_.world && spec.misdiagnosis > 0 && !s_.world->spec.health.prolog &&
        !s_.world->spec.health.epilog) {
        failures.warning("misdiagnosis",
                         "has no effect without scheduler.health.prolog or epilog: nobody looks "
                         "among a job's nodes");
    }
    s_.nodes.repair = spec.shop;
    s_.nodes.quarantine = spec.quarantine;
    s_.job.recovery.misdiagnosis = spec.misdiagnosis;
    s_.job.recovery.search = spec.search;
}

void FailureReader::read() {
    Section failures = top_.section("failures");
    const FailureKeys keys = read_failure_keys(failures, catalogue_);
    s_.nodes.repair_sigma = s_.network_faults.repair_sigma = keys.repair_sigma;
    if (keys.profile != "none" && !top_.describing()) {
        s_.causes = read_failure_profile(catalogue_, keys.profile, s_.node.gpu.generation,
                                         s_.job.gpus_per_node);
        s_.of_another_cluster = true;
    }
    const CauseContext context{s_.job.gpus_per_node, s_.job.nodes, s_.world != nullptr,
                               top_.has("cost"),     part_names,   network_part_kinds};
    for (Section& section :
         failures.sections("cause", "A cause of failure, besides the profile's")) {
        add_cause(section, read_cause(section, catalogue_, context));
    }
    for (Section& section :
         failures.sections("storm", "NICs that pause the network now and then")) {
        add_storm(section);
    }
    if (!top_.describing()) add_optics_causes(catalogue_, s_);
    read_lemons(failures, s_.nodes.lemons);
    add_repair(failures);
    failures.finish();
    if (s_.causes.empty() && s_.network_faults.causes.empty()) {
        warn_of_keys(failures, {"rate_scale", "detection", "repair_sigma"},
                     "has no effect without failures.profile or a [[failures.cause]]");
    }
    settle(failures, keys.rate_scale, keys.detection);
}

// Each cause at its rate, under a name of its own.
void FailureReader::settle(Section& failures, double scale, std::optional<Duration> detection) {
    std::vector<std::string> seen;
    for (NetworkCause& of : s_.network_faults.causes) {
        of.cause.life.rate.per_second *= scale;
        if (std::ranges::find(seen, of.cause.name) != seen.end()) {
            failures.error("cause", fmt::format("the cause '{}' appears twice", of.cause.name));
        }
        seen.push_back(of.cause.name);
    }
    for (FailureCause& cause : s_.causes) {
        cause.rate_per_node.per_second *= scale;
        cause.rate_per_job.per_second *= scale;
        cause.life.rate.per_second *= scale;
        if (detection && !cause.storm && !cause.silent) cause.detection = *detection;
        if (std::ranges::find(seen, cause.name) != seen.end()) {
            failures.error("cause", fmt::format("the cause '{}' appears twice", cause.name));
        }
        seen.push_back(cause.name);
        const double per_second =
            (cause.rate_per_node.per_second * real(s_.job.nodes) + cause.rate_per_job.per_second) *
            s_.nodes.lemons.rate_multiplier;
        if (per_second > 1e6) {
            failures.error(
                "cause",
                fmt::format("'{}' strikes the job {:.3g} times a second", cause.name, per_second),
                "the campaign would be nothing but failures");
        }
    }
}

}  // namespace

void read_failures(Section& top, Catalogue& catalogue, Scenario& scenario) {
    FailureReader(top, catalogue, scenario).read();
}

namespace {

// The cause of this name: the scenario's, or one of the catalogue's, which then strikes only when injected.
std::size_t cause_of(const std::string& name, Catalogue& catalogue, Scenario& s) {
    const auto known = std::ranges::find(s.causes, name, &FailureCause::name);
    const auto index = static_cast<std::size_t>(known - s.causes.begin());
    if (known == s.causes.end()) s.causes.push_back(read_failure_cause(catalogue, name));
    return index;
}

}  // namespace

void read_injections(Section& top, Catalogue& catalogue, Scenario& s) {
    std::vector<std::string> names = names_of(s.causes);
    for (const std::string& name : Catalogue::names("failure_response")) {
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    if (top.describing()) names.clear();  // a scenario names its own
    for (Section& section : top.sections("inject", "A failure at a known time")) {
        const InjectionSpec spec = read_injection(section, names);
        if (section.describing() || !section.ok()) continue;
        warn_if_over(section, "at", spec.at, s.duration);
        if (spec.names_part()) {
            add_outage(section, spec, s);
            continue;
        }
        const std::size_t index = cause_of(spec.cause, catalogue, s);
        const FailureCause& cause = s.causes[index];
        const bool domain = cause.domain != DomainKind::node;
        check_injection(section, spec, cause,
                        domain ? s.nodes.domains[static_cast<std::size_t>(cause.domain)].count()
                               : s.nodes.nodes);
        s.nodes.injected.push_back(
            {spec.at, index, spec.unit, spec.duration, s.nodes.injected.size()});
    }
}

}  // namespace railyard
