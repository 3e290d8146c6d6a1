// PacketEngine: pause frames, storms and the watchdog.

#include "models/fabric/packet_engine.h"

namespace railyard {

std::int64_t PacketEngine::pause_length(LinkId link) const {
    constexpr std::int64_t quantum_bytes = 512 / 8;
    return transfer_ps(spec_.pause_quanta * quantum_bytes, ports_[link].ps_per_byte);
}

// The receiver of `link` tells its sender to stop, or to go on. The frame goes before everything that waits
// on the way back, and after what is being sent.
void PacketEngine::send_pause(LinkId link, std::size_t traffic_class, bool stop) {
    const std::size_t s = link * class_count_ + traffic_class;
    if (ingress_[s].xoff != stop) ++totals_.pause_frames;
    ingress_[s].xoff = stop;
    Port& back = ports_[reverse_link(link)];
    back.busy_until =
        std::max(back.busy_until, now_) + transfer_ps(spec_.pause_frame_bytes, back.ps_per_byte);
    schedule(back.busy_until + back.latency + spec_.pause_reaction.count(),
             stop ? What::xoff : What::xon, link, traffic_class);
    if (stop && !pauses_[s].refresh_pending) {
        pauses_[s].refresh_pending = true;
        schedule(now_ + pause_length(link) / 2, What::pause_refresh, link, traffic_class);
    }
}

void PacketEngine::on_pause_refresh(LinkId link, std::size_t traffic_class) {
    const std::size_t s = link * class_count_ + traffic_class;
    pauses_[s].refresh_pending = false;
    if (ingress_[s].xoff) send_pause(link, traffic_class, true);
}

void PacketEngine::on_xoff(LinkId link, std::size_t traffic_class) {
    Pause& pause = pauses_[link * class_count_ + traffic_class];
    Port& port = ports_[link];
    const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
    if ((port.paused & bit) == 0) {
        port.paused |= bit;
        pause.since = now_;
        ++pause.count;
    }
    pause.until = now_ + pause_length(link);
    if (pause.over_pending) return;
    pause.over_pending = true;
    schedule(pause.until, What::pause_over, link, traffic_class);
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

void PacketEngine::on_pause_over(LinkId link, std::size_t traffic_class) {
    Pause& pause = pauses_[link * class_count_ + traffic_class];
    pause.over_pending = false;
    if ((ports_[link].paused >> traffic_class & 1) == 0) return;
    if (pause.until <= now_) return on_xon(link, traffic_class);
    pause.over_pending = true;
    schedule(pause.until, What::pause_over, link, traffic_class);
}

void PacketEngine::storm(LinkId link, int traffic_class, Picoseconds start, Picoseconds end) {
    const auto c = static_cast<std::size_t>(traffic_class);
    schedule(start.count(), What::storm_start, link, c);
    if (end != never) schedule(end.count(), What::storm_end, link, c);
}

void PacketEngine::on_storm(LinkId link, std::size_t traffic_class, bool starts) {
    send_pause(link, traffic_class, starts);
}

void PacketEngine::on_watchdog_poll() {
    for (std::size_t s = 0; s < watchdogs_.size(); ++s) {
        const auto link = static_cast<LinkId>(s / class_count_);
        const std::size_t c = s % class_count_;
        Port& port = ports_[link];
        if (port.at_nic || !spec_.classes[c].lossless) continue;
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
