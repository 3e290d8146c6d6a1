#pragma once
// Delivery in any order (Ultra Ethernet's): only a report of a packet makes it lost.
//
// Packets that take different paths overtake each other, so one that is missing is not lost. It is when its
// header comes without its payload (trimmed by a switch), or when nothing was heard of it for a timeout after
// it was last sent; where it is asked for, also when very many later ones have come (OrderLossSpec).
// Acknowledgements say which of 64 packets have come, and how many bytes ever: those
// that the sender has under way follow from the latter.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "models/fabric/ring.h"
#include "models/fabric/selective_repeat.h"
#include "sim/units.h"

namespace railyard {

// What an acknowledgement, or a report of a trimmed packet, says beside the packet waited for.
struct DeliveryReport {
    std::uint64_t came = 0;           // bit i: packet `first` + i has come
    std::int64_t received_bytes = 0;  // on the wire, of different packets, ever
    std::uint32_t first = 0;
    std::uint32_t next = 0;          // the packet waited for
    std::uint32_t number = 0;        // the packet that caused it
    std::uint32_t out_of_order = 0;  // packets that have come beyond the one waited for
    std::uint8_t penalty = 0;        // see SlowReceivers
    bool answers_request = false;    // which carried no payload: its sender only asked
    bool answers_probe = false;      // that went with the data, to see how long they wait
};

class UnorderedReceiver {
  public:
    explicit UnorderedReceiver(std::uint32_t window) : came_(window) {}

    // Packet `number` of so many bytes has come; moves `expected` beyond all that came in order. False: it
    // was known.
    bool take(std::uint32_t number, std::int64_t bytes, std::uint32_t& expected);
    bool has(std::uint32_t number, std::uint32_t expected) const {
        return number < expected || came_.test(number);
    }
    std::int64_t unreported_bytes() const { return unreported_bytes_; }
    // The sender has asked for an acknowledgement: it gets one now, and another when nothing is out of order.
    void ask() { asked_ = true; }
    bool owes() {
        if (!asked_ || came_count_ > 0) return false;
        asked_ = false;
        return true;
    }
    bool first() const { return received_bytes_ == 0; }
    // Packet `number` makes it report which of 64 packets have come: those that end with it; or, with
    // `begins`, those that begin with it. Then nothing is said of earlier ones beyond the one waited for.
    void report(std::uint32_t number, std::uint32_t expected, bool begins,
                DeliveryReport& out) const;
    // An acknowledgement has told of all.
    void reported() { unreported_bytes_ = 0; }

  private:
    PacketBits came_;  // out of order
    std::uint32_t came_count_ = 0;
    std::int64_t received_bytes_ = 0;
    std::int64_t unreported_bytes_ = 0;
    bool asked_ = false;
};

class UnorderedSender {
  public:
    // `by_order`: loses packets by their order too.
    UnorderedSender(std::uint32_t window, bool by_order)
        : came_(window), lost_(window), doubted_(by_order ? window : 64) {}

    // A packet leaves, for the first time or again.
    void send(std::uint32_t number, std::uint16_t entropy, std::int64_t bytes, std::int64_t now,
              bool again);
    // All before `next` has come, and what the report says. How many bytes it is the first to tell of.
    // `bytes_of(number)`: those of a packet.
    template <class BytesOf>
    std::int64_t heard(std::uint32_t next, const DeliveryReport& report, const BytesOf& bytes_of);
    // It must be sent again, and is no longer under way. False: it has come, or that was known.
    bool lose(std::uint32_t number, std::int64_t bytes);
    // Likewise, but only the first time: what is sent again then is lost by a timeout alone.
    bool lose_by_order(std::uint32_t number, std::int64_t bytes);

    bool has_lost() const { return lost_count_ > 0; }
    std::uint32_t first_lost() const { return lost_.first(base_); }
    // Less than nothing while the receiver's count has a packet that was lost, and no report names it yet.
    std::int64_t under_way_bytes() const { return under_way_bytes_; }
    std::int64_t sent_bytes() const { return sent_bytes_; }  // ever, again and again
    std::uint32_t lost_count() const { return lost_count_; }

    struct Sent {
        std::int64_t at = 0;
        std::uint32_t number = 0;
        std::uint16_t entropy = 0;
        bool again = false;     // not the first time
        bool replaced = false;  // by a later transmission of the same packet
    };
    // The packet sent first, among those that may still be under way.
    const Sent* oldest();

  private:
    bool open(const Sent& sent) const {
        return !sent.replaced && sent.number >= base_ && !came_.test(sent.number) &&
               !lost_.test(sent.number);
    }
    // It was taken for lost and has come after all: then it is in the receiver's count as well.
    void find(std::int64_t bytes) {
        --lost_count_;
        under_way_bytes_ += bytes;
    }

    PacketBits came_;     // out of order
    PacketBits lost_;     // and not sent again yet
    PacketBits doubted_;  // that were lost by their order, once
    std::uint32_t lost_count_ = 0;
    std::uint32_t base_ = 0;  // all before it have come
    std::int64_t under_way_bytes_ = 0;
    std::int64_t sent_bytes_ = 0;
    std::int64_t received_bytes_ = 0;  // the receiver's count, as last heard of
    Ring<Sent, 16> sent_;              // transmissions in their order
};

template <class BytesOf>
std::int64_t UnorderedSender::heard(std::uint32_t next, const DeliveryReport& report,
                                    const BytesOf& bytes_of) {
    for (; base_ < next; ++base_) {
        came_.clear(base_);
        if (lost_.clear(base_)) find(bytes_of(base_));
        doubted_.clear(base_);
    }
    std::uint64_t came = report.came;
    std::uint32_t first = report.first;
    if (first < base_) {
        came = base_ - first < 64 ? came >> (base_ - first) : 0;
        first = base_;
    }
    for (came &= ~came_.word(first); came != 0; came &= came - 1) {
        const std::uint32_t number = first + static_cast<std::uint32_t>(std::countr_zero(came));
        came_.set(number);
        if (lost_.clear(number)) find(bytes_of(number));
    }
    const std::int64_t more = std::max<std::int64_t>(0, report.received_bytes - received_bytes_);
    received_bytes_ += more;
    under_way_bytes_ -= more;
    return more;
}

}  // namespace railyard
