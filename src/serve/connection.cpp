// Beast parses what comes in, which is the part that has to be right; what goes out is written as
// plain text.

#include "serve/connection.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <exception>
#include <new>

#include "base/parallel.h"
#include "base/text.h"
#include "serve/guard.h"
#include "serve/query.h"

namespace tensordiff::serve {
namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::buffer_body>;
using std::chrono::milliseconds;

constexpr std::size_t kPieceBytes = 64 << 10;

Request head_of(const Parser& parser) {
  const auto& message = parser.get();
  Request request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const std::size_t question = target.find('?');
  request.path = percent_decoded(target.substr(0, question));
  if (question != std::string::npos) request.query = target.substr(question + 1);
  for (const auto& field : message)
    request.headers.push_back(
        {lower(std::string(field.name_string())), std::string(field.value())});
  return request;
}

std::string head_text(const Response& response, uint64_t size, bool keep) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  const bool bare = response.status == 204 || response.status == 304;
  if (!bare) head += fmt::format("Content-Type: {}\r\n", response.type);
  if (!bare && !response.stream) head += fmt::format("Content-Length: {}\r\n", size);
  head += keep ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  for (const Header& header : response.headers)
    head += fmt::format("{}: {}\r\n", header.name, header.value);
  return head + "\r\n";
}

Response response_to(const boost::system::error_code& fault) {
  if (fault == http::error::header_limit) return problem(431, "the header is too large");
  if (fault == http::error::body_limit) return problem(413, "the body is too large");
  return problem(400, "not an HTTP request: " + fault.message());
}

std::string last_words(Response response) {
  add_security_headers(response);
  return head_text(response, response.body.size(), false) + response.body;
}

// Ready beforehand: when they are needed there may be no memory to make them in.
const std::string kOutOfMemory = last_words(problem(503, "out of memory"));
const std::string kInternalError = last_words(problem(500, "the request could not be handled"));
const std::string kTooMany = last_words(problem(503, "too many connections"));

// One client, request after request.
class Connection {
 public:
  Connection(const Socket& socket, const HttpHandler& handler, const HttpLimits& limits,
             CloseWatch& watch)
      : socket_(socket), handler_(handler), limits_(limits), watch_(watch) {}

  void run() {
    try {
      while (serve_one()) {
      }
    } catch (const std::bad_alloc&) {
      // One request too large for this machine must not end those of others.
      if (!answering_) socket_.write(kOutOfMemory, limits_.pause_max);
    } catch (const std::exception&) {
      if (!answering_) socket_.write(kInternalError, limits_.pause_max);
    }
  }

 private:
  enum class Input { parsed, answered, gone };

  // Whether there may be another request.
  bool serve_one() {
    answering_ = false;
    Parser parser;
    parser.header_limit(limits_.header_bytes_max);
    parser.body_limit(UINT64_MAX);  // Until the head says what the body is for.
    if (read_head(parser) != Input::parsed) return false;

    Request request = head_of(parser);
    BodyPlan plan = handler_.begin(request);
    if (plan.refusal) {
      // What follows is the body, which nobody reads: the connection ends here.
      send(std::move(*plan.refusal), request.method, parser.is_done() && parser.keep_alive());
      return parser.is_done() && parser.keep_alive();
    }
    parser.body_limit(plan.bytes_max);
    const auto length = parser.content_length();
    if (length && *length > plan.bytes_max) {
      send(problem(413, fmt::format("the body has {} bytes; at most {} are taken here", *length,
                                    plan.bytes_max)),
           request.method, false);
      return false;
    }
    if (read_body(parser, request, plan) != Input::parsed) return false;
    return respond(request, parser.keep_alive());
  }

  Input read_head(Parser& parser) {
    Clock::time_point deadline = Clock::now() + limits_.idle_time;
    bool begun = false;
    boost::system::error_code fault;
    for (;;) {
      if (pending_.size() > 0) {
        if (!begun) deadline = Clock::now() + limits_.header_time;
        begun = true;
        const std::size_t used = parser.put(pending_.data(), fault);
        pending_.consume(used);
        if (fault == http::error::need_more) fault = {};
        if (fault && fault != http::error::need_buffer) return refuse(response_to(fault));
        if (parser.is_header_done()) return Input::parsed;
        // The parser takes a head only whole; one that outgrows the limit is refused here.
        if (pending_.size() > limits_.header_bytes_max)
          return refuse(problem(431, "the header is too large"));
      }
      const Socket::Piece piece = receive(deadline);
      if (piece.got == Socket::Got::bytes) continue;
      if (piece.got == Socket::Got::late && begun)
        return refuse(problem(408, "the header took too long"));
      return Input::gone;
    }
  }

