#include "tools/report/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "models/campaign/campaign.h"
#include "tools/program/json_text.h"
#include "tools/study/run_verdict.h"

namespace railyard {

namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

double real_or_missing(const Row& row, int column) {
    return row.null(column) ? missing : row.real(column);
}

// Columns: numbers and words over all points, packed so that a page of ten thousand rows stays small.
// tools/report/src/data.js reads them.

std::string base64(const std::vector<std::uint8_t>& bytes) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    constexpr std::size_t group = 3;
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += group) {
        const std::size_t left = std::min(group, bytes.size() - i);
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < group; ++k) bits = bits << 8 | (k < left ? bytes[i + k] : 0U);
        for (std::size_t k = 0; k <= group; ++k) {
            out += k <= left ? digits[bits >> (18 - 6 * k) & 63U] : '=';
        }
    }
    return out;
}

bool same(double a, double b) {
    return a == b || (!std::isfinite(a) && !std::isfinite(b));
}

bool constant(const std::vector<double>& column) {
    return std::ranges::all_of(column, [&](double v) { return same(v, column.front()); });
}

// { "all": v } where it is the same everywhere, { "list": [...] } of a few, and else { "f32": "..." }:
// little-endian floats in base64, seven digits. What is not a number is null.
Json packed(const std::vector<double>& column) {
    constexpr std::size_t list_max = 256;
    if (column.empty()) return {{"list", Json::array()}};
    if (constant(column)) return {{"all", json_number(column.front())}};
    if (column.size() <= list_max) {
        const Json list = json_array(column, [](double v) { return json_number(v); });
        return {{"list", list}};
    }
    std::vector<std::uint8_t> bytes;
    for (const double v : column) {
        const auto bits =
            std::bit_cast<std::uint32_t>(std::isfinite(v) ? static_cast<float>(v) : std::nanf(""));
        for (int shift = 0; shift < 32; shift += 8) {
            bytes.push_back(static_cast<std::uint8_t>(bits >> shift & 255U));
        }
    }
    return {{"f32", base64(bytes)}};
}

// { "all": w }, or { "words": [...], "at": [...] } with each word once.
Json packed(const std::vector<std::string>& column) {
    std::map<std::string, std::size_t> places;
    Json words = Json::array();
    Json at = Json::array();
    for (const std::string& word : column) {
        const auto [place, fresh] = places.try_emplace(word, places.size());
        if (fresh) words.push_back(word);
        at.push_back(place->second);
    }
    if (places.size() == 1) return {{"all", column.front()}};
    return {{"words", words}, {"at", at}};
}

// Where each point of the database stands among the report's.
using Places = std::map<std::int64_t, std::size_t>;

struct Metric3 {
    std::string unit;
    std::vector<double> mean, low, high;
};

// First those that people ask for; what a page has room for is filled in this order.
std::size_t importance(const std::string& name, const std::string& unit) {
    constexpr std::array first = {"goodput",     "ettr",          "mfu",
                                  "tokens",      "wall_time",     "steps",
                                  "checkpoints", "interruptions", "step_time"};
    const auto found = std::ranges::find(first, name);
    if (found != first.end()) return static_cast<std::size_t>(found - first.begin());
    return first.size() + (unit == "USD" ? 0 : name.ends_with("_per_interruption") ? 1 : 2);
}

class Reader {
  public:
    Reader(Database& db, std::size_t bytes_max) : db_(db), bytes_left_(bytes_max) {
        db_.query("SELECT point FROM points ORDER BY point",
                  [&](const Row& row) { places_.emplace(row.integer(0), places_.size()); });
    }

    Json points() {
        std::vector<std::string> title, settings, status, digest, problem;
        std::vector<double> replicas, gpus;
        db_.query(
            "SELECT title, settings, status, coalesce(digest, ''), coalesce(problem, ''), "
            "replicas, gpus FROM points ORDER BY point",
            [&](const Row& row) {
                title.push_back(row.text(0));
                settings.push_back(row.text(1));
                status.push_back(row.text(2));
                digest.push_back(row.text(3));
                problem.push_back(row.text(4));
                replicas.push_back(real_or_missing(row, 5));
                gpus.push_back(real_or_missing(row, 6));
            });
        // Ten thousand digests are a quarter of a megabyte that nobody reads.
        constexpr std::size_t digests_max = 1000;
        if (digest.size() > digests_max) {
            digest.assign(digest.size(), "");
            left_out_.push_back("digests of points");
        }
        // So are settings where the axes of a sweep say the same.
        if (settings.size() > digests_max) settings.assign(settings.size(), "[]");
        return {{"count", places_.size()},      {"title", packed(title)},
                {"settings", packed(settings)}, {"status", packed(status)},
                {"digest", packed(digest)},     {"problem", packed(problem)},
                {"replicas", packed(replicas)}, {"gpus", packed(gpus)}};
    }

