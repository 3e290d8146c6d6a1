// Lines of NVIDIA's driver that report an Xid, of dmesg -T or journald, as failures by cause. The log has the
// events; how many nodes were watched for how long it has not: --node-days.

#include <fmt/format.h>

#include <algorithm>

#include "tools/import/importers.h"
#include "tools/import/text_file.h"
#include "tools/import/xid_faults.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

int month_of(std::string_view name) {
    constexpr const char* names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    for (int i = 0; i < 12; ++i) {
        if (name == names[i]) return i + 1;
    }
    return 0;
}

class XidLog : private Importer {
  public:
    using Importer::Importer;

    void run() {
        for (const std::string& file : options_.files) read(file);
        diagnostics_.raise_if_any();
        if (lines_ == 0) {
            return error(
                "has no line with an Xid",
                "a log of the kernel has NVRM: Xid (PCI:0000:9b:00): 119, ... No such line in a "
                "log of a working node is a rate of its own: give failures.cause by hand");
        }
        if (!options_.node_days) {
            return error(fmt::format("{} lines with an Xid over {:.4g} days, and no log says how "
                                     "many nodes were watched",
                                     lines_, static_cast<double>(last_ - first_) / 86400),
                         "give --node-days: nodes times the days that their logs go back");
        }
        part_.note(
            "Window: {:.4g} days from the first to the last Xid; exposure: {:.6g} node-days, of "
            "--node-days.",
            static_cast<double>(last_ - first_) / 86400, *options_.node_days);
        if (non_fatal_ > 0) {
            part_.note("{} SXids of NVSwitches are non-fatal, and no failures.", non_fatal_);
        }
        if (bad_ > 0) part_.note("{} malformed lines were skipped.", bad_);
        part_.left_out(
            "what leaves no Xid: a node that loses power or panics takes its log with it");
        faults_.write(*options_.node_days, part_);
    }

  private:
    void read(const std::string& file) {
        file_ = file;
        const std::size_t slash = file.rfind('/');
        file_host_ = file.substr(slash == std::string::npos ? 0 : slash + 1);
        for (const FileLine& line : read_lines(file, diagnostics_)) {
            read_line(line);
            if (diagnostics_.errors().size() > 20) return;
        }
    }

    void read_line(const FileLine& line) {
        refuse_what_is_no_log(line);
        const bool sxid = line.text.find("SXid (") != std::string::npos;
        const bool driver = line.text.find("NVRM") != std::string::npos ||
                            line.text.find("nvidia-nvswitch") != std::string::npos;
        if (!driver) return;
        const std::size_t at = line.text.find("Xid (");
        const bool off_bus = line.text.find("has fallen off the bus") != std::string::npos;
        if (at == std::string::npos && !off_bus) return;
        GpuReport report;
        report.where = fmt::format("{}:{}", file_, line.number);
        if (!find_time(line, report)) {
            return bad(line.at(), "",
                       "no date with a year: lines of one fault can't be told from the next",
                       "dmesg -T, or journalctl -k -o short-iso; --skip-bad leaves such lines out");
        }
        ++lines_;
        first_ = std::min(first_, report.at_s);
        last_ = std::max(last_, report.at_s);
        if (sxid && line.text.find("Non-fatal") != std::string::npos) {
            ++non_fatal_;
            return;
        }
        if (at == std::string::npos) return count(report, 79, false);
        constexpr std::size_t longest = 200;  // lines of any length come
        const Found found =
            find_pattern(line.text.substr(at, longest), R"(Xid \((.*?)\): *(\d{1,5})(?!\d))");
        if (found.empty()) {
            return bad(line.at(), "", "expected Xid (PCI:...): NUMBER, ...: cut off?",
                       "--skip-bad leaves such lines out");
        }
        report.gpu = found[1];
        count(report, std::stoi(found[2]), sxid);
    }

    // "[Sun Feb 23 16:24:18 2025]", "2025-02-23T16:24:18+0000 host kernel:"; neither has a year where syslog
    // has none: then nobody knows it.
    bool find_time(const FileLine& line, GpuReport& out) {
        const std::vector<std::string> words = split_text(line.text, ' ');
        out.host = file_host_;
        if (words.size() > 5 && words[0].starts_with('[') && month_of(words[1]) > 0) {
            const std::string year = words[4].substr(0, words[4].find(']'));
            const std::string day = words[2].size() == 1 ? "0" + words[2] : words[2];
            const auto at =
                time_value(fmt::format("{}-{:02}-{}T{}", year, month_of(words[1]), day, words[3]));
            if (!at) return false;
            out.at_s = *at;
            return true;
        }
        if (words.size() > 2 && words[0].size() >= 19) {
            if (const auto at = time_value(words[0])) {
                out.at_s = *at;
                out.host = words[1];
                return true;
            }
        }
        return false;
    }

    void count(const GpuReport& report, int code, bool sxid) {
        if (!sxid) return faults_.xid(report, code);
        faults_.fault(report, "nvlink", fmt::format("SXid {}", code));
    }

    void refuse_what_is_no_log(const FileLine& line) {
        if (line.text.find("DCGM_FI_DEV_XID_ERRORS") != std::string::npos) {
            error(line.at(), "DCGM_FI_DEV_XID_ERRORS",
                  "holds the last Xid until a reset: its samples count nothing, and two alike in a "
                  "row are one",
                  "railyard import dcgm reads a history of it; better, give the kernel's log: "
                  "dmesg -T, or journalctl -k -o short-iso");
        } else if (line.text.find("\"DCGM Diagnostic\"") != std::string::npos) {
            error(line.at(), "DCGM Diagnostic",
                  "is a snapshot: it says which GPUs fail now, and no rate",
                  "give the kernel's log: dmesg -T, or journalctl -k -o short-iso");
        }
    }

    std::string file_host_;
    std::int64_t lines_ = 0;
    std::int64_t non_fatal_ = 0;
    std::int64_t first_ = INT64_MAX, last_ = INT64_MIN;
    GpuFaults faults_;
};

}  // namespace

Import import_xid = run_importer<XidLog>;

}  // namespace railyard
