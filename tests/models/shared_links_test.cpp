#include "models/training/shared_links.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/joint_window.h"

using namespace railyard;

namespace {

constexpr double link_bytes_per_s = 50e9;

struct Job {
    double computing_s = 0;
    double sending_s = 0;
    double hidden_s = 0;  // what its sending hides behind, of the computing
    std::vector<LinkId> links = {0};
    double flows = 1;
    double flow_bytes_per_s = link_bytes_per_s;
};

StepTraffic traffic_of(const Job& job) {
    StepTraffic out;
    const auto step = [&](double slowdown) {
        return job.computing_s - job.hidden_s + std::max(job.hidden_s, job.sending_s * slowdown);
    };
    out.step_s = step(1);
    TrafficPart part;
    part.busy_s = job.sending_s;
    part.loads.flow_bytes_per_s = job.flow_bytes_per_s;
    for (const LinkId link : job.links)
        part.loads.links.push_back({link, job.flows, link_bytes_per_s});
    for (const double slowdown : traffic_slowdowns()) {
        part.longer_s.push_back(step(slowdown) - out.step_s);
    }
    out.parts.push_back(part);
    return out;
}

// Seconds of a step of each, on shared links.
std::vector<double> steps_of(const std::vector<Job>& jobs) {
    SharedLinks shared;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        shared.join(static_cast<std::uint32_t>(j),
                    std::make_shared<StepTraffic>(traffic_of(jobs[j])), 0);
    }
    shared.settle();
    std::vector<double> out;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        out.push_back(traffic_of(jobs[j]).step_s + shared.longer_s(static_cast<std::uint32_t>(j)));
    }
    return out;
}

// Mean over places of the first job's steps against the others'.
std::vector<double> drifting_window(const std::vector<Job>& jobs) {
    std::vector<StepTraffic> traffic;
    for (const Job& job : jobs) traffic.push_back(traffic_of(job));
    std::vector<double> sum(jobs.size());
    constexpr int places = 24;
    for (int i = 0; i < places; ++i) {
        std::vector<double> offset(jobs.size());
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            // Each job at another multiple of the golden section of its step.
            const double turn = 0.6180339887 * (i + 1) * static_cast<double>(j + 1);
            offset[j] = traffic[j].step_s * 2 * (turn - std::floor(turn));
        }
        const std::vector<double> steps =
            joint_window(traffic, offset, {.jitter = 0.05, .seed = static_cast<std::uint64_t>(i)});
        for (std::size_t j = 0; j < jobs.size(); ++j) sum[j] += steps[j] / places;
    }
    return sum;
}

}  // namespace

TEST_CASE("two equal jobs whose phases drift: the product form of processor sharing") {
    for (const double m : {0.1, 0.5, 1.0, 3.0}) {
        const std::vector<double> steps = steps_of({{1, m}, {1, m}});
        CHECK(steps[0] == doctest::Approx((1 + 2 * m + 2 * m * m) / (1 + m)).epsilon(1e-6));
        CHECK(steps[1] == doctest::Approx(steps[0]).epsilon(1e-9));
        CHECK(steps[0] >= 1 + m);
        CHECK(steps[0] <= 1 + 2 * m);
    }
}

TEST_CASE("jobs that always send share their link; one that hardly does is hardly felt") {
    const std::vector<double> all = steps_of({{0, 1}, {0, 1}, {0, 1}});
    for (const double step : all) CHECK(step == doctest::Approx(3));
    CHECK(steps_of({{1, 0.2}, {1, 1e-7}})[0] == doctest::Approx(1.2).epsilon(1e-5));
}

TEST_CASE("more flows are more of a link") {
    // Three flows to one, each with as much as all others: three quarters and one quarter of the link.
    const double each = link_bytes_per_s / 3;
    const std::vector<double> steps =
        steps_of({{.sending_s = 1, .flows = 3, .flow_bytes_per_s = each},
                  {.sending_s = 1, .flow_bytes_per_s = link_bytes_per_s}});
    CHECK(steps[0] == doctest::Approx(4.0 / 3));
    CHECK(steps[1] == doctest::Approx(4));
}

