#pragma once
// The packet scale: every data packet, acknowledgement and pause frame, on a picosecond clock.
//
// A NIC paces each of its queue pairs, takes them in turn, and stops when the switch above it says so. Flows
// that continue one another are messages of one queue pair: its pace outlives them, and they go in order. A
// switch queues packets at their way out, one queue per class, and books them in its buffer on their way in
// (switch_buffer.h); PFC, ECN, congestion control and the watchdog follow from there. Flows bring their own
// paths. What is modelled, what is left out, and what it was held against: README.md, "Packets".
//
// Same network, spec and flows: the same events in the same order, everywhere.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/fabric/congestion.h"
#include "models/fabric/packet_flows.h"
#include "models/fabric/packet_links.h"
#include "models/fabric/packet_receivers.h"
#include "models/fabric/packet_senders.h"
#include "models/fabric/packet_spec.h"

namespace railyard {

class PacketEngine {
  public:
    // No congestion control given: line rate.
    PacketEngine(const PacketNetwork& network, PacketSpec spec,
                 std::unique_ptr<Congestion> congestion = no_congestion_control());

    // Keeps from now on when a sender on a link is told to wait, or lacks credits, and when no more.
    void log_pauses(std::vector<PauseEdge>& log) { parts_->links.pauses.log_to(log); }
    // What flows that don't keep to one path choose from: of the network's own topology.
    // Again when they have changed.
    void choose_from(NextHops next_hops) { parts_->links.ways.choose_from(std::move(next_hops)); }
    // Room for so many flows, on as many queue pairs, so that adding them copies none.
    void expect(std::size_t flows);
    // Its index. Before the clock passes its start.
    std::size_t add(const PacketFlow& flow);
    // From now on the flow's queue pair takes this path, by the same first link. Packets under way keep
    // theirs.
    void reroute(std::size_t flow, const std::vector<LinkId>& path);
    // The NIC at the end of `link` pauses it for a class, or returns no credits, from `start` to `end`,
    // whatever its own state. Storms may overlap: it goes on when the last of them is over.
    void storm(LinkId link, int traffic_class, Picoseconds start, Picoseconds end);
    // The end of `link` can no longer reach its sender (the way back is down): it returns no credits, its
    // pauses are not renewed and run out. unmute: it can again, and sends pauses and credits that it held
    // back.
    void mute(LinkId link) { parts_->links.mute(link); }
    void unmute(LinkId link) { parts_->links.unmute(link); }

    // The cable of `link` is down between these instants: it carries nothing in either direction. What is
    // on it is lost, and so is all that a switch holds for it or is to send by it; a NIC waits. Pauses
    // across it run out, and come again when it is up.
    void flap(LinkId link, Picoseconds down, Picoseconds up) {
        parts_->links.faults.flap(link, down, up);
    }
    // The NIC at the end of `link` takes packets at no more than this rate between these instants. Once for
    // each link.
    void slow_receiver(LinkId link, Bandwidth rate, Picoseconds from, Picoseconds until) {
        parts_->links.slow_receivers.add(link, rate, from, until);
    }

    // Handles every event up to `until`, and sets the clock there; or until all flows have ended or failed
    // (the clock stands at the last event), or so many events are handled. False: there is more to do.
    bool run(Picoseconds until, std::uint64_t events_max = UINT64_MAX);

    Picoseconds now() const { return parts_->run.time(); }

    static constexpr Picoseconds never = Picoseconds::max();
    // The last ACK at the sender.
    Picoseconds end(std::size_t flow) const { return parts_->flows[flow].end; }
    // It has started, and all before it on its queue pair has been sent.
    bool begun(std::size_t flow) const {
        const FlowRecord& r = parts_->flows[flow];
        return r.first != PacketRun::none && parts_->senders.pair(r.queue_pair).sent >= r.first;
    }
    bool failed(std::size_t flow) const { return failed_at(flow) != never; }
    // When it gave up; never: it did not.
    Picoseconds failed_at(std::size_t flow) const { return parts_->flows[flow].failed_at; }
    // On a queue pair, earlier flows are filled first, whatever came first.
    std::int64_t received_bytes(std::size_t flow) const;
    // Nothing will ever happen again: flows that have not ended never will.
    bool stuck() { return parts_->flows.unfinished() && parts_->run.wheel.empty(); }

    std::int64_t queue_bytes(LinkId link, int traffic_class) const {
        return ports().queue(slot(link, traffic_class)).bytes;
    }
    std::int64_t queue_bytes_max(LinkId link, int traffic_class) const {
        return ports().queue(slot(link, traffic_class)).bytes_max;
    }
    std::int64_t sent_bytes(LinkId link) const { return ports().port(link).sent_bytes; }
    // Its sender has been told to wait, or lacks credits for its next packet.
    bool paused(LinkId link, int traffic_class) const {
        return ports().paused(slot(link, traffic_class));
    }
    Picoseconds paused_time(LinkId link, int traffic_class) const {
        return parts_->links.pauses.time(slot(link, traffic_class));
    }
    // How often: XOFF frames, renewals not counted; or times without enough credits.
    std::int64_t pauses(LinkId link, int traffic_class) const {
        return parts_->links.pauses.count(slot(link, traffic_class));
    }
    bool stormed(LinkId link, int traffic_class) const {
        return parts_->links.pauses.stormed(slot(link, traffic_class));
    }
    const IngressShare& ingress(LinkId link, int traffic_class) const {
        return ports().share(slot(link, traffic_class));
    }

    using Totals = PacketTotals;
    const Totals& totals() const { return parts_->run.totals; }
    // Packets of a lossless class that found no room at the end of this link.
    std::int64_t overflows(LinkId link) const { return parts_->links.overflows(link); }
    std::string digest() const;  // of every flow's end and of the totals
    // Empty when each switch holds exactly the bytes that it has booked, no buffer is overdrawn, each paused
    // link has a pauser, credits and buffers agree and no packet is astray; else what is wrong. Takes time.
    std::string audit() const;

    const PacketLinks& links() const { return parts_->links; }
    const PacketPool& packets() const { return parts_->run.packets; }

  private:
    // They know each other by their places, and stay there when an engine is moved.
    struct Parts {
        Parts(const PacketNetwork& network, PacketSpec&& spec,
              std::unique_ptr<Congestion> congestion_control);
        // What each NIC takes now, where they pace their senders.
        void tell_receivers();

        std::unique_ptr<Congestion> congestion;
        PacketRun run;
        PacketLinks links;
        PacketFlows flows;
        PacketSenders senders;
        PacketReceivers receivers;
    };

    const PacketPorts& ports() const { return parts_->links.ports; }
    std::size_t slot(LinkId link, int traffic_class) const {
        return ports().slot(link, static_cast<std::size_t>(traffic_class));
    }
    static void handle(Parts& parts, const TimingWheel::Event& event);
    static void fetch_ahead(const Parts& parts);
    static void fetch_ways(const Parts& parts);
    static void fetch_end(const Parts& parts, const Packet& packet);
    static void fetch_output(const Parts& parts, const Packet& packet);

    std::unique_ptr<Parts> parts_;
};

}  // namespace railyard
