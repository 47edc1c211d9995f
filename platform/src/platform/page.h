// page.h: the part of a list that a request asks for.
#ifndef QUEEN_PLATFORM_PAGE_H
#define QUEEN_PLATFORM_PAGE_H

#include "http/req.h"
#include "pg/params.h"

#define PAGE_PARAMS "search", "sort", "limit", "offset"

// Adds to params: search, sort (null: not given), limit and offset, from the query parameters
// PAGE_PARAMS. sorts: the permitted orders, ends with NULL. Returns false after replying that a
// parameter is invalid.
bool page_put(struct http_req *req, const char *const *sorts, struct pg_params *params);

#endif
