#pragma once
// The set of pending events of the packet clock: buckets of a few events around the present, a ladder queue
// beyond.
//
// A packet-hop's next event lies one serialisation and one propagation ahead, always: so nearly all events
// fall among a few thousand buckets of equal width, where adding one is a push onto a list. A bucket is
// sorted when the clock reaches it. What lies further ahead (timers) waits in the ladder queue and moves
// over when the wheel's end passes it.
//
// Order is (time, order of scheduling), exactly, as in EventQueue: a bucket's list is in order of scheduling
// and the sort is stable; and what comes from the ladder was scheduled before anything that could be put
// into the same bucket directly.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/event_queue.h"

namespace railyard {

template <class Payload>
class TimingWheel {
  public:
    struct Event {
        std::int64_t time;
        Payload payload;
    };

    // Buckets of 2^shift ticks, 2^bits of them.
    TimingWheel(int shift, int bits)
        : shift_(shift),
          mask_((std::int64_t{1} << bits) - 1),
          heads_(std::size_t{1} << bits, none),
          occupied_((std::size_t{1} << bits) / 64) {
        RY_CHECK(bits >= 6);
    }

    // `time` must not be before that of the last event taken.
    void push(std::int64_t time, Payload payload) {
        const std::int64_t ahead = (time >> shift_) - base_;
        if (static_cast<std::uint64_t>(ahead - 1) < static_cast<std::uint64_t>(mask_)) [[likely]] {
            put({time, payload});
        } else {
            push_elsewhere(ahead, time, payload);
        }
    }

    // Takes the next event at or before `until` into `out`; false when there is none.
    bool pop(std::int64_t until, Event& out) {
        if (cursor_ == current_.size() && !advance()) return false;
        if (current_[cursor_].time > until) return false;
        out = current_[cursor_++];
        return true;
    }
    bool empty() { return cursor_ == current_.size() && !advance(); }
    // The event that comes `places` after the next one, if it is in the same bucket; else nullptr. What it
    // touches can be fetched in advance.
    const Event* peek(std::size_t places) const {
        return cursor_ + places < current_.size() ? &current_[cursor_ + places] : nullptr;
    }

  private:
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr int part_bits = 5;
    static constexpr std::size_t parts = std::size_t{1} << part_bits;
    // A bucket's events come and go together and lie together: two cache lines hold seven of them.
    struct alignas(128) Chunk {
        Event events[7];
        std::uint32_t count;
        std::uint32_t next;  // chunk filled before this one
    };

    [[gnu::noinline]] void push_elsewhere(std::int64_t ahead, std::int64_t time, Payload payload) {
        if (ahead > mask_) return far_.push(time, payload);
        const auto after = std::upper_bound(
            current_.begin() + static_cast<std::ptrdiff_t>(cursor_), current_.end(), time,
            [](std::int64_t t, const Event& e) { return t < e.time; });
        current_.insert(after, {time, payload});
    }
    void put(const Event& event) {
        const auto bucket = static_cast<std::size_t>((event.time >> shift_) & mask_);
        std::uint32_t chunk = heads_[bucket];
        if (chunk == none || chunks_[chunk].count == std::size(chunks_[chunk].events)) {
            chunk = take_chunk();
            chunks_[chunk].count = 0;
            chunks_[chunk].next = heads_[bucket];
            heads_[bucket] = chunk;
            occupied_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
        }
        chunks_[chunk].events[chunks_[chunk].count++] = event;
        ++in_buckets_;
    }
    std::uint32_t take_chunk() {
        if (free_ == none) {
            chunks_.emplace_back();
            return static_cast<std::uint32_t>(chunks_.size() - 1);
        }
        const std::uint32_t chunk = free_;
        free_ = chunks_[chunk].next;
        return chunk;
    }

    // Makes the next bucket that holds events the current one; false when nothing is pending.
    bool advance() {
        current_.clear();
        cursor_ = 0;
        std::int64_t far_time = INT64_MAX;
        const bool far = far_.next_time(far_time);
        if (in_buckets_ == 0) {
            if (!far) return false;
            base_ = far_time >> shift_;
        } else {
            base_ = std::min(next_occupied(), far_time >> shift_);
        }
        while (far_.next_time(far_time) && (far_time >> shift_) - base_ <= mask_) {
            typename EventQueue<Payload>::Event event{};
            far_.pop(event);
            put({event.time, event.payload});
        }
        take_bucket(static_cast<std::size_t>(base_ & mask_));
        return true;
    }

    std::int64_t next_occupied() const {
        const std::size_t from = static_cast<std::size_t>((base_ + 1) & mask_);
        const std::size_t words = occupied_.size();
        std::size_t word = from / 64;
        std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (from % 64));
        for (;;) {
            if (bits != 0) {
                const auto bucket = static_cast<std::int64_t>(
                    word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
                return base_ + 1 + ((bucket - base_ - 1) & mask_);
            }
            word = (word + 1) % words;
            bits = occupied_[word];
        }
    }

    // Sorts a bucket's events into `current_`, stably: first by the part of the bucket that they fall into,
    // counted and then filled from behind (the list's last event was scheduled last); then by insertion,
    // which has little left to do.
    void take_bucket(std::size_t bucket) {
        std::uint32_t ends[parts] = {};
        const int part_shift = std::max(0, shift_ - part_bits);
        const auto part_of = [&](const Event& e) {
            return static_cast<std::size_t>(e.time >> part_shift) & (parts - 1);
        };
        std::uint32_t total = 0;
        for (std::uint32_t c = heads_[bucket]; c != none; c = chunks_[c].next) {
            const Chunk& chunk = chunks_[c];
            for (std::uint32_t i = 0; i < chunk.count; ++i) ++ends[part_of(chunk.events[i])];
        }
        for (std::uint32_t& end : ends) end = total += end;
        current_.resize(total);
        for (std::uint32_t c = heads_[bucket]; c != none;) {
            Chunk& chunk = chunks_[c];
            for (std::uint32_t i = chunk.count; i-- > 0;) {
                current_[--ends[part_of(chunk.events[i])]] = chunk.events[i];
            }
            const std::uint32_t next = chunk.next;
            chunk.next = free_;
            free_ = c;
            c = next;
        }
        in_buckets_ -= total;
        heads_[bucket] = none;
        occupied_[bucket / 64] &= ~(std::uint64_t{1} << (bucket % 64));
        for (std::size_t i = 1; i < current_.size(); ++i) {
            if (current_[i - 1].time <= current_[i].time) continue;
            const Event event = current_[i];
            std::size_t place = i;
            for (; place > 0 && current_[place - 1].time > event.time; --place) {
                current_[place] = current_[place - 1];
            }
            current_[place] = event;
        }
    }

    int shift_;
    std::int64_t mask_;
    std::int64_t base_ = 0;             // number of the current bucket
    std::vector<std::uint32_t> heads_;  // of each bucket's list of chunks, the last filled first
    std::vector<std::uint64_t> occupied_;
    std::vector<Chunk> chunks_;
    std::uint32_t free_ = none;
    std::size_t in_buckets_ = 0;
    std::vector<Event> current_;
    std::size_t cursor_ = 0;
    EventQueue<Payload> far_;
};

}  // namespace railyard
