#include "store/postgres/pq.h"

#include <errno.h>
#include <string.h>

#define REMEDY                                                                                                         \
	"all users of this machine can read it in `ps`; remove it and use ~/.pgpass, a service file, or PGPASSWORD"

// The position after the scheme; NULL: another scheme.
static const char *after_scheme(const char *url)
{
	static const char *const schemes[] = {"postgresql://", "postgres://"};
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
			return url + strlen(schemes[i]);
	return NULL;
}

/* user:password@host, as libpq parses it: only a slash ends a possible password, so ? and # are part of it. */
static bool has_password_before_host(const char *rest)
{
	size_t authority = strcspn(rest, "/");
	const char *at = memrchr(rest, '@', authority);
	return at != NULL && memchr(rest, ':', (size_t)(at - rest)) != NULL;
}

/* A password that contains a slash: libpq takes the part before the slash for the port and would print it in its error message;
 * wattle would print the rest as the database. */
static bool has_password_for_port(const char *rest)
{
	size_t authority = strcspn(rest, "/?#");
	const char *colon = memrchr(rest, ':', authority);
	if (colon == NULL || strchr(rest + authority, '@') == NULL)
		return false;
	const char *end = colon + 1 + strspn(colon + 1, "0123456789");
	bool is_port = end == rest + authority || *end == ',';
	bool is_ipv6 = memchr(colon, ']', (size_t)(rest + authority - colon)) != NULL;
	return !is_port && !is_ipv6;
}

// Whether `fits` accepts any parameter of the URL, "name=value&…".
static bool any_parameter(const char *rest, bool (*fits)(const char *parameter))
{
	bool any = false;
	for (const char *at = strchr(rest, '?'); at != NULL && !any; at = strchr(at + 1, '&'))
		any = fits(at + 1);
	return any;
}

static bool is_password(const char *parameter)
{
	static const char *const names[] = {"password=", "sslpassword="};
	size_t name = strcspn(parameter, "=&");
	if (memchr(parameter, '%', name) != NULL) // no parameter name needs escapes, but they could hide this one
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(parameter, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

// sslkey=ENGINE:KEY makes OpenSSL load the module ENGINE. libpq interprets any path with a colon that way.
static bool is_key_in_module(const char *parameter)
{
	static const char name[] = "sslkey=";
	size_t length = strcspn(parameter, "&");
	bool is_key = strncmp(parameter, name, strlen(name)) == 0;
	bool has_colon = memchr(parameter, ':', length) != NULL || memmem(parameter, length, "%3a", 3) != NULL ||
		memmem(parameter, length, "%3A", 3) != NULL;
	return is_key && has_colon;
}

int pg_check_url(const char *url, struct wattle_error *reterr)
{
	const char *rest = after_scheme(url);
	// The message does not repeat the argument: it may contain a password.
	if (rest == NULL)
		return error_set(reterr, -EINVAL, "a store is a URL like postgresql://user@host/database");
	if (has_password_before_host(rest) || has_password_for_port(rest) || any_parameter(rest, is_password))
		return error_set(reterr, -EINVAL, "the URL of the store contains a password: " REMEDY);
	if (any_parameter(rest, is_key_in_module))
		return error_set(reterr, -EINVAL,
			"the URL of the store contains sslkey=ENGINE:KEY, which loads a module: give the "
			"path of a key file, without a colon");
	return 0;
}
