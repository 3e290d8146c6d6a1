#pragma once
// The set of pending events of the packet clock: buckets of a few events around the present, a ladder queue
// beyond.
//
// A packet-hop's next event lies one serialisation and one propagation ahead, always: so nearly all events
// fall among some thousand buckets of equal width, where adding one is a push onto a list. Buckets are sorted
// into the window, from which events are taken, a little before the clock reaches them: so what comes next
// can be seen. What lies further ahead (timers) waits in the ladder queue and moves over when the wheel's
// end passes it.
//
// Order is (time, order of scheduling), exactly, as in EventQueue: a bucket's list is in order of scheduling
// and the sort is stable; what comes from the ladder was scheduled before anything that could be put into
// the same bucket directly; and what is put into the window goes behind all of its time.

#include <cstdint>
#include <vector>

#include "sim/event_queue.h"

namespace railyard {

class TimingWheel {
  public:
    struct Event {
        std::int64_t time = 0;
        std::uint32_t id = 0;
        std::uint8_t kind = 0;
    };
    static constexpr int shift_max = 24;

    // Buckets of 2^shift ticks, 2^bits of them.
    TimingWheel(int shift, int bits);

    // `time` must not be before that of the last event taken.
    [[gnu::always_inline]] void push(std::int64_t time, std::uint32_t id, std::uint8_t kind) {
        const std::int64_t bucket = time >> shift_;
        if (static_cast<std::uint64_t>(bucket - next_bucket_) >= mask_) [[unlikely]] {
            return push_elsewhere({time, id, kind});
        }
        put(bucket, {time, id, kind});
    }

    // Takes the next event at or before `until` into `out`; false when there is none.
    bool pop(std::int64_t until, Event& out) {
        if (next_ + seen_ahead >= end_) fill_window();
        if (next_ == end_ || window_[next_].time > until) return false;
        out = window_[next_++];
        return true;
    }
    bool empty() {
        if (next_ == end_) fill_window();
        return next_ == end_;
    }
    // The event that comes `places` after the next one; nullptr when it is not near or not known yet. What it
    // touches can be fetched in advance.
    const Event* peek(std::size_t places) const {
        return next_ + places < end_ ? &window_[next_ + places] : nullptr;
    }

  private:
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::size_t seen_ahead = 16;  // events, where they are dense
    static constexpr std::int64_t near_ahead =
        64;  // buckets; beyond, one is only opened when it is next

    static constexpr std::size_t ranked_max = 64;  // events; more take another sort

    // An event in its bucket, eight bytes.
    struct Slot {
        std::uint32_t id;
        std::uint32_t offset_and_kind;  // ticks since the bucket's begin in the upper 24 bits
    };
    static Event unpack(const Slot& slot, std::int64_t begin) {
        return {begin + (slot.offset_and_kind >> 8), slot.id,
                static_cast<std::uint8_t>(slot.offset_and_kind)};
    }
    // A cache line of seven events of a bucket and, in the last slot, the line filled before it.
    struct alignas(64) Line {
        Slot slots[8];
    };
    static bool is_full(std::uint32_t place) { return place % 8 == 7; }
    Slot& slot(std::uint32_t place) { return lines_[place / 8].slots[place % 8]; }

    [[gnu::always_inline]] void put(std::int64_t bucket, const Event& event) {
        std::uint32_t& place = places_[static_cast<std::uint64_t>(bucket) & mask_];
        if (is_full(place)) place = open_line(static_cast<std::uint64_t>(bucket) & mask_, place);
        const auto offset = static_cast<std::uint32_t>(event.time - (bucket << shift_));
        slot(place++) = {event.id, offset << 8 | event.kind};
    }
    std::uint32_t open_line(std::uint64_t index, std::uint32_t before) {
        if (before == none) {
            occupied_[index / 64] |= std::uint64_t{1} << (index % 64);
            ++occupied_count_;
        }
        if (free_ == none) add_line();
        const std::uint32_t last = free_;
        free_ = slot(last).id;
        slot(last).id = before;
        return last - 7;
    }
    void add_line();
    void push_elsewhere(const Event& event);
    void fill_window();
    bool open_next_bucket();
    std::int64_t next_occupied() const;
    void drain(std::int64_t bucket);
    template <class Visit>
    void each_of(std::uint32_t place, std::size_t count, const Visit& visit);
    void rank_into_window(std::uint32_t place, std::int64_t begin, std::size_t count);
    void sort_into_window(std::uint32_t place, std::int64_t begin, std::size_t count);

    int shift_;
    std::uint64_t mask_;
    std::int64_t next_bucket_ = 0;       // all before it are in the window
    std::vector<std::uint32_t> places_;  // of each bucket's next event: a slot; none: it is empty
    std::vector<Line> lines_;
    std::uint32_t free_ = none;  // the last slot of a line that no bucket has
    std::vector<std::uint64_t> occupied_;
    std::size_t occupied_count_ = 0;
    std::vector<Event> window_;  // sorted; from next_ to end_
    std::size_t next_ = 0;
    std::size_t end_ = 0;
    struct Far {
        std::uint32_t id;
        std::uint8_t kind;
    };
    EventQueue<Far> far_;
    std::int64_t far_time_ = INT64_MAX;  // of the first of them
};

}  // namespace railyard
