#include "models/fabric/traffic_file.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>

#include "models/fabric/packet_limits.h"
#include "sim/text.h"

namespace railyard {

namespace {

constexpr std::string_view header = "id,src,dst,bytes,start_ps,dep";

class TrafficFile {
  public:
    TrafficFile(std::string path, std::int64_t nics, Diagnostics& diagnostics)
        : path_(std::move(path)), nics_(nics), diagnostics_(diagnostics) {}

    std::vector<ListedFlow> read(std::string_view text) {
        constexpr std::size_t errors_max = 10;  // of a file that is something else altogether
        while (!text.empty() && diagnostics_.errors().size() < errors_max) {
            ++line_;
            const std::size_t end = std::min(text.find('\n'), text.size());
            std::string_view line = text.substr(0, end);
            text.remove_prefix(std::min(end + 1, text.size()));
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (line_ > 1) {
                if (!line.empty()) read_line(line);
            } else if (line != header) {
                const bool packed = line.starts_with("\x1f\x8b");
                error(packed ? "this is compressed" : "this is no list of flows",
                      packed ? "gunzip it" : fmt::format("its first line is {}", header));
                return {};
            }
        }
        if (diagnostics_.ok() && flows_.empty()) error("there are no flows");
        if (!diagnostics_.ok()) return {};
        return std::move(flows_);
    }

  private:
    enum Column : std::size_t { id, src, dst, bytes, start_ps, dep, columns };

    void error(std::string message, std::string help = {}) {
        diagnostics_.error(path_, {line_, 1}, "", std::move(message), std::move(help));
    }
    std::optional<std::int64_t> number(std::string_view cell, Column column, std::int64_t least,
                                       std::int64_t most) {
        constexpr const char* names[] = {"id", "src", "dst", "bytes", "start_ps", "dep"};
        const auto value = whole_value(cell);
        if (!value || *value < least || *value > most) {
            error(fmt::format("{}: expected a whole number from {} to {}, found '{}'",
                              names[column], least, most, cell));
            return std::nullopt;
        }
        return value;
    }

    void read_line(std::string_view line) {
        std::vector<std::string_view> cells;
        split(line, ',', cells);
        if (cells.size() != columns) {
            error(fmt::format("expected {} columns, found {}", int{columns}, cells.size()),
                  std::string(header));
            return;
        }
        constexpr auto any = std::numeric_limits<std::int64_t>::max();
        const auto own = number(cells[id], id, 1, any);
        const auto from = number(cells[src], src, 0, nics_ - 1);
        const auto to = number(cells[dst], dst, 0, nics_ - 1);
        const auto size = number(cells[bytes], bytes, 1, packet_buffer_max.count());
        const auto start =
            number(cells[start_ps], start_ps, 0, Picoseconds(packet_time_max).count());
        const auto waits_for = number(cells[dep], dep, 0, any);
        if (!own || !from || !to || !size || !start || !waits_for) return;
        if (*from == *to) error(fmt::format("NIC {} sends to itself", *from));
        ListedFlow flow{*from, *to, *size, Picoseconds(*start)};
        if (*waits_for != 0) {
            const auto earlier = places_.find(*waits_for);
            if (earlier == places_.end()) {
                error(fmt::format("dep: no line before this one has the id {}", *waits_for),
                      "0: it waits for no flow");
            } else {
                flow.after = earlier->second;
            }
        }
        if (!places_.emplace(*own, static_cast<std::int64_t>(flows_.size())).second) {
            error(fmt::format("the id {} appears twice", *own));
        }
        flows_.push_back(flow);
    }

    std::string path_;
    std::int64_t nics_;
    Diagnostics& diagnostics_;
    int line_ = 0;
    std::map<std::int64_t, std::int64_t> places_;  // of each id in the list
    std::vector<ListedFlow> flows_;
};

}  // namespace

std::vector<ListedFlow> read_traffic_file(const std::string& path, std::int64_t nics,
                                          Diagnostics& diagnostics) {
    return TrafficFile(path, nics, diagnostics).read(read_file(path));
}

}  // namespace railyard
