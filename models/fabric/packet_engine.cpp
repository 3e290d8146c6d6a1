#include "models/fabric/packet_engine.h"

#include <fmt/format.h>

#include <bit>
#include <cstddef>

#include "sim/check.h"

namespace railyard {

std::uint64_t PacketEngine::ps_per_byte_of(Bandwidth rate) {
    const auto bits = static_cast<__int128>(rate.bits_per_second());
    return static_cast<std::uint64_t>(
        ((static_cast<__int128>(8'000'000'000'000) << 20) + bits - 1) / bits);
}

// Buckets for a handful of events each when links are busy; and as many of them as reach one packet's
// transfer and propagation ahead.
TimingWheel PacketEngine::fitting_wheel(const PacketNetwork& network, const PacketSpec& spec) {
    std::int64_t transfer = INT64_MAX;
    std::int64_t ahead = 0;
    for (const PacketLink& l : network.links) {
        if (l.rate.bits_per_second() <= 0) continue;
        const std::int64_t t =
            transfer_ps(spec.payload_bytes + spec.header_bytes, ps_per_byte_of(l.rate));
        transfer = std::min(transfer, t);
        ahead = std::max(ahead, t + l.latency.count());
    }
    constexpr std::int64_t events_per_bucket = 16;
    const std::int64_t links = static_cast<std::int64_t>(network.links.size());
    const auto width = static_cast<std::uint64_t>(events_per_bucket * transfer / links);
    const int shift =
        std::clamp(static_cast<int>(std::bit_width(width)) - 1, 0, TimingWheel::shift_max);
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(ahead >> shift)));
    return {shift, std::clamp(bits, 6, 20)};
}

PacketEngine::PacketEngine(const PacketNetwork& network, PacketSpec spec,
                           std::unique_ptr<Congestion> congestion)
    : spec_(std::move(spec)),
      congestion_(std::move(congestion)),
      telemetry_wanted_(congestion_->wants_telemetry()),
      timers_can_wait_(congestion_->timers_can_wait()),
      follows_marks_alone_(congestion_->follows_marks_alone()),
      round_trips_wanted_(congestion_->wants_round_trips() || spec_.order_loss.enabled),
      class_count_(spec_.classes.size()),
      links_(network.links),
      wheel_(fitting_wheel(network, spec_)),
      to_nic_(links_.size()),
      ports_(links_.size()),
      queues_(links_.size() * class_count_),
      turns_(links_.size() * class_count_),
      pauses_(links_.size() * class_count_),
      ingress_(links_.size() * class_count_),
      spraying_(spec_.seed, 0, "packet/spray"),
      marking_(spec_.seed, 0, "packet/marking"),
      trimming_(spec_.seed, 0, "packet/trimming") {
    RY_CHECK(class_count_ <= 8);
    RY_CHECK(spec_.payload_bytes > 0 && spec_.ack_every > 0);
    RY_CHECK(spec_.pause_quanta > 1);  // half of it is the time between renewals
    RY_CHECK(spec_.payload_bytes + spec_.header_bytes <= UINT16_MAX);
    // Its header goes where acknowledgements go, which must be packets.
    RY_CHECK(!spec_.trimming.enabled || (unordered() && spec_.ack_class >= 0));
    packets_.keep(round_trips_wanted_, selective());
    if (unordered()) {
        RY_CHECK(!telemetry_wanted_);
        spec_.entropy.seed = spec_.seed;
        entropy_ = make_entropy_choice(spec_.entropy);
    }
    for (std::size_t c = 0; c < class_count_; ++c) {
        if (spec_.classes[c].flow_control == FlowControl::credits) credit_classes_ |= 1U << c;
        if (spec_.classes[c].weight == 0) strict_classes_ |= 1U << c;
    }
    if (class_count_ - static_cast<std::size_t>(std::popcount(strict_classes_)) > 1) {
        deficits_.resize(queues_.size());
    }
    if (credit_classes_ != 0) credits_.resize(queues_.size());
    std::vector<std::int64_t> pool = network.buffer_bytes;
    std::vector<std::int64_t> headroom(pool.size());
    for (LinkId l = 0; l < links_.size(); ++l) {
        set_up_port(network, l);
        const VertexId to = links_[l].to;
        for (std::size_t c = 0; c < class_count_; ++c) {
            pool[to] -= set_apart(l, c);
            headroom[to] += ingress_[slot(l, static_cast<int>(c))].headroom_size;
        }
    }
    for (VertexId v = 0; v < pool.size(); ++v) {
        headroom[v] /= spec_.buffer.headroom_oversubscription;
        pool[v] -= headroom[v];
        RY_CHECK(network.is_nic(v) || pool[v] >= 0);  // what is set apart fits
        buffers_.emplace_back(spec_.buffer, pool[v], headroom[v]);
    }
    if (spec_.watchdog.action != WatchdogAction::none) set_up_watchdogs(pool.size());
}

