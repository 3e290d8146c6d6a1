#include "models/fabric/packet_deadlock.h"

#include <algorithm>
#include <map>
#include <utility>

namespace railyard {

bool PacketWaits::stopped(std::size_t s) const {
    return (ports_.port(ports_.link_of(s)).stopped() >> ports_.class_of(s) & 1) != 0;
}

// For every packet that is queued at a switch for one of `outs` (1): call(slot it came by, slot, packet).
template <class Call>
void PacketWaits::each_waiting(const std::vector<std::uint8_t>& outs, Call call) const {
    for (std::size_t s = 0; s < ports_.slots(); ++s) {
        if (outs[s] == 0 || ports_.port(ports_.link_of(s)).at_nic) continue;
        for (std::uint32_t id = ports_.queue(s).head; id != PacketRun::none;
             id = packets_.next(id)) {
            const Packet& packet = packets_[id];
            call(ports_.slot(packets_.last_link(packet), packet.traffic_class), s, packet);
        }
    }
}

// Whether what stops a slot goes on, given whether the switch at its end would have room.
bool PacketWaits::stays_stopped(std::size_t s, bool room) const {
    const bool full = ports_.to_switch(ports_.link_of(s)) && !room;
    if (has_credits(s)) return full || ports_.share(s).xoff || links_.pauses.muted(s);
    // XON may be on its way; and the pauses of one who is mute run out.
    if (!ports_.share(s).xoff || links_.pauses.muted(s)) return false;
    return full || !ports_.to_switch(ports_.link_of(s));
}

// Slots that stay stopped even when everything else has drained. Found by taking back: all
// that are stopped; less those whose receivers would let them go on if only what waits for the rest were
// left; until that takes back none.
std::vector<std::uint8_t> PacketWaits::frozen() const {
    std::vector<std::uint8_t> frozen(ports_.slots());
    for (std::size_t s = 0; s < frozen.size(); ++s) frozen[s] = stopped(s) ? 1 : 0;
    for (bool changed = true; changed;) {
        changed = false;
        std::vector<std::int64_t> bytes(frozen.size());
        std::vector<std::int64_t> blocks(frozen.size());
        each_waiting(frozen, [&](std::size_t in, std::size_t, const Packet& packet) {
            bytes[in] += packet.bytes;
            blocks[in] += links_.credits.blocks(packet);
        });
        std::vector<SwitchBuffer> buffers = ports_.buffers();
        auto shares = ports_.shares();
        std::vector<std::int64_t> drained(shares.size());
        for (std::size_t s = 0; s < shares.size(); ++s) {
            if (has_credits(s)) continue;
            drained[s] = shares[s].bytes + shares[s].headroom_bytes - bytes[s];
            if (drained[s] > 0)
                buffers[ports_.link(ports_.link_of(s)).to].release(shares[s], drained[s]);
        }
        for (std::size_t s = 0; s < frozen.size(); ++s) {
            if (frozen[s] == 0) continue;
            const bool room =
                has_credits(s)
                    ? links_.credits.has_room(s, blocks[s])
                    : drained[s] > 0 &&  // a switch looks when one leaves
                          buffers[ports_.link(ports_.link_of(s)).to].may_resume(shares[s]);
            if (!stays_stopped(s, room)) {
                frozen[s] = 0;
                changed = true;
            }
        }
    }
    return frozen;
}

std::vector<LinkId> PacketWaits::deadlock() const {
    const std::vector<std::uint8_t> stuck = frozen();
    std::vector<std::pair<std::size_t, std::size_t>> waits;  // slot, and the one that it waits for
    each_waiting(stuck, [&](std::size_t in, std::size_t out, const Packet&) {
        if (stuck[in] != 0) waits.emplace_back(in, out);
    });
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    const auto first_of = [&](std::size_t s) {
        const auto at = std::lower_bound(waits.begin(), waits.end(), std::pair(s, std::size_t{0}));
        return static_cast<std::size_t>(at - waits.begin());
    };

    enum class Seen : std::uint8_t { no, on_path, done };
    std::vector<Seen> seen(stuck.size(), Seen::no);
    struct Step {
        std::size_t s;
        std::size_t next;  // of `waits`, to look at
    };
    std::vector<Step> path;
    const auto enter = [&](std::size_t s) {
        seen[s] = Seen::on_path;
        path.push_back({s, first_of(s)});
    };
    for (std::size_t start = 0; start < stuck.size(); ++start) {
        if (stuck[start] == 0 || seen[start] != Seen::no) continue;
        enter(start);
        while (!path.empty()) {
            Step& step = path.back();
            if (step.next == waits.size() || waits[step.next].first != step.s) {
                seen[step.s] = Seen::done;
                path.pop_back();
                continue;
            }
            const std::size_t next = waits[step.next++].second;
            if (seen[next] == Seen::no) {
                enter(next);
            } else if (seen[next] == Seen::on_path) {
                std::vector<LinkId> cycle;
                auto at = path.begin();
                while (at->s != next) ++at;
                for (; at != path.end(); ++at) cycle.push_back(ports_.link_of(at->s));
                return cycle;
            }
        }
    }
    return {};
}

std::vector<LinkId> PacketWaits::pauser_chain(LinkId link, int traffic_class) const {
    std::vector<LinkId> chain = {link};
    const auto c = static_cast<std::size_t>(traffic_class);
    std::vector<std::uint8_t> outs(ports_.slots());
    for (LinkId l = 0; l < ports_.links(); ++l) outs[ports_.slot(l, c)] = 1;
    // What waits, by the slot that it came by and the one that it goes out by.
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> waiting;
    each_waiting(outs, [&](std::size_t in, std::size_t out, const Packet& packet) {
        waiting[{in, out}] += packet.bytes;
    });
    for (;;) {
        const std::size_t s = ports_.slot(chain.back(), c);
        if (!stopped(s) || !ports_.to_switch(chain.back())) return chain;
        std::int64_t most = 0;
        LinkId next = 0;
        for (auto at = waiting.lower_bound({s, 0}); at != waiting.end() && at->first.first == s;
             ++at) {
            if (at->second <= most) continue;
            most = at->second;
            next = ports_.link_of(at->first.second);
        }
        if (most == 0) return chain;
        const bool again = std::ranges::find(chain, next) != chain.end();
        chain.push_back(next);
        if (again) return chain;
    }
}

}  // namespace railyard
