#include "tools/trace/perfetto_trace.h"

#include <algorithm>

#include "sim/check.h"
#include "tools/program/output_file.h"
#include "tools/trace/perfetto.pb.h"

namespace railyard {

namespace {

constexpr std::uint32_t sequence = 1;            // one writer
constexpr std::uint32_t sequence_begins = 1;     // SEQ_INCREMENTAL_STATE_CLEARED
constexpr std::size_t packets_per_write = 4096;  // a Trace may be written in pieces: they add up

using perfetto::TrackEvent;

void annotate(TrackEvent& event, const PerfettoTrace::Fact& fact) {
    perfetto::DebugAnnotation& note = *event.add_debug_annotations();
    note.set_name(fact.name);
    if (const auto* n = std::get_if<std::int64_t>(&fact.value)) note.set_int_value(*n);
    if (const auto* v = std::get_if<double>(&fact.value)) note.set_double_value(*v);
    if (const auto* s = std::get_if<std::string>(&fact.value)) note.set_string_value(*s);
}

// Packets go out in batches, so that a trace of millions of events is never in memory twice.
class PacketWriter {
  public:
    explicit PacketWriter(OutputFile& out) : out_(out) {}
    perfetto::TracePacket& next() {
        if (static_cast<std::size_t>(batch_.packet_size()) == packets_per_write) flush();
        perfetto::TracePacket& packet = *batch_.add_packet();
        packet.set_trusted_packet_sequence_id(sequence);
        if (first_) packet.set_sequence_flags(sequence_begins);
        first_ = false;
        return packet;
    }
    void flush() {
        out_.write(batch_.SerializeAsString());
        batch_.Clear();
    }

  private:
    OutputFile& out_;
    perfetto::Trace batch_;
    bool first_ = true;
};

}  // namespace

PerfettoTrace::Track PerfettoTrace::add(TrackRow row) {
    tracks_.push_back(std::move(row));
    return tracks_.size();
}

PerfettoTrace::Track PerfettoTrace::group(const std::string& name) {
    return add({name, 0, false, ""});
}

PerfettoTrace::Track PerfettoTrace::track(Track group, const std::string& name) {
    return add({name, group, false, ""});
}

PerfettoTrace::Track PerfettoTrace::counter(Track group, const std::string& name,
                                            const std::string& unit) {
    return add({name, group, true, unit});
}

void PerfettoTrace::slice(Track track, const std::string& name, std::int64_t begin_ns,
                          std::int64_t end_ns, Facts facts) {
    RY_CHECK(begin_ns <= end_ns);
    if (begin_ns == end_ns) return instant(track, name, begin_ns, std::move(facts));
    events_.push_back({begin_ns, Kind::begin, track, name, std::move(facts), 0});
    events_.push_back({end_ns, Kind::end, track, "", {}, 0});
}

void PerfettoTrace::instant(Track track, const std::string& name, std::int64_t at_ns, Facts facts) {
    events_.push_back({at_ns, Kind::instant, track, name, std::move(facts), 0});
}

void PerfettoTrace::count(Track counter, std::int64_t at_ns, double value) {
    events_.push_back({at_ns, Kind::counter, counter, "", {}, value});
}

void PerfettoTrace::write(OutputFile& out) const {
    PacketWriter writer(out);
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
        const TrackRow& row = tracks_[i];
        perfetto::TrackDescriptor& track = *writer.next().mutable_track_descriptor();
        track.set_uuid(i + 1);
        if (row.parent == 0) {  // what the page folds and unfolds are processes
            track.mutable_process()->set_pid(static_cast<std::int32_t>(i + 1));
            track.mutable_process()->set_process_name(row.name);
            continue;
        }
        track.set_name(row.name);
        track.set_parent_uuid(row.parent);
        if (row.is_counter) track.mutable_counter()->set_unit_name(row.unit);
    }
    std::vector<const PerfettoTrace::Event*> order;
    for (const auto& event : events_) order.push_back(&event);
    std::ranges::stable_sort(order, [](const auto* a, const auto* b) {
        return std::pair(a->at_ns, a->kind) < std::pair(b->at_ns, b->kind);
    });
    constexpr TrackEvent::Type types[] = {TrackEvent::TYPE_SLICE_END, TrackEvent::TYPE_COUNTER,
                                          TrackEvent::TYPE_INSTANT, TrackEvent::TYPE_SLICE_BEGIN};
    for (const auto* event : order) {
        perfetto::TracePacket& packet = writer.next();
        packet.set_timestamp(static_cast<std::uint64_t>(event->at_ns));
        TrackEvent& shown = *packet.mutable_track_event();
        shown.set_type(types[static_cast<std::size_t>(event->kind)]);
        shown.set_track_uuid(event->track);
        if (!event->name.empty()) shown.set_name(event->name);
        if (event->kind == Kind::counter) shown.set_double_counter_value(event->value);
        for (const Fact& fact : event->facts) annotate(shown, fact);
    }
    writer.flush();
}

}  // namespace railyard
