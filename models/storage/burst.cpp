#include "models/storage/burst.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "models/storage/burst_traffic.h"
#include "sim/check.h"
#include "sim/fingerprint.h"
#include "sim/statistics.h"

namespace railyard {

namespace {

constexpr double nanoseconds = 1e9;  // of a second
// Ends so close to each other, relative to the time so far, happen together; after many, wider apart.
// Each keeps its own instant: only what it sets free comes to the others so much later.
constexpr std::int64_t exact_events = 128;
constexpr std::int64_t fine = 1'000'000;
constexpr std::int64_t coarse = 256;

Duration end_after(Duration now, double bytes, double rate) {
    if (rate <= 0) return Duration::max();
    const double wait = std::ceil(std::max(0.0, bytes) / rate * nanoseconds);
    const double limit = real(time_max.count());
    if (wait >= limit) return time_max;
    return std::min(time_max, now + Duration(static_cast<std::int64_t>(wait)));
}

Bandwidth bandwidth_of(double bytes_per_s) {
    return Bandwidth::bits_per_second(std::llround(std::min(bytes_per_s * 8, 9e18)));
}

Bandwidth over(double bytes, Duration time) {
    return time.count() > 0 ? bandwidth_of(bytes / seconds(time)) : Bandwidth{};
}

// The one hard idea: most links of a network never hold a burst back, so they need not take part.
//
// Rates that are max-min fair over some of the links, and fill no other link beyond its capacity, are
// max-min fair over all of them: every flow still has its bottleneck. So the sharing starts with the
// servers' ceilings alone, looks what that would put on each link, and takes in those that it overfills,
// until there are none. Links that could not be full if every stream had the network for itself are never
// looked at. And streams that cross the same watched links in the same way are one flow: of 2,048 nodes
// that write to all servers alike, one is left. Rates that stay below what has been looked at need no
// second look, nor do links that would not be full if all files that move were as fast as the fastest.

constexpr double share_tolerance = 1e-6;  // relative; shares have seven digits

// Streams that get the same, and so are one flow.
struct BurstClass {
    std::uint32_t first = 0;  // in BurstSharing::order()
    std::uint32_t count = 0;
    double files = 0;
    Duration start{};
    double left = 0;  // bytes of each file
    double rate = 0;  // of each file, bytes/s
    Duration end = Duration::max();
    std::uint32_t group = 0;
    std::uint32_t load = 0;  // of its streams
    enum class Phase : std::uint8_t { waiting, moving, ended } phase = Phase::waiting;
};

class BurstSharing {
  public:
    explicit BurstSharing(const BurstTraffic& traffic);

    // Splits when a link turns out to matter: indices hold until the next solve().
    std::vector<BurstClass>& classes() { return classes_; }
    std::span<const std::uint32_t> streams(const BurstClass& c) const {
        return {order_.data() + c.first, c.count};
    }
    void begin(std::size_t index);
    void finish(std::size_t index);
    // Brings all rates up to date.
    void solve();

    // What holds a moving class back, and the link that does, if it is one.
    struct Limit {
        Wall wall;
        std::optional<LinkId> link;
    };
    Limit limit(std::size_t index) const;

  private:
    struct Bound {  // of one file, by what it shares with no other stream
        double rate;
        Limit limit;
    };
    // Classes that differ only in when they begin and in whose they are: those that move have the same
    // rate, and are one flow.
    struct Group {
        std::uint32_t stream = 0;  // one of them
        double files = 0;          // that move
        bool flows = false;
        bool changed = false;
        FlowId flow = 0;
    };
    void find_bounds();
    void find_candidates();
    std::uint64_t key(std::uint32_t stream) const;
    std::uint64_t group_key(std::uint32_t stream) const;
    void classify();
    void group_classes();
    void share_anew();
    void move_files(std::uint32_t group, double files);
    void update_flow(std::uint32_t group);
    bool watch_more_links();
    void watch(LinkId link);
    void add_loads(const BurstClass& c, double rate, std::vector<double>& loads) const;
    // Load over capacity of the fullest link that is not watched.
    double fullest(const std::vector<double>& loads) const;