void PacketEngine::set_up_port(const PacketNetwork& network, LinkId l) {
    const PacketLink& link = links_[l];
    Port& port = ports_[l];
    port.latency = link.latency.count();
    if (link.rate.bits_per_second() > 0) port.ps_per_byte = ps_per_byte_of(link.rate);
    port.from = link.from;
    port.kmin_bytes = link.ecn.kmin_bytes;
    port.at_nic = network.is_nic(link.from);
    to_nic_[l] = network.is_nic(link.to) ? to_nic : 0;
    if (link.bit_error_rate > 0) faults_of(l);
    for (std::size_t c = 0; c < class_count_; ++c) {
        if (!heeds_pauses(l, c)) {
            port.unpausable |= static_cast<std::uint8_t>(1U << c);
            ++ignored_pauses_;
        }
    }
}

void PacketEngine::set_up_watchdogs(std::size_t vertices) {
    RY_CHECK(spec_.watchdog.poll.count() > 0);
    watchdogs_.resize(queues_.size());
    rounds_.resize(vertices);
    for (VertexId v = 0; v < vertices && !spec_.watchdog.polls_together; ++v) {
        RandomStream random(spec_.seed, 0, fmt::format("packet/watchdog/{}", v));
        rounds_[v].offset = static_cast<std::int64_t>(
            random.below(static_cast<std::uint64_t>(spec_.watchdog.poll.count())));
    }
}

// Gives a class its own room at the end of a link; bytes that a switch's pool lacks for it, headroom apart.
std::int64_t PacketEngine::set_apart(LinkId link, std::size_t traffic_class) {
    const std::size_t s = link * class_count_ + traffic_class;
    const PacketLink& l = links_[link];
    const FlowControl control = spec_.classes[traffic_class].flow_control;
    if (control == FlowControl::credits) {
        credits_[s].open(l.vl_buffer_bytes / spec_.credits.block_bytes);
        RY_CHECK(credits_[s].total() >=
                 spec_.credits.blocks(spec_.payload_bytes + spec_.header_bytes));
        return to_nic_[link] != 0 ? 0 : l.vl_buffer_bytes;
    }
    if (to_nic_[link] != 0) return 0;
    const bool pauses = control == FlowControl::pfc && (l.pausing >> traffic_class & 1) != 0;
    ingress_[s].headroom_size = pauses ? l.headroom_bytes : 0;
    return spec_.buffer.reserve_bytes;
}

bool PacketEngine::run(Picoseconds until, std::uint64_t events_max) {
    const std::uint64_t last = totals_.events + std::min(events_max, UINT64_MAX - totals_.events);
    TimingWheel::Event event{};
    while (unfinished_ > 0) {
        if (totals_.events == last) return false;
        if (!wheel_.pop(until.count(), event)) {
            if (until != never) now_ = until.count();
            return false;
        }
        fetch_ahead();
        now_ = event.time;
        ++totals_.events;
        handle(event);
    }
    return true;
}

