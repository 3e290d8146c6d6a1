#include "models/training/trace_reader.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "models/training/chakra.pb.h"
#include "sim/text.h"

namespace railyard {

namespace {

constexpr std::size_t nodes_max = 4'000'000;  // of all ranks together
constexpr Duration node_time_max = std::chrono::hours(1);

struct TraceProblem {
    std::string file;
    std::string message;
    std::string help;
};

struct RankTrace {
    std::string file;
    std::int64_t rank = 0;
    std::vector<chakra::Node> nodes;  // ascending by id
    std::vector<std::uint32_t> tasks;
};

using Groups = std::map<std::string, std::vector<std::int64_t>>;

[[noreturn]] void refuse(const std::string& file, std::string message, std::string help = {}) {
    throw TraceProblem{file, std::move(message), std::move(help)};
}

[[noreturn]] void refuse(const RankTrace& trace, const chakra::Node& node, const std::string& what,
                         std::string help = {}) {
    refuse(trace.file, fmt::format("node {} '{}': {}", node.id(), visible(node.name()), what),
           std::move(help));
}

std::string bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!in.is_open() || in.bad()) refuse(file, "cannot be read");
    return bytes;
}

// ---- nodes and what they say ---------------------------------------------------------------------------

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
            return real(found->int64_val());
        case A::kUint32Val:
            return found->uint32_val();
        case A::kUint64Val:
            return real(found->uint64_val());
        case A::kSint32Val:
            return found->sint32_val();
        case A::kSint64Val:
            return real(found->sint64_val());
        case A::kFixed32Val:
            return found->fixed32_val();
        case A::kFixed64Val:
            return real(found->fixed64_val());
        case A::kSfixed32Val:
            return found->sfixed32_val();
        case A::kSfixed64Val:
            return real(found->sfixed64_val());
        case A::kBoolVal:
            return found->bool_val() ? 1 : 0;
        default:
            return std::nullopt;
    }
}

// A size or a count of operations, 0 when it is absent.
double amount_of(const RankTrace& trace, const chakra::Node& node, const char* name) {
    const double amount = number_of(node, name).value_or(0);
    if (!(amount >= 0 && amount < 1e30)) {
        refuse(trace, node, fmt::format("expected {} of 0 or more, found {}", name, amount));
    }
    return amount;
}

// What this reads must be what it can read: nothing else stands for what is not there.
void check_attributes(const RankTrace& trace, const chakra::Node& node) {
    for (const char* name : {"is_cpu_op", "num_ops", "tensor_size", "comm_type", "comm_size",
                             "comm_src", "comm_dst", "comm_tag"}) {
        if (attribute(node, name) == nullptr || number_of(node, name)) continue;
        refuse(trace, node, fmt::format("expected a number for {}", name));
    }
    const chakra::AttributeProto* group = attribute(node, "pg_name");
    if (group != nullptr && group->value_case() != chakra::AttributeProto::kStringVal) {
        refuse(trace, node, "expected a text for pg_name");
    }
}

bool on_host(const chakra::Node& node) {
    return number_of(node, "is_cpu_op").value_or(0) != 0;
}

std::string group_name(const chakra::Node& node) {
    const chakra::AttributeProto* name = attribute(node, "pg_name");
    return name == nullptr ? std::string() : name->string_val();
}

// ---- a rank's file -------------------------------------------------------------------------------------

// Messages, each behind its length. A node's id of 0 is not written at all.
RankTrace read_rank(const std::string& file, std::int64_t rank, std::size_t nodes_left) {
    const std::string bytes = bytes_of(file);
    if (bytes.size() > std::numeric_limits<int>::max()) refuse(file, "is larger than 2 GiB");
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                              static_cast<int>(bytes.size()));
    const auto wrong = [&](const std::string& what, const char* help = "") {
        refuse(file, fmt::format("{} (byte {})", what, in.CurrentPosition()), help);
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
    RankTrace trace{file, rank, {}, {}};
    while (static_cast<std::size_t>(in.CurrentPosition()) < bytes.size()) {
        if (trace.nodes.size() == nodes_left) {
            wrong(fmt::format("more than {} nodes in all ranks together", nodes_max));
        }
        if (!next(trace.nodes.emplace_back())) {
            wrong("the trace is cut off, or no node stands here");
        }
    }
    if (trace.nodes.empty()) wrong("the trace has no nodes");
    std::ranges::stable_sort(trace.nodes, {}, &chakra::Node::id);
    const auto twice = std::ranges::adjacent_find(trace.nodes, {}, &chakra::Node::id);
    if (twice != trace.nodes.end()) refuse(trace, *twice, "another node has this id");
    return trace;
}

