#include "tools/verify_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

#include "models/campaign/campaign.h"

namespace railyard {

namespace {

using RowResult = std::optional<VerifiedRow>;

bool mentions(const std::string& text, std::string_view word) {
    return text.find(word) != std::string::npos;
}

// The first number that a pattern's group finds; 0 without a match.
double found_number(const std::string& text, const char* pattern, std::size_t group = 1) {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(pattern))) return 0;
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

double checkpoint_bytes(Catalogue& catalogue, const std::string& model) {
    return read_model(catalogue, model).params *
           catalogue.number("checkpoint", "", "persisted_bytes_per_param");
}

// A store by a scenario's [storage] section, on a cluster of so many clients.
Scenario with_store(std::int64_t clients, const std::string& cluster, const std::string& storage) {
    return load_scenario(
        fmt::format("[run]\nduration = \"1 h\"\n[cluster]\nnodes = {}\n{}[storage]\n{}[job]\n"
                    "step.time = \"1 s\"\ncheckpoint.mode = \"none\"\n",
                    std::max<std::int64_t>(1, clients), cluster, storage),
        "storage row");
}

// 51: MLPerf Storage v2.0's checkpoints of Llama 3.
RowResult mlperf_checkpoint(Catalogue& catalogue, const Fields& f) {
    std::string model = "llama3_" + f.text("model");
    model.back() = 'b';
    if (Catalogue::entry("model", model) == nullptr) return std::nullopt;
    const double bytes = checkpoint_bytes(catalogue, model);
    const std::string unit = binary_unit(f.text("unit"));
    return VerifiedRow{f.text("model"), unit, f.number("checkpoint_size"), bytes / unit_size(unit)};
}

// "180*2*200 Gb/s": servers, NICs of each, and their rate.
Scenario store_of_nics(const std::string& config) {
    const char* product = R"((\d+)\*(\d+)\*(\d+) Gb/s)";
    return with_store(
        1, fmt::format("nic_bandwidth = \"{} Gbit/s\"\n", found_number(config, product, 3)),
        fmt::format("servers = {}\nnics_per_server = {}\nserver_read_bandwidth = \"1 PB/s\"\n"
                    "client_bandwidth = \"1 PB/s\"\n",
                    found_number(config, product, 1), found_number(config, product, 2)));
}

// "180 storage nodes (2x200G IB, 16x14 TiB NVMe), 500+ clients".
Scenario store_of_3fs(const std::string& config) {
    return with_store(
        std::llround(found_number(config, R"((\d+)\+? clients)")),
        fmt::format("nic_bandwidth = \"{} Gbit/s\"\n", found_number(config, R"(\d+x(\d+)G)")),
        fmt::format("system = \"threefs\"\nservers = {}\nnics_per_server = {}\n"
                    "drives_per_server = {}\n",
                    found_number(config, R"((\d+) storage nodes)"),
                    found_number(config, R"((\d+)x\d+G)"),
                    found_number(config, R"((\d+)x[\d.]+\s*TiB)")));
}

// 52: reads and sustained rates of systems whose servers are described.
RowResult bandwidth(Catalogue&, const Fields& f) {
    const std::string& system = f.text("system");
    const std::string& config = f.text("config");
    const double published = f.number("value") * unit_size(f.text("unit"));
    std::optional<Scenario> s;
    if (system == "DeepSeek 3FS cluster read stress") s = store_of_3fs(config);
    if (system == "3FS NIC bound check") s = store_of_nics(config);
    if (mentions(system, "Tectonic")) {
        s = with_store(2048, "", "system = \"meta_tectonic_llama3\"\n");
    }
    if (!s) return std::nullopt;
    const Bandwidth read = read_bandwidth(s->store().limits({}), s->job.nodes);
    return VerifiedRow{system, "GB/s", published * 1e-9, read.bytes_per_second() * 1e-9};
}

// 53: what a checkpoint weighs, and how long its save takes.
RowResult checkpoint_report(Catalogue& catalogue, const Fields& f) {
    const std::string& metric = f.text("metric");
    const std::string name = fmt::format("{}, {}", f.text("system"), metric);
    if (metric == "training state") {
        const ParameterBytes b = read_parameter_bytes(catalogue);
        return VerifiedRow{name, "bytes per parameter", f.number("value"),
                           b.weight + b.gradient + b.optimizer};
    }
    const bool bloom = mentions(f.text("system"), "BLOOM-176B");
    if (!bloom && !mentions(f.text("system"), "1T GPT")) return std::nullopt;
    const double bytes = checkpoint_bytes(catalogue, bloom ? "bloom_176b" : "megatron_1t");
    if (metric == "size") {
        const std::string unit = bloom ? binary_unit(f.text("unit")) : f.text("unit");
        return VerifiedRow{name, "size", f.number("value"), bytes / unit_size(unit)};
    }
    const double rate = found_number(f.text("config"), R"(([\d.]+) GB/s)");
    if (metric != "save time" || rate == 0) return std::nullopt;
    const double processes = found_number(f.text("config"), R"((\d+) processes)");
    const Scenario s =
        with_store(std::llround(std::ceil(processes / 8)), "",
                   fmt::format("server_write_bandwidth = \"{} {}/s\"\n", rate, binary_unit("GB")));
    const Bandwidth written = write_bandwidth(s.store().limits({}), s.job.nodes);
    return VerifiedRow{name, "s", f.number("value"), bytes / written.bytes_per_second()};
}

struct Format {
    const char* number;
    const char* what;
    RowResult (*row)(Catalogue&, const Fields&);
};

constexpr Format formats[] = {
    {"51", "MLPerf Storage v2.0, checkpoint sizes", mlperf_checkpoint},
    {"52", "storage systems, bandwidth", bandwidth},
    {"53", "checkpoints, sizes and times", checkpoint_report},
};

}  // namespace

std::optional<VerifiedTable> verify_stores(const CsvTable& table, const Value* overrides) {
    for (const Format& format : formats) {
        if (!table.name.starts_with(format.number)) continue;
        Diagnostics diagnostics;
        ValueReader reader(diagnostics, "catalogue");
        Catalogue catalogue(reader, ValueChoice::corrected, overrides);
        VerifiedTable out{table.name, format.what, table.rows.size()};
        for (const CsvRow& row : table.rows) {
            if (const RowResult result = format.row(catalogue, Fields(row))) {
                out.expressed.push_back(*result);
            }
        }
        diagnostics.raise_if_any();
        return out;
    }
    return std::nullopt;
}

}  // namespace railyard
