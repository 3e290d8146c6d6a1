#pragma once
// The event loop, over any integer tick: nanoseconds for a campaign, picoseconds for packets.
//
//     while there is an event at or before the end, and nobody has said stop:
//         now = its time; fold it into the trajectory; its component handles it
//
// Events at one instant happen in the order in which they were scheduled. Components are added
// first; the first run() seals the list, so that numbering, and with it every trajectory, depends
// on the scenario alone. An event in the past is a programmer's error.

#include <chrono>
#include <string>
#include <vector>

#include "sim/check.h"
#include "sim/event_queue.h"
#include "sim/fingerprint.h"
#include "sim/units.h"

namespace railyard {

template <class Tick>
class Engine {
  public:
    using Instant =
        std::chrono::time_point<Engine, Tick>;  // of the simulated clock, which starts at 0

    class Component {
      public:
        virtual ~Component() = default;
        // `kind` and nothing else tells what happens; the state is the component's own.
        virtual void handle(std::uint32_t kind) = 0;
    };
    struct ComponentId {
        std::uint32_t index = 0;
    };

    ComponentId add(Component& component, std::string name) {
        RY_CHECK(!sealed_);
        components_.push_back({&component, std::move(name)});
        return {static_cast<std::uint32_t>(components_.size() - 1)};
    }

    Instant now() const { return now_; }

    void schedule(Instant at, ComponentId component, std::uint32_t kind) {
        RY_CHECK(at >= now_);
        queue_.push(at.time_since_epoch().count(), {component.index, kind});
    }
    EventId schedule_cancellable(Instant at, ComponentId component, std::uint32_t kind) {
        RY_CHECK(at >= now_);
        return queue_.push_cancellable(at.time_since_epoch().count(), {component.index, kind});
    }
    // True when the event was still to come.
    bool cancel(EventId id) { return queue_.cancel(id); }

    enum class Outcome : std::uint8_t {
        reached_end,  // the clock stands at `end`; events may be left behind it
        drained,      // no event was left; the clock stands at `end`, or at the last event for an
                      // endless run
        stopped,      // stop() was called; the clock stands at that event
        limit,        // events_max were handled; the clock stands at the last one
    };
    // Handles every event at or before `end`. `end` may be Instant::max(): until nothing is left.
    Outcome run(Instant end, std::uint64_t events_max = UINT64_MAX) {
        sealed_ = true;
        end_ = end;
        events_max_ = events_max;
        std::int64_t next = 0;
        Outcome outcome = Outcome::reached_end;
        for (;;) {
            if (stopped_) {
                outcome = Outcome::stopped;
                break;
            }
            if (!queue_.next_time(next)) {
                outcome = Outcome::drained;
                break;
            }
            if (next > end.time_since_epoch().count()) break;
            if (events_ == events_max) {
                outcome = Outcome::limit;
                break;
            }
            typename Queue::Event event{};
            queue_.pop(event);
            const Entry& entry = components_[event.payload.component];
            check_context() = {event.time, entry.name.c_str()};
            pass(Instant(Tick(event.time)), {event.payload.component}, event.payload.kind);
            entry.component->handle(event.payload.kind);
        }
        check_context() = {};
        const bool endless = end == Instant::max();
        if (outcome == Outcome::reached_end || (outcome == Outcome::drained && !endless))
            now_ = end;
        return outcome;
    }
    void stop() { stopped_ = true; }

    // For a component that knows what its next events do: that this run handles so many more, and that the
    // last of them, at `last`, comes before anything that is scheduled.
    bool nothing_else_until(Instant last, std::uint64_t events) {
        std::int64_t next = 0;
        return !stopped_ && last <= end_ && events <= events_max_ - events_ &&
               (!queue_.next_time(next) || last.time_since_epoch().count() < next);
    }
    // The event has come, as if it had been scheduled; who calls does what it does.
    void pass(Instant at, ComponentId component, std::uint32_t kind) {
        now_ = at;
        trajectory_.add(at.time_since_epoch().count());
        trajectory_.add((std::uint64_t{component.index} << 32) | kind);
        ++events_;
    }

    std::uint64_t events() const { return events_; }
    const Fingerprint& trajectory() const { return trajectory_; }

  private:
    struct What {
        std::uint32_t component;
        std::uint32_t kind;
    };
    struct Entry {
        Component* component;
        std::string name;
    };
    using Queue = EventQueue<What>;

    Queue queue_;
    std::vector<Entry> components_;
    Instant now_{};
    bool sealed_ = false;
    bool stopped_ = false;
    Instant end_{};  // of the run under way
    std::uint64_t events_max_ = 0;
    std::uint64_t events_ = 0;
    Fingerprint trajectory_;
};

// A campaign's is compiled once, in engine.cpp, with the optimiser that its loop deserves.
extern template class Engine<Nanoseconds>;
extern template class EventQueue<Engine<Nanoseconds>::What>;

}  // namespace railyard
