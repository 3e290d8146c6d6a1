#pragma once
// The door of the folder: which nodes a job gets. Here one job, all its nodes or none, and what is left
// over are its hot spares; in world.h many jobs on a cluster that fails; in job_stream.h many on one that
// does not.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "models/scheduler/dedicated.h"
#include "models/scheduler/job_kind_reader.h"
#include "models/scheduler/job_source.h"
#include "models/scheduler/job_stream.h"
#include "models/scheduler/job_trace.h"
#include "models/scheduler/policy.h"
#include "models/scheduler/published_stream.h"
#include "models/scheduler/reader_names.h"
#include "models/scheduler/scheduler_reader.h"
#include "models/scheduler/stream_report.h"
#include "models/scheduler/world.h"
#include "models/training/training.h"
#include "sim/rng.h"

namespace railyard {

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
class NodePool : public NodeFaults, public NodeSupply {
  public:
    struct Spec : NodeFailures {
        std::int64_t nodes = 0;      // of the cluster
        std::int64_t job_nodes = 0;  // of the job: slots 0 .. job_nodes - 1 are filled at the start
        std::int64_t gpus_per_node = 0;
    };
    struct Outcome : NodeFailureCounts {
        std::int64_t spares_failed = 0;
    };

    // `causes` and all other references must outlive the pool.
    NodePool(CampaignEngine& engine, const Spec& spec, const std::vector<FailureCause>& causes,
             Ledger& ledger, std::uint64_t seed, std::uint64_t replica);
    // Who is told when a node comes back or fails. Set before the engine runs.
    void set_waiter(Waiter& waiter) { waiter_ = &waiter; }
    void start() { start_faults(); }  // the strikes that the pool itself makes

    // Keeps every absence from now on; one may end after the campaign does.
    void log_absences(std::vector<NodeAbsence>& log) { absences_ = &log; }
    // Keeps every change of the job's nodes.
    void log_moves(std::vector<NodeMove>& log) { moves_ = &log; }

    double acceptance(std::int64_t slot) const override;
    void remove(const Strike& strike, const FailureCause& cause) override;
    bool fill(std::int64_t slot) override;
    void misjudge(const Strike& strike, std::int64_t blamed, const FailureCause& cause) override;
    void release(std::int64_t slot) override;
    std::int64_t spares() const override { return static_cast<std::int64_t>(spares_.size()); }
    std::int64_t node_in(std::int64_t slot) const override;
    Struck still_broken() override;

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
    Waiter* waiter_ = nullptr;

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
