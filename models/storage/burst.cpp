#include "models/storage/burst.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/storage/burst_sharing.h"
#include "sim/check.h"
#include "sim/fingerprint.h"
#include "sim/statistics.h"

namespace railyard {

namespace {

constexpr double ns_per_s = 1e9;
// Ends so close to each other, relative to the time so far, happen together; after many, wider apart.
// Each keeps its own instant: only what it sets free comes to the others so much later.
constexpr std::int64_t exact_events = 128;
constexpr std::int64_t fine = 1'000'000;
constexpr std::int64_t coarse = 256;

Duration end_after(Duration now, double bytes, double rate) {
    if (rate <= 0) return Duration::max();
    const double wait = std::ceil(std::max(0.0, bytes) / rate * ns_per_s);
    const double limit = static_cast<double>(time_max.count());
    if (wait >= limit) return time_max;
    return std::min(time_max, now + Duration(static_cast<std::int64_t>(wait)));
}

Bandwidth bandwidth_of(double bytes_per_s) {
    return Bandwidth::bits_per_second(std::llround(std::min(bytes_per_s * 8, 9e18)));
}

Bandwidth over(double bytes, Duration time) {
    return time.count() > 0 ? bandwidth_of(bytes / seconds(time)) : Bandwidth{};
}

// Time and bytes of one load by what they waited for: links first, then walls that are none.
class Account {
  public:
    explicit Account(std::size_t links) : entries_(links + wall_count) {}

    void add(BurstSharing::Limit limit, double file_seconds, double bytes) {
        const std::size_t links = entries_.size() - wall_count;
        Entry& e =
            entries_[limit.link ? *limit.link : links + static_cast<std::size_t>(limit.wall)];
        e.file_seconds += file_seconds;
        e.bytes += bytes;
    }

    std::vector<WallShare> shares(const BurstTraffic& traffic) const {
        const std::size_t links = entries_.size() - wall_count;
        std::array<WallShare, wall_count> of_wall;
        std::array<double, wall_count> most{};
        Entry sum;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const Entry& e = entries_[i];
            if (e.file_seconds <= 0) continue;
            const Wall wall =
                i < links ? traffic.wall(static_cast<LinkId>(i)) : static_cast<Wall>(i - links);
            const auto w = static_cast<std::size_t>(wall);
            if (i < links && e.file_seconds > most[w]) {
                most[w] = e.file_seconds;
                of_wall[w].where = traffic.where(static_cast<LinkId>(i));
            }
            of_wall[w].wall = wall;
            of_wall[w].of_time += e.file_seconds;
            of_wall[w].of_bytes += e.bytes;
            sum.file_seconds += e.file_seconds;
            sum.bytes += e.bytes;
        }
        std::vector<WallShare> out;
        for (WallShare& share : of_wall) {
            if (share.of_time <= 0) continue;
            share.of_time /= sum.file_seconds;
            if (sum.bytes > 0) share.of_bytes /= sum.bytes;
            out.push_back(share);
        }
        std::ranges::stable_sort(
            out, [](const WallShare& a, const WallShare& b) { return a.of_time > b.of_time; });
        return out;
    }

  private:
    struct Entry {
        double file_seconds = 0;
        double bytes = 0;
    };
    std::vector<Entry> entries_;
};

class BurstRun {
  public:
    BurstRun(const BurstSpec& spec, const std::vector<BurstLoad>& loads)
        : loads_(loads),
          traffic_(spec, loads),
          sharing_(traffic_),
          accounts_(loads.size() + 1, Account(traffic_.capacities().size())),
          unfinished_(loads.size()) {
        for (const BurstLoad& load : loads) {
            BurstResult r;
            r.what = load.what;
            const auto ranks = std::ssize(spec.nodes) * load.ranks_per_node;
            r.rank_ends.resize(static_cast<std::size_t>(ranks));
            r.bytes = load.bytes_per_rank * ranks;
            r.metadata = traffic_.operations_end(results_.size());
            results_.push_back(std::move(r));
        }
        for (const BurstStream& s : traffic_.streams()) {
            if (s.load < loads.size()) unfinished_[s.load] += s.files;
        }
    }

    std::vector<BurstResult> run() {
        if (traffic_.no_path().empty()) {
            look_ahead();
            while (step()) {
            }
        }
        for (std::uint32_t i = 0; i < results_.size(); ++i) conclude(i);
        return std::move(results_);
    }

  private:
    using Phase = BurstClass::Phase;

    bool neighbour(const BurstClass& c) const { return c.load == loads_.size(); }

    // From one change of rates to the next; false when there is none to come.
    bool step() {
        if (next_ >= time_max) return false;
        const Duration until = next_ + next_ / (++events_ > exact_events ? coarse : fine);
        advance(until);
        sharing_.solve();
        look_ahead();
        return true;
    }

    void look_ahead() {
        next_ = Duration::max();
        for (BurstClass& c : sharing_.classes()) {
            const bool moving = c.phase == Phase::moving;
            if (moving) c.end = end_after(now_, c.left, c.rate);
            if (c.phase == Phase::ended || neighbour(c)) continue;
            next_ = std::min(next_, moving ? c.end : c.start);
        }
    }

    void advance(Duration until) {
        std::vector<BurstClass>& classes = sharing_.classes();
        for (std::size_t i = 0; i < classes.size(); ++i) {
            BurstClass& c = classes[i];
            if (c.phase == Phase::moving) {
                move(i, std::min(until, c.end));
                if (c.end <= until) end(i);
            } else if (c.phase == Phase::waiting && c.start <= until) {
                accounts_[c.load].add({Wall::metadata, {}}, c.files * seconds(until), 0);
                sharing_.begin(i);
            }
        }
        now_ = until;
    }

