// What PyTorch's profiler writes (*.pt.trace.json, gzipped or not): step time, jitter, and how much of the
// communication nothing hides.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

struct Span {
    std::int64_t from = 0;  // ns of the trace's own clock
    std::int64_t to = 0;
};

// What one file has, which is one rank's.
struct RankTrace {
    std::map<std::int64_t, std::int64_t> steps;                        // when each began, by number
    std::map<std::int64_t, std::int64_t> gpu_steps;                    // the same on the GPU
    std::map<std::int64_t, std::vector<Span>> compute, communication;  // by device
    std::map<std::string, std::int64_t> collectives;                   // kernels by name
    std::int64_t bad = 0;
    std::string first_bad;
};

struct Event {
    std::string phase, category, name;
    double ts = std::nan("");
    double dur = std::nan("");
    std::int64_t process = 0;
};

bool communicates(const std::string& kernel) {
    return kernel.starts_with("nccl") || kernel.starts_with("rccl") ||
           kernel.starts_with("mscclKernel");
}

// The events one after another: a trace may be larger than memory as a tree.
class EventReader : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit EventReader(RankTrace& out) : out_(out) {}

    const std::string& wrong() const { return wrong_; }
    bool any() const { return events_ > 0; }

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t v) override { return number(static_cast<double>(v)); }
    bool number_unsigned(number_unsigned_t v) override { return number(static_cast<double>(v)); }
    bool number_float(number_float_t v, const string_t&) override { return number(v); }
    bool binary(binary_t&) override { return true; }
    bool string(string_t& v) override {
        if (!in_event() || depth_ != event_depth_) return true;
        if (key_ == "ph") event_.phase = v;
        if (key_ == "cat") event_.category = lower_case(v);
        if (key_ == "name") event_.name = v;
        return true;
    }
    bool key(string_t& v) override {
        key_ = v;
        return true;
    }
    bool start_array(std::size_t) override {
        const bool ours = depth_ == 0 || (depth_ == 1 && key_ == "traceEvents");
        if (ours && list_depth_ == 0) list_depth_ = depth_ + 1;
        ++depth_;
        return true;
    }
    bool end_array() override {
        if (depth_ == list_depth_) list_depth_ = 0;
        --depth_;
        return true;
    }
    bool start_object(std::size_t) override {
        ++depth_;
        if (list_depth_ > 0 && depth_ == list_depth_ + 1) {
            event_depth_ = depth_;
            event_ = {};
        }
        return true;
    }
    bool end_object() override {
        if (in_event() && depth_ == event_depth_) {
            take();
            event_depth_ = 0;
        }
        --depth_;
        return true;
    }
    bool parse_error(std::size_t at, const std::string&,
                     const nlohmann::json::exception&) override {
        wrong_ = fmt::format("is no JSON at byte {}, after {} events", at, events_);
        return false;
    }

  private:
    bool in_event() const { return event_depth_ > 0; }
    bool number(double v) {
        if (!in_event() || depth_ != event_depth_) return true;
        if (key_ == "ts") event_.ts = v;
        if (key_ == "dur") event_.dur = v;
        if (key_ == "pid" && std::abs(v) < 1e15) event_.process = std::llround(v);
        return true;
    }
    void take() {
        ++events_;
        if (event_.phase != "X") return;
        const std::string& what = event_.category;
        const bool step = what == "user_annotation" || what == "gpu_user_annotation";
        if (what != "kernel" && !step) return;
        constexpr double far = 9e15;  // us; since 1970 it is 1.8e15
        if (!(std::abs(event_.ts) < far) || !(event_.dur >= 0 && event_.dur < far)) {
            if (out_.bad++ == 0) {
                out_.first_bad = fmt::format("traceEvents[{}]: {} from {} us for {} us",
                                             events_ - 1, event_.name, event_.ts, event_.dur);
            }
            return;
        }
        const std::int64_t from = std::llround(1e3 * event_.ts);
        if (step) return take_step(what == "gpu_user_annotation", from);
        const bool talks = communicates(event_.name);
        auto& spans = talks ? out_.communication : out_.compute;
        spans[event_.process].push_back({from, from + std::llround(1e3 * event_.dur)});
        // The name up to its first bracket: ncclDevKernel_AllReduce_Sum_bf16_RING_LL.
        if (talks) ++out_.collectives[event_.name.substr(0, event_.name.find('('))];
    }

    void take_step(bool on_gpu, std::int64_t from) {
        constexpr std::string_view prefix = "ProfilerStep#";
        if (!event_.name.starts_with(prefix)) return;
        const auto number = whole_value(std::string_view(event_.name).substr(prefix.size()));
        if (number) (on_gpu ? out_.gpu_steps : out_.steps).try_emplace(*number, from);
    }

    RankTrace& out_;
    std::string key_, wrong_;
    std::size_t depth_ = 0;
    std::size_t list_depth_ = 0;   // of the list of events; 0: not in it
    std::size_t event_depth_ = 0;  // of the event that is being read; 0: none
    Event event_;
    std::int64_t events_ = 0;
};

