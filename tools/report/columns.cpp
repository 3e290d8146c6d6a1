#include "tools/report/columns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>

#include "tools/program/json_text.h"

namespace railyard {

namespace {

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

}  // namespace

bool constant(const std::vector<double>& column) {
    return std::ranges::all_of(column, [&](double v) { return same(v, column.front()); });
}

Json packed(const std::vector<double>& column) {
    constexpr std::size_t list_max = 256;
    if (column.empty()) return {{"list", Json::array()}};
    if (constant(column)) return {{"all", json_number(column.front())}};
    if (column.size() <= list_max) {
        Json list = Json::array();
        for (const double v : column) list.push_back(json_number(v));
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

}  // namespace railyard