// The number before the last ".et"; nothing where there is none.
std::optional<std::int64_t> rank_in(const std::filesystem::path& file) {
    const std::string stem = file.stem().string();
    const std::size_t dot = stem.rfind('.');
    if (file.extension() != ".et" || dot == std::string::npos) return std::nullopt;
    constexpr std::int64_t rank_max = 999'999'999;
    const auto rank = whole_value(std::string_view(stem).substr(dot + 1));
    return rank && *rank >= 0 && *rank <= rank_max ? rank : std::nullopt;
}

struct TraceFiles {
    std::map<std::int64_t, std::string> ranks;
    std::string groups;  // empty: none
    bool alike = false;  // one file for all ranks
};

void add_file(const std::filesystem::path& file, TraceFiles& out) {
    if (file.filename() == "groups.json") {
        out.groups = file.string();
    } else if (file.extension() == ".et") {
        const std::optional<std::int64_t> rank = rank_in(file);
        if (!rank)
            refuse(file.string(), "its name does not say of which rank it is",
                   "NAME.0.et, NAME.1.et and so on");
        const auto [other, is_new] = out.ranks.emplace(*rank, file.string());
        if (!is_new) {
            refuse(file.string(), fmt::format("{} is of rank {} too", other->second, *rank));
        }
    }
}

TraceFiles files_in(const std::string& path, std::int64_t gpus) {
    namespace fs = std::filesystem;
    TraceFiles out;
    std::error_code wrong;
    if (!fs::is_directory(path, wrong)) {
        out.alike = true;
        out.ranks.emplace(rank_in(path).value_or(0), path);
        if (out.ranks.begin()->first >= gpus) {
            refuse(path, fmt::format("it is of rank {}: the job has {} GPUs",
                                     out.ranks.begin()->first, gpus));
        }
        const fs::path groups = fs::path(path).parent_path() / "groups.json";
        if (fs::exists(groups, wrong)) out.groups = groups.string();
        return out;
    }
    std::vector<fs::path> files;
    for (const fs::directory_entry& each : fs::directory_iterator(path, wrong)) {
        files.push_back(each.path());
    }
    if (wrong) refuse(path, "cannot be read");
    std::ranges::sort(files);
    for (const fs::path& file : files) add_file(file, out);
    if (out.ranks.empty()) refuse(path, "has no traces", "NAME.0.et, NAME.1.et and so on");
    const std::int64_t last = out.ranks.rbegin()->first;
    for (std::int64_t rank = 0; rank <= last; ++rank) {
        if (out.ranks.contains(rank)) continue;
        refuse(path, fmt::format("rank {} is missing: the last one is {}", rank, last));
    }
    if (last + 1 != gpus) {
        refuse(path, fmt::format("traces of {} ranks; the job has {} GPUs", last + 1, gpus),
               "as many nodes as the traces have ranks, or one file that all ranks follow");
    }
    return out;
}

Groups read_groups(const std::string& file) {
    Groups out;
    if (file.empty()) return out;
    std::set<std::string> names;
    const auto once = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
        if (event != nlohmann::json::parse_event_t::key || depth != 1) return true;
        const auto name = parsed.get<std::string>();
        if (!names.insert(name).second) {
            refuse(file, fmt::format("the group '{}' is there twice", visible(name)));
        }
        return true;
    };
    const auto json = nlohmann::json::parse(bytes_of(file), once, false);
    if (!json.is_object()) {
        refuse(file, "expected groups and their ranks in JSON", "{\"tp\": [0, 1]}");
    }
    for (const auto& [name, ranks] : json.items()) {
        std::vector<std::int64_t>& group = out[name];
        const bool list = ranks.is_array() && !ranks.empty();
        if (!list ||
            !std::ranges::all_of(ranks, [](const auto& r) { return r.is_number_integer(); })) {
            refuse(file, fmt::format("expected the ranks of the group '{}'", visible(name)),
                   "{\"tp\": [0, 1]}");
        }
        for (const auto& rank : ranks) group.push_back(rank.template get<std::int64_t>());
    }
    return out;
}