// Plain text comes through as it is. Throws ScenarioError.
std::string inflated(const std::string& path) {
    constexpr std::size_t most = std::size_t{4} << 30;
    std::string out;
    const gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) throw ScenarioError(fmt::format("{}: can't be read", visible(path)));
    std::vector<char> part(1 << 16);
    int got = 0;
    while ((got = gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0 &&
           out.size() < most) {
        out.append(part.data(), static_cast<std::size_t>(got));
    }
    const bool whole = got == 0 && gzclose_r(file) == Z_OK;
    if (whole) return out;
    if (got != 0) gzclose_r(file);
    throw ScenarioError(
        fmt::format("{}: ends within its compressed data, or is larger than 4 GiB", visible(path)),
        "copy it again, or profile fewer steps");
}

// Disjoint and in order.
std::vector<Span> joined(std::vector<Span> spans) {
    std::ranges::sort(spans, {}, &Span::from);
    std::vector<Span> out;
    for (const Span& each : spans) {
        if (!out.empty() && each.from <= out.back().to) {
            out.back().to = std::max(out.back().to, each.to);
        } else {
            out.push_back(each);
        }
    }
    return out;
}

// How much of a window joined spans fill.
std::int64_t filled(const std::vector<Span>& spans, Span window) {
    std::int64_t out = 0;
    for (const Span& each : spans) {
        out += std::max<std::int64_t>(
            0, std::min(each.to, window.to) - std::max(each.from, window.from));
    }
    return out;
}

struct Step {
    double step, compute, communication, exposed;  // s
};

constexpr std::size_t enough_steps = 30;

constexpr const char* step_description = R"([run]
duration = "1 h"
replicas = 1

# The job that was traced: say which it is, as in
# [cluster]
# nodes = 16
# [job]
# model = "llama2_70b"
# parallel.tensor = 8

[job]
checkpoint.mode = "none"

[table]
row = "{id}"

[[table.expect]]
quantity = "ms a step"
published = "step_ms"
simulated = "1e3 * step_time"
)";

class Kineto : private Importer {
  public:
    using Importer::Importer;

    void run() {
        for (const std::string& file : options_.files) read(file);
        diagnostics_.raise_if_any();
        if (steps_.empty()) {
            diagnostics_.error(options_.files[0], {}, "", "no two steps follow each other");
            diagnostics_.raise_if_any();
        }
        write();
    }

  private:
    void read(const std::string& file) {
        RankTrace trace;
        EventReader reader(trace);
        const std::string text = inflated(file);
        if (!nlohmann::json::sax_parse(text, &reader)) {
            return diagnostics_.error(file, {}, "", reader.wrong(), "was it cut off?");
        }
        if (!reader.any()) {
            return diagnostics_.error(file, {}, "",
                                      "has no traceEvents: it is no trace of the profiler");
        }
        if (trace.bad > 0 && !options_.skip_bad) {
            diagnostics_.error(file, {}, "",
                               fmt::format("{} x event without a time, or with a negative one; {}",
                                           trace.bad, trace.first_bad),
                               "--skip-bad leaves them out");
        }
        if (trace.bad > 0)
            notes_.push_back(
                fmt::format("{}: left out for a bad time: {} x event", file, trace.bad));
        if (trace.compute.empty() && trace.communication.empty()) {
            return diagnostics_.error(file, {}, "",
                                      "no kernel events: the trace has only CPU activity",
                                      "profile with ProfilerActivity.CUDA");
        }
        if (trace.steps.size() < 2) {
            return diagnostics_.error(
                file, {}, "",
                fmt::format("{} ProfilerStep: a step lasts from its begin to the next one's",
                            trace.steps.size()),
                "profile two steps or more, and call step() of the profiler after each");
        }
        add_steps(file, trace);
    }

