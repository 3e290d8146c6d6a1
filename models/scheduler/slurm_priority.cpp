#include "models/scheduler/slurm_priority.h"

#include <algorithm>
#include <numeric>

namespace railyard {

namespace {

constexpr double ln_2 = 0.6931471805599453;

// Factors of what has a priority: relative to the largest.
template <class Items>
std::vector<double> factors(const Items& items) {
    std::int64_t most = 1;
    for (const auto& item : items) most = std::max(most, item.priority);
    std::vector<double> out;
    for (const auto& item : items) out.push_back(real(item.priority) / real(most));
    return out;
}

}  // namespace

SlurmUsage::SlurmUsage(std::size_t accounts, const SlurmPriority& rules)
    : period_(rules.calc_period),
      decay_exponent_(-ln_2 * seconds(rules.calc_period) / seconds(rules.half_life)),
      decay_(portable_exp(decay_exponent_)),
      accounts_(accounts) {}

void SlurmUsage::bring_up(Account& a, Instant now) {
    const std::int64_t periods =
        now.time_since_epoch() / period_ - a.until.time_since_epoch() / period_;
    const double gpus = real(a.gpus);
    if (periods > 0) {
        const Instant grid(period_ * (a.until.time_since_epoch() / period_ + 1));
        a.fresh += gpus * seconds(grid - a.until);
        a.decayed = a.decayed * decay_ + a.fresh;
        a.fresh = 0;
        // The whole periods since then are a geometric series.
        const double rest = real(periods - 1);
        const double left = portable_exp(decay_exponent_ * rest);
        a.decayed = a.decayed * left + gpus * seconds(period_) * (1 - left) / (1 - decay_);
        a.until = grid + period_ * (periods - 1);
    }
    a.fresh += gpus * seconds(now - a.until);
    a.until = now;
}

void SlurmUsage::change_rate(std::uint32_t account, std::int64_t gpus, Instant now) {
    bring_up(accounts_[account], now);
    accounts_[account].gpus += gpus;
}

double SlurmUsage::usage(std::uint32_t account, Instant now) {
    bring_up(accounts_[account], now);
    return accounts_[account].decayed;
}

SlurmPriorities::SlurmPriorities(const WorldView& world)
    : world_(world),
      rules_(world.spec().slurm.priority),
      usage_(world.spec().accounts.size(), rules_),
      fair_share_(world.spec().accounts.size(), 1),
      partition_factor_(factors(world.spec().partitions)),
      qos_factor_(factors(world.spec().slurm.qos)),
      nodes_(real(world.spec().nodes())),
      gpus_(real(world.spec().gpus())) {}

void SlurmPriorities::runs(JobIndex job) {
    if (rules_.fair_share == 0) return;
    usage_.change_rate(world_.job(job).account, world_.job(job).gpus, world_.now());
}

void SlurmPriorities::stops(JobIndex job) {
    if (rules_.fair_share == 0) return;
    usage_.change_rate(world_.job(job).account, -world_.job(job).gpus, world_.now());
}

Instant SlurmPriorities::as_of(Instant now) const {
    return Instant(now.time_since_epoch() - now.time_since_epoch() % rules_.calc_period);
}

void SlurmPriorities::refresh(Instant now) {
    if (rules_.fair_share == 0) return;
    const std::vector<std::int64_t>& shares = world_.spec().slurm.shares;
    std::vector<double> level(shares.size());  // usage for each share
    for (std::uint32_t a = 0; a < level.size(); ++a) {
        const double usage = usage_.usage(a, now);
        level[a] = shares[a] > 0 ? usage / real(shares[a]) : 1e300;
    }
    std::vector<std::uint32_t> order(level.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order,
                             [&](std::uint32_t a, std::uint32_t b) { return level[a] < level[b]; });
    const double n = real(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const bool equal = i > 0 && level[order[i]] == level[order[i - 1]];
        fair_share_[order[i]] = equal ? fair_share_[order[i - 1]] : (n - real(i)) / n;
    }
}

std::int64_t SlurmPriorities::priority(JobIndex index, Instant now) const {
    const WorldJob& job = world_.job(index);
    const Duration waited =
        std::clamp(as_of(now) - world_.status(index).eligible, Duration{}, rules_.age_max);
    // As Slurm has it: of the nodes and of the processors, on average.
    double size = 0;
    if (rules_.job_size > 0) size = (real(job.pods()) / nodes_ + real(job.gpus) / gpus_) / 2;
    const auto weighted = [](std::int64_t weight, double factor) { return real(weight) * factor; };
    const double sum = weighted(rules_.age, seconds(waited) / seconds(rules_.age_max)) +
                       weighted(rules_.fair_share, fair_share_[job.account]) +
                       weighted(rules_.job_size, rules_.favor_small ? 1 - size : size) +
                       weighted(rules_.partition, partition_factor_[job.partition]) +
                       weighted(rules_.qos, qos_factor_[job.qos]);
    return static_cast<std::int64_t>(sum);
}

}  // namespace railyard
