#include "tools/study/design_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "models/campaign/campaign.h"
#include "sim/text.h"
#include "tools/language/settings_diff.h"
#include "tools/study/design_facts.h"
#include "tools/study/design_limits.h"
#include "tools/study/study.h"

namespace railyard {

namespace {

// Without those that have the name of a kind of jobs, or the number of something.
std::vector<std::string> fixed_metric_names() {
    std::vector<std::string> out;
    for (const MetricName& each : metric_names()) {
        const std::string_view pattern = each.pattern;
        if (pattern.find('*') == std::string_view::npos) out.emplace_back(pattern);
    }
    return out;
}

enum class Aim : std::uint8_t { least_cost, least_time, most_tokens, most_work, metric };
const std::vector<std::string> aim_names = {"least_cost", "least_time", "most_tokens", "most_work",
                                            "metric"};

// The leaves of a table of keys, by their whole paths.
void flatten(const Value& table, const std::string& path,
             const std::function<void(const std::string& key, const Value&)>& leaf) {
    for (const Member& member : table.members) {
        const std::string key = path.empty() ? member.key : path + "." + member.key;
        if (member.value.kind == Value::Kind::table && !member.value.find("value")) {
            flatten(member.value, key, leaf);
        } else {
            leaf(key, member.value);
        }
    }
}

// The least time or cost of what is to be done.
DesignObjective least_of_job(const DesignQuestion& q, bool time) {
    const DesignQuestion::Job job = *q.job();
    const std::string what = fmt::format("{:.3g} {}", job.amount, q.work > 0 ? "work" : "tokens");
    if (time)
        return {"days to " + what, job.per_day, job.amount, true, Better::lower, "days", true};
    const double units = job.amount * job.units;
    return {"cost of " + what, job.unit_cost, units, false, Better::lower, "USD", false};
}

class QuestionReader {
  public:
    QuestionReader(DesignQuestion& question, Document& document,
                   std::vector<SchemaRow>* schema = nullptr)
        : q_(question),
          bounds_(AxisBounds::taken_from(document, "design")),
          values_(diagnostics_, document.name),
          top_(values_, document.root.find("design"), "design", {}, schema) {}

    void read() {
        read_keys();
        diagnostics_.raise_if_any();
        check_space();
        diagnostics_.raise_if_any();
    }

    void read_keys() {
        read_objective();
        read_limits();
        read_search();
        read_axes();
        top_.finish();
    }

  private:
    void read_objective();
    void check_objective(Aim aim);
    void read_limits();
    void read_metric_limits(Section& limits, const char* key, const char* doc);
    void read_search();
    void read_axes();
    void read_axis(Section& section, const AxisBounds& bounds);
    void refuse_twice(const Section& section, const AxisBounds& bounds, const Axis& axis);
    void read_options(Section& section, DesignAxis& axis);
    void read_when(const Value& table, DesignAxis& axis);
    void check_key(Section& section, const std::string& where, const std::string& key);
    void check_space();

