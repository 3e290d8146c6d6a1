// PacketEngine: links that send again what came with wrong bits.

#include "models/fabric/link_retry.h"

#include <algorithm>

#include "models/catalogue/catalogue.h"
#include "models/fabric/packet_engine.h"

namespace railyard {

LinkRetrySpec read_link_retry(Catalogue& catalogue) {
    return {true, catalogue.integer("link_level_retry", "", "replays")};
}

// Whether a packet that leaves at `sent` arrives; else it is lost, or kept to be sent again.
bool PacketEngine::crosses(LinkId link, std::uint32_t id, std::int64_t sent, std::int64_t tries) {
    const Packet& packet = packets_[id];
    const Port& port = ports_[link];
    LinkFaults& faults = faults_[port.faults];
    const bool wrong = faults.flips(packet.bytes);
    if (faults.cut(sent, sent + until_there(link, packet)) ||
        (wrong && !spec_.link_retry.enabled)) {
        // The receiver's count of blocks is put right by the next update.
        if (has_credits(packet.traffic_class)) leave_lane(link, packet);
        lose(id, totals_.lost_on_links);
        return false;
    }
    LinkRetry& retry = retries_[port.faults];
    if (!wrong && !retry.refuses()) return true;
    ++on_links_;
    if (retry.refuses()) {
        retry.refuse_later(id, packet.bytes);
    } else {
        const std::int64_t told = sent + transfer_ps(packet.bytes, port.ps_per_byte) +
                                  port.latency + ports_[reverse_link(link)].latency;
        retry.refuse(id, packet.bytes, told, tries);
        schedule(told, What::replay, link);
    }
    return false;
}

void PacketEngine::on_replay(LinkId link) {
    Port& port = ports_[link];
    LinkRetry& retry = retries_[port.faults];
    if (retry.told() != now_) return;  // its cable went down meanwhile
    if (retry.tries() == spec_.link_retry.replays) return give_up_replay(link);
    std::int64_t at = std::max(now_, port.busy_until);
    std::int64_t tries = retry.tries() + 1;
    for (const std::uint32_t id : retry.take()) {
        const Packet& packet = packets_[id];
        const std::int64_t transfer = transfer_ps(packet.bytes, port.ps_per_byte);
        ++totals_.replayed;
        --on_links_;
        port.sent_bytes += packet.bytes;
        if (crosses(link, id, at, tries)) {
            ++on_links_;
            schedule(at + until_there(link, packet), What::arrival, id);
        }
        at += transfer;
        tries = 0;
    }
    port.busy_until = at;
}

void PacketEngine::give_up_replay(LinkId link) {
    for (const std::uint32_t id : retries_[ports_[link].faults].take()) {
        if (has_credits(packets_[id].traffic_class)) leave_lane(link, packets_[id]);
        --on_links_;
        lose(id, totals_.lost_on_links);
    }
}

std::string PacketEngine::audit_retries() const {
    for (LinkId l = 0; l < links_.size(); ++l) {
        const Port& port = ports_[l];
        if (port.faults == none) continue;
        const std::int64_t frame = spec_.payload_bytes + spec_.header_bytes;
        const std::int64_t kept = retries_[port.faults].bytes_max() - 2 * frame;
        const std::int64_t round_trip = port.latency + ports_[reverse_link(l)].latency;
        if (kept > 0 && transfer_ps(kept, port.ps_per_byte) > round_trip + 1) {
            return "a link keeps more to send again than its round trip holds";
        }
    }
    return {};
}

}  // namespace railyard
