#pragma once
// Many jobs on a cluster that is another one from a day on: which jobs each phase has, and what becomes of
// each job over all phases.

#include <memory>
#include <optional>
#include <vector>

#include "models/campaign/campaign.h"

namespace railyard {

class WorldPhases {
  public:
    // Draws the jobs of the replica: those that come on a phase's days, as its own kinds say.
    WorldPhases(const Scenario& whole, std::int64_t index);

    // The jobs of phase k, from 0, on its own clock: those that are not over, then those that come.
    WorldPart part(std::size_t k);
    // What has become of them; after part(k), before part(k + 1).
    void take(std::size_t k, WorldPart part);

    const WorldJobs& jobs() const { return jobs_; }
    // As if it had been one run, on the whole campaign's clock. Call once, at the end.
    WorldRunResult ran();
    // What phase k has booked as kept and later ones have lost: it is taken away there, and booked so.
    const WorldLedger& moved(std::size_t k) const { return moved_[k]; }

  private:
    struct Job {
        std::int64_t done = 0;   // steps
        std::int64_t steps = 0;  // of the phase that had it last: all that it has to do there
        std::optional<Duration> ran{};  // its run, under way as the phase before ended
        std::shared_ptr<CarriedJob> left{};
    };
    const WorldScenario& world(std::size_t k) const { return *whole_.phases[k].as->world; }
    Duration begin(std::size_t k) const { return whole_.phases[k].from + whole_.phases[k].stop; }
    WorldJob on(std::size_t k, std::size_t job);
    void add_run(std::size_t k, std::size_t job, const WorldJobRun& run, bool off);
    void take_border(std::size_t k, std::size_t job, const WorldJobRun& run);

    const Scenario& whole_;
    WorldJobs jobs_;                  // in order of submission, with the work of the first phase
    std::vector<std::size_t> ends_;   // by phase: the place in `jobs_` behind the last that comes
    std::vector<Job> so_far_;         // by place
    std::vector<std::size_t> there_;  // by the place in the phase under way
    std::vector<WorldLedger> moved_;  // by phase
    WorldRunResult sum_;
};

// Jobs go from phase to phase by the numbers of what they name: throws ScenarioError when a phase has other
// kinds, partitions, accounts or queues than the first one, or jobs of another size. `days`: where each phase
// says its day.
void check_world_phases(const Scenario& whole, const std::vector<Diagnostic>& days);

}  // namespace railyard