  Input read_body(Parser& parser, Request& request, BodyPlan& plan) {
    if (parser.is_done()) return Input::parsed;
    if (lower(request.header("expect")) == "100-continue" && pending_.size() == 0 &&
        !socket_.write("HTTP/1.1 100 Continue\r\n\r\n", limits_.pause_max))
      return Input::gone;
    const Clock::time_point start = Clock::now();
    std::vector<char> piece(kPieceBytes);
    uint64_t total = 0;
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      boost::system::error_code fault;
      pending_.consume(parser.put(pending_.data(), fault));
      const bool hungry = fault == http::error::need_more || (!fault && pending_.size() == 0);
      if (fault && fault != http::error::need_more && fault != http::error::need_buffer)
        return refuse(response_to(fault));
      // Extensions of a chunk and trailers come whole or not at all, and are of no use to anybody.
      if (hungry && pending_.size() > limits_.header_bytes_max)
        return refuse(problem(431, "a chunk header or trailer is too large"));
      const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
      total += bytes.size();
      if (!plan.sink) request.body += bytes;
      if (plan.sink && !bytes.empty())
        if (std::optional<Response> answer = plan.sink(bytes)) return refuse(std::move(*answer));
      if (parser.is_done() || !hungry) continue;
      const Socket::Piece more = receive(body_deadline(start, total));
      if (more.got == Socket::Got::late) return refuse(problem(408, "the body took too long"));
      if (more.got == Socket::Got::end) return Input::gone;
    }
    return Input::parsed;
  }

  Clock::time_point body_deadline(Clock::time_point start, uint64_t received) const {
    const auto earned = std::chrono::seconds(received / limits_.body_bytes_per_second);
    return std::min(start + limits_.body_time + earned, Clock::now() + limits_.pause_max);
  }

  Socket::Piece receive(Clock::time_point deadline) {
    const auto room = pending_.prepare(kPieceBytes);
    const Socket::Piece piece =
        socket_.read(static_cast<char*>(room.data()), room.size(), deadline);
    pending_.commit(piece.count);
    return piece;
  }

  bool respond(Request& request, bool keep) {
    Cancellation work;
    Response response;
    {
      const CloseWatch::Guard guard(watch_, socket_.file(), work);
      work.run([&] { response = handler_.respond(request); });
    }
    if (work.cancelled()) return false;
    return send(std::move(response), request.method, keep);
  }

  Input refuse(Response response) {
    send(std::move(response), "", false);
    return Input::answered;
  }

  bool send(Response response, std::string_view method, bool keep) {
    add_security_headers(response);
    keep = keep && !response.stream;
    const std::string_view body = response.fixed.empty() ? response.body : response.fixed;
    std::string head = head_text(response, body.size(), keep);
    const bool with_body = method != "HEAD" && response.status != 204 && response.status != 304;
    // Small answers go out in one piece.
    if (with_body && body.size() <= kPieceBytes) head += body;
    answering_ = true;
    if (!socket_.write(head, limits_.pause_max)) return false;
    if (response.stream && method == "HEAD") return false;
    if (response.stream) {
      response.stream(
          [this](std::string_view piece) { return socket_.write(piece, limits_.pause_max); });
      return false;
    }
    if (with_body && body.size() > kPieceBytes && !socket_.write(body, limits_.pause_max))
      return false;
    return keep;
  }

  const Socket& socket_;
  const HttpHandler& handler_;
  const HttpLimits& limits_;
  CloseWatch& watch_;
  boost::beast::flat_buffer pending_;
  bool answering_ = false;  // Bytes of an answer went out already.
};

}  // namespace

void converse(const Socket& socket, const HttpHandler& handler, const HttpLimits& limits,
              CloseWatch& watch) {
  Connection(socket, handler, limits, watch).run();
}

void turn_away(const Socket& socket) { socket.write(kTooMany, milliseconds(0)); }

}  // namespace tensordiff::serve
