#include "serve/http.h"

#include "rows.h"

static const struct host_row {
	const char *teaches;
	const char *host, *name;
	bool is_ours;
} hosts[] = {
	{"the default address", "127.0.0.1:9095", "127.0.0.1", true},
	{"IP address without a port", "127.0.0.1", "127.0.0.1", true},
	{"localhost, through a tunnel with another port", "localhost:8080", "127.0.0.1", true},
	{"host names ignore case", "LOCALHOST:9095", "127.0.0.1", true},
	{"IPv6", "[::1]:9095", "::1", true},
	{"IP address: accepted, as DNS rebinding does not affect it", "192.0.2.7:9095", "127.0.0.1", true},
	{"foreign name that resolves to 127.0.0.1: refused", "attacker.example:9095", "127.0.0.1", false},
	{"name that begins like an allowed one: refused", "localhost.attacker.example", "127.0.0.1", false},
	{"name that begins with an IP address: refused", "127.0.0.1.attacker.example", "127.0.0.1", false},
	{"name given to --listen: accepted", "node7.cluster:9095", "node7.cluster", true},
	{"name with a trailing dot: accepted", "node7.cluster.:9095", "node7.cluster", true},
	{"name not given to --listen: refused", "node8.cluster:9095", "node7.cluster", false},
	{"empty Host: refused", "", "127.0.0.1", false},
	{"port only: refused", ":9095", "", false},
	{"unclosed bracket: refused", "[::1", "::1", false},
	{"text after the bracket: refused", "[::1]x:9095", "::1", false},
	{"invalid port after an allowed name: refused", "localhost:80@attacker.example", "127.0.0.1", false},
	{"invalid port after a bracket: refused", "[::1]:80x", "::1", false},
	{"colon without a port: accepted, as the standard allows it", "localhost:", "127.0.0.1", true},
	{"user name before the host: refused", "127.0.0.1@attacker.example", "127.0.0.1", false},
};

static void check_host(void **state)
{
	const struct host_row *row = *state;
	assert_int_equal(request_host_is_ours(row->host, row->name), row->is_ours);
}

static const struct site_row {
	const char *teaches;
	const char *site, *mode;
	bool is_from_elsewhere;
} sites[] = {
	{"no fetch metadata, as from programs: accepted", NULL, NULL, false},
	{"script of the page itself: accepted", "same-origin", "cors", false},
	{"address typed by the user: accepted", "none", "navigate", false},
	{"link on another site: accepted", "cross-site", "navigate", false},
	{"script of another site: refused", "cross-site", "no-cors", true},
	{"script of another port of this machine: refused", "same-site", "cors", true},
	{"request of another site, mode unknown: refused", "cross-site", NULL, true},
};

static void check_site(void **state)
{
	const struct site_row *row = *state;
	assert_int_equal(request_is_cross_site(row->site, row->mode), row->is_from_elsewhere);
}

static const struct accept_row {
	const char *teaches;
	const char *accept;
	bool wants_openmetrics;
} accepts[] = {
	{"Accept: curl's default: the classic format", "*/*", false},
	{"Accept missing: the classic format", NULL, false},
	{"Accept names OpenMetrics: OpenMetrics", "application/openmetrics-text", true},
	{"Prometheus 2.42",
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
		"text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		true},
	{"Accept of Prometheus 3, with blanks and an escaping scheme: OpenMetrics",
		"application/openmetrics-text; version=1.0.0; escaping=allow-utf-8; q=0.6, text/plain;version=0.0.4;q=0.5",
		true},
	{"Accept prefers the classic format: classic", "application/openmetrics-text;q=0.3, text/plain;q=0.9", false},
	{"Accept: the order of types does not matter", "text/plain;q=0.5,application/openmetrics-text", true},
	{"Accept with q=0: refused type is not used", "application/openmetrics-text;q=0", false},
	{"Accept with an invalid q: type is not used", "application/openmetrics-text;q=x", false},
	{"Accept ignores case", "Application/OpenMetrics-Text", true},
	{"Accept with a longer type name: another type", "application/openmetrics-textual", false},
	{"only protobuf", "application/vnd.google.protobuf", false},
	{"browsers", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
	{"Accept of commas and blanks: classic", " , ,, ", false},
	{"Accept with a semicolon at the end", "application/openmetrics-text;", true},
	{"Accept with q without a value", "application/openmetrics-text;q=", false},
};

static void check_accept(void **state)
{
	const struct accept_row *row = *state;
	assert_int_equal(request_wants_openmetrics(row->accept), row->wants_openmetrics);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, hosts, check_host);
	ROWS_ADD(&tests, sites, check_site);
	ROWS_ADD(&tests, accepts, check_accept);
	return rows_run(&tests, "ask");
}
