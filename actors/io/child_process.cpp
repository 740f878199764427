#include "actors/io/child_process.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "actors/io/spawn.hpp"

namespace bulkhead::io {

namespace {

constexpr std::size_t read_size = std::size_t{64} * 1024;

/// One buffer serves all children: they live on one thread.
std::array<char, read_size>& read_buffer() {
  static std::array<char, read_size> buffer;
  return buffer;
}

void set_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

} // namespace

child_process::child_process(io_thread& io, const process_spec& spec)
    : io_{io}, exit_{io.context()}, in_{io.context()}, out_{io.context()}, err_{io.context()},
      kill_group_{spec.kill_group_at_exit}, successor_file_{spec.successor_file} {}

expected<std::shared_ptr<child_process>> child_process::start(io_thread& io,
                                                              const process_spec& spec) {
  auto started = spawn(spec);
  if (!started) {
    return tl::unexpected{started.error()};
  }
  std::shared_ptr<child_process> self{new child_process{io, spec}};
  self->pid_ = started->pid;
  io.child_started(started->pid);
  if (!spec.successor_file.empty()) {
    io.expect_successor();
  }
  for (int fd : {started->in.get(), started->out.get(), started->err.get()}) {
    set_nonblocking(fd);
  }
  self->in_.assign(started->in.release());
  self->out_.descriptor.assign(started->out.release());
  self->err_.descriptor.assign(started->err.release());
  self->exit_.assign(started->pidfd.release());
  return self;
}

child_process::~child_process() {
  if (!reaped_ && pid_ > 0) {
    // Only when the I/O thread itself is torn down.
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void child_process::begin(events to, std::uint64_t credit) {
  to_ = std::move(to);
  add_credit(stream_id::out, credit);
  add_credit(stream_id::err, credit);
  wait_for_exit();
}

void child_process::add_credit(stream_id stream, std::uint64_t bytes) {
  end_of(stream).credit += bytes;
  read_more(stream);
}

void child_process::read_more(stream_id stream) {
  auto& end = end_of(stream);
  if (end.closed || end.waiting) {
    return;
  }
  if (end.left == 0) {
    close_stream(stream);
    return;
  }
  if (end.credit == 0 && !muted_) {
    return;
  }
  auto& buffer = read_buffer();
  auto want = std::min<std::uint64_t>(buffer.size(), end.left);
  want = muted_ ? want : std::min<std::uint64_t>(want, end.credit);
  auto count = ::read(end.descriptor.native_handle(), buffer.data(), want);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
    close_stream(stream);
    return;
  }
  if (count < 0 && reaped_) {
    // The leader is gone and nothing is left in the pipe; who else holds it open is not our child.
    close_stream(stream);
    return;
  }
  end.waiting = true;
  if (count > 0) {
    end.left -= reaped_ ? static_cast<std::uint64_t>(count) : 0;
    if (!muted_) {
      end.credit -= static_cast<std::uint64_t>(count);
      to_.output(stream, std::string(buffer.data(), static_cast<std::size_t>(count)));
    }
    boost::asio::post(io_.context(), [self = shared_from_this(), stream] {
      self->end_of(stream).waiting = false;
      self->read_more(stream);
    });
    return;
  }
  end.descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [self = shared_from_this(), stream](const auto& failure) {
                              self->end_of(stream).waiting = false;
                              if (!failure || self->reaped_) {
                                self->read_more(stream);
                              }
                            });
}

void child_process::close_stream(stream_id stream) {
  auto& end = end_of(stream);
  end.closed = true;
  boost::system::error_code ignored;
  end.descriptor.close(ignored);
  if (!reaped_ && !muted_ && to_.output) {
    // No bytes: the child lives and has closed the stream.
    to_.output(stream, {});
  }
  report_when_over();
}

void child_process::write(std::string bytes) {
  if (!in_.is_open()) {
    if (!muted_ && !reported_ && to_.written) {
      to_.written(bytes.size());
    }
    return;
  }
  queue_.push_back(std::move(bytes));
  if (!writing_) {
    write_more();
  }
}

void child_process::write_more() {
  std::uint64_t done = 0;
  while (!queue_.empty()) {
    const auto& front = queue_.front();
    auto count = ::write(in_.native_handle(), front.data() + offset_, front.size() - offset_);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      break;
    }
    done += static_cast<std::uint64_t>(count);
    offset_ += static_cast<std::size_t>(count);
    if (offset_ == front.size()) {
      queue_.pop_front();
      offset_ = 0;
    }
  }
  bool blocked = !queue_.empty() && errno == EAGAIN;
  if (done > 0 && !muted_ && !reported_) {
    to_.written(done);
  }
  if (blocked) {
    writing_ = true;
    in_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                   [self = shared_from_this()](const auto& failure) {
                     self->writing_ = false;
                     failure ? self->drop_input() : self->write_more();
                   });
  } else if (!queue_.empty() || closing_input_) {
    drop_input();
  }
}