// A large network does not fit into the cache. What the next events will touch is on its way while this one
// is handled: first the packet, then, once that is there, the port that it goes out by; of a port that
// becomes free its queues, then the packet that heads the last of them, the class of most data. Which of
// these an event is nothing can predict: so addresses are chosen, not branches.
[[gnu::always_inline]] inline void PacketEngine::fetch_ahead() const {
    if (packets_.may_choose()) return fetch_ways();
    const auto address = [](const auto& array, std::uint64_t index) {
        return reinterpret_cast<std::uintptr_t>(array.data()) + index * sizeof(array[0]);
    };
    const auto packet = [&](std::uint32_t id) {
        return reinterpret_cast<std::uintptr_t>(packets_.address(id));
    };
    const auto fetch = [](std::uintptr_t a) { fetch_line(reinterpret_cast<void*>(a)); };
    const auto choose = [](bool first, std::uint64_t a, std::uint64_t b) {
        return b ^ ((a ^ b) & (std::uint64_t{0} - std::uint64_t{first}));
    };
    const auto last_queue = [&](LinkId link) { return (link + 1) * class_count_ - 1; };
    if (const auto* later = wheel_.peek(10)) {
        const bool arrives = what_of(later->kind) == What::arrival;
        fetch(choose(arrives, packet(later->id), address(ports_, later->id)));
        fetch(choose(arrives, packet(later->id), address(queues_, last_queue(later->id))));
    }
    const auto* soon = wheel_.peek(5);
    if (soon == nullptr || what_of(soon->kind) > What::port_free) return;
    const bool arrives = what_of(soon->kind) == What::arrival;
    const auto place = packet(soon->id) + offsetof(Packet, place);
    const auto head = address(queues_, last_queue(soon->id)) + offsetof(Queue, head);
    const auto next = *reinterpret_cast<const std::uint32_t*>(choose(arrives, place, head));
    const LinkId out = paths_[choose(arrives, next, 0)];
    fetch(choose(arrives, address(ports_, out), packet(next == none ? 0 : next)));
    fetch(packets_.next_address(choose(arrives, soon->id, next == none ? 0 : next)));
}

void PacketEngine::handle(const TimingWheel::Event& event) {
    const std::size_t traffic_class = event.kind >> what_bits;
    switch (what_of(event.kind)) {
        case What::arrival:
            return arrive(event.id);
        case What::port_free:
            return serve(event.id);
        case What::flow_start:
            return start_flow(event.id);
        case What::flow_ready:
            if (flows_[event.id].wake_at != now_) return;  // overtaken by another
            flows_[event.id].wake_at = unset;
            return offer(event.id);
        case What::flow_timer:
            return on_timer(event.id);
        case What::flow_timeout:
            return on_timeout(event.id);
        case What::flow_probe:
            return on_probe(event.id);
        case What::xoff:
            return on_xoff(event.id, traffic_class);
        case What::xon:
            return on_xon(event.id, traffic_class);
        case What::pause_over:
            return on_pause_over(event.id, traffic_class);
        case What::credits:
            return on_credits(event.id, traffic_class);
        case What::hoq_lifetime:
            return on_hoq_lifetime(event.id, traffic_class);
        case What::cnp:
            return send_cnp(event.id);
        case What::link_down:
            return on_link_down(event.id);
        case What::link_up:
            return on_link_up(event.id);
        case What::host_took:
            return on_host_took(event.id);
        case What::storm_start:
            return hold(event.id, traffic_class, true);
        case What::storm_end:
            return hold(event.id, traffic_class, false);
        case What::watchdog_poll:
            return on_watchdog_poll(event.id);
        case What::stall_over:
            return on_stall_over(event.id, traffic_class);
        case What::replay:
            return on_replay(event.id);
    }
}

