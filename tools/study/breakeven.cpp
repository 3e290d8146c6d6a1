#include "tools/study/breakeven.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/error.h"
#include "tools/program/lists.h"
#include "tools/study/deciding_metric.h"

namespace railyard {

namespace {

constexpr double crossing_tolerance = 1e-4;  // of the range, for the crossing
constexpr double interval_tolerance = 1e-3;  // and for the ends of its interval
constexpr int steps_max = 60;

class Search {
  public:
    Search(const KeyRange& range, Better better, const DifferenceFunction& difference)
        : range_(range), better_(better), difference_(difference) {}

    BreakevenResult run(std::size_t points) {
        BreakevenResult out;
        try {
            for (std::size_t i = 0; i < points; ++i) {
                const double share = static_cast<double>(i) / static_cast<double>(points - 1);
                const double x = range_.at(share);
                if (!out.scan.empty() && out.scan.back().x == x) continue;
                out.scan.push_back({x, at(share)});
                scan_.push_back(share);
            }
            std::size_t last = 0;  // where the difference was not exactly zero
            for (std::size_t i = 1; i < scan_.size(); ++i) {
                const double before = out.scan[last].pairs.difference;
                const double after = out.scan[i].pairs.difference;
                if (after == 0) continue;
                const double from = scan_[std::exchange(last, i)];
                if (before == 0 || (before < 0) == (after < 0)) continue;
                out.crossings.push_back(cross({from, scan_[i]}));
            }
        } catch (const Interrupted&) {
            out.interrupted = true;
        }
        out.evaluations = known_.size();
        return out;
    }

  private:
    using Bound = std::function<double(const PairedComparison&)>;
    struct Bracket {  // shares of the range
        double near = 0;
        double far = 1;
    };

    const PairedComparison& at(double share) {
        const double x = range_.at(share);
        const auto found = known_.find(x);
        if (found != known_.end()) return found->second;
        const std::optional<PairedComparison> pairs = difference_(x);
        if (!pairs) throw Interrupted();
        return known_.emplace(x, *pairs).first->second;
    }

    // The root of `bound` between two shares where its signs differ, as narrow as the tolerance or, of whole
    // numbers, one apart. Regula falsi with Illinois' halving of the end that stays, and a bisection whenever
    // a third of the bracket was not gained: differences may jump.
    Bracket narrow(Bracket b, const Bound& bound, double width_wanted) {
        double near = bound(at(b.near));
        double far = bound(at(b.far));
        bool bisect = false;
        for (int step = 0; step < steps_max && !narrow_enough(b, width_wanted); ++step) {
            const double width = b.far - b.near;
            double share = b.near + width * near / (near - far);
            const double margin = std::abs(width) * 0.01;
            const double low = std::min(b.near, b.far) + margin;
            const double high = std::max(b.near, b.far) - margin;
            if (bisect || !std::isfinite(share)) share = b.near + width / 2;
            share = std::clamp(share, low, high);
            if (range_.whole() &&
                (range_.at(share) == range_.at(b.near) || range_.at(share) == range_.at(b.far))) {
                share = b.near + width / 2;
            }
            const double value = bound(at(share));
            if ((value < 0) == (near < 0) && value != 0) {
                b.near = share;
                near = value;
                far /= 2;
            } else {
                b.far = share;
                far = value;
                near /= 2;
            }
            bisect = std::abs(b.far - b.near) > std::abs(width) * 2 / 3;
        }
        return b;
    }

    bool narrow_enough(const Bracket& b, double width) const {
        if (range_.whole()) return std::abs(range_.at(b.far) - range_.at(b.near)) <= 1;
        return std::abs(b.far - b.near) <= width;
    }

    // From `from` on, in the direction of the scan's order, the first place where the interval leaves out
    // zero: with the sign that it has on this side of the crossing, or, beyond another flip, with the other.
    std::optional<double> end_of_open(const Bound& near_side, const Bound& far_side, double from) {
        double near = from;
        for (const double share : scan_) {
            if (share == near) continue;
            for (const Bound* bound : {&near_side, &far_side}) {
                const bool before = (*bound)(at(near)) < 0;
                const bool after = (*bound)(at(share)) < 0;
                // The far side's is left once, at `from`: that is the crossing.
                if (before == after || (bound == &far_side && near == from)) continue;
                return range_.at(narrow({near, share}, *bound, interval_tolerance).far);
            }
            near = share;
        }
        return std::nullopt;
    }

    Crossing cross(const Bracket& bracket) {
        const auto mean = [](const PairedComparison& p) { return p.difference; };
        const Bracket narrowed = narrow(bracket, mean, crossing_tolerance);
        Crossing out;
        out.before = range_.at(narrowed.near);
        out.x = range_.at(narrowed.far);
        const bool b_more = mean(at(bracket.near)) > 0;
        out.below = b_more == (better_ == Better::higher) ? Verdict::second : Verdict::first;

        if (at(narrowed.near).interval.half_width() == 0 &&
            at(narrowed.far).interval.half_width() == 0) {
            out.low = out.before;  // no noise
            out.high = out.x;
            return out;
        }

        // The interval's end that is nearer to zero, on either side of the crossing.
        const auto low = [](const PairedComparison& p) { return p.interval.low; };
        const auto high = [](const PairedComparison& p) { return p.interval.high; };
        const std::vector<double> whole_scan = scan_;
        const auto side = [&](double from, bool upwards, const Bound& near_side,
                              const Bound& far_side) {
            scan_ = whole_scan;
            std::erase_if(scan_,
                          [&](double share) { return upwards ? share <= from : share >= from; });
            if (!upwards) std::ranges::reverse(scan_);
            return end_of_open(near_side, far_side, from);
        };
        const Bound before = b_more ? Bound(low) : Bound(high);
        const Bound after = b_more ? Bound(high) : Bound(low);
        out.low = side(narrowed.far, false, before, after);
        out.high = side(narrowed.near, true, after, before);
        scan_ = whole_scan;
        return out;
    }