    void move(std::size_t index, Duration until) {
        BurstClass& c = sharing_.classes()[index];
        const double time = seconds(until - now_);
        const double bytes = std::min(c.left, c.rate * time);
        c.left -= bytes;
        accounts_[c.load].add(sharing_.limit(index), c.files * time, c.files * bytes);
        if (neighbour(c)) neighbour_bytes_ += bytes * c.files;
    }

    void end(std::size_t index) {
        const BurstClass& c = sharing_.classes()[index];
        for (const std::uint32_t id : sharing_.streams(c)) {
            const BurstStream& s = traffic_.streams()[id];
            const Duration arrived = c.end + traffic_.latency(s.path);
            BurstResult& result = results_[s.load];
            for (std::uint32_t rank = s.first_rank; rank < s.first_rank + s.ranks; ++rank) {
                result.rank_ends[rank] = std::max(result.rank_ends[rank], arrived);
            }
            unfinished_[s.load] -= s.files;
        }
        sharing_.finish(index);
    }

    void conclude(std::uint32_t load) {
        BurstResult& r = results_[load];
        if (r.metadata.count() > 0) {
            r.operations_per_s =
                static_cast<double>(std::ssize(r.rank_ends) * loads_[load].operations_per_rank) /
                seconds(r.metadata);
        }
        if (unfinished_[load] > 0.5) {
            r.stuck = why_stuck(load);
            r.stall = time_max;
            return;
        }
        r.stall = *std::ranges::max_element(r.rank_ends);
        r.bandwidth = over(static_cast<double>(r.bytes.count()), r.stall);
        r.walls = accounts_[load].shares(traffic_);
        r.neighbours = over(neighbour_bytes_, now_);
    }

    std::string why_stuck(std::uint32_t load) {
        if (!traffic_.no_path().empty()) {
            return fmt::format("no path joins {}", traffic_.no_path());
        }
        for (std::size_t i = 0; i < sharing_.classes().size(); ++i) {
            const BurstClass& c = sharing_.classes()[i];
            if (c.phase != Phase::moving || c.load != load) continue;
            const BurstSharing::Limit limit = sharing_.limit(i);
            return fmt::format(
                "held back for more than 100 years by {}",
                limit.link ? traffic_.where(*limit.link) : std::string(wall_name(limit.wall)));
        }
        return "files are not created or opened within 100 years";
    }

    const std::vector<BurstLoad>& loads_;
    BurstTraffic traffic_;
    BurstSharing sharing_;
    std::vector<Account> accounts_;
    std::vector<double> unfinished_;  // files, by load
    std::vector<BurstResult> results_;
    double neighbour_bytes_ = 0;
    Duration now_{};
    Duration next_{};  // when rates change
    std::int64_t events_ = 0;
};

}  // namespace

DirectedLimits directed(const StoreLimits& limits, Direction direction) {
    const bool read = direction == Direction::read;
    const std::vector<Ceiling>& all = read ? limits.read : limits.write;
    RY_CHECK(!all.empty());
    const Ceiling& least = *std::ranges::min_element(
        all, [](const Ceiling& a, const Ceiling& b) { return a.bandwidth < b.bandwidth; });
    if (read) {
        return {least,
                limits.client_read,
                limits.file_read,
                limits.opens_per_s,
                limits.open_latency,
                limits.first_byte};
    }
    return {least,
            limits.client_write,
            limits.file_write,
            limits.creates_per_s,
            limits.create_latency,
            Duration{}};
}

Duration BurstResult::rank_end(double quantile) const {
    RY_CHECK(!rank_ends.empty());
    std::vector<Duration> sorted = rank_ends;
    const std::size_t at = nearest_place(quantile, sorted.size());
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at),
                     sorted.end());
    return sorted[at];
}

Bandwidth BurstResult::rank_bandwidth(double quantile) const {
    return over(static_cast<double>(bytes.count()) / static_cast<double>(rank_ends.size()),
                rank_end(1 - quantile));
}

std::string BurstResult::wall_text() const {
    if (walls.empty()) return "";
    const std::string name(wall_name(walls[0].wall));
    return walls[0].where.empty() ? name : fmt::format("{} ({})", name, walls[0].where);
}

std::uint64_t BurstResult::digest() const {
    Fingerprint digest;
    digest.add_all(what, stuck, stall, metadata, wall_text());
    for (const Duration end : rank_ends) digest.add(end);
    return digest.value();
}

std::vector<BurstResult> run_bursts(const BurstSpec& spec, const std::vector<BurstLoad>& loads) {
    return BurstRun(spec, loads).run();
}

BurstLinks burst_links(const BurstSpec& spec, const BurstLoad& load) {
    const BurstTraffic traffic(spec, {load});
    BurstLinks out;
    out.no_path = traffic.no_path();
    std::vector<double> shares(spec.topology.links().size());
    double files = 0;
    for (const BurstStream& stream : traffic.streams()) {
        files += stream.files;
        for (const Usage& usage : traffic.path(stream.path)) {
            if (!traffic.ceiling(usage.link)) {
                shares[usage.link] += stream.files * double{usage.share};
            }
        }
    }
    for (LinkId link = 0; link < shares.size(); ++link) {
        if (shares[link] <= 0) continue;
        out.links.push_back({link, shares[link] / files, traffic.capacities()[link]});
    }
    return out;
}

BurstResult run_burst(const BurstSpec& spec, const BurstLoad& load) {
    return run_bursts(spec, {load})[0];
}

}  // namespace railyard
