// Chakra's execution traces, a rank each, replayed on a scenario's GPUs and network: each node waits for
// those that it depends on and for its lane (the host, the GPU's kernels, one for each process group), in
// the order in which they get ready. All groups of a kind talk at once, as in a step that is modelled.

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>

#include "models/campaign/campaign.h"
#include "tools/import/chakra.pb.h"
#include "tools/import/importers.h"
#include "tools/import/json_tree.h"
#include "tools/import/text_file.h"
#include "tools/language/scenario_files.h"

namespace railyard {

namespace {

struct ChakraGroup {
    std::int64_t stride = 1;
    std::int64_t ranks = 1;
};

class Chakra : Importer {
  public:
    using Importer::Importer;
    void run();

  private:
    struct RankTrace {
        std::string file;
        std::vector<chakra::Node> nodes;
        std::vector<std::vector<std::size_t>> before;  // what each node depends on
    };
    struct Replay {
        std::int64_t length = 0;  // ns
        std::int64_t kernels = 0;
        std::int64_t collectives = 0;
    };
    // What a node takes, in ns, and where.
    struct Work {
        std::string lane;
        std::int64_t length = 0;
    };

    void read_trace(const std::string& file);
    void link(RankTrace& trace);
    void read_groups(const std::string& file);
    void load(const std::string& file);
    void error(const RankTrace& trace, const chakra::Node& node, const std::string& what,
               const std::string& help = "");
    ChakraGroup group_of(const RankTrace& trace, const chakra::Node& node);
    std::int64_t whole(const RankTrace& trace, const chakra::Node& node, double seconds);
    Work compute(const RankTrace& trace, const chakra::Node& node);
    Work communicate(const RankTrace& trace, const chakra::Node& node);
    double collective_seconds(const RankTrace& trace, const chakra::Node& node);
    void count(const RankTrace& trace);
    Work work_of(const RankTrace& trace, const chakra::Node& node);
    Replay replay(const RankTrace& trace);

