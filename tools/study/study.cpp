#include "tools/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "models/campaign/campaign.h"
#include "sim/sampling.h"
#include "sim/text.h"

namespace railyard {

std::int64_t StoppingRule::wanted(std::int64_t done, const Summary& summary) const {
    if (metric.empty()) return replicas_max;
    if (done < replicas_min) return replicas_min;
    const bool narrow = summary.ci95.half_width() <= half_width * std::abs(summary.mean);
    if (narrow || done >= replicas_max) return done;
    return std::min(replicas_max, done + std::max<std::int64_t>(1, done / 2));
}

std::vector<std::string> Study::settings(std::size_t point) const {
    std::vector<std::string> out = base_settings;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        out.push_back(axes[i].key() + "=" + points[point][i].toml);
    }
    return out;
}

std::string Study::label(std::size_t point) const {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::string& key = axes[i].key();
        parts.push_back(key.substr(key.rfind('.') + 1) + " = " + points[point][i].text);
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

namespace {

enum class PointDesign : std::uint8_t { cartesian, zip, latin_hypercube, sobol };
const std::vector<std::string> design_names = {"cartesian", "zip", "latin_hypercube", "sobol"};

// job.checkpoint.interval of job.checkpoint.interval; failures.cause.mtbf_job of failures.cause.0.mtbf_job.
std::string without_indices(const std::string& key) {
    std::string out;
    for (const std::string& part : split_text(key, '.')) {
        if (!whole_value(part)) out += (out.empty() ? "" : ".") + part;
    }
    return out;
}

// A phase sets keys, too: phase.0.set.cluster.nodes is cluster.nodes.
const SchemaRow* row_of_key(const std::string& key) {
    static const std::vector<SchemaRow> rows = scenario_schema();
    constexpr std::string_view set = ".set.";
    const std::size_t at = key.starts_with("phase.") ? key.find(set) : key.npos;
    const std::string plain = without_indices(at == key.npos ? key : key.substr(at + set.size()));
    const SchemaRow* found = nullptr;
    for (const SchemaRow& row : rows) {
        if (row.path != plain) continue;
        if (found != nullptr && found->type != row.type) return nullptr;  // of either type
        found = &row;
    }
    return found;
}

class StudyReader {
  public:
    // Describes its keys into `schema` when that is given, of an empty document.
    StudyReader(Study& study, Document& document, std::vector<SchemaRow>* schema = nullptr)
        : study_(study),
          document_(document),
          bounds_(AxisBounds::taken_from(document, "sweep")),
          values_(diagnostics_, document.name),
          top_(values_, document.root.find("sweep"), "sweep", {}, schema) {}

    void read() {
        read_keys();
        diagnostics_.raise_if_any();
        make_points();
        diagnostics_.raise_if_any();
    }

    void read_keys() {
        read_base();
        top_.choose("design", design_, design_names, "How the axes make points");
        takes_any_value_ = design_ == PointDesign::latin_hypercube || design_ == PointDesign::sobol;
        read_axes();
        read_design_size();
        read_rule();
        top_.finish();
    }

  private:
    void read_base();
    void read_axes();
    void check_key(Section& section, const std::string& key);
    void read_design_size();
    void read_rule();
    void make_points();
    void add_product();
    void add_sampled(const UnitPoints& points);

    Study& study_;
    Document& document_;
    std::vector<AxisBounds> bounds_;  // of each axis
    Diagnostics diagnostics_;
    ValueReader values_;
    Section top_;
    PointDesign design_ = PointDesign::cartesian;
    bool takes_any_value_ = false;
    std::int64_t points_ = 0;
    std::int64_t seed_ = 0;
};

void StudyReader::read_base() {
    std::string named;
    top_.read("scenario", named, "The scenario's file, seen from the study's folder",
              {.otherwise = "the study's own tables"});
    if (named.empty()) {
        study_.scenario_file = study_.file;
        study_.scenario_text = study_.text;
        return;
    }
    for (const auto& [key, value] : document_.root.members) {
        if (key == "title" || key == "sweep") continue;
        values_.error(value.at, key,
                      fmt::format("is a scenario's, and this study's scenario is {}", named),
                      "leave it out, or make it an axis with one value");
    }
    study_.scenario_file =
        (std::filesystem::path(study_.file).parent_path() / named).lexically_normal().string();
    try {
        study_.scenario_text = read_file(study_.scenario_file);
    } catch (const ScenarioError& error) {
        top_.error("scenario", error.diagnostics()[0].message);
    }
}

void StudyReader::check_key(Section& section, const std::string& key) {
    if (key == "run.replicas") {
        section.error("key", "run.replicas is no axis",
                      "sweep.replicas says how many each point takes");
        return;
    }
    const std::optional<std::string> help = help_for_unknown_key(key);
    if (help) section.error("key", fmt::format("no scenario has the key {}", key), *help);
}

void StudyReader::read_axes() {
    std::vector<std::string> seen;
    std::size_t at = 0;
    for (Section& section : top_.sections("axis", "The axes, each a [[sweep.axis]]")) {
        if (section.describing()) {
            Axis::read(section, {}, false);
            continue;
        }
        const AxisBounds& bounds = bounds_[at++];
        std::optional<Axis> axis = Axis::read(section, bounds, takes_any_value_);
        if (!axis) continue;
        check_key(section, axis->key());
        check_axis_types(values_, section, bounds, axis->key());
        check_axis_is_free(section, axis->key(), study_.base_settings);
        if (std::ranges::find(seen, axis->key()) != seen.end()) {
            section.error("key", fmt::format("{} is an axis already", axis->key()));
        }
        seen.push_back(axis->key());
        study_.axes.push_back(std::move(*axis));
    }
    if (!top_.has("axis")) {
        top_.error(
            "axis", "is missing: a sweep needs an axis",
            "[[sweep.axis]] key = \"job.checkpoint.interval\", values = [\"10 min\", \"1 h\"]");
    }
}

void StudyReader::read_design_size() {
    top_.read("points", points_, "Points of a Latin hypercube or a Sobol sequence",
              {.bound = Bound::count, .otherwise = "not given"});
    top_.read("seed", seed_, "Seed of the design; a Sobol sequence with 0 is not shifted",
              {.bound = Bound::non_negative, .otherwise = "0"});
    if (takes_any_value_ && !top_.has("points")) {
        top_.error("points", "is missing: how many points has the design?");
    }
    if (!takes_any_value_) {
        refuse_keys(top_, {"points", "seed"}, "has no effect: the axes say which points there are");
    }
}

void StudyReader::read_rule() {
    StoppingRule& rule = study_.rule;
    std::int64_t replicas = rule.replicas_max;
    top_.read("replicas", replicas, "Replicas of each point", {.bound = Bound::count});
    rule.replicas_min = rule.replicas_max = replicas;
    Section stop = top_.section("stop");
    if (stop.present() && top_.has("replicas")) {
        top_.error("replicas", "has no effect: sweep.stop says how many there are",
                   "leave it out, or [sweep.stop]");
    }
    if (stop.present() || stop.describing()) {
        rule.metric = "goodput";
        rule.replicas_min = 10;
        rule.replicas_max = 1000;
    }
    stop.read("metric", rule.metric, "Whose interval must be narrow");
    stop.read("half_width", rule.half_width,
              "Half width of its 95 % interval, relative to the mean",
              {Bound::positive, "the section needs it", stop.present()});
    stop.read("replicas_min", rule.replicas_min, "At least so many", {.bound = Bound::count});
    stop.read("replicas_max", rule.replicas_max, "At most so many", {.bound = Bound::count});
    if (stop.present() && rule.replicas_max < rule.replicas_min) {
        stop.error("replicas_max", fmt::format("is less than replicas_min, {}", rule.replicas_min));
    }
    constexpr std::int64_t interval_needs = 2;
    if (stop.present() && rule.replicas_min < interval_needs) {
        stop.error("replicas_min", "expected 2 or more: one replica has no interval");
    }
    stop.finish();
}

void StudyReader::make_points() {
    const auto axes = study_.axes.size();
    switch (design_) {
        case PointDesign::cartesian:
            add_product();
            break;
        case PointDesign::zip:
            for (const Axis& axis : study_.axes) {
                if (axis.size() == study_.axes[0].size()) continue;
                top_.error("axis",
                           fmt::format("{} has {} values and {} has {}: zipped axes have as many",
                                       study_.axes[0].key(), study_.axes[0].size(), axis.key(),
                                       axis.size()));
                return;
            }
            for (std::size_t i = 0; i < study_.axes[0].size(); ++i) {
                study_.points.emplace_back();
                for (const Axis& axis : study_.axes) study_.points.back().push_back(axis.value(i));
            }
            break;
        case PointDesign::latin_hypercube:
            add_sampled(latin_hypercube(points_, axes, static_cast<std::uint64_t>(seed_)));
            break;
        case PointDesign::sobol:
            if (axes > sobol_axes_max) {
                top_.error("axis",
                           fmt::format("a Sobol sequence has at most {} axes", sobol_axes_max));
                return;
            }
            add_sampled(sobol_sequence(points_, axes, static_cast<std::uint64_t>(seed_)));
            break;
    }
}

// Every value with every other; the last axis varies fastest.
void StudyReader::add_product() {
    double count = 1;
    for (const Axis& axis : study_.axes) count *= static_cast<double>(axis.size());
    if (count > static_cast<double>(study_points_max)) {
        top_.error(
            "axis",
            fmt::format("the axes make {:.3g} points, and {} is the most", count, study_points_max),
            "fewer values, or design = \"latin_hypercube\" with points = 1000");
        return;
    }
    study_.points.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < study_.points.size(); ++i) {
        std::size_t rest = i;
        study_.points[i].resize(study_.axes.size());
        for (std::size_t a = study_.axes.size(); a-- > 0;) {
            study_.points[i][a] = study_.axes[a].value(rest % study_.axes[a].size());
            rest /= study_.axes[a].size();
        }
    }
}

void StudyReader::add_sampled(const UnitPoints& points) {
    for (const std::vector<double>& point : points) {
        study_.points.emplace_back();
        for (std::size_t a = 0; a < study_.axes.size(); ++a) {
            study_.points.back().push_back(study_.axes[a].at(point[a]));
        }
    }
}

}  // namespace

