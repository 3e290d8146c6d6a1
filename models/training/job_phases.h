#pragma once
// What a job does, from phase to phase: its time is booked and counted by phase, and who follows it is told.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/training/data_feed.h"
#include "models/training/ledger.h"

namespace railyard {

enum class JobPhase : std::uint8_t {
    running,
    checkpointing,
    storm_stall,
    detection,
    replacement,
    requeue_wait,
    restart,
    restore,
    maintenance,
    first_batch,  // its loaders fill their shuffle buffers
    pause,        // between two steps, as the scenario says
    done,
};
std::string_view phase_name(JobPhase phase);  // snake_case
DataFeed::Use data_use(JobPhase phase);       // loaders live in the job's processes

// From this instant on, until the next.
struct PhaseStart {
    Instant at;
    JobPhase phase = JobPhase::done;
};

// Something that happened to the job or a node, for people and databases.
struct CampaignEvent {
    Instant at;
    const char* kind = "";   // interruption, resumed, checkpoint_safe, maintenance, finished
    std::string cause;       // of an interruption
    std::int64_t slot = -1;  // of an interruption: the job's node slot
    std::int64_t steps = 0;  // steps safe (checkpoint_safe, resumed) or lost (interruption)
    std::int64_t job =
        -1;  // of many jobs: whose; slot is then its node, steps what it has left to do
};

// Told when the job begins to do something else: what its nodes draw changes then.
class PhaseWatcher {
  public:
    virtual ~PhaseWatcher() = default;
    virtual void phase_changed(JobPhase now) = 0;
};

struct PhaseTimes {
    // From an unexpected interruption to running again.
    Duration detection{}, replacement{}, requeue_wait{}, restart{}, restore{};
    Duration saving{};  // it waited for checkpoints
    Duration storm_stall{};
    Duration paused{};               // without those that ended in a restart
    GpuNanoseconds first_batch = 0;  // waiting while shuffle buffers fill
};

class JobPhases {
  public:
    // `events` may be nullptr.
    JobPhases(Ledger& ledger, std::vector<CampaignEvent>* events)
        : ledger_(ledger), events_(events) {}

    // Keeps every phase from now on; the last one is done, at the end.
    void log(std::vector<PhaseStart>& log) { log_ = &log; }
    void set_watcher(PhaseWatcher& watcher) { watcher_ = &watcher; }
    bool followed() const { return events_ != nullptr || watcher_ != nullptr; }

    JobPhase now() const { return now_; }
    bool processes_run() const;
    // It has had so many GPUs until then.
    void book(Instant until, std::int64_t gpus);
    void enter(JobPhase phase, Instant at, std::int64_t gpus) {
        if (now_ != JobPhase::running)
            book(at, gpus);  // a step by its parts, once its fate is known
        since_ = at;
        now_ = phase;
        if (phase == JobPhase::running) recovering_ = false;
        if (log_ != nullptr || watcher_ != nullptr) tell(at);
    }
    void end(Instant at, std::int64_t gpus) {
        watcher_ = nullptr;
        enter(JobPhase::done, at, gpus);
    }
    void record(CampaignEvent event) {
        if (events_ != nullptr) events_->push_back(std::move(event));
    }
    const PhaseTimes& times() const { return times_; }

  private:
    void tell(Instant at);

    Ledger& ledger_;
    std::vector<CampaignEvent>* events_;
    std::vector<PhaseStart>* log_ = nullptr;
    PhaseWatcher* watcher_ = nullptr;
    JobPhase now_ = JobPhase::done;
    Instant since_{};          // what is booked
    bool recovering_ = false;  // from a failure
    PhaseTimes times_;
};

}  // namespace railyard
