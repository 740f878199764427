#include "actors/io/stdio_channel.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

namespace bulkhead::io {

namespace {

constexpr std::size_t read_size = std::size_t{64} * 1024;

bool is_plain_file(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

} // namespace

nonblocking_mode::nonblocking_mode(int fd) : fd_{fd}, flags_{::fcntl(fd, F_GETFL)} {
  if (flags_ >= 0) {
    ::fcntl(fd, F_SETFL, flags_ | O_NONBLOCK);
  }
}

nonblocking_mode::~nonblocking_mode() {
  if (flags_ >= 0) {
    ::fcntl(fd_, F_SETFL, flags_);
  }
}

stdio_channel::stdio_channel(io_thread& io, int in, int out, std::size_t max_line,
                             std::size_t write_ahead, events to, std::size_t read_ahead)
    : context_{io.context()}, in_{context_}, out_{context_}, write_ahead_{write_ahead},
      read_ahead_{read_ahead}, to_{std::move(to)}, splitter_{max_line}, buffer_(read_size) {
  in_pollable_ = !is_plain_file(in);
  if (in_pollable_) {
    in_mode_.emplace(in);
    in_.assign(in);
  } else {
    plain_in_ = in;
  }
  if (is_plain_file(out)) {
    plain_out_ = out;
  } else {
    out_mode_.emplace(out);
    out_.assign(out);
  }
}

stdio_channel::~stdio_channel() {
  close_descriptors();
  for (int fd : {plain_in_, plain_out_}) {
    if (fd >= 0) {
      ::close(fd);
    }
  }
}

void stdio_channel::start() {
  boost::asio::post(context_, [self = shared_from_this()] { self->read_more(); });
}

void stdio_channel::taken(std::size_t bytes) {
  boost::asio::post(context_, [self = shared_from_this(), bytes] {
    self->untaken_ -= std::min(bytes, self->untaken_);
    self->read_more();
  });
}

void stdio_channel::write(std::string bytes) {
  boost::asio::post(context_, [self = shared_from_this(), text = std::move(bytes)]() mutable {
    if (self->broken_ || self->closed_ || text.empty()) {
      return;
    }
    self->queued_ += text.size();
    self->queue_.push_back(std::move(text));
    if (!self->writing_) {
      self->write_more();
    }
  });
}

void stdio_channel::when_drained(std::function<void()> done) {
  boost::asio::post(context_, [self = shared_from_this(), done = std::move(done)]() mutable {
    self->drains_.push_back(std::move(done));
    if (self->queue_.empty()) {
      self->finish_drains();
    }
  });
}

void stdio_channel::close() {
  boost::asio::post(context_, [self = shared_from_this()] {
    self->closed_ = true;
    self->drop_output();
    self->close_descriptors();
  });
}

void stdio_channel::close_descriptors() {
  // In reverse: both may be one terminal, and the first saw how it was.
  out_mode_.reset();
  in_mode_.reset();
  boost::system::error_code ignored;
  in_.close(ignored);
  out_.close(ignored);
}

void stdio_channel::wait_readable() {
  reading_ = true;
  in_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                 [self = shared_from_this()](const boost::system::error_code& failure) {
                   self->reading_ = false;
                   if (!failure) {
                     self->read_more();
                   }
                 });
}

void stdio_channel::read_more() {
  if (closed_ || ended_ || reading_ || queued_ > write_ahead_ || untaken_ >= read_ahead_) {
    return;
  }
  int fd = in_pollable_ ? in_.native_handle() : plain_in_;
  auto count = ::read(fd, buffer_.data(), buffer_.size());
  if (count > 0) {
    take_input(buffer_.data(), static_cast<std::size_t>(count));
    // One read a turn, so that children and output get theirs.
    reading_ = true;
    boost::asio::post(context_, [self = shared_from_this()] {
      self->reading_ = false;
      self->read_more();
    });
  } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    wait_readable();
  } else {
    report_end();
  }
}

void stdio_channel::take_input(const char* data, std::size_t size) {
  auto tell = [this](std::string_view line) {
    untaken_ += line.size() + 1;
    to_.line(std::string{line});
  };
  splitter_.feed({data, size}, {tell, [this] { to_.overlong(); }});
}

void stdio_channel::report_end() {
  if (ended_) {
    return;
  }
  ended_ = true;
  if (splitter_.held() > 0) {
    // A last line without its newline is a message all the same.
    to_.line(splitter_.partial());
  }
  to_.end();
}

void stdio_channel::write_more() {
  writing_ = false;
  while (!queue_.empty()) {
    int fd = plain_out_ >= 0 ? plain_out_ : out_.native_handle();
    const auto& front = queue_.front();
    auto count = ::write(fd, front.data() + offset_, front.size() - offset_);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && errno == EAGAIN) {
      writing_ = true;
      out_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                      [self = shared_from_this()](const boost::system::error_code& failure) {
                        failure ? self->drop_output() : self->write_more();
                      });
      return;
    }
    if (count < 0) {
      drop_output();
      return;
    }
    offset_ += static_cast<std::size_t>(count);
    queued_ -= static_cast<std::size_t>(count);
    if (offset_ == front.size()) {
      queue_.pop_front();
      offset_ = 0;
    }
  }
  finish_drains();
  read_more();
}

void stdio_channel::drop_output() {
  broken_ = true;
  writing_ = false;
  queue_.clear();
  queued_ = 0;
  offset_ = 0;
  finish_drains();
  // Reading may have waited for the output; only it sees the end of the input.
  read_more();
}

void stdio_channel::finish_drains() {
  auto drains = std::exchange(drains_, {});
  for (auto& done : drains) {
    done();
  }
}

} // namespace bulkhead::io
