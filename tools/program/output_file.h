#pragma once
// A file that a verb writes: whole or not at all.

#include <string>
#include <string_view>
#include <vector>

namespace railyard {

// Bytes go to a file beside it, which takes its name when all of them are on disk. What is no regular file
// (a pipe, /dev/stdout) is written as it is. Every failure leaves as ScenarioError.
class OutputFile {
  public:
    // None of `inputs` may be the file: it would be destroyed.
    OutputFile(std::string path, const std::vector<std::string>& inputs);
    ~OutputFile();  // without keep() nothing is left behind
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view bytes);
    void keep();

  private:
    [[noreturn]] void fail(int reason) const;

    std::string path_;
    std::string written_;  // where the bytes go until then
    int file_ = -1;
};

void write_file(const std::string& path, std::string_view bytes,
                const std::vector<std::string>& inputs);

}  // namespace railyard