    DesignQuestion& q_;
    std::vector<AxisBounds> bounds_;  // of each axis
    Diagnostics diagnostics_;
    ValueReader values_;
    Section top_;
    std::string metric_;
};

void QuestionReader::read_objective() {
    int aim = 0;
    top_.choose("objective", aim, aim_names,
                "What is wanted: least_cost of training `tokens` or of `work`, least_time to them, "
                "most_tokens trained or most_work done `over` a time, or the best of a metric");
    top_.read("tokens", q_.tokens, "Tokens that are to be trained",
              {.bound = Bound::positive, .otherwise = "not given"});
    top_.read("work", q_.work,
              "Work of a mix of jobs that is to be done, as jobs.kind.worth counts it",
              {.bound = Bound::positive, .otherwise = "not given"});
    Duration over{};
    top_.read("over", over, "The time over which money is spent, and tokens or work counted",
              {.bound = Bound::positive, .otherwise = "not given"});
    q_.over_s = seconds(over);
    top_.read("metric", metric_, "With objective = \"metric\": the metric of 'railyard run --json'",
              {.otherwise = "not given"});
    if (!top_.describing() && top_.ok()) check_objective(static_cast<Aim>(aim));
}

void QuestionReader::check_objective(Aim aim) {
    const auto need = [&](const char* key, const char* example) {
        if (top_.has(key)) return;
        top_.error(key,
                   fmt::format("is missing: objective = \"{}\" needs it", word_of(aim_names, aim)),
                   example);
    };
    switch (aim) {
        case Aim::least_cost:
            if (q_.work <= 0) need("tokens", "tokens = 1e12");
            if (!q_.priced) {
                top_.error("objective", "prices are missing: the scenario has no [cost]",
                           "[cost] with its prices, or objective = \"least_time\"");
            }
            if (q_.job()) q_.objective = least_of_job(q_, false);
            break;
        case Aim::least_time:
            if (q_.work <= 0) need("tokens", "tokens = 1e12");
            if (q_.job()) q_.objective = least_of_job(q_, true);
            break;
        case Aim::most_tokens:
            need("over", "over = \"730 day\"");
            q_.objective = {fmt::format("tokens in {}", to_text(from_seconds(q_.over_s))),
                            "tokens_per_day",
                            q_.over_s / seconds_per_day,
                            false,
                            Better::higher,
                            "tokens",
                            true};
            break;
        case Aim::most_work:
            need("over", "over = \"365 day\"");
            q_.objective = {fmt::format("work in {}", to_text(from_seconds(q_.over_s))),
                            "work_per_day",
                            q_.over_s / seconds_per_day,
                            false,
                            Better::higher,
                            "",
                            true};
            break;
        case Aim::metric:
            need("metric", "metric = \"goodput\"");
            q_.objective = {metric_, metric_, 1, false, better_of(metric_), "", false};
            break;
    }
    if (q_.work > 0 && q_.tokens > 0) {
        top_.error("work", "has no effect beside tokens: one of them is to be done");
    }
    if (aim != Aim::metric && top_.has("metric")) {
        top_.error("metric", "has no effect without objective = \"metric\"");
    }
}

void QuestionReader::read_limits() {
    Section limits = top_.section("limits");
    DesignLimits& l = q_.limits;
    std::optional<Money> capital;
    std::optional<Money> spend;
    std::optional<Watts> power;
    std::optional<Duration> deadline;
    limits.read("capital", capital, "What may be paid for the cluster, at typical prices",
                {.bound = Bound::positive});
    limits.read("spend", spend, "What may be spent `over` the time, capital written off",
                {.bound = Bound::positive});
    limits.read(
        "power", power,
        "What the site can deliver: ratings of nodes and switches and what stores draw, times PUE",
        {.bound = Bound::positive});
    limits.read("racks", l.racks, "Racks that there is floor for", {.bound = Bound::positive});
    limits.read("deadline", deadline, "By when the tokens must be trained, or the work done",
                {.bound = Bound::positive});
    read_metric_limits(limits, "most",
                       "What metrics of a replica may be at most: { wait_p95 = \"4 h\" }");
    read_metric_limits(limits, "least", "What they must be at least: { goodput = 0.9 }");
    limits.read("probability", l.probability,
                "Of keeping the deadline, what may be spent, and the metrics, at least",
                {.bound = Bound::fraction});
    if (capital) l.capital = capital->usd;
    if (spend) l.spend = spend->usd;
    if (power) l.power = power->value;
    if (deadline) l.deadline_s = seconds(*deadline);
    if (!top_.describing()) {
        if (l.deadline_s && !q_.job()) {
            limits.error("deadline", "a deadline of what? design.tokens is missing",
                         "tokens = 1e12, or work = 1000");
        }
        if (l.spend && q_.over_s <= 0) {
            limits.error("spend", "spent in which time? design.over is missing",
                         "over = \"730 day\"");
        }
        if (!q_.priced) {
            refuse_keys(limits, {"capital", "spend"},
                        "prices are missing: the scenario has no [cost]");
        }
        if (limits.has("probability") && !l.open()) {
            limits.error("probability",
                         "has no effect without a deadline, or a limit to spend or of a metric");
        }
        if (l.probability >= 1) {
            limits.error("probability", "expected less than 1: no number of replicas shows that");
        }
    }
    limits.finish();
}

void QuestionReader::read_metric_limits(Section& limits, const char* key, const char* doc) {
    const Value* table = limits.open_table(key, doc);
    if (table == nullptr || limits.describing()) return;
    for (const Member& member : table->members) {
        const std::string path = fmt::format("design.limits.{}.{}", key, member.key);
        MetricLimit limit{
            member.key,     0, std::string_view(key) == "most", value_text(member.value), path,
            member.value.at};
        if (find_metric_name(member.key) == nullptr) {
            const std::string near = did_you_mean(member.key, fixed_metric_names());
            values_.error(member.value.at, path, "no replica has this metric",
                          near.empty() ? "'railyard list metrics' has all of them" : near);
            continue;
        }
        if (member.value.kind == Value::Kind::string) {
            std::string why;
            const std::optional<Quantity> quantity = parse_quantity(member.value.text, why);
            if (!quantity) {
                values_.error(member.value.at, path, why, "a number, or a quantity as \"4 h\"");
                continue;
            }
            const bool time = quantity->dimension == Dimension::time;
            limit.value = quantity->value * (time ? 1e-9 : 1);
        } else if (const auto number = values_.number(member.value, path, Bound::any)) {
            limit.value = *number;
        }
        q_.limits.metrics.push_back(std::move(limit));
    }
}

void QuestionReader::read_search() {
    top_.choose("plan", q_.plans, {"given", "search", "search_flow"},
                "search: each design has the fastest parallel plan that fits, found on an ideal "
                "network; search_flow: each finalist then the fastest on the flows of its own; "
                "given: [job.parallel]");
    const bool analytic = q_.fidelity == Fidelity::analytic && !top_.describing();
    if (analytic && q_.plans == DesignQuestion::Plans::flow) {
        top_.error("plan", "search_flow has no effect: run.fidelity is analytic",
                   "run.fidelity = \"flow\"");
    }
    if (q_.phased && q_.plans != DesignQuestion::Plans::given && !top_.describing()) {
        top_.error("plan",
                   "a plan is searched for one cluster, and [[phase]] or run.ready makes several",
                   "plan = \"given\", and job.parallel in the `set` of a phase that needs another");
    }
    std::optional<std::int64_t> finalists;
    top_.read("finalists", finalists,
              "Designs that go on to run.fidelity; all are tried on an ideal network before",
              {.bound = Bound::count, .otherwise = "50"});
    constexpr std::int64_t usual_finalists = 50;
    q_.finalists = finalists.value_or(usual_finalists);
    if (finalists && analytic) {
        top_.error("finalists", "has no effect: run.fidelity is analytic for all designs");
    }
    top_.read("replicas_first", q_.replicas_first,
              "Replicas of a design before it may be dropped; twice as many, or four times, in a "
              "space so large that so few could drop nobody",
              {.bound = Bound::count});
    top_.read("replicas_most", q_.replicas_most, "Replicas of those that are not told apart",
              {.bound = Bound::count});
    top_.read("chance", q_.chance, "Of having dropped the best design, at most",
              {.bound = Bound::fraction});
    top_.read("indifference", q_.indifference,
              "Designs that differ by less, as a share of the figure, are one answer: the race "
              "ends when none that is left is better by more",
              {.bound = Bound::fraction});
    top_.read("worlds", q_.worlds,
              "Draws of all estimates, prices and luck together in which the best are compared",
              {.bound = Bound::count});
    top_.read("shown", q_.shown, "Designs in the answer, at most", {.bound = Bound::count});
    if (top_.describing()) return;
    constexpr std::int64_t replicas_min = 2;
    if (q_.replicas_first < replicas_min) {
        top_.error("replicas_first", "expected 2 or more: one replica has no interval");
    }
    if (q_.replicas_most < q_.replicas_first) {
        top_.error("replicas_most",
                   fmt::format("is less than replicas_first, {}", q_.replicas_first));
    }
    if (q_.chance <= 0 || q_.chance >= 1) {
        top_.error("chance", "expected more than 0 and less than 1");
    }
}

void QuestionReader::check_key(Section& section, const std::string& where, const std::string& key) {
    // What a phase sets are keys themselves.
    constexpr std::string_view set = ".set.";
    if (const std::size_t at = key.find(set); key.starts_with("phase.") && at != key.npos) {
        return check_key(section, where, key.substr(at + set.size()));
    }
    if (key == "run.replicas" || key == "run.seed" || key == "run.fidelity") {
        section.error(where, fmt::format("{} is no part of a design", key),
                      "[design] says how many replicas there are");
        return;
    }
    if (key == "run.duration") {
        section.error(
            where,
            "run.duration is no part of a design: campaigns of different lengths "
            "can't be compared",
            "one [run] duration for all designs; design.over is the time over which money "
            "is spent and work counted");
        return;
    }
    const std::optional<std::string> help = help_for_unknown_key(key);
    if (help) section.error(where, fmt::format("no scenario has the key {}", key), *help);
}

void QuestionReader::read_options(Section& section, DesignAxis& axis) {
    for (Section& option : section.sections(
             "option", "With `name` in place of `key`: what may be chosen, each some settings")) {
        DesignValue value;
        option.read("name", value.text, "What it is called",
                    {.otherwise = "required", .required = true});
        const Value* set =
            option.open_table("set", "Its settings, as { \"cluster.node\" = \"dgx_h100\" }");
        option.finish();
        if (option.describing()) continue;
        if (set != nullptr) {
            flatten(*set, "", [&](const std::string& key, const Value& item) {
                value.settings.push_back(key + "=" + toml_text(item));
                check_key(option, "set", key);
                check_value_type(values_, option, "set", key, item);
            });
        }
        for (const DesignValue& other : axis.values) {
            if (other.text == value.text) {
                option.error("name", fmt::format("{} is given twice", visible(value.text)));
            } else if (other.settings == value.settings) {
                option.error("set", fmt::format("is that of {}", visible(other.text)));
            }
        }
        axis.values.push_back(std::move(value));
    }
}

void QuestionReader::read_when(const Value& table, DesignAxis& axis) {
    const std::string path = "design.axis.when";
    for (const Member& member : table.members) {
        const auto found = std::ranges::find(q_.space.axes, member.key, &DesignAxis::name);
        if (found == q_.space.axes.end()) {
            std::vector<std::string> names;
            for (const DesignAxis& a : q_.space.axes) names.push_back(a.name);
            values_.error(
                member.value.at, path,
                fmt::format("no axis before this one is called '{}'", visible(member.key)),
                did_you_mean(member.key, names));
            continue;
        }
        DesignCondition condition{static_cast<std::size_t>(found - q_.space.axes.begin()), {}};
        std::vector<const Value*> wanted;
        if (member.value.kind == Value::Kind::array) {
            for (const Value& item : member.value.items) wanted.push_back(&item);
        } else {
            wanted.push_back(&member.value);
        }
        for (const Value* one : wanted) {
            const auto value =
                std::ranges::find(found->values, value_text(*one), &DesignValue::text);
            if (value == found->values.end()) {
                std::vector<std::string> texts;
                for (const DesignValue& v : found->values) texts.push_back(v.text);
                values_.error(one->at, path,
                              fmt::format("{} never is {}", found->name, visible(value_text(*one))),
                              did_you_mean(value_text(*one), texts));
                continue;
            }
            condition.values.push_back(static_cast<std::size_t>(value - found->values.begin()));
        }
        axis.when.push_back(std::move(condition));
    }
}

// Two designs that are one. 60 min is 1 h.
void QuestionReader::refuse_twice(const Section& section, const AxisBounds& bounds,
                                  const Axis& axis) {
    const auto same = [](const AxisValue& a, const AxisValue& b) {
        return a.value && b.value ? *a.value == *b.value : a.toml == b.toml;
    };
    for (std::size_t i = 1; bounds.values && i < axis.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            if (!same(axis.value(k), axis.value(i))) continue;
            values_.error(bounds.values->items[i].at, section.path("values"),
                          fmt::format("{} is given twice", visible(axis.value(i).text)));
            break;
        }
    }
}

void QuestionReader::read_axis(Section& section, const AxisBounds& bounds) {
    DesignAxis axis;
    section.read("name", axis.name, "What the axis is called in labels and in `when`",
                 {.otherwise = "the last word of its key"});
    section.read("free", axis.free,
                 "It costs nothing: tuned for each design before designs are compared; with from "
                 "and to and no steps, to any value between");
    const Value* when = section.open_table(
        "when",
        "The axis is there only beside these values of axes before it: { store = \"weka\" }");
    read_options(section, axis);
    if (section.describing()) {
        Axis::read(section, bounds, false);
        return;
    }
    if (section.has("option")) {
        if (axis.name.empty()) section.error("name", "is missing: options need it");
        section.finish();
    } else if (const bool any = axis.free && bounds.from && !section.has("steps");
               const std::optional<Axis> keyed = Axis::read(section, bounds, any)) {
        check_key(section, "key", keyed->key());
        check_axis_types(values_, section, bounds, keyed->key());
        refuse_twice(section, bounds, *keyed);
        if (when == nullptr) check_axis_is_free(section, keyed->key(), q_.base_settings);
        if (axis.name.empty()) axis.name = keyed->key().substr(keyed->key().rfind('.') + 1);
        if (any) {
            axis.range = keyed;
            for (std::size_t v = 0; v < range_values; ++v) {
                axis.value_at(static_cast<double>(v) / (range_values - 1));
            }
        }
        for (std::size_t v = 0; v < keyed->size(); ++v) {
            axis.values.push_back(
                {keyed->value(v).text, {keyed->key() + "=" + keyed->value(v).toml}});
        }
    }
    if (std::ranges::find(q_.space.axes, axis.name, &DesignAxis::name) != q_.space.axes.end()) {
        section.error("name", fmt::format("{} is an axis already", visible(axis.name)),
                      "name = \"...\" tells two axes apart");
    }
    if (when != nullptr) read_when(*when, axis);
    q_.space.axes.push_back(std::move(axis));
}

void QuestionReader::read_axes() {
    std::size_t at = 0;
    for (Section& section :
         top_.sections("axis", "The axes of the space, each a [[design.axis]]")) {
        read_axis(section, section.describing() ? AxisBounds{} : bounds_[at++]);
    }
    if (!top_.has("axis") && !top_.describing()) {
        top_.error("axis", "is missing: the space is empty",
                   "[[design.axis]] key = \"cluster.nodes\", values = [128, 136]");
    }
}

void QuestionReader::check_space() {
    if (q_.space.size_at_most() > designs_max) {
        top_.error("axis", fmt::format("the axes make {:.3g} designs, and {:.0f} is the most",
                                       q_.space.size_at_most(), designs_max));
    }
    for (const DesignAxis& axis : q_.space.axes) {
        if (q_.plans == DesignQuestion::Plans::given) break;
        for (const DesignValue& value : axis.values) {
            for (const std::string& setting : value.settings) {
                if (!decided_by_plan(key_of_setting(setting))) continue;
                top_.error("plan",
                           fmt::format("the search decides {}, and the axis {} sets it",
                                       key_of_setting(setting), axis.name),
                           "plan = \"given\", or leave the key to the search");
            }
        }
    }
    // A free axis beside a condition on another free one is tuned with it.
    for (const DesignAxis& axis : q_.space.axes) {
        for (const DesignCondition& condition : axis.when) {
            if (!axis.free && q_.space.axes[condition.axis].free) {
                top_.error(
                    "axis",
                    fmt::format("{} is there beside {}, which is free: what is tuned comes last",
                                axis.name, q_.space.axes[condition.axis].name));
            }
        }
    }
}

// The scenario's own; what is no fidelity is said of each design.
Fidelity fidelity_of(const Document& document) {
    const Value* run = document.root.find("run");
    const Value* fidelity = run != nullptr ? run->find("fidelity") : nullptr;
    if (fidelity == nullptr) return Fidelity::analytic;
    const auto found = std::ranges::find(fidelity_names, fidelity->text);
    if (found == fidelity_names.end()) return Fidelity::flow;
    return static_cast<Fidelity>(found - fidelity_names.begin());
}

}  // namespace

