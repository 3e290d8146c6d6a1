#include "tools/program/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "sim/error.h"

namespace railyard {

namespace fs = std::filesystem;

OutputFile::OutputFile(std::string path, const std::vector<std::string>& inputs)
    : path_(std::move(path)), written_(path_) {
    std::error_code none;
    for (const std::string& input : inputs) {
        if (!fs::equivalent(path_, input, none)) continue;
        throw ScenarioError(fmt::format("can't write {}: it is read here", path_),
                            "choose another name");
    }
    const fs::file_status there = fs::status(path_, none);
    const bool replaces = fs::is_regular_file(there);
    if (replaces && access(path_.c_str(), W_OK) != 0) fail(errno);
    if (replaces || !fs::exists(there)) {
        // Behind a link it is the file that is replaced, not the link.
        if (replaces) path_ = fs::canonical(path_, none).string();
        written_ = fmt::format("{}.part-{}", path_, getpid());
    }
    file_ = open(written_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail(errno);
    struct stat old {};
    if (replaces && stat(path_.c_str(), &old) == 0) fchmod(file_, old.st_mode & 07777);
}

OutputFile::~OutputFile() {
    if (file_ >= 0) close(file_);
    if (written_ != path_) unlink(written_.c_str());
}

void OutputFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(file_, bytes.data(), bytes.size());
        if (n < 0 && errno != EINTR) fail(errno);
        if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

void OutputFile::keep() {
    const bool renamed = written_ != path_;
    if (renamed && fsync(file_) != 0) fail(errno);
    if (close(std::exchange(file_, -1)) != 0) fail(errno);
    if (!renamed) return;
    if (std::rename(written_.c_str(), path_.c_str()) != 0) fail(errno);
    written_ = path_;
    const fs::path folder = fs::absolute(path_).parent_path();
    const int entry = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (entry < 0) return;  // the file is there; only a power cut could still take its name
    fsync(entry);
    close(entry);
}

void OutputFile::fail(int reason) const {
    throw ScenarioError(fmt::format("can't write {}: {}", path_, std::strerror(reason)));
}

void write_file(const std::string& path, std::string_view bytes,
                const std::vector<std::string>& inputs) {
    OutputFile out(path, inputs);
    out.write(bytes);
    out.keep();
}

}  // namespace railyard
