#include "tools/study/sweep_plan.h"

#include <fmt/format.h>

#include <set>

#include "sim/fingerprint.h"

namespace railyard {

namespace {

// Keys of all points, in order. A setting that the scenario can't take makes a point that is impossible,
// with a key all the same.
std::vector<PointKey> keys_of(const Study& study, const std::string& version) {
    const Document base =
        document_with(study.scenario_text, study.scenario_file, study.base_settings);
    PointKeys keys(version);
    std::vector<PointKey> out;
    for (std::size_t i = 0; i < study.points.size(); ++i) {
        Document document = base;
        Diagnostics ignored;
        for (std::size_t a = 0; a < study.axes.size(); ++a) {
            apply_setting(document, study.axes[a].key() + "=" + study.points[i][a].toml, ignored);
        }
        if (ignored.ok()) {
            out.push_back(keys.of(document));
        } else {
            out.push_back({digest_of(study.scenario_text + study.label(i) + version), 0});
        }
    }
    return out;
}

// The same sweep: the same points in the same order under the same rule, whatever its file is called.
std::string key_of(const Study& study, const std::vector<PointKey>& keys,
                   const std::string& version) {
    const StoppingRule& rule = study.rule;
    std::string text = fmt::format("{}\n{} {} {} {}\n", version, rule.replicas_min,
                                   rule.replicas_max, rule.metric, rule.half_width);
    for (const PointKey& key : keys) text += key.text + "\n";
    for (const Axis& axis : study.axes) text += axis.key() + " " + axis.unit() + "\n";
    return digest_of(text);
}

std::int64_t begin(const Study& study, const std::string& key, const std::vector<PointKey>& keys,
                   const std::string& version, ResultsDb& db) {
    RunSpec spec;
    spec.kind = "sweep";
    spec.key = key;
    spec.file = study.file;
    spec.title = study.title;
    spec.version = version;
    spec.seed = keys.empty() ? 1 : keys[0].seed;
    spec.points_wanted = std::ssize(study.points);
    spec.replicas_wanted = study.rule.replicas_max;
    spec.study = study.text;
    const std::int64_t run = db.begin_run(spec);
    for (std::size_t a = 0; a < study.axes.size(); ++a) {
        db.add_axis(run, static_cast<std::int64_t>(a), study.axes[a].key(), study.axes[a].unit());
    }
    for (std::size_t i = 0; i < study.points.size(); ++i) {
        const std::int64_t point =
            db.point({study.scenario_file, study.scenario_text, study.settings(i), keys[i],
                      study.title + ": " + study.label(i), version});
        const auto position = static_cast<std::int64_t>(i);
        db.attach(run, position, point, study.label(i));
        for (std::size_t a = 0; a < study.axes.size(); ++a) {
            const AxisValue& value = study.points[i][a];
            db.add_axis_value(run, position, static_cast<std::int64_t>(a), value.text, value.value);
        }
    }
    return run;
}

bool done_with(const StoredPoint& point, const StoppingRule& rule) {
    if (point.status == "impossible" || (point.status == "stuck" && point.replicas == 0))
        return true;
    if (point.status == "open" || point.status == "failed") return false;
    if (rule.metric.empty() || point.replicas >= rule.replicas_max) {
        return point.replicas >= rule.replicas_max;
    }
    return point.replicas >= rule.replicas_min &&
           rule.wanted(point.replicas, point.summary) == point.replicas;
}

void find_other_versions(const Study& study, const std::string& version, ResultsDb& db,
                         SweepPlan& plan) {
    std::set<std::string> wanted;
    for (const SweepPoint& point : plan.to_do) wanted.insert(settings_text(point.settings));
    db.database().query(
        "SELECT p.settings, p.version FROM points p JOIN scenarios s ON s.scenario = p.scenario "
        "WHERE s.toml = ? AND p.version <> ? AND p.status <> 'open' ORDER BY p.point",
        [&](const Row& row) {
            if (wanted.erase(row.text(0)) == 0) return;
            ++plan.of_other_version;
            plan.other_version = row.text(1);
        },
        study.scenario_text, version);
}

}  // namespace

SweepPlan plan_sweep(const Study& study, const std::string& version, ResultsDb& db) {
    const std::vector<PointKey> keys = keys_of(study, version);
    const std::string key = key_of(study, keys, version);
    SweepPlan out;
    const auto found = db.database().integer("SELECT run FROM runs WHERE key = ?", key);
    out.resumed = found.has_value();
    out.run = found ? *found : begin(study, key, keys, version, db);
    if (found) db.finish_run(out.run, "running", "", "");
    db.commit();

    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < study.points.size(); ++i) {
        const StoredPoint stored = db.stored_point(keys[i].text, study.rule.metric);
        if (!seen.insert(stored.id).second || done_with(stored, study.rule)) continue;
        out.to_do.push_back({stored.id, keys[i].text, study.settings(i), stored.described});
    }
    out.points = std::ssize(seen);
    if (!out.to_do.empty()) find_other_versions(study, version, db, out);
    return out;
}

SweepOutcome finish_sweep(std::int64_t run, ResultsDb& db) {
    SweepOutcome out;
    Fingerprint digest;
    Fingerprint trajectory;
    std::set<std::int64_t> seen;
    db.database().query(
        "SELECT p.point, p.status, coalesce(p.digest, ''), coalesce(p.trajectory, '') FROM "
        "run_points r JOIN points p ON p.point = r.point WHERE r.run = ? ORDER BY r.position",
        [&](const Row& row) {
            digest.add(row.text(2));
            trajectory.add(row.text(3));
            if (!seen.insert(row.integer(0)).second) return;
            const std::string status = row.text(1);
            SweepOutcome::Count& n = out.points;
            ++(status == "complete"     ? n.complete
               : status == "impossible" ? n.impossible
               : status == "stuck"      ? n.stuck
               : status == "limit"      ? n.limit
               : status == "failed"     ? n.failed
                                        : n.open);
        },
        run);
    out.status = out.points.open > 0         ? "interrupted"
                 : out.points.failed > 0     ? "failed"
                 : out.points.impossible > 0 ? "impossible"
                 : out.points.stuck > 0      ? "stuck"
                 : out.points.limit > 0      ? "limit"
                                             : "complete";
    out.digest = digest.hex();
    db.finish_run(run, out.status, out.points.open > 0 ? "" : out.digest,
                  out.points.open > 0 ? "" : trajectory.hex());
    db.commit();
    return out;
}

}  // namespace railyard
