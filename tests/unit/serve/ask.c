#include "serve/http.h"

#include "rows.h"

static const struct host_row {
	const char *teaches;
	const char *host, *name;
	bool is_ours;
} hosts[] = {
	{"the default address", "127.0.0.1:9095", "127.0.0.1", true},
	{"a number without a port", "127.0.0.1", "127.0.0.1", true},
	{"localhost, through a tunnel with another port", "localhost:8080", "127.0.0.1", true},
	{"case does not matter", "LOCALHOST:9095", "127.0.0.1", true},
	{"IPv6", "[::1]:9095", "::1", true},
	{"a number needs no DNS, so nobody can make it lead here", "192.0.2.7:9095", "127.0.0.1", true},
	{"a name that an attacker owns and makes lead to 127.0.0.1", "attacker.example:9095", "127.0.0.1", false},
	{"a name that begins like ours", "localhost.attacker.example", "127.0.0.1", false},
	{"a name that begins with a number", "127.0.0.1.attacker.example", "127.0.0.1", false},
	{"the name that was given with --listen", "node7.cluster:9095", "node7.cluster", true},
	{"with the dot that ends it", "node7.cluster.:9095", "node7.cluster", true},
	{"another name than that", "node8.cluster:9095", "node7.cluster", false},
	{"nothing", "", "127.0.0.1", false},
	{"only a port", ":9095", "", false},
	{"a bracket that does not end", "[::1", "::1", false},
	{"something behind the bracket", "[::1]x:9095", "::1", false},
	{"what is no port behind a name of ours", "localhost:80@attacker.example", "127.0.0.1", false},
	{"what is no port behind a bracket", "[::1]:80x", "::1", false},
	{"a colon without a port, which is allowed", "localhost:", "127.0.0.1", true},
	{"a user in front", "127.0.0.1@attacker.example", "127.0.0.1", false},
};

static void check_host(void **state)
{
	const struct host_row *row = *state;
	assert_int_equal(ask_host_is_ours(row->host, row->name), row->is_ours);
}

static const struct site_row {
	const char *teaches;
	const char *site, *mode;
	bool is_from_elsewhere;
} sites[] = {
	{"programs do not say", NULL, NULL, false},
	{"the page's own script", "same-origin", "cors", false},
	{"an address that was typed", "none", "navigate", false},
	{"a link on another site", "cross-site", "navigate", false},
	{"a script of another site", "cross-site", "no-cors", true},
	{"a script of another port of this machine", "same-site", "cors", true},
	{"another site, nothing else said", "cross-site", NULL, true},
};

static void check_site(void **state)
{
	const struct site_row *row = *state;
	assert_int_equal(ask_is_from_elsewhere(row->site, row->mode), row->is_from_elsewhere);
}

static const struct accept_row {
	const char *teaches;
	const char *accept;
	bool wants_openmetrics;
} accepts[] = {
	{"curl gets the classic format", "*/*", false},
	{"none said: the classic format", NULL, false},
	{"asked for by name", "application/openmetrics-text", true},
	{"Prometheus 2.42",
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
		"text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		true},
	{"Prometheus 3, blanks and an escaping scheme",
		"application/openmetrics-text; version=1.0.0; escaping=allow-utf-8; q=0.6, text/plain;version=0.0.4;q=0.5",
		true},
	{"the classic one is liked better", "application/openmetrics-text;q=0.3, text/plain;q=0.9", false},
	{"the first that is said does not win by that", "text/plain;q=0.5,application/openmetrics-text", true},
	{"refused by q=0", "application/openmetrics-text;q=0", false},
	{"refused by what is no number", "application/openmetrics-text;q=x", false},
	{"case does not matter", "Application/OpenMetrics-Text", true},
	{"a longer name is another type", "application/openmetrics-textual", false},
	{"only protobuf", "application/vnd.google.protobuf", false},
	{"browsers", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
	{"commas and blanks alone", " , ,, ", false},
	{"a semicolon at the end", "application/openmetrics-text;", true},
	{"a q without a value", "application/openmetrics-text;q=", false},
};

static void check_accept(void **state)
{
	const struct accept_row *row = *state;
	assert_int_equal(ask_wants_openmetrics(row->accept), row->wants_openmetrics);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, hosts, check_host);
	ROWS_ADD(&tests, sites, check_site);
	ROWS_ADD(&tests, accepts, check_accept);
	return rows_run(&tests, "ask");
}
