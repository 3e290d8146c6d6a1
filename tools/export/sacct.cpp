// A replica in Slurm's words.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>

#include "sim/check.h"
#include "tools/export/export.h"
#include "tools/export/held_nodes.h"
#include "tools/trace/world_history.h"

namespace railyard {

namespace {

std::string time_text(Instant at) {
    namespace chrono = std::chrono;
    const auto since = chrono::floor<chrono::seconds>(at.time_since_epoch());
    const chrono::sys_seconds stamp = export_epoch + since;
    const auto day = chrono::floor<chrono::days>(stamp);
    const chrono::year_month_day date(day);
    const chrono::hh_mm_ss clock(stamp - day);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::int64_t whole_seconds(Duration time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// One run of a job, from a start to what ended it.
struct SacctRow {
    std::int64_t id = 0;
    std::string user;
    std::string partition;
    std::string qos;
    Instant submit;
    Instant start;
    Instant end;
    const char* state = "COMPLETED";
    Duration limit{};
    std::int64_t gpus = 0;
    std::vector<std::int64_t> nodes;
};

// A name as a column of the table can hold it.
std::string column_text(std::string name) {
    std::ranges::replace_if(
        name, [](unsigned char c) { return c == '|' || c < ' ' || c == 0x7f; }, '_');
    return name;
}

std::string node_text(std::int64_t node) {
    return fmt::format("node{:05}", node);
}

// Sorted nodes as Slurm folds their names: node[00000-00003,00007].
std::string folded_nodes(const std::vector<std::int64_t>& nodes) {
    if (nodes.empty()) return "None assigned";
    if (nodes.size() == 1) return node_text(nodes.front());
    std::string out;
    for (std::size_t begin = 0, end = 0; begin < nodes.size(); begin = end) {
        for (end = begin + 1; end < nodes.size() && nodes[end] == nodes[end - 1] + 1;) ++end;
        out += fmt::format("{}{:05}", out.empty() ? "" : ",", nodes[begin]);
        if (end > begin + 1) out += fmt::format("-{:05}", nodes[end - 1]);
    }
    return fmt::format("node[{}]", out);
}

std::string sacct_text(const std::vector<SacctRow>& rows) {
    std::string out =
        "JobIDRaw|JobID|User|Partition|QOS|Submit|Start|End|ElapsedRaw|State|TimelimitRaw|"
        "AllocTRES|ReqTRES|NNodes|NodeList\n";
    for (const SacctRow& row : rows) {
        const bool runs = std::string_view(row.state) == "RUNNING";
        const std::string tres = fmt::format("gres/gpu={},node={}", row.gpus, row.nodes.size());
        const std::string limit =
            row.limit > Duration{} ? fmt::format("{}", (whole_seconds(row.limit) + 59) / 60) : "";
        // Elapsed is the difference of what is printed, as Slurm's is.
        const std::int64_t elapsed =
            whole_seconds(row.end.time_since_epoch()) - whole_seconds(row.start.time_since_epoch());
        out += fmt::format("{0}|{0}|{1}|{2}|{3}|{4}|{5}|{6}|{7}|{8}|{9}|{10}|{10}|{11}|{12}\n",
                           row.id, column_text(row.user), column_text(row.partition),
                           column_text(row.qos), time_text(row.submit), time_text(row.start),
                           runs ? "Unknown" : time_text(row.end), elapsed, row.state, limit, tres,
                           row.nodes.size(), folded_nodes(row.nodes));
    }
    return out;
}

const char* state_of(const std::string& how) {
    constexpr std::pair<const char*, const char*> states[] = {
        {"completed", "COMPLETED"}, {"failed", "FAILED"},       {"node_fail", "NODE_FAIL"},
        {"timeout", "TIMEOUT"},     {"preempted", "PREEMPTED"}, {"cancelled", "CANCELLED"},
        {"runs on", "RUNNING"},     {"suspended", "SUSPENDED"}};
    for (const auto& [ours, slurms] : states) {
        if (how == ours) return slurms;
    }
    return "FAILED";
}

// Where each run of a job was, by the job's id and the run's start.
using RunNodes = std::map<std::pair<std::int64_t, Instant>, std::vector<std::int64_t>>;

RunNodes nodes_of_world(const ReplicaTrace& record) {
    RunNodes out;
    for (const JobHold& hold : record.holds) {
        std::set<std::int64_t> nodes;
        for (const NodeShare& share : hold.gpus) nodes.insert(share.node);
        out[{hold.job, hold.from}].assign(nodes.begin(), nodes.end());
    }
    return out;
}

std::vector<SacctRow> rows_of_world(const Scenario& s, const ReplicaResult& result,
                                    const ReplicaTrace& record) {
    const WorldHistory history(s, result);
    const RunNodes nodes = nodes_of_world(record);
    const std::vector<PartitionSpec>& partitions = s.world->spec.partitions;
    std::vector<SacctRow> out;
    for (const JobStint& stint : history.stints()) {
        SacctRow row;
        row.id = stint.job->id;
        row.user = fmt::format("kind{}", stint.job->kind);
        row.partition = partitions[stint.job->partition].name;
        row.submit = stint.from - stint.waited;
        row.start = stint.from;
        row.end = stint.until;
        row.state = state_of(stint.how);
        row.limit = stint.job->limit;
        row.gpus = stint.job->gpus;
        const auto held = nodes.find({row.id, row.start});
        RY_CHECK(held != nodes.end());
        row.nodes = held->second;
        out.push_back(row);
    }
    std::ranges::stable_sort(out, [](const SacctRow& a, const SacctRow& b) {
        return a.submit != b.submit ? a.submit < b.submit : a.id < b.id;
    });
    return out;
}

// One job: it runs from each restart until its failure is detected; a requeue sets its submission anew.
std::vector<SacctRow> rows_of_job(const Scenario& s, const ReplicaResult& result,
                                  const ReplicaTrace& record) {
    std::vector<SacctRow> out;
    SacctRow row;
    row.id = 1;
    row.partition = "all";
    HeldNodes nodes(s, record);
    bool runs = false;
    JobPhase before = JobPhase::done;
    for (const PhaseStart& phase : record.phases) {
        const bool ends = runs && (!holds_nodes(phase.phase) ||
                                   (before == JobPhase::detection && phase.phase != before));
        if (ends) {
            row.end = phase.at;
            const bool campaign_ends = s.duration > Duration{} && phase.at >= Instant(s.duration);
            // A stage on other nodes is the next job.
            row.state = before == JobPhase::detection                    ? "NODE_FAIL"
                        : phase.phase == JobPhase::done && campaign_ends ? "RUNNING"
                                                                         : "COMPLETED";
            out.push_back(row);
            row.submit = phase.at;
            runs = false;
        }
        if (!runs && holds_nodes(phase.phase)) {
            row.start = phase.at;
            row.nodes = nodes.at(phase.at);
            row.gpus = std::ssize(row.nodes) * s.job.gpus_per_node;
            runs = true;
        }
        before = phase.phase;
    }
    if (runs) {
        row.end = Instant(result.simulated);
        row.state = "RUNNING";
        out.push_back(row);
    }
    return out;
}

// The nodes' outages. Those that end after the campaign are open.
std::string events_of(const Scenario& s, const ReplicaResult& result, const ReplicaTrace& record) {
    std::string out = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User|TRES\n";
    const Instant end(result.simulated);
    out += fmt::format("railyard||{}|{}||Cluster Registered TRES|slurm(0)|gres/gpu={},node={}\n",
                       time_text(Instant{}), time_text(end), s.job.gpus(), s.job.nodes);
    std::vector<NodeAbsence> absences = record.absences;
    std::ranges::stable_sort(absences, {}, &NodeAbsence::from);
    for (const NodeAbsence& absence : absences) {
        out +=
            fmt::format("railyard|{}|{}|{}|DOWN|{}|root(0)|\n", node_text(absence.node),
                        time_text(absence.from),
                        absence.until < end ? time_text(absence.until) : "Unknown", absence.cause);
    }
    return out;
}

}  // namespace

std::vector<ExportedFile> export_sacct(const Scenario& s, std::int64_t replica) {
    ReplicaTrace record;
    const ReplicaResult result = run_replica(s, replica, true, &record);
    if (s.world) return {{"", sacct_text(rows_of_world(s, result, record))}};
    return {{"", sacct_text(rows_of_job(s, result, record))},
            {".events.txt", events_of(s, result, record)}};
}

}  // namespace railyard
