#include "models/fabric/packet_pauses.h"

#include <fmt/format.h>

#include <utility>

#include "sim/check.h"

namespace railyard {

PacketPauses::PacketPauses(PacketRun& run, PacketPorts& ports, std::size_t vertices)
    : run_(run), ports_(ports), pauses_(ports.slots()) {
    RY_CHECK(run_.spec.pause_quanta > 1);  // half of it is the time between renewals
    for (std::size_t s = 0; s < ports_.slots(); ++s) {
        if (!ports_.heeds_pauses(ports_.link_of(s), ports_.class_of(s))) ++ignored_;
    }
    if (run_.spec.watchdog.action != WatchdogAction::none) set_up_watchdogs(vertices);
}

void PacketPauses::set_up_watchdogs(std::size_t vertices) {
    const WatchdogSpec& spec = run_.spec.watchdog;
    RY_CHECK(spec.poll.count() > 0);
    watchdogs_.resize(ports_.slots());
    rounds_.resize(vertices);
    for (VertexId v = 0; v < vertices && !spec.polls_together; ++v) {
        RandomStream random(run_.spec.seed, 0, fmt::format("packet/watchdog/{}", v));
        rounds_[v].offset =
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(spec.poll.count())));
    }
}

std::int64_t PacketPauses::length(LinkId link) const {
    constexpr std::int64_t quantum_bytes = 512 / 8;
    return transfer_ps(run_.spec.pause_quanta * quantum_bytes, ports_.port(link).ps_per_byte);
}

// The frame goes before everything that waits on the way back, and after what is being sent.
//
// Until it sends XON, or is muted, the receiver sends the same XOFF again at every half of its length. Such
// a frame changes nothing at the sender: it is reckoned, not sent, and takes no bandwidth (64 B in 42 us
// at 400 Gbit/s, 0.003 %).
void PacketPauses::send(LinkId link, std::size_t traffic_class, bool stop) {
    const std::size_t s = ports_.slot(link, traffic_class);
    const bool changed = std::exchange(ports_.share(s).xoff, stop) != stop;
    Pause& pause = pauses_[s];
    if (pause.muted) return;
    if (changed) ++run_.totals.pause_frames;
    LinkPort& back = ports_.back(link);
    back.busy_until = std::max(back.busy_until, run_.now) +
                      transfer_ps(run_.spec.pause_frame_bytes, back.ps_per_byte);
    const std::int64_t heeded = back.busy_until + back.latency + run_.spec.pause_reaction.count();
    if (stop) pause.sent = back.busy_until;
    pause.until = stop ? PacketRun::unset : heeded;
    run_.schedule(heeded, stop ? PacketEvent::xoff : PacketEvent::xon, link, traffic_class);
}

void PacketPauses::log(LinkId link, std::size_t traffic_class, bool waits) {
    if (log_ == nullptr) return;
    log_->push_back({run_.time(), link, static_cast<int>(traffic_class), waits});
}

void PacketPauses::stop(LinkId link, std::size_t traffic_class) {
    const std::size_t s = ports_.slot(link, traffic_class);
    if (ports_.paused(s) || !ports_.heeds_pauses(link, traffic_class)) return;
    ports_.port(link).paused |= static_cast<std::uint8_t>(1U << traffic_class);
    pauses_[s].since = run_.now;
    ++pauses_[s].count;
    log(link, traffic_class, true);
    watch(s);
}

bool PacketPauses::go_on(LinkId link, std::size_t traffic_class) {
    const std::size_t s = ports_.slot(link, traffic_class);
    if (!ports_.paused(s)) return false;
    ports_.port(link).paused &= static_cast<std::uint8_t>(~(1U << traffic_class));
    pauses_[s].total += run_.now - pauses_[s].since;
    log(link, traffic_class, false);
    watch(s);
    return true;
}

void PacketPauses::mute(LinkId link) {
    const std::int64_t half = length(link) / 2;
    for (std::size_t c = 0; c < ports_.classes(); ++c) {
        const std::size_t s = ports_.slot(link, c);
        Pause& pause = pauses_[s];
        if (std::exchange(pause.muted, true)) continue;
        if (!ports_.share(s).xoff || ports_.has_credits(c)) continue;
        const std::int64_t renewals = std::max<std::int64_t>(0, run_.now - pause.sent) / half;
        pause.until = pause.sent + renewals * half + ports_.back(link).latency +
                      run_.spec.pause_reaction.count() + length(link);
        run_.schedule(pause.until, PacketEvent::pause_over, link, c);
    }
}

