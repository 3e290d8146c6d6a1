#pragma once
// Selective repeat: only what is missing is sent again.
//
// Each acknowledgement names the packet that the receiver waits for and the packet that has just come
// (as IRN's do: Mittal et al., SIGCOMM 2018). A packet is taken for lost when one sent so many places
// later (`reordering`, 1: at once) has come before it; and taken for lost again when one first sent so
// many places after its repetition has. Both ends remember a window of packets, and no more may be open.

#include <cstdint>
#include <vector>

namespace railyard {

// One bit for each of the last so many packets; a power of two, 64 at least.
class PacketBits {
  public:
    explicit PacketBits(std::uint32_t window);
    bool test(std::uint32_t number) const {
        return (words_[number / 64 & mask_] >> (number % 64) & 1) != 0;
    }
    // Whether that changed it.
    bool set(std::uint32_t number);
    bool clear(std::uint32_t number);
    // The bits of 64 packets from `from` on, the first in the lowest bit.
    std::uint64_t word(std::uint32_t from) const {
        const std::uint64_t low = words_[from / 64 & mask_] >> (from % 64);
        if (from % 64 == 0) return low;
        return low | words_[(from / 64 + 1) & mask_] << (64 - from % 64);
    }
    // The first that is set from `from` on. There is one.
    std::uint32_t first(std::uint32_t from) const;

  private:
    std::vector<std::uint64_t> words_;
    std::uint32_t mask_;
};

class SelectiveReceiver {
  public:
    explicit SelectiveReceiver(std::uint32_t window) : came_(window) {}
    // Packet `number` has come. Moves `expected` beyond all that came in order; false: it was known.
    bool take(std::uint32_t number, std::uint32_t& expected);

  private:
    PacketBits came_;  // out of order
};

class SelectiveSender {
  public:
    SelectiveSender(std::uint32_t window, std::uint32_t reordering)
        : came_(window), lost_(window), reordering_(reordering) {}

    // All before `next` has come, and so has `number`; all before `sent` was sent. How many packets are
    // taken for lost that were not before.
    std::uint32_t acknowledged(std::uint32_t next, std::uint32_t number, std::uint32_t sent);
    // Nothing was heard for long: all that is not known to have come is lost.
    void time_out(std::uint32_t sent);

    bool has_lost() const { return lost_count_ > 0; }
    std::uint32_t first_lost() const { return lost_.first(base_); }
    void send_again(std::uint32_t number) { lost_count_ -= lost_.clear(number) ? 1 : 0; }

    // Packets that may be on their way.
    std::uint32_t under_way(std::uint32_t sent) const {
        return sent - base_ - came_count_ - lost_count_;
    }

  private:
    void forget(std::uint32_t number);
    std::uint32_t give_up(std::uint32_t from, std::uint32_t to);

    PacketBits came_;  // out of order
    PacketBits lost_;  // and not sent again yet
    std::uint32_t reordering_;
    std::uint32_t came_count_ = 0;
    std::uint32_t lost_count_ = 0;
    std::uint32_t base_ = 0;     // all before it have come
    std::uint32_t highest_ = 0;  // after the last that has come
    std::uint32_t judged_ = 0;   // each before it has come, or was once taken for lost
    // What was taken for lost before `repeated_` is sent again before `mark_` is sent first.
    std::uint32_t repeated_ = 0;
    std::uint32_t mark_ = 0;
};

}  // namespace railyard
