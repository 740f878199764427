#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>

namespace bulkhead::io {

/// A body for Beast's parser, as text. Beast's own makes room for all that a client announces; this
/// one only for what has come, within a factor of two.
struct growing_body {
  using value_type = std::string;

  class reader {
  public:
    template <bool IsRequest, class Fields>
    reader(boost::beast::http::header<IsRequest, Fields>& /*head*/, value_type& body)
        : body_{body} {}

    void init(const boost::optional<std::uint64_t>& length, boost::system::error_code& failure) {
      announced_ = length;
      failure = {};
    }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& failure) {
      failure = {};
      auto bytes = boost::asio::buffer_size(buffers);
      auto before = body_.size();
      if (before + bytes > body_.capacity()) {
        std::uint64_t room = std::max(2 * body_.capacity(), before + bytes);
        body_.reserve(announced_
                          ? std::max<std::uint64_t>(std::min(room, *announced_), before + bytes)
                          : room);
      }
      body_.resize(before + bytes);
      return boost::asio::buffer_copy(boost::asio::buffer(body_.data() + before, bytes), buffers);
    }

    void finish(boost::system::error_code& failure) { failure = {}; }

  private:
    value_type& body_;
    boost::optional<std::uint64_t> announced_;
  };
};

} // namespace bulkhead::io
