#include "tests/laws/oracles/shared_store.h"

#include "models/storage/storage.h"
#include "sim/cancel.h"

namespace railyard {

namespace {

constexpr Bandwidth store_bandwidth = Bandwidth::bits_per_second(80'000'000'000);

class Readers : public CampaignEngine::Component, public StoreService::Client {
  public:
    Readers(CampaignEngine& engine, const std::vector<StreamJob>& jobs)
        : engine_(engine),
          jobs_(jobs),
          id_(engine.add(*this, "readers")),
          stores_(engine),
          slowdowns_(jobs.size()) {
        const StoreSupply supply{.read = store_bandwidth, .write = store_bandwidth};
        stores_.add_store("shared", supply);
        stores_.add_client(unlimited, unlimited);
        schedule(0);
    }

    void handle(std::uint32_t job) override {
        const double bytes = seconds(jobs_[job].duration) * store_bandwidth.bytes_per_second();
        TransferSpec spec;
        spec.direction = Direction::read;
        spec.bytes = Bytes::of(static_cast<std::int64_t>(bytes));
        spec.cap = unlimited;
        const StoreService::TransferId transfer = stores_.start(0, spec, *this);
        if (job_of_.size() <= transfer) job_of_.resize(transfer + 1);
        job_of_[transfer] = job;
        schedule(job + 1);
    }
    void transfer_done(StoreService::TransferId transfer, const WallTimes&) override {
        const StreamJob& job = jobs_[job_of_[transfer]];
        slowdowns_[job_of_[transfer]] =
            seconds(engine_.now() - Instant(job.submit)) / seconds(job.duration);
    }
    std::vector<double> slowdowns() const { return slowdowns_; }

  private:
    void schedule(std::uint32_t job) {
        if (job < jobs_.size()) engine_.schedule(Instant(jobs_[job].submit), id_, job);
    }

    CampaignEngine& engine_;
    const std::vector<StreamJob>& jobs_;
    CampaignEngine::ComponentId id_;
    StoreService stores_;
    std::vector<std::uint32_t> job_of_;  // by transfer
    std::vector<double> slowdowns_;
};

}  // namespace

std::vector<double> slowdowns_on_a_store(const std::vector<StreamJob>& jobs) {
    CampaignEngine engine;
    Readers readers(engine, jobs);
    run_cancellable(engine, Instant::max());
    return readers.slowdowns();
}

}  // namespace railyard
