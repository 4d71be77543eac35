#include "store/postgres/pq.h"

#include <errno.h>
#include <string.h>

#define REMEDY                                                                                                         \
	"everybody on this machine can read it in `ps`; leave it out and put it into ~/.pgpass, a service file, or PGPASSWORD"

// Where what follows the scheme begins; NULL: another scheme.
static const char *after_scheme(const char *url)
{
	static const char *const schemes[] = {"postgresql://", "postgres://"};
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
			return url + strlen(schemes[i]);
	return NULL;
}

/* user:password@host, as libpq reads it: only a slash ends what may be a password, so ? and # are of it. */
static bool has_password_before_host(const char *rest)
{
	size_t authority = strcspn(rest, "/");
	const char *at = memrchr(rest, '@', authority);
	return at != NULL && memchr(rest, ':', (size_t)(at - rest)) != NULL;
}

/* A password with a slash in it, which libpq takes for the end of the port: its complaint would show half of the password, and we
 * the other half, as the database. */
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

static bool has_password_parameter(const char *rest)
{
	static const char *const names[] = {"password=", "sslpassword="};
	const char *query = strchr(rest, '?');
	for (const char *at = query; at != NULL; at = strchr(at + 1, '&')) {
		size_t name = strcspn(at + 1, "=&");
		if (memchr(at + 1, '%', name) != NULL) // no name needs one, but it can hide this one
			return true;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strncmp(at + 1, names[i], strlen(names[i])) == 0)
				return true;
	}
	return false;
}

int pg_check_url(const char *url, struct wattle_error *reterr)
{
	const char *rest = after_scheme(url);
	// What was given instead is not repeated: it may hold a password.
	if (rest == NULL)
		return error_set(reterr, -EINVAL, "a store is a URL like postgresql://user@host/database");
	if (has_password_before_host(rest) || has_password_for_port(rest) || has_password_parameter(rest))
		return error_set(reterr, -EINVAL, "the URL of the store has a password in it: " REMEDY);
	return 0;
}
