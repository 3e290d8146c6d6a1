// PacketEngine: pause frames, storms and the watchdog.

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

void PacketEngine::on_xoff(LinkId link, std::size_t traffic_class) {
    Port& port = ports_[link];
    const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
    if ((port.paused & bit) != 0) return;
    port.paused |= bit;
    Pause& pause = pauses_[link * class_count_ + traffic_class];
    pause.since = now_;
    ++pause.count;
}

void PacketEngine::on_xon(LinkId link, std::size_t traffic_class) {
    Port& port = ports_[link];
    const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
    if ((port.paused & bit) == 0) return;
    port.paused &= static_cast<std::uint8_t>(~bit);
    Pause& pause = pauses_[link * class_count_ + traffic_class];
    pause.total += now_ - pause.since;
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

void PacketEngine::on_storm(LinkId link, std::size_t traffic_class, bool starts) {
    if (has_credits(traffic_class)) return withhold_credits(link, traffic_class, starts);
    send_pause(link, traffic_class, starts);
}

void PacketEngine::on_watchdog_poll() {
    for (std::size_t s = 0; s < watchdogs_.size(); ++s) {
        const auto link = static_cast<LinkId>(s / class_count_);
        const std::size_t c = s % class_count_;
        Port& port = ports_[link];
        if (port.at_nic || spec_.classes[c].flow_control != FlowControl::pfc) continue;
        const auto change = watchdogs_[s].poll(
            spec_.watchdog,
            {queues_[s].head != none, queues_[s].taken, paused_time(link, static_cast<int>(c))});
        if (change == PfcWatchdog::Change::none) continue;
        const bool stormed = change == PfcWatchdog::Change::detected;
        if (stormed) ++totals_.storms_detected;
        const auto set = [&](std::uint8_t& mask) {
            const auto bit = static_cast<std::uint8_t>(1U << c);
            mask = static_cast<std::uint8_t>(stormed ? mask | bit : mask & ~bit);
        };
        if (spec_.watchdog.action == WatchdogAction::drop) {
            set(port.discarding);
            if (stormed) flush(link, c);
        } else if (spec_.watchdog.action == WatchdogAction::forward) {
            set(port.unpausable);
            if (!port.pending) kick(link);
        }
    }
    schedule(now_ + spec_.watchdog.poll.count(), What::watchdog_poll, 0);
}

// Throws away what a switch's queue holds.
void PacketEngine::flush(LinkId link, std::size_t traffic_class) {
    while (queues_[link * class_count_ + traffic_class].head != none) {
        lose(dequeue(link, traffic_class), totals_.lost_to_watchdog);
    }
}

}  // namespace railyard