    std::vector<RankTrace> traces_;
    Document groups_;
    std::string groups_file_;
    std::optional<Scenario> scenario_;
    std::optional<Communicators> communicators_;
    std::int64_t unsaid_hosts_ = 0;
    std::int64_t modelled_ = 0;  // kernels without a duration
};

const chakra::AttributeProto* attribute(const chakra::Node& node, const char* name) {
    const auto found = std::ranges::find_if(
        node.attr(), [&](const chakra::AttributeProto& each) { return each.name() == name; });
    return found == node.attr().end() ? nullptr : &*found;
}

// Writers differ in the type of one and the same number.
std::optional<double> number_of(const chakra::Node& node, const char* name) {
    const chakra::AttributeProto* found = attribute(node, name);
    if (found == nullptr) return std::nullopt;
    using A = chakra::AttributeProto;
    switch (found->value_case()) {
        case A::kDoubleVal:
            return found->double_val();
        case A::kFloatVal:
            return found->float_val();
        case A::kInt32Val:
            return found->int32_val();
        case A::kInt64Val:
            return static_cast<double>(found->int64_val());
        case A::kUint32Val:
            return found->uint32_val();
        case A::kUint64Val:
            return static_cast<double>(found->uint64_val());
        case A::kSint32Val:
            return found->sint32_val();
        case A::kSint64Val:
            return static_cast<double>(found->sint64_val());
        case A::kFixed32Val:
            return found->fixed32_val();
        case A::kFixed64Val:
            return static_cast<double>(found->fixed64_val());
        case A::kSfixed32Val:
            return found->sfixed32_val();
        case A::kSfixed64Val:
            return static_cast<double>(found->sfixed64_val());
        case A::kBoolVal:
            return found->bool_val() ? 1 : 0;
        default:
            return std::nullopt;
    }
}

void Chakra::error(const RankTrace& trace, const chakra::Node& node, const std::string& what,
                   const std::string& help) {
    diagnostics_.error(trace.file, {}, "",
                       fmt::format("node {} '{}': {}", node.id(), visible(node.name()), what),
                       help);
    diagnostics_.raise_if_any();
}

// Messages, each behind its length. A node's id of 0 is not written at all.
void Chakra::read_trace(const std::string& file) {
    constexpr std::size_t nodes_max = 1'000'000;
    const std::string bytes = read_file(file);
    google::protobuf::io::CodedInputStream in(
        reinterpret_cast<const std::uint8_t*>(bytes.data()),
        static_cast<int>(std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max())));
    const auto wrong = [&](const std::string& what, const char* help = "") {
        diagnostics_.error(file, {}, "", fmt::format("{} (byte {})", what, in.CurrentPosition()),
                           help);
        diagnostics_.raise_if_any();
    };
    const auto next = [&](google::protobuf::MessageLite& message) {
        std::uint32_t length = 0;
        if (!in.ReadVarint32(&length)) return false;
        if (length > bytes.size() - static_cast<std::size_t>(in.CurrentPosition())) return false;
        const auto limit = in.PushLimit(static_cast<int>(length));
        const bool whole = message.MergeFromCodedStream(&in) && in.BytesUntilLimit() == 0;
        in.PopLimit(limit);
        return whole;
    };
    chakra::GlobalMetadata head;
    if (!next(head) || head.version().empty()) {
        wrong("no trace of Chakra: it does not begin with its version",
              "a trace that is packed with gzip must be unpacked; JSON is not read");
    }
    if (head.version() != "0.0.4") {
        wrong(fmt::format("expected schema 0.0.4, found '{}'", visible(head.version())),
              "Chakra's converters bring older traces up to it");
    }
    RankTrace& trace = traces_.emplace_back();
    trace.file = file;
    while (static_cast<std::size_t>(in.CurrentPosition()) < bytes.size()) {
        if (!next(trace.nodes.emplace_back()))
            wrong("the trace is cut off, or no node stands here");
        if (trace.nodes.size() > nodes_max) wrong("more than a million nodes");
    }
    if (trace.nodes.empty()) wrong("the trace has no nodes");
    link(trace);
}

void Chakra::link(RankTrace& trace) {
    std::map<std::uint64_t, std::size_t> places;
    for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
        if (!places.emplace(trace.nodes[i].id(), i).second) {
            error(trace, trace.nodes[i], "another node has this id");
        }
    }
    for (const chakra::Node& node : trace.nodes) {
        std::vector<std::size_t>& before = trace.before.emplace_back();
        for (const auto* ids : {&node.ctrl_deps(), &node.data_deps()}) {
            for (const std::uint64_t id : *ids) {
                const auto found = places.find(id);
                if (found == places.end()) {
                    error(trace, node,
                          fmt::format("it depends on node {}, which is not there", id));
                }
                before.push_back(found->second);
            }
        }
    }
}

void Chakra::read_groups(const std::string& file) {
    groups_file_ = file;
    groups_ = parse_json(read_file(file), file, diagnostics_);
    diagnostics_.raise_if_any();
}

void Chakra::load(const std::string& file) {
    ScenarioChanges changes;
    changes.must_run = false;
    changes.build_networks = true;
    scenario_ = load_scenario_file(file, changes);
    if (scenario_->fleet) {
        throw ScenarioError(fmt::format("{}: many jobs: which one is traced is not known", file),
                            "a scenario with one [job]");
    }
    StandaloneCatalogue own = scenario_->open_catalogue();
    scenario_->collective_constants = read_collective_constants(own.catalogue, scenario_->node);
    communicators_.emplace(communicators(*scenario_, scenario_->fidelity, scenario_->faults));
}

