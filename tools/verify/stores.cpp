#include "tools/verify/stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "models/campaign/campaign.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

using Rows = std::vector<VerifiedRow>;

// The first number that a pattern's group finds; 0 without a match.
double found_number(const std::string& text, const char* pattern, std::size_t group = 1) {
    const Found found = find_pattern(text, pattern);
    if (found.empty()) return 0;
    return std::stod(found[group]);
}

// Of "TiB/s", "GB", "s".
double unit_size(const std::string& unit) {
    const double binary = mentions(unit, "iB") ? 1024 : 1000;
    const std::size_t power = std::string("BKMGTP").find(unit.empty() ? ' ' : unit[0]);
    return power == std::string::npos ? 1 : std::pow(binary, static_cast<double>(power));
}

// "GB" in powers of 1024 is "GiB".
std::string binary_unit(const std::string& unit) {
    return fmt::format("{:.1}iB", unit);
}

double checkpoint_bytes(Catalogue& catalogue, double params) {
    return params * catalogue.number("checkpoint", "", "persisted_bytes_per_param");
}

// Of "BLOOM-176B", "Megatron 1T GPT": the catalogue's, where it has the model, or the number in the name.
double params_of(Catalogue& catalogue, const std::string& system) {
    if (mentions(system, "BLOOM-176B")) return parameter_count(read_model(catalogue, "bloom_176b"));
    if (mentions(system, "1T GPT")) return parameter_count(read_model(catalogue, "megatron_1t"));
    if (mentions(system, "Llama 3 405B"))
        return parameter_count(read_model(catalogue, "llama3_405b"));
    const char* number = R"(\b(\d+(?:\.\d+)?)([BT])\b)";
    const Found found = find_pattern(system, number);
    if (found.empty()) return 0;
    return std::stod(found[1]) * (found[2] == "T" ? 1e12 : 1e9);
}

// A store by a scenario's [storage] section, on a cluster of so many clients.
Scenario with_store(std::int64_t clients, const std::string& cluster, const std::string& storage) {
    return load_scenario(
        fmt::format("[run]\nduration = \"1 h\"\n[cluster]\nnodes = {}\n{}[storage]\n{}[job]\n"
                    "step.time = \"1 s\"\ncheckpoint.mode = \"none\"\n",
                    std::max<std::int64_t>(1, clients), cluster, storage),
        "storage row");
}

// What a table says of a store's parts; 0: nothing.
struct StoreParts {
    double servers = 0;
    double nics = 0;      // of each
    double nic_gbit = 0;  // of one
    double drives = 0;    // of each
    double clients = 0;
    std::string system;  // a catalogue's, when the row names one
};

// "180 storage nodes (2x200G IB, 16x14 TiB NVMe), 500+ clients (1x200G IB)", "642 storage nodes, 1284
// engines, 63k client procs", "180*2*200 Gb/s". An engine has a NIC of its own, whose rate is the
// catalogue's estimate.
StoreParts parts_of(Catalogue& catalogue, const std::string& system, std::string config) {
    std::erase(config, ',');
    StoreParts p;
    const char* product = R"((\d+)\*(\d+)\*(\d+) Gb/s)";
    p.servers = found_number(config, product, 1);
    p.nics = found_number(config, product, 2);
    p.nic_gbit = found_number(config, product, 3);
    if (p.servers > 0) return p;
    p.servers = found_number(config, R"((\d+) (?:storage (?:nodes|servers)|servers|OSS)\b)");
    p.clients = found_number(config, R"((\d+)\+? clients)");
    p.nics = found_number(config, R"(\((\d+)x\d+G\b)");
    p.nic_gbit = found_number(config, R"(\(\d+x(\d+)G\b)");
    p.drives = found_number(config, R"((\d+)x[\d.]+ ?Ti?B\b)");
    const double engines = found_number(config, R"((\d+) engines)");
    if (p.nics == 0 && engines > 0 && p.servers > 0) {
        p.nics = std::max(1.0, std::round(engines / p.servers));
        p.nic_gbit =
            catalogue.bandwidth("nic", "slingshot_11", "bandwidth").bytes_per_second() * 8e-9;
    }
    if (mentions(system, "3FS")) p.system = "threefs";
    if (mentions(system, "Tectonic")) p.system = "meta_tectonic_llama3";
    return p;
}

