#pragma once
// A rival of the event queue, and the work that both are measured by.

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/fingerprint.h"

namespace railyard {

struct Payload {
    std::uint32_t component;
    std::uint32_t kind;
};

// The rival: the standard library's heap, with the same payload and the same order.
class HeapQueue {
  public:
    struct Event {
        std::int64_t time;
        Payload payload;
    };
    void push(std::int64_t time, Payload payload) { heap_.push({time, ++order_, payload}); }
    void pop(Event& out) {
        out = {heap_.top().time, heap_.top().payload};
        heap_.pop();
    }

  private:
    struct Entry {
        std::int64_t time;
        std::uint64_t order;
        Payload payload;
        bool operator<(const Entry& other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    std::priority_queue<Entry> heap_;
    std::uint64_t order_ = 0;
};

// The hold model: `pending` events; each hold takes the next one and schedules it again an
// exponential time later. The digest covers every event, in order.
template <class Queue>
class Hold {
  public:
    Hold(std::size_t pending, const std::vector<std::int64_t>& increments)
        : increments_(increments) {
        for (std::size_t i = 0; i < pending; ++i) {
            queue_.push(increments_[i % increments_.size()], {static_cast<std::uint32_t>(i), 0});
        }
    }
    std::uint64_t run(std::size_t holds) {
        Fingerprint digest;
        typename Queue::Event event{};
        for (std::size_t i = 0; i < holds; ++i) {
            queue_.pop(event);
            digest.add(event.time + event.payload.component);
            queue_.push(event.time + increments_[next_++ % increments_.size()], event.payload);
        }
        return digest.value();
    }

  private:
    const std::vector<std::int64_t>& increments_;
    Queue queue_;
    std::size_t next_ = 0;
};

}  // namespace railyard
