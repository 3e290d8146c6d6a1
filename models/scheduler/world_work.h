#pragma once
// The steps of one of many jobs: which it has done, which of them are kept or lost, and where their time is
// booked.
//
// A step is open from its end until it is kept, oldest first, or lost, newest first. A silent corruption
// makes the steps after it suspect: those that are kept all the same are booked only when the job has gone
// back behind them, or when nobody will find out any more.
//
// Open steps of an earlier campaign are open here too. They are booked there as kept, and nothing more is
// booked when they are; when they are lost, WorldJobRun::border says what the sum of both has to move.

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "models/scheduler/world.h"
#include "sim/integers.h"

namespace railyard {

class WorldWork {
  public:
    using Parts = std::vector<std::int64_t>;  // of GPUs, by group of nodes

    // For a job of a kind that has `done` of its `total` steps, which take `replicas` of its data each.
    // References must outlive it.
    WorldWork(WorldLedger& ledger, std::size_t kind, WorldJobRun& run, std::int64_t total,
              std::int64_t done, std::int32_t replicas)
        : ledger_(ledger),
          kind_(kind),
          run_(run),
          total_(total),
          done_(done),
          replicas_(replicas),
          replicas_now_(replicas) {}

    std::int64_t done() const { return done_; }
    // With as many replicas as it has now. What the others would have computed is to be done as well.
    std::int64_t left() const {
        const std::int64_t of_replicas = (total_ - done_) * replicas_ + missing_;
        return ceil_div(std::max<std::int64_t>(0, of_replicas), replicas_now_);
    }
    void set_replicas(std::int32_t now) { replicas_now_ = now; }
    std::int64_t kept() const { return done_ - open_.count(); }  // nothing takes these away
    std::int64_t open() const { return open_.count(); }

    // The last of those that are done were done in an earlier campaign, and are open. One whose run goes on
    // is in its step, so far.
    void bring(const CarriedJob& from, bool goes_on);
    // What another campaign can still lose, when so many steps are saved.
    void leave(std::int64_t saved, CarriedJob& to) const;
    void begin_step_anew();  // it does not go on in the one that it was in

    // Time of these GPUs.
    void book(const Parts& parts, Category category, Duration time);
    // A step cut off, that nobody will do again: in the order of a step's parts. Or that is done anew.
    void book_partial(const Parts& parts, const StepTime& step, Duration partial);
    void lose_partial(const Parts& parts, Duration partial);

    void add(std::int64_t steps, const Parts& parts, const StepTime& each);
    // The first so many of all; or none but these are left.
    void keep_until(std::int64_t steps);
    void lose_after(std::int64_t steps);

    // So much is done of the step that is under way when the job is suspended, and neither kept nor lost yet:
    // lost with any other, or taken up again when the job goes on.
    void hold(const Parts& parts, const StepTime& step, Duration partial);
    Duration take_held();
    void keep_held();

    // One corruption at a time: what is wrong already gets no worse. The first `clean` steps are right.
    void suspect(std::size_t corruption, std::int64_t clean);
    std::optional<std::size_t> corruption() const;
    // The job does not run: what it has is right if nothing that is wrong was kept.
    void forget_if_clean();
    // Somebody has found out: what was kept of the wrong steps is lost. How many are right, if any are wrong.
    std::optional<std::int64_t> lose_suspect();
    // Nobody has. True if any of what is kept is wrong.
    bool accept_suspect();

  private:
    struct Workers {
        Parts gpus;
        std::int64_t replicas_missing = 0;
        std::uint32_t earlier = 0;  // their place in Earlier, from 1; 0: all of it was done here
        bool operator==(const Workers&) const = default;
    };
    using Done = OpenSteps<Workers>::Done;
    struct Suspect {
        std::size_t corruption = 0;
        std::int64_t clean = 0;
        std::vector<Done> kept{};
    };
    struct Held {
        Parts by;
        StepTime step;
        Duration time{};
    };
    // What earlier campaigns have booked.
    struct Earlier {
        struct Open {
            CarriedSteps of;
            bool counted = false;  // they are kept steps there; else parts of one that ended here
        };
        std::vector<Open> open{};
        std::vector<BookedSteps> begun{};  // of the step under way
    };
    void book_steps(const Done& done);
    void keep(Done done, bool clean);
    void lose(const Done& done, bool kept);
    Earlier::Open take_earlier(const Done& done);
    // The part of the step under way that is booked. Taken, it is under way and held here no longer.
    StepTime take_begun(bool lost);
    StepTime begun() const;

    WorldLedger& ledger_;
    std::size_t kind_;
    WorldJobRun& run_;
    std::int64_t total_;
    std::int64_t done_;
    std::int32_t replicas_;
    std::int32_t replicas_now_;
    std::int64_t missing_ = 0;  // of the replicas of all steps that are done
    OpenSteps<Workers> open_;
    std::unique_ptr<Suspect> suspect_;  // of few jobs
    std::unique_ptr<Held> held_;        // likewise
    std::unique_ptr<Earlier> earlier_;  // likewise
};

}  // namespace railyard
