#include "models/training/shared_links.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "models/training/link_sharing.h"
#include "sim/check.h"
#include "sim/rng.h"

namespace railyard {

namespace {

// The model of the header: slowdowns of parts, and whom each waits for.
class DriftingPhases {
  public:
    DriftingPhases(std::vector<const StepTraffic*> jobs, std::vector<double> pause_s)
        : jobs_(std::move(jobs)),
          pause_s_(std::move(pause_s)),
          sharing_(jobs_),
          slowdown_(sharing_.parts().size(), 1.0),
          blame_(slowdown_.size(), std::vector<double>(jobs_.size())) {
        double states = 1;
        for (std::size_t j = 0; j < jobs_.size(); ++j) states *= real(ways(j));
        if (states > states_max) {
            sample();
        } else {
            solve_chain(static_cast<std::size_t>(states));
        }
    }

    double longer_s(std::size_t job) const {
        double sum = 0;
        for (std::size_t p = sharing_.first(job); p < sharing_.first(job + 1); ++p) {
            sum += sharing_.parts()[p].traffic->longer_at(slowdown_[p]);
        }
        return sum;
    }
    // How long the job waited for each other job: seconds a step.
    std::vector<double> waits_for(std::size_t job) const {
        std::vector<double> out(jobs_.size());
        for (std::size_t p = sharing_.first(job); p < sharing_.first(job + 1); ++p) {
            double all = 0;
            for (const double b : blame_[p]) all += b;
            if (all <= 0) continue;
            const double longer = sharing_.parts()[p].traffic->longer_at(slowdown_[p]);
            for (std::size_t i = 0; i < out.size(); ++i) out[i] += longer * blame_[p][i] / all;
        }
        return out;
    }

  private:
    static constexpr double states_max = 1024;
    static constexpr std::size_t samples = 192;
    static constexpr int sampled_rounds = 8;
    static constexpr int rough_rounds = 6;  // of these, with a quarter of the samples
    static constexpr int rounds_max = 50;
    static constexpr int sweeps_max = 2000;
    static constexpr double pace_min = 1e-9;

    double busy_s(std::size_t part) const { return sharing_.parts()[part].traffic->busy_s; }
    // Its parts, and sending nothing where it ever does.
    std::size_t ways(std::size_t job) const {
        return (jobs_[job]->endless ? 0 : 1) + jobs_[job]->parts.size();
    }
    // What the job sends in this of its ways.
    std::size_t part_in(std::size_t way, std::size_t job) const {
        const std::size_t silent = jobs_[job]->endless ? 0 : 1;
        return way < silent ? LinkSharing::nowhere : sharing_.first(job) + way - silent;
    }
    // The time in a step, at the present slowdowns, in which the job doesn't send. At least 0: parts of one
    // job may run at once.
    double idle_s(std::size_t job) const {
        const double step = jobs_[job]->step_s + pause_s_[job] + longer_s(job);
        double idle = step;
        for (std::size_t p = sharing_.first(job); p < sharing_.first(job + 1); ++p) {
            idle -= busy_s(p) * slowdown_[p];
        }
        return std::max(idle, 1e-6 * step);
    }

    // What everybody is doing, and how fast that goes.
    struct Moment {
        std::vector<std::size_t> active;
        std::vector<LinkSharing::Pace> paces;
    };
    void find_paces(Moment& moment) { sharing_.paces(moment.active, moment.paces); }

    // What a part loses in a moment goes to those whose flows share its full link, by what passes.
    void add_blame(const Moment& moment, double probability) {
        for (std::size_t a = 0; a < moment.active.size(); ++a) {
            const LinkSharing::Pace& pace = moment.paces[a];
            if (pace.link == LinkSharing::nowhere) continue;
            const auto passes = [&](std::size_t b) {
                const std::size_t q = moment.active[b];
                return b == a ? 0
                              : sharing_.share_on(q, pace.link) * moment.paces[b].share *
                                    sharing_.parts()[q].traffic->loads.flow_bytes_per_s;
            };
            double others = 0;
            for (std::size_t b = 0; b < moment.active.size(); ++b) others += passes(b);
            if (others <= 0) continue;
            std::vector<double>& blame = blame_[moment.active[a]];
            for (std::size_t b = 0; b < moment.active.size(); ++b) {
                blame[sharing_.parts()[moment.active[b]].job] +=
                    probability * (1 - pace.share) * passes(b) / others;
            }
        }
    }

