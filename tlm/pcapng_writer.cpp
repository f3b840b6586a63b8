// SPDX-License-Identifier: Apache-2.0
#include "tlm/pcapng_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "model/wire/icrc.h"
#include "tlm/create_file.h"

namespace rnic::tlm {

namespace {

/// In the folder of the result, which has room for it, or where the system keeps such files.
std::FILE* open_stage(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return std::tmpfile();
  std::FILE* file = ::fdopen(fd, "w+b");
  if (file == nullptr) ::close(fd);
  return file;
}

}  // namespace

pcapng_writer::pcapng_writer(const std::string& path, const config& cfg)
    : path_(path), config_(cfg), sorter_(cfg.capture.reorder_ps) {
  file_ptr file(create_file(path_, cfg.capture.overwrite));
  stage_.reset(open_stage(path_));
  if (file == nullptr || stage_ == nullptr) fail("no file for the frames until they are written");
  blocks_ = std::make_unique<pcapng_blocks>(std::move(file), cfg.capture.fcs);
}

pcapng_writer::~pcapng_writer() {
  try {
    close({}, "");
  } catch (const capture_error& e) {
    std::fprintf(stderr, "%s\n", e.what());  // a destructor must not throw, and silence would hide a lost capture
  }
}

void pcapng_writer::fail(const char* what) const {
  throw capture_error(path_ + ": " + what + ": " + std::strerror(errno));
}

void pcapng_writer::observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps) {
  if (stage_ == nullptr) return;
  if (!config_.capture.fcs && wire::ethernet_fcs(f.data(), f.length) != f.fcs) return;
  sorter_.add(f, from, first_bit, config_.capture.fcs, [this](const frame_sorter::record& r) { store(r); });
}

void pcapng_writer::store(const frame_sorter::record& r) {
  const stored s{r.at, r.from, static_cast<std::uint32_t>(r.bytes.size())};
  failed_ = failed_ || std::fwrite(&s, sizeof s, 1, stage_.get()) != 1 ||
            std::fwrite(r.bytes.data(), 1, r.bytes.size(), stage_.get()) != r.bytes.size();
}

void pcapng_writer::close(const frame_comments& comments, const std::string& about) {
  if (stage_ == nullptr) return;
  sorter_.flush_before(~sim::time_ps{0}, [this](const frame_sorter::record& r) { store(r); });
  const file_ptr stage = std::move(stage_);
  errno = 0;
  if (failed_ || std::fflush(stage.get()) != 0) fail("not all frames could be kept until they are written");
  std::rewind(stage.get());
  blocks_->section(about);
  for (const std::string& name : config_.names) blocks_->interface(name);
  stored s{};
  std::vector<std::uint8_t> bytes;
  static const std::string none;
  while (!failed_ && std::fread(&s, sizeof s, 1, stage.get()) == 1) {
    bytes.resize(s.length);
    failed_ = std::fread(bytes.data(), 1, bytes.size(), stage.get()) != bytes.size();
    const auto text = comments.find({s.from, s.at});
    blocks_->add({s.from, config_.inbound[s.from], clock_.of(s.at), text == comments.end() ? none : text->second},
                 bytes);
  }
  failed_ = failed_ || std::ferror(stage.get()) != 0;
  if (!blocks_->close() || failed_) fail("not all frames could be written");
}

}  // namespace rnic::tlm
