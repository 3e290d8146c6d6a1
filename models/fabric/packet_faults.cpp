#include "models/fabric/packet_faults.h"

#include "sim/check.h"

namespace railyard {

PacketFaults::PacketFaults(PacketRun& run, PacketPorts& ports) : run_(run), ports_(ports) {
    for (LinkId l = 0; l < ports_.links(); ++l) {
        if (ports_.link(l).bit_error_rate > 0) of(l);
    }
}

LinkFaults& PacketFaults::of(LinkId link) {
    LinkPort& port = ports_.port(link);
    if (port.faults == PacketRun::none) {
        port.faults = static_cast<std::uint32_t>(faults_.size());
        faults_.emplace_back(ports_.link(link).bit_error_rate,
                             RandomStream(run_.spec.seed, link, "packet/bit errors"));
        retries_.emplace_back();
    }
    return faults_[port.faults];
}

void PacketFaults::flap(LinkId link, Picoseconds down, Picoseconds up) {
    RY_CHECK(run_.now <= down.count() && down < up);
    for (const LinkId l : {link, reverse_link(link)}) {
        of(l).add_outage(down.count(), up.count());
        run_.schedule(down.count(), PacketEvent::link_down, l);
        if (up != Picoseconds::max()) run_.schedule(up.count(), PacketEvent::link_up, l);
    }
}

PacketFaults::Fate PacketFaults::cross(LinkId link, std::uint32_t id, std::int64_t sent,
                                       std::int64_t there, std::int64_t tries) {
    const std::int64_t bytes = run_.packets[id].bytes;
    const LinkPort& port = ports_.port(link);
    LinkFaults& faults = faults_[port.faults];
    const bool wrong = faults.flips(bytes);
    if (faults.cut(sent, there) || (wrong && !run_.spec.link_retry.enabled)) return Fate::lost;
    LinkRetry& retry = retries_[port.faults];
    if (retry.refuses()) {
        retry.refuse_later(id, bytes);
        return Fate::kept;
    }
    if (!wrong) return Fate::crosses;
    const std::int64_t told =
        sent + transfer_ps(bytes, port.ps_per_byte) + port.latency + ports_.back(link).latency;
    retry.refuse(id, bytes, told, tries);
    run_.schedule(told, PacketEvent::replay, link);
    return Fate::kept;
}

std::string PacketFaults::audit() const {
    for (LinkId l = 0; l < ports_.links() && run_.spec.link_retry.enabled; ++l) {
        const LinkPort& port = ports_.port(l);
        if (port.faults == PacketRun::none) continue;
        const std::int64_t kept = retries_[port.faults].bytes_max() - 2 * run_.full_packet();
        const std::int64_t round_trip = port.latency + ports_.port(reverse_link(l)).latency;
        if (kept > 0 && transfer_ps(kept, port.ps_per_byte) > round_trip + 1) {
            return "a link keeps more to send again than its round trip holds";
        }
    }
    return {};
}

}  // namespace railyard
