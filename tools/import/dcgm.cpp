// What DCGM counts and watches on GPUs, as failures by cause. It has the changes; how many nodes were watched
// for how long the user says (--node-days). Where samples have times, these are held against it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "tools/import/dcgm_samples.h"
#include "tools/import/importers.h"
#include "tools/import/text_file.h"
#include "tools/import/xid_faults.h"

namespace railyard {

namespace {

enum class DcgmMeaning : std::uint8_t {
    last_xid,      // a gauge: the last Xid until a reset
    recent_xids,   // how often the label's Xid came in the exporter's last window
    uncorrected,   // a counter of errors that no ECC corrects; a reset sets it to 0
    persistent,    // the same, which no reset sets to 0
    remap_failed,  // 1 once a row of memory can't be replaced any more
    corrected,     // a counter of what does no harm
    throttled,     // a counter of ns
    power,
    energy,  // a counter of mJ
    temperature,
    clock,
};

struct DcgmField {
    const char* name;
    const char* column;  // of dmon
    DcgmMeaning meaning;
    const char* unit;
    double value_max;  // more can't be, in this unit
};

constexpr double no_limit = 9e18;

// dcgm-exporter's default-counters.csv; the columns as dcgmi dmon -l names them.
constexpr DcgmField dcgm_fields[] = {
    {"DCGM_FI_DEV_XID_ERRORS", "XIDER", DcgmMeaning::last_xid, "an Xid", 999},
    {"DCGM_EXP_XID_ERRORS_COUNT", "", DcgmMeaning::recent_xids, "a count", 1e9},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "EDVTL", DcgmMeaning::uncorrected, "a count", no_limit},
    {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "EDATL", DcgmMeaning::persistent, "a count", no_limit},
    {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "", DcgmMeaning::remap_failed, "0 or 1", 1},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "ESVTL", DcgmMeaning::corrected, "a count", no_limit},
    {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "ESATL", DcgmMeaning::corrected, "a count", no_limit},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "", DcgmMeaning::corrected, "rows", no_limit},
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "", DcgmMeaning::corrected, "rows", no_limit},
    {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "", DcgmMeaning::corrected, "a count",
     no_limit},
    {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "", DcgmMeaning::corrected, "a count",
     no_limit},
    {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "", DcgmMeaning::corrected, "a count",
     no_limit},
    {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "", DcgmMeaning::corrected, "a count",
     no_limit},
    {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "", DcgmMeaning::corrected, "a count", no_limit},
    {"DCGM_FI_DEV_THERMAL_VIOLATION", "TVIOL", DcgmMeaning::throttled, "ns", no_limit},
    {"DCGM_FI_DEV_POWER_VIOLATION", "PVIOL", DcgmMeaning::throttled, "ns", no_limit},
    {"DCGM_FI_DEV_RELIABILITY_VIOLATION", "", DcgmMeaning::throttled, "ns", no_limit},
    {"DCGM_FI_DEV_POWER_USAGE", "POWER", DcgmMeaning::power, "W", 5000},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "TOTEC", DcgmMeaning::energy, "mJ", no_limit},
    {"DCGM_FI_DEV_GPU_TEMP", "TMPTR", DcgmMeaning::temperature, "degrees C", 130},
    {"DCGM_FI_DEV_MEMORY_TEMP", "MMTMP", DcgmMeaning::temperature, "degrees C", 130},
    {"DCGM_FI_DEV_SM_CLOCK", "SMCLK", DcgmMeaning::clock, "MHz", 10'000},
};

const DcgmField* dcgm_field(const std::string& name) {
    for (const DcgmField& field : dcgm_fields) {
        if (name == field.name || (*field.column != 0 && name == field.column)) return &field;
    }
    return nullptr;
}

bool is_counter(DcgmMeaning meaning) {
    return meaning == DcgmMeaning::uncorrected || meaning == DcgmMeaning::persistent ||
           meaning == DcgmMeaning::corrected || meaning == DcgmMeaning::throttled ||
           meaning == DcgmMeaning::energy;
}

// DCGM's words for "not supported", "not found" and the like are numbers (dcgm_structs.h).
bool is_blank(double value) {
    return value >= 9223372036854775792.0 || value == 140737488355328.0 ||
           (value >= 2147483632.0 && value <= 2147483647.0);
}

class DcgmImport : private Importer {
  public:
    using Importer::Importer;

