// The dashboard: files that are part of the program (web/dist).
#ifndef QUEEN_WEB_WEB_H
#define QUEEN_WEB_WEB_H

#include "http/req.h"

// Answers a GET of "/" with page ("/index.html" for the broker, "/platform.html" for the
// platform), or of another file of the dashboard. False: there is no such file, and the request
// has no answer yet.
bool web_reply(struct http_req *req, span page);

#endif