    void add_steps(const std::string& file, const RankTrace& trace) {
        // The CPU runs ahead: what the GPU says of its own steps is nearer.
        const bool gpu = trace.gpu_steps.size() == trace.steps.size();
        const auto& begins = gpu ? trace.gpu_steps : trace.steps;
        std::int64_t busiest = 0;
        std::int64_t most = -1;
        for (const auto& [device, spans] : trace.compute) {
            const std::int64_t here = filled(joined(spans), {INT64_MIN / 2, INT64_MAX / 2});
            if (here > most) std::tie(busiest, most) = std::pair(device, here);
        }
        const auto of_device = [&](const auto& by_device) {
            const auto found = by_device.find(busiest);
            return found == by_device.end() ? std::vector<Span>{} : joined(found->second);
        };
        const std::vector<Span> compute = of_device(trace.compute);
        const std::vector<Span> communication = of_device(trace.communication);
        std::vector<Span> both = compute;
        both.insert(both.end(), communication.begin(), communication.end());
        both = joined(std::move(both));
        std::vector<Step> found;
        for (auto at = begins.begin(); std::next(at) != begins.end(); ++at) {
            const auto next = std::next(at);
            const Span window{at->second, next->second};
            if (window.to <= window.from) {
                return diagnostics_.error(
                    file, {}, "",
                    fmt::format("ProfilerStep#{} begins before ProfilerStep#{}: a clock has jumped",
                                next->first, at->first));
            }
            if (next->first != at->first + 1) continue;  // steps between were not profiled
            const double busy = 1e-9 * static_cast<double>(filled(compute, window));
            found.push_back({1e-9 * static_cast<double>(window.to - window.from), busy,
                             1e-9 * static_cast<double>(filled(communication, window)),
                             1e-9 * static_cast<double>(filled(both, window)) - busy});
        }
        const bool first_out = found.size() > 2;
        notes_.push_back(fmt::format(
            "{}: {} x ProfilerStep, by {}{}{}", file, found.size(),
            gpu ? "the GPU's begins" : "the CPU's begins",
            first_out ? ", of which the first, which the profiler slows, is left out" : "",
            trace.compute.size() > 1
                ? fmt::format("; of {} devices the busiest counts", trace.compute.size())
                : ""));
        steps_.insert(steps_.end(), found.begin() + (first_out ? 1 : 0), found.end());
        for (const auto& [name, count] : trace.collectives) collectives_[name] += count;
    }

    void write() const {
        for (const std::string& note : notes_) part_.note("{}", note);
        const double step = mean(&Step::step);
        const auto share = [&](double Step::*of) { return 100 * mean(of) / step; };
        part_.note(
            "Of a step kernels compute {:.1f} %, communicate {:.1f} %, alone {:.1f} %; {:.1f} % "
            "have no kernel.",
            share(&Step::compute), share(&Step::communication), share(&Step::exposed),
            100 - share(&Step::compute) - share(&Step::exposed));
        part_.note("A kernel that communicates also waits for the slowest rank.");
        for (const auto& [name, count] : collectives_) part_.note("{} x {}", count, name);
        part_.left_out("the model, its plan and the cluster");
        const std::string origin =
            fmt::format("mean of {} x ProfilerStep, {}", steps_.size(), some_of(options_.files));
        const std::string jitter =
            steps_.size() < enough_steps ? "" : fmt::format("{:.4g}", deviation());
        if (jitter.empty()) {
            part_.left_out("jitter: it takes {1} steps, here is {0} x ProfilerStep", steps_.size(),
                           enough_steps);
        }
        if (std::filesystem::path(options_.output).extension() == ".csv") {
            part_.row(
                "id,ranks,steps,step_ms,compute_ms,communication_ms,exposed_ms,jitter,source");
            std::string source = std::filesystem::path(options_.files[0]).filename().string();
            std::erase_if(source, [](char c) { return c == ',' || c == '"'; });
            part_.row(fmt::format("{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{},{}", "kineto",
                                  options_.files.size(), steps_.size(), 1e3 * step,
                                  1e3 * mean(&Step::compute), 1e3 * mean(&Step::communication),
                                  1e3 * mean(&Step::exposed), jitter, visible(source)));
            part_.beside(".toml", std::string("title = \"a step, traced\"\n\n") + step_description);
            return;
        }
        part_.section("job");
        part_.value("step.time", toml_text(fmt::format("{:.6g} ms", 1e3 * step)), origin);
        if (!jitter.empty()) {
            part_.section("job.parallel");
            part_.value("jitter", jitter, origin + ": what a rank computes");
        }
    }

    double mean(double Step::*of) const {
        double sum = 0;
        for (const Step& each : steps_) sum += each.*of;
        return sum / static_cast<double>(steps_.size());
    }

    // The deviation of what a rank computes in a step, over the step: waiting for others is not its own.
    double deviation() const {
        const double middle = mean(&Step::compute);
        double sum = 0;
        for (const Step& each : steps_) sum += (each.compute - middle) * (each.compute - middle);
        return std::sqrt(sum / static_cast<double>(steps_.size() - 1)) / mean(&Step::step);
    }

    std::vector<Step> steps_;
    std::vector<std::string> notes_;
    std::map<std::string, std::int64_t> collectives_;
};

}  // namespace

Import import_kineto = run_importer<Kineto>;

}  // namespace railyard
