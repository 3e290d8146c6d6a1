#include "models/storage/burst_sharing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/fingerprint.h"

// The one hard idea: most links of a network never hold a burst back, so they need not take part.
//
// Rates that are max-min fair over some of the links, and fill no other link beyond its capacity, are
// max-min fair over all of them: every flow still has its bottleneck. So the sharing starts with the
// servers' ceilings alone, looks what that would put on each link, and takes in those that it overfills,
// until there are none. Links that could not be full if every stream had the network for itself are never
// looked at. And streams that cross the same watched links in the same way are one flow: of 2,048 nodes
// that write to all servers alike, one is left. Rates that stay below what has been looked at need no
// second look, nor do links that would not be full if all files that move were as fast as the fastest.

namespace railyard {

namespace {

constexpr double tolerance = 1e-6;  // relative; shares have seven digits

}  // namespace

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
        const bool fills = capacities[link] <= 0 || most[link] > capacities[link] * (1 + tolerance);
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
            proved = proved && c.rate <= proved_[i] * (1 + tolerance / 10);
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
    if (present > 1 + tolerance) {
        for (const LinkId link : candidates_) {
            const double full = traffic_.capacities()[link] * (1 + tolerance);
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

}  // namespace railyard
