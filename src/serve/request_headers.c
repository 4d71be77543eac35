#include "serve/http.h"

#include "base/num.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

static bool is_port(const char *text)
{
	return *text == '\0' || (*text == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

// Extracts the host name: no port, no brackets, no trailing dot. Returns false if the value is malformed.
static bool name_of(const char *host, char *out, size_t size)
{
	const char *end;
	if (*host == '[') {
		end = strchr(host++, ']');
		if (end == NULL || !is_port(end + 1))
			return false;
	} else {
		end = host + strcspn(host, ":");
		if (!is_port(end))
			return false;
		if (end > host && end[-1] == '.')
			end--;
	}
	if (end == host || (size_t)(end - host) >= size)
		return false;
	memcpy(out, host, (size_t)(end - host));
	out[end - host] = '\0';
	return true;
}

// An IP address needs no DNS lookup, so DNS rebinding cannot redirect it.
static bool is_address(const char *name)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

bool request_host_is_ours(const char *host, const char *name)
{
	char asked[256];
	if (!name_of(host, asked, sizeof(asked)))
		return false;
	return is_address(asked) || strcasecmp(asked, "localhost") == 0 ||
		(name[0] != '\0' && strcasecmp(asked, name) == 0);
}

bool request_is_cross_site(const char *site, const char *mode)
{
	if (site == NULL || strcasecmp(site, "same-origin") == 0 || strcasecmp(site, "none") == 0)
		return false;
	return mode == NULL || strcasecmp(mode, "navigate") != 0;
}

static double quality_of(const char *parameters, const char *end)
{
	while (parameters < end) {
		parameters++; // the semicolon
		parameters += strspn(parameters, " \t");
		if (strncasecmp(parameters, "q=", 2) == 0) {
			const char *after;
			double q = num_read_double(parameters + 2, &after);
			return after == parameters + 2 || isnan(q) ? 0 : q;
		}
		const char *next = memchr(parameters, ';', (size_t)(end - parameters));
		parameters = next != NULL ? next : end;
	}
	return 1;
}

static bool is_media(const char *text, size_t length, const char *media)
{
	return length == strlen(media) && strncasecmp(text, media, length) == 0;
}

bool request_wants_openmetrics(const char *accept)
{
	double openmetrics = 0, text = 0;
	while (accept != NULL && *accept != '\0') {
		accept += strspn(accept, " \t,");
		const char *end = accept + strcspn(accept, ",");
		size_t length = strcspn(accept, ";, \t");
		const char *parameters = memchr(accept, ';', (size_t)(end - accept));
		double q = quality_of(parameters != NULL ? parameters : end, end);
		if (is_media(accept, length, "application/openmetrics-text"))
			openmetrics = fmax(openmetrics, q);
		else if (is_media(accept, length, "text/plain"))
			text = fmax(text, q);
		accept = end;
	}
	return openmetrics > 0 && openmetrics >= text;
}
