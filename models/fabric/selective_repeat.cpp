#include "models/fabric/selective_repeat.h"

#include <algorithm>
#include <bit>

#include "sim/check.h"

namespace railyard {

PacketBits::PacketBits(std::uint32_t window) : words_(window / 64), mask_(window / 64 - 1) {
    RY_CHECK(window >= 64 && std::has_single_bit(window));
}

bool PacketBits::set(std::uint32_t number) {
    std::uint64_t& word = words_[number / 64 & mask_];
    const std::uint64_t before = word;
    word |= std::uint64_t{1} << (number % 64);
    return word != before;
}

bool PacketBits::clear(std::uint32_t number) {
    std::uint64_t& word = words_[number / 64 & mask_];
    const std::uint64_t before = word;
    word &= ~(std::uint64_t{1} << (number % 64));
    return word != before;
}

std::uint32_t PacketBits::first(std::uint32_t from) const {
    std::uint64_t word = words_[from / 64 & mask_] & (~std::uint64_t{0} << (from % 64));
    std::uint32_t at = from & ~63U;
    while (word == 0) {
        at += 64;
        word = words_[at / 64 & mask_];
    }
    return at + static_cast<std::uint32_t>(std::countr_zero(word));
}

bool SelectiveReceiver::take(std::uint32_t number, std::uint32_t& expected) {
    if (number < expected || !came_.set(number)) return false;
    while (came_.clear(expected)) ++expected;
    return true;
}

std::uint32_t SelectiveSender::acknowledged(std::uint32_t next, std::uint32_t number,
                                            std::uint32_t sent) {
    for (; base_ < next; ++base_) forget(base_);
    if (number >= base_ && came_.set(number)) {
        ++came_count_;
        lost_count_ -= lost_.clear(number) ? 1 : 0;
    }
    highest_ = std::max({highest_, next, number + 1});
    std::uint32_t newly_lost = 0;
    if (highest_ > judged_ + reordering_) {
        newly_lost = give_up(judged_, highest_ - reordering_);
        judged_ = highest_ - reordering_;
    }
    if (highest_ >= mark_ + reordering_) {
        newly_lost += give_up(base_, repeated_);
        repeated_ = judged_;
        mark_ = sent;
    }
    return newly_lost;
}

void SelectiveSender::time_out(std::uint32_t sent) {
    give_up(base_, sent);
    judged_ = repeated_ = mark_ = sent;
}

void SelectiveSender::forget(std::uint32_t number) {
    came_count_ -= came_.clear(number) ? 1 : 0;
    lost_count_ -= lost_.clear(number) ? 1 : 0;
}

// Takes for lost what has not come, and counts what was not lost already.
std::uint32_t SelectiveSender::give_up(std::uint32_t from, std::uint32_t to) {
    std::uint32_t count = 0;
    for (std::uint32_t n = std::max(from, base_); n < to; ++n) {
        if (!came_.test(n) && lost_.set(n)) ++count;
    }
    lost_count_ += count;
    return count;
}

}  // namespace railyard