// Ranks that are a stride apart, as a plan's are.
ChakraGroup Chakra::group_of(const RankTrace& trace, const chakra::Node& node) {
    const std::int64_t all = scenario_->job.gpus();
    const chakra::AttributeProto* name = attribute(node, "pg_name");
    if (name == nullptr || name->string_val().empty()) return {1, all};
    const std::string& group = name->string_val();
    const Value* ranks = groups_.root.find(group);
    if (ranks == nullptr || ranks->kind != Value::Kind::array || ranks->items.empty()) {
        error(
            trace, node, fmt::format("nothing says which ranks the group '{}' has", visible(group)),
            "give the JSON of ASTRA-sim's --comm-group-configuration, {\"0\": [0, 1]}, as a file");
    }
    std::vector<std::int64_t> members;
    for (const Value& rank : ranks->items) {
        if (rank.kind != Value::Kind::integer || rank.integer < 0 || rank.integer >= all) {
            diagnostics_.error(groups_file_, rank.at, group,
                               fmt::format("expected a rank below {}, which the scenario's job "
                                           "has, found {}",
                                           all, rank.describe()));
            diagnostics_.raise_if_any();
        }
        members.push_back(rank.integer);
    }
    ChakraGroup out{1, std::ssize(members)};
    if (out.ranks > 1) out.stride = members[1] - members[0];
    bool regular = out.stride > 0 && all % (out.stride * out.ranks) == 0 &&
                   members[0] % (out.stride * out.ranks) < out.stride;
    for (std::size_t i = 1; i < members.size(); ++i) {
        regular = regular && members[i] - members[i - 1] == out.stride;
    }
    if (!regular) {
        diagnostics_.error(
            groups_file_, ranks->at, group,
            fmt::format("not ranks in equal steps, of which the job's {} can be made", all));
        diagnostics_.raise_if_any();
    }
    return out;
}

std::int64_t Chakra::whole(const RankTrace& trace, const chakra::Node& node, double seconds) {
    constexpr double seconds_max = 3600;
    if (!(seconds >= 0 && seconds <= seconds_max)) {
        error(trace, node, fmt::format("it takes {:.3g} s, more than an hour", seconds));
    }
    return static_cast<std::int64_t>(std::llround(seconds * 1e9));
}

Chakra::Work Chakra::compute(const RankTrace& trace, const chakra::Node& node) {
    const std::optional<double> host = number_of(node, "is_cpu_op");
    if (!host) ++unsaid_hosts_;
    if (host.value_or(0) != 0) {
        return {"host", whole(trace, node, static_cast<double>(node.duration_micros()) * 1e-6)};
    }
    if (node.duration_micros() > 0) {
        return {"kernels", whole(trace, node, static_cast<double>(node.duration_micros()) * 1e-6)};
    }
    const double flops = number_of(node, "num_ops").value_or(0);
    const double bytes = number_of(node, "tensor_size").value_or(0);
    if (!(flops >= 0 && bytes >= 0 && flops + bytes > 0)) {
        error(trace, node,
              "neither duration_micros nor num_ops nor tensor_size says how long it is");
    }
    ++modelled_;
    const Gpu& gpu = scenario_->node.gpu;
    return {"kernels", whole(trace, node,
                             std::max(flops / gpu.sustained_flops(), memory_seconds(gpu, bytes)))};
}

// comm_size is what each rank puts in: of a gather the output is as many times larger.
double Chakra::collective_seconds(const RankTrace& trace, const chakra::Node& node) {
    constexpr std::optional<Collective> kinds[] = {Collective::all_reduce,
                                                   Collective::reduce,
                                                   Collective::all_gather,
                                                   std::nullopt,
                                                   std::nullopt,
                                                   Collective::broadcast,
                                                   Collective::all_to_all,
                                                   Collective::reduce_scatter,
                                                   Collective::reduce_scatter,
                                                   Collective::all_reduce};
    constexpr double barrier = 9;
    const double kind = number_of(node, "comm_type").value_or(-1);
    if (!(kind >= 0 && kind <= barrier) || !kinds[static_cast<std::size_t>(kind)]) {
        error(trace, node, fmt::format("no collective that is known has comm_type {}", kind),
              "known are ALL_REDUCE, REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER and "
              "BARRIER");
    }
    std::optional<double> bytes = number_of(node, "comm_size");
    if (kind == barrier) bytes = 1;
    if (!bytes || !(*bytes >= 0))
        error(trace, node, "comm_size does not say how many bytes it has");
    const Collective collective = *kinds[static_cast<std::size_t>(kind)];
    const ChakraGroup group = group_of(trace, node);
    if (collective == Collective::all_gather) *bytes *= static_cast<double>(group.ranks);
    return seconds(collective, communicators_->of(collective, group.stride, group.ranks), *bytes);
}