// ---- from nodes to tasks -------------------------------------------------------------------------------

class TraceBuilder {
  public:
    TraceBuilder(std::vector<RankTrace> traces, Groups groups, const TraceFiles& files,
                 const Node& node, std::int64_t gpus)
        : traces_(std::move(traces)),
          groups_(std::move(groups)),
          files_(files),
          node_(node),
          gpus_(gpus) {}

    StepTrace build();

  private:
    enum RankLane : std::uint32_t { host, kernels, sends, receives, rank_lanes };
    struct NodeAt {
        std::uint32_t place = 0;  // of the rank
        std::size_t node = 0;
    };
    // Nodes of several ranks that are one message, in the order of their ids.
    using Queue = std::vector<NodeAt>;
    struct Channel {
        Queue sends;
        Queue receives;
    };

    const RankTrace& trace(const NodeAt& at) const { return traces_[at.place]; }
    const chakra::Node& node(const NodeAt& at) const { return trace(at).nodes[at.node]; }
    std::uint32_t lane(std::uint32_t place, RankLane which) const {
        return place * rank_lanes + which;
    }
    void sort_node(const NodeAt& at);
    void add(TraceTask task, const NodeAt& of);
    void compute(const NodeAt& at);
    void collectives(const std::string& name, const std::map<std::uint32_t, Queue>& queues);
    TraceMessage collective(const NodeAt& at);
    TraceMessage shape_of(const NodeAt& at, const std::string& name) const;
    std::pair<std::int64_t, std::int64_t> ends_of(const NodeAt& at) const;
    TraceMessage transfer(const NodeAt& at) const;
    void transfers(const Channel& channel);
    void depend();

    std::vector<RankTrace> traces_;
    Groups groups_;
    const TraceFiles& files_;
    const Node& node_;
    std::int64_t gpus_;
    std::map<std::string, std::map<std::uint32_t, Queue>> collectives_;  // by group and rank
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Channel> channels_;
    StepTrace out_;
};

void TraceBuilder::add(TraceTask task, const NodeAt& of) {
    traces_[of.place].tasks[of.node] = static_cast<std::uint32_t>(out_.tasks.size());
    task.ranks.push_back(of.place);
    out_.tasks.push_back(std::move(task));
}

void TraceBuilder::compute(const NodeAt& at) {
    const chakra::Node& n = node(at);
    TraceTask task;
    task.kind = on_host(n) ? TraceTask::Kind::host : TraceTask::Kind::kernel;
    task.lanes = {lane(at.place, on_host(n) ? host : kernels)};
    constexpr auto longest = std::chrono::duration_cast<std::chrono::microseconds>(node_time_max);
    if (n.duration_micros() > static_cast<std::uint64_t>(longest.count())) {
        refuse(trace(at), n, fmt::format("it takes {} us, more than an hour", n.duration_micros()));
    }
    task.length = std::chrono::microseconds(n.duration_micros());
    if (task.kind == TraceTask::Kind::kernel) {
        task.flops = amount_of(trace(at), n, "num_ops");
        task.bytes = amount_of(trace(at), n, "tensor_size");
        if (task.length == Duration{}) {
            if (task.flops + task.bytes == 0) {
                refuse(trace(at), n,
                       "neither duration_micros nor num_ops nor tensor_size says how long it is");
            }
            ++out_.modelled;
        }
    }
    add(std::move(task), at);
}

