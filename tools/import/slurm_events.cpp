// What 'sacctmgr -P show event' prints: nodes that went down or were drained, as failures by cause. Each
// change of a node's state or reason is a row, so one outage is a chain of rows: they are merged.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/import/failure_rates.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

struct CauseWords {
    const char* cause;
    const char* remedy;
    const char* words;  // in small letters, with | between them
};
// Asked in this order of a row's reason. "": no failure.
constexpr CauseWords usual_causes[] = {
    {"", "",
     "cold-start|reboot asap|reboot requested|scontrol reboot|maint|reservation|upgrade|"
     "update|power save|powersav|suspend"},
    {"nvlink", "replace", "nvlink|nvswitch|fabric manager|fabricmanager|sxid"},
    {"gpu", "replace", "gres/gpu|gpu|xid|ecc error|double bit|hbm|nvidia-smi|nvml|dcgm"},
    {"network", "replace",
     "infiniband|ib port|ib link|hca|mlx|roce|nic |ethernet|link down|link flap"},
    {"power", "replace",
     "psu|power|pdu|thermal|temperature|overheat|fan |cooling|coolant|liquid leak|water leak|leak "
     "detect|leak sensor|manifold"},
    {"memory", "replace", "realmemory|dimm|memory|mce|machine check"},
    {"storage", "replace", "lustre|gpfs|nfs|mount|filesystem|file system|disk|nvme|/scratch|/home"},
    {"pcie", "replace", "pcie|pci link|pci-e"},
    {"software", "reset",
     "kill task failed|prolog|epilog|batch job complete failure|slurmd|driver"},
    {"health_check", "reset", "nhc|health"},
    {"unexpected_reboot", "reset", "unexpectedly rebooted"},
    {"not_responding", "reset", "not responding"},
};

struct EventRow {
    std::string place;  // file and line
    std::int64_t start = 0;
    std::optional<std::int64_t> end;
    std::string state;  // in capital letters
    std::string reason;
};

struct Outage {
    std::string node;
    std::vector<EventRow> rows;
};

std::string capitals(std::string text) {
    for (char& c : text) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return text;
}

bool has_word(const std::string& small, std::string_view words) {
    for (const std::string& word : split_text(words, '|')) {
        if (!word.empty() && small.find(word) != std::string::npos) return true;
    }
    return false;
}

// As words of their own: a default image and a test of failover are no failures.
bool says_failure(std::string small) {
    std::ranges::replace_if(
        small, [](char c) { return c < 'a' || c > 'z'; }, ' ');
    constexpr std::string_view words[] = {"fail",     "failed", "failing",  "fails", "failure",
                                          "failures", "error",  "errors",   "fault", "faults",
                                          "faulty",   "broken", "mismatch", "dead",  "dbe"};
    const std::vector<std::string> said = split_text(small, ' ');
    return std::ranges::any_of(said, [&](const std::string& word) {
        return std::ranges::find(words, word) != std::end(words);
    });
}

constexpr const char* counts_bad = "--skip-bad counts such lines instead";

class SlurmEvents : private Importer {
  public:
    using Importer::Importer;

    void run() {
        check_causes();
        for (const std::string& file : options_.files) read(file);
        diagnostics_.raise_if_any();
        if (row_count_ == 0) {
            return error("has no event",
                         "sacctmgr shows events since yesterday unless Start= says more");
        }
        chain_rows();
        const double node_days = exposure();
        diagnostics_.raise_if_any();
        say_window();
        say_lemons();
        say_bursts();
        if (causes_.empty()) {
            const CountedRate none = counted_rate(0, node_days);
            return part_.note(
                "No failure in {:.6g} node-days: at most {:.3g} a node-day with 95 %.", node_days,
                none.high);
        }
        part_.left_out("failures that end a job and leave its node in use");
        part_.left_out("detection: an outage begins where Slurm noticed");
        add_causes(std::move(causes_), node_days, part_);
    }

