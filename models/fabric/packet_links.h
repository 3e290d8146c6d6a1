#pragma once
// Packets on links and in switches: sent, queued, marked, trimmed, lost. What stops a link, gives it credits
// or breaks it are parts of their own, which it tells and asks.

#include <cstdint>
#include <vector>

#include "models/fabric/packet_credits.h"
#include "models/fabric/packet_faults.h"
#include "models/fabric/packet_ways.h"
#include "models/fabric/slow_receiver.h"
#include "sim/rng.h"

namespace railyard {

class PacketReceivers;
class PacketSenders;

class PacketLinks {
  public:
    PacketLinks(PacketRun& run, const PacketNetwork& network);
    // What sends and receives at the ends.
    void attach(PacketSenders& senders, PacketReceivers& receivers) {
        senders_ = &senders;
        receivers_ = &receivers;
    }

    PacketPorts ports;
    PacketPauses pauses;
    PacketCredits credits;
    PacketFaults faults;
    SlowReceivers slow_receivers;
    PacketWays ways;

    // A NIC sends a packet now, or as soon as its turn comes; and has something to send.
    void transmit(LinkId link, std::uint32_t id);
    void send(LinkId link, std::uint32_t id) {
        if (!send_at_once(link, id)) enqueue(link, id);
    }
    void take_turn(LinkId link, std::size_t traffic_class, std::uint32_t queue_pair) {
        ports.push_turn(link, traffic_class, queue_pair);
        if (!ports.port(link).pending) kick(link);
    }

    // The end of `link` can no longer reach its sender, or can again.
    void mute(LinkId link) { pauses.mute(link); }
    void unmute(LinkId link);
    // Packets of a lossless class that found no room at the end of this link.
    std::int64_t overflows(LinkId link) const { return overflows_.empty() ? 0 : overflows_[link]; }

    // Events: a packet is at the end of its link, a port is idle, or was to become so now.
    void arrive(std::uint32_t id);
    void serve(LinkId link);
    // A class that was stopped goes on, for a pause is over or credits have come.
    void go_on(LinkId link, std::size_t traffic_class);
    void stop_starving(LinkId link, std::size_t traffic_class);
    // A packet at the head of a queue may have waited too long for credits.
    void end_lifetime(LinkId link, std::size_t traffic_class);
    // The NIC at the end of `link` storms, or no more.
    void storm(LinkId link, std::size_t traffic_class, bool starts);
    void poll_watchdogs(VertexId v);
    void take_down(LinkId link);
    void bring_up(LinkId link);
    void replay(LinkId link);
    // The host of a slow NIC takes a packet.
    void host_takes(LinkId link) { receive(link, slow_receivers.take(link)); }

  private:
    void arrive_at_slow_nic(LinkId in, std::uint32_t id);
    void receive(LinkId in, std::uint32_t id);
    void forward(LinkId in, std::uint32_t id);
    void lose(std::uint32_t id, std::int64_t& counter);
    void drop(LinkId in, std::uint32_t id, std::int64_t& counter);
    void overflow(LinkId in, std::uint32_t id);
    void refuse(LinkId in, LinkId out, std::uint32_t id);
    void put_in_place_of_last(LinkId in, LinkId out, std::uint32_t id);
    void trim(LinkId out, std::uint32_t id);
    bool send_at_once(LinkId link, std::uint32_t id);
    void enqueue(LinkId link, std::uint32_t id);
    std::uint32_t dequeue(LinkId link, std::size_t traffic_class);
    void leave_switch(LinkId link, std::uint32_t id);
    void write_telemetry(LinkId link, std::uint32_t id, std::int64_t queue_bytes);
    std::int64_t until_there(LinkId link, const Packet& packet) const;
    bool crosses(LinkId link, std::uint32_t id, std::int64_t sent, std::int64_t tries);
    void kick(LinkId link);
    void hold(LinkId link, std::size_t traffic_class, bool starts);
    void flush(LinkId link, std::size_t traffic_class, std::int64_t& counter);
    void give_up_replay(LinkId link);

    static constexpr std::int64_t never_up = INT64_MAX / 2;

    PacketRun& run_;
    PacketSenders* senders_ = nullptr;
    PacketReceivers* receivers_ = nullptr;
    std::vector<std::int64_t> overflows_;  // by link; empty: there was none
    RandomStream marking_;
    RandomStream trimming_;
};

inline void PacketLinks::arrive(std::uint32_t id) {
    --run_.on_links;
    const Packet& packet = run_.packets[id];
    const LinkId in = run_.packets.last_link(packet);
    if (ports.to_switch(in)) return forward(in, id);
    if (pauses.takes_nothing(in, packet.traffic_class)) [[unlikely]]
        return overflow(in, id);
    if (ports.end(in) == LinkEnd::slow_nic) [[unlikely]]
        return arrive_at_slow_nic(in, id);
    receive(in, id);
}

}  // namespace railyard
