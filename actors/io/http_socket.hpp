#pragma once

#include <string>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "actors/messages.hpp"
#include "protocol/error.hpp"

/// What all HTTP over unix sockets has in common.

namespace bulkhead::io {

using socket_stream = boost::beast::basic_stream<boost::asio::local::stream_protocol>;
using http_request = boost::beast::http::request<boost::beast::http::string_body>;

/// The address of a socket in the file system. Errors: closed, when the path is too long for one
/// (unix(7): 107 bytes).
expected<boost::asio::local::stream_protocol::endpoint> endpoint_of(const std::string& path);

/// A request as the engine's services take it, without `Connection`.
http_request make_request(boost::beast::http::verb method, const std::string& target,
                          std::string body);

/// The error of ours for one of a connection that stood, or not.
error explain(const boost::system::error_code& failure, const std::string& socket, bool connected);

} // namespace bulkhead::io