    // All jobs' phases. State s has for each job, as digits, in which of its ways it is.
    struct Chain {
        std::size_t jobs = 0;
        std::vector<Moment> moments;  // by state
        std::vector<double> sending;  // ends of parts per second, by state and job
        std::vector<std::uint32_t>
            before;                  // where the job comes from, likewise; itself if it never moves
        std::vector<double> rate;    // at which it leaves its way, likewise
        std::vector<double> out;     // of all jobs, by state
        std::vector<double> chance;  // likewise
        std::vector<std::uint8_t> is_idle;  // by state and job

        // Gauss and Seidel's sweeps, from the chances as they are.
        void settle() {
            for (int sweep = 0; chance.size() > 1 && sweep < sweeps_max; ++sweep) {
                double sum = 0;
                double change = 0;
                for (std::size_t s = 0; s < chance.size(); ++s) {
                    double in = 0;
                    for (std::size_t i = s * jobs; i < (s + 1) * jobs; ++i) {
                        in += chance[before[i]] * rate[before[i] * jobs + i - s * jobs];
                    }
                    change += std::abs(in / out[s] - chance[s]);
                    chance[s] = in / out[s];
                    sum += chance[s];
                }
                for (double& c : chance) c /= sum;
                if (change < 1e-10 * sum) break;
            }
        }
        // Where `idle` says how long each job sends nothing.
        void set_rates(const std::vector<double>& idle) {
            std::ranges::fill(out, 0);
            for (std::size_t i = 0; i < rate.size(); ++i) {
                if (before[i] == i / jobs) continue;
                rate[i] = is_idle[i] != 0 ? 1 / idle[i % jobs] : sending[i];
                out[i / jobs] += rate[i];
            }
        }
    };
    Chain chain(std::size_t states) {
        const std::size_t n = jobs_.size();
        Chain out{.jobs = n,
                  .moments = std::vector<Moment>(states),
                  .sending = std::vector<double>(states * n),
                  .before = {},
                  .rate = std::vector<double>(states * n),
                  .out = std::vector<double>(states),
                  .chance = std::vector<double>(states, 1.0 / real(states)),
                  .is_idle = {}};
        for (std::size_t s = 0; s < states; ++s) {
            Moment& moment = out.moments[s];
            std::size_t radix = 1;
            for (std::size_t j = 0; j < n; ++j) {
                const std::size_t digit = s / radix % ways(j);
                const std::size_t part = part_in(digit, j);
                if (part != LinkSharing::nowhere) moment.active.push_back(part);
                out.is_idle.push_back(digit == 0 ? 1 : 0);
                out.before.push_back(
                    static_cast<std::uint32_t>(digit > 0 ? s - radix : s + (ways(j) - 1) * radix));
                radix *= ways(j);
            }
            find_paces(moment);
            for (std::size_t a = 0; a < moment.active.size(); ++a) {
                const std::size_t p = moment.active[a];
                out.sending[s * n + sharing_.parts()[p].job] = moment.paces[a].share / busy_s(p);
            }
        }
        return out;
    }
    void solve_chain(std::size_t states) {
        Chain all = chain(states);
        std::vector<double> idle(jobs_.size());
        for (int round = 0; round < rounds_max; ++round) {
            for (std::size_t j = 0; j < idle.size(); ++j) idle[j] = idle_s(j);
            all.set_rates(idle);
            all.settle();
            if (take_slowdowns(all.moments, all.chance, idle) < 1e-9) break;
        }
        for (std::size_t s = 0; s < states; ++s) add_blame(all.moments[s], all.chance[s]);
    }

    // Time in a part, for each time out of all of them. The largest change of a slowdown.
    double take_slowdowns(const std::vector<Moment>& moments, const std::vector<double>& chance,
                          const std::vector<double>& idle) {
        std::vector<double> in_part(slowdown_.size());
        std::vector<double> pace(slowdown_.size());  // in all of the time
        for (std::size_t s = 0; s < moments.size(); ++s) {
            for (std::size_t a = 0; a < moments[s].active.size(); ++a) {
                in_part[moments[s].active[a]] += chance[s];
                pace[moments[s].active[a]] += chance[s] * moments[s].paces[a].share;
            }
        }
        double change = 0;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            double idle_share = 1;
            for (std::size_t p = sharing_.first(j); p < sharing_.first(j + 1); ++p) {
                idle_share -= in_part[p];
            }
            for (std::size_t p = sharing_.first(j); p < sharing_.first(j + 1); ++p) {
                const double slower =
                    jobs_[j]->endless
                        ? 1 / std::max(pace[p], pace_min)
                        : std::max(1.0, in_part[p] / idle_share * idle[j] / busy_s(p));
                change = std::max(change, std::abs(slower / slowdown_[p] - 1));
                slowdown_[p] = slower;
            }
        }
        return change;
    }