Chakra::Work Chakra::communicate(const RankTrace& trace, const chakra::Node& node) {
    if (number_of(node, "is_cpu_op").value_or(0) != 0) {
        error(trace, node, "it communicates and is said to run on the host");
    }
    if (node.type() == chakra::COMM_COLL_NODE) {
        const chakra::AttributeProto* group = attribute(node, "pg_name");
        return {"group " + (group != nullptr ? group->string_val() : std::string()),
                whole(trace, node, collective_seconds(trace, node))};
    }
    const std::optional<double> bytes = number_of(node, "comm_size");
    const std::int64_t all = scenario_->job.gpus();
    const auto rank = [&](const char* name) {
        const double number = number_of(node, name).value_or(-1);
        return number >= 0 && number < static_cast<double>(all) ? static_cast<std::int64_t>(number)
                                                                : -1;
    };
    const std::int64_t from = rank("comm_src");
    const std::int64_t to = rank("comm_dst");
    if (from < 0 || to < 0 || from == to || !bytes || !(*bytes >= 0)) {
        error(trace, node,
              fmt::format("expected comm_src, comm_dst (two ranks below {}) and comm_size", all));
    }
    const std::int64_t stride = std::abs(to - from);
    if (all % (2 * stride) != 0) {
        error(trace, node, fmt::format("{} ranks are no pairs that are {} apart", all, stride));
    }
    return {node.type() == chakra::COMM_SEND_NODE ? "sends" : "receives",
            whole(trace, node,
                  seconds(Collective::send_recv,
                          communicators_->of(Collective::send_recv, stride, 2), *bytes))};
}

Chakra::Work Chakra::work_of(const RankTrace& trace, const chakra::Node& node) {
    switch (node.type()) {
        case chakra::METADATA_NODE:
            return {};
        case chakra::COMP_NODE:
        case chakra::MEM_LOAD_NODE:
        case chakra::MEM_STORE_NODE:
            return compute(trace, node);
        case chakra::COMM_SEND_NODE:
        case chakra::COMM_RECV_NODE:
        case chakra::COMM_COLL_NODE:
            return communicate(trace, node);
        default:
            error(trace, node,
                  fmt::format("no node has the type {}", static_cast<int>(node.type())));
            return {};
    }
}

Chakra::Replay Chakra::replay(const RankTrace& trace) {
    const std::size_t count = trace.nodes.size();
    std::vector<std::vector<std::size_t>> after(count);
    std::vector<std::size_t> missing(count);
    for (std::size_t i = 0; i < count; ++i) {
        missing[i] = trace.before[i].size();
        for (const std::size_t before : trace.before[i]) after[before].push_back(i);
    }
    using Ready = std::pair<std::int64_t, std::size_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue;
    for (std::size_t i = 0; i < count; ++i) {
        if (missing[i] == 0) queue.emplace(0, i);
    }
    std::vector<std::int64_t> ready(count);
    std::map<std::string, std::int64_t> free;
    Replay out;
    std::size_t done = 0;
    for (; !queue.empty(); ++done) {
        const auto [at, i] = queue.top();
        queue.pop();
        const Work work = work_of(trace, trace.nodes[i]);
        std::int64_t end = at;
        if (work.length > 0) {
            end = std::max(at, free[work.lane]) + work.length;
            free[work.lane] = end;
        }
        if (work.lane == "kernels") out.kernels += work.length;
        if (work.lane != "kernels" && work.lane != "host") out.collectives += work.length;
        out.length = std::max(out.length, end);
        for (const std::size_t next : after[i]) {
            ready[next] = std::max(ready[next], end);
            if (--missing[next] == 0) queue.emplace(ready[next], next);
        }
    }
    if (done < count) {
        const auto stuck = std::ranges::find_if(missing, [](std::size_t n) { return n > 0; });
        error(trace, trace.nodes[static_cast<std::size_t>(stuck - missing.begin())],
              "it depends on itself, by way of others or at once");
    }
    return out;
}

