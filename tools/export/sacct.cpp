// A replica in Slurm's words.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tools/export/export.h"
#include "tools/trace/fleet_history.h"

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
    std::int64_t nodes = 0;
};

std::string sacct_text(const std::vector<SacctRow>& rows) {
    std::string out =
        "JobIDRaw|JobID|User|Partition|QOS|Submit|Start|End|ElapsedRaw|State|TimelimitRaw|"
        "AllocTRES|ReqTRES|"
        "NNodes\n";
    for (const SacctRow& row : rows) {
        const bool runs = std::string_view(row.state) == "RUNNING";
        const std::string tres = fmt::format("gres/gpu={},node={}", row.gpus, row.nodes);
        const std::string limit =
            row.limit > Duration{} ? fmt::format("{}", (whole_seconds(row.limit) + 59) / 60) : "";
        // Elapsed is the difference of what is printed, as Slurm's is.
        const std::int64_t elapsed =
            whole_seconds(row.end.time_since_epoch()) - whole_seconds(row.start.time_since_epoch());
        out += fmt::format("{0}|{0}|{1}|{2}|{3}|{4}|{5}|{6}|{7}|{8}|{9}|{10}|{10}|{11}\n", row.id,
                           row.user, row.partition, row.qos, time_text(row.submit),
                           time_text(row.start), runs ? "Unknown" : time_text(row.end), elapsed,
                           row.state, limit, tres, row.nodes);
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

std::vector<SacctRow> rows_of_fleet(const Scenario& s, const ReplicaResult& result) {
    const FleetHistory history(s, result);
    std::vector<SacctRow> out;
    for (const JobStint& stint : history.stints()) {
        SacctRow row;
        row.id = stint.job->id;
        row.user = fmt::format("kind{}", stint.job->kind);
        row.partition = "all";
        row.submit = stint.from - stint.waited;
        row.start = stint.from;
        row.end = stint.until;
        row.state = state_of(stint.how);
        row.limit = stint.job->limit;
        row.gpus = stint.job->gpus;
        row.nodes = std::max<std::int64_t>(
            1, (stint.job->gpus + s.job.gpus_per_node - 1) / s.job.gpus_per_node);
        out.push_back(row);
    }
    std::stable_sort(out.begin(), out.end(), [](const SacctRow& a, const SacctRow& b) {
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
    row.gpus = s.job.gpus();
    row.nodes = s.job.nodes;
    bool runs = false;
    JobPhase before = JobPhase::done;
    for (const PhaseStart& phase : record.phases) {
        const bool ends = runs && (!holds_nodes(phase.phase) ||
                                   (before == JobPhase::detection && phase.phase != before));
        if (ends) {
            row.end = phase.at;
            const bool campaign_ends = s.duration > Duration{} && phase.at >= Instant(s.duration);
            row.state = phase.phase != JobPhase::done ? "NODE_FAIL"
                        : campaign_ends               ? "RUNNING"
                                                      : "COMPLETED";
            out.push_back(row);
            row.submit = phase.at;
            runs = false;
        }
        if (!runs && holds_nodes(phase.phase)) {
            row.start = phase.at;
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
    std::stable_sort(absences.begin(), absences.end(),
                     [](const NodeAbsence& a, const NodeAbsence& b) { return a.from < b.from; });
    for (const NodeAbsence& absence : absences) {
        out += fmt::format(
            "railyard|node{:05}|{}|{}|DOWN|{}|root(0)|\n", absence.node, time_text(absence.from),
            absence.until < end ? time_text(absence.until) : "Unknown", absence.cause);
    }
    return out;
}

}  // namespace

std::vector<ExportedFile> export_sacct(const Scenario& s, std::int64_t replica) {
    if (s.fleet) {
        const ReplicaResult result = run_replica(s, replica, true);
        return {{"", sacct_text(rows_of_fleet(s, result))}};
    }
    ReplicaTrace record;
    const ReplicaResult result = run_replica(s, replica, true, &record);
    return {{"", sacct_text(rows_of_job(s, result, record))},
            {".events.txt", events_of(s, result, record)}};
}

}  // namespace railyard