    void run() {
        for (const std::string& file : options_.files) {
            file_ = file;
            const DcgmFile read = read_dcgm(file, options_.skip_bad, diagnostics_,
                                            [&](const DcgmSample& sample) { take(sample); });
            bad_ += read.bad;
            if (!read.dmon) ++scrape_;
        }
        diagnostics_.raise_if_any();
        check_exposure();
        diagnostics_.raise_if_any();
        say_what_was_seen();
        say_what_is_slow();
        part_.left_out(
            "what DCGM can't tell: a node that loses power or panics takes its exporter along");
        const double tick = seconds_of_tick();
        GpuFaults faults;
        for (Fault& seen : faults_) {
            seen.report.at_s =
                static_cast<std::int64_t>(static_cast<double>(seen.report.at_s) * tick);
            if (seen.xid > 0) {
                faults.xid(std::move(seen.report), seen.xid);
            } else {
                faults.fault(std::move(seen.report), seen.cause, std::move(seen.what));
            }
        }
        if (faults_.empty()) {
            part_.note("Nothing failed: 0 to {:.3g} a node and day with 95 %.",
                       counted_rate(0, *options_.node_days).high);
        }
        faults.write(*options_.node_days, part_);
    }

  private:
    // What a series has come to.
    struct Series {
        double value = 0;
        std::int64_t at = 0;
        std::int64_t first_at = 0;
        double rises = 0;
        double sum = 0;
        std::int64_t samples = 0;
    };
    struct Fault {
        GpuReport report;
        int xid;  // 0: of `cause`
        const char* cause;
        std::string what;
    };

    void take(const DcgmSample& sample) {
        const DcgmField* field = dcgm_field(sample.field);
        if (field == nullptr) {
            others_.insert(sample.field);
            return;
        }
        if (is_blank(sample.value)) {
            ++blank_;
            return;
        }
        if (refused(*field, sample)) return;
        ++(sample.at_s ? timed_ : untimed_);
        if (timed_ > 0 && untimed_ > 0) {
            throw ScenarioError(fmt::format("{}:{}: some samples have times and others have none",
                                            visible(file_), sample.line),
                                "one kind of file at a time");
        }
        const std::int64_t at = sample.at_s.value_or(scrape_ + sample.tick);
        const auto [entry, first] = series_.try_emplace({field, sample.card, sample.xid});
        Series& series = entry->second;
        if (!first && out_of_order(sample, at, series)) return;
        if (first) series.first_at = at;
        const double rise =
            first || !is_counter(field->meaning) ? 0 : rise_of(*field, sample, series);
        count(*field, sample, series, first, rise);
        series.rises += rise;
        series.value = sample.value;
        series.at = at;
        series.sum += sample.value;
        ++series.samples;
        times_[sample.host].insert(at);
    }

    void count(const DcgmField& field, const DcgmSample& sample, const Series& before, bool first,
               double rise) {
        switch (field.meaning) {
            case DcgmMeaning::last_xid:
                if (first) {
                    held_ += sample.value > 0;
                } else if (sample.value == 0) {
                    resets_ += before.value > 0;
                } else if (sample.value != before.value) {
                    fault(sample, static_cast<int>(sample.value), "", "");
                }
                return;
            case DcgmMeaning::recent_xids: {
                const auto code = whole_value(sample.xid);
                if (!code || *code < 1 || *code > 999) {
                    return bad({sample.line, 1}, sample.field,
                               "has no label xid with an Xid's number",
                               "--skip-bad leaves such samples out");
                }
                if (sample.value > (first ? 0 : before.value)) {
                    fault(sample, static_cast<int>(*code), "", "");
                }
                return;
            }
            case DcgmMeaning::uncorrected:
            case DcgmMeaning::persistent:
                if (rise > 0) fault(sample, 0, "gpu_hbm", fmt::format("{} rose", field.name));
                return;
            case DcgmMeaning::remap_failed:
                if (first) {
                    held_ += sample.value > 0;
                } else if (sample.value > before.value) {
                    fault(sample, 0, "gpu_row_remap_failure", field.name);
                }
                return;
            default:
                return;
        }
    }

    void fault(const DcgmSample& sample, int xid, const char* cause, std::string what) {
        faults_.push_back({{sample.host, sample.gpu, sample.at_s.value_or(scrape_ + sample.tick),
                            fmt::format("{}:{}", file_, sample.line)},
                           xid,
                           cause,
                           std::move(what)});
    }

