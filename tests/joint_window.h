#pragma once
// What the sharing of links between jobs (models/training/shared_links.h) is held against.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/training/link_sharing.h"
#include "sim/rng.h"

namespace railyard {

struct WindowLength {
    std::int64_t warm_up = 20;  // steps of each job that don't count
    std::int64_t steps = 120;   // of each, these included
    double jitter = 0;          // standard deviation of a step's bare computing over its mean
    std::uint64_t seed = 0;
};

class JointWindow {
  public:
    JointWindow(std::span<const StepTraffic> jobs, std::span<const double> offset_s,
                const WindowLength& length)
        : jobs_(jobs),
          length_(length),
          sharing_(pointers_to(jobs)),
          running_(jobs.size()),
          jitter_(length.seed, 0, "computing in a joint window") {
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            begin_step(j);
            running_[j].computing_s += offset_s[j];
            running_[j].began_s = offset_s[j];
        }
    }

    bool finished() const {
        return std::all_of(running_.begin(), running_.end(),
                           [&](const Running& r) { return r.done >= length_.steps; });
    }

    // To the next instant at which a job begins something else.
    void advance() {
        set_paces();
        const double next = until_next();
        now_ += next;
        for (std::size_t j = 0; j < running_.size(); ++j) spend(j, next);
    }

    std::vector<double> mean_steps_s() const {
        std::vector<double> out;
        for (const Running& r : running_)
            out.push_back(r.sum_s / static_cast<double>(length_.steps - length_.warm_up));
        return out;
    }

  private:
    struct Running {
        std::size_t part = LinkSharing::nowhere;  // that it sends; else it computes alone
        double computing_s = 0;                   // left of this part
        double sending_s = 0;                     // likewise, at the pace that it has alone
        double began_s = 0;
        std::int64_t done = 0;
        double sum_s = 0;
        double pace = 1;
    };

    static std::vector<const StepTraffic*> pointers_to(std::span<const StepTraffic> jobs) {
        std::vector<const StepTraffic*> out;
        for (const StepTraffic& job : jobs) out.push_back(&job);
        return out;
    }

    // What hides a part, so that slowed down very much it costs what the step model says.
    double beside_s(std::size_t p) const {
        const TrafficPart& traffic = *sharing_.parts()[p].traffic;
        const double most = traffic_slowdowns().back();
        return std::max(traffic.busy_s, most * traffic.busy_s - traffic.longer_at(most));
    }

    void begin_step(std::size_t j) {
        double bare = jobs_[j].step_s;
        for (std::size_t p = sharing_.first(j); p < sharing_.first(j + 1); ++p) bare -= beside_s(p);
        running_[j].part = LinkSharing::nowhere;
        running_[j].computing_s = std::max(0.0, bare * (1 + length_.jitter * jitter_.normal()));
    }

    void set_paces() {
        active_.clear();
        for (const Running& r : running_) {
            if (r.sending_s > 0) active_.push_back(r.part);
        }
        sharing_.paces(active_, paces_);
        for (std::size_t a = 0; a < active_.size(); ++a) {
            running_[sharing_.parts()[active_[a]].job].pace = paces_[a].share;
        }
    }

    double until_next() const {
        double next = std::numeric_limits<double>::infinity();
        for (const Running& r : running_) {
            if (r.computing_s > 0) next = std::min(next, r.computing_s);
            if (r.sending_s > 0) next = std::min(next, r.sending_s / r.pace);
            if (r.computing_s <= 0 && r.sending_s <= 0) next = 0;
        }
        return next;
    }

    void spend(std::size_t j, double time) {
        Running& r = running_[j];
        const auto take = [time](double& left, double pace) {
            left = left - time * pace > 1e-12 ? left - time * pace : 0;
        };
        take(r.computing_s, 1);
        take(r.sending_s, r.pace);
        if (r.computing_s > 0 || r.sending_s > 0) return;
        const std::size_t following =
            r.part == LinkSharing::nowhere ? sharing_.first(j) : r.part + 1;
        if (following < sharing_.first(j + 1)) {
            r.part = following;
            r.sending_s = sharing_.parts()[following].traffic->busy_s;
            r.computing_s = beside_s(following) > r.sending_s ? beside_s(following) : 0;
            return;
        }
        if (r.done >= length_.warm_up && r.done < length_.steps) r.sum_s += now_ - r.began_s;
        ++r.done;
        r.began_s = now_;
        begin_step(j);
    }

    std::span<const StepTraffic> jobs_;
    WindowLength length_;
    LinkSharing sharing_;
    std::vector<Running> running_;
    RandomStream jitter_;
    double now_ = 0;
    std::vector<std::size_t> active_;
    std::vector<LinkSharing::Pace> paces_;
};

// The same jobs in a window in which each step of each is simulated: first the computing that nothing
// hides, then each part in turn with what it hides behind. `offset_s`: when each job's first step begins.
// Mean seconds of the steps of each job.
inline std::vector<double> joint_window(std::span<const StepTraffic> jobs,
                                        std::span<const double> offset_s,
                                        const WindowLength& length) {
    JointWindow window(jobs, offset_s, length);
    while (!window.finished()) window.advance();
    return window.mean_steps_s();
}

}  // namespace railyard
