// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory_jitter.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace rnic::host {

namespace {

/// Of a million accesses, so many take at most that much more than the median.
struct quantile {
  std::uint32_t of_million;
  sim::time_ps extra_ps;
};
constexpr std::size_t quantiles = 15;
using measured_tail = std::array<quantile, quantiles>;

// pcie-bench's data, LAT_CMD_RD of 8 bytes, 16.8 million samples each, in steps of 13.3 ns: window of 8 KB that the
// host has warmed, and of 64 MB that no cache holds. What the card adds of its own is in it.
constexpr measured_tail e5_cache{{{500'000, 0},
                                  {600'000, 1'900},
                                  {700'000, 3'800},
                                  {800'000, 6'300},
                                  {900'000, 12'600},
                                  {950'000, 15'800},
                                  {990'000, 18'400},
                                  {995'000, 18'700},
                                  {999'000, 27'100},
                                  {999'500, 30'300},
                                  {999'900, 39'300},
                                  {999'950, 42'500},
                                  {999'990, 45'000},
                                  {999'999, 52'300},
                                  {1'000'000, 178'800}}};
constexpr measured_tail e5_memory{{{500'000, 0},
                                   {600'000, 2'900},
                                   {700'000, 5'900},
                                   {800'000, 9'000},
                                   {900'000, 12'000},
                                   {950'000, 13'500},
                                   {990'000, 99'900},
                                   {995'000, 138'200},
                                   {999'000, 173'100},
                                   {999'500, 216'100},
                                   {999'900, 225'500},
                                   {999'950, 226'600},
                                   {999'990, 238'900},
                                   {999'999, 296'900},
                                   {1'000'000, 320'700}}};
constexpr measured_tail e3_cache{{{500'000, 0},
                                  {600'000, 66'700},
                                  {700'000, 628'600},
                                  {800'000, 1'262'400},
                                  {900'000, 1'655'500},
                                  {950'000, 2'172'700},
                                  {990'000, 4'510'300},
                                  {995'000, 5'196'800},
                                  {999'000, 11'073'300},
                                  {999'500, 2'008'182'600},
                                  {999'900, 2'340'849'200},
                                  {999'950, 2'703'760'300},
                                  {999'990, 2'954'711'400},
                                  {999'999, 3'016'260'300},
                                  {1'000'000, 4'983'893'600}}};
constexpr measured_tail e3_memory{{{500'000, 0},
                                   {600'000, 13'600},
                                   {700'000, 767'900},
                                   {800'000, 849'400},
                                   {900'000, 1'013'700},
                                   {950'000, 2'253'000},
                                   {990'000, 5'194'300},
                                   {995'000, 8'295'300},
                                   {999'000, 2'017'346'600},
                                   {999'500, 2'017'997'200},
                                   {999'900, 2'701'255'600},
                                   {999'950, 2'867'600'100},
                                   {999'990, 3'000'980'100},
                                   {999'999, 4'449'175'600},
                                   {1'000'000, 5'837'735'600}}};

/// Between two figures a straight line; `at` is 0 to 2^32 - 1.
sim::time_ps extra(const measured_tail& tail, std::uint32_t at) {
  constexpr std::uint64_t million = 1'000'000;
  const std::uint64_t scaled = at * million;  // of 2^32 millionths
  for (std::size_t i = 1; i < quantiles; ++i) {
    const std::uint64_t end = std::uint64_t{tail[i].of_million} << 32;
    if (scaled >= end) continue;
    const std::uint64_t begin = std::uint64_t{tail[i - 1].of_million} << 32;
    if (scaled < begin) return 0;
    const sim::time_ps rise = tail[i].extra_ps - tail[i - 1].extra_ps;
    const std::uint64_t part = (scaled - begin) / ((end - begin) >> 16);  // of 2^16
    return tail[i - 1].extra_ps + (rise * part >> 16);
  }
  return tail.back().extra_ps;
}

/// FNV-1a: names give seeds that do not depend on the library.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
  return h;
}

}  // namespace

memory_jitter::memory_jitter(const std::string& owner, const memory_jitter_config& c)
    : law_(c.law), mean_ps_(c.mean_ps), random_(c.seed ^ hash(owner)) {}

sim::time_ps memory_jitter::draw(bool beyond_cache) {
  const auto at = static_cast<std::uint32_t>(random_() >> 32);
  switch (law_) {
    case jitter_law::none:
      return 0;
    case jitter_law::exponential: {
      const double above = (4294967296.0 - at) / 4294967296.0;  // more than 0, at most 1
      return static_cast<sim::time_ps>(std::llround(-std::log(above) * static_cast<double>(mean_ps_)));
    }
    case jitter_law::e5:
      return extra(beyond_cache ? e5_memory : e5_cache, at);
    case jitter_law::e3:
      return extra(beyond_cache ? e3_memory : e3_cache, at);
  }
  return 0;
}

}  // namespace rnic::host
