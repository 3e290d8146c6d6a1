// Breakers, pumps and heat under many jobs: closed forms, and what the one job of a cluster sees of them.

#include <doctest/doctest.h>

#include <algorithm>

#include "models/campaign/campaign.h"

using namespace railyard;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

namespace {

Scenario scenario(const std::string& text) {
    return load_scenario(text, "fleet feeds");
}

double metric(const ReplicaResult& r, std::string_view name) {
    const auto found = std::ranges::find(r.metrics, name, &Metric::name);
    REQUIRE(found != r.metrics.end());
    return found->value;
}

const std::string of_one_job = R"(
[job]
nodes = 8
model = "llama2_13b"
checkpoint.mode = "none"
recovery.restart = "0 s"
[job.)";

const std::string of_many = R"(
[scheduler]
[[jobs.kind]]
name = "a"
gpus = 64
model = "llama2_13b"
steps = 1000000
limit = "300 day"
[jobs.kind.)";

const std::string parallel = R"(parallel]
tensor = 4
pipeline = 2
data = 8
interleave = 2
microbatch = 2
global_batch = 256
sequence_length = 4096
zero = 1
)";

}  // namespace

TEST_CASE("heat takes from a fleet's jobs what it takes from the one job of a cluster") {
    const std::string hot = R"(
[run]
replicas = 1
duration = "5 day"
[cluster]
nodes = 8
[facility]
inlet_temperature = "44 degC"
)";
    SUBCASE("with a model") {
        const ReplicaResult one = run_replica(scenario(hot + of_one_job + parallel), 0, false);
        const ReplicaResult many = run_replica(scenario(hot + of_many + parallel), 0, false);
        const double throttled = one.ledger.fraction(Category::throttled);
        CHECK(throttled > 0.005);
        CHECK(many.ledger.fraction(Category::throttled) ==
              doctest::Approx(throttled).epsilon(1e-3));
        CHECK(metric(many, "gpu_clock") == doctest::Approx(metric(one, "gpu_clock")));
        CHECK(metric(many, "energy") == doctest::Approx(metric(one, "energy")).epsilon(1e-3));
    }
    SUBCASE("without one, and with work that ends") {
        const Scenario s = scenario(hot + R"(
[scheduler]
[[jobs.kind]]
name = "a"
gpus = 64
work = "20 h"
limit = "4 day"
)");
        const ReplicaResult r = run_replica(s, 0, false);
        const double speed = metric(r, "gpu_clock");
        CHECK(speed < 0.99);
        CHECK(metric(r, "jct_mean") == doctest::Approx(20 * 3600 / speed).epsilon(1e-6));
        const double day5 = 5 * 24;
        CHECK(r.ledger.fraction(Category::productive) == doctest::Approx(20 / day5).epsilon(1e-9));
        CHECK(r.ledger.fraction(Category::throttled) ==
              doctest::Approx(20 * (1 / speed - 1) / day5).epsilon(1e-6));
    }
}
