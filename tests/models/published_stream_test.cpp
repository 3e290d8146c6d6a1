// Jobs drawn like those of published traces.

#include "models/scheduler/published_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"

using namespace railyard;

namespace {

// Half a million jobs of a named stream, from the language's door.
struct Drawn {
    std::vector<double> times;
    double gpus_mean = 0;
    double time_mean = 0;
    std::int64_t small = 0;
    double span_s = 0;
    double rate_per_s = 0;
};

Drawn draw(const std::string& stream) {
    const Scenario s = load_scenario(
        "[run]\nduration = \"100 year\"\n[cluster]\nnodes = 300\n[scheduler]\n[[jobs.kind]]\n"
        "name = \"j\"\ncount = 500_000\nstream = \"" +
            stream + "\"\n",
        "test");
    Drawn out;
    const WorldJobs jobs = draw_jobs(*s.world, 1, 0, campaign_length_max);
    const double n = static_cast<double>(jobs.jobs.size());
    for (const WorldJob& job : jobs.jobs) {
        const double time = seconds(job.work);
        const double gpus = static_cast<double>(job.gpus);
        out.times.push_back(time);
        out.time_mean += time / n;
        out.gpus_mean += gpus / n;
        if (job.gpus == 1) ++out.small;
    }
    out.span_s = seconds(jobs.jobs.back().submit - jobs.jobs.front().submit);
    out.rate_per_s = s.world->sources[0].rate.per_second;
    std::sort(out.times.begin(), out.times.end());
    return out;
}

PublishedStream published(const std::string& name) {
    StandaloneCatalogue own;
    return read_published_stream(own.catalogue, name);
}

}  // namespace

TEST_CASE("jobs like a published trace's have its means and medians, within a tenth") {
    for (const char* name : {"acme_seren", "philly", "helios", "helios_venus", "helios_saturn"}) {
        CAPTURE(name);
        const PublishedStream p = published(name);
        const Drawn drawn = draw(name);
        CHECK(drawn.time_mean == doctest::Approx(p.time_mean).epsilon(0.1));
        CHECK(drawn.times[drawn.times.size() / 2] == doctest::Approx(p.time_median).epsilon(0.1));
        CHECK(drawn.times.back() <= p.time_max);
        CHECK(drawn.gpus_mean == doctest::Approx(p.gpus_mean).epsilon(0.1));
        // A few of the longest of the largest are most of the GPU time: it is held in closed form.
        const auto shape = shape_of(p);
        REQUIRE(shape);
        CHECK(gpu_time_mean(*shape) == doctest::Approx(p.gpu_time_mean).epsilon(1e-6));
        CHECK(2 * drawn.small > static_cast<std::int64_t>(drawn.times.size()));  // median 1
        CHECK(500'000 / drawn.span_s == doctest::Approx(drawn.rate_per_s).epsilon(0.01));
    }
}

TEST_CASE("a shape holds what is published in closed form") {
    const PublishedStream p = published("acme_seren");
    const auto shape = shape_of(p);
    REQUIRE(shape);
    double shares = 0;
    double gpus = 0;
    for (const StreamShape::Size& size : shape->sizes) {
        shares += size.share;
        gpus += size.share * static_cast<double>(size.gpus);
    }
    CHECK(shares == doctest::Approx(1));
    CHECK(gpus == doctest::Approx(p.gpus_mean));
    CHECK(time_mean(*shape) == doctest::Approx(p.time_mean));
    CHECK(gpu_time_mean(*shape) == doctest::Approx(p.gpu_time_mean).epsilon(1e-6));
    CHECK(shape->sizes.back().time_median > shape->sizes.front().time_median);
}

TEST_CASE("a mean that no sizes have, or no times, has no shape") {
    PublishedStream p = published("philly");
    p.gpus_mean = 200;  // beyond its largest job
    CHECK_FALSE(shape_of(p));
    p = published("philly");
    p.time_mean = p.time_median / 2;
    CHECK_FALSE(shape_of(p));
    p = published("philly");
    p.time_max = p.time_mean;
    CHECK_FALSE(shape_of(p));
}

TEST_CASE("times without sizes are log-normal: sigma from mean and median") {
    PublishedStream p;
    p.time_mean = 1000;
    p.time_median = 400;
    p.time_max = 1e12;
    const auto shape = shape_of(p);
    REQUIRE(shape);
    CHECK(shape->sizes.size() == 1);
    CHECK(shape->sigma == doctest::Approx(std::sqrt(2 * std::log(2.5))).epsilon(1e-6));
}
