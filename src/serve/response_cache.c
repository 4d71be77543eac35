#include "serve/http.h"

#include "base/util.h"
#include "report/page/page.h"

#include <stdlib.h>

enum { DOCUMENT_CEILING = 1 << 25 };

static void write_now(const struct view *view, struct buf *out)
{
	view_json(view, false, out);
}
static void write_history(const struct view *view, struct buf *out)
{
	view_json(view, true, out);
}
static void write_text(const struct view *view, struct buf *out)
{
	view_metrics(view, false, out);
}
static void write_openmetrics(const struct view *view, struct buf *out)
{
	view_metrics(view, true, out);
}

static const struct {
	const char *type;
	void (*write)(const struct view *view, struct buf *out);
} documents[RESPONSES] = {
	[RESPONSE_PAGE] = {"text/html; charset=utf-8", view_page},
	[RESPONSE_FIGURES] = {"text/html; charset=utf-8", view_figures},
	[RESPONSE_NOW] = {"application/json", write_now},
	[RESPONSE_HISTORY] = {"application/json", write_history},
	[RESPONSE_TEXT] = {"text/plain; version=0.0.4; charset=utf-8", write_text},
	[RESPONSE_OPENMETRICS] = {"application/openmetrics-text; version=1.0.0; charset=utf-8", write_openmetrics},
};

/* Headers that forbid other sites to frame the response, and browsers to guess its type or to cache it. */
static bool add_headers(const struct mhd *mhd, struct MHD_Response *response, const char *type, const char *policy)
{
	const struct {
		const char *name, *value;
	} headers[] = {
		{"Content-Type", type},
		{"Content-Security-Policy", policy},
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		if (mhd->header(response, headers[i].name, headers[i].value) != MHD_YES)
			return false;
	return true;
}

static struct MHD_Response *respond(const struct mhd *mhd, struct buf *body, const char *type, const char *policy)
{
	size_t size = body->size;
	char *text = buf_take(body);
	if (text == NULL)
		return NULL;
	struct MHD_Response *response = mhd->response(size, text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL) {
		free(text);
		return NULL;
	}
	if (add_headers(mhd, response, type, policy))
		return response;
	mhd->drop(response);
	return NULL;
}

static void write_policy(enum response_kind which, struct buf *out)
{
	if (which == RESPONSE_PAGE)
		page_policy(out, PAGE_SCRIPT_LIVE, true);
	else
		buf_str(out, "default-src 'none'");
	buf_str(out, "; frame-ancestors 'none'");
}

struct MHD_Response *response_cache_get(struct response_cache *responses_cached, enum response_kind which,
	const struct view *view)
{
	if (responses_cached->responses[which] != NULL)
		return responses_cached->responses[which];
	struct buf body, policy;
	if (which == RESPONSE_TEXT || which == RESPONSE_OPENMETRICS)
		responses_cached->before_metrics(responses_cached->data);
	buf_init(&body, DOCUMENT_CEILING);
	buf_init(&policy, 1 << 12);
	documents[which].write(view, &body);
	write_policy(which, &policy);
	if (!policy.failed)
		responses_cached->responses[which] = respond(responses_cached->mhd, &body, documents[which].type,
			policy.data);
	buf_finish(&policy);
	buf_finish(&body);
	return responses_cached->responses[which];
}

void response_cache_clear(struct response_cache *responses_cached)
{
	for (size_t i = 0; i < RESPONSES; i++) {
		if (responses_cached->responses[i] != NULL) // clients that still read it hold their own reference
			responses_cached->mhd->drop(responses_cached->responses[i]);
		responses_cached->responses[i] = NULL;
	}
}

struct MHD_Response *response_text(const struct mhd *mhd, const char *text)
{
	struct buf body;
	buf_init(&body, 1 << 12);
	buf_str(&body, text);
	struct MHD_Response *response = respond(mhd, &body, "text/plain; charset=utf-8",
		"default-src 'none'; frame-ancestors 'none'");
	buf_finish(&body);
	return response;
}
