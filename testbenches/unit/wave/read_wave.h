// SPDX-License-Identifier: Apache-2.0
// What GTKWave's reader finds in a waveform.
#pragma once

#include <gtkwave/fstapi.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rnic::bench::test {

struct read_wave {
  std::set<std::string> parameters;                                                  // paths of constants
  std::map<std::string, std::uint32_t> bits;                                         // by path
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::string>>> values;  // when it becomes which
  std::uint64_t end = 0;
  int timescale = 0;

  explicit read_wave(const std::string& file) {
    void* const reader = fstReaderOpen(file.c_str());
    if (reader == nullptr) return;
    timescale = fstReaderGetTimescale(reader);
    end = fstReaderGetEndTime(reader);
    std::vector<std::string> scopes{""};
    for (const fstHier* h = fstReaderIterateHier(reader); h != nullptr; h = fstReaderIterateHier(reader)) {
      if (h->htyp == FST_HT_SCOPE) scopes.push_back(scopes.back() + h->u.scope.name + ".");
      if (h->htyp == FST_HT_UPSCOPE) scopes.pop_back();
      if (h->htyp != FST_HT_VAR) continue;
      const std::string path = scopes.back() + h->u.var.name;
      bits[path] = h->u.var.length;
      if (h->u.var.typ == FST_VT_VCD_PARAMETER) parameters.insert(path);
      paths_[h->u.var.handle].push_back(path);
    }
    fstReaderSetFacProcessMaskAll(reader);
    fstReaderIterBlocks(reader, &take, this, nullptr);
    fstReaderClose(reader);
  }
  /// "0 1000:1 3000:0": values with their times, as numbers.
  std::string text(const std::string& path) const {
    std::string all;
    const auto found = values.find(path);
    if (found == values.end()) return "no " + path;
    for (const auto& [at, value] : found->second)
      all +=
          (all.empty() ? "" : " ") + (at == 0 ? "" : std::to_string(at) + ":") +
          (value.find_first_not_of("01") == std::string::npos ? std::to_string(std::stoull(value, nullptr, 2)) : value);
    return all;
  }

 private:
  static void take(void* self, std::uint64_t at, fstHandle of, const unsigned char* value) {
    auto& r = *static_cast<read_wave*>(self);
    for (const std::string& path : r.paths_[of]) {
      auto& all = r.values[path];
      const std::string text = reinterpret_cast<const char*>(value);
      if (all.empty() || all.back().first != at)
        all.emplace_back(at, text);
      else
        all.back().second = text;  // the initial x
    }
  }
  std::map<fstHandle, std::vector<std::string>> paths_;
};

}  // namespace rnic::bench::test
