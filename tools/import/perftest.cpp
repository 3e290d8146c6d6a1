// What ib_write_bw and its kin print: how much of its line rate a NIC reaches.

#include <fmt/format.h>

#include "models/catalogue/catalogue.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

// Below this a message tells of latency and rates of messages.
constexpr double large_message = 65536;
// A NIC that reaches less of its line rate than this has lost PCIe lanes or runs a slower port.
constexpr double sound_fraction = 0.8;

struct BestRow {
    double bits_per_s = 0;
    double bytes = 0;
    int line = 0;
};

class Perftest : private Importer {
  public:
    using Importer::Importer;
    void run() {
        take_one_file("a second file: give one");
        read();
        diagnostics_.raise_if_any();
        const double most = line_rate();
        const double fraction = best_.bits_per_s / most;
        const std::string found =
            fmt::format("{:.4g} of {:.4g} Gbit/s", best_.bits_per_s * 1e-9, most * 1e-9);
        if (fraction > 1) {
            return error({best_.line, 1}, "BW average",
                         fmt::format("{}: more than a {} has", found, options_.nic),
                         "is it another NIC, or both directions' sum (-b)?");
        }
        if (fraction < sound_fraction) {
            warning({best_.line, 1}, "BW average",
                    fmt::format("{}: a port at half its speed, or PCIe lanes lost? One "
                                "such NIC is a fault, not what NICs reach",
                                found));
        }
        if (both_ways_) part_.note("Both directions at once: half of their sum is taken.");
        part_.left_out(
            "latency (ib_write_lat), how NICs differ, GPU memory unless --use_cuda was given");
        part_.section(fmt::format("override.nic.{}", options_.nic));
        part_.value("achieved_fraction", fmt::format("{:.4g}", fraction),
                    fmt::format("{}:{}: {} in messages of {} bytes", file_, best_.line, found,
                                best_.bytes));
    }

  private:
    void read() {
        for (const FileLine& line : read_lines(file_, diagnostics_)) {
            const std::string_view text = trimmed(line.text);
            if (text.starts_with('{')) {
                return error(line.at(), "",
                             "JSON, which does not say whether it has MiB/s or Gbit/s",
                             "give what it prints without --out_json");
            }
            if (text.find("Bidirectional BW") != std::string_view::npos) both_ways_ = true;
            if (text.starts_with("#bytes")) {
                read_header(line);
            } else if (unit_ > 0 && !text.empty() && text[0] >= '0' && text[0] <= '9') {
                read_row(line);
            }
            if (diagnostics_.errors().size() > 20) return;
        }
        if (unit_ == 0 && diagnostics_.ok()) {
            error("has no table of perftest",
                  "what ib_write_bw prints: '#bytes #iterations BW peak ...'");
        } else if (best_.bits_per_s <= 0 && diagnostics_.ok()) {
            error("has no row with messages of 64 KiB or more", "ib_write_bw -a, or -s 1048576");
        }
    }

    // " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]". MB were MiB, too.
    void read_header(const FileLine& line) {
        const std::string text = lower_case(line.text);
        const bool sl = text.find("#sl") != std::string::npos;
        average_ = sl ? 4 : 3;
        if (text.find("t_min[usec]") != std::string::npos) {
            error(line.at(), "", "a test of latency",
                  "what a NIC reaches is printed by ib_write_bw");
        } else if (text.find("bw average[gb/sec]") != std::string::npos) {
            unit_ = 1e9;
        } else if (text.find("bw average[mb/sec]") != std::string::npos ||
                   text.find("bw average[mib/sec]") != std::string::npos) {
            unit_ = 8 * 1024 * 1024;
        } else {
            error(line.at(), "", "expected 'BW average[MiB/sec]', [MB/sec] or [Gb/sec]: cut off?");
        }
    }

    void read_row(const FileLine& line) {
        const std::vector<std::string> words = split_text(line.text, ' ');
        const auto bytes = whole_value(words[0]);
        const auto average = words.size() > average_ ? real_value(words[average_]) : std::nullopt;
        if (!bytes || !average || *average < 0) {
            return error(line.at(), "", "expected bytes, iterations, peak and average: cut off?");
        }
        const double bits_per_s = *average * unit_ / (both_ways_ ? 2 : 1);
        if (static_cast<double>(*bytes) < large_message || bits_per_s <= best_.bits_per_s) return;
        best_ = {bits_per_s, static_cast<double>(*bytes), line.number};
    }

    double line_rate() {
        if (options_.nic.empty()) {
            throw ScenarioError("which NIC of the catalogue is it?", "--nic cx7_ndr400");
        }
        if (Catalogue::entry("nic", options_.nic) == nullptr) {
            throw ScenarioError(fmt::format("no NIC of the catalogue is called '{}'", options_.nic),
                                suggest(options_.nic, Catalogue::names("nic")));
        }
        StandaloneCatalogue own;
        if (!own.catalogue.has("nic", options_.nic, "achieved_fraction")) {
            throw ScenarioError(
                fmt::format("the catalogue has no share that a {} reaches: nothing takes it",
                            options_.nic),
                "give one of a NIC with achieved_fraction (railyard list nic cx7_ndr400)");
        }
        return own.catalogue.bandwidth("nic", options_.nic, "bandwidth").bytes_per_second() * 8;
    }

    double unit_ = 0;  // bits/s; 0: no header yet
    std::size_t average_ = 0;
    bool both_ways_ = false;
    BestRow best_;
};

}  // namespace

Import import_perftest = run_importer<Perftest>;

}  // namespace railyard
