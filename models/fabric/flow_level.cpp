#include "models/fabric/flow_level.h"

#include <cmath>
#include <utility>

#include "sim/check.h"

namespace railyard {

namespace {

constexpr std::uint32_t no_transfer = UINT32_MAX;
constexpr std::uint32_t absent = UINT32_MAX;
constexpr double ps_per_s = 1e12;

}  // namespace

FlowSimulation::FlowSimulation(std::vector<double> capacities, std::size_t transfers)
    : shares_(std::move(capacities)) {
    transfers_.reserve(transfers);
    state_.reserve(transfers);
}

std::size_t FlowSimulation::add(Transfer transfer) {
    const auto id = static_cast<std::uint32_t>(transfers_.size());
    first_follower_.push_back(no_transfer);
    State& state = state_.emplace_back();
    state.place = absent;
    const std::int64_t predecessors[2] = {transfer.after, transfer.behind};
    for (std::uint32_t i = 0; i < 2; ++i) {
        next_follower_.push_back(no_transfer);
        if (predecessors[i] < 0) continue;
        const auto before = static_cast<std::size_t>(predecessors[i]);
        RY_CHECK(before < id);
        ++state.waits_for;
        next_follower_.back() = first_follower_[before];
        first_follower_[before] = 2 * id + i;
    }
    if (state.waits_for == 0) schedule(id, transfer.start + transfer.latency);
    transfer.usages.shrink_to_fit();
    transfers_.push_back(std::move(transfer));
    return id;
}

bool FlowSimulation::sooner(std::uint32_t a, std::uint32_t b) const {
    return state_[a].next != state_[b].next ? state_[a].next < state_[b].next : a < b;
}

void FlowSimulation::put(std::size_t place, std::uint32_t transfer) {
    heap_[place] = transfer;
    state_[transfer].place = static_cast<std::uint32_t>(place);
}

void FlowSimulation::sift_up(std::size_t place) {
    const std::uint32_t id = heap_[place];
    for (; place > 0 && sooner(id, heap_[(place - 1) / 2]); place = (place - 1) / 2) {
        put(place, heap_[(place - 1) / 2]);
    }
    put(place, id);
}

void FlowSimulation::sift_down(std::size_t place) {
    const std::uint32_t id = heap_[place];
    for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
        if (child + 1 < heap_.size() && sooner(heap_[child + 1], heap_[child])) ++child;
        if (!sooner(heap_[child], id)) break;
        put(place, heap_[child]);
        place = child;
    }
    put(place, id);
}

void FlowSimulation::schedule(std::uint32_t id, Picoseconds next) {
    State& s = state_[id];
    const bool later = s.place != absent && next > s.next;
    s.next = next;
    if (s.place == absent) {
        heap_.push_back(id);
        s.place = static_cast<std::uint32_t>(heap_.size() - 1);
    }
    if (later) {
        sift_down(s.place);
    } else {
        sift_up(s.place);
    }
}

void FlowSimulation::unschedule(std::uint32_t id) {
    const std::size_t place = std::exchange(state_[id].place, absent);
    if (place == absent) return;
    const std::uint32_t last = heap_.back();
    heap_.pop_back();
    if (last == id) return;
    put(place, last);
    sift_up(place);
    sift_down(state_[last].place);
}

void FlowSimulation::begin(std::uint32_t id, Picoseconds now) {
    Transfer& t = transfers_[id];
    State& s = state_[id];
    s.since = now;
    s.bytes_left = t.bytes;
    s.phase = Phase::moving;
    if (t.usages.empty() || t.bytes <= 0) {
        finish(id, now);
        return;
    }
    s.flow = shares_.add(t.usages);
    t.usages = {};  // the sharing has its own copy
    if (transfer_of_.size() <= s.flow) transfer_of_.resize(s.flow + 1);
    transfer_of_[s.flow] = id;
}

void FlowSimulation::finish(std::uint32_t id, Picoseconds now) {
    state_[id].phase = Phase::ended;
    state_[id].next = now;
    for (std::uint32_t next = first_follower_[id]; next != no_transfer;
         next = next_follower_[next]) {
        const std::uint32_t follower = next / 2;
        Transfer& t = transfers_[follower];
        const bool has_left = next % 2 == 1;
        t.start = std::max(t.start, has_left ? now - transfers_[id].latency : now);
        if (--state_[follower].waits_for > 0) continue;
        schedule(follower, std::max(now, t.start + t.latency));
    }
}

// A new rate: what is left of it now, and when it will be done.
void FlowSimulation::update(std::uint32_t id, Picoseconds now) {
    State& s = state_[id];
    const double rate = shares_.rate(s.flow);
    if (rate == s.rate && s.place != absent) return;
    s.bytes_left -= s.rate * real((now - s.since).count()) / ps_per_s;
    s.since = now;
    s.rate = rate;
    const double wait = rate > 0 ? std::ceil(std::max(0.0, s.bytes_left) / rate * ps_per_s) : 1e300;
    if (wait < 9e18 - real(now.count())) {
        schedule(id, now + Picoseconds(static_cast<std::int64_t>(wait)));
    } else {
        unschedule(id);
    }
}

void FlowSimulation::run() {
    while (!heap_.empty()) {
        const Picoseconds now = state_[heap_.front()].next;
        // All that happens at this instant happens before the links are shared anew.
        while (!heap_.empty() && state_[heap_.front()].next == now) {
            const std::uint32_t id = heap_.front();
            unschedule(id);
            if (state_[id].phase == Phase::waiting) {
                begin(id, now);
            } else {
                shares_.remove(state_[id].flow);
                finish(id, now);
            }
        }
        shares_.solve();
        for (const FlowId f : shares_.resolved()) update(transfer_of_[f], now);
    }
}

}  // namespace railyard
