#pragma once
// A study: a scenario, axes through its keys, and how many replicas each point takes. README.md has the
// language.

#include "sim/statistics.h"
#include "tools/study/axis.h"

namespace railyard {

// When a point has had enough replicas.
struct StoppingRule {
    std::int64_t replicas_min = 20;
    std::int64_t replicas_max = 20;
    std::string metric;     // empty: replicas_max of them
    double half_width = 0;  // of its 95 % interval, relative to its mean

    // How many to have after `done`, whose metric has this summary; `done` itself: that is enough. Grows by
    // half, so that few looks are taken.
    std::int64_t wanted(std::int64_t done, const Summary& summary) const;
};

struct Study {
    std::string file;
    std::string title;
    std::string text;           // of the file
    std::string scenario_file;  // the base's; the study's own file when it contains its scenario
    std::string scenario_text;
    std::vector<std::string> base_settings;  // of all points
    std::vector<Axis> axes;
    std::vector<std::vector<AxisValue>> points;  // points x axes, in the study's order
    StoppingRule rule;

    std::vector<std::string> settings(std::size_t point) const;
    std::string label(std::size_t point) const;  // "interval = 10 min, servers = 4"
};

constexpr std::int64_t study_points_max = 10'000'000;

// Reads and checks the study with settings on it ("sweep.replicas=5") and on its scenario. Throws
// ScenarioError with all that is wrong, axes whose keys no scenario has included.
Study read_study(const std::string& path, const std::vector<std::string>& settings);

// A file that asks something of many variants of a scenario.
struct StudyFile {
    std::string text;
    Document document;  // with the settings of its section
    std::string title;
    std::vector<std::string> base_settings;  // the others, of all variants
};
// Throws ScenarioError with all that is wrong; without the section what that means, and what to do.
StudyFile read_study_file(const std::string& path, const std::vector<std::string>& settings,
                          const std::string& section, const char* without, const char* help);

// Nothing when a scenario may have the key; otherwise what to do instead.
std::optional<std::string> help_for_unknown_key(const std::string& key);
// "job.nodes", of "job.nodes=4" as --set takes it.
std::string key_of_setting(std::string_view setting);
// Reports a --set that no scenario could take, before any is read. `what` it would change: a file, a verb.
void check_setting(const std::string& setting, const std::string& what, Diagnostics& diagnostics);

// Reports a value that is of another type than the key, where it stands: in `section`, under its key `at`.
void check_value_type(ValueReader& values, const Section& section, const char* at,
                      const std::string& key, const Value& value);
// The same of all that an axis lists, or of both ends of its range.
void check_axis_types(ValueReader& values, const Section& axis, const AxisBounds& bounds,
                      const std::string& key);

// Reports a --set of the key that an axis sets at each point.
void check_axis_is_free(Section& axis, const std::string& key,
                        const std::vector<std::string>& settings);

// What may stand in [sweep], as it is read.
std::vector<SchemaRow> study_schema();

}  // namespace railyard
