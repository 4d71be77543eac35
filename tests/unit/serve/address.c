#include "serve/http.h"

#include "base/util.h"

#include "rows.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct row {
	const char *teaches;
	const char *listen;
	bool may_be_public;
	int result;
	const char *url; // expected prefix
	bool is_local;
	const char *says;
} rows[] = {
	{"a free port", "127.0.0.1:0", false, 0, "http://127.0.0.1:", true, NULL},
	{"any address of the loopback network", "127.3.2.1:0", false, 0, "http://127.3.2.1:", true, NULL},
	{"name of this machine", "localhost:0", false, 0, "http://127.0.0.1:", true, NULL},
	{"all IPv4 addresses without a token: refused", "0.0.0.0:0", false, -EPERM, NULL, false, "--token-file"},
	{"empty host without a token: refused", ":0", false, -EPERM, NULL, false, "--token-file"},
	{"all IPv6 addresses without a token: refused", "[::]:0", false, -EPERM, NULL, false, "--token-file"},
	{"all addresses with a token: accepted", "0.0.0.0:0", true, 0, "http://0.0.0.0:", false, NULL},
	{"address of another machine: refused", "192.0.2.1:0", true, -EADDRNOTAVAIL, NULL, false,
		"not an address of this machine"},
	{"no port", "127.0.0.1", false, -EINVAL, NULL, false, "HOST:PORT"},
	{"port only: refused", "9095", false, -EINVAL, NULL, false, "HOST:PORT"},
	{"port out of range: refused", "127.0.0.1:65536", false, -EINVAL, NULL, false, "65535"},
	{"port that is no number: refused", "127.0.0.1:http", false, -EINVAL, NULL, false, "HOST:PORT"},
	{"negative port: refused", "127.0.0.1:-1", false, -EINVAL, NULL, false, "HOST:PORT"},
	{"IPv6 without brackets, where the port is ambiguous: refused", "::1:9095", false, -EINVAL, NULL, false,
		"[::1]:9095"},
	{"unclosed bracket: refused", "[::1:9095", false, -EINVAL, NULL, false, "HOST:PORT"},
	{"a URL", "http://127.0.0.1:9095/", false, -EINVAL, NULL, false, "HOST:PORT"},
	{"empty address: refused", "", false, -EINVAL, NULL, false, "HOST:PORT"},
	{"unknown host name: refused", "nowhere.invalid:0", true, -EINVAL, NULL, false, "nowhere.invalid"},
	{"Unix socket without a path: refused", "unix:", false, -EINVAL, NULL, false, "path"},
	{"Unix socket in a missing folder: refused", "unix:/nowhere/at/all", false, -ENOENT, NULL, false,
		"/nowhere/at/all"},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct address address;
	struct wattle_error error = {0};
	assert_int_equal(address_open(&address, row->listen, row->may_be_public, &error), row->result);
	if (row->says != NULL)
		assert_non_null(strstr(error.text, row->says));
	if (row->result < 0)
		return;
	assert_int_equal(strncmp(address.url, row->url, strlen(row->url)), 0);
	assert_null(strstr(address.url, ":0/"));
	assert_int_equal(address.is_local, row->is_local);
	address_close(&address);
}

static void ipv6(void **state)
{
	struct address address;
	struct wattle_error error = {0};
	int r = address_open(&address, "[::1]:0", false, &error);
	if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)
		SKIP_BECAUSE("no IPv6 here");
	assert_int_equal(r, 0);
	assert_int_equal(strncmp(address.url, "http://[::1]:", 13), 0);
	assert_string_equal(address.host, "::1");
	address_close(&address);
}

static void taken(void **state)
{
	struct address first, second;
	struct wattle_error error = {0};
	assert_int_equal(address_open(&first, "127.0.0.1:0", false, &error), 0);
	char again[64];
	text_copy(again, sizeof(again), first.url + strlen("http://"));
	*strchr(again, '/') = '\0';
	assert_int_equal(address_open(&second, again, false, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, "another program uses this port"));
	address_close(&first);
}

static void unix_socket(void **state)
{
	char path[90], listen[100];
	const char *folder = getenv("TMPDIR");
	snprintf(path, sizeof(path), "%.60s/wattle-%d.sock", folder != NULL ? folder : "/tmp", (int)getpid());
	snprintf(listen, sizeof(listen), "unix:%s", path);
	struct address first, second;
	struct wattle_error error = {0};
	struct stat st;
	assert_int_equal(address_open(&first, listen, false, &error), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(address_open(&second, listen, false, &error), -EADDRINUSE);
	close(first.fd); // as if the server had been killed
	first.fd = -1;
	assert_int_equal(address_open(&second, listen, false, &error), 0);
	address_close(&second);
	assert_int_equal(lstat(path, &st), -1);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "IPv6 address: printed with brackets", ipv6);
	ROWS_ADD_ONE(&tests, "port in use: refused", taken);
	ROWS_ADD_ONE(&tests, "Unix socket: accessible by its owner only; a dead server's is replaced, a live one's "
		"is not",
		unix_socket);
	return rows_run(&tests, "address");
}