    // Each is so by DCGM's own units: another number is in another unit, or another field's.
    bool refused(const DcgmField& field, const DcgmSample& sample) {
        const double value = sample.value;
        const bool code =
            field.meaning == DcgmMeaning::last_xid || field.meaning == DcgmMeaning::remap_failed;
        if (value >= 0 && value <= field.value_max && (!code || value == std::floor(value))) {
            return false;
        }
        bad({sample.line, 1}, sample.field, fmt::format("{:g} can't be {}", value, field.unit),
            "another unit? --skip-bad leaves such samples out");
        return true;
    }

    bool out_of_order(const DcgmSample& sample, std::int64_t at, const Series& series) {
        if (at > series.at) return false;
        if (at < series.at) {
            bad({sample.line, 1}, sample.field,
                fmt::format("goes back {} s in time on {} GPU {}", series.at - at, sample.host,
                            sample.gpu),
                "give the files in the order of their times; --skip-bad leaves such samples out");
        } else if (sample.value != series.value) {
            bad({sample.line, 1}, sample.field,
                fmt::format("two values at one time on {} GPU {}", sample.host, sample.gpu),
                "two exporters under one name? --skip-bad takes the first");
        }
        return true;
    }

    // How much a counter has counted. One that fell was reset, and has counted again from 0.
    double rise_of(const DcgmField& field, const DcgmSample& sample, const Series& series) {
        const double by = sample.value - series.value;
        const std::int64_t seconds = sample.at_s ? *sample.at_s - series.at : 0;
        if (field.meaning == DcgmMeaning::throttled && seconds > 0 &&
            by > 1.05e9 * static_cast<double>(seconds + 1)) {
            bad({sample.line, 1}, sample.field,
                fmt::format("counts {:g} s within {} s on {} GPU {}", by / 1e9, seconds,
                            sample.host, sample.gpu),
                "it is in ns, whatever an older help text says; another unit?");
            return 0;
        }
        if (by >= 0) return by;
        if (field.meaning == DcgmMeaning::persistent) {
            bad({sample.line, 1}, sample.field,
                fmt::format("falls from {:g} to {:g} on {} GPU {}, and no reset sets it to 0",
                            series.value, sample.value, sample.host, sample.gpu),
                "another GPU in its place? Export with the label UUID; --skip-bad goes on from "
                "there");
            return 0;
        }
        ++resets_;
        return sample.value;
    }

    // Each host's time between its samples, without gaps: these are ten times as long as usual, and five
    // minutes at least.
    double watched_days() const {
        double seconds = 0;
        for (const auto& [host, times] : times_) {
            std::vector<std::int64_t> apart;
            for (auto at = times.begin(); at != times.end() && std::next(at) != times.end(); ++at) {
                apart.push_back(*std::next(at) - *at);
            }
            if (apart.empty()) continue;
            std::vector<std::int64_t> sorted = apart;
            std::ranges::sort(sorted);
            const std::int64_t gap = std::max<std::int64_t>(300, 10 * sorted[sorted.size() / 2]);
            for (const std::int64_t s : apart) seconds += s <= gap ? static_cast<double>(s) : 0;
        }
        return seconds / 86400;
    }

    // Without times: what --node-days leaves for each sample of a host.
    double seconds_of_tick() const {
        if (timed_ > 0) return 1;
        double spans = 0;
        for (const auto& [host, times] : times_) spans += static_cast<double>(times.size()) - 1;
        return *options_.node_days * 86400 / std::max(1.0, spans);
    }

    void check_exposure() {
        const bool any = std::ranges::any_of(
            series_, [](const auto& entry) { return entry.second.samples > 1; });
        const bool tells = std::ranges::any_of(series_, [](const auto& entry) {
            return std::get<0>(entry.first)->meaning <= DcgmMeaning::remap_failed;
        });
        if (!tells) {
            return error("has no field of DCGM that tells of failures",
                         "DCGM_FI_DEV_XID_ERRORS, DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, ...: "
                         "dcgm-exporter's text, or columns of dcgmi dmon");
        }
        if (!any) {
            return error("a snapshot: one sample of each series, and nothing that changes",
                         "several scrapes in their order, or promtool tsdb dump-openmetrics, which "
                         "has times");
        }
        if (options_.node_days) return;
        const std::string seen =
            timed_ > 0 ? fmt::format("the samples cover {:.4g}", watched_days())
                       : fmt::format("{} hosts in samples that have no time", times_.size());
        error("says of changes, not how many nodes were watched",
              fmt::format(
                  "give --node-days: nodes times days, down times without an exporter left out; {}",
                  seen));
    }

