/* The documents of one poll with given values: unknown ones, and hostile names. */
#include "serve/view.h"

#include "base/util.h"

#include "rows.h"

#include <jansson.h>

struct machine {
	struct domain package, gpu;
	struct monitor_domain domains[2];
	struct monitor_process processes[3];
	struct monitor_sample now;
	struct history history;
	struct view view;
};

static struct monitor_domain domain_of(const struct domain *domain, bool in_total, double power_w)
{
	return (struct monitor_domain){
		.domain = domain,
		.source = "powercap",
		.in_total = in_total,
		.energy_uj = 1500000,
		.power_w = power_w,
		.cap_w = (double)NAN,
		.target_w = (double)NAN,
#define DEVICE_LIVE(id, member, ...) .member = (double)NAN,
#include "metric/metrics.def"
		.memory_total_bytes = (double)NAN,
		.throttle_bits = VALUE_MISSING,
	};
}

static struct monitor_process process_of(pid_t pid, const char *command, double power_w, double cpu_cores)
{
	struct monitor_process process = {
		.pid = pid,
		.uid = pid == 7 ? (uid_t)-1 : 1000,
		.start_ns = pid,
		.state = 'R',
		.cpu_cores = cpu_cores,
		.rss_bytes = 1000000,
		.threads = 1,
		.gpu_percent = (double)NAN,
		.gpu_memory_bytes = VALUE_MISSING,
		.cpu_w = power_w,
		.dram_w = (double)NAN,
		.gpu_w = (double)NAN,
		.power_w = power_w,
		.energy_j = (double)NAN,
	};
	text_copy(process.command, sizeof(process.command), command);
	return process;
}

static void fill(struct machine *m)
{
	*m = (struct machine){0};
	m->package = (struct domain){.name = "package-0", .kind = DOMAIN_PACKAGE, .device = "intel-rapl:0"};
	m->gpu = (struct domain){.name = "gpu<img>",
		.note = "has <b>two</b> faces",
		.kind = DOMAIN_GPU,
		.device = "</td><script>alert(1)</script>"};
	m->domains[0] = domain_of(&m->package, true, 42.5);
	m->domains[1] = domain_of(&m->gpu, true, (double)NAN);
	m->domains[1].throttle_bits = 0x1 | 0x4 | 0x40;
	m->processes[0] = process_of(7, "idle", (double)NAN, 0);
	m->processes[1] = process_of(8, "</script><img src=x onerror=\"alert(1)\">&\xe2\x80\xa8", 3, 0.1);
	m->processes[2] = process_of(9, "\xff\xfe busy", 30, 2);
	m->now = (struct monitor_sample){
		.t_ns = 100 * NS_PER_S,
		.wall_ns = INT64_C(1700000000) * NS_PER_S,
		.dt_s = 1,
		.cores = 4,
		.busy_cores = 2.1,
		.memory_total_bytes = 8000000000,
		.memory_used_bytes = VALUE_MISSING,
		.domains = m->domains,
		.n_domains = ARRAY_SIZE(m->domains),
		.processes = m->processes,
		.n_processes = ARRAY_SIZE(m->processes),
		.processes_seen = 3,
		.threads_seen = 3,
		.total_w = (double)NAN,
		.total_energy_uj = 3000000,
		.sum = {(double)NAN, 33, 0.5, 9, 0},
		.own_cpu_percent = 0.25,
		.own_rss_bytes = 5000000,
	};
	assert_int_equal(history_init(&m->history, m->now.n_domains), 0);
	m->view = (struct view){
		.now = &m->now,
		.history = &m->history,
		.sample = 1,
		.interval_ns = NS_PER_S,
		.up_ns = NS_PER_S,
		.host = "<b>host</b>",
	};
	history_add(&m->history, &m->now);
}

static void finish(struct machine *m)
{
	history_finish(&m->history);
}

static json_t *json_of(const struct view *view, bool history)
{
	struct buf out;
	buf_init(&out, 1 << 24);
	view_json(view, history, &out);
	json_error_t error;
	json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL)
		fail_msg("%s", error.text);
	buf_finish(&out);
	return root;
}

static void unknown_is_null(void **state)
{
	struct machine m;
	fill(&m);
	json_t *root = json_of(&m.view, false);
	json_t *gpu = json_array_get(json_object_get(root, "domains"), 1);
	assert_true(json_is_null(json_object_get(root, "total_w")));
	assert_true(json_is_null(json_object_get(root, "memory_used_bytes")));
	assert_true(json_is_null(json_object_get(json_object_get(root, "ledger"), "target_w")));
	assert_true(json_is_null(json_object_get(gpu, "power_w")));
	assert_true(json_is_null(json_object_get(gpu, "cap_w")));
	assert_string_equal(json_string_value(json_object_get(gpu, "throttling")),
		"power limit, thermal slowdown by hardware");
	assert_null(json_object_get(root, "history"));
	json_t *first = json_array_get(json_object_get(root, "processes"), 0),
	       *last = json_array_get(json_object_get(root, "processes"), 2);
	assert_int_equal(json_integer_value(json_object_get(first, "uid")), 1000);
	assert_true(json_is_null(json_object_get(last, "uid")));
	json_decref(root);
	m.now.cores = VALUE_MISSING;
	root = json_of(&m.view, false);
	assert_true(json_is_null(json_object_get(root, "cores")));
	json_decref(root);
	finish(&m);
}

static void ranked(void **state)
{
	struct machine m;
	fill(&m);
	json_t *root = json_of(&m.view, false), *processes = json_object_get(root, "processes");
	static const int order[] = {9, 8, 7};
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		assert_int_equal(json_integer_value(json_object_get(json_array_get(processes, i), "pid")), order[i]);
	json_decref(root);
	finish(&m);
}