std::vector<SchemaRow> design_schema() {
    std::vector<SchemaRow> rows;
    DesignQuestion question;
    Document empty;
    QuestionReader(question, empty, &rows).read_keys();
    AxisBounds::describe("design.axis", rows);
    return rows;
}

std::optional<DesignQuestion::Job> DesignQuestion::job() const {
    if (work > 0) return Job{work, "work_per_day", 1, "cost_per_work"};
    if (tokens > 0) return Job{tokens, "tokens_per_day", 1e-12, "cost_per_1e12_tokens"};
    return std::nullopt;
}

DesignQuestion read_question(const std::string& path, const std::vector<std::string>& settings) {
    StudyFile file = read_study_file(
        path, settings, "design", "it asks nothing",
        "[design] says what is wanted and what may vary; tools/README.md has its language");
    Document& document = file.document;
    Diagnostics diagnostics;
    for (const std::string& setting : file.base_settings) {
        apply_setting(document, setting, diagnostics);
    }
    diagnostics.raise_if_any();
    DesignQuestion question;
    question.file = path;
    question.text = std::move(file.text);
    question.title = std::move(file.title);
    question.base_settings = std::move(file.base_settings);
    question.priced = document.root.find("cost") != nullptr;
    question.fidelity = fidelity_of(document);
    question.phased = has_phases(document);
    QuestionReader(question, document).read();
    return question;
}

}  // namespace railyard
