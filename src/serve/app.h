// All that the server holds, and the way of a request through it: guard, route, handler.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/exports.h"
#include "serve/guard.h"
#include "serve/jobs.h"
#include "serve/lanes.h"
#include "serve/message.h"
#include "serve/options.h"
#include "serve/roots.h"
#include "serve/sessions.h"
#include "serve/sources.h"
#include "serve/state_folder.h"
#include "serve/store.h"
#include "serve/uploads.h"
#include "serve/views.h"

namespace tensordiff::serve {

struct Match;  // serve/routes.h

class App {
 public:
  // The guard's token is that of the state folder.
  static Result<std::unique_ptr<App>> make(const ServeOptions& options, Guard guard);
  App(const App&) = delete;
  App& operator=(const App&) = delete;
  ~App();

  BodyPlan begin(Request& request);
  Response respond(const Request& request);
  // Ends jobs and event streams, so that connections can end.
  void stop();
  bool stopping() const { return stopping_; }

  // Opens the inputs of the command line or the demo as a session; nothing when there are none.
  Result<SessionPtr> open_inputs();
  Result<SessionPtr> open_demo();

  const ServeOptions options;
  const Guard guard;
  const Roots roots;
  const StateFolder folder;
  Store store;
  Sources sources;
  Jobs jobs;
  Sessions sessions;
  Uploads uploads;
  Exports exports;
  PairCache pairs;
  Lanes lanes;
  std::string opened;  // The session of the command line.

  // Sessions that POST /upload made, the last one last.
  std::mutex flask_mutex;
  std::vector<std::string> flask_sessions;

 private:
  App(ServeOptions chosen, Guard guarded, Roots allowed, Roots read, StateFolder kept,
      Store opened_store);
  Response answer(const Request& request, const Match& match);
  // Removes what uploads of earlier runs left behind and nobody uses.
  void sweep();

  std::atomic<bool> stopping_ = false;
};

}  // namespace tensordiff::serve
