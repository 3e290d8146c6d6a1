#include "models/fabric/unordered_delivery.h"

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
        for (std::uint32_t i = 0; i < sent_.size(); ++i) {
            Sent& sent = sent_[i];
            if (sent.number != number || sent.replaced) continue;
            sent.replaced = true;
            break;
        }
    }
    under_way_bytes_ += bytes;
    sent_bytes_ += bytes;
    sent_.push({now, number, entropy, again, false});
}

const UnorderedSender::Sent* UnorderedSender::oldest() {
    for (; !sent_.empty(); sent_.pop()) {
        if (open(sent_.first())) return &sent_.first();
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
