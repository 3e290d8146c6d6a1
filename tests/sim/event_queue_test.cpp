#include "sim/event_queue.h"

#include <doctest/doctest.h>

#include <map>
#include <utility>
#include <vector>

#include "sim/rng.h"

using namespace railyard;

namespace {

struct Item {
    std::uint64_t number;
};
using Queue = EventQueue<Item>;

// The contract in its plainest form: a map by (time, order of scheduling).
class Reference {
  public:
    std::pair<std::int64_t, std::uint64_t> push(std::int64_t time, std::uint64_t number) {
        const std::pair key{time, ++order_};
        pending_[key] = number;
        return key;
    }
    bool cancel(std::pair<std::int64_t, std::uint64_t> key) { return pending_.erase(key) == 1; }
    bool pop(std::int64_t& time, std::uint64_t& number) {
        if (pending_.empty()) return false;
        time = pending_.begin()->first.first;
        number = pending_.begin()->second;
        pending_.erase(pending_.begin());
        return true;
    }
    std::size_t size() const { return pending_.size(); }

  private:
    std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t> pending_;
    std::uint64_t order_ = 0;
};

}  // namespace

TEST_CASE("events at one instant come in the order of scheduling") {
    Queue queue;
    for (std::uint64_t i = 0; i < 1000; ++i) queue.push(5, {i});
    Queue::Event event{};
    for (std::uint64_t i = 0; i < 1000; ++i) {
        REQUIRE(queue.pop(event));
        CHECK(event.payload.number == i);
    }
    CHECK_FALSE(queue.pop(event));
}

TEST_CASE("random pushes, pops and cancels follow the contract") {
    // Each round draws times from another shape: dense ties, wide spreads, clusters, a moving
    // front.
    for (std::uint64_t round = 0; round < 40; ++round) {
        CAPTURE(round);
        RandomStream random(round, 0, "queue");
        Queue queue;
        Reference reference;
        std::vector<std::pair<EventId, std::pair<std::int64_t, std::uint64_t>>> cancellable;
        std::int64_t now = round % 5 == 4 ? INT64_MIN : 0;
        const std::uint64_t spread = 1ULL << (round % 20 * 3);
        std::uint64_t number = 0;
        const std::uint64_t operations = 4000 + 8000 * (round % 3);
        for (std::uint64_t i = 0; i < operations; ++i) {
            const double dice = random.uniform();
            const double growing = i < operations / 2 ? 0.65 : 0.35;
            if (dice < growing) {
                std::uint64_t ahead = random.below(spread) + 1;
                if (random.chance(0.1)) ahead = random.below(ahead) / 1000;  // soon, often now
                const std::int64_t time = now > INT64_MAX - static_cast<std::int64_t>(ahead)
                                              ? INT64_MAX
                                              : now + static_cast<std::int64_t>(ahead);
                if (random.chance(0.3)) {
                    cancellable.emplace_back(queue.push_cancellable(time, {number}),
                                             reference.push(time, number));
                } else {
                    queue.push(time, {number});
                    reference.push(time, number);
                }
                ++number;
            } else if (dice < 0.9 || cancellable.empty()) {
                Queue::Event event{};
                std::int64_t time = 0;
                std::uint64_t expected = 0;
                const bool any = reference.pop(time, expected);
                REQUIRE(queue.pop(event) == any);
                if (!any) continue;
                REQUIRE(event.time == time);
                REQUIRE(event.payload.number == expected);
                now = time;
            } else {
                // Any id ever given out: it may have happened, or been cancelled before.
                const auto& [id, key] = cancellable[random.below(cancellable.size())];
                REQUIRE(queue.cancel(id) == reference.cancel(key));
            }
            REQUIRE(queue.size() == reference.size());
        }
    }
}

TEST_CASE("times may span the whole clock") {
    Queue queue;
    for (const std::int64_t time :
         {INT64_MAX, INT64_MIN, std::int64_t{0}, INT64_MAX - 1, INT64_MIN + 1}) {
        for (std::uint64_t i = 0; i < 100; ++i) queue.push(time, {i});
    }
    Queue::Event event{};
    std::int64_t last = INT64_MIN;
    for (int i = 0; i < 500; ++i) {
        REQUIRE(queue.pop(event));
        CHECK(event.time >= last);
        last = event.time;
    }
    CHECK(queue.empty());
}

TEST_CASE("no event is cancelled by an id that names none") {
    Queue queue;
    queue.push(1, {1});
    CHECK_FALSE(queue.cancel(EventId{}));
    CHECK(queue.size() == 1);
}
