#pragma once
// The max-min fair shares of a burst's streams, found without most of its links.

#include <optional>

#include "models/storage/burst_traffic.h"

namespace railyard {

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

}  // namespace railyard
