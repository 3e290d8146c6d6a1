#pragma once
// What jobs send over the compute network: how long their steps take on it, who waits for whom on links that
// they share, and which ways are left when parts of it are broken.
//
// The steps of a job are one member of the shared links, its uploads beside them another. While it saves or
// comes back, what it moves stands in for its steps.

#include <optional>
#include <string>
#include <vector>

#include "models/scheduler/world_jobs.h"
#include "models/scheduler/world_repair.h"

namespace railyard {

class WorldLinks {
  public:
    class Owner : public NetworkParts::Owner {
      public:
        // The job's step is another from the end of the present one on.
        virtual void change_pace_soon(JobIndex job) = 0;
    };
    // References must outlive it.
    WorldLinks(const WorldClock& clock, const WorldRun& run, const WorldRepair& repair,
               LiveJobs& jobs, Owner& owner)
        : clock_(clock), run_(run), repair_(repair), jobs_(jobs), owner_(owner) {}
    void start();

    // Sets LiveJob::step, as things are now: with the slow parts of its nodes, what is broken on its way, its
    // upload, and others on its links.
    void set_step(JobIndex job);

    // A run's steps are on their links from then on, and until it leaves.
    void send_from(JobIndex job, Instant from);
    void join(JobIndex job);  // the event of that
    void leave(JobIndex job);
    void settle();  // the event of a change, once for all that come and go at an instant
    // And those whose steps share a link with one of these; ascending, each once.
    void add_beside(std::vector<JobIndex>& jobs) const;

    void uploads_changed(JobIndex job);
    // A save or a restore that the job waits for is on the links of steps while it lasts, if it goes there.
    void begin_transfer(JobIndex job);
    void end_transfer(JobIndex job);

    // What a job with parts moves to and from the shared store, as things are now.
    void take_way_to_store(JobIndex job);
    // Jobs whose routes meet what has changed leave their links, and are routed again with their next step.
    void network_changed(JobIndex submitted);
    std::string broken_on_way(JobIndex job) const { return network_->names(jobs_[job].broken); }
    // For people: who stands still, and what would have to be mended.
    std::string waiting(JobIndex submitted) const;
    std::int64_t outages() const { return network_ ? network_->outages() : 0; }

  private:
    std::vector<NodeIndex> nodes_of(JobIndex job) const;
    NetworkState broken_on_routes(JobIndex job) const;
    std::optional<StepTime> step_over_network(JobIndex job, std::uint32_t conditions) const;
    StepTime step_of(JobIndex job) const;
    void wait_for_others(JobIndex job);
    SharedLinks::Member uploads_of(JobIndex job) const {
        return job + static_cast<JobIndex>(jobs_.size());
    }
    const TransferSpec* transfer_of(JobIndex job) const;
    bool transfer_joins(JobIndex job, SharedLinks::Member as, const TransferSpec& transfer);
    void change_upload(JobIndex job);
    void change_transfer(JobIndex job);
    void way_changes(JobIndex job);
    void route_transfers_again(JobIndex job, const StoreWay& before);
    void change_soon();

    const WorldClock& clock_;
    const WorldRun& run_;
    const WorldRepair& repair_;
    LiveJobs& jobs_;
    Owner& owner_;
    std::optional<NetworkParts> network_;
    SharedLinks links_;
    bool changing_ = false;
};

}  // namespace railyard
