#include "tools/program/installation.h"

#include <filesystem>

namespace railyard {

namespace {

// share/railyard of an installed program; empty when this one runs where it was built.
std::filesystem::path installed_folder() {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return {};
    auto folder = program.parent_path().parent_path() / "share" / "railyard";
    return std::filesystem::is_directory(folder, error) ? folder : std::filesystem::path{};
}

}  // namespace

std::string shipped_file(std::string_view name) {
    const auto installed = installed_folder();
    return ((installed.empty() ? std::filesystem::path(RAILYARD_ROOT) : installed) / name).string();
}

std::string report_page_file() {
    const auto installed = installed_folder();
    return installed.empty() ? RAILYARD_REPORT_PAGE : (installed / "report" / "page.html").string();
}

}  // namespace railyard
