#pragma once
// Where a running job gets its nodes from: those of its cluster that are in it, spare, or out of service.

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "models/failure/failure.h"
#include "models/training/ledger.h"

namespace railyard {

class TrainingJob;

// A node is out of service, in repair or being reset.
struct NodeAbsence {
    std::int64_t node = 0;
    Instant from;
    Instant until;
    std::string cause;
};

// A node that has come into a slot of the job, or has left it. At the start node n is in slot n.
struct NodeMove {
    Instant at;
    std::int64_t slot = 0;
    std::int64_t node = -1;  // -1: none is there
};

// The nodes of a cluster: in the job, spare, or out of service. Books the spare and repair categories.
//
// Strikes on nodes come here (parts with an age, domains, injected ones); a node in the job is the job's to
// notice, a spare leaves at once, one that is out already feels nothing.
class NodePool : public NodeFaults {
  public:
    struct Spec : NodeFailures {
        std::int64_t nodes = 0;      // of the cluster
        std::int64_t job_nodes = 0;  // of the job: slots 0 .. job_nodes - 1 are filled at the start
        std::int64_t gpus_per_node = 0;
    };
    using Outcome = NodeFailureCounts;

    // `causes` and all other references must outlive the pool.
    NodePool(CampaignEngine& engine, const Spec& spec, const std::vector<FailureCause>& causes,
             Ledger& ledger, std::uint64_t seed, std::uint64_t replica);
    // Who is told when a node comes back or fails. Set before the engine runs.
    void serve(TrainingJob& job) { job_ = &job; }
    void start() { start_faults(); }  // the strikes that the pool itself makes

    // Keeps every absence from now on; one may end after the campaign does.
    void log_absences(std::vector<NodeAbsence>& log) { absences_ = &log; }
    // Keeps every change of the job's nodes.
    void log_moves(std::vector<NodeMove>& log) { moves_ = &log; }

    // How much more often than the best the node in this slot fails, relative to the worst: (0, 1].
    double acceptance(std::int64_t slot) const;
    // The struck node leaves the job and comes back as a spare after a reset or a repair.
    void remove(const Strike& strike, const FailureCause& cause);
    // A node with nothing wrong leaves instead of the struck one, which stays in the job, broken.
    void misjudge(const Strike& strike, std::int64_t blamed, const FailureCause& cause);
    // A healthy node that the job has no use for leaves as a spare.
    void release(std::int64_t slot);
    // A spare takes the empty `slot`; false when there is none. When one appears later, the job is told.
    bool fill(std::int64_t slot);
    std::int64_t spares() const { return static_cast<std::int64_t>(spares_.size()); }
    // The node in a slot, counted from 0; -1: none.
    std::int64_t node_in(std::int64_t slot) const;
    // Slots that a failure took at once.
    struct Struck {
        Strike strike;
        std::vector<std::int64_t> slots;
    };
    // The node in the struck slot, if it has to leave the job, is broken without anybody having noticed.
    void stays_broken(const Strike& strike);
    // What the job meets as soon as it runs: slots whose nodes are broken and still in it, told once, one
    // cause at a time. Empty: nothing.
    Struck still_broken();

    void repaired(std::int64_t item, bool sound) override;
    void end();  // books up to the engine's present instant
    Outcome outcome() const;

  private:
    // A node in an outage that has not left the job.
    struct Shaded {
        Strike strike;
        bool noticed = false;  // by the job, which will let go of it
    };
    static constexpr std::int32_t spare = -1;
    static constexpr std::int32_t out = -2;
    static constexpr std::uint32_t no_node = UINT32_MAX;

    void strike_node(const Strike& strike) override;
    bool domain_breaks(std::size_t node, const Strike& strike) override;
    void domain_is_felt(const Strike& strike, const std::vector<std::size_t>& broken) override;
    void outages_over(std::size_t node) override;
    void come_back(std::size_t node, bool sound) override;
    void handle_own(std::uint32_t kind, std::size_t index) override;
    void in_shop(std::size_t node, const Strike& strike) override;
    void back_at(std::size_t node, Instant at) override;
    void book();
    void go_out(std::uint32_t node, const FailureCause& cause);
    void spare_leaves(std::uint32_t node, const Strike& strike, bool outage);
    void leave_job(std::int64_t slot);

    const Spec& spec_;
    Ledger& ledger_;
    TrainingJob* job_ = nullptr;

    std::vector<std::uint32_t> slots_;        // the job's node in each slot
    std::vector<std::int32_t> place_;         // of each node: its slot, or spare, or out
    std::deque<std::uint32_t> spares_;        // taken from the back, returned to the front
    std::map<std::uint32_t, Strike> broken_;  // in the job or spare, and nobody knows
    std::map<std::uint32_t, Shaded> shaded_;
    std::int64_t in_repair_ = 0;
    Instant booked_until_{};
    std::vector<NodeAbsence>* absences_ = nullptr;
    std::vector<NodeMove>* moves_ = nullptr;
    std::map<std::size_t, std::size_t> absence_of_;  // that last still
    Outcome outcome_;
};

}  // namespace railyard
