// Lines of NVIDIA's driver that report an Xid, of dmesg -T or journald, as failures by cause. The log has the
// events; how many nodes were watched for how long it has not: --node-days.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "tools/import/failure_rates.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

struct XidCause {
    const char* cause;
    const char* remedy;
    std::vector<int> codes;
};

// NVIDIA's catalogue of Xid errors, docs.nvidia.com/deploy/xid-errors, as of 2025-10-29: what to do at once.
// Empty: nothing fails (bookkeeping), or the application has failed, not the machine.
const std::vector<XidCause>& xid_causes() {
    static const std::vector<XidCause> causes = {
        {"gpu_hbm", "reset", {48, 95, 140, 171}},
        {"gpu_hbm_contained", "restart", {94}},
        {"gpu_sram", "reset", {172}},
        {"gpu_gsp", "reset", {119, 120}},
        {"gpu_fell_off_bus", "reset", {79}},
        {"gpu_hw", "reset", {46, 62, 109, 110, 136, 142, 143, 151, 156, 158}},
        {"gpu_power_cable", "replace", {54}},
        {"nvlink", "reset", {74, 144, 145, 146, 147, 148, 149, 150, 155}},
        {"application", "", {8,   11,  13,  25,  31,  32,  39,  40,  41,  43,  45,  60,  68,
                             69,  70,  71,  72,  75,  76,  77,  80,  82,  83,  84,  85,  86,
                             88,  89,  96,  97,  98,  99,  100, 101, 102, 103, 104, 105, 126,
                             127, 128, 129, 130, 131, 132, 133, 134, 135, 139}},
        {"bookkeeping", "", {37,  38,  44,  63,  64,  66,  67,  92,  93,  106,
                             107, 121, 137, 141, 152, 153, 154, 157, 160, 161}},
    };
    return causes;
}

constexpr std::int64_t one_fault_s = 300;

struct XidLine {
    std::string host;
    std::string gpu;
    std::int64_t at = 0;
};

class XidLog : private Importer {
  public:
    using Importer::Importer;
    void run();

  private:
    void read(const std::string& file);
    void read_line(const FileLine& line);
    bool find_time(const FileLine& line, XidLine& out);
    void count(const XidLine& where, int code, int line, bool sxid);
    SeenCause& seen(const XidCause& cause);
    void refuse_what_is_no_log(const FileLine& line);

    std::string file_;
    std::string file_host_;
    std::int64_t lines_ = 0, bad_ = 0;
    std::int64_t first_ = INT64_MAX, last_ = INT64_MIN;
    std::map<std::pair<std::string, std::string>, std::int64_t> last_of_;  // by host and cause
    std::vector<SeenCause> causes_;
    std::map<std::string, std::int64_t> ignored_;
    std::map<int, std::int64_t> unknown_;
    std::map<std::string, std::int64_t> by_gpu_;
};

int month_of(std::string_view name) {
    constexpr const char* names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    for (int i = 0; i < 12; ++i) {
        if (name == names[i]) return i + 1;
    }
    return 0;
}

// "[Sun Feb 23 16:24:18 2025]", "2025-02-23T16:24:18+0000 host kernel:"; neither has a year where syslog has
// none: then nobody knows it.
bool XidLog::find_time(const FileLine& line, XidLine& out) {
    const std::vector<std::string> words = split_text(line.text, ' ');
    out.host = file_host_;
    if (words.size() > 5 && words[0].starts_with('[') && month_of(words[1]) > 0) {
        const std::string year = words[4].substr(0, words[4].find(']'));
        const std::string day = words[2].size() == 1 ? "0" + words[2] : words[2];
        const auto at =
            time_value(fmt::format("{}-{:02}-{}T{}", year, month_of(words[1]), day, words[3]));
        if (!at) return false;
        out.at = *at;
        return true;
    }
    if (words.size() > 2 && words[0].size() >= 19) {
        if (const auto at = time_value(words[0])) {
            out.at = *at;
            out.host = words[1];
            return true;
        }
    }
    return false;
}

void XidLog::refuse_what_is_no_log(const FileLine& line) {
    if (line.text.find("DCGM_FI_DEV_XID_ERRORS") != std::string::npos) {
        diagnostics_.error(
            file_, {line.number, 1}, "DCGM_FI_DEV_XID_ERRORS",
            "holds the last Xid until a reset: its samples count nothing, and two alike in a "
            "row are one",
            "give the kernel's log: dmesg -T, or journalctl -k -o short-iso");
    } else if (line.text.find("\"DCGM Diagnostic\"") != std::string::npos) {
        diagnostics_.error(file_, {line.number, 1}, "DCGM Diagnostic",
                           "is a snapshot: it says which GPUs fail now, and no rate",
                           "give the kernel's log: dmesg -T, or journalctl -k -o short-iso");
    }
}

SeenCause& XidLog::seen(const XidCause& cause) {
    for (SeenCause& known : causes_) {
        if (known.name == cause.cause) return known;
    }
    SeenCause fresh;
    fresh.name = cause.cause;
    fresh.remedy = cause.remedy;
    causes_.push_back(std::move(fresh));
    return causes_.back();
}

