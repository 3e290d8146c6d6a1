// PacketEngine: pause frames, storms and the watchdog.

#include <utility>

#include "models/fabric/packet_engine.h"

namespace railyard {

std::int64_t PacketEngine::pause_length(LinkId link) const {
    constexpr std::int64_t quantum_bytes = 512 / 8;
    return transfer_ps(spec_.pause_quanta * quantum_bytes, ports_[link].ps_per_byte);
}

// The receiver of `link` tells its sender to stop, or to go on. The frame goes before everything that waits
// on the way back, and after what is being sent.
//
// Until it sends XON, or is muted, the receiver sends the same XOFF again at every half of its length. Such
// a frame changes nothing at the sender: it is reckoned, not sent, and takes no bandwidth (64 B in 42 us
// at 400 Gbit/s, 0.003 %).
void PacketEngine::send_pause(LinkId link, std::size_t traffic_class, bool stop) {
    const std::size_t s = link * class_count_ + traffic_class;
    const bool changed = ingress_[s].xoff != stop;
    ingress_[s].xoff = stop;
    Pause& pause = pauses_[s];
    if (pause.muted) return;
    if (changed) ++totals_.pause_frames;
    Port& back = ports_[reverse_link(link)];
    back.busy_until =
        std::max(back.busy_until, now_) + transfer_ps(spec_.pause_frame_bytes, back.ps_per_byte);
    const std::int64_t heeded = back.busy_until + back.latency + spec_.pause_reaction.count();
    if (stop) pause.sent = back.busy_until;
    pause.until = stop ? unset : heeded;
    schedule(heeded, stop ? What::xoff : What::xon, link, traffic_class);
}

void PacketEngine::log_pause(LinkId link, std::size_t traffic_class, bool waits) {
    if (pause_log_ == nullptr) return;
    pause_log_->push_back({now(), link, static_cast<int>(traffic_class), waits});
}

void PacketEngine::on_xoff(LinkId link, std::size_t traffic_class) {
    Port& port = ports_[link];
    const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
    if ((port.paused & bit) != 0 || !heeds_pauses(link, traffic_class)) return;
    port.paused |= bit;
    Pause& pause = pauses_[link * class_count_ + traffic_class];
    pause.since = now_;
    ++pause.count;
    log_pause(link, traffic_class, true);
    watch(link * class_count_ + traffic_class);
}

void PacketEngine::on_xon(LinkId link, std::size_t traffic_class) {
    Port& port = ports_[link];
    const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
    if ((port.paused & bit) == 0) return;
    port.paused &= static_cast<std::uint8_t>(~bit);
    Pause& pause = pauses_[link * class_count_ + traffic_class];
    pause.total += now_ - pause.since;
    log_pause(link, traffic_class, false);
    watch(link * class_count_ + traffic_class);
    if (!port.pending) kick(link);
}

void PacketEngine::mute(LinkId link) {
    const Port& back = ports_[reverse_link(link)];
    const std::int64_t length = pause_length(link);
    for (std::size_t c = 0; c < class_count_; ++c) {
        const std::size_t s = link * class_count_ + c;
        Pause& pause = pauses_[s];
        if (pause.muted) continue;
        pause.muted = true;
        if (!ingress_[s].xoff || has_credits(c)) continue;
        const std::int64_t renewals = std::max<std::int64_t>(0, now_ - pause.sent) / (length / 2);
        pause.until = pause.sent + renewals * (length / 2) + back.latency +
                      spec_.pause_reaction.count() + length;
        schedule(pause.until, What::pause_over, link, c);
    }
}

void PacketEngine::unmute(LinkId link) {
    for (std::size_t c = 0; c < class_count_; ++c) {
        const std::size_t s = link * class_count_ + c;
        if (!pauses_[s].muted) continue;
        pauses_[s].muted = false;
        if (has_credits(c)) {
            return_withheld(link, c);
        } else if (ingress_[s].xoff) {
            send_pause(link, c, true);
        }
    }
}

void PacketEngine::on_pause_over(LinkId link, std::size_t traffic_class) {
    if (pauses_[link * class_count_ + traffic_class].until == now_) on_xon(link, traffic_class);
}

void PacketEngine::storm(LinkId link, int traffic_class, Picoseconds start, Picoseconds end) {
    const auto c = static_cast<std::size_t>(traffic_class);
    schedule(start.count(), What::storm_start, link, c);
    if (end != never) schedule(end.count(), What::storm_end, link, c);
}

// One more reason, or one less, for the NIC at the end of `link` to pause it.
void PacketEngine::hold(LinkId link, std::size_t traffic_class, bool starts) {
    std::int32_t& reasons = pauses_[link * class_count_ + traffic_class].reasons;
    const std::int32_t before = std::exchange(reasons, reasons + (starts ? 1 : -1));
    if (before > 0 && reasons > 0) return;
    if (has_credits(traffic_class)) return withhold_credits(link, traffic_class, starts);
    send_pause(link, traffic_class, starts);
}

bool PacketEngine::watched(std::size_t s) const {
    const bool paused = (ports_[s / class_count_].paused >> (s % class_count_) & 1) != 0;
    return watchdogs_[s].wanted(paused, queues_[s].head != none);
}

// Sees to it that a queue is polled if that can change anything.
void PacketEngine::watch(std::size_t s) {
    if (watchdogs_.empty() || watchdogs_[s].watching() || !watched(s)) return;
    const Port& port = ports_[s / class_count_];
    if (port.at_nic || spec_.classes[s % class_count_].flow_control != FlowControl::pfc) return;
    PollRound& round = rounds_[port.from];
    const std::int64_t poll = spec_.watchdog.poll.count();
    const std::int64_t last = now_ - (now_ - round.offset + poll) % poll;
    // What the last poll would have seen. (Packets sent since then, before the pause, are taken for older.)
    const Pause& pause = pauses_[s];
    watchdogs_[s].start({false, queues_[s].taken,
                         Picoseconds(pause.total + std::max<std::int64_t>(0, last - pause.since))});
    round.slots.push_back(s);
    if (round.pending) return;
    round.pending = true;
    schedule(last + poll, What::watchdog_poll, port.from);
}

void PacketEngine::on_watchdog_poll(VertexId v) {
    PollRound& round = rounds_[v];
    for (const std::size_t s : round.slots) poll_watchdog(s);
    std::erase_if(round.slots, [&](std::size_t s) {
        if (watched(s)) return false;
        watchdogs_[s].stop();
        return true;
    });
    round.pending = !round.slots.empty();
    if (round.pending) schedule(now_ + spec_.watchdog.poll.count(), What::watchdog_poll, v);
}

void PacketEngine::poll_watchdog(std::size_t s) {
    const auto link = static_cast<LinkId>(s / class_count_);
    const std::size_t c = s % class_count_;
    Port& port = ports_[link];
    const auto change = watchdogs_[s].poll(
        spec_.watchdog,
        {queues_[s].head != none, queues_[s].taken, paused_time(link, static_cast<int>(c))});
    if (change == PfcWatchdog::Change::none) return;
    const bool stormed = change == PfcWatchdog::Change::detected;
    if (stormed) ++totals_.storms_detected;
    const auto set = [&](std::uint8_t& mask) {
        const auto bit = static_cast<std::uint8_t>(1U << c);
        mask = static_cast<std::uint8_t>(stormed ? mask | bit : mask & ~bit);
    };
    if (spec_.watchdog.action == WatchdogAction::drop) {
        if (!port.cut) set(port.discarding);
        if (spec_.watchdog.drops_arrivals) discarding_arrivals_ += stormed ? 1 : -1;
        if (stormed) flush(link, c, totals_.lost_to_watchdog);
    } else if (spec_.watchdog.action == WatchdogAction::forward) {
        set(port.unpausable);
        ignored_pauses_ += stormed ? 1 : -1;
        if (!port.pending) kick(link);
    }
}

// Throws away what a switch's queue holds.
void PacketEngine::flush(LinkId link, std::size_t traffic_class, std::int64_t& counter) {
    while (queues_[link * class_count_ + traffic_class].head != none) {
        lose(dequeue(link, traffic_class), counter);
    }
}

}  // namespace railyard
