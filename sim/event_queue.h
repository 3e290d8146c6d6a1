#pragma once
// The set of pending events: a ladder queue. Amortised constant time per event, at 10^3 as at 10^6.
//
// Order is (time, order of scheduling), exactly; nothing else ever breaks a tie.
//
//      later  |  top      unsorted; everything at or after top_start
//             |  rung 0   buckets of equal width over what the top held when the rung was made
//             |  rung 1   one crowded bucket of rung 0, split again ... and so on
//      sooner |  bottom   sorted, the next event last
//
// An event waits, unsorted, in the coarsest place that covers its time. Only when its bucket
// becomes the next is it looked at again: a bucket of at most `sorted_at_once` entries is sorted
// into the bottom, a larger one becomes a rung of narrower buckets. So each event is moved a few
// times, in long sequential passes, where a heap of the same size would miss the cache on every
// level. Bucket widths are powers of two: the place of an event is a subtraction and a shift.
//
// An event that may have to be cancelled also takes a slot; cancelling frees the slot, and the
// entry is dropped when it surfaces.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/check.h"

namespace railyard {

// Names one cancellable event, for ever: cancelling it after it has happened is safe and says so.
struct EventId {
    std::uint64_t order = 0;  // 0: no event
    std::uint32_t slot = 0;
};

template <class Payload>
class EventQueue {
  public:
    struct Event {
        std::int64_t time;
        Payload payload;
    };

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    // `time` may be any int64; it is the caller who knows what "the past" is.
    void push(std::int64_t time, Payload payload) {
        insert(Entry{time, ++last_order_, no_slot, payload});
        ++size_;
    }
    EventId push_cancellable(std::int64_t time, Payload payload) {
        const EventId id{++last_order_, take_slot(last_order_)};
        insert(Entry{time, id.order, id.slot, payload});
        ++size_;
        return id;
    }

    // True when the event was pending and now is not; false when it has already happened or been
    // cancelled, or `id` names none.
    bool cancel(EventId id) {
        if (id.order == 0 || slots_[id.slot] != id.order) return false;
        release_slot(id.slot);
        --size_;
        return true;
    }

    // Takes the next event into `out`; false when there is none.
    bool pop(Event& out) {
        if (!settle()) return false;
        const Entry& next = bottom_.back();
        out = Event{next.time, next.payload};
        if (next.slot != no_slot) release_slot(next.slot);
        bottom_.pop_back();
        --size_;
        return true;
    }

    // Time of the next event into `time`; false when there is none.
    bool next_time(std::int64_t& time) {
        if (!settle()) return false;
        time = bottom_.back().time;
        return true;
    }

  private:
    static constexpr std::size_t sorted_at_once =
        32;                                        // entries per bucket that go straight to bottom
    static constexpr std::size_t bucket_load = 6;  // entries per bucket that a new rung aims at
    static constexpr std::size_t buckets_max = 512;  // per rung: their ends stay in the cache
    static constexpr std::size_t bottom_max = 256;   // beyond this the bottom becomes a rung

    static constexpr std::uint32_t no_slot = UINT32_MAX;

    struct Entry {
        std::int64_t time;
        std::uint64_t order;
        std::uint32_t slot;
        Payload payload;
    };
    using Bucket = std::vector<Entry>;

    struct Rung {
        std::int64_t start = 0;
        int shift = 0;                // a bucket spans 2^shift ticks
        std::size_t next = 0;         // first bucket not yet taken
        std::size_t count = 0;        // buckets in use
        std::vector<Bucket> buckets;  // kept when the rung is done: capacity is reused
        std::uint64_t bucket_of(std::int64_t time) const { return distance(start, time) >> shift; }
        // True when the event waits in a bucket not yet taken. The last bucket is open to the
        // right.
        bool covers(std::int64_t time) const {
            return next < count && time >= start && bucket_of(time) >= next;
        }
        void put(const Entry& entry) {
            buckets[std::min<std::uint64_t>(bucket_of(entry.time), count - 1)].push_back(entry);
        }
    };

    // Distance as unsigned, so that it holds over the whole int64 range.
    static std::uint64_t distance(std::int64_t from, std::int64_t to) {
        return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
    }
    static bool later(const Entry& a, const Entry& b) {
        return a.time != b.time ? a.time > b.time : a.order > b.order;
    }