bool PacketPauses::unmute(LinkId link, std::size_t traffic_class) {
    const std::size_t s = ports_.slot(link, traffic_class);
    if (!std::exchange(pauses_[s].muted, false)) return false;
    if (ports_.share(s).xoff && !ports_.has_credits(traffic_class)) send(link, traffic_class, true);
    return true;
}

bool PacketPauses::storm(std::size_t s, bool starts) {
    Pause& pause = pauses_[s];
    const bool stormed = pause.storms > 0;
    pause.storms += starts ? 1 : -1;
    return !pause.full && stormed != (pause.storms > 0);
}

void PacketPauses::fill(LinkId link, std::size_t traffic_class, bool full) {
    Pause& pause = pauses_[ports_.slot(link, traffic_class)];
    pause.full = full;
    if (pause.storms == 0) send(link, traffic_class, full);
}

void PacketPauses::watch(std::size_t s) {
    if (watchdogs_.empty() || watchdogs_[s].watching() || !watched(s)) return;
    const LinkPort& port = ports_.port(ports_.link_of(s));
    const FlowControl control = run_.spec.classes[ports_.class_of(s)].flow_control;
    if (port.at_nic || control != FlowControl::pfc) return;
    PollRound& round = rounds_[port.from];
    const std::int64_t poll = run_.spec.watchdog.poll.count();
    const std::int64_t last = run_.now - (run_.now - round.offset + poll) % poll;
    // What the last poll would have seen. (Packets sent since then, before the pause, are taken for older.)
    const Pause& pause = pauses_[s];
    watchdogs_[s].start({false, ports_.queue(s).taken,
                         Picoseconds(pause.total + std::max<std::int64_t>(0, last - pause.since))});
    round.slots.push_back(s);
    if (round.pending) return;
    round.pending = true;
    run_.schedule(last + poll, PacketEvent::watchdog_poll, port.from);
}

PfcWatchdog::Change PacketPauses::poll(std::size_t s) {
    const WatchdogSpec& spec = run_.spec.watchdog;
    const LinkQueue& queue = ports_.queue(s);
    const auto change =
        watchdogs_[s].poll(spec, {queue.head != PacketRun::none, queue.taken, time(s)});
    if (change == PfcWatchdog::Change::none) return change;
    const bool stormed = change == PfcWatchdog::Change::detected;
    if (stormed) ++run_.totals.storms_detected;
    const auto set = [&](std::uint8_t& mask) {
        const auto bit = static_cast<std::uint8_t>(1U << ports_.class_of(s));
        mask = static_cast<std::uint8_t>(stormed ? mask | bit : mask & ~bit);
    };
    LinkPort& port = ports_.port(ports_.link_of(s));
    if (spec.action == WatchdogAction::drop) {
        if (!port.cut) set(port.discarding);
        if (spec.drops_arrivals) refusing_ += stormed ? 1 : -1;
    } else if (spec.action == WatchdogAction::forward) {
        set(port.unpausable);
        ignored_ += stormed ? 1 : -1;
    }
    return change;
}

void PacketPauses::end_round(VertexId v) {
    PollRound& round = rounds_[v];
    std::erase_if(round.slots, [&](std::size_t s) {
        if (watched(s)) return false;
        watchdogs_[s].stop();
        return true;
    });
    round.pending = !round.slots.empty();
    if (!round.pending) return;
    run_.schedule(run_.now + run_.spec.watchdog.poll.count(), PacketEvent::watchdog_poll, v);
}

std::string PacketPauses::audit() const {
    for (std::size_t s = 0; s < pauses_.size(); ++s) {
        if (ports_.paused(s) && !ports_.has_credits(ports_.class_of(s)) && !ports_.share(s).xoff &&
            pauses_[s].until < run_.now) {
            return "a link is paused that nobody pauses";
        }
    }
    return {};
}

}  // namespace railyard
