#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/text.h"
#include "tools/cli/run_text.h"
#include "tools/cli/terminal.h"

namespace railyard {

namespace {

// "store 62 %, metadata 38 %": of the times in metrics called prefix + a wall.
std::string walls_text(const CampaignResult& r, const std::string& prefix) {
    struct Part {
        std::string name;
        double time;
    };
    std::vector<Part> parts;
    double sum = 0;
    for (std::size_t i = 0; i < wall_count; ++i) {
        const std::string name(wall_name(static_cast<Wall>(i)));
        parts.push_back({name, r.mean(prefix + name)});
        sum += parts.back().time;
    }
    std::ranges::stable_sort(parts, std::greater<>(), &Part::time);
    constexpr double worth_saying = 0.005;
    std::string out;
    for (const Part& part : parts) {
        if (part.time <= worth_saying * sum) break;
        out +=
            fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", part.name, 100 * part.time / sum);
    }
    return out;
}

std::string bandwidth_text(double bytes_per_s) {
    if (!std::isfinite(bytes_per_s)) return "-";
    return to_text(Bandwidth::bits_per_second(std::llround(8 * bytes_per_s)));
}

std::string bytes_text(double bytes) {
    return to_text(Bytes::of(std::llround(bytes)));
}

void print_walls(const Scenario& s, const CampaignResult& r) {
    const double stall = r.mean("checkpoint_time_to_stall_end");
    const double safe = r.mean("checkpoint_time_to_safe");
    const double size = static_cast<double>(s.checkpoint_size.count());
    const double ranks = static_cast<double>(s.checkpoint_writers.ranks);
    Table table({"storage", ">each", "waited for"});
    table.add({"stall for a checkpoint", time_text(stall), walls_text(r, "checkpoint_stall_")});
    table.add({"until it is safe", time_text(safe), ""});
    if (const std::string walls = walls_text(r, "checkpoint_upload_"); !walls.empty()) {
        table.add({"uploads, all tiers", "", walls});
    }
    if (r.mean("interruptions") > 0 || r.planned_interruptions > 0) {
        table.add(
            {"restore", time_text(r.mean("restore_per_interruption")), walls_text(r, "restore_")});
    }
    if (s.job.data) {
        const double starved = r.mean("data_starved_time");
        table.add({"too slow for its data, in all", time_text(starved), ""});
    }
    const bool sync = s.job.checkpoint.mode == CheckpointMode::sync;
    const double until = sync ? stall : safe;
    const TierSpec& tier = s.job.checkpoint.tiers[sync ? 0 : s.job.checkpoint.safe_tier()];
    const std::int64_t files = tier.write.files;  // 0: a place on the nodes
    fmt::print("\n{}  {} a rank until {}", table.text(), bandwidth_text(size / ranks / until),
               sync ? "the stall ends" : "it is safe");
    if (files > 0 && until > 0) {
        fmt::print("; {} files, {:.4g} /s", grouped(static_cast<double>(files)),
                   static_cast<double>(files) / until);
    }
    fmt::print("\n");
}

void print_copies(const Scenario& s, const CampaignResult& r) {
    Table table({"copies", ">written", ">kept", ">expired", ">lost", ">in flight", ">restores"});
    for (const TierSpec& tier : s.job.checkpoint.tiers) {
        const std::string& place = word_of(place_names, tier.place);
        std::vector<std::string> row = {place};
        for (const char* what : {"written", "kept", "expired", "lost", "in_flight"}) {
            row.push_back(bytes_text(r.mean(fmt::format("{}_bytes_{}", place, what))));
        }
        row.push_back(fmt::format("{:.1f}", r.mean(place + "_restores")));
        table.add(std::move(row));
    }
    fmt::print("\n{}", table.text());
}

// What checkpoints are paid for in stores that are paid by use.
void print_paid(const CampaignResult& r) {
    fmt::print(
        "  {:.2f} USD of requests, {:.2f} USD of egress; what is kept costs {:.2f} USD a month\n",
        r.mean("object_store_requests_cost"), r.mean("object_store_egress_cost"),
        r.mean("object_store_kept_cost_per_month"));
}

bool pays_for_saves(const Scenario& s) {
    const bool objects = s.job.checkpoint.tiers.back().place == Place::object_store;
    const auto& shared = s.stores[shared_store].system;
    return objects || (shared && shared->prices().any());
}

void print_failures(const CampaignResult& r) {
    fmt::print(
        "\n  of the store: {:.1f} drives, {:.1f} servers, {:.1f} boxes lost; {:.1f} rebuilds\n",
        r.mean("storage_drives_lost"), r.mean("storage_servers_lost"), r.mean("storage_boxes_lost"),
        r.mean("storage_rebuilds"));
    fmt::print("  {:.1f} outages, {} in all; data lost {:.2f} times\n", r.mean("storage_outages"),
               time_text(r.mean("storage_outage_time")), r.mean("storage_data_losses"));
}

void print_neighbours(const Scenario& s, const CampaignResult& r) {
    Table table({"neighbours", ">checkpoints", ">each", ">left out", ">reads it got"});
    for (const NeighbourSpec& n : s.neighbours) {
        const std::string prefix = "neighbour_" + n.name;
        const double got = r.mean(prefix + "_reads_got");
        table.add({n.name, fmt::format("{:.1f}", r.mean(prefix + "_checkpoints")),
                   time_text(r.mean(prefix + "_checkpoint_time")),
                   fmt::format("{:.1f}", r.mean(prefix + "_checkpoints_left_out")),
                   std::isfinite(got) ? percent(got) : "-"});
    }
    fmt::print("\n{}", table.text());
}

}  // namespace

void print_data(const Scenario& s) {
    const DataFlow& f = s.data->flow;
    const Duration step = s.job.step.duration();
    fmt::print("  data: {} from {}, {:.3g} samples/s; a step waits {:.1f} % for it, AU {:.1f} %\n",
               s.data->demand, word_of(data_source_names, s.data->source), f.samples_per_s,
               100 * seconds(s.job.step.data_wait) / seconds(step), 100 * f.utilisation);
    fmt::print("  wall: {}; {:.3g} of {:.3g} GB/s that the GPUs would read", data_wall_name(f.wall),
               f.read_bandwidth * 1e-9, f.demand_bandwidth * 1e-9);
    if (s.data->hit_rate > 0) {
        fmt::print(", {:.1f} % of the samples are at hand from the second epoch on",
                   100 * s.data->hit_rate);
    }
    fmt::print("\n  prefetch queues hold {:.3g} GB: {} without any supply\n", f.queue_bytes * 1e-9,
               to_text(from_seconds(f.bridge_s)));
    if (s.data->shuffle_buffers == Bytes{}) return;
    const double rate = s.data->loader->shuffle_fill_bandwidth(s.data->supply);
    const double initial = s.data->loader->shuffle_initial_bytes();
    const bool all = initial >= s.data->loader->shuffle_bytes();
    fmt::print(
        "  shuffle buffers hold {}; a start or an epoch waits {} until they {}\n",
        to_text(s.data->shuffle_buffers), time_text(initial / rate),
        all ? "are full"
            : fmt::format("have {}", to_text(Bytes::of(static_cast<std::int64_t>(initial)))));
}

void print_storage(const Scenario& s, const CampaignResult& r) {
    const bool saves = s.job.checkpoint.mode != CheckpointMode::none;
    if (saves && r.mean("checkpoints") > 0) {
        print_walls(s, r);
        if (s.job.checkpoint.tiers.size() > 1) print_copies(s, r);
        if (pays_for_saves(s)) print_paid(r);
    }
    if (s.stores[shared_store].failures) print_failures(r);
    if (!s.neighbours.empty()) print_neighbours(s, r);
    if (s.data && s.data->egress_usd_per_byte + s.data->requests_usd_per_byte > 0) {
        fmt::print("\n  {} of data fetched, {} USD of egress, {:.2f} USD of requests\n",
                   bytes_text(r.mean("data_fetched")), grouped(r.mean("data_egress_cost")),
                   r.mean("data_requests_cost"));
    }
}

}  // namespace railyard