    void say_what_was_seen() {
        const double days = *options_.node_days;
        part_.note("Exposure: {:.6g} node-days, of --node-days; {} hosts, {} samples.", days,
                   times_.size(), timed_ + untimed_);
        if (timed_ > 0) {
            const double covered = watched_days();
            part_.note("The samples cover {:.6g} node-days.", covered);
            if (covered > 1.1 * days || covered < 0.9 * days) {
                warning(fmt::format("--node-days says {:.6g}, and the samples cover {:.6g}", days,
                                    covered),
                        "rates are what was seen over --node-days");
            }
        } else {
            part_.note("No sample has a time: by --node-days they are {:.4g} s apart.",
                       seconds_of_tick());
        }
        part_.note(
            "An Xid stays until a reset: each change is one. Two alike in a row, and what came and "
            "went between samples, can't be seen: the rates are at least so.");
        if (held_ > 0) {
            part_.note(
                "{} GPUs had an Xid or a failed row when their samples begin: when it came nobody "
                "knows, and it isn't counted.",
                held_);
        }
        if (resets_ > 0) part_.note("{} times a counter or an Xid was reset.", resets_);
        if (blank_ > 0) part_.note("{} samples are DCGM's numbers for: no value.", blank_);
        if (bad_ > 0) part_.note("{} malformed lines or samples were skipped.", bad_);
        for (const DcgmField& field : dcgm_fields) {
            if (field.meaning != DcgmMeaning::corrected) continue;
            double rises = 0;
            std::int64_t cards = 0;
            for (const auto& [key, series] : series_) {
                if (std::get<0>(key) != &field || series.rises == 0) continue;
                rises += series.rises;
                ++cards;
            }
            if (cards > 0) {
                part_.note("{} rose by {:g} on {} GPUs: corrected or bookkeeping, no failure.",
                           field.name, rises, cards);
            }
        }
        if (!others_.empty()) {
            part_.note("Not looked at: {}.", some_of({others_.begin(), others_.end()}));
        }
    }

    // What throttles, runs below the others' clock, or draws what its energy denies.
    void say_what_is_slow() {
        std::vector<double> clocks;
        std::map<std::string, double> watts;
        for (const auto& [key, series] : series_) {
            const double mean = series.sum / static_cast<double>(series.samples);
            const DcgmMeaning meaning = std::get<0>(key)->meaning;
            if (meaning == DcgmMeaning::clock) clocks.push_back(mean);
            if (meaning == DcgmMeaning::power) watts[std::get<1>(key)] = mean;
        }
        std::ranges::sort(clocks);
        for (const auto& [key, series] : series_) {
            const DcgmField& field = *std::get<0>(key);
            const std::string& card = std::get<1>(key);
            const double mean = series.sum / static_cast<double>(series.samples);
            const double seconds = static_cast<double>(series.at - series.first_at);
            if (field.meaning == DcgmMeaning::clock && mean < 0.8 * clocks[clocks.size() / 2]) {
                part_.note("Slow? {}: its SMs run at {:.0f} MHz, most at {:.0f}.", card, mean,
                           clocks[clocks.size() / 2]);
            }
            if (timed_ == 0 || seconds <= 0) continue;
            if (field.meaning == DcgmMeaning::throttled && series.rises > 0.01e9 * seconds) {
                part_.note("Slow? {}: {:.3g} % of its time in {}.", card,
                           series.rises / 1e7 / seconds, field.name);
            }
            const auto drawn = watts.find(card);
            const double by_energy = series.rises / 1000 / seconds;
            if (field.meaning != DcgmMeaning::energy || drawn == watts.end()) continue;
            if (by_energy < 0.5 * drawn->second || by_energy > 2 * drawn->second) {
                warning(Position{}, field.name,
                        fmt::format("says {:.4g} W of {}, and its power {:.4g} W", by_energy, card,
                                    drawn->second),
                        "one of both is in another unit: mJ and W are DCGM's");
            }
        }
    }

    std::int64_t scrape_ = 0;  // files before this one
    std::int64_t blank_ = 0, held_ = 0, resets_ = 0;
    std::int64_t timed_ = 0, untimed_ = 0;
    std::set<std::string> others_;
    std::map<std::string, std::set<std::int64_t>> times_;  // of each host
    // By field, card and the label xid.
    std::map<std::tuple<const DcgmField*, std::string, std::string>, Series> series_;
    std::vector<Fault> faults_;
};

}  // namespace

Import import_dcgm = run_importer<DcgmImport>;

}  // namespace railyard