// Ranks that are a stride apart, as a plan's are.
TraceMessage TraceBuilder::shape_of(const NodeAt& at, const std::string& name) const {
    const chakra::Node& n = node(at);
    if (name.empty()) {
        const chakra::AttributeProto* dims = attribute(n, "involved_dim");
        if (dims != nullptr &&
            !std::ranges::all_of(dims->bool_list_val().values(), std::identity{})) {
            refuse(trace(at), n,
                   "involved_dim leaves out dimensions of a network, and no pg_name says which "
                   "ranks talk",
                   "a group for each dimension: pg_name, and its ranks in groups.json");
        }
        return {.stride = 1, .ranks = gpus_};
    }
    const auto found = groups_.find(name);
    if (found == groups_.end()) {
        refuse(trace(at), n,
               fmt::format("nothing says which ranks the group '{}' has", visible(name)),
               "groups.json beside the traces, as ASTRA-sim's --comm-group-configuration: "
               "{\"tp\": [0, 1]}");
    }
    const std::vector<std::int64_t>& members = found->second;
    for (const std::int64_t rank : members) {
        if (rank >= 0 && rank < gpus_) continue;
        refuse(trace(at), n,
               fmt::format("{} gives its group '{}' the rank {}: the job has {} GPUs",
                           files_.groups, visible(name), rank, gpus_));
    }
    if (std::ranges::find(members, trace(at).rank) == members.end()) {
        refuse(trace(at), n,
               fmt::format("{} does not give its group '{}' the trace's own rank, {}",
                           files_.groups, visible(name), trace(at).rank));
    }
    TraceMessage out{.stride = 1, .ranks = std::ssize(members)};
    if (out.ranks > 1) out.stride = members[1] - members[0];
    bool regular = out.stride > 0 && gpus_ % (out.stride * out.ranks) == 0 &&
                   members[0] % (out.stride * out.ranks) < out.stride;
    for (std::size_t i = 1; i < members.size(); ++i) {
        regular = regular && members[i] - members[i - 1] == out.stride;
    }
    if (!regular) {
        refuse(trace(at), n,
               fmt::format("{} gives its group '{}' no ranks in equal steps, of which the job's {} "
                           "can be made",
                           files_.groups, visible(name), gpus_));
    }
    return out;
}

TraceMessage TraceBuilder::collective(const NodeAt& at) {
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
    const chakra::Node& n = node(at);
    const double kind = number_of(n, "comm_type").value_or(-1);
    if (!(kind >= 0 && kind <= barrier) || kind != std::floor(kind) ||
        !kinds[static_cast<std::size_t>(kind)]) {
        refuse(
            trace(at), n, fmt::format("no collective that is known has comm_type {}", kind),
            "known are ALL_REDUCE, REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER and "
            "BARRIER");
    }
    if (kind != barrier && !number_of(n, "comm_size")) {
        refuse(trace(at), n, "comm_size does not say how many bytes it has");
    }
    TraceMessage out = shape_of(at, group_name(n));
    out.collective = *kinds[static_cast<std::size_t>(kind)];
    out.bytes = kind == barrier ? 1 : amount_of(trace(at), n, "comm_size");
    if (out.collective == Collective::all_gather) out.bytes *= real(out.ranks);
    return out;
}

void TraceBuilder::collectives(const std::string& name,
                               const std::map<std::uint32_t, Queue>& queues) {
    const NodeAt first = queues.begin()->second.front();
    const std::uint32_t group_lane = out_.lanes++;
    const Queue& order = queues.begin()->second;
    if (!files_.alike) {
        std::vector<std::int64_t> members(static_cast<std::size_t>(gpus_));
        std::iota(members.begin(), members.end(), 0);
        if (!name.empty()) members = groups_.at(name);
        for (const std::int64_t rank : members) {
            const auto queue = queues.find(static_cast<std::uint32_t>(rank));
            const std::size_t count = queue == queues.end() ? 0 : queue->second.size();
            if (count == order.size()) continue;
            const bool fewer = count < order.size();
            const NodeAt lone = fewer ? order[count] : queue->second[order.size()];
            refuse(trace(lone), node(lone),
                   fmt::format("collective {} of its group: rank {} has {}",
                               std::min(count, order.size()) + 1, fewer ? rank : trace(first).rank,
                               std::min(count, order.size())));
        }
    }
    for (std::size_t k = 0; k < order.size(); ++k) {
        TraceTask task;
        task.kind = TraceTask::Kind::message;
        task.message = collective(order[k]);
        task.lanes = {group_lane};
        for (const auto& [place, queue] : queues) {
            const TraceMessage here = collective(queue[k]);
            if (here != task.message) {
                refuse(trace(queue[k]), node(queue[k]),
                       fmt::format("its kind or its size differs from that of rank {}, node {}",
                                   trace(order[k]).rank, node(order[k]).id()));
            }
            task.ranks.push_back(place);
            traces_[place].tasks[queue[k].node] = static_cast<std::uint32_t>(out_.tasks.size());
        }
        out_.tasks.push_back(std::move(task));
    }
}