    Json runs() {
        Json out = rows(
            "SELECT r.run AS run, kind, file, title, version, seed, points_wanted, "
            "replicas_wanted, status, coalesce(digest, '') AS digest, coalesce(trajectory, '') AS "
            "trajectory, t.cpu_s AS cpu_s FROM runs r LEFT JOIN run_times t ON t.run = r.run ORDER "
            "BY r.run");
        for (Json& run : out) {
            const auto number = run["run"].get<std::int64_t>();
            run["points"] = run_points(number, run);
            run["axes"] = axes(number);
            run["comparisons"] = comparisons(number);
            const auto by = deciding_metric(number, db_);
            if (!by) continue;
            run["decided_by"] = {
                {"metric", by->metric}, {"better", better_name(by->better)}, {"why", by->why}};
        }
        return out;
    }

    Json metrics() {
        std::map<std::string, Metric3> found;
        std::vector<std::string> order;
        db_.query("SELECT point, name, unit, mean, low, high FROM point_metrics",
                  [&](const Row& row) {
                      const auto [entry, fresh] = found.try_emplace(row.text(1));
                      Metric3& m = entry->second;
                      if (fresh) {
                          order.push_back(entry->first);
                          m = {row.text(2), empty_column(missing), empty_column(missing),
                               empty_column(missing)};
                      }
                      const std::size_t place = places_.at(row.integer(0));
                      m.mean[place] = real_or_missing(row, 3);
                      m.low[place] = real_or_missing(row, 4);
                      m.high[place] = real_or_missing(row, 5);
                  });
        std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
            return importance(a, found[a].unit) < importance(b, found[b].unit);
        });
        std::map<std::string, Json> means;
        for (const std::string& name : order) means[name] = fitted(found[name].mean, name);
        Json out = Json::array();
        for (const std::string& name : order) {
            const Metric3& m = found[name];
            if (means[name].is_null()) continue;
            Json low = fitted(m.low, "interval of " + name);
            Json high = low.is_null() ? Json(nullptr) : fitted(m.high, "interval of " + name);
            if (high.is_null()) low = nullptr;
            out.push_back({{"name", name},
                           {"unit", m.unit},
                           {"share", is_share(name)},
                           {"higher_is_better", better_of(name) == Better::higher},
                           {"mean", std::move(means[name])},
                           {"low", std::move(low)},
                           {"high", std::move(high)}});
        }
        return out;
    }

    // By name a number for each point, 0 where it has none; `query` selects point, name and number.
    std::map<std::string, std::vector<double>> columns_of(const char* query) {
        std::map<std::string, std::vector<double>> found;
        db_.query(query, [&](const Row& row) {
            auto& column = found.try_emplace(row.text(1), empty_column(0)).first->second;
            column[places_.at(row.integer(0))] = row.real(2);
        });
        return found;
    }

    Json ledger() {
        auto found = columns_of("SELECT point, category, fraction FROM point_ledger");
        Json out = Json::array();
        for (std::size_t i = 0; i < category_count; ++i) {
            const auto category = static_cast<Category>(i);
            const std::string name(category_name(category));
            if (!found.contains(name)) continue;
            out.push_back({{"name", name},
                           {"doc", category_doc(category)},
                           {"fraction", packed(found[name])}});
        }
        return out;
    }

    Json interruptions() {
        Json out = Json::array();
        for (const auto& [cause, column] :
             columns_of("SELECT point, cause, count FROM point_interruptions")) {
            out.push_back({{"cause", cause}, {"count", packed(column)}});
        }
        return out;
    }

    Json scenarios() {
        constexpr int texts_max = 12;
        return rows("SELECT file, toml FROM scenarios ORDER BY scenario LIMIT ?",
                    std::int64_t{texts_max});
    }

    Json left_out() const { return left_out_; }

    // Scenarios of the newest run: all points if they are few, else the best and the worst of a sweep, by the
    // metric that decides there.
    std::vector<FeaturedPoint> featured(std::size_t count) {
        const std::int64_t run = db_.integer("SELECT max(run) FROM runs").value_or(0);
        const auto by = deciding_metric(run, db_);
        const bool highest = !by || by->better == Better::higher;
        std::vector<FeaturedPoint> all;
        db_.query(
            "SELECT p.point, s.file, s.toml, p.settings, p.version, coalesce(r.outcome, '') FROM "
            "run_points rp JOIN points p ON p.point = rp.point JOIN scenarios s ON s.scenario = "
            "p.scenario LEFT JOIN replicas r ON r.point = p.point AND r.replica = 0 LEFT JOIN "
            "point_metrics g ON g.point = p.point AND g.name = ? WHERE rp.run = ? AND p.status NOT "
            "IN ('impossible', 'failed') ORDER BY CASE WHEN (SELECT kind FROM runs WHERE run = "
            "rp.run) = 'sweep' THEN coalesce(? * g.mean, 1e300) END, rp.position",
            [&](const Row& row) {
                FeaturedPoint point;
                point.index = static_cast<std::int64_t>(places_.at(row.integer(0)));
                point.file = row.text(1);
                point.toml = row.text(2);
                point.settings = nlohmann::json::parse(row.text(3)).get<std::vector<std::string>>();
                point.version = row.text(4);
                point.outcome = row.text(5);
                all.push_back(std::move(point));
            },
            std::string(by ? by->metric : "goodput"), run, highest ? -1.0 : 1.0);
        if (all.size() > count && count > 1) std::swap(all[count - 1], all.back());
        all.resize(std::min(all.size(), count));
        return all;
    }

  private:
    template <class... Values>
    Json rows(std::string_view sql, const Values&... values) {
        Json out = Json::array();
        db_.query(
            sql, [&](const Row& row) { out.push_back(row.json()); }, values...);
        return out;
    }

    // The run's points by index; its labels when they are not just numbers.
    Json run_points(std::int64_t run, Json& out) {
        Json list = Json::array();
        Json labels = Json::array();
        bool labelled = false;
        bool in_a_row = true;
        db_.query(
            "SELECT point, label FROM run_points WHERE run = ? ORDER BY position",
            [&](const Row& row) {
                const std::size_t place = places_.at(row.integer(0));
                in_a_row =
                    in_a_row && (list.empty() || place == list.back().get<std::size_t>() + 1);
                list.push_back(place);
                labels.push_back(row.text(1));
                labelled = labelled || !row.text(1).empty();
            },
            run);
        constexpr std::size_t labels_max = 500;
        out["labels"] = labelled && labels.size() <= labels_max ? labels : Json(nullptr);
        if (in_a_row && !list.empty()) return {{"from", list.front()}, {"count", list.size()}};
        return {{"list", list}};
    }

    Json axes(std::int64_t run) {
        Json out = rows("SELECT key, unit FROM axes WHERE run = ? ORDER BY axis", run);
        for (Json& axis : out) {
            for (const char* each : {"texts", "numbers", "at"}) axis[each] = Json::array();
        }
        std::vector<std::map<std::string, std::size_t>> known(out.size());
        db_.query(
            "SELECT axis, text, value FROM axis_values WHERE run = ? ORDER BY position, axis",
            [&](const Row& row) {
                const auto a = static_cast<std::size_t>(row.integer(0));
                const auto [place, fresh] = known[a].try_emplace(row.text(1), known[a].size());
                if (fresh) {
                    out[a]["texts"].push_back(row.text(1));
                    out[a]["numbers"].push_back(row.null(2) ? Json(nullptr) : Json(row.real(2)));
                }
                out[a]["at"].push_back(place->second);
            },
            run);
        return out;
    }

    Json comparisons(std::int64_t run) {
        return rows(
            "SELECT metric, unit, a, b, better, pairs, mean_a, mean_b, difference, low, high, "
            "confidence, verdict, 1.0 * pairs_to_settle AS pairs_to_settle FROM comparisons WHERE "
            "run = ? ORDER BY a, b, metric",
            run);
    }

    // The column, or null when the page has no room for it.
    Json fitted(const std::vector<double>& column, const std::string& what) {
        Json out = packed(column);
        const std::size_t size = one_line(out).size();
        if (size > bytes_left_) {
            left_out_.push_back(what);
            return nullptr;
        }
        bytes_left_ -= size;
        return out;
    }

    std::vector<double> empty_column(double value) const {
        return std::vector<double>(places_.size(), value);
    }

    Database& db_;
    std::size_t bytes_left_;
    Places places_;
    Json left_out_ = Json::array();
};

}  // namespace

ReportResults report_results(Database& db, std::size_t featured_max, std::size_t bytes_max) {
    if (db.integer("SELECT count(*) FROM runs").value_or(0) == 0) {
        throw ScenarioError(fmt::format("{} has no run: there is nothing to report", db.path()),
                            "'railyard run SCENARIO.toml --db FILE' adds one");
    }
    Reader reader(db, bytes_max);
    ReportResults out;
    out.data["runs"] = reader.runs();
    out.data["points"] = reader.points();
    out.data["ledger"] = reader.ledger();
    out.data["interruptions"] = reader.interruptions();
    out.data["metrics"] = reader.metrics();
    out.data["scenarios"] = reader.scenarios();
    out.data["left_out"] = reader.left_out();
    out.featured = reader.featured(featured_max);
    return out;
}

}  // namespace railyard
