#include "models/fabric/max_min.h"

#include <algorithm>
#include <utility>

#include "models/fabric/cache_lines.h"
#include "sim/check.h"

// The one hard idea: which flows does a change touch?
//
// A flow that leaves frees capacity on its links: those that had their bottleneck there may rise. They, and
// the flows that arrive, are released; all others are fixed and only take their part of each link. Water
// rises over the released flows from zero, link after link fills up, lowest level first. When a link fills
// at a level below that of a fixed flow on it, that flow has to give way: it is released too, and since its
// old rate was above the water, nothing that has been frozen so far is wrong. When all are frozen, a fixed
// flow may have lost its bottleneck: the link is no longer full, or another flow on it is now faster. Such
// flows are released and the water rises again. At the end every flow has a bottleneck, which is the
// definition of max-min fairness, so the result does not depend on which flows were released.

namespace railyard {

namespace {

constexpr double rate_tolerance = 1e-9;  // relative: below it two rates are one

}  // namespace

MaxMin::MaxMin(std::vector<double> capacities) : links_(capacities.size()) {
    for (std::size_t l = 0; l < capacities.size(); ++l) links_[l].capacity = capacities[l];
}

FlowId MaxMin::add(std::span<const Usage> usages) {
    RY_CHECK(!usages.empty());
    const std::size_t count = usages.size();
    std::uint32_t first = 0;
    if (count < free_crossings_.size() && !free_crossings_[count].empty()) {
        first = free_crossings_[count].back();
        free_crossings_[count].pop_back();
    } else {
        first = static_cast<std::uint32_t>(crossings_.size());
        crossings_.resize(crossings_.size() + count);
    }
    FlowId id = 0;
    if (free_flows_.empty()) {
        id = static_cast<FlowId>(flows_.size());
        flows_.emplace_back();
    } else {
        id = free_flows_.back();
        free_flows_.pop_back();
    }
    flows_[id] = Flow{0, first, static_cast<std::uint32_t>(count), usages[0].link, false, false};
    for (std::size_t i = 0; i < count; ++i) {
        LinkState& link = links_[usages[i].link];
        const auto at = static_cast<std::uint32_t>(first + i);
        crossings_[at] = {usages[i].link, static_cast<std::uint32_t>(link.sharers.size()),
                          usages[i].share};
        link.sharers.push_back({id, usages[i].share, at});
    }
    ++flow_count_;
    added_.push_back(id);
    return id;
}

void MaxMin::remove(FlowId id) {
    Flow& flow = flows_[id];
    RY_CHECK(flow.count > 0);
    for (const Crossing& c : crossings_of(id)) {
        auto& list = links_[c.link].sharers;
        list[c.place] = list.back();
        crossings_[list[c.place].crossing].place = c.place;
        list.pop_back();
        if (!std::exchange(links_[c.link].left, true)) left_.push_back(c.link);
    }
    if (free_crossings_.size() <= flow.count) free_crossings_.resize(flow.count + 1);
    free_crossings_[flow.count].push_back(flow.first);
    free_flows_.push_back(id);
    flow.count = 0;
    --flow_count_;
}

double MaxMin::level(const LinkState& link) const {
    return std::max(0.0, link.free_bytes_per_s) / link.rising_shares;
}

void MaxMin::push_level(LinkId id) {
    if (links_[id].rising == 0) return;
    levels_.push_back({level(links_[id]), id});
    std::push_heap(levels_.begin(), levels_.end(),
                   [](const Level& a, const Level& b) { return a.rate > b.rate; });
}

void MaxMin::release(FlowId id) {
    Flow& flow = flows_[id];
    if (flow.released) return;
    flow.released = true;
    flow.frozen = false;
    released_.push_back(id);
}

// First sight of a link in this pass: what fixed and frozen flows leave of it.
void MaxMin::touch(LinkId id) {
    LinkState& link = links_[id];
    if (link.touched_in == pass_) return;
    link.touched_in = pass_;
    touched_.push_back(id);
    link.free_bytes_per_s = link.capacity;
    link.rising_shares = 0;
    link.rising = 0;
    for (const Sharer& s : link.sharers) {
        const Flow& flow = flows_[s.flow];
        if (flow.released && !flow.frozen) {
            link.rising_shares += double{s.share};
            ++link.rising;
        } else {
            link.free_bytes_per_s -= double{s.share} * flow.rate;
        }
    }
    push_level(id);
}

void MaxMin::freeze(FlowId id, double rate, LinkId bottleneck) {
    Flow& flow = flows_[id];
    flow.rate = rate;
    flow.bottleneck = bottleneck;
    flow.frozen = true;
    for (const Crossing& c : crossings_of(id)) {
        LinkState& link = links_[c.link];
        link.free_bytes_per_s -= double{c.share} * rate;
        link.rising_shares -= double{c.share};
        --link.rising;
    }
}

// Fixed flows on a link that is about to fill at a lower level than theirs give way.
bool MaxMin::release_faster(LinkId id, double than) {
    const std::size_t before = released_.size();
    for (const auto& [f, share, crossing] : links_[id].sharers) {
        if (!flows_[f].released && flows_[f].rate > than * (1 + rate_tolerance)) release(f);
    }
    for (std::size_t i = before; i < released_.size(); ++i) {
        const double rate = flows_[released_[i]].rate;
        for (const Crossing& c : crossings_of(released_[i])) {
            LinkState& link = links_[c.link];
            if (link.touched_in != pass_) continue;
            link.free_bytes_per_s += double{c.share} * rate;
            link.rising_shares += double{c.share};
            ++link.rising;
        }
    }
    for (std::size_t i = before; i < released_.size(); ++i) {
        for (const Crossing& c : crossings_of(released_[i])) {
            if (links_[c.link].touched_in == pass_) {
                push_level(c.link);
            } else {
                touch(c.link);
            }
        }
    }
    return released_.size() > before;
}

void MaxMin::fill() {
    ++pass_;
    touched_.clear();
    levels_.clear();
    for (const FlowId f : released_) flows_[f].frozen = false;
    constexpr std::size_t ahead = 4;  // flows, whose links are fetched from memory meanwhile
    for (std::size_t i = 0; i < released_.size(); ++i) {
        if (i + ahead < released_.size()) {
            for (const Crossing& c : crossings_of(released_[i + ahead])) {
                fetch_line(&links_[c.link]);
            }
        }
        for (const Crossing& c : crossings_of(released_[i])) touch(c.link);
    }
    while (!levels_.empty()) {
        const Level lowest = levels_.front();
        std::pop_heap(levels_.begin(), levels_.end(),
                      [](const Level& a, const Level& b) { return a.rate > b.rate; });
        levels_.pop_back();
        if (!levels_.empty()) fetch_line(&links_[levels_.front().link]);
        const LinkState& link = links_[lowest.link];
        if (link.rising == 0) continue;
        const double now = level(link);
        if (now > lowest.rate * (1 + rate_tolerance)) {  // flows on it were frozen elsewhere since
            push_level(lowest.link);
            continue;
        }
        if (release_faster(lowest.link, now)) continue;
        for (const auto& [f, share, crossing] : link.sharers) {
            if (flows_[f].released && !flows_[f].frozen) freeze(f, now, lowest.link);
        }
    }
}

// Fixed flows that have lost their bottleneck to this pass.
bool MaxMin::release_unsettled() {
    const std::size_t before = released_.size();
    if (before == flow_count_) return false;
    for (const LinkId id : touched_) {
        const LinkState& link = links_[id];
        const bool full = link.free_bytes_per_s <= rate_tolerance * link.capacity;
        double fastest = 0;
        for (const Sharer& s : link.sharers) fastest = std::max(fastest, flows_[s.flow].rate);
        for (const auto& [f, share, crossing] : link.sharers) {
            const Flow& flow = flows_[f];
            if (flow.released || flow.bottleneck != id) continue;
            if (!full || flow.rate < fastest * (1 - rate_tolerance)) release(f);
        }
    }
    return released_.size() > before;
}

void MaxMin::solve() {
    released_.clear();
    for (const FlowId f : added_) {
        if (flows_[f].count > 0) release(f);
    }
    for (const LinkId l : left_) {
        links_[l].left = false;
        for (const Sharer& s : links_[l].sharers) {
            if (flows_[s.flow].bottleneck == l) release(s.flow);
        }
    }
    added_.clear();
    left_.clear();
    if (released_.empty()) return;
    do {
        // Most of them touched: all of them at once, rather than wave after wave.
        if (2 * released_.size() > flow_count_) {
            for (FlowId f = 0; f < flows_.size(); ++f) {
                if (flows_[f].count > 0) release(f);
            }
        }
        fill();
    } while (release_unsettled());
    for (const FlowId f : released_) flows_[f].released = false;
}

}  // namespace railyard
