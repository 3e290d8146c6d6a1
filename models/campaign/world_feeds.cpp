#include "models/campaign/world_feeds.h"

#include <algorithm>
#include <utility>

namespace railyard {

WorldFeeds::WorldFeeds(const Scenario& scenario, const WorldJobs& jobs, std::uint64_t replica,
                       WorldListener& next)
    : s_(scenario),
      spec_(scenario.world->spec),
      jobs_(jobs),
      replica_(replica),
      next_(next),
      loop_of_node_(static_cast<std::size_t>(spec_.nodes())) {}

void WorldFeeds::begins(CampaignEngine& engine, Renewals::Target& nodes) {
    next_.begins(engine, nodes);
    const PowerSpec& power = s_.power;
    breaker_of_node_.resize(loop_of_node_.size());
    if (power.breaker) {
        Watts most;
        for (const NodeDraw& draw : s_.world->power.draws[0]) {
            most = std::max(most, draw.node_step.peak());
        }
        breakers_.emplace(engine, nodes, power.breaker->cause, *power.breaker, spec_.nodes(),
                          steady(most), s_.seed, replica_);
        behind_.resize(breakers_->count());
        for (std::size_t i = 0; i < behind_.size(); ++i) {
            const std::int64_t first = breakers_->number(i) * power.breaker->nodes;
            for (std::int64_t n = 0; n < breakers_->nodes(i); ++n) {
                breaker_of_node_[static_cast<std::size_t>(first + n)] = i;
            }
            breakers_->set_load(i, load_of(i));
        }
    }
    if (!power.pump) return;
    const auto& loops = spec_.domains[static_cast<std::size_t>(DomainKind::cdu)];
    for (std::int64_t loop = 0; loop < loops.count(); ++loop) {
        for (const std::int64_t node : loops.nodes(loop)) {
            loop_of_node_[static_cast<std::size_t>(node)] = loop;
        }
    }
    pumps_.emplace(
        engine, nodes, power, [this](std::int64_t loop) { return gpu_mean(loop); }, s_.seed,
        replica_);
    pumps_->start();
}

const NodeDraw& WorldFeeds::draw_of(JobIndex job) const {
    return s_.world->power.draws[0][jobs_.jobs[job].kind];
}

double WorldFeeds::nodes_of(JobIndex job, const NodeShare& share) const {
    const auto parts = static_cast<double>(share.gpus * spec_.parts_of(jobs_.jobs[job]));
    return parts / static_cast<double>(spec_.groups[0].gpus_per_node * spec_.parts_per_gpu());
}

void WorldFeeds::started(JobIndex job, Instant now, const Allocation& gpus) {
    next_.started(job, now, gpus);
    running_[job] = gpus;
    for (const NodeShare& share : gpus) {
        if (const auto breaker = breaker_of_node_[share.node]) {
            behind_[*breaker][job] += nodes_of(job, share);
        }
    }
    renew_loads(gpus);
}

void WorldFeeds::stopped(JobIndex job, Instant now) {
    next_.stopped(job, now);
    const auto was = running_.extract(job);
    if (was.empty()) return;
    for (const NodeShare& share : was.mapped()) {
        if (const auto breaker = breaker_of_node_[share.node]) behind_[*breaker].erase(job);
    }
    renew_loads(was.mapped());
}

void WorldFeeds::promised(JobIndex job, Instant now, Instant start) {
    next_.promised(job, now, start);
}

// The loads of the breakers in front of these GPUs.
void WorldFeeds::renew_loads(const Allocation& gpus) {
    std::optional<std::size_t> last;
    for (const NodeShare& share : gpus) {
        const auto breaker = breaker_of_node_[share.node];
        if (!breaker || breaker == last) continue;
        breakers_->set_load(*breaker, load_of(*breaker));
        last = breaker;
    }
}

// Each job's nodes swing together, and no job knows of another's steps.
Breaker::Load WorldFeeds::load_of(std::size_t watched) const {
    const Watts idle = s_.power.node.at(Activity::idle);
    double beside = static_cast<double>(breakers_->nodes(watched)) * idle.value;
    std::vector<PowerProfile> swinging;
    for (const auto& [job, nodes] : behind_[watched]) {
        const PowerProfile step = draw_of(job).node_step.times(nodes);
        beside -= nodes * idle.value;
        if (step.levels().size() > 1) {
            swinging.push_back(step);
        } else {
            beside += step.peak().value;
        }
    }
    if (swinging.empty()) return breakers_->load(watched, steady({beside}));
    if (swinging.size() == 1) return breakers_->load(watched, swinging[0].times(1, {beside}));
    constexpr double grains = 1000;  // of the rating: far finer than breakers differ
    const Watts grain{s_.power.breaker->rating.value / grains};
    return breakers_->load(watched, independent_sum(swinging, {beside}, grain));
}

Watts WorldFeeds::gpu_mean(std::int64_t loop) const {
    const Watts idle = s_.power.node.gpu.idle;
    const auto& loops = spec_.domains[static_cast<std::size_t>(DomainKind::cdu)];
    double over_idle = 0;  // of its nodes
    for (const auto& [job, gpus] : running_) {
        for (const NodeShare& share : gpus) {
            if (loop_of_node_[share.node] != loop) continue;
            over_idle += nodes_of(job, share) * (draw_of(job).gpu_mean.value - idle.value);
        }
    }
    return {idle.value + over_idle / static_cast<double>(loops.nodes(loop).size())};
}

FeedCounts WorldFeeds::counts() const {
    return count_feeds(breakers_ ? &*breakers_ : nullptr, pumps_ ? &*pumps_ : nullptr);
}

}  // namespace railyard