void check_value_type(ValueReader& values, const Section& section, const char* at,
                      const std::string& key, const Value& value) {
    const SchemaRow* row = row_of_key(key);
    if (row == nullptr) return;
    const std::string path = fmt::format("{}: {}", section.path(at), key);
    const bool text = row->type == "text" || row->type == file_type || !row->words.empty();
    if (const std::vector<Dimension>& d = row->dimensions; !d.empty()) {
        values.quantity(value, path, {d.front(), d.back()}, Bound::any);
    } else if (row->type == "whole number") {
        values.integer(value, path, Bound::any);
    } else if (row->type == "number" || row->type == "fraction") {
        values.number(value, path, Bound::any);
    } else if ((text && value.kind != Value::Kind::string) ||
               (row->type == "true or false" && value.kind != Value::Kind::boolean)) {
        const char* the = row->type.starts_with("name of") ? "the " : "";
        values.error(value.at, path,
                     fmt::format("expected {}{}, found {}", the, row->type, value.describe()));
    }
}

void check_axis_types(ValueReader& values, const Section& axis, const AxisBounds& bounds,
                      const std::string& key) {
    if (bounds.values) {
        for (const Value& value : bounds.values->items) {
            check_value_type(values, axis, "values", key, value);
        }
        return;
    }
    check_value_type(values, axis, "from", key, *bounds.from);
    check_value_type(values, axis, "to", key, *bounds.to);
}