    // A slot holds the order number of the event that has it, 0 when free.
    std::uint32_t take_slot(std::uint64_t order) {
        if (free_slots_.empty()) {
            RY_CHECK(slots_.size() < no_slot);
            slots_.push_back(order);
            return static_cast<std::uint32_t>(slots_.size() - 1);
        }
        const std::uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        slots_[slot] = order;
        return slot;
    }
    void release_slot(std::uint32_t slot) {
        slots_[slot] = 0;
        free_slots_.push_back(slot);
    }
    bool alive(const Entry& entry) const {
        return entry.slot == no_slot || slots_[entry.slot] == entry.order;
    }

    void insert(const Entry& entry) {
        if (!top_bounded_ || entry.time >= top_start_) {
            top_.push_back(entry);
            return;
        }
        for (std::size_t i = 0; i < rung_count_; ++i) {
            Rung& rung = rungs_[i];
            if (rung.covers(entry.time)) {
                rung.put(entry);
                return;
            }
        }
        bottom_.insert(std::upper_bound(bottom_.begin(), bottom_.end(), entry, later), entry);
        if (bottom_.size() > bottom_max && bottom_.front().time != bottom_.back().time) {
            crowded_.swap(bottom_);
            spread(crowded_);
        }
    }

    // Brings the next live event to the end of the bottom; false when nothing is pending.
    bool settle() {
        for (;;) {
            while (!bottom_.empty()) {
                if (alive(bottom_.back())) return true;
                bottom_.pop_back();
            }
            if (rung_count_ == 0) {
                if (top_.empty()) return false;
                crowded_.swap(top_);
                spread_top();
            }
            refill_bottom();
        }
    }

    void refill_bottom() {
        while (rung_count_ > 0) {
            Rung& rung = rungs_[rung_count_ - 1];
            while (rung.next < rung.count && rung.buckets[rung.next].empty()) ++rung.next;
            if (rung.next == rung.count) {
                --rung_count_;
                continue;
            }
            Bucket& bucket = rung.buckets[rung.next++];
            if (bucket.size() <= sorted_at_once || rung.shift == 0) {
                bottom_.swap(bucket);
                std::ranges::sort(bottom_, later);
                return;
            }
            crowded_.swap(bucket);
            spread(crowded_);
        }
    }

    // Makes the entries of the top the first rung. The top begins anew at the latest of them: what is
    // pushed for that same instant was scheduled after it.
    void spread_top() {
        std::int64_t latest = crowded_.front().time;
        for (const Entry& entry : crowded_) latest = std::max(latest, entry.time);
        spread(crowded_);
        top_start_ = latest;
        top_bounded_ = true;
    }

    // Distributes `entries` over a new innermost rung and leaves the vector empty. Dead ones are
    // dropped.
    void spread(Bucket& entries) {
        std::int64_t first = INT64_MAX;
        std::int64_t last = INT64_MIN;
        for (const Entry& entry : entries) {
            first = std::min(first, entry.time);
            last = std::max(last, entry.time);
        }
        if (rung_count_ == rungs_.size()) rungs_.emplace_back();
        Rung& rung = rungs_[rung_count_++];
        const std::uint64_t span = distance(first, last);
        const std::uint64_t wanted =
            std::clamp<std::uint64_t>(entries.size() / bucket_load, 2, buckets_max);
        rung.start = first;
        rung.shift = static_cast<int>(std::bit_width(span / wanted));
        rung.next = 0;
        rung.count = static_cast<std::size_t>(span >> rung.shift) + 1;
        if (rung.buckets.size() < rung.count) rung.buckets.resize(rung.count);
        for (const Entry& entry : entries) {
            if (alive(entry)) rung.put(entry);
        }
        entries.clear();
    }

    Bucket top_;
    bool top_bounded_ = false;  // before the first pop, everything waits in the top
    std::int64_t top_start_ = 0;
    std::vector<Rung> rungs_;
    std::size_t rung_count_ = 0;
    Bucket bottom_;
    Bucket crowded_;  // scratch: the entries being spread
    std::vector<std::uint64_t> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::uint64_t last_order_ = 0;
    std::size_t size_ = 0;
};

}  // namespace railyard
