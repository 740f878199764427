#include "actors/io/curl_driver.hpp"

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace bulkhead::io {

namespace {

/// Connections that are kept for later requests.
constexpr long kept_connections = 16;

CURLM* make_multi() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  return curl_multi_init();
}

} // namespace

std::shared_ptr<curl_driver> curl_driver::make(io_thread& io,
                                               std::function<void(CURL*, CURLcode)> over) {
  std::shared_ptr<curl_driver> made{new curl_driver{io, std::move(over)}};
  made->wait();
  return made;
}

curl_driver::curl_driver(io_thread& io, std::function<void(CURL*, CURLcode)> over)
    : multi_{make_multi()}, epoll_{io.context()}, timer_{io.context()}, over_{std::move(over)} {
  int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (multi_ == nullptr || fd < 0) {
    curl_multi_cleanup(multi_);
    throw std::runtime_error{"start the HTTP client: no memory or no descriptors left"};
  }
  epoll_.assign(fd);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &curl_driver::socket_changed);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &curl_driver::timer_changed);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kept_connections);
}

curl_driver::~curl_driver() {
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, nullptr);
  curl_multi_cleanup(multi_);
}

bool curl_driver::add(CURL* transfer) {
  return curl_multi_add_handle(multi_, transfer) == CURLM_OK;
}

void curl_driver::remove(CURL* transfer) {
  curl_multi_remove_handle(multi_, transfer);
}

int curl_driver::socket_changed(CURL*, curl_socket_t socket, int what, void* self, void*) {
  auto epoll = static_cast<curl_driver*>(self)->epoll_.native_handle();
  epoll_event event{};
  event.data.fd = socket;
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, &event);
    return 0;
  }
  event.events =
      ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U);
  if (::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) != 0) {
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : -1;
  }
  return 0;
}

int curl_driver::timer_changed(CURLM*, long milliseconds, void* self) {
  auto& driver = *static_cast<curl_driver*>(self);
  driver.timer_.cancel();
  if (milliseconds < 0) {
    return 0;
  }
  // Also for none at all: libcurl mustn't be entered from within.
  driver.timer_.expires_after(std::chrono::milliseconds{milliseconds});
  driver.timer_.async_wait([weak = driver.weak_from_this()](const auto& cancelled) {
    auto self = weak.lock();
    // A wait that was over already when it was replaced isn't told by its error.
    if (!cancelled && self && self->timer_.expiry() <= std::chrono::steady_clock::now()) {
      self->act(CURL_SOCKET_TIMEOUT, 0);
    }
  });
  return 0;
}

void curl_driver::wait() {
  epoll_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [weak = weak_from_this()](const auto& failure) {
                      auto self = weak.lock();
                      if (self && !failure) {
                        self->sockets_ready();
                        self->wait();
                      }
                    });
}

void curl_driver::sockets_ready() {
  std::array<epoll_event, 32> events{};
  auto count = ::epoll_wait(epoll_.native_handle(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const auto& event = events.at(static_cast<std::size_t>(i));
    act(event.data.fd, ((event.events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                           ((event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                           ((event.events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0));
  }
}

void curl_driver::act(curl_socket_t socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, events, &running);
  report();
}

void curl_driver::report() {
  int left = 0;
  while (auto* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) {
      auto* transfer = message->easy_handle;
      auto outcome = message->data.result;
      curl_multi_remove_handle(multi_, transfer); // the message dies with it
      over_(transfer, outcome);
    }
  }
}

} // namespace bulkhead::io