std::optional<std::string> help_for_unknown_key(const std::string& key) {
    static const std::vector<std::string> known = [] {
        std::vector<std::string> paths;
        for (const SchemaRow& row : scenario_schema()) paths.push_back(row.path);
        return paths;
    }();
    // What is below is somebody's own names.
    constexpr std::string_view open_tables[] = {"override.", "cost.price."};
    const std::string plain = without_indices(key);
    const auto is_it = [&](const std::string& path) {
        return path == plain ||
               path.starts_with(plain + ".");  // a table takes { ... } as its value
    };
    const bool in_entry =
        std::ranges::any_of(open_tables,
                            [&](std::string_view table) { return key.starts_with(table); }) ||
        std::ranges::any_of(open_kinds(), [&](const OpenKind& kind) {
            return key.starts_with(fmt::format("{}.", kind.section));
        });
    if (in_entry || std::ranges::any_of(known, is_it)) return {};
    const std::string near = did_you_mean(plain, known);
    return near.empty() ? "'railyard list keys' prints them" : near;
}

std::string key_of_setting(std::string_view setting) {
    return std::string(trimmed(setting.substr(0, setting.find('='))));
}

void check_setting(const std::string& setting, const std::string& what, Diagnostics& diagnostics) {
    Document scratch;
    scratch.name = what;
    apply_setting(scratch, setting, diagnostics);
    const std::string key = key_of_setting(setting);
    const std::optional<std::string> help = help_for_unknown_key(key);
    if (help && diagnostics.ok()) {
        diagnostics.error(what + " with --set", {}, key, "no scenario has this key", *help);
    }
}

void check_axis_is_free(Section& axis, const std::string& key,
                        const std::vector<std::string>& settings) {
    const auto set = std::ranges::find(settings, key, key_of_setting);
    if (set == settings.end()) return;
    axis.error("key",
               fmt::format("--set {} has no effect: the axis sets the key at each point", *set),
               "leave out --set, or give the axis this value alone");
}

std::vector<SchemaRow> study_schema() {
    std::vector<SchemaRow> rows;
    Study study;
    Document empty;
    StudyReader(study, empty, &rows).read_keys();
    AxisBounds::describe("sweep.axis", rows);
    return rows;
}

StudyFile read_study_file(const std::string& path, const std::vector<std::string>& settings,
                          const std::string& section, const char* without, const char* help) {
    StudyFile out;
    out.text = read_file(path);
    Diagnostics diagnostics;
    out.document = parse_with_includes(out.text, path, diagnostics);
    diagnostics.raise_if_any();
    for (const std::string& setting : settings) {
        if (setting.starts_with(section + ".")) {
            apply_setting(out.document, setting, diagnostics);
        } else {
            check_setting(setting, path, diagnostics);
            out.base_settings.push_back(setting);
        }
    }
    diagnostics.raise_if_any();
    if (out.document.root.find(section) == nullptr) {
        throw ScenarioError(fmt::format("{} has no [{}]: {}", path, section, without), help);
    }
    const Value* title = out.document.root.find("title");
    out.title = title != nullptr && title->kind == Value::Kind::string ? title->text : path;
    return out;
}

Study read_study(const std::string& path, const std::vector<std::string>& settings) {
    StudyFile file =
        read_study_file(path, settings, "sweep", "it is no study",
                        "[sweep] says which keys vary; tools/README.md has its language");
    Study study;
    study.file = path;
    study.text = std::move(file.text);
    study.title = std::move(file.title);
    study.base_settings = std::move(file.base_settings);
    StudyReader(study, file.document).read();
    return study;
}

}  // namespace railyard