    const BurstTraffic& traffic_;
    std::vector<Bound> bounds_;  // by stream
    enum Watched : std::uint8_t { not_yet, taking_part, never_full };
    std::vector<Watched> watched_;         // by link
    std::vector<LinkId> candidates_;       // links that can ever be full
    std::vector<LinkId> watched_links_;    // by link of shares_
    std::vector<std::uint32_t> place_;     // and back
    std::vector<std::uint64_t> path_key_;  // what stands for a path's watched links
    std::vector<std::uint32_t> order_;     // streams, class by class
    std::vector<BurstClass> classes_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> changed_groups_;
    std::vector<double> proved_;  // by class: rates at which no link is too full
    std::vector<double> load_;    // by link
    // By link: what a byte/s of each file puts there, of all that move or did at the last look.
    std::vector<double> moving_;
    std::optional<MaxMin> shares_;
};

BurstSharing::BurstSharing(const BurstTraffic& traffic)
    : traffic_(traffic),
      watched_(traffic.capacities().size()),
      place_(traffic.capacities().size()),
      load_(traffic.capacities().size()),
      moving_(traffic.capacities().size()) {
    find_bounds();
    find_candidates();
    for (LinkId link = 0; link < watched_.size(); ++link) {
        const bool of_store = traffic.ceiling(link) && traffic.wall(link) == Wall::store;
        if (of_store && watched_[link] == not_yet) watch(link);
    }
    order_.resize(traffic.streams().size());
    std::iota(order_.begin(), order_.end(), 0U);
    const auto& streams = traffic.streams();
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
        const BurstStream& s = streams[i];
        classes_.push_back({i, 1, s.files, s.start, s.bytes});
        classes_.back().load = s.load;
    }
    share_anew();
}

// A link that one stream alone crosses is a bound of that stream, and no more.
void BurstSharing::find_bounds() {
    std::vector<std::uint32_t> crossings(watched_.size());
    for (const BurstStream& s : traffic_.streams()) {
        for (const Usage& u : traffic_.path(s.path)) ++crossings[u.link];
    }
    for (const BurstStream& s : traffic_.streams()) {
        Bound bound{s.cap, {s.cap_wall, {}}};
        for (const Usage& u : traffic_.path(s.path)) {
            if (crossings[u.link] > 1) continue;
            watched_[u.link] = never_full;  // done with
            const double rate = traffic_.capacities()[u.link] / (double{u.share} * s.files);
            if (rate < bound.rate) bound = {rate, {traffic_.wall(u.link), u.link}};
        }
        bounds_.push_back(bound);
    }
}

void BurstSharing::find_candidates() {
    std::vector<double>& most = load_;
    const auto& capacities = traffic_.capacities();
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
        const BurstStream& s = traffic_.streams()[i];
        const auto path = traffic_.path(s.path);
        double alone = bounds_[i].rate;
        for (const Usage& u : path) {
            alone = std::min(alone, capacities[u.link] / (double{u.share} * s.files));
        }
        for (const Usage& u : path) most[u.link] += alone * s.files * double{u.share};
    }
    for (LinkId link = 0; link < watched_.size(); ++link) {
        const bool fills =
            capacities[link] <= 0 || most[link] > capacities[link] * (1 + share_tolerance);
        if (!fills) watched_[link] = never_full;
        if (watched_[link] == not_yet) candidates_.push_back(link);
    }
    std::uint32_t paths = 0;
    for (const BurstStream& s : traffic_.streams()) paths = std::max(paths, s.path + 1);
    path_key_.resize(paths);
}

std::uint64_t BurstSharing::key(std::uint32_t stream) const {
    const BurstStream& s = traffic_.streams()[stream];
    Fingerprint key;
    key.add_all(s.load, s.start, static_cast<int>(bounds_[stream].limit.wall), group_key(stream));
    return key.value();
}

