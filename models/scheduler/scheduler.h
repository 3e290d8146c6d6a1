#pragma once
// The door of the folder: which nodes a job gets. Here one job, all its nodes or none, and what is left
// over are its hot spares; in fleet.h many jobs on a cluster that fails; in job_stream.h many on one that
// does not.

#include <deque>
#include <vector>

#include "models/scheduler/fleet.h"
#include "models/scheduler/job_stream.h"
#include "models/scheduler/job_trace.h"
#include "models/scheduler/policy.h"
#include "models/scheduler/stream_report.h"
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

// The nodes of a cluster: in the job, spare, or out of service. Books the spare and repair
// categories.
class NodePool : public CampaignEngine::Component, public NodeSupply {
  public:
    struct Spec {
        std::int64_t nodes = 0;      // of the cluster
        std::int64_t job_nodes = 0;  // of the job: slots 0 .. job_nodes - 1 are filled at the start
        std::int64_t gpus_per_node = 0;
        LemonNodes lemons;
        double repair_sigma = 0;  // of the logarithm of a repair time
    };

    NodePool(CampaignEngine& engine, const Spec& spec, Ledger& ledger, std::uint64_t seed,
             std::uint64_t replica);
    // Who is told when a node comes back. Set before the engine runs.
    void set_waiter(Waiter& waiter) { waiter_ = &waiter; }

    // Keeps every absence from now on; one may end after the campaign does.
    void log_absences(std::vector<NodeAbsence>& log) { absences_ = &log; }

    double acceptance(std::int64_t slot) const override;
    void remove(const Strike& strike, const FailureCause& cause) override;
    bool fill(std::int64_t slot) override;

    void handle(std::uint32_t node) override;  // the node comes back
    // Nodes that went to repair, by cause; shorter than the causes when the last had none.
    const std::vector<std::int64_t>& repairs() const { return repairs_; }
    void end();                                // books up to the engine's present instant

  private:
    void book();

    CampaignEngine& engine_;
    const Spec& spec_;
    Ledger& ledger_;
    CampaignEngine::ComponentId id_;
    Waiter* waiter_ = nullptr;

    std::vector<std::uint32_t> slots_;  // the job's node in each slot
    std::deque<std::uint32_t> spares_;  // taken from the back, returned to the front
    std::vector<bool> lemon_;
    std::int64_t in_repair_ = 0;
    std::vector<std::int64_t> repairs_;
    Instant booked_until_{};
    std::vector<NodeAbsence>* absences_ = nullptr;
};

}  // namespace railyard