static char *html_of(const struct view *view, void (*write)(const struct view *, struct buf *))
{
	struct buf out;
	buf_init(&out, 1 << 24);
	write(view, &out);
	return buf_take(&out);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
		n++;
	return n;
}

static void names_are_no_markup(void **state)
{
	struct machine m;
	fill(&m);
	char *html = html_of(&m.view, view_figures);
	assert_null(strstr(html, "<img"));
	assert_null(strstr(html, "<b>host"));
	assert_null(strstr(html, "<b>two"));
	assert_non_null(strstr(html, "gpu&lt;img&gt;</bdi>: has &lt;b&gt;two&lt;/b&gt; faces"));
	assert_null(strstr(html, "<script>"));
	assert_int_equal(count(html, "<script"), 1); // the data
	assert_int_equal(count(html, "</script"), 1);
	assert_non_null(strstr(html, "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;"));
	free(html);
	html = html_of(&m.view, view_page);
	assert_null(strstr(html, "<img"));
	assert_null(strstr(html, "<b>host"));
	assert_null(strstr(html, "<script>alert"));
	free(html);
	finish(&m);
}

static void no_column_of_nothing(void **state)
{
	struct machine m;
	fill(&m);
	char *html = html_of(&m.view, view_figures);
	assert_non_null(strstr(html, ">Power</th>"));
	assert_null(strstr(html, ">Temperature</th>"));
	assert_null(strstr(html, ">GPU memory</th>"));
	free(html);
	m.domains[1].temperature_c = 61;
	m.processes[2].gpu_memory_bytes = 1000000000;
	html = html_of(&m.view, view_figures);
	assert_non_null(strstr(html, ">Temperature</th>"));
	assert_non_null(strstr(html, ">GPU memory</th>"));
	free(html);
	finish(&m);
}

static void no_energy_at_all(void **state)
{
	struct machine m;
	fill(&m);
	m.now.n_domains = m.now.n_processes = 0;
	m.now.problem = "no sensor of energy can be read <here>";
	m.now.sum = (struct monitor_sum){(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
	m.now.total_energy_uj = VALUE_MISSING;
	m.history.n_domains = 0;
	char *html = html_of(&m.view, view_page);
	assert_non_null(strstr(html, "no sensor of energy can be read &lt;here&gt;"));
	assert_non_null(strstr(html, "n/a"));
	assert_null(strstr(html, "0 J"));
	free(html);
	html = html_of(&m.view, view_figures);
	assert_null(strstr(html, "nan"));
	free(html);
	json_t *root = json_of(&m.view, true);
	assert_true(json_is_null(json_object_get(root, "total_j")));
	assert_true(json_is_null(json_object_get(root, "provenance")));
	json_decref(root);
	finish(&m);
}

static void history_has_its_length(void **state)
{
	struct machine m;
	fill(&m);
	for (int i = 0; i < 3 * HISTORY_SAMPLES; i++) {
		m.now.t_ns += NS_PER_S;
		m.now.wall_ns += NS_PER_S;
		m.domains[0].power_w = i;
		history_add(&m.history, &m.now);
	}
	json_t *root = json_of(&m.view, true), *history = json_object_get(root, "history");
	json_t *times = json_object_get(history, "unix_s");
	json_t *package = json_array_get(json_object_get(history, "domains"), 0),
	       *power = json_object_get(package, "power_w");
	assert_int_equal(json_array_size(times), HISTORY_SAMPLES);
	assert_int_equal(json_array_size(power), HISTORY_SAMPLES);
	assert_float_equal(json_number_value(json_array_get(power, HISTORY_SAMPLES - 1)), 3 * HISTORY_SAMPLES - 1,
		0.01);
	assert_float_equal(json_number_value(json_array_get(power, 0)), 2 * HISTORY_SAMPLES, 0.01);
	double first_s = json_number_value(json_array_get(times, 0)),
	       last_s = json_number_value(json_array_get(times, HISTORY_SAMPLES - 1));
	assert_true(fabs(last_s - first_s - (HISTORY_SAMPLES - 1)) < 0.001);
	assert_null(json_object_get(package, "temperature_c")); // it never had one
	json_decref(root);
	finish(&m);
}

static void unknown_idle_power(void **state)
{
	struct machine m;
	fill(&m);
	m.now.sum.idle_w = (double)NAN;
	history_add(&m.history, &m.now);
	char *html = html_of(&m.view, view_figures);
	assert_non_null(strstr(html, "</span>idle <b>n/a</b></li>"));
	free(html);
	json_t *root = json_of(&m.view, true);
	assert_true(json_is_null(json_object_get(json_object_get(root, "ledger"), "idle_w")));
	json_decref(root);
	finish(&m);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "unknown values are null; throttling reasons are words", unknown_is_null);
	ROWS_ADD_ONE(&tests, "processes with the most power first, unknown ones last", ranked);
	ROWS_ADD_ONE(&tests, "names of programs and machines: no markup", names_are_no_markup);
	ROWS_ADD_ONE(&tests, "column without any known value: left out", no_column_of_nothing);
	ROWS_ADD_ONE(&tests, "machine without energy: the reason is shown, nothing is nan", no_energy_at_all);
	ROWS_ADD_ONE(&tests, "unknown idle power: n/a in the legend and null in JSON", unknown_idle_power);
	ROWS_ADD_ONE(&tests, "history: the last polls only", history_has_its_length);
	return rows_run(&tests, "view");
}