// What a rank sends and receives, by kind and group.
void Chakra::count(const RankTrace& trace) {
    std::map<std::string, std::pair<std::int64_t, double>> sums;
    for (const chakra::Node& node : trace.nodes) {
        std::string what = node.type() == chakra::COMM_SEND_NODE ? "sends" : "receives";
        if (node.type() == chakra::COMM_COLL_NODE) {
            const ChakraGroup group = group_of(trace, node);
            const auto type = static_cast<int>(number_of(node, "comm_type").value_or(0));
            what = fmt::format("{} of {} ranks, {} apart", chakra::CollectiveCommType_Name(type),
                               group.ranks, group.stride);
        } else if (node.type() != chakra::COMM_SEND_NODE && node.type() != chakra::COMM_RECV_NODE) {
            continue;
        }
        auto& [times, bytes] = sums[what];
        ++times;
        bytes += number_of(node, "comm_size").value_or(0);
    }
    for (const auto& [what, sum] : sums) {
        part_.note(fmt::format("{} {}: {:.0f} bytes", sum.first, what, sum.second));
    }
}

void Chakra::run() {
    std::string scenario;
    for (const std::string& file : options_.files) {
        if (file.ends_with(".toml")) {
            scenario = file;
        } else if (file.ends_with(".json")) {
            read_groups(file);
        } else {
            read_trace(file);
        }
    }
    if (traces_.empty() || scenario.empty()) {
        throw ScenarioError("expected traces and the scenario whose network they are replayed on",
                            "railyard import chakra step.0.et step.1.et groups.json mine.toml");
    }
    load(scenario);
    Replay longest;
    const RankTrace* of = nullptr;
    try {
        for (const RankTrace& trace : traces_) {
            const Replay each = replay(trace);
            if (each.length > longest.length || of == nullptr) {
                longest = each;
                of = &trace;
            }
        }
    } catch (const NoPath& no_path) {
        throw ScenarioError(fmt::format("{}: {}", scenario, no_path.what()));
    }
    if (longest.length == 0)
        throw ScenarioError(fmt::format("{}: the step takes no time", of->file));
    const double length = static_cast<double>(longest.length);
    part_.note(
        fmt::format("Replayed on {} GPUs, {}.", scenario_->job.gpus(), network_text(*scenario_)));
    part_.note(
        fmt::format("Kernels compute {:.1f} % of the step; communication takes {:.4g} ms, "
                    "hidden or not.",
                    100 * static_cast<double>(longest.kernels) / length,
                    static_cast<double>(longest.collectives) * 1e-6));
    count(*of);
    if (traces_.size() > 1) part_.note(fmt::format("The longest of {} ranks.", traces_.size()));
    if (modelled_ > 0) {
        part_.note(
            fmt::format("{} nodes without a duration take what the GPU sustains of their "
                        "num_ops and tensor_size.",
                        modelled_));
    }
    if (unsaid_hosts_ > 0) {
        part_.note(fmt::format("{} nodes without is_cpu_op are taken for kernels.", unsaid_hosts_));
    }
    part_.left_out("the model and its plan; how long ranks wait for each other");
    part_.section("job");
    part_.value("step.time", toml_text(fmt::format("{:.6g} ms", length * 1e-6)),
                fmt::format("{}, replayed on {}", of->file, scenario));
}

}  // namespace

void import_chakra(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics) {
    Chakra(options, part, diagnostics).run();
}

}  // namespace railyard