  private:
    void read(const std::string& file) {
        file_ = file;
        header_.clear();
        for (const FileLine& line : read_lines(file, diagnostics_)) {
            if (!diagnostics_.ok() && diagnostics_.errors().size() > 20) return;
            if (trimmed(line.text).empty()) continue;
            if (header_.empty()) {
                read_header(line);
                if (!diagnostics_.ok()) return;
            } else if (line.text.find("NodeName|TimeStart") == std::string::npos) {
                read_row(line);
            }
        }
    }

    void read_header(const FileLine& line) {
        header_ = split_text(line.text, '|');
        if (header_.size() > 1 && header_.back().empty()) header_.pop_back();
        for (const char* name : {"nodename", "timestart", "timeend", "state", "reason"}) {
            if (column(name)) continue;
            error(line.at(), name, "no column is called so",
                  "sacctmgr -P show event Start=2026-01-01 End=now "
                  "Format=Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User,TRES");
            return;
        }
    }

    void read_row(const FileLine& line) {
        std::vector<std::string> cells = split_text(line.text, '|');
        if (cells.size() == header_.size() + 1 && cells.back().empty()) cells.pop_back();
        const std::size_t reason = *column("reason");
        if (cells.size() > header_.size()) {  // of all columns the reason alone is free text
            ++joined_;
            while (cells.size() > header_.size()) {
                cells[reason] += "|" + cells[reason + 1];
                cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(reason) + 1);
            }
        }
        if (cells.size() < header_.size()) {
            return bad(line.at(), "",
                       fmt::format("{} fields where the header has {}: cut off, or a reason with "
                                   "an end of line in it",
                                   cells.size(), header_.size()),
                       counts_bad);
        }
        EventRow row{fmt::format("{}:{}", file_, line.number),
                     0,
                     {},
                     capitals(cells[*column("state")]),
                     cells[reason]};
        if (!read_times(line.number, cells, row)) return;
        ++row_count_;
        first_ = std::min(first_, row.start);
        last_ = std::max(last_, row.start);
        if (const auto cluster = column("cluster"); cluster && !cells[*cluster].empty()) {
            if (cluster_.empty()) cluster_ = cells[*cluster];
            if (cells[*cluster] != cluster_) {
                return bad(
                    line.at(), "",
                    fmt::format("cluster {} beside {}: nodes and their number are one cluster's",
                                cells[*cluster], cluster_),
                    fmt::format("sacctmgr -P show event Clusters={} ...", cluster_));
            }
        }
        const std::string& node = cells[*column("nodename")];
        if (node.empty()) return read_cluster_row(row, cells);
        first_of_nodes_ = std::min(first_of_nodes_, row.start);
        if (row.state.find_first_of("~#!%") != std::string::npos ||
            row.state.find("POW") != std::string::npos) {
            ++power_rows_;
            return;
        }
        rows_[node].push_back(std::move(row));
    }

    bool read_times(int line, const std::vector<std::string>& cells, EventRow& row) {
        const auto start = time_value(cells[*column("timestart")]);
        const std::string& end = cells[*column("timeend")];
        if (!start) {
            return refused(
                line,
                fmt::format("TimeStart: expected a time such as 2026-01-03T11:02:00, found '{}'",
                            cells[*column("timestart")]));
        }
        row.start = *start;
        if (!end.empty() && end != "Unknown" && end != "None") {
            row.end = time_value(end);
            if (!row.end) {
                return refused(line, fmt::format("TimeEnd: expected a time, found '{}'", end));
            }
            constexpr std::int64_t hour = 3600;
            if (*row.end < row.start && row.start - *row.end <= hour) {
                ++clock_;
                row.end = row.start;
            }
            if (*row.end < row.start) {
                return refused(line, fmt::format("TimeEnd {} is before TimeStart {}", end,
                                                 cells[*column("timestart")]));
            }
            last_ = std::max(last_, *row.end);
        }
        return true;
    }

    // "cpu=..,node=128": since then the cluster has had so many nodes.
    void read_cluster_row(const EventRow& row, const std::vector<std::string>& cells) {
        ++cluster_rows_;
        const auto tres = column("tres");
        if (!tres) return;
        for (const std::string& part : split_text(cells[*tres], ',')) {
            if (!part.starts_with("node=")) continue;
            const auto nodes = whole_value(std::string_view(part).substr(5));
            if (nodes && *nodes > 0 && *nodes < 10'000'000) counts_.emplace_back(row, *nodes);
        }
    }

    std::optional<std::size_t> column(const char* name) const {
        for (std::size_t i = 0; i < header_.size(); ++i) {
            if (lower_case(header_[i]) == name) return i;
        }
        return std::nullopt;
    }

    bool refused(int line, std::string message) {
        bad({line, 1}, "", std::move(message), counts_bad);
        return false;
    }

    // --cause gpu=words comes before the table.
    void check_causes() {
        for (const std::string& given : options_.causes) {
            const std::size_t equals = given.find('=');
            if (equals == std::string::npos || equals == 0 || equals + 1 == given.size()) {
                throw ScenarioError(fmt::format("--cause {}: expected NAME=WORD|WORD", given));
            }
            own_.emplace_back(given.substr(0, equals), lower_case(given.substr(equals + 1)));
        }
        for (const auto& [name, words] : own_) {
            own_words_.push_back({name.c_str(), "replace", words.c_str()});
        }
    }

    const CauseWords* cause_of(const std::string& reason) {
        const std::string small = lower_case(reason);
        for (const CauseWords& cause : own_words_) {
            if (has_word(small, cause.words)) return &cause;
        }
        // "power supply failed, awaiting maintenance" was not planned.
        const bool failed = says_failure(small);
        for (const CauseWords& cause : usual_causes) {
            if (failed && *cause.cause == 0) continue;
            if ((!small.empty() && small == cause.cause) || has_word(small, cause.words))
                return &cause;
        }
        return nullptr;
    }

    // A row that begins when the one before it ends goes on with its outage.
    void chain_rows() {
        for (auto& [node, rows] : rows_) {
            std::ranges::stable_sort(rows, {}, &EventRow::start);
            Outage outage{node, {}};
            for (const EventRow& row : rows) {
                constexpr std::int64_t slack_s = 1;
                const bool goes_on =
                    !outage.rows.empty() &&
                    (!outage.rows.back().end || row.start <= *outage.rows.back().end + slack_s);
                if (!goes_on && !outage.rows.empty()) {
                    settle(outage);
                    outage.rows.clear();
                }
                outage.rows.push_back(row);
            }
            if (!outage.rows.empty()) settle(outage);
        }
    }

    void settle(const Outage& outage) {
        const CauseWords* found = nullptr;
        const EventRow* from = nullptr;
        bool planned = false;
        for (const EventRow& row : outage.rows) {
            const CauseWords* cause = cause_of(row.reason);
            if (row.state.find_first_of("$@^") != std::string::npos ||
                row.state.find("MAINT") != std::string::npos ||
                (cause != nullptr && *cause->cause == 0)) {
                planned = true;
                if (!row.reason.empty()) planned_reasons_.insert(row.reason);
                continue;
            }
            // The last that says more than that the node does not answer knows best.
            const bool says_little =
                cause != nullptr && std::string_view(cause->cause) == "not_responding";
            if (row.reason.empty() || (from != nullptr && says_little)) continue;
            found = cause;
            from = &row;
        }
        if (from == nullptr) {
            planned_ += planned;
            if (planned) return;
        }
        const auto out = std::ranges::find_if(outage.rows, [](const EventRow& row) {
            return !row.state.starts_with("DRNG") && !row.state.starts_with("DRAINING");
        });
        if (out == outage.rows.end()) {
            ++only_drained_;  // and given back before its jobs had ended
            return;
        }
        ++outages_;
        const std::string name = from == nullptr    ? "no_reason"
                                 : found != nullptr ? found->cause
                                                    : "other";
        SeenCause& cause = seen(name, found != nullptr ? found->remedy : "replace");
        silent_only_ += name == "not_responding";
        const EventRow& first = from != nullptr ? *from : outage.rows.front();
        if (cause.events++ == 0) cause.first = first.place;
        if (std::ranges::find(cause.what, first.reason) == cause.what.end()) {
            cause.what.push_back(first.reason.empty() ? "(no reason)" : first.reason);
        }
        if (outage.rows.back().end) {
            cause.outages_s.push_back(*outage.rows.back().end - out->start);
        } else {
            ++cause.open;
            cause.open_s += std::max<std::int64_t>(0, last_ - out->start);
        }
        ++failures_of_[outage.node];
        starts_.emplace_back(out->start, outage.node);
    }

    SeenCause& seen(const std::string& name, const char* remedy) {
        for (SeenCause& cause : causes_) {
            if (cause.name == name) return cause;
        }
        SeenCause& added = causes_.emplace_back();
        added.name = name;
        added.remedy = remedy;
        return added;
    }

    // Node-days that the events come from: as given, or as the cluster's own rows count its nodes.
    double exposure() {
        if (options_.node_days) {
            part_.note("Exposure: {:.6g} node-days, of --node-days.", *options_.node_days);
            return *options_.node_days;
        }
        if (counts_.empty()) {
            error("says nowhere how many nodes were watched: no rate without it",
                  "give --node-days (nodes times days), or print the cluster's own rows too: "
                  "sacctmgr -P show event Start=... "
                  "Format=Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User,TRES");
            return 1;
        }
        std::ranges::stable_sort(
            counts_, [](const auto& a, const auto& b) { return a.first.start < b.first.start; });
        double days = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            const std::int64_t next = i + 1 < counts_.size() ? counts_[i + 1].first.start : last_;
            const std::int64_t end = std::min(counts_[i].first.end.value_or(next), next);
            days += static_cast<double>(std::max<std::int64_t>(0, end - counts_[i].first.start)) /
                    86400 * static_cast<double>(counts_[i].second);
        }
        if (!(days > 0)) {
            error(Position{}, "TRES", "the cluster's own rows cover no time", "give --node-days");
            return 1;
        }
        warn_of_window(days);
        part_.note(
            "Exposure: {:.6g} node-days, of the nodes in {} rows of the cluster ({}: node={}).",
            days, counts_.size(), counts_.front().first.place, counts_.front().second);
        return days;
    }

    // The cluster's rows are printed whole, whatever window was asked for: one that is open reaches to its
    // end, one that is older than all events may begin before it.
    void warn_of_window(double days) {
        const EventRow& oldest = counts_.front().first;
        const std::int64_t gap = first_of_nodes_ - oldest.start;
        const std::int64_t seen = last_ - first_of_nodes_;
        // That nothing happens for so long, at the rate of what came then, is a matter of less than one in a
        // thousand.
        constexpr double events_missing = 7;
        const auto rows = static_cast<double>(row_count_ - cluster_rows_);
        if (seen <= 0 ||
            static_cast<double>(gap) * rows < events_missing * static_cast<double>(seen))
            return;
        const double share = static_cast<double>(seen) / static_cast<double>(seen + gap);
        warning(
            Position{}, "TimeStart",
            fmt::format(
                "{}: the cluster's row begins {:.4g} days before the first event of a node: "
                "sacctmgr prints such rows whole, whatever Start= says, and rates are then too low",
                oldest.place, static_cast<double>(gap) / 86400),
            fmt::format(
                "if Start= was given, say --node-days: {:.6g} from the first event on, not {:.6g}",
                days * share, days));
    }

    void say_window() {
        const double days = static_cast<double>(last_ - first_) / 86400;
        part_.note("Window: {:.4g} days from the first to the last time in the file.", days);
        if (days < 2.1) {
            warning(fmt::format("covers {:.2g} days: sacctmgr shows events since yesterday where "
                                "no Start= is given",
                                days),
                    "sacctmgr -P show event Start=2026-01-01 End=now ...");
        }
        part_.note("{} rows of nodes merge into {} outages.",
                   row_count_ - cluster_rows_ - power_rows_, outages_);
        const auto say = [&](std::int64_t count, const char* what) {
            if (count > 0) part_.note("{} {}.", count, what);
        };
        say(planned_,
            "outages were planned (maintenance, reboots, a cold start) and are no failures");
        if (!planned_reasons_.empty()) {
            part_.note("Their reasons: {}.",
                       some_of({planned_reasons_.begin(), planned_reasons_.end()}));
        }
        say(only_drained_, "drains ended before the node was empty: no outage");
        say(power_rows_, "rows are of power saving, left out");
        say(joined_, "reasons have a '|' in them");
        say(clock_, "rows end up to an hour before they begin (a clock set back?): taken as 0 s");
        say(bad_, "malformed lines were skipped");
        if (outages_ > 0 && silent_only_ > 0) {
            part_.note(
                "{:.0f} % of outages say 'Not responding' only: their cause is not known, and is "
                "kept as one.",
                100.0 * static_cast<double>(silent_only_) / static_cast<double>(outages_));
        }
    }

    // Nodes that fail more often than luck has it, were all alike.
    void say_lemons() {
        if (failures_of_.size() < 2 || outages_ < 5) return;
        const double nodes =
            std::max<double>(static_cast<double>(failures_of_.size()),
                             counts_.empty() ? 0 : static_cast<double>(counts_.back().second));
        const double mean = static_cast<double>(outages_) / nodes;
        std::vector<std::string> lemons;
        for (const auto& [node, count] : failures_of_) {
            if (poisson_tail(count, mean) * nodes < 0.05)
                lemons.push_back(fmt::format("{} ({})", node, count));
        }
        if (lemons.empty()) return;
        part_.note(
            "Lemons: {} of {:.0f} nodes fail more often than chance has it (P < 5 % for the whole "
            "cluster): {}. failures.lemon can say so.",
            lemons.size(), nodes, some_of(lemons));
    }

    // Several nodes within five minutes have one cause.
    void say_bursts() {
        constexpr std::int64_t within_s = 300;
        constexpr std::size_t nodes_min = 4;
        std::ranges::sort(starts_);
        std::int64_t bursts = 0;
        std::size_t largest = 0;
        for (std::size_t i = 0; i < starts_.size();) {
            std::set<std::string> nodes;
            std::size_t j = i;
            for (; j < starts_.size() && starts_[j].first - starts_[i].first <= within_s; ++j) {
                nodes.insert(starts_[j].second);
            }
            if (nodes.size() >= nodes_min) {
                ++bursts;
                largest = std::max(largest, nodes.size());
                i = j;
            } else {
                ++i;
            }
        }
        if (bursts == 0) return;
        part_.note(
            "Bursts: {} times {} or more nodes went within 5 minutes (at most {}): they are "
            "counted node by node; failures.cause.domain can say what they share.",
            bursts, nodes_min, largest);
    }

    std::string cluster_;
    std::vector<std::string> header_;
    std::map<std::string, std::vector<EventRow>> rows_;  // by node
    std::vector<std::pair<EventRow, std::int64_t>>
        counts_;  // nodes that the cluster had, and since when
    std::vector<std::pair<std::string, std::string>> own_;  // causes of --cause
    std::vector<CauseWords> own_words_;
    std::vector<SeenCause> causes_;
    std::map<std::string, std::int64_t> failures_of_;           // by node
    std::vector<std::pair<std::int64_t, std::string>> starts_;  // of outages
    std::int64_t first_ = INT64_MAX;
    std::int64_t first_of_nodes_ = INT64_MAX;
    std::int64_t last_ = INT64_MIN;
    std::int64_t row_count_ = 0, cluster_rows_ = 0, power_rows_ = 0, joined_ = 0;
    std::set<std::string> planned_reasons_;
    std::int64_t planned_ = 0, only_drained_ = 0, outages_ = 0, silent_only_ = 0, clock_ = 0;
};

}  // namespace

Import import_slurm_events = run_importer<SlurmEvents>;

}  // namespace railyard
