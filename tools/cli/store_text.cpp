#include "tools/cli/store_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/terminal.h"
#include "tools/program/lists.h"
#include "tools/program/program.h"

namespace railyard {

namespace {

constexpr std::int64_t no_limit = INT64_MAX;

std::string bandwidth_text(Bandwidth b) {
    return b.bits_per_second() == no_limit ? "no limit" : to_text(b);
}

std::string requests_text(double per_s) {
    return per_s > 0 ? fmt::format("{:.4g} /s", per_s) : "not known";
}

// What may happen to a store, in a report's words.
struct StoreLoss {
    std::string what;
    StoreState state;
};

std::vector<StoreLoss> losses_of(const StorageSystem& store) {
    const Protection p = store.protection();
    std::vector<StoreLoss> out = {{"nothing", {}}};
    if (p.drive_capacity.count() > 0) {
        out.push_back({"one drive", {.drives_down = 1}});
        out.push_back({"one drive, being rebuilt", {.drives_down = 1, .rebuilds = 1}});
    }
    if (p.servers > 0) out.push_back({"one server", {.servers_down = 1}});
    if (p.boxes > 0) out.push_back({"one box", {.boxes_down = 1}});
    if (store.limits({}).write_buffer.count() > 0) {
        out.push_back({"buffer full", {.write_buffer_full = true}});
    }
    return out;
}

// Which wall a checkpoint of all ranks at once meets, each as if it were alone, in seconds.
struct CheckpointWalls {
    explicit CheckpointWalls(const Scenario& s) {
        const StoreSetup& store = s.stores[shared_store];
        const bool from_gpus = s.job.checkpoint.mode != CheckpointMode::async;
        const std::vector<SaveWall> walls =
            store.limits.over_network
                ? save_walls(s, shared_store, write_caps(s, store.limits, from_gpus))
                : node_save_walls(s, store.limits.client_write, store.limits.create_latency);
        const auto of = [&](Wall wall) {
            double most = 0;
            for (const SaveWall& each : walls) {
                if (each.wall == wall) most = std::max(most, seconds(each.time));
            }
            return most;
        };
        bandwidth = std::max({of(Wall::store), of(Wall::client), of(Wall::local)});
        metadata = of(Wall::metadata);
        files = of(Wall::files);
        serialisation = of(Wall::serialisation);
        all = seconds(longest(walls).time);
        largest = all == bandwidth  ? "bandwidth"
                  : all == metadata ? "metadata"
                  : all == files    ? "files"
                                    : "serialisation";
    }
    double bandwidth;
    double metadata;
    double files;  // each on as many stripes or parts as it has
    double serialisation;
    double all;
    const char* largest;
};

void print_ceilings(const StoreLimits& limits, std::int64_t nodes) {
    Table table({"ceiling", ">reads", "", ">writes", ""});
    const auto cell = [](const std::vector<Ceiling>& of, const std::string& what) {
        const auto found =
            std::ranges::find_if(of, [&](const Ceiling& each) { return each.what == what; });
        if (found == of.end()) return std::pair<std::string, std::string>("-", "");
        return std::pair<std::string, std::string>(bandwidth_text(found->bandwidth),
                                                   &*found == &least(of) ? "least" : "");
    };
    std::vector<std::string> names;
    for (const auto* each : {&limits.read, &limits.write}) {
        for (const Ceiling& c : *each) {
            if (!contains(names, c.what)) names.push_back(c.what);
        }
    }
    for (const std::string& what : names) {
        const auto read = cell(limits.read, what);
        const auto write = cell(limits.write, what);
        table.add({what, read.first, read.second, write.first, write.second});
    }
    const auto clients = [&](Bandwidth one, Bandwidth store) {
        return one * nodes < store ? "less than these" : "";
    };
    table.add({fmt::format("{} nodes", nodes), bandwidth_text(limits.client_read * nodes),
               clients(limits.client_read, least(limits.read).bandwidth),
               bandwidth_text(limits.client_write * nodes),
               clients(limits.client_write, least(limits.write).bandwidth)});
    table.add({"one node", bandwidth_text(limits.client_read), "",
               bandwidth_text(limits.client_write), ""});
    table.add(
        {"one file", bandwidth_text(limits.file_read), "", bandwidth_text(limits.file_write), ""});
    fmt::print("{}\n", table.text());
}

void print_metadata(const StoreLimits& limits) {
    Table table({"files", ">all clients", ">one thread"});
    table.add({"create", requests_text(limits.creates_per_s), to_text(limits.create_latency)});
    table.add({"open", requests_text(limits.opens_per_s), to_text(limits.open_latency)});
    table.add({"stat", requests_text(limits.stats_per_s), ""});
    table.add({"remove", requests_text(limits.removes_per_s), ""});
    fmt::print("{}\n", table.text());
}

void print_losses(const StorageSystem& store, std::int64_t nodes) {
    Table table({"lost", ">reads", ">writes", ">not served"});
    for (const StoreLoss& loss : losses_of(store)) {
        const StoreLimits l = store.limits(loss.state);
        table.add({loss.what, to_text(read_bandwidth(l, nodes)), to_text(write_bandwidth(l, nodes)),
                   l.unreachable > 0 ? fmt::format("{:.3g} %", 100 * l.unreachable) : ""});
    }
    fmt::print("{}", table.text());
    const Protection p = store.protection();
    if (p.drives_lost_max > 0 || p.group_drives > 0) {
        fmt::print("  {} of {} drives that share a stripe may be lost at once\n", p.drives_lost_max,
                   p.stripe_drives > 0 ? p.stripe_drives : p.group_drives);
    }
    if (p.rebuild.bits_per_second() > 0) {
        fmt::print("  a drive of {} is rebuilt in {}\n", to_text(p.drive_capacity),
                   to_text(transfer_time(p.drive_capacity, p.rebuild)));
    }
    if (p.servers > 0) {
        fmt::print("  clients of a lost server {}\n",
                   p.waits_for_server ? std::string("wait until it is back")
                                      : fmt::format("wait {}", to_text(p.failover)));
    }
    fmt::print("\n");
}

// Where nothing bounds it: null.
Json bits_json(Bandwidth b) {
    return b.bits_per_second() == no_limit ? Json() : Json(b.bits_per_second());
}

Json bytes_json(Bytes b) {
    return b.count() == no_limit ? Json() : Json(b.count());
}

Json ceilings_json(const std::vector<Ceiling>& ceilings) {
    return json_array(ceilings, [&](const Ceiling& each) -> Json {
        return {{"what", each.what},
                {"bits_per_s", bits_json(each.bandwidth)},
                {"least", &each == &least(ceilings)}};
    });
}

Json limits_json(const StoreLimits& l, std::int64_t nodes) {
    return {{"read", ceilings_json(l.read)},
            {"write", ceilings_json(l.write)},
            {"client_read_bits_per_s", bits_json(l.client_read)},
            {"client_write_bits_per_s", bits_json(l.client_write)},
            {"file_read_bits_per_s", bits_json(l.file_read)},
            {"file_write_bits_per_s", bits_json(l.file_write)},
            {"job_read_bits_per_s", bits_json(read_bandwidth(l, nodes))},
            {"job_write_bits_per_s", bits_json(write_bandwidth(l, nodes))},
            {"creates_per_s", l.creates_per_s},
            {"opens_per_s", l.opens_per_s},
            {"stats_per_s", l.stats_per_s},
            {"removes_per_s", l.removes_per_s},
            {"create_latency_s", seconds(l.create_latency)},
            {"open_latency_s", seconds(l.open_latency)},
            {"unreachable", l.unreachable}};
}

}  // namespace

void print_store(const Scenario& s, const SmallFiles& files) {
    const StorageSystem& store = s.store();
    const StoreLimits limits = store.limits({});
    fmt::print("{}  {}\n", coloured(s.stores[0].name, Colour::bold),
               limits.over_network ? "over the network" : "in the nodes");
    print_ceilings(limits, s.job.nodes);
    print_metadata(limits);
    const StoreCapacity capacity = store.capacity();
    if (capacity.raw.count() > 0 && capacity.raw.count() < no_limit) {
        fmt::print("  capacity {} of {} raw: {}\n", to_text(capacity.net), to_text(capacity.raw),
                   capacity.rule);
    }
    if (limits.write_buffer.count() > 0) {
        fmt::print("  write buffer {}, drained at {}\n", to_text(limits.write_buffer),
                   to_text(limits.drain));
    }
    const StorePrices prices = store.prices();
    if (prices.per_egress_byte > 0) {
        fmt::print("  egress {:.4g} USD/TB\n", prices.per_egress_byte * 1e12);
    }
    if (prices.per_write_request > 0) {
        fmt::print("  a part of {}: {:.3g} USD to write, {:.3g} USD to read\n",
                   to_text(prices.write_part), prices.per_write_request, prices.per_read_request);
    }
    fmt::print("\n");
    print_losses(store, s.job.nodes);
    fmt::print("  {} of {} together, {} on {}: {} to write, {} to read\n",
               counted(static_cast<std::size_t>(files.files), "file"), to_text(files.bytes),
               counted(static_cast<std::size_t>(files.threads), "thread"),
               counted(static_cast<std::size_t>(files.clients), "node"),
               time_text(create_seconds(limits, files)), time_text(open_seconds(limits, files)));
    if (s.checkpoint_size.count() == 0) return;
    const CheckpointWalls walls(s);
    fmt::print(
        "  a checkpoint of {} in {} files: bandwidth {}, metadata {}{}, serialisation {}: the wall "
        "is {}\n",
        to_text(s.checkpoint_size), s.checkpoint_writers.files, time_text(walls.bandwidth),
        time_text(walls.metadata),
        walls.files > 0 ? ", files " + time_text(walls.files) : std::string(),
        time_text(walls.serialisation), walls.largest);
}

void print_bursts(const Scenario& s) {
    if (s.checkpoint_size.count() == 0 || s.stores[0].limits.over_network == false) return;
    if (storage_network(s) == nullptr) {
        const char* network = s.converged ? "compute" : "storage";
        fmt::print(
            "  with [fabric.{}] and --set run.fidelity=flow: over the network, all ranks at once\n",
            network);
        return;
    }
    const std::int64_t ranks = s.job.gpus();
    StoreTraffic traffic = checkpoint_traffic(s);
    traffic.operations_per_rank = traffic.files_per_rank;
    StandaloneCatalogue own = s.open_catalogue();
    RestartStorm storm = typical_restart_storm(own.catalogue);
    if (s.image > Bytes{}) storm.image = s.image;
    if (s.dataset_index > Bytes{}) storm.index = s.dataset_index;
    storm.ranks_per_node = s.node.gpus;
    storm.checkpoint_per_rank = traffic.bytes_per_rank;
    storm.files_per_rank = traffic.files_per_rank;
    const StoreBursts bursts = store_bursts(s, traffic, storm);
    if (!bursts.checkpoint.stuck.empty()) {
        fmt::print("  over the network nothing moves: {}\n", bursts.checkpoint.stuck);
        return;
    }
    Table table({"all ranks at once", ">moves", ">takes", ">slowest rank", "waits for"});
    const auto row = [&](const std::string& what, const BurstResult& r) {
        table.add({what, to_text(r.bytes), to_text(r.stall), to_text(r.rank_bandwidth(0)),
                   r.wall_text()});
    };
    if (s.checkpoint_writers.ranks == ranks) row("write a checkpoint", bursts.checkpoint);
    row("restart: image", bursts.restart.image);
    row("restart: checkpoint", bursts.restart.checkpoint);
    row("restart: dataset index", bursts.restart.index);
    fmt::print("\n{}", table.text());
}

Json store_json(const Scenario& s, const SmallFiles& files) {
    const StoreLimits limits = s.store().limits({});
    const StoreCapacity capacity = s.store().capacity();
    Json losses = Json::object();
    for (const StoreLoss& loss : losses_of(s.store())) {
        losses[loss.what] = limits_json(s.store().limits(loss.state), s.job.nodes);
    }
    Json out = {{"scenario", s.file},
                {"version", version()},
                {"system", s.stores[0].name},
                {"capacity",
                 {{"raw_bytes", bytes_json(capacity.raw)},
                  {"net_bytes", bytes_json(capacity.net)},
                  {"rule", capacity.rule}}},
                {"lost", losses},
                {"small_files",
                 {{"files", files.files},
                  {"create_s", create_seconds(limits, files)},
                  {"open_s", open_seconds(limits, files)}}}};
    if (s.checkpoint_size.count() > 0) {
        const CheckpointWalls walls(s);
        out["checkpoint"] = {{"bytes", s.checkpoint_size.count()},
                             {"files", s.checkpoint_writers.files},
                             {"bandwidth_s", walls.bandwidth},
                             {"metadata_s", walls.metadata},
                             {"files_s", walls.files},
                             {"serialisation_s", walls.serialisation},
                             {"wall", walls.largest}};
    }
    return out;
}

std::vector<double> store_answers(const Scenario& s) {
    const StoreLimits limits = s.store().limits({});
    std::vector<double> out = {read_bandwidth(limits, s.job.nodes).bytes_per_second(),
                               write_bandwidth(limits, s.job.nodes).bytes_per_second()};
    if (s.checkpoint_size.count() > 0) out.push_back(CheckpointWalls(s).all);
    return out;
}

}  // namespace railyard