std::uint32_t PacketEngine::take_packet() {
    if (free_packets_ == none) {
        packets_.add();
        if (telemetry_wanted_) telemetry_.resize(packets_.size() * telemetry_hops_);
        if (congestion_->tells_receivers()) wanted_.emplace_back();
        return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t id = free_packets_;
    free_packets_ = packets_.next(id);
    return id;
}

void PacketEngine::free_packet(std::uint32_t id) {
    const Packet& packet = packets_[id];
    if (unordered() && (packet.flags & flag_ack) != 0) free_reports_.push_back(packet.number);
    packets_.next(id) = free_packets_;
    free_packets_ = id;
}

// ---- links and switches ----

inline void PacketEngine::arrive(std::uint32_t id) {
    --on_links_;
    const Packet& packet = packets_[id];
    const LinkId in = last_link(packet);
    if (to_nic_[in] == 0) return forward(in, id);
    if (ignored_pauses_ > 0 && takes_nothing(in, packet.traffic_class)) [[unlikely]] {
        return overflow(in, id);
    }
    if (to_nic_[in] == to_slow_nic) return receive_slowly(in, id);
    receive(in, id);
}

// A NIC that storms, whose pause its switch ignores.
bool PacketEngine::takes_nothing(LinkId in, std::size_t traffic_class) const {
    if ((ports_[in].unpausable >> traffic_class & 1) == 0) return false;
    std::int32_t storms = pauses_[in * class_count_ + traffic_class].reasons;
    if (to_nic_[in] == to_slow_nic) {
        storms -= slow_receivers_[slow_receiver_of_[in]].pausing >> traffic_class & 1;
    }
    return storms > 0;
}

// The NIC at the end of `in` has taken it.
void PacketEngine::receive(LinkId in, std::uint32_t id) {
    const Packet& packet = packets_[id];
    if (has_credits(packet.traffic_class)) leave_lane(in, packet);
    if ((packet.flags & flag_ack) != 0) return receive_ack(id);
    if (unordered()) return receive_unordered(id);
    receive_data(id);
}

inline void PacketEngine::forward(LinkId in, std::uint32_t id) {
    const Packet& packet = packets_[id];
    if (packet.flags >> routing_shift != 0 && !choose_link(id)) {
        if (has_credits(packet.traffic_class)) leave_lane(in, packet);
        return lose(id, totals_.lost_on_links);
    }
    const LinkId out = next_link(packet);
    Port& port = ports_[out];
    if ((port.discarding >> packet.traffic_class & 1) != 0) {
        if (has_credits(packet.traffic_class)) leave_lane(in, packet);
        return lose(id, discarded(port, packet.traffic_class));
    }
    const bool credits = has_credits(packet.traffic_class);
    if (discarding_arrivals_ > 0 &&
        (ports_[reverse_link(in)].discarding >> packet.traffic_class & 1) != 0) [[unlikely]] {
        return lose(id, totals_.lost_to_watchdog);
    }
    if (send_at_once(out, id)) {
        if (credits) leave_lane(in, packet);
        return;
    }
    IngressShare& share = ingress_[slot(in, packet.traffic_class)];
    if (credits) {
        share.bytes += packet.bytes;  // the sender knew that there was room
        return enqueue(out, id);
    }
    const bool lossless = spec_.classes[packet.traffic_class].lossless();
    const Queue& queue = queues_[slot(out, packet.traffic_class)];
    if (!lossless && queue.bytes + packet.bytes > spec_.lossy_queue_bytes) {
        if (trims(packet)) return trim_one(in, out, id);
        return lose(id, totals_.lost_lossy);
    }
    SwitchBuffer& buffer = buffers_[port.from];
    if (!buffer.admit(share, packet.bytes)) {
        if (!lossless && trims(packet)) return trim_one(in, out, id);
        return overflow(in, id);
    }
    if (buffer.must_pause(share)) send_pause(in, packet.traffic_class, true);
    enqueue(out, id);
}

// Where it is counted what a port throws away.
std::int64_t& PacketEngine::discarded(const Port& port, std::size_t traffic_class) {
    if (port.cut) return totals_.lost_on_links;
    return has_credits(traffic_class) ? totals_.lost_to_lifetime : totals_.lost_to_watchdog;
}

void PacketEngine::lose(std::uint32_t id, std::int64_t& counter) {
    ++counter;
    free_packet(id);
}

// A packet for which there is no room at the end of its link.
void PacketEngine::overflow(LinkId in, std::uint32_t id) {
    const std::size_t c = packets_[id].traffic_class;
    if (!spec_.classes[c].lossless()) return lose(id, totals_.lost_lossy);
    const bool past_pause =
        (ports_[in].unpausable >> c & 1) != 0 && ingress_[in * class_count_ + c].xoff;
    if (past_pause && heeds_pauses(in, c)) return lose(id, totals_.lost_to_watchdog);
    if (overflows_.empty()) overflows_.resize(links_.size());
    ++overflows_[in];
    lose(id, totals_.lost_lossless);
}

// A packet that need not wait passes without being queued or booked.
bool PacketEngine::send_at_once(LinkId link, std::uint32_t id) {
    const Port& port = ports_[link];
    const unsigned blocked = port.waiting | (unsigned{port.paused} & ~unsigned{port.unpausable});
    if (port.pending || port.busy_until > now_) return false;
    const std::size_t c = packets_[id].traffic_class;
    if ((blocked >> c & 1) != 0) return false;
    if (has_credits(c) && !affords(link, packets_[id])) return false;
    if (telemetry_wanted_ && !port.at_nic) write_telemetry(link, id, 0);
    transmit(link, id);
    return true;
}

void PacketEngine::enqueue(LinkId link, std::uint32_t id) {
    Packet& packet = packets_[id];
    Queue& queue = queues_[slot(link, packet.traffic_class)];
    packets_.next(id) = none;
    if (queue.head == none) {
        queue.head = id;
    } else {
        packets_.next(queue.tail) = id;
    }
    queue.tail = id;
    queue.bytes += packet.bytes;
    queue.bytes_max = std::max(queue.bytes_max, queue.bytes);
    Port& port = ports_[link];
    port.waiting |= static_cast<std::uint8_t>(1U << packet.traffic_class);
    if ((port.paused >> packet.traffic_class & 1) != 0) {
        watch(slot(link, packet.traffic_class));
    }
    if (!port.pending) kick(link);
}

// The first packet of a queue that is not empty; at a switch it leaves the buffer's books.
std::uint32_t PacketEngine::dequeue(LinkId link, std::size_t traffic_class) {
    const std::size_t s = link * class_count_ + traffic_class;
    Queue& queue = queues_[s];
    const std::uint32_t id = queue.head;
    queue.head = packets_.next(id);
    if (queue.head != none) fetch_line(&packets_[queue.head]);
    queue.bytes -= packets_[id].bytes;
    ++queue.taken;
    Port& port = ports_[link];
    if (queue.head == none && (!port.at_nic || turns_[s].empty())) {
        port.waiting &= static_cast<std::uint8_t>(~(1U << traffic_class));
    }
    if (!port.at_nic) {
        const LinkId in = last_link(packets_[id]);
        IngressShare& share = ingress_[in * class_count_ + traffic_class];
        if (has_credits(traffic_class)) {
            share.bytes -= packets_[id].bytes;
            leave_lane(in, packets_[id]);
            return id;
        }
        SwitchBuffer& buffer = buffers_[port.from];
        buffer.release(share, packets_[id].bytes);
        if (buffer.may_resume(share)) send_pause(in, traffic_class, false);
    }
    return id;
}

// What a switch does to a packet that has waited and now leaves: marks it, writes into it.
void PacketEngine::leave_switch(LinkId link, std::uint32_t id) {
    Packet& packet = packets_[id];
    if ((packet.flags & flag_ack) != 0) return;
    const std::int64_t behind = queues_[slot(link, packet.traffic_class)].bytes;
    if (behind > ports_[link].kmin_bytes && spec_.classes[packet.traffic_class].ecn &&
        !is_victim(link, packet.traffic_class) && links_[link].ecn.marks(behind, marking_)) {
        packet.flags |= flag_marked;
    }
    if (telemetry_wanted_) write_telemetry(link, id, behind);
}

void PacketEngine::write_telemetry(LinkId link, std::uint32_t id, std::int64_t queue_bytes) {
    const Packet& packet = packets_[id];
    if ((packet.flags & flag_ack) != 0) return;
    if (packet.place <= flows_[packet.flow].first) return;  // its flow has been rerouted
    // The first link of the path is the NIC's own.
    const std::size_t hop = packet.place - flows_[packet.flow].first - 1;
    telemetry_[id * telemetry_hops_ + hop] = {
        Picoseconds(now_), ports_[link].sent_bytes, queue_bytes,
        static_cast<double>(links_[link].rate.bits_per_second())};
}

void PacketEngine::transmit(LinkId link, std::uint32_t id) {
    Packet& packet = packets_[id];
    Port& port = ports_[link];
    const std::int64_t transfer = transfer_ps(packet.bytes, port.ps_per_byte);
    port.busy_until = now_ + transfer;
    port.sent_bytes += packet.bytes;
    if (has_credits(packet.traffic_class)) enter_lane(link, packet);
    if ((packet.flags & (flag_ack | flag_trimmed)) != 0) {
        ++totals_.ack_hops;
    } else {
        ++totals_.data_hops;
    }
    ++packet.place;
    if (port.faults != none && !crosses(link, id, now_, 0)) return;
    ++on_links_;
    schedule(now_ + until_there(link, packet), What::arrival, id);
}

// Strict classes first. The others in turn: a class may go on until it has sent its weight in full packets.
// What the last of them is too long counts against its next turn; what is left of a turn lapses.
std::size_t PacketEngine::next_class(LinkId link, unsigned sendable) {
    const unsigned strict = sendable & strict_classes_;
    if (strict != 0) return static_cast<std::size_t>(std::countr_zero(strict));
    if (deficits_.empty()) return static_cast<std::size_t>(std::countr_zero(sendable));
    Port& port = ports_[link];
    std::int64_t* left = &deficits_[link * class_count_];
    const std::size_t last = port.last_class;
    if ((sendable >> last & 1) != 0 && left[last] > 0) return last;
    left[last] = std::min<std::int64_t>(left[last], 0);
    const unsigned later = sendable & ~((2U << last) - 1U);
    const int next = std::countr_zero(later != 0 ? later : sendable);
    const auto c = static_cast<std::size_t>(next);
    left[c] += spec_.classes[c].weight * (spec_.payload_bytes + spec_.header_bytes);
    port.last_class = static_cast<std::uint8_t>(next);
    return c;
}

void PacketEngine::send_from_queue(LinkId link, std::size_t traffic_class) {
    const std::uint32_t id = dequeue(link, traffic_class);
    if (!ports_[link].at_nic) leave_switch(link, id);
    transmit(link, id);
}

// The port is idle, or was to become so now: the next packet goes out.
void PacketEngine::serve(LinkId link) {
    Port& port = ports_[link];
    port.pending = false;
    if (port.busy_until > now_) return kick(link);  // a pause frame came between
    const std::int64_t sent_before = port.sent_bytes;
    for (unsigned can = sendable(port); can != 0; can = sendable(port)) {
        const std::size_t c = next_class(link, can);
        if (has_credits(c) && starves(link, c)) continue;
        if (queues_[link * class_count_ + c].head != none) {
            send_from_queue(link, c);
        } else if (!send_in_turn(link, c)) {
            continue;
        }
        if (!deficits_.empty()) deficits_[link * class_count_ + c] -= port.sent_bytes - sent_before;
        break;
    }
    if (!port.pending) kick(link);
}

// Sees to it that the link is served as soon as it can be. Not while an event for it is pending.
void PacketEngine::kick(LinkId link) {
    Port& port = ports_[link];
    if (sendable(port) == 0) return;
    if (port.busy_until <= now_) return serve(link);
    if (port.busy_until == never_up) return;
    port.pending = true;
    schedule(port.busy_until, What::port_free, link);
}

// ---- looking at it ----

Picoseconds PacketEngine::paused_time(LinkId link, int traffic_class) const {
    const Pause& pause = pauses_[slot(link, traffic_class)];
    return Picoseconds(pause.total + (paused(link, traffic_class) ? now_ - pause.since : 0));
}

std::string PacketEngine::digest() const {
    Fingerprint digest;
    for (const Record& r : record_) digest.add(r.end);
    digest.add(totals_.events);
    digest.add(totals_.data_hops);
    digest.add(totals_.ack_hops);
    digest.add(totals_.pause_frames);
    digest.add(totals_.lost_lossless + totals_.lost_lossy + totals_.lost_to_watchdog +
               totals_.lost_to_lifetime + totals_.lost_on_links);
    if (spec_.trimming.enabled) digest.add(totals_.trimmed);
    if (spec_.link_retry.enabled) digest.add(totals_.replayed);
    return digest.hex();
}

std::string PacketEngine::audit() const {
    std::vector<std::int64_t> held(ingress_.size());
    std::uint64_t queued = 0;
    for (std::size_t s = 0; s < queues_.size(); ++s) {
        const Port& port = ports_[s / class_count_];
        std::int64_t bytes = 0;
        for (std::uint32_t id = queues_[s].head; id != none; id = packets_.next(id)) {
            bytes += packets_[id].bytes;
            ++queued;
            if (port.at_nic) continue;
            held[slot(last_link(packets_[id]), packets_[id].traffic_class)] += packets_[id].bytes;
        }
        if (bytes != queues_[s].bytes) return "a queue does not hold the bytes it counts";
    }
    std::vector<std::int64_t> in_pool(buffers_.size());
    std::vector<std::int64_t> in_headroom(buffers_.size());
    for (std::size_t s = 0; s < ingress_.size(); ++s) {
        const IngressShare& share = ingress_[s];
        const Port& port = ports_[s / class_count_];
        if (share.bytes + share.headroom_bytes != held[s])
            return "bytes are booked that are not there";
        if (share.headroom_bytes > share.headroom_size) return "a headroom is overdrawn";
        in_headroom[links_[s / class_count_].to] += share.headroom_bytes;
        const std::size_t c = s % class_count_;
        if (to_nic_[s / class_count_] == 0 && !has_credits(c))
            in_pool[links_[s / class_count_].to] +=
                buffers_[links_[s / class_count_].to].in_pool(share);
        const bool paused = (port.paused >> c & 1) != 0;
        if (paused && !has_credits(c) && !share.xoff && pauses_[s].until < now_) {
            return "a link is paused that nobody pauses";
        }
    }
    for (VertexId v = 0; v < buffers_.size(); ++v) {
        if (in_pool[v] != buffers_[v].pool_used())
            return "a switch's pool is not what its ports hold";
        if (in_headroom[v] != buffers_[v].headroom_used())
            return "a switch's headroom is not what its ports hold";
        if (buffers_[v].headroom_overdrawn()) return "a switch's headroom is overdrawn";
        if (buffers_[v].threshold() < 0) return "a switch's pool is overdrawn";
    }
    std::uint64_t unused = 0;
    for (std::uint32_t id = free_packets_; id != none; id = packets_.next(id)) ++unused;
    if (packets_.size() - unused != queued + on_links_) return "a packet is astray";
    if (spec_.link_retry.enabled) {
        if (const std::string problem = audit_retries(); !problem.empty()) return problem;
    }
    return audit_credits();
}

}  // namespace railyard
