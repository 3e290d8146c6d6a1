#include "models/fabric/unordered_delivery.h"

#include <algorithm>

namespace railyard {

bool UnorderedReceiver::take(std::uint32_t number, std::int64_t bytes, std::uint32_t& expected) {
    if (number < expected || !came_.set(number)) return false;
    ++came_count_;
    while (came_.clear(expected)) {
        ++expected;
        --came_count_;
    }
    received_bytes_ += bytes;
    unreported_bytes_ += bytes;
    return true;
}

void UnorderedReceiver::report(std::uint32_t number, std::uint32_t expected, bool begins,
                               DeliveryReport& out) const {
    constexpr std::uint32_t places = 63;  // besides that of the one that caused it
    const std::uint32_t before = begins ? 0 : places;
    out.first = std::max(expected + 1, number > before ? number - before : 0);
    out.came = came_.word(out.first);
    out.received_bytes = received_bytes_;
    out.next = expected;
    out.number = number;
    out.out_of_order = came_count_;
}

void UnorderedSender::send(std::uint32_t number, std::uint16_t entropy, std::int64_t bytes,
                           std::int64_t now, bool again) {
    if (again) {
        lost_count_ -= lost_.clear(number) ? 1 : 0;
        // The transmission that was lost, unless it has been forgotten.
        for (std::uint32_t i = sent_first_; i != sent_last_; ++i) {
            Sent& sent = sent_[i & (sent_.size() - 1)];
            if (sent.number != number || sent.replaced) continue;
            sent.replaced = true;
            break;
        }
    }
    under_way_bytes_ += bytes;
    sent_bytes_ += bytes;
    remember({now, number, entropy, again, false});
}

void UnorderedSender::remember(const Sent& sent) {
    if (sent_last_ - sent_first_ == sent_.size()) {
        std::vector<Sent> larger(std::max<std::size_t>(16, 2 * sent_.size()));
        const std::uint32_t count = sent_last_ - sent_first_;
        for (std::uint32_t i = 0; i < count; ++i) {
            larger[i] = sent_[(sent_first_ + i) & (sent_.size() - 1)];
        }
        sent_ = std::move(larger);
        sent_first_ = 0;
        sent_last_ = count;
    }
    sent_[sent_last_++ & (sent_.size() - 1)] = sent;
}

const UnorderedSender::Sent* UnorderedSender::oldest() {
    for (; sent_first_ != sent_last_; ++sent_first_) {
        const Sent& sent = sent_[sent_first_ & (sent_.size() - 1)];
        if (open(sent)) return &sent;
    }
    return nullptr;
}

bool UnorderedSender::lose(std::uint32_t number, std::int64_t bytes) {
    if (number < base_ || came_.test(number) || !lost_.set(number)) return false;
    ++lost_count_;
    under_way_bytes_ -= bytes;
    return true;
}

bool UnorderedSender::lose_by_order(std::uint32_t number, std::int64_t bytes) {
    if (number < base_ || came_.test(number) || !doubted_.set(number)) return false;
    return lose(number, bytes);
}

}  // namespace railyard