    const KeyRange& range_;
    Better better_;
    const DifferenceFunction& difference_;
    std::vector<double> scan_;                  // shares
    std::map<double, PairedComparison> known_;  // by the key's value
};

ScenarioChanges with_key(const KeyedDesign& design, const KeyRange& range, double x) {
    ScenarioChanges changes = design.changes;
    if (design.has_key) changes.settings.push_back(range.setting(x));
    return changes;
}

// The same errors, with the value of the key that they are at.
[[noreturn]] void throw_at(const BreakevenDesigns& designs, double x,
                           std::vector<Diagnostic> diagnostics) {
    std::string& help = diagnostics.back().help;
    help += fmt::format("{}with {} = {}", help.empty() ? "" : "\n    ", designs.range.key(),
                        designs.range.short_value(x));
    throw ScenarioError(std::move(diagnostics));
}

// None: Ctrl-C.
std::optional<Trial> trial_at(const BreakevenDesigns& designs, const KeyedDesign& design,
                              double x) {
    auto trial = run_trials(design.trials, {with_key(design, designs.range, x)})[0];
    if (trial && !trial->possible()) throw_at(designs, x, {{"", {}, "", trial->problem, ""}});
    return trial;
}

VerdictEstimates estimates_at(const BreakevenDesigns& designs, const DifferenceAt& end) {
    const auto judged = [&](const char* name, const KeyedDesign& design) {
        return JudgedDesign{name, design.trials.text, design.trials.file,
                            with_key(design, designs.range, end.x)};
    };
    return verdict_estimates(designs.a.trials, judged("A", designs.a), judged("B", designs.b),
                             {designs.metric, better_of(designs.metric), end.pairs.difference,
                              end.pairs.verdict != Verdict::undecided});
}

}  // namespace

BreakevenResult find_breakeven(const KeyRange& range, std::size_t scan_points, Better better,
                               const DifferenceFunction& difference) {
    return Search(range, better, difference).run(scan_points);
}

Scenario load_at(const BreakevenDesigns& designs, const KeyedDesign& design, double x) {
    try {
        return load_scenario(design.trials.text, design.trials.file,
                             with_key(design, designs.range, x));
    } catch (const ScenarioError& error) {
        throw_at(designs, x, error.diagnostics());
    }
}

void choose_metric(BreakevenDesigns& designs, const std::vector<Scenario>& at_ends) {
    const Scenario& a = at_ends[0];
    const Scenario& b = at_ends[2];
    if (a.seed != b.seed) {
        throw ScenarioError(fmt::format("the designs have different seeds, {} and {}: nothing that "
                                        "could be paired",
                                        a.seed, b.seed),
                            "--seed gives both the same");
    }
    if (designs.metric.empty()) {
        const DecidingMetric by = deciding_metric(mapped(at_ends, work_of));
        designs.metric = by.metric;
        designs.why = by.why;
    }
    for (const Scenario* design : {&a, &b}) {
        find_metric(*design, designs.metric);  // or says that there is none
    }
    for (KeyedDesign* design : {&designs.a, &designs.b}) {
        design->trials.metrics = {designs.metric};
        design->trials.prices = cost_metric(designs.metric) != nullptr;
    }
}

BreakevenResult find_breakeven(const BreakevenDesigns& designs, std::size_t scan_points,
                               const std::function<void()>& tried) {
    const auto difference = [&](double x) -> std::optional<PairedComparison> {
        const std::optional<Trial> a = trial_at(designs, designs.a, x);
        const std::optional<Trial> b = trial_at(designs, designs.b, x);
        if (!a || !b) return std::nullopt;
        tried();
        return compare_trials(*a, *b, 0, designs.metric);
    };
    return find_breakeven(designs.range, scan_points, better_of(designs.metric), difference);
}

std::vector<std::string> EstimatesAtEnds::turning() const {
    std::vector<std::string> out;
    const auto difference = [](const VerdictEstimates& at, const std::string& name, bool high_end) {
        for (const EstimateEnds& e : at.moving) {
            if (e.input.name() == name) return high_end ? e.high : e.low;
        }
        return std::optional(at.judged.difference);
    };
    const auto look = [&](const std::string& name) {
        for (const bool end : {false, true}) {
            const std::optional<double> a = difference(low, name, end);
            const std::optional<double> b = difference(high, name, end);
            if (a && b && ((*a > 0) != (*b > 0)) != crosses()) return true;
        }
        return false;
    };
    std::set<std::string> seen;
    for (const VerdictEstimates* at : {&low, &high}) {
        for (const EstimateEnds& e : at->moving) {
            if (seen.insert(e.input.name()).second && look(e.input.name())) {
                out.push_back(e.input.name());
            }
        }
    }
    return out;
}

EstimatesAtEnds estimates_at_ends(const BreakevenDesigns& designs, const BreakevenResult& result) {
    return {estimates_at(designs, result.scan.front()), estimates_at(designs, result.scan.back())};
}

}  // namespace railyard
