#pragma once
// Several jobs' parts of steps on links, max-min fairly.

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "models/training/shared_links.h"
#include "sim/check.h"

namespace railyard {

// The parts of several jobs on the links that they can fill together; a link that another one implies is left
// out.
class LinkSharing {
  public:
    struct Part {
        std::size_t job = 0;
        const TrafficPart* traffic = nullptr;
        struct Use {
            std::size_t link = 0;
            double share = 0;  // of its capacity, for each byte/s of the part's flows
        };
        std::vector<Use> uses;
    };
    static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

    explicit LinkSharing(std::span<const StepTraffic* const> jobs) : first_{0} {
        std::map<LinkId, Row> by_link;
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            for (const TrafficPart& traffic : jobs[j]->parts) {
                for (const LinkLoads::Load& load : traffic.loads.links) {
                    Row& row = by_link[load.link];
                    row.capacity = load.capacity_bytes_per_s;
                    row.uses.emplace_back(parts_.size(), load.flows);
                }
                parts_.push_back({j, &traffic, {}});
            }
            first_.push_back(parts_.size());
        }
        keep_those_that_bind(by_link);
    }

    const std::vector<Part>& parts() const { return parts_; }
    // A job has the parts from first(j) to first(j + 1).
    std::size_t first(std::size_t job) const { return first_[job]; }

    // The pace of each of these parts, one of a job at most, when nobody else sends: shares of what they
    // have alone. `link`: which holds it back, or nowhere.
    struct Pace {
        double share = 1;
        std::size_t link = nowhere;
    };
    void paces(std::span<const std::size_t> active, std::vector<Pace>& out) {
        out.assign(active.size(), {});
        touched_.clear();
        place_.resize(parts_.size(), nowhere);
        for (std::size_t a = 0; a < active.size(); ++a) {
            place_[active[a]] = a;
            for (const Part::Use& use : parts_[active[a]].uses) {
                if (rising_count_[use.link]++ == 0) {
                    touched_.push_back(use.link);
                    left_[use.link] = 1;
                    rising_[use.link] = 0;
                }
                rising_[use.link] += use.share;
            }
        }
        const auto freeze = [&](std::size_t a, double level, std::size_t where) {
            const Part& part = parts_[active[a]];
            place_[active[a]] = nowhere;
            out[a] = {std::min(1.0, level / part.traffic->loads.flow_bytes_per_s), where};
            for (const Part::Use& use : part.uses) {
                left_[use.link] -= level * use.share;
                rising_[use.link] -= use.share;
                --rising_count_[use.link];
            }
        };
        while (true) {
            // All rise together to the first limit: what a part has alone, or a full link.
            double level = std::numeric_limits<double>::infinity();
            std::size_t who = nowhere;
            for (std::size_t a = 0; a < active.size(); ++a) {
                const double alone = parts_[active[a]].traffic->loads.flow_bytes_per_s;
                if (place_[active[a]] == nowhere || alone >= level) continue;
                level = alone;
                who = a;
            }
            if (who == nowhere) break;
            std::size_t where = nowhere;
            for (const std::size_t link : touched_) {
                if (rising_count_[link] == 0) continue;
                const double fair = std::max(0.0, left_[link]) / rising_[link];
                if (fair * (1 + 1e-9) >= level) continue;
                level = fair;
                where = link;
            }
            if (where == nowhere) {
                freeze(who, level, where);
                continue;
            }
            for (const std::size_t part : on_link_[where]) {
                if (place_[part] != nowhere) freeze(place_[part], level, where);
            }
        }
#ifndef NDEBUG
        audit(active, out);
#endif
    }

    double share_on(std::size_t part, std::size_t link) const {
        for (const Part::Use& use : parts_[part].uses) {
            if (use.link == link) return use.share;
        }
        return 0;
    }

  private:
    // No link carries more than it can.
    void audit(std::span<const std::size_t> active, std::span<const Pace> paces) const {
        std::vector<double> used(on_link_.size());
        for (std::size_t a = 0; a < active.size(); ++a) {
            const Part& part = parts_[active[a]];
            for (const Part::Use& use : part.uses) {
                used[use.link] += use.share * paces[a].share * part.traffic->loads.flow_bytes_per_s;
            }
        }
        for (const double share : used) RY_CHECK(share <= 1 + 1e-6);
    }

    struct Row {
        double capacity = 0;
        std::vector<std::pair<std::size_t, double>> uses;  // part, flows; ascending
    };

    // A link: what share of its capacity each part's flows take per byte/s that they have.
    struct Bound {
        std::vector<std::pair<std::size_t, double>> takes;  // part, share; ascending

        // Whoever respects this one respects the other: it takes no less of any part.
        bool implies(const Bound& other) const {
            auto mine = takes.begin();
            for (const auto& [part, share] : other.takes) {
                while (mine != takes.end() && mine->first < part) ++mine;
                if (mine == takes.end() || mine->first != part || mine->second < share)
                    return false;
            }
            return true;
        }
    };

    // Fair rates follow from what is possible alone, so a link that another one implies can go.
    void keep_those_that_bind(const std::map<LinkId, Row>& by_link) {
        std::vector<Bound> bounds;
        for (const auto& [link, row] : by_link) {
            double load = 0;
            Bound bound;
            for (std::size_t i = 0; i < row.uses.size();) {  // of each job the part that sends most
                const std::size_t job = parts_[row.uses[i].first].job;
                double most = 0;
                for (; i < row.uses.size() && parts_[row.uses[i].first].job == job; ++i) {
                    const auto& [part, flows] = row.uses[i];
                    most = std::max(most, flows * parts_[part].traffic->loads.flow_bytes_per_s);
                    bound.takes.emplace_back(part, flows / row.capacity);
                }
                load += most;
            }
            if (load > row.capacity * (1 + 1e-6)) bounds.push_back(std::move(bound));
        }
        const auto larger = [](const Bound& a, const Bound& b) {
            return a.takes.size() != b.takes.size() ? a.takes.size() > b.takes.size()
                                                    : a.takes > b.takes;
        };
        std::ranges::sort(bounds, larger);
        std::vector<Bound> kept;
        for (const Bound& bound : bounds) {
            const auto implies = [&](const Bound& other) { return other.implies(bound); };
            if (std::ranges::any_of(kept, implies)) continue;
            std::vector<std::size_t>& parts = on_link_.emplace_back();
            for (const auto& [part, share] : bound.takes) {
                parts_[part].uses.push_back({on_link_.size() - 1, share});
                parts.push_back(part);
            }
            kept.push_back(bound);
        }
        left_.resize(on_link_.size());
        rising_.resize(on_link_.size());
        rising_count_.resize(on_link_.size());
    }

    std::vector<Part> parts_;
    std::vector<std::size_t> first_;
    std::vector<std::vector<std::size_t>> on_link_;  // parts, of each link that binds
    // While paces are being found:
    std::vector<double> left_;          // of each link that is touched
    std::vector<double> rising_;        // shares of its parts that still rise
    std::vector<int> rising_count_;     // these; none between two calls
    std::vector<std::size_t> touched_;  // links
    std::vector<std::size_t> place_;    // of each part that rises, among the active ones
};

}  // namespace railyard