// Nothing where neither the system nor its NICs are known. A server has no rate of its own unless its system
// is the catalogue's.
std::optional<Bandwidth> reads_of(const StoreParts& p) {
    if (p.system.empty() && (p.servers == 0 || p.nics == 0)) return std::nullopt;
    const bool named = !p.system.empty();
    std::string storage =
        named ? fmt::format("system = \"{}\"\n", p.system)
              : "server_read_bandwidth = \"1 PB/s\"\nclient_bandwidth = \"1 PB/s\"\n";
    if (p.servers > 0 && p.nics > 0) {
        storage += fmt::format("servers = {}\nnics_per_server = {}\n", p.servers, p.nics);
    }
    if (p.drives > 0) storage += fmt::format("drives_per_server = {}\n", p.drives);
    const std::string cluster =
        p.nic_gbit > 0 ? fmt::format("nic_bandwidth = \"{} Gbit/s\"\n", p.nic_gbit) : "";
    // Those who are not counted bound nothing.
    constexpr std::int64_t many = 2048;
    const Scenario s = with_store(p.clients > 0 ? std::llround(p.clients) : many, cluster, storage);
    return read_bandwidth(s.store().limits({}), s.job.nodes);
}

// 52: reads and sustained rates of systems whose servers are described.
Rows bandwidth(Catalogue& catalogue, const Fields& f) {
    const std::string& system = f.text("system");
    const std::string& unit = f.text("unit");
    const StoreParts parts = parts_of(catalogue, system, f.text("config"));
    const auto reached = reads_of(parts);
    // Of "sustained / peak" the first.
    const double published = found_number(f.text("value"), R"(([\d.]+))") * unit_size(unit);
    if (!reached || published == 0 || !mentions(unit, "B/s")) return {};
    // What is measured may stay below the wires.
    const bool wires_alone = parts.system.empty() && !mentions(f.text("metric"), "bound");
    return {{system, "GB/s", published * 1e-9, reached->bytes_per_second() * 1e-9,
             wires_alone ? Published::at_least : Published::figure}};
}

// "1 MB - 4 GB" of bytes: each end as a limit.
Rows between(const std::string& name, const std::string& range, double bytes) {
    const char* ends = R"(([\d.]+) ?([KMGT]B) ?- ?([\d.]+) ?([KMGT]B))";
    const Found found = find_pattern(range, ends);
    if (found.empty()) return {};
    const double least = std::stod(found[1]) * unit_size(found[2]);
    const double most = std::stod(found[3]) * unit_size(found[4]);
    return {{name, "bytes", least, bytes, Published::at_least},
            {name, "bytes", most, bytes, Published::at_most}};
}

// Checkpoints of a job on one node that begin every so often.
struct Saves {
    const char* mode;
    double gigabytes;
    double hours;
    const char* store = "1 GB/s";  // what it takes
};

// What they stop the job for, in percent of the time.
double stall_percent(const Saves& saves) {
    const Scenario s = load_scenario(
        fmt::format("[run]\nreplicas = 1\nduration = \"1000 h\"\n[cluster]\nnodes = 1\n"
                    "[storage]\nserver_write_bandwidth = \"{}\"\nclient_bandwidth = \"{}\"\n"
                    "[job]\nstep.time = \"1 s\"\n[job.checkpoint]\nmode = \"{}\"\n"
                    "size = \"{:.0f} B\"\nfiles_per_rank = 1\nupload_slowdown = 0\n"
                    "interval = \"{} h\"\nclock = \"wall\"\n[failures]\nprofile = \"none\"\n",
                    saves.store, saves.store, saves.mode, saves.gigabytes * 1e9, saves.hours),
        "storage row");
    const CampaignResult r = run_campaign(s, {});
    return 100 * r.metric("checkpoint_stall_time").summary.mean /
           r.metric("wall_time").summary.mean;
}

// "12-162 (avg 54.2)": how many times shorter the job stands when a save goes on beside it, after the copy to
// host memory. Sizes and stores are not printed: where the ranks, not the store, are the wall the quotient is
// that of their rates whatever the size, and the least.
Rows stall_reduction(const std::string& name, const std::string& value) {
    const char* range = R"(([\d.]+)-([\d.]+))";
    const double least = found_number(value, range, 1);
    const double most = found_number(value, range, 2);
    if (most == 0) return {};
    constexpr double gigabytes = 100;
    const char* store = "1 PB/s";
    const double times = stall_percent({"sync", gigabytes, 1, store}) /
                         stall_percent({"async", gigabytes, 1, store});
    return {{name, "times", least, times, Published::at_least},
            {name, "times", most, times, Published::at_most}};
}

