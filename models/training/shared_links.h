#pragma once
// How much longer the steps of jobs take that send over the same links.
//
// Model. A job sends nothing for a while, then each of its traffic's parts. While several jobs send, the
// links between switches are shared max-min fairly by flow: the flows of a part keep one pace, and none
// is faster than it would be alone. Phases drift against each other, so the jobs together are a Markov
// chain: a phase ends at the rate that its pace gives it. A part's slowdown is its time a step over that
// which it takes alone. On one link that jobs share equally the chain has a product form, which holds
// whatever the phases' lengths are (processor sharing): two equal jobs of computing c and sending m take
// (c^2 + 2cm + 2m^2) / (c + m), between c + m (they take turns) and c + 2m (they send together). Of more
// than 1,024 states 192 are drawn, with the others' shares of time as an arriving part finds them
// (Schweitzer's approximation of mean value analysis). A link that all its jobs together can't fill binds
// nobody: jobs that share no link that can be full keep their step exactly. Ignored: parts of one job
// that send at once; that routes avoid what others load; phases that lock. What is sent all the time has one
// phase, so it meets each part of a step for as long as that is sent.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/training/step_traffic.h"

namespace railyard {

// Jobs that are joined by links that they could fill together.
class SharedLinks {
  public:
    using Member = std::uint32_t;

    // `pause_s` a step it neither computes nor sends: checkpoints.
    void join(Member job, std::shared_ptr<const StepTraffic> traffic, double pause_s);
    void leave(Member job);
    bool has(Member job) const { return members_.contains(job); }
    // Who else sends over one of its links, ascending.
    std::vector<Member> beside(Member job) const;
    // Brings slowdowns up to date. Those whose step is other by more than step_tolerance than when they
    // were last named, ascending.
    std::vector<Member> settle();

    // Seconds that a step of the job takes longer than alone, as of the last settle().
    double longer_s(Member job) const { return members_.at(job).told_s; }
    // How its waiting is shared among the jobs that it waited for: sums to 1, sorted by job; empty when it
    // is 0.
    struct Share {
        Member job = 0;
        double share = 0;
    };
    std::span<const Share> caused_by(Member job) const { return members_.at(job).told_shares; }

  private:
    struct Peak {  // on a link, in the part that sends most
        LinkId link = 0;
        double bytes_per_s = 0;
        double capacity_bytes_per_s = 0;
    };
    struct State {
        std::shared_ptr<const StepTraffic> traffic;
        std::vector<Peak> peaks;  // ascending by link
        double pause_s = 0;
        double longer_s = 0;
        double told_s = 0;
        std::vector<Share> shares;
        std::vector<Share> told_shares;
    };
    struct LinkState {
        double capacity_bytes_per_s = 0;
        double load_bytes_per_s = 0;  // of all its jobs, each in the part that sends most
        std::vector<Member> jobs;

        bool can_be_full() const { return load_bytes_per_s > capacity_bytes_per_s * (1 + 1e-6); }
    };

    // What the jobs that are joined send, and each one's pause, in ascending order of members. `Solved` is
    // what each of them then takes longer, by place.
    using Together = std::vector<std::pair<std::shared_ptr<const StepTraffic>, double>>;
    struct Solved {
        double longer_s = 0;
        std::vector<double> waits_for;  // by place
    };

    static std::vector<Peak> peaks_of(const StepTraffic& traffic);
    std::vector<Member> component(Member first) const;
    void solve(const std::vector<Member>& jobs);
    const std::vector<Solved>& solved(const Together& jobs);

    std::map<Member, State> members_;
    std::vector<LinkState> links_;  // by id
    std::map<Together, std::vector<Solved>> solved_;
    std::size_t remembered_ = 0;   // numbers there
    std::vector<Member> changed_;  // joined, or beside one that came or went
};

constexpr double step_tolerance = 1e-3;

}  // namespace railyard