// One fault is tens of lines, of each process and each GPU of its node: those of a cause that follow each
// other within five minutes are one.
void XidLog::count(const XidLine& where, int code, int line, bool sxid) {
    const XidCause* found = nullptr;
    for (const XidCause& cause : xid_causes()) {
        const bool has =
            std::find(cause.codes.begin(), cause.codes.end(), code) != cause.codes.end();
        if (sxid ? std::string_view(cause.cause) == "nvlink" : has) found = &cause;
    }
    if (found == nullptr) {
        ++unknown_[code];
        return;
    }
    if (*found->remedy == 0) {
        ++ignored_[found->cause];
        return;
    }
    const auto key = std::pair(where.host, std::string(found->cause));
    const auto before = last_of_.find(key);
    const bool same = before != last_of_.end() && where.at - before->second <= one_fault_s;
    last_of_[key] = where.at;
    if (same) return;
    SeenCause& cause = seen(*found);
    if (cause.events++ == 0) cause.first = fmt::format("{}:{}", file_, line);
    const std::string what = fmt::format("{} {}", sxid ? "SXid" : "Xid", code);
    if (std::find(cause.what.begin(), cause.what.end(), what) == cause.what.end()) {
        cause.what.push_back(what);
    }
    ++by_gpu_[fmt::format("{} {}", where.host, where.gpu)];
}

void XidLog::read_line(const FileLine& line) {
    refuse_what_is_no_log(line);
    const bool sxid = line.text.find("SXid (") != std::string::npos;
    const bool driver = line.text.find("NVRM") != std::string::npos ||
                        line.text.find("nvidia-nvswitch") != std::string::npos;
    if (!driver) return;
    std::size_t at = line.text.find("Xid (");
    const bool off_bus = line.text.find("has fallen off the bus") != std::string::npos;
    if (at == std::string::npos && !off_bus) return;
    XidLine where;
    if (!find_time(line, where)) {
        ++bad_;
        if (!options_.skip_bad) {
            diagnostics_.error(
                file_, {line.number, 1}, "",
                "no date with a year: lines of one fault can't be told from the next",
                "dmesg -T, or journalctl -k -o short-iso; --skip-bad leaves such lines out");
        }
        return;
    }
    ++lines_;
    first_ = std::min(first_, where.at);
    last_ = std::max(last_, where.at);
    if (at == std::string::npos) return count(where, 79, line.number, false);
    at += 5;
    const std::size_t close = line.text.find("):", at);
    if (close != std::string::npos) {
        where.gpu = line.text.substr(at, close - at);
        std::size_t begin = close + 2;
        while (begin < line.text.size() && line.text[begin] == ' ') ++begin;
        std::size_t end = begin;
        while (end < line.text.size() && line.text[end] >= '0' && line.text[end] <= '9') ++end;
        const auto code = whole_value(std::string_view(line.text).substr(begin, end - begin));
        if (code && *code < 100'000) {
            return count(where, static_cast<int>(*code), line.number, sxid);
        }
    }
    ++bad_;
    if (options_.skip_bad) return;
    diagnostics_.error(file_, {line.number, 1}, "", "expected Xid (PCI:...): NUMBER, ...: cut off?",
                       "--skip-bad leaves such lines out");
}

void XidLog::read(const std::string& file) {
    file_ = file;
    const std::size_t slash = file.rfind('/');
    file_host_ = file.substr(slash == std::string::npos ? 0 : slash + 1);
    for (const FileLine& line : read_lines(file, diagnostics_)) {
        read_line(line);
        if (diagnostics_.errors().size() > 20) return;
    }
}

void XidLog::run() {
    for (const std::string& file : options_.files) read(file);
    diagnostics_.raise_if_any();
    if (lines_ == 0) {
        return diagnostics_.error(
            file_, {}, "", "has no line with an Xid",
            "a log of the kernel has NVRM: Xid (PCI:0000:9b:00): 119, ... No such line "
            "in a log of a working node is a rate of its own: give failures.cause by hand");
    }
    if (!options_.node_days) {
        return diagnostics_.error(file_, {}, "",
                                  fmt::format("{} lines with an Xid over {:.4g} days, and no log "
                                              "says how many nodes were watched",
                                              lines_, static_cast<double>(last_ - first_) / 86400),
                                  "give --node-days: nodes times the days that their logs go back");
    }
    part_.note(fmt::format(
        "Window: {:.4g} days from the first to the last Xid; exposure: {:.6g} node-days, of "
        "--node-days.",
        static_cast<double>(last_ - first_) / 86400, *options_.node_days));
    part_.note(fmt::format(
        "Lines of one cause on one node within {} s of each other are one fault.", one_fault_s));
    for (const auto& [name, count] : ignored_) {
        part_.note(fmt::format("{} lines are {}: no failure of the machine.", count, name));
    }
    for (const auto& [code, count] : unknown_) {
        part_.note(
            fmt::format("{} lines have Xid {}, of which the catalogue says nothing.", count, code));
    }
    if (bad_ > 0) part_.note(fmt::format("{} malformed lines were skipped.", bad_));
    for (const auto& [gpu, count] : by_gpu_) {
        if (count >= 3) part_.note(fmt::format("A lemon? {}: {} faults.", gpu, count));
    }
    part_.left_out("what leaves no Xid: a node that loses power or panics takes its log with it");
    if (!causes_.empty()) add_causes(std::move(causes_), *options_.node_days, part_);
}

}  // namespace

void import_xid(const ImportOptions& options, ImportedPart& part, Diagnostics& diagnostics) {
    XidLog(options, part, diagnostics).run();
}

}  // namespace railyard
