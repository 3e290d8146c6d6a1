#include "models/fabric/packet_engine.h"

#include <algorithm>
#include <cstddef>

#include "sim/check.h"
#include "sim/fingerprint.h"

namespace railyard {

PacketEngine::Parts::Parts(const PacketNetwork& network, PacketSpec&& spec,
                           std::unique_ptr<Congestion> congestion_control)
    : congestion(std::move(congestion_control)),
      run(network, std::move(spec)),
      links(run, network),
      flows(run),
      senders(run, links, flows, *congestion),
      receivers(run, links, senders) {
    links.attach(senders, receivers);
    tell_receivers();
}

void PacketEngine::Parts::tell_receivers() {
    if (!congestion->tells_receivers()) return;
    std::vector<double> bits_per_s(links.ports.buffers().size());
    for (LinkId l = 0; l < links.ports.links(); ++l) {
        if (links.ports.to_switch(l)) continue;
        bits_per_s[links.ports.link(l).to] += real(links.slow_receivers.rate(l).bits_per_second());
    }
    for (VertexId v = 0; v < bits_per_s.size(); ++v) {
        if (bits_per_s[v] > 0) congestion->receiver_takes(v, bits_per_s[v], run.time());
    }
}

PacketEngine::PacketEngine(const PacketNetwork& network, PacketSpec spec,
                           std::unique_ptr<Congestion> congestion)
    : parts_(std::make_unique<Parts>(network, std::move(spec), std::move(congestion))) {}

void PacketEngine::expect(std::size_t flows) {
    parts_->flows.expect(flows);
    parts_->senders.expect(flows);
    parts_->receivers.expect(flows);
}

std::size_t PacketEngine::add(const PacketFlow& given) {
    RY_CHECK(!given.path.empty() && given.bytes > 0 && given.start >= now());
    if (given.continues < 0) {
        parts_->receivers.add();
        return parts_->flows.add(given, parts_->senders.add(given));
    }
    const std::uint32_t queue_pair = parts_->flows[given.continues].queue_pair;
    RY_CHECK(parts_->senders.fits(queue_pair, given));
    return parts_->flows.add(given, queue_pair);
}

void PacketEngine::reroute(std::size_t flow, const std::vector<LinkId>& path) {
    parts_->senders.reroute(parts_->flows[flow].queue_pair, path);
}

void PacketEngine::storm(LinkId link, int traffic_class, Picoseconds start, Picoseconds end) {
    const auto c = static_cast<std::size_t>(traffic_class);
    parts_->run.schedule(start.count(), PacketEvent::storm_start, link, c);
    if (end != never) parts_->run.schedule(end.count(), PacketEvent::storm_end, link, c);
}

[[gnu::always_inline]] inline void PacketEngine::handle(Parts& parts,
                                                        const TimingWheel::Event& event) {
    const std::uint32_t id = event.id;
    const std::size_t c = PacketRun::class_of(event.kind);
    PacketLinks& links = parts.links;
    switch (PacketRun::what_of(event.kind)) {
        case PacketEvent::arrival:
            return links.arrive(id);
        case PacketEvent::port_free:
            return links.serve(id);
        case PacketEvent::flow_start:
            return parts.senders.start(id);
        case PacketEvent::flow_ready:
            return parts.senders.wake(id);
        case PacketEvent::flow_timer:
            return parts.senders.tick(id);
        case PacketEvent::flow_timeout:
            return parts.senders.time_out(id);
        case PacketEvent::flow_probe:
            return parts.senders.unordered().probe(id);
        case PacketEvent::xoff:
            return links.pauses.stop(id, c);
        case PacketEvent::xon:
            return links.go_on(id, c);
        case PacketEvent::pause_over:
            if (links.pauses.run_out(links.ports.slot(id, c))) links.go_on(id, c);
            return;
        case PacketEvent::credits:
            if (links.credits.come(links.ports.slot(id, c))) links.stop_starving(id, c);
            return;
        case PacketEvent::hoq_lifetime:
            return links.end_lifetime(id, c);
        case PacketEvent::cnp:
            return parts.receivers.send_cnp(id);
        case PacketEvent::link_down:
            return links.take_down(id);
        case PacketEvent::link_up:
            return links.bring_up(id);
        case PacketEvent::host_pace:
            return parts.tell_receivers();
        case PacketEvent::host_took:
            return links.host_takes(id);
        case PacketEvent::storm_start:
            return links.storm(id, c, true);
        case PacketEvent::storm_end:
            return links.storm(id, c, false);
        case PacketEvent::watchdog_poll:
            return links.poll_watchdogs(id);
        case PacketEvent::stall_over:
            return links.credits.end_stall(id, c);
        case PacketEvent::replay:
            return links.replay(id);
    }
}

// A large network does not fit into the cache. What the next events will touch is on its way while this one
// is handled: first the packet, then, once that is there, the port that it goes out by; of a port that
// becomes free its queues, then the packet that heads the last of them, the class of most data. Which of
// these an event is nothing can predict: so addresses are chosen, not branches.
[[gnu::always_inline]] inline void PacketEngine::fetch_ahead(const Parts& parts) {
    const PacketPool& packets = parts.run.packets;
    if (packets.may_choose()) return fetch_ways(parts);
    const PacketPorts& ports = parts.links.ports;
    const auto address = [](const auto* first, std::uint64_t index) {
        return reinterpret_cast<std::uintptr_t>(first) + index * sizeof(*first);
    };
    const auto packet = [&](std::uint32_t id) {
        return reinterpret_cast<std::uintptr_t>(packets.address(id));
    };
    const auto fetch = [](std::uintptr_t a) { fetch_line(reinterpret_cast<void*>(a)); };
    const auto choose = [](bool first, std::uint64_t a, std::uint64_t b) {
        return b ^ ((a ^ b) & (std::uint64_t{0} - std::uint64_t{first}));
    };
    const auto port = [&](LinkId link) { return address(&ports.port(0), link); };
    const auto last_queue = [&](LinkId link) {
        return address(&ports.queue(0), ports.slot(link + 1, 0) - 1);
    };
    if (const auto* later = parts.run.wheel.peek(10)) {
        const bool arrives = PacketRun::what_of(later->kind) == PacketEvent::arrival;
        fetch(choose(arrives, packet(later->id), port(later->id)));
        fetch(choose(arrives, packet(later->id), last_queue(later->id)));
    }
    const auto* soon = parts.run.wheel.peek(5);
    if (soon == nullptr || PacketRun::what_of(soon->kind) > PacketEvent::port_free) return;
    const bool arrives = PacketRun::what_of(soon->kind) == PacketEvent::arrival;
    const auto place = packet(soon->id) + offsetof(Packet, place);
    const auto head = last_queue(soon->id) + offsetof(LinkQueue, head);
    const auto next = *reinterpret_cast<const std::uint32_t*>(choose(arrives, place, head));
    const LinkId out = packets.link_at(choose(arrives, next, 0));
    const std::uint32_t then = next == PacketRun::none ? 0 : next;
    fetch(choose(arrives, port(out), packet(then)));
    fetch(packets.next_address(choose(arrives, soon->id, then)));
}

// A packet that chooses brings along, in one line, what its switch needs of it. So what the next events touch
// is fetched in three stages: packets, ports and queues; what these name; and where a packet will go.
void PacketEngine::fetch_ways(const Parts& parts) {
    constexpr std::size_t first = 14;
    constexpr std::size_t second = 9;
    constexpr std::size_t third = 4;
    const PacketPool& packets = parts.run.packets;
    const PacketPorts& ports = parts.links.ports;
    const auto is = [](const TimingWheel::Event* event, PacketEvent what) {
        return event != nullptr && PacketRun::what_of(event->kind) == what;
    };
    const auto each_head = [&](LinkId link, const auto& visit) {
        for (std::size_t c = 0; c < ports.classes(); ++c) {
            const std::uint32_t head = ports.queue(ports.slot(link, c)).head;
            if (head != PacketRun::none) visit(head);
        }
    };
    const TimingWheel::Event* event = parts.run.wheel.peek(first);
    if (is(event, PacketEvent::arrival)) {
        fetch_line(packets.address(event->id));
    } else if (is(event, PacketEvent::port_free)) {
        fetch_line(&ports.port(event->id));
        fetch_line(&ports.queue(ports.slot(event->id, 0)));
        fetch_line(&ports.queue(ports.slot(event->id, ports.classes() - 1)));
    }
    event = parts.run.wheel.peek(second);
    if (is(event, PacketEvent::arrival)) {
        fetch_end(parts, packets[event->id]);
    } else if (is(event, PacketEvent::port_free)) {
        each_head(event->id, [&](std::uint32_t head) { fetch_line(packets.address(head)); });
    }
    event = parts.run.wheel.peek(third);
    if (is(event, PacketEvent::arrival)) {
        fetch_output(parts, packets[event->id]);
    } else if (is(event, PacketEvent::port_free) && !ports.port(event->id).at_nic) {
        each_head(event->id, [&](std::uint32_t head) {
            const Packet& packet = packets[head];
            fetch_line(&ports.share(ports.slot(packets.last_link(packet), packet.traffic_class)));
        });
    }
}

// What a packet needs that is about to arrive, of the switch or the NIC.
void PacketEngine::fetch_end(const Parts& parts, const Packet& packet) {
    const PacketPorts& ports = parts.links.ports;
    const LinkId in = parts.run.packets.last_link(packet);
    if (!ports.to_switch(in)) {
        fetch_line(&parts.senders.pair(packet.flow));
        return parts.receivers.fetch(packet.flow);
    }
    if (packet.flags >> routing_shift != 0) {
        parts.links.ways.fetch(in, reinterpret_cast<const ChoosingPacket&>(packet).to);
    }
    fetch_line(&ports.share(ports.slot(in, packet.traffic_class)));
}

void PacketEngine::fetch_output(const Parts& parts, const Packet& packet) {
    const PacketPorts& ports = parts.links.ports;
    if (!ports.to_switch(parts.run.packets.last_link(packet))) return;
    const LinkId out =
        packet.flags >> routing_shift != 0
            ? parts.links.ways.likely_output(reinterpret_cast<const ChoosingPacket&>(packet))
            : parts.run.packets.next_link(packet);
    if (out == PacketRun::none) return;
    fetch_line(&ports.port(out));
    fetch_line(&ports.queue(ports.slot(out, packet.traffic_class)));
}

bool PacketEngine::run(Picoseconds until, std::uint64_t events_max) {
    Parts& parts = *parts_;
    PacketRun& run = parts.run;
    std::uint64_t& events = run.totals.events;
    const std::uint64_t last = events + std::min(events_max, UINT64_MAX - events);
    TimingWheel::Event event{};
    while (parts.flows.unfinished()) {
        if (events == last) return false;
        if (!run.wheel.pop(until.count(), event)) {
            if (until != never) run.now = until.count();
            return false;
        }
        fetch_ahead(parts);
        run.now = event.time;
        ++events;
        handle(parts, event);
    }
    return true;
}

// ---- looking at it ----

std::int64_t PacketEngine::received_bytes(std::size_t flow) const {
    const FlowRecord& r = parts_->flows[flow];
    return std::clamp<std::int64_t>(parts_->receivers.received_bytes(r.queue_pair) - r.first_byte,
                                    0, r.first == PacketRun::none ? 0 : r.bytes);
}

std::string PacketEngine::digest() const {
    Fingerprint digest;
    for (const FlowRecord& r : parts_->flows.all()) digest.add(r.end);
    const Totals& t = totals();
    digest.add(t.events);
    digest.add(t.data_hops);
    digest.add(t.ack_hops);
    digest.add(t.pause_frames);
    digest.add(t.lost_lossless + t.lost_lossy + t.lost_to_watchdog + t.lost_to_lifetime +
               t.lost_on_links);
    if (parts_->run.spec.trimming.enabled) digest.add(t.trimmed);
    if (parts_->run.spec.link_retry.enabled) digest.add(t.replayed);
    return digest.hex();
}

std::string PacketEngine::audit() const {
    const PacketLinks& links = parts_->links;
    const PacketRun& run = parts_->run;
    std::uint64_t queued = 0;
    if (std::string problem = links.ports.audit(queued); !problem.empty()) return problem;
    if (std::string problem = links.pauses.audit(); !problem.empty()) return problem;
    std::uint64_t unused = 0;
    run.packets.each_free([&](std::uint32_t) { ++unused; });
    if (run.packets.size() - unused != queued + run.on_links) return "a packet is astray";
    if (std::string problem = links.faults.audit(); !problem.empty()) return problem;
    return links.credits.audit();
}

}  // namespace railyard
