#pragma once
// Who must not send: PFC's pauses of each link and class, at both of its ends, and the watchdogs that look at
// them. A lack of credits counts as a pause as well (packet_credits.h).

#include <cstdint>
#include <string>
#include <vector>

#include "models/fabric/packet_ports.h"
#include "models/fabric/pfc_watchdog.h"

namespace railyard {

class PacketPauses {
  public:
    PacketPauses(PacketRun& run, PacketPorts& ports, std::size_t vertices);
    void log_to(std::vector<PauseEdge>& log) { log_ = &log; }

    // The receiver of `link` tells its sender to stop, or to go on.
    void send(LinkId link, std::size_t traffic_class, bool stop);
    // The sender of `link` stops, or goes on. False: it had not stopped.
    void stop(LinkId link, std::size_t traffic_class);
    bool go_on(LinkId link, std::size_t traffic_class);
    bool run_out(std::size_t s) const { return pauses_[s].until == run_.now; }
    // The receiver can no longer reach its sender; or it can again: false, it always could.
    void mute(LinkId link);
    bool unmute(LinkId link, std::size_t traffic_class);
    bool muted(std::size_t s) const { return pauses_[s].muted; }
    // One more storm, or one less, of the NIC at the end of a link: whether it stops its sender, or lets it
    // go on, because of this.
    bool storm(std::size_t s, bool starts);
    // Likewise its receive buffer is full, or not: it says so.
    void fill(LinkId link, std::size_t traffic_class, bool full);
    // A NIC that storms, whose pause its switch ignores, takes nothing.
    bool takes_nothing(LinkId in, std::size_t traffic_class) const {
        return ignored_ > 0 && (ports_.port(in).unpausable >> traffic_class & 1) != 0 &&
               pauses_[ports_.slot(in, traffic_class)].storms > 0;
    }

    Picoseconds time(std::size_t s) const {
        return Picoseconds(pauses_[s].total + (ports_.paused(s) ? run_.now - pauses_[s].since : 0));
    }
    std::int64_t count(std::size_t s) const { return pauses_[s].count; }

    // Sees to it that a queue is polled if that can change anything.
    void watch(std::size_t s);
    // Whether a watchdog throws away what comes from the other end of this link.
    bool refuses(LinkId in, std::size_t traffic_class) {
        return refusing_ > 0 && (ports_.back(in).discarding >> traffic_class & 1) != 0;
    }
    bool stormed(std::size_t s) const { return !watchdogs_.empty() && watchdogs_[s].stormed(); }
    // The queues that a switch polls now, each of them, and the round's end.
    const std::vector<std::size_t>& watched_at(VertexId v) const { return rounds_[v].slots; }
    PfcWatchdog::Change poll(std::size_t s);
    void end_round(VertexId v);

    // Empty when each paused link has a pauser.
    std::string audit() const;

  private:
    struct Pause {
        std::int64_t sent = 0;  // its first frame
        std::int64_t until =
            PacketRun::unset;  // XON arrives, or the last frame runs out; unset: renewed
        std::int64_t since = 0;
        std::int64_t total = 0;  // of pauses that are over
        std::int64_t count = 0;
        std::int32_t storms = 0;  // why a NIC pauses it: these,
        bool full = false;        // and a receive buffer
        bool muted = false;       // its pauser
    };
    // The queues of a switch that its watchdog looks at, and when: at offset + n polls.
    struct PollRound {
        std::int64_t offset = 0;
        std::vector<std::size_t> slots;
        bool pending = false;
    };

    std::int64_t length(LinkId link) const;
    void log(LinkId link, std::size_t traffic_class, bool waits);
    void set_up_watchdogs(std::size_t vertices);
    bool watched(std::size_t s) const {
        return watchdogs_[s].wanted(ports_.paused(s), ports_.queue(s).head != PacketRun::none);
    }

    PacketRun& run_;
    PacketPorts& ports_;
    std::vector<Pause> pauses_;  // by slot
    std::vector<PauseEdge>* log_ = nullptr;
    std::vector<PfcWatchdog> watchdogs_;  // by slot; empty: there is none
    std::vector<PollRound> rounds_;       // by vertex
    int refusing_ = 0;                    // ports whose watchdogs throw away what comes by them
    int ignored_ = 0;                     // queues whose pauses are ignored
};

}  // namespace railyard