// "30 / 100 / 2-4 / ~5%": the saves alone are no more than what checkpoints cost in all.
Rows fleet_overhead(const std::string& name, const std::string& value) {
    const char* figures = R"(/ ([\d.]+) / ([\d.]+)-[\d.]+ / ~?([\d.]+) ?%)";
    const Found found = find_pattern(value, figures);
    if (found.empty()) return {};
    return {{name, "% of the time", std::stod(found[3]),
             stall_percent({"sync", std::stod(found[1]), std::stod(found[2])}),
             Published::at_most}};
}

// A save whose bandwidth is printed, and what it costs when the interval is too.
Rows save_time(const std::string& name, const Fields& f, double bytes) {
    const std::string& config = f.text("config");
    const double rate = found_number(config, R"(([\d.]+) GB/s)");
    if (rate == 0 || bytes == 0) return {};
    const bool binary = mentions(f.text("system"), "BLOOM");
    const double processes = found_number(config, R"((\d+) processes)");
    const Scenario s = with_store(
        std::llround(std::ceil(processes / 8)), "",
        fmt::format("server_write_bandwidth = \"{} {}/s\"\n", rate, binary ? "GiB" : "GB"));
    const Bandwidth written = write_bandwidth(s.store().limits({}), s.job.nodes);
    const double time = bytes / written.bytes_per_second();
    Rows out = {{name, "s", f.figure("value"), time}};
    const double hours = found_number(config, R"(every ([\d.]+) h)");
    const double percent = found_number(config, R"(([\d.]+) ?% overhead)");
    if (hours > 0 && percent > 0) {
        out.push_back({name, "% of the time", percent, stall_percent({"sync", time, hours})});
    }
    return out;
}

// 53: what a checkpoint weighs, how long its save takes, and what saves cost.
Rows checkpoint_report(Catalogue& catalogue, const Fields& f) {
    const std::string& system = f.text("system");
    const std::string& metric = f.text("metric");
    const std::string name = fmt::format("{}, {}", system, metric);
    if (metric == "training state") {
        const ParameterBytes b = read_parameter_bytes(catalogue);
        return {
            {name, "bytes per parameter", f.figure("value"), b.weight + b.gradient + b.optimizer}};
    }
    if (metric.starts_with("GB per GPU / save s / interval h")) {
        return fleet_overhead(name, f.text("value"));
    }
    if (metric == "stall reduction") return stall_reduction(name, f.text("value"));
    const double bytes = checkpoint_bytes(catalogue, params_of(catalogue, system));
    if (bytes == 0) return {};
    if (metric == "size") {
        const bool binary = mentions(system, "BLOOM");
        const std::string unit = binary ? binary_unit(f.text("unit")) : f.text("unit");
        return {{name, "size", f.figure("value"), bytes / unit_size(unit)}};
    }
    if (metric == "save time") return save_time(name, f, bytes);
    if (metric == "checkpoint bytes per GPU") {
        std::string gpus = f.text("config");
        std::erase(gpus, ',');
        const double count = found_number(gpus, R"((\d+) GPUs)");
        return count > 0 ? between(name, f.text("value"), bytes / count) : Rows{};
    }
    return {};
}

struct StoreFormat {
    const char* number;
    const char* what;
    Rows (*row)(Catalogue&, const Fields&);
};

constexpr StoreFormat store_formats[] = {
    {"52", "storage systems, bandwidth", bandwidth},
    {"53", "checkpoints, sizes and times", checkpoint_report},
};

}  // namespace

std::optional<VerifiedTable> verify_stores(const CsvTable& table, const Value* overrides) {
    for (const StoreFormat& format : store_formats) {
        if (!table.name.starts_with(format.number)) continue;
        Diagnostics diagnostics;
        ValueReader reader(diagnostics, "catalogue");
        Catalogue catalogue(reader, ValueChoice::corrected, overrides);
        VerifiedTable out{table.name, format.what};
        each_row(table, out.unused, [&](const Fields& f) {
            const Rows rows = format.row(catalogue, f);
            out.rows += std::max<std::size_t>(1, rows.size());
            out.expressed.insert(out.expressed.end(), rows.begin(), rows.end());
        });
        out.rows += out.unused.size();
        diagnostics.raise_if_any();
        return out;
    }
    return std::nullopt;
}

}  // namespace railyard