void child_process::drop_input() {
  std::uint64_t dropped = 0;
  for (const auto& bytes : queue_) {
    dropped += bytes.size();
  }
  dropped -= offset_;
  queue_.clear();
  offset_ = 0;
  boost::system::error_code ignored;
  in_.close(ignored);
  if (dropped > 0 && !muted_ && !reported_) {
    to_.written(dropped);
  }
}

void child_process::close_input() {
  closing_input_ = true;
  if (queue_.empty() && in_.is_open()) {
    drop_input();
  }
}

void child_process::signal(int signal) {
  if (!reaped_) {
    ::kill(-pid_, signal);
    if (followed_) {
      // It need not lead a process group.
      ::kill(pid_, signal);
    }
  }
}

void child_process::mute() {
  muted_ = true;
  read_more(stream_id::out);
  read_more(stream_id::err);
}

void child_process::wait_for_exit() {
  exit_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [self = shared_from_this()](const auto& failure) {
                     if (!failure) {
                       self->reap();
                     }
                   });
}

void child_process::reap() {
  if (kill_group_) {
    // While the leader is a zombie its process group's number can't be given to another.
    ::kill(-pid_, SIGKILL);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  bool over = successor_file_.empty() || status != 0 || !follow_successor();
  if (!std::exchange(successor_file_, {}).empty()) {
    io_.successor_found();
  }
  if (!over) {
    wait_for_exit();
    return;
  }
  reaped_ = true;
  io_.child_reaped(pid_);
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit_code_ = WIFSIGNALED(status) ? 128 + signal_ : WEXITSTATUS(status);
  boost::system::error_code ignored;
  exit_.close(ignored);
  closing_input_ = true;
  drop_input();
  for (auto stream : {stream_id::out, stream_id::err}) {
    end_of(stream).left = unread(stream);
    if (end_of(stream).waiting) {
      // Wakes the pending wait, which then reads what is left and closes.
      end_of(stream).descriptor.cancel(ignored);
    } else {
      read_more(stream);
    }
  }
  report_when_over();
}

/// The process named in the file takes the place of the leader, which is reaped. False when there
/// is none, or it is no child of ours.
bool child_process::follow_successor() {
  std::ifstream file{successor_file_};
  pid_t pid = 0;
  siginfo_t info{};
  // Orphans become our children (see adopt_orphans), and aren't reaped meanwhile.
  if (!(file >> pid) || pid <= 1 ||
      ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return false;
  }
  descriptor pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (pidfd.get() < 0) {
    return false;
  }
  boost::system::error_code ignored;
  exit_.close(ignored);
  exit_.assign(pidfd.release());
  io_.child_started(pid);
  io_.child_reaped(std::exchange(pid_, pid));
  followed_ = true;
  return true;
}

/// What the child has written and nobody read. Whoever else holds the pipe open may write on for
/// ever; that isn't the child's output.
std::uint64_t child_process::unread(stream_id stream) {
  int bytes = 0;
  auto& end = end_of(stream);
  if (end.closed || ::ioctl(end.descriptor.native_handle(), FIONREAD, &bytes) != 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(bytes);
}

void child_process::report_when_over() {
  if (reaped_ && out_.closed && err_.closed && !reported_) {
    reported_ = true;
    // The callbacks may hold what holds us.
    auto to = std::exchange(to_, {});
    to.exited(exit_code_, signal_);
  }
}

} // namespace bulkhead::io