TEST_CASE("jobs on links that they can't fill keep their steps exactly") {
    SharedLinks shared;
    const Job half{.computing_s = 1, .sending_s = 1, .flow_bytes_per_s = link_bytes_per_s / 2};
    shared.join(1, std::make_shared<StepTraffic>(traffic_of(half)), 0);
    shared.join(2, std::make_shared<StepTraffic>(traffic_of(half)), 0);
    CHECK(shared.settle().empty());
    CHECK(shared.longer_s(1) == 0);
    // A third one fills it.
    shared.join(3, std::make_shared<StepTraffic>(traffic_of(half)), 0);
    CHECK(shared.settle() == std::vector<SharedLinks::Member>{1, 2, 3});
    CHECK(shared.longer_s(1) > 0);
    shared.leave(2);
    CHECK(shared.settle() == std::vector<SharedLinks::Member>{1, 3});
    CHECK(shared.longer_s(1) == 0);
    // On other links nobody is felt.
    Job elsewhere = half;
    elsewhere.links = {7};
    elsewhere.flow_bytes_per_s = link_bytes_per_s;
    shared.join(4, std::make_shared<StepTraffic>(traffic_of(elsewhere)), 0);
    CHECK(shared.settle().empty());
    // Who sends over the same links, whether they can be full or not.
    CHECK(shared.beside(1) == std::vector<SharedLinks::Member>{3});
    CHECK(shared.beside(4).empty());
}

TEST_CASE("what is hidden is slowed first") {
    // Behind a second of computing 0.4 s of sending can take up to 1 s, so twice as long costs nothing.
    const Job hidden{.computing_s = 1, .sending_s = 0.4, .hidden_s = 1};
    CHECK(steps_of({hidden, hidden})[0] == doctest::Approx(1));
    const Job half{.computing_s = 1, .sending_s = 0.4, .hidden_s = 0.5};
    CHECK(steps_of({half, half})[0] > 1);
    CHECK(steps_of({half, half})[0] < 1.3);
}

TEST_CASE("no job is faster than alone, and names change nothing") {
    const std::vector<Job> jobs = {{1, 0.3, 0, {0, 1}}, {0.5, 0.2, 0, {1, 2}}, {2, 1.5, 0, {0, 2}}};
    const std::vector<double> steps = steps_of(jobs);
    const std::vector<double> renamed = steps_of({jobs[2], jobs[0], jobs[1]});
    for (std::size_t j = 0; j < 3; ++j) {
        CHECK(steps[j] >= traffic_of(jobs[j]).step_s);
        CHECK(steps[j] == doctest::Approx(renamed[(j + 1) % 3]).epsilon(1e-7));
    }
}

TEST_CASE("who is waited for: shares that sum to one") {
    SharedLinks shared;
    shared.join(0, std::make_shared<StepTraffic>(traffic_of({1, 0.5, 0, {0, 1}})), 0);
    shared.join(1, std::make_shared<StepTraffic>(traffic_of({1, 0.5, 0, {0}})), 0);
    shared.join(2, std::make_shared<StepTraffic>(traffic_of({10, 0.5, 0, {1}})), 0);
    shared.settle();
    const auto shares = shared.caused_by(0);
    REQUIRE(shares.size() == 2);
    CHECK(shares[0].share + shares[1].share == doctest::Approx(1));
    CHECK(shares[0].share > 3 * shares[1].share);  // the other sends a tenth of the time
}

TEST_CASE("a joint window of two equal jobs takes c + 2m - f at offset f") {
    const std::vector<StepTraffic> jobs(2, traffic_of({1, 0.4}));
    for (const double f : {0.0, 0.1, 0.25, 0.39}) {
        const std::vector<double> offsets = {0, f};
        for (const double step : joint_window(jobs, offsets, {})) {
            CHECK(step == doctest::Approx(1 + 0.8 - f));
        }
    }
    CHECK(joint_window(jobs, std::vector<double>{0, 0.6}, {})[0] == doctest::Approx(1.4));
}

