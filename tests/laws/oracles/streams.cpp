#include "tests/laws/oracles/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/campaign/campaign.h"

namespace railyard {

namespace {

using Figures = std::map<std::string, double>;  // of one trace, by quantity

double figure(const Figures& figures, const char* quantity, double otherwise = 0) {
    const auto found = figures.find(quantity);
    return found == figures.end() ? otherwise : found->second;
}

struct Drawn {
    double time_mean = 0;
    double time_median = 0;
    double gpus_mean = 0;
    double gpus_median = 0;
    double gpu_time_mean = 0;
};

Drawn draw(const StreamShape& shape, std::int64_t count) {
    WorldScenario world;
    world.spec.groups = {{"all", 1, 8}};
    world.spec.partitions = {{.name = "all", .nodes = 1}};
    world.spec.kinds = {{.name = "job"}};
    JobSource source;
    source.count = count;
    follow(shape, source);
    world.sources = {source};
    std::vector<double> times;
    std::vector<double> gpus;
    Drawn out;
    const double n = static_cast<double>(count);
    for (const WorldJob& job : draw_jobs(world, 1, 0, campaign_length_max).jobs) {
        times.push_back(seconds(job.work));
        gpus.push_back(static_cast<double>(job.gpus));
        out.time_mean += times.back() / n;
        out.gpus_mean += gpus.back() / n;
        out.gpu_time_mean += times.back() * gpus.back() / n;
    }
    const auto median = [](std::vector<double>& values) {
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
        std::nth_element(values.begin(), middle, values.end());
        return *middle;
    };
    out.time_median = median(times);
    out.gpus_median = median(gpus);
    return out;
}

// 60, 61. Where a table has no largest job it is the cluster, and no longest one, Helios': 50 days (60).
void add_trace(const std::string& name, const Figures& f, double smallest_share,
               std::vector<VerifiedRow>& out) {
    constexpr double helios_time_max = 4320009;
    const double jobs = figure(f, "gpu_job_num");
    const double gpu_time =
        figure(f, "complete_gpu_time") + figure(f, "cancel_gpu_time") + figure(f, "fail_gpu_time");
    PublishedStream stream;
    stream.gpus_mean = figure(f, "avg_gpu_num");
    stream.gpus_median = static_cast<std::int64_t>(figure(f, "med_gpu_num"));
    stream.gpus_max = static_cast<std::int64_t>(figure(f, "max_gpu", figure(f, "gpu_num", 2048)));
    stream.smallest_share = smallest_share;
    stream.time_mean = figure(f, "avg_run_time_gpu");
    stream.time_median = figure(f, "med_run_time_gpu");
    stream.time_max = figure(f, "max_run_time_gpu", helios_time_max);
    stream.gpu_time_mean = jobs > 0 ? gpu_time / jobs : 0;
    const auto shape = shape_of(stream);
    if (!shape) return;
    constexpr double jobs_drawn_max = 1'600'000;
    const Drawn drawn =
        draw(*shape, static_cast<std::int64_t>(std::min(std::max(jobs, 1000.0), jobs_drawn_max)));
    out.push_back({name, "avg_run_time_gpu, s", stream.time_mean, drawn.time_mean});
    out.push_back({name, "med_run_time_gpu, s", stream.time_median, drawn.time_median});
    out.push_back({name, "avg_gpu_num", stream.gpus_mean, drawn.gpus_mean});
    out.push_back(
        {name, "med_gpu_num", static_cast<double>(stream.gpus_median), drawn.gpus_median});
    if (gpu_time > 0) {
        out.push_back({name, "GPU time of all jobs, s", gpu_time, drawn.gpu_time_mean * jobs});
    }
}

// 64: of Philly's running times alone; the longest is the trace's.
void add_running_times(const std::string& name, const Figures& f, double time_max,
                       std::vector<VerifiedRow>& out) {
    PublishedStream stream;
    stream.time_mean = figure(f, "mean");
    stream.time_median = figure(f, "median");
    stream.time_max = time_max;
    const auto shape = shape_of(stream);
    if (!shape) return;
    const Drawn drawn = draw(*shape, static_cast<std::int64_t>(figure(f, "n", 100'000)));
    out.push_back({name, "mean, s", stream.time_mean, drawn.time_mean});
    out.push_back({name, "median, s", stream.time_median, drawn.time_median});
}

}  // namespace

std::optional<VerifiedTable> verify_streams(const CsvTable& table) {
    const bool computed = table.name.starts_with("64");
    if (!computed && !table.name.starts_with("60") && !table.name.starts_with("61")) {
        return std::nullopt;
    }
    const char* column = computed ? "dataset" : table.name.starts_with("60") ? "trace" : "cluster";
    std::vector<std::string> names;  // in the table's order
    std::map<std::string, Figures> traces;
    VerifiedTable out{table.name, "jobs drawn like those of published traces", table.rows.size()};
    each_row(table, out.unused, [&](const Fields& f) {
        if (!traces.contains(f.text(column))) names.push_back(f.text(column));
        // Three values in one field: nobody asks for one of them.
        if (f.text("value").find(" / ") != std::string::npos) return;
        traces[f.text(column)][f.text("quantity")] = f.figure("value");
    });
    StandaloneCatalogue own;
    const double smallest_share = own.catalogue.number("job_stream", "all", "smallest_share");
    const double philly_time_max = seconds(own.catalogue.time("job_stream", "philly", "time_max"));
    for (const std::string& name : names) {
        if (!computed) {
            add_trace(name, traces[name], smallest_share, out.expressed);
        } else if (name == "philly_runtimes") {
            add_running_times(name, traces[name], philly_time_max, out.expressed);
        }
    }
    own.diagnostics.raise_if_any();
    return out;
}

}  // namespace railyard
