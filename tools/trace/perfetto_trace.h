#pragma once
// A trace for ui.perfetto.dev: tracks in groups, and on them slices, instants and counters, in nanoseconds.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace railyard {

class OutputFile;

class PerfettoTrace {
  public:
    using Track = std::uint64_t;
    // Shown beside a slice or an instant when it is clicked.
    struct Fact {
        std::string name;
        std::variant<std::int64_t, double, std::string> value;
    };
    using Facts = std::vector<Fact>;

    Track group(const std::string& name);
    Track track(Track group, const std::string& name);
    Track counter(Track group, const std::string& name, const std::string& unit);

    // Slices of a track lie beside or within each other; those within are added after the one around them.
    // One without length becomes an instant. Needs begin <= end.
    void slice(Track track, const std::string& name, std::int64_t begin_ns, std::int64_t end_ns,
               Facts facts = {});
    void instant(Track track, const std::string& name, std::int64_t at_ns, Facts facts = {});
    void count(Track counter, std::int64_t at_ns, double value);

    std::size_t tracks() const { return tracks_.size(); }
    std::size_t events() const { return events_.size(); }

    // Writes all of it in the order of time.
    void write(OutputFile& out) const;

  private:
    struct TrackRow {
        std::string name;
        Track parent = 0;
        bool is_counter = false;
        std::string unit;
    };
    // In the order of those that share an instant: what ends makes room for what begins.
    enum class Kind : std::uint8_t { end, counter, instant, begin };
    struct Event {
        std::int64_t at_ns = 0;
        Kind kind = Kind::instant;
        Track track = 0;
        std::string name;
        Facts facts;
        double value = 0;
    };

    Track add(TrackRow row);

    std::vector<TrackRow> tracks_;  // track n is row n - 1
    std::vector<Event> events_;
};

}  // namespace railyard
