// SPDX-License-Identifier: Apache-2.0
// What a function finds out in a process of its own: one process has one SystemC kernel, which runs one simulation.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace rnic::bench {

/// In a process that `parent` has just forked: it ends with that one, by whatever signal that ends, also when another
/// program takes its place. Nobody would read what it finds, and it might go on to write files.
void end_with_parent(pid_t parent);

/// A process that runs a function and ends. Its result, or the words of its exception, come through a pipe.
class child {
 public:
  /// Starts it. Throws std::runtime_error when there is no process to be had.
  explicit child(const std::function<std::string()>& body);
  child(child&& other) noexcept;
  child& operator=(child&& other) noexcept;
  ~child();

  /// Becomes readable when there is a result, or the process has ended without one.
  int pipe() const { return pipe_; }
  /// Waits for the end and gives the result. Throws std::runtime_error with what the function has thrown, or that the
  /// process has ended before its function. Once.
  std::string finish();

 private:
  pid_t process_ = -1;
  int pipe_ = -1;
};

/// Runs `body(0)` to `body(count - 1)`, each in a process of its own, `jobs` at a time (0: one for each processor).
/// `ended` is told which one has ended, in the order in which they end, and calls finish() on it. What it throws ends
/// the others' turn: those under way are waited for.
void run_children(std::size_t count, unsigned jobs, const std::function<std::string(std::size_t)>& body,
                  const std::function<void(std::size_t, child&)>& ended);

/// The result of `body`, text or a plain structure, from a process of its own. Throws as child::finish().
template <class Body>
auto in_child(Body body) -> decltype(body()) {
  using result = decltype(body());
  if constexpr (std::is_same_v<result, std::string>) {
    return child(body).finish();
  } else {
    static_assert(std::is_trivially_copyable_v<result>);
    const std::string bytes = child([&body] {
                                const result r = body();
                                return std::string(reinterpret_cast<const char*>(&r), sizeof r);
                              }).finish();
    result r;
    if (bytes.size() != sizeof r) throw std::runtime_error("a result of another size came from a child");
    std::memcpy(&r, bytes.data(), sizeof r);
    return r;
  }
}

}  // namespace rnic::bench
