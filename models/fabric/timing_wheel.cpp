#include "models/fabric/timing_wheel.h"

#include <algorithm>

#include "sim/check.h"

namespace railyard {

TimingWheel::TimingWheel(int shift, int bits)
    : shift_(shift),
      mask_((std::uint64_t{1} << bits) - 1),
      places_(std::size_t{1} << bits, none),
      occupied_((std::size_t{1} << bits) / 64),
      window_(256) {
    RY_CHECK(shift >= 0 && shift <= shift_max && bits >= 6);
}

void TimingWheel::add_line() {
    free_ = static_cast<std::uint32_t>(8 * lines_.size() + 7);
    lines_.emplace_back().slots[7].id = none;
}

void TimingWheel::push_elsewhere(const Event& event) {
    if ((event.time >> shift_) >= next_bucket_) {
        far_.push(event.time, {event.id, event.kind});
        far_time_ = std::min(far_time_, event.time);
        return;
    }
    if (end_ == window_.size()) window_.resize(2 * end_);
    std::size_t place = end_++;
    for (; place > next_ && window_[place - 1].time > event.time; --place) {
        window_[place] = window_[place - 1];
    }
    window_[place] = event;
}

void TimingWheel::fill_window() {
    if (next_ > window_.size() / 2) {
        std::copy(window_.begin() + next_, window_.begin() + end_, window_.begin());
        end_ -= next_;
        next_ = 0;
    }
    while (next_ + seen_ahead >= end_ && open_next_bucket()) {
    }
}

// False when there is none, or it is not near and nobody needs it yet.
bool TimingWheel::open_next_bucket() {
    std::int64_t bucket = far_time_ >> shift_;
    if (occupied_count_ > 0) bucket = std::min(bucket, next_occupied());
    if (next_ < end_ && bucket - next_bucket_ >= near_ahead) return false;
    if (far_time_ == INT64_MAX && occupied_count_ == 0) return false;
    next_bucket_ = bucket + 1;
    while ((far_time_ >> shift_) - next_bucket_ < static_cast<std::int64_t>(mask_)) {
        EventQueue<Far>::Event event{};
        far_.pop(event);
        put(event.time >> shift_, {event.time, event.payload.id, event.payload.kind});
        if (!far_.next_time(far_time_)) far_time_ = INT64_MAX;
    }
    drain(bucket);
    return true;
}

std::int64_t TimingWheel::next_occupied() const {
    const std::uint64_t from = static_cast<std::uint64_t>(next_bucket_) & mask_;
    std::uint64_t word = from / 64;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (from % 64));
    while (bits == 0) {
        word = (word + 1) & (mask_ / 64);
        bits = occupied_[word];
    }
    const std::uint64_t index = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
    return next_bucket_ + static_cast<std::int64_t>((index - from) & mask_);
}

// Moves a bucket's events to the window's end and gives its lines back.
void TimingWheel::drain(std::int64_t bucket) {
    const std::uint64_t index = static_cast<std::uint64_t>(bucket) & mask_;
    const std::uint32_t place = places_[index];
    std::uint32_t oldest = place | 7;
    std::size_t count = place % 8;
    for (; slot(oldest).id != none; count += 7) oldest = slot(oldest).id;
    while (end_ + count > window_.size()) window_.resize(2 * window_.size());
    if (count == 1) {
        window_[end_] = unpack(slot(place - 1), bucket << shift_);
    } else if (count <= ranked_max) {
        rank_into_window(place, bucket << shift_, count);
    } else {
        sort_into_window(place, bucket << shift_, count);
    }
    end_ += count;
    slot(oldest).id = free_;
    free_ = place | 7;
    places_[index] = none;
    occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
    --occupied_count_;
}

// Visits a bucket's events, the one scheduled last first, each with the number of those before it.
template <class Visit>
inline void TimingWheel::each_of(std::uint32_t place, std::size_t count, const Visit& visit) {
    for (; count > 0; place = slot(place | 7).id) {
        const Slot* const line = &slot(place & ~7U);
        for (std::uint32_t i = place % 8; i-- > 0;) visit(line[i], --count);
    }
}

// An event's rank is the number of those that come before it. All are compared with all, a group at a time:
// no branch depends on their order, which no processor could predict.
void TimingWheel::rank_into_window(std::uint32_t place, std::int64_t begin, std::size_t count) {
    constexpr std::size_t group = 8;
    constexpr int order_bits = std::bit_width(ranked_max - 1);
    static_assert(shift_max + order_bits < 32 && ranked_max % group == 0);
    std::int32_t keys[ranked_max];
    std::int32_t ranks[ranked_max];
    each_of(place, count, [&](const Slot& from, std::size_t order) {
        keys[order] = static_cast<std::int32_t>((from.offset_and_kind >> 8) << order_bits | order);
    });
    for (std::size_t i = count; i % group != 0; ++i) keys[i] = INT32_MAX;
    for (std::size_t first = 0; first < count; first += group) {
        std::int32_t rank[group] = {};
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t k = 0; k < group; ++k) rank[k] += keys[i] < keys[first + k] ? 1 : 0;
        }
        std::copy(rank, rank + group, ranks + first);
    }
    Event* const out = &window_[end_];
    each_of(place, count,
            [&](const Slot& from, std::size_t order) { out[ranks[order]] = unpack(from, begin); });
}

void TimingWheel::sort_into_window(std::uint32_t place, std::int64_t begin, std::size_t count) {
    Event* const out = &window_[end_];
    each_of(place, count,
            [&](const Slot& from, std::size_t order) { out[order] = unpack(from, begin); });
    std::stable_sort(out, out + count,
                     [](const Event& a, const Event& b) { return a.time < b.time; });
}

}  // namespace railyard