    // Latin hypercube: over the samples each job spends its time as its shares say.
    void sample() {
        std::vector<std::vector<double>> place(jobs_.size());
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            RandomStream stream(0, j, "phases of jobs that share links");
            for (std::size_t i = 0; i < samples; ++i) place[j].push_back((real(i) + 0.5) / samples);
            stream.shuffle(place[j]);
        }
        Moment moment;
        for (int round = 0; round < sampled_rounds; ++round) {
            const std::vector<double> share = shares_of_time();
            std::vector<double> sum(slowdown_.size());
            std::vector<double> count(slowdown_.size());
            const std::size_t drawn = round < rough_rounds ? samples / 4 : samples;
            for (std::size_t i = 0; i < drawn; ++i) {
                moment.active.clear();
                for (std::size_t j = 0; j < jobs_.size(); ++j) {
                    double at = place[j][i];
                    for (std::size_t p = sharing_.first(j); p < sharing_.first(j + 1); ++p) {
                        if (jobs_[j]->endless || at < share[p]) {
                            moment.active.push_back(p);
                            break;
                        }
                        at -= share[p];
                    }
                }
                find_paces(moment);
                for (std::size_t a = 0; a < moment.active.size(); ++a) {
                    const std::size_t p = moment.active[a];
                    const double pace = std::max(moment.paces[a].share, pace_min);
                    // What never ends is as fast as it is on average, a part takes as long.
                    const bool endless = jobs_[sharing_.parts()[p].job]->endless;
                    sum[p] += endless ? 1 : 1 / pace;
                    count[p] += endless ? pace : 1;
                }
                if (round + 1 == sampled_rounds) add_blame(moment, 1);
            }
            for (std::size_t p = 0; p < slowdown_.size(); ++p) {
                if (count[p] > 0) slowdown_[p] = sum[p] / count[p];
            }
        }
    }
    std::vector<double> shares_of_time() const {
        std::vector<double> out(slowdown_.size());
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            double step = idle_s(j);
            for (std::size_t p = sharing_.first(j); p < sharing_.first(j + 1); ++p) {
                step += busy_s(p) * slowdown_[p];
            }
            for (std::size_t p = sharing_.first(j); p < sharing_.first(j + 1); ++p) {
                out[p] = busy_s(p) * slowdown_[p] / step;
            }
        }
        return out;
    }

    std::vector<const StepTraffic*> jobs_;
    std::vector<double> pause_s_;
    LinkSharing sharing_;
    std::vector<double> slowdown_;            // by part
    std::vector<std::vector<double>> blame_;  // by part and job
};

}  // namespace

// ---- jobs that share links ----

void SharedLinks::join(Member job, std::shared_ptr<const StepTraffic> traffic, double pause_s) {
    RY_CHECK(!has(job));
    State& state = members_[job];
    state.traffic = std::move(traffic);
    state.pause_s = pause_s;
    state.peaks = peaks_of(*state.traffic);
    changed_.push_back(job);
    if (!state.peaks.empty() && links_.size() <= state.peaks.back().link) {
        links_.resize(state.peaks.back().link + std::size_t{1});
    }
    for (const Peak& peak : state.peaks) {
        LinkState& link = links_[peak.link];
        link.capacity_bytes_per_s = peak.capacity_bytes_per_s;
        link.jobs.insert(std::ranges::lower_bound(link.jobs, job), job);
        link.load_bytes_per_s += peak.bytes_per_s;
    }
}

void SharedLinks::leave(Member job) {
    for (const Peak& peak : members_.at(job).peaks) {
        LinkState& link = links_[peak.link];
        if (link.can_be_full()) changed_.insert(changed_.end(), link.jobs.begin(), link.jobs.end());
        link.jobs.erase(std::ranges::lower_bound(link.jobs, job));
        link.load_bytes_per_s -= peak.bytes_per_s;
        if (link.jobs.empty()) link.load_bytes_per_s = 0;  // no rounding is left
    }
    members_.erase(job);
}

