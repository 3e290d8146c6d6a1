#pragma once
// What a fuzzer is made of: its source says what it does with any bytes.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/error.h"

void try_bytes(std::string_view bytes);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try_bytes({reinterpret_cast<const char*>(data), size});
    return 0;
}

// A ScenarioError is what wrong input should come to; whatever else happens is a bug.
template <class Read>
void refused_or_read(const Read& read) {
    try {
        read();
    } catch (const railyard::ScenarioError&) {
    }
}

// A file for readers that want one: in memory where the system has such a folder.
class ScratchFile {
  public:
    explicit ScratchFile(const std::string& name) {
        std::string folder = (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") +
                             std::string("/railyard-fuzz-XXXXXX");
        if (mkdtemp(folder.data()) == nullptr) std::abort();
        folder_ = folder;
        path_ = folder + "/" + name;
    }
    ~ScratchFile() {
        std::remove(path_.c_str());
        rmdir(folder_.c_str());
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;

    const std::string& holding(std::string_view bytes) const {
        std::FILE* out = std::fopen(path_.c_str(), "wb");
        if (out == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) {
            std::abort();
        }
        std::fclose(out);
        return path_;
    }
    const std::string& path() const { return path_; }

  private:
    std::string folder_;
    std::string path_;
};
