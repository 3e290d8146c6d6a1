#include "tools/results/replica_record.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace railyard {

StoredReplica record_of(ReplicaResult result) {
    StoredReplica out;
    out.index = result.index;
    out.ending = result.ending;
    out.simulated_ns = result.simulated.count();
    out.events = static_cast<std::int64_t>(result.events);
    out.outcome = result.outcome;
    out.trajectory = result.trajectory;
    out.metrics = std::move(result.metrics);
    for (std::size_t i = 0; i < category_count; ++i) {
        out.ledger[i] = result.ledger.fraction(static_cast<Category>(i));
    }
    out.interruptions = std::move(result.job.interruptions);
    return out;
}

const char* ending_name(Ending ending) {
    constexpr const char* names[] = {"complete", "stuck", "limit"};
    return names[static_cast<std::size_t>(ending)];
}

Ending ending_of(std::string_view name) {
    if (name == "stuck") return Ending::stuck;
    return name == "limit" ? Ending::limit : Ending::complete;
}

namespace {

template <class Number>
void append_digits(std::string& out, Number value) {
    constexpr std::size_t digits_max = 32;
    std::array<char, digits_max> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
}

// The shortest digits that read back to the same bits; null for what is not a number. Most values are whole
// numbers, whose digits cost a tenth of a fraction's.
void append(std::string& out, double value) {
    constexpr double whole_max = 1e15;  // beyond it, digits are not exact
    if (!std::isfinite(value)) {
        out += "null";
    } else if (std::abs(value) < whole_max && value == std::trunc(value) &&
               (value != 0 || !std::signbit(value))) {
        append_digits(out, static_cast<std::int64_t>(value));
    } else {
        append_digits(out, value);
    }
}

template <class List, class Each>
std::string json_list(const List& list, const Each& each) {
    constexpr std::size_t bytes_each = 10;  // as a rule
    std::string out;
    out.reserve(2 + list.size() * bytes_each);
    out += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += ',';
        each(out, list[i]);
    }
    out += ']';
    return out;
}

double number_of(const nlohmann::json& json) {
    return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace

RecordTexts texts_of(const StoredReplica& record) {
    RecordTexts out;
    out.metrics = json_list(record.metrics, [](std::string& to, const Metric& m) {
        if (m.plain) {
            append(to, m.value);
            return;
        }
        to += '[';
        append(to, m.sum);
        to += ',';
        append(to, m.count);
        to += ']';
    });
    out.ledger = json_list(record.ledger, [](std::string& to, double v) { append(to, v); });
    out.interruptions = json_list(record.interruptions,
                                  [](std::string& to, std::int64_t n) { append_digits(to, n); });
    return out;
}

void read_texts(const RecordTexts& texts, std::span<const Metric> metrics, StoredReplica& out) {
    using nlohmann::json;
    const json values = json::parse(texts.metrics);
    const json ledger = json::parse(texts.ledger);
    if (values.size() != metrics.size() || ledger.size() != category_count) {
        throw std::out_of_range("a replica has more or fewer numbers than names");
    }
    out.metrics.clear();
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        const json& v = values[i];
        out.metrics.push_back(
            v.is_array() ? mean_metric(metrics[i].name, number_of(v.at(0)), number_of(v.at(1)))
                         : plain_metric(metrics[i].name, number_of(v)));
    }
    for (std::size_t i = 0; i < category_count; ++i) out.ledger[i] = number_of(ledger[i]);
    out.interruptions = json::parse(texts.interruptions).get<std::vector<std::int64_t>>();
}

ReplicaFigures figures_of(const StoredReplica& r) {
    return {r.ending, Duration(r.simulated_ns), r.outcome, r.trajectory, r.metrics,
            r.ledger, r.interruptions};
}

ReplicaSums with_prices(ReplicaSums sums, const Scenario& scenario) {
    if (scenario.cost && sums.replicas > 0) {
        carry_prices(study_costs(scenario.cost->plan, sums.uses), sums.metrics);
    }
    return sums;
}

}  // namespace railyard