std::uint64_t BurstSharing::group_key(std::uint32_t stream) const {
    Fingerprint key;
    key.add_all(bounds_[stream].rate, path_key_[traffic_.streams()[stream].path]);
    return key.value();
}

// Splits classes by what their streams cross now. 64 bits of digest stand for that.
void BurstSharing::classify() {
    for (std::uint32_t p = 0; p < path_key_.size(); ++p) {
        Fingerprint key;
        for (const Usage& u : traffic_.path(p)) {
            if (watched_[u.link] == taking_part) key.add_all(u.link, double{u.share});
        }
        path_key_[p] = key.value();
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed;
    std::vector<BurstClass> before(order_.size());
    for (const BurstClass& c : classes_) {
        for (const std::uint32_t stream : streams(c)) {
            before[stream] = c;
            keyed.emplace_back(key(stream), stream);
        }
    }
    std::ranges::sort(keyed);
    classes_.clear();
    for (std::uint32_t i = 0; i < keyed.size(); ++i) {
        const std::uint32_t stream = keyed[i].second;
        order_[i] = stream;
        if (i == 0 || keyed[i].first != keyed[i - 1].first) {
            classes_.push_back(before[stream]);
            classes_.back().first = i;
            classes_.back().count = 0;
            classes_.back().files = 0;
        }
        ++classes_.back().count;
        classes_.back().files += traffic_.streams()[stream].files;
    }
}

void BurstSharing::share_anew() {
    classify();
    group_classes();
    std::vector<double> capacities;
    for (const LinkId link : watched_links_) capacities.push_back(traffic_.capacities()[link]);
    for (const Group& g : groups_) capacities.push_back(bounds_[g.stream].rate);
    shares_.emplace(std::move(capacities));
    proved_.assign(classes_.size(), 0);
    for (const BurstClass& c : classes_) {
        if (c.phase == BurstClass::Phase::moving) move_files(c.group, c.files);
    }
}

void BurstSharing::group_classes() {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed;
    for (std::uint32_t i = 0; i < classes_.size(); ++i) {
        keyed.emplace_back(group_key(order_[classes_[i].first]), i);
    }
    std::ranges::sort(keyed);
    groups_.clear();
    changed_groups_.clear();
    for (std::size_t i = 0; i < keyed.size(); ++i) {
        BurstClass& c = classes_[keyed[i].second];
        if (i == 0 || keyed[i].first != keyed[i - 1].first) groups_.push_back({order_[c.first]});
        c.group = static_cast<std::uint32_t>(groups_.size() - 1);
    }
}

void BurstSharing::move_files(std::uint32_t group, double files) {
    Group& g = groups_[group];
    g.files += files;
    if (!std::exchange(g.changed, true)) changed_groups_.push_back(group);
}

void BurstSharing::update_flow(std::uint32_t group) {
    Group& g = groups_[group];
    g.changed = false;
    if (g.flows) shares_->remove(g.flow);
    g.flows = g.files > 0.5;
    if (!g.flows) return;
    std::vector<Usage> usages;
    const auto files = static_cast<float>(g.files);
    for (const Usage& u : traffic_.path(traffic_.streams()[g.stream].path)) {
        if (watched_[u.link] == taking_part) usages.push_back({place_[u.link], u.share * files});
    }
    usages.push_back({static_cast<LinkId>(watched_links_.size() + group), 1});
    g.flow = shares_->add(usages);
}

void BurstSharing::begin(std::size_t index) {
    add_loads(classes_[index], 1, moving_);
    classes_[index].phase = BurstClass::Phase::moving;
    move_files(classes_[index].group, classes_[index].files);
}

void BurstSharing::finish(std::size_t index) {
    classes_[index].phase = BurstClass::Phase::ended;
    move_files(classes_[index].group, -classes_[index].files);
}

void BurstSharing::solve() {
    double fastest = 0;
    bool proved = true;
    do {
        for (const std::uint32_t group : std::exchange(changed_groups_, {})) update_flow(group);
        shares_->solve();
        fastest = 0;
        proved = true;
        for (std::size_t i = 0; i < classes_.size(); ++i) {
            BurstClass& c = classes_[i];
            c.rate =
                c.phase == BurstClass::Phase::moving ? shares_->rate(groups_[c.group].flow) : 0;
            fastest = std::max(fastest, c.rate);
            proved = proved && c.rate <= proved_[i] * (1 + share_tolerance / 10);
        }
        // Often enough nothing would be too full if all were as fast as the fastest.
    } while (!proved && fastest * fullest(moving_) > 1 && watch_more_links());
}

void BurstSharing::add_loads(const BurstClass& c, double rate, std::vector<double>& loads) const {
    for (const std::uint32_t stream : streams(c)) {
        const BurstStream& s = traffic_.streams()[stream];
        for (const Usage& u : traffic_.path(s.path))
            loads[u.link] += rate * s.files * double{u.share};
    }
}

double BurstSharing::fullest(const std::vector<double>& loads) const {
    double most = 0;
    for (const LinkId link : candidates_) {
        if (watched_[link] != not_yet || loads[link] <= 0) continue;
        most = std::max(most, loads[link] / traffic_.capacities()[link]);
    }
    return most;
}

// False when the present rates overfill nothing; it is then proved up to where the fullest link would be
// full. Files that have ended since the last look leave what moves here.
bool BurstSharing::watch_more_links() {
    std::fill(load_.begin(), load_.end(), 0.0);
    std::fill(moving_.begin(), moving_.end(), 0.0);
    for (const BurstClass& c : classes_) {
        if (c.phase != BurstClass::Phase::moving) continue;
        add_loads(c, c.rate, load_);
        add_loads(c, 1, moving_);
    }
    const double present = fullest(load_);
    if (present > 1 + share_tolerance) {
        for (const LinkId link : candidates_) {
            const double full = traffic_.capacities()[link] * (1 + share_tolerance);
            if (watched_[link] == not_yet && load_[link] > full) watch(link);
        }
        share_anew();
        return true;
    }
    const double room = std::max(1.0, 1 / std::max(present, 1e-9));
    for (std::size_t i = 0; i < classes_.size(); ++i) proved_[i] = classes_[i].rate * room;
    return false;
}

void BurstSharing::watch(LinkId link) {
    watched_[link] = taking_part;
    place_[link] = static_cast<std::uint32_t>(watched_links_.size());
    watched_links_.push_back(link);
}

BurstSharing::Limit BurstSharing::limit(std::size_t index) const {
    const LinkId link = shares_->bottleneck(groups_[classes_[index].group].flow);
    if (link < watched_links_.size()) {
        const LinkId full = watched_links_[link];
        return {traffic_.wall(full), full};
    }
    return bounds_[order_[classes_[index].first]].limit;
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
            r.operations_per_s = real(std::ssize(r.rank_ends) * loads_[load].operations_per_rank) /
                                 seconds(r.metadata);
        }
        if (unfinished_[load] > 0.5) {
            r.stuck = why_stuck(load);
            r.stall = time_max;
            return;
        }
        r.stall = *std::ranges::max_element(r.rank_ends);
        r.bandwidth = over(real(r.bytes.count()), r.stall);
        r.walls = accounts_[load].shares(traffic_);
        r.neighbours = over(neighbour_bytes_, now_);
    }

    std::string why_stuck(std::uint32_t load) {
        if (!traffic_.no_path().empty()) return fmt::format("no path joins {}", traffic_.no_path());
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
    std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
    return sorted[at];
}

Bandwidth BurstResult::rank_bandwidth(double quantile) const {
    return over(real(bytes.count()) / real(rank_ends.size()), rank_end(1 - quantile));
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
