#include "serve/http.h"

#include "base/util.h"

#include <strings.h>

struct refusal {
	unsigned int status;
	const char *text;
	const char *header, *value; // NULL: none
};

static const struct refusal refusals[] = {
	{400, "The request must have exactly one Host header.\n"},
	{403,
		"The Host header is not served here: use localhost, the IP address, or the name given with "
		"--listen.\n"},
	{403, "Cross-site requests are refused.\n"},
	{401, "A token is required: send `Authorization: Bearer TOKEN`, or use the token as the password of any user.\n",
		"WWW-Authenticate", "Basic realm=\"wattle\", charset=\"UTF-8\""},
	{405, "This server is read-only: use GET or HEAD.\n", "Allow", "GET, HEAD"},
	{404, "Not found. Available are / (the page), /metrics (OpenMetrics) and /now.json.\n"},
	{500, "Out of memory.\n"},
};
enum { TWO_HOSTS, WRONG_HOST, ELSEWHERE, NO_TOKEN, READ_ONLY, NOT_FOUND, NO_MEMORY };

static enum MHD_Result refuse(const struct mhd *mhd, struct MHD_Connection *connection, size_t which)
{
	const struct refusal *refusal = &refusals[which];
	struct MHD_Response *response = response_text(mhd, refusal->text);
	if (response == NULL)
		return MHD_NO;
	if (refusal->header != NULL)
		mhd->header(response, refusal->header, refusal->value);
	enum MHD_Result r = mhd->queue(connection, refusal->status, response);
	mhd->drop(response);
	return r;
}

static const char *header_of(const struct mhd *mhd, struct MHD_Connection *connection, const char *name)
{
	return mhd->value(connection, MHD_HEADER_KIND, name);
}

struct hosts {
	const char *first;
	size_t n;
};

static enum MHD_Result count_hosts(void *data, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct hosts *hosts = data;
	if (strcasecmp(key, "Host") == 0 && hosts->n++ == 0)
		hosts->first = value;
	return MHD_YES;
}

// Only HTTP/1.0 may omit Host, and browsers don't use it; the library enforces this.
static int check_host(const struct request_rules *rules, struct MHD_Connection *connection)
{
	struct hosts hosts = {0};
	rules->mhd->values(connection, MHD_HEADER_KIND, count_hosts, &hosts);
	if (hosts.n > 1)
		return TWO_HOSTS;
	if (!rules->checks_host || hosts.n == 0)
		return -1;
	return hosts.first != NULL && request_host_is_ours(hosts.first, rules->name) ? -1 : WRONG_HOST;
}

bool request_is_reading(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

// Index of the refusal; -1: authorised.
static int check(const struct request_rules *rules, struct MHD_Connection *connection, const char *method)
{
	const struct mhd *mhd = rules->mhd;
	int wrong = check_host(rules, connection);
	if (wrong >= 0)
		return wrong;
	if (request_is_cross_site(header_of(mhd, connection, "Sec-Fetch-Site"),
		    header_of(mhd, connection, "Sec-Fetch-Mode")))
		return ELSEWHERE;
	if (rules->token->length > 0 && !token_matches(rules->token, header_of(mhd, connection, "Authorization")))
		return NO_TOKEN;
	return request_is_reading(method) ? -1 : READ_ONLY;
}

// Requests through a proxy may contain an absolute URL. The Host header has already been checked.
static const char *without_origin(const char *url)
{
	static const char scheme[] = "http://";
	if (strncasecmp(url, scheme, strlen(scheme)) != 0)
		return url;
	const char *path = strchr(url + strlen(scheme), '/');
	return path != NULL ? path : "/";
}

static bool has_argument(const struct mhd *mhd, struct MHD_Connection *connection, const char *name)
{
	return mhd->value(connection, MHD_GET_ARGUMENT_KIND, name) != NULL;
}

static int find(const struct mhd *mhd, struct MHD_Connection *connection, const char *url)
{
	const char *path = without_origin(url);
	if (strcmp(path, "/") == 0)
		return RESPONSE_PAGE;
	if (strcmp(path, "/figures") == 0) // fetched by the page's script
		return RESPONSE_FIGURES;
	if (strcmp(path, "/metrics") == 0)
		return request_wants_openmetrics(header_of(mhd, connection, "Accept")) ? RESPONSE_OPENMETRICS
										       : RESPONSE_TEXT;
	if (strcmp(path, "/now.json") == 0)
		return has_argument(mhd, connection, "history") || has_argument(mhd, connection, "trail") // //
													  // deprecated
													  // name
			? RESPONSE_HISTORY
			: RESPONSE_NOW;
	return -1;
}

enum MHD_Result request_answer(const struct request_rules *rules, struct response_cache *responses_cached,
	const struct view *view, struct MHD_Connection *connection, const char *path, const char *method,
	bool *ret_is_scrape)
{
	const struct mhd *mhd = rules->mhd;
	int wrong = check(rules, connection, method);
	*ret_is_scrape = false;
	if (wrong >= 0)
		return refuse(mhd, connection, (size_t)wrong);
	int which = find(mhd, connection, path);
	if (which < 0)
		return refuse(mhd, connection, NOT_FOUND);
	*ret_is_scrape = (which == RESPONSE_TEXT || which == RESPONSE_OPENMETRICS) && strcmp(method, "GET") == 0;
	struct MHD_Response *response = response_cache_get(responses_cached, (enum response_kind)which, view);
	return response != NULL ? mhd->queue(connection, MHD_HTTP_OK, response) : refuse(mhd, connection, NO_MEMORY);
}