std::pair<std::int64_t, std::int64_t> TraceBuilder::ends_of(const NodeAt& at) const {
    const chakra::Node& n = node(at);
    const bool send = n.type() == chakra::COMM_SEND_NODE;
    const std::int64_t own = trace(at).rank;
    const auto rank = [&](const char* name, bool is_own) -> std::int64_t {
        const std::optional<double> given = number_of(n, name);
        if (!given && is_own) return own;
        const double number = given.value_or(-1);
        const bool whole = number >= 0 && number < real(gpus_) && number == std::floor(number);
        return whole ? static_cast<std::int64_t>(number) : -1;
    };
    const std::int64_t from = rank("comm_src", send);
    const std::int64_t to = rank("comm_dst", !send);
    if (from < 0 || to < 0 || from == to || !number_of(n, "comm_size")) {
        refuse(
            trace(at), n,
            fmt::format("expected comm_src, comm_dst (two ranks below {}) and comm_size", gpus_));
    }
    if ((send ? from : to) != own) {
        refuse(trace(at), n,
               fmt::format("it is on rank {} and says that it {} rank {}", own,
                           send ? "sends from" : "is received by", send ? from : to));
    }
    return {from, to};
}

// All pairs of ranks that are so far apart talk at once, in groups that span what the two span: a node, or
// the job.
TraceMessage TraceBuilder::transfer(const NodeAt& at) const {
    const auto [from, to] = ends_of(at);
    const bool on_node = from / node_.gpus == to / node_.gpus;
    const std::int64_t reach = on_node ? node_.gpus : gpus_;
    TraceMessage out{.collective = Collective::send_recv};
    out.stride = std::gcd(std::abs(to - from), reach);
    out.ranks = reach / out.stride;
    out.bytes = amount_of(trace(at), node(at), "comm_size");
    return out;
}

void TraceBuilder::transfers(const Channel& channel) {
    const std::size_t both = std::min(channel.sends.size(), channel.receives.size());
    if (!files_.alike && channel.sends.size() != channel.receives.size()) {
        const bool send = channel.sends.size() > both;
        const NodeAt& lone = send ? channel.sends[both] : channel.receives[both];
        const auto [from, to] = ends_of(lone);
        refuse(trace(lone), node(lone),
               send ? fmt::format("rank {} does not receive it", to)
                    : fmt::format("rank {} does not send it", from));
    }
    for (std::size_t k = 0; k < std::max(channel.sends.size(), channel.receives.size()); ++k) {
        TraceTask task;
        task.kind = TraceTask::Kind::message;
        std::optional<TraceMessage> known;
        for (const auto& [queue, which] :
             {std::pair(&channel.sends, sends), std::pair(&channel.receives, receives)}) {
            if (k >= queue->size()) continue;
            const NodeAt& at = (*queue)[k];
            task.message = transfer(at);
            if (known && *known != task.message) {
                refuse(trace(at), node(at), "it expects another size than is sent");
            }
            known = task.message;
            task.lanes.push_back(lane(at.place, which));
            task.ranks.push_back(at.place);
            traces_[at.place].tasks[at.node] = static_cast<std::uint32_t>(out_.tasks.size());
        }
        out_.tasks.push_back(std::move(task));
    }
}

void TraceBuilder::sort_node(const NodeAt& at) {
    const chakra::Node& n = node(at);
    check_attributes(trace(at), n);
    switch (n.type()) {
        case chakra::METADATA_NODE:
            add({}, at);
            return;
        case chakra::COMP_NODE:
        case chakra::MEM_LOAD_NODE:
        case chakra::MEM_STORE_NODE:
            compute(at);
            return;
        case chakra::COMM_SEND_NODE:
        case chakra::COMM_RECV_NODE:
        case chakra::COMM_COLL_NODE:
            break;
        default:
            refuse(trace(at), n,
                   fmt::format("no node has the type {}", static_cast<int>(n.type())));
    }
    if (on_host(n)) refuse(trace(at), n, "it communicates and is said to run on the host");
    if (n.type() == chakra::COMM_COLL_NODE) {
        collective(at);  // whatever is wrong with it is said of it
        collectives_[group_name(n)][at.place].push_back(at);
        return;
    }
    const auto [from, to] = ends_of(at);
    const auto tag = static_cast<std::int64_t>(amount_of(trace(at), n, "comm_tag"));
    Channel& channel = channels_[{from, to, tag}];
    (n.type() == chakra::COMM_SEND_NODE ? channel.sends : channel.receives).push_back(at);
}

