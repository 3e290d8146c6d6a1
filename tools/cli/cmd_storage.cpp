// railyard storage: what the scenario's store gives, what it holds, and what it loses with its parts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/campaign/campaign.h"
#include "tools/cli/cmd.h"
#include "tools/cli/options.h"
#include "tools/cli/prediction_text.h"
#include "tools/cli/terminal.h"
#include "tools/program/json_text.h"
#include "tools/program/lists.h"

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
struct Loss {
    std::string what;
    StoreState state;
};

std::vector<Loss> losses_of(const StorageSystem& store) {
    const Protection p = store.protection();
    std::vector<Loss> out = {{"nothing", {}}};
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
class CheckpointWalls {
  public:
    explicit CheckpointWalls(const Scenario& s) {
        const StoreSetup& store = s.stores[shared_store];
        const bool from_gpus = s.job.checkpoint.mode != CheckpointMode::async;
        walls_ = store.limits.over_network
                     ? save_walls(s, shared_store, write_caps(s, store.limits, from_gpus))
                     : node_save_walls(s, store.limits.client_write, store.limits.create_latency);
    }
    double bandwidth() const {
        return std::max({of(Wall::store), of(Wall::client), of(Wall::local)});
    }
    double metadata() const { return of(Wall::metadata); }
    double files() const { return of(Wall::files); }  // each on as many stripes or parts as it has
    double serialisation() const { return of(Wall::serialisation); }
    double all() const { return seconds(longest(walls_).time); }
    const char* largest() const {
        const double most = all();
        if (bandwidth() == most) return "bandwidth";
        if (metadata() == most) return "metadata";
        return files() == most ? "files" : "serialisation";
    }

  private:
    double of(Wall wall) const {
        double most = 0;
        for (const SaveWall& each : walls_) {
            if (each.wall == wall) most = std::max(most, seconds(each.time));
        }
        return most;
    }
    std::vector<SaveWall> walls_;
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
    for (const Loss& loss : losses_of(store)) {
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
        to_text(s.checkpoint_size), s.checkpoint_writers.files, time_text(walls.bandwidth()),
        time_text(walls.metadata()),
        walls.files() > 0 ? ", files " + time_text(walls.files()) : std::string(),
        time_text(walls.serialisation()), walls.largest());
}

// How long it takes over the network when all ranks come at once.
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

// What all nodes of the job read and write together, bytes/s, and what a checkpoint takes, s.
std::vector<double> store_answers(const Scenario& s) {
    const StoreLimits limits = s.store().limits({});
    std::vector<double> out = {read_bandwidth(limits, s.job.nodes).bytes_per_second(),
                               write_bandwidth(limits, s.job.nodes).bytes_per_second()};
    if (s.checkpoint_size.count() > 0) out.push_back(CheckpointWalls(s).all());
    return out;
}

Prediction store_prediction(const Scenario& s, const std::string& path,
                            const ScenarioChanges& changes) {
    StandaloneCatalogue own = s.open_catalogue();
    const ModelError error = read_model_error(own.catalogue, "store");
    const std::vector<double> answers = store_answers(s);
    constexpr const char* names[] = {"read", "write", "checkpoint"};
    std::vector<Question> questions;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        questions.push_back({names[i], answers[i], {}, error, "a run on this store", false});
    }
    return predict(questions, s.estimates, draws_of(s), s.seed,
                   read_again(path, changes, store_answers));
}

void print_json(const Scenario& s, const SmallFiles& files, const Prediction& prediction) {
    const StoreLimits limits = s.store().limits({});
    const StoreCapacity capacity = s.store().capacity();
    Json losses = Json::object();
    for (const Loss& loss : losses_of(s.store())) {
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
                             {"bandwidth_s", walls.bandwidth()},
                             {"metadata_s", walls.metadata()},
                             {"files_s", walls.files()},
                             {"serialisation_s", walls.serialisation()},
                             {"wall", walls.largest()}};
    }
    out["prediction"] = prediction_json(prediction);
    fmt::print("{}\n", one_line(out));
}

}  // namespace

int cmd_storage(const std::vector<std::string>& arguments) {
    CommandLine line(
        "railyard storage SCENARIO.toml [options]",
        "Prints what the scenario's store gives and which part bounds it, what it holds, what it\n"
        "loses with a drive, a server or a box, and the walls that a checkpoint meets.");
    line.positional("scenario", 1);
    line.add_settings();
    line.add()("files", a_count(100'000), "Small files that are written and read");
    line.add()("file-size", a_text("100 kB"), "Each of them");
    line.add()("threads", a_count(1), "Threads that do it, one on a node while there are nodes");
    line.add_json();
    const auto values = line.parse(arguments);
    ScenarioChanges changes;
    changes.settings = settings_of(values);
    changes.must_run = false;  // the job need not fit into memory here
    changes.overrides_read = std::make_shared<OverridesRead>();
    const std::string path = only_scenario(values, "storage");
    const Scenario s = load_scenario_file(path, changes);
    print_warnings(s.warnings);
    need_one_job(s, "storage");
    SmallFiles files;
    files.files = values["files"].as<std::int64_t>();
    files.threads = values["threads"].as<std::int64_t>();
    std::string why;
    const auto size = parse_quantity(values["file-size"].as<std::string>(), why, Dimension::data);
    if (!size || size->dimension != Dimension::data || !size->integer) {
        throw ScenarioError(fmt::format("--file-size: expected an amount of data{}{}",
                                        why.empty() ? "" : ": ", why),
                            "--file-size \"100 kB\"");
    }
    constexpr std::int64_t most = 1'000'000'000;
    if (files.files < 1 || files.threads < 1 || files.files > most || files.threads > most ||
        *size->integer < 0 || *size->integer > INT64_MAX / files.files) {
        throw ScenarioError("--files and --threads: expected 1 to a billion, of files that add up");
    }
    files.bytes = Bytes::of(*size->integer) * files.files;
    files.clients = std::min(files.threads, s.job.nodes);
    const Prediction prediction = store_prediction(s, path, changes);
    if (values.count("json")) {
        print_json(s, files, prediction);
    } else {
        print_store(s, files);
        print_bursts(s);
        const ShowNumber rate = [](double v) {
            return to_text(Bandwidth::bits_per_second(std::llround(8 * v)));
        };
        print_prediction(prediction, {rate, rate, time_text});
    }
    print_warnings(unread_overrides(s));
    return exit_ok;
}

}  // namespace railyard