TEST_CASE("phases that drift: within 5 % of the mean of joint windows") {
    double worst = 0;
    for (const double c : {0.8, 1.0, 1.37}) {
        for (const double m : {0.1, 0.3, 0.7}) {
            for (const double other : {0.2, 0.55}) {
                for (std::size_t more : {0U, 1U, 3U}) {
                    std::vector<Job> jobs = {{1, m}, {c, other}};
                    for (std::size_t i = 0; i < more; ++i) {
                        jobs.push_back({0.9 + 0.13 * static_cast<double>(i), 0.15});
                    }
                    const std::vector<double> model = steps_of(jobs);
                    const std::vector<double> window = drifting_window(jobs);
                    for (std::size_t j = 0; j < jobs.size(); ++j) {
                        worst = std::max(worst, std::abs(model[j] / window[j] - 1));
                    }
                }
            }
        }
    }
    CHECK(worst < 0.012);  // README.md says so
}

TEST_CASE("many jobs are sampled: as near the window") {
    std::vector<Job> jobs;
    for (int i = 0; i < 14; ++i) jobs.push_back({1 + 0.07 * i, 0.05 + 0.01 * i});
    const std::vector<double> model = steps_of(jobs);
    const std::vector<double> window = drifting_window(jobs);
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        CHECK(model[j] == doctest::Approx(window[j]).epsilon(0.05));
    }
}

TEST_CASE(
    "what is sent all the time slows a step down by its fair share, and is slowed for as long as "
    "that sends") {
    const double c = 0.6;
    const double m = 0.4;
    for (const double share : {0.25, 0.5, 0.75, 1.0}) {  // of the link, what it takes alone
        CAPTURE(share);
        const Job job{c, m};
        LinkLoads upload;
        upload.flow_bytes_per_s = share * link_bytes_per_s;
        upload.links = {{0, 1, link_bytes_per_s}};
        SharedLinks shared;
        shared.join(0, std::make_shared<StepTraffic>(traffic_of(job)), 0);
        shared.join(1, std::make_shared<StepTraffic>(endless_traffic(upload)), 0);
        shared.settle();
        const double left = std::max(0.5, 1 - share);
        CHECK(shared.longer_s(0) == doctest::Approx(m / left - m));
        const double sending = m / left / (c + m / left);
        const double pace = 1 - sending + sending * std::min(1.0, (1 - left) / share);
        CHECK(1 + shared.longer_s(1) == doctest::Approx(1 / pace));
        shared.leave(1);
        shared.settle();
        CHECK(shared.longer_s(0) == 0);
    }
}

TEST_CASE("transfers without steps beside them share a link evenly, any number of them") {
    for (const std::uint32_t n : {2U, 3U, 40U}) {
        SharedLinks shared;
        for (std::uint32_t i = 0; i < n; ++i) {
            LinkLoads loads;
            loads.flow_bytes_per_s = link_bytes_per_s;
            loads.links = {{0, 1, link_bytes_per_s}};
            shared.join(i, std::make_shared<StepTraffic>(endless_traffic(loads)), 0);
        }
        shared.settle();
        for (std::uint32_t i = 0; i < n; ++i) CHECK(1 + shared.longer_s(i) == doctest::Approx(n));
    }
}

TEST_CASE("many jobs beside one upload, drawn, are what few are by the chain") {
    // Each job on a link of its own with a part of the upload: what the others do is nothing to it.
    const auto longer = [](std::uint32_t jobs) {
        SharedLinks shared;
        LinkLoads upload;
        upload.flow_bytes_per_s = 0.8 * link_bytes_per_s;
        for (std::uint32_t j = 0; j < jobs; ++j) {
            shared.join(j, std::make_shared<StepTraffic>(traffic_of({0.5, 0.5, 0, {j}})), 0);
            upload.links.push_back({j, 1, link_bytes_per_s});
        }
        shared.join(jobs, std::make_shared<StepTraffic>(endless_traffic(upload)), 0);
        shared.settle();
        return std::pair(shared.longer_s(0), shared.longer_s(jobs));
    };
    const auto few = longer(2);
    const auto many = longer(12);  // 4,096 states
    CHECK(few.first == doctest::Approx(0.5).epsilon(0.01));
    CHECK(many.first == doctest::Approx(0.5).epsilon(0.02));
    // Its pace is that of its slowest flow: 5/8 while any of them sends.
    CHECK(many.second == doctest::Approx(1 / 0.625 - 1).epsilon(0.02));
    CHECK(few.second < many.second);
}
