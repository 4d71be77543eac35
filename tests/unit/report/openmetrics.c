#include "report/openmetrics.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches;
	enum om_format format;
	struct om_family family;
	struct om_label labels[3];
	size_t n_labels;
	double value;
	int64_t wall_ms; // -1: none
	const char *expected;
} rows[] = {
	// clang-format off
	{"a gauge with its unit", OM_OPENMETRICS, {"power_watts", OM_GAUGE, "watts", "Power."}, {{0}}, 0, 12.5, -1,
		"# HELP power_watts Power.\n# TYPE power_watts gauge\n# UNIT power_watts watts\npower_watts 12.5\n# EOF\n"},
	{"a counter: its samples end in _total, its family does not", OM_OPENMETRICS, {"energy_joules", OM_COUNTER, "joules", "Energy."},
		{{0}}, 0, 3, -1,
		"# HELP energy_joules Energy.\n# TYPE energy_joules counter\n# UNIT energy_joules joules\nenergy_joules_total 3\n# EOF\n"},
	{"classic format: a counter has its samples' name, no unit and no end marker", OM_CLASSIC,
		{"energy_joules", OM_COUNTER, "joules", "Energy."}, {{0}}, 0, 3, -1,
		"# HELP energy_joules_total Energy.\n# TYPE energy_joules_total counter\nenergy_joules_total 3\n"},
	{"an info", OM_OPENMETRICS, {"build", OM_INFO, NULL, "What."}, {{"version", "1"}}, 1, 1, -1,
		"# HELP build What.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n# EOF\n"},
	{"classic format: a gauge", OM_CLASSIC, {"build", OM_INFO, NULL, "What."}, {{"version", "1"}}, 1, 1, -1,
		"# HELP build_info What.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n"},
	{"unknown value: no sample and no family", OM_OPENMETRICS, {"power_watts", OM_GAUGE, "watts", "Power."}, {{0}}, 0, NAN, -1,
		"# EOF\n"},
	{"counter below 0: no sample", OM_OPENMETRICS, {"energy_joules", OM_COUNTER, "joules", "Energy."}, {{0}}, 0, -1, -1, "# EOF\n"},
	{"infinity: with its sign", OM_OPENMETRICS, {"x", OM_GAUGE, NULL, "X."}, {{0}}, 0, INFINITY, -1,
		"# HELP x X.\n# TYPE x gauge\nx +Inf\n# EOF\n"},
	{"empty labels: left out", OM_CLASSIC, {"x", OM_GAUGE, NULL, "X."}, {{"a", ""}, {"b", NULL}}, 2, 1, -1,
		"# HELP x X.\n# TYPE x gauge\nx 1\n"},
	{"quotes, backslashes and line ends are escaped", OM_CLASSIC, {"x", OM_GAUGE, NULL, "X."}, {{"a", "\"\\\n"}, {"b", "}"}}, 2, 1, -1,
		"# HELP x X.\n# TYPE x gauge\nx{a=\"\\\"\\\\\\n\",b=\"}\"} 1\n"},
	{"UTF-8 is kept; other bytes and control characters become U+FFFD and their number", OM_CLASSIC, {"x", OM_GAUGE, NULL, "X."},
		{{"a", "\xf0\x9f\x94\xa5\xff\x1b\r"}}, 1, 1, -1,
		"# HELP x X.\n# TYPE x gauge\nx{a=\"\xf0\x9f\x94\xa5\xef\xbf\xbd" "ff\xef\xbf\xbd" "1b\xef\xbf\xbd" "0d\"} 1\n"},
	{"U+FFFD itself is doubled, so that different texts stay different", OM_CLASSIC, {"x", OM_GAUGE, NULL, "X."},
		{{"a", "\xef\xbf\xbd" "ff"}}, 1, 1, -1,
		"# HELP x X.\n# TYPE x gauge\nx{a=\"\xef\xbf\xbd\xef\xbf\xbd" "ff\"} 1\n"},
	{"times are seconds", OM_OPENMETRICS, {"x", OM_GAUGE, NULL, "X."}, {{0}}, 0, 1, 1793000000900,
		"# HELP x X.\n# TYPE x gauge\nx 1 1793000000900e-3\n# EOF\n"},
	{"classic format: times are milliseconds", OM_CLASSIC, {"x", OM_GAUGE, NULL, "X."}, {{0}}, 0, 1, 1793000000900,
		"# HELP x X.\n# TYPE x gauge\nx 1 1793000000900\n"},
	// clang-format on
};

static void check(void **state)
{
	const struct row *row = *state;
	struct buf out;
	struct om om;
	buf_init(&out, 1 << 16);
	buf_str(&out, "");
	om_begin(&om, &out, row->format);
	om_family(&om, &row->family);
	if (row->wall_ms >= 0)
		om_value_at(&om, row->labels, row->n_labels, row->value, row->wall_ms);
	else
		om_value(&om, row->labels, row->n_labels, row->value);
	om_end(&om);
	assert_string_equal(out.data != NULL ? out.data : "", row->expected);
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "openmetrics");
}