std::vector<SharedLinks::Peak> SharedLinks::peaks_of(const StepTraffic& traffic) {
    std::vector<Peak> all;
    for (const TrafficPart& part : traffic.parts) {
        for (const LinkLoads::Load& load : part.loads.links) {
            all.push_back(
                {load.link, load.flows * part.loads.flow_bytes_per_s, load.capacity_bytes_per_s});
        }
    }
    std::ranges::sort(all, [](const Peak& a, const Peak& b) {
        return a.link != b.link ? a.link < b.link : a.bytes_per_s > b.bytes_per_s;
    });
    const auto same = [](const Peak& a, const Peak& b) { return a.link == b.link; };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
}

// Those that the job is joined to by links that can be full, and those that these are; itself too.
std::vector<SharedLinks::Member> SharedLinks::beside(Member job) const {
    std::set<Member> out;
    for (const Peak& peak : members_.at(job).peaks) {
        out.insert(links_[peak.link].jobs.begin(), links_[peak.link].jobs.end());
    }
    out.erase(job);
    return {out.begin(), out.end()};
}

std::vector<SharedLinks::Member> SharedLinks::component(Member first) const {
    std::vector<Member> out = {first};
    std::map<Member, bool> seen = {{first, true}};
    for (std::size_t i = 0; i < out.size(); ++i) {
        for (const TrafficPart& part : members_.at(out[i]).traffic->parts) {
            for (const LinkLoads::Load& load : part.loads.links) {
                const LinkState& link = links_[load.link];
                if (link.jobs.size() == 1 || !link.can_be_full()) continue;
                for (const Member other : link.jobs) {
                    if (std::exchange(seen[other], true)) continue;
                    out.push_back(other);
                }
            }
        }
    }
    std::ranges::sort(out);
    return out;
}

void SharedLinks::solve(const std::vector<Member>& jobs) {
    if (jobs.size() == 1) {
        members_.at(jobs[0]).longer_s = 0;
        members_.at(jobs[0]).shares.clear();
        return;
    }
    Together together;
    for (const Member job : jobs) {
        together.emplace_back(members_.at(job).traffic, members_.at(job).pause_s);
    }
    const std::vector<Solved>& found = solved(together);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        State& state = members_.at(jobs[j]);
        state.longer_s = found[j].longer_s;
        state.shares.clear();
        const std::vector<double>& waits = found[j].waits_for;
        double all = 0;
        for (const double w : waits) all += w;
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            if (waits[i] > 0) state.shares.push_back({jobs[i], waits[i] / all});
        }
    }
}

// Jobs that save come and go, and find each other again.
const std::vector<SharedLinks::Solved>& SharedLinks::solved(const Together& jobs) {
    constexpr std::size_t remembered_max = 2'000'000;  // numbers
    if (remembered_ > remembered_max) {
        solved_.clear();
        remembered_ = 0;
    }
    const auto [known, is_new] = solved_.try_emplace(jobs);
    if (!is_new) return known->second;
    remembered_ += jobs.size() * (jobs.size() + 4);
    std::vector<const StepTraffic*> traffic;
    std::vector<double> pauses;
    for (const auto& [sent, pause_s] : jobs) {
        traffic.push_back(sent.get());
        pauses.push_back(pause_s);
    }
    const DriftingPhases phases(std::move(traffic), std::move(pauses));
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        known->second.push_back({phases.longer_s(j), phases.waits_for(j)});
    }
    return known->second;
}

std::vector<SharedLinks::Member> SharedLinks::settle() {
    std::map<Member, bool> solved;
    for (const Member job : std::exchange(changed_, {})) {
        if (!has(job) || solved[job]) continue;
        const std::vector<Member> jobs = component(job);
        for (const Member other : jobs) solved[other] = true;
        solve(jobs);
    }
    std::vector<Member> out;
    for (const auto& [job, is_solved] : solved) {
        if (!is_solved || !has(job)) continue;
        State& state = members_.at(job);
        const double step = state.traffic->step_s + state.told_s;
        const bool alone_again = state.longer_s == 0 && state.told_s != 0;
        if (std::abs(state.longer_s - state.told_s) <= step_tolerance * step && !alone_again) {
            continue;
        }
        state.told_s = state.longer_s;
        state.told_shares = state.shares;
        out.push_back(job);
    }
    return out;
}

}  // namespace railyard