void TraceBuilder::depend() {
    for (const RankTrace& trace : traces_) {
        for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
            const chakra::Node& n = trace.nodes[i];
            for (const auto* ids : {&n.ctrl_deps(), &n.data_deps()}) {
                for (const std::uint64_t id : *ids) {
                    const auto before =
                        std::ranges::lower_bound(trace.nodes, id, {}, &chakra::Node::id);
                    if (before == trace.nodes.end() || before->id() != id) {
                        refuse(trace, n,
                               fmt::format("it depends on node {}, which is not there", id));
                    }
                    const auto place = static_cast<std::size_t>(before - trace.nodes.begin());
                    out_.tasks[trace.tasks[place]].after.push_back(trace.tasks[i]);
                }
            }
        }
    }
    const std::size_t stuck = out_.in_a_circle();
    if (stuck == out_.tasks.size()) return;
    for (const RankTrace& trace : traces_) {
        const auto found = std::ranges::find(trace.tasks, static_cast<std::uint32_t>(stuck));
        if (found == trace.tasks.end()) continue;
        refuse(trace, trace.nodes[found - trace.tasks.begin()],
               "it depends on itself, by way of others or at once");
    }
}

StepTrace TraceBuilder::build() {
    out_.ranks = static_cast<std::uint32_t>(traces_.size());
    out_.lanes = out_.ranks * rank_lanes;
    for (std::uint32_t place = 0; place < out_.ranks; ++place) {
        RankTrace& trace = traces_[place];
        trace.tasks.resize(trace.nodes.size());
        for (std::size_t i = 0; i < trace.nodes.size(); ++i) sort_node({place, i});
    }
    for (const auto& [name, queues] : collectives_) collectives(name, queues);
    for (const auto& [ends, channel] : channels_) transfers(channel);
    depend();
    return std::move(out_);
}

StepTrace read_traces(const std::string& path, const Node& node, std::int64_t gpus) {
    const TraceFiles files = files_in(path, gpus);
    Groups groups = read_groups(files.groups);
    std::vector<RankTrace> traces;
    std::size_t left = nodes_max;
    for (const auto& [rank, file] : files.ranks) {
        left -= traces.emplace_back(read_rank(file, rank, left)).nodes.size();
    }
    return TraceBuilder(std::move(traces), std::move(groups), files, node, gpus).build();
}

}  // namespace

std::shared_ptr<const StepTrace> read_step_trace(Section& job, ValueReader& values,
                                                 const Node& node, std::int64_t gpus,
                                                 const Gpu& measured_on) {
    const std::string path =
        job.file("trace",
                 "The step as Chakra's execution traces: a folder with NAME.0.et, NAME.1.et, ... "
                 "of all ranks and groups.json, or one file that all ranks follow");
    if (path.empty() || !job.ok()) return nullptr;
    try {
        auto trace = std::make_shared<StepTrace>(read_traces(path, node, gpus));
        trace->measured_on = measured_on;
        const bool works = std::ranges::any_of(trace->tasks, [](const TraceTask& task) {
            return task.kind != TraceTask::Kind::nothing;
        });
        if (!works) job.error("trace", fmt::format("{}: nothing in it takes time", path));
        return trace;
    } catch (const TraceProblem& problem) {
        values.diagnostics().error(problem.file, {}, job.path("trace"), problem.message,
                                   problem.help);
        return nullptr;
    }
}

void warn_of_idle_beside(const StepTrace& trace, const std::vector<PartFault>& faults,
                         Section& job) {
    if (trace.modelled == 0) {
        warn_of_keys(job, {"software"},
                     "has no effect beside job.trace: its kernels have their times");
    }
    const bool memory_known =
        std::ranges::any_of(trace.tasks, [](const TraceTask& task) { return task.bytes > 0; });
    for (const PartFault& fault : faults) {
        if (fault.part != Part::hbm || memory_known) continue;
        job.warning("trace", fmt::format("the fault of {} slows nothing: no kernel says by "
                                         "tensor_size how many bytes it moves",
                                         describe(fault)));
    }
}

}  // namespace railyard
