#include "base/util.h"
#include "energy/counter.h"
#include "sensor/sensor.h"
#include "tree.h"

/* A zone frame by frame on a simulated clock: the powercap sensor reads it, the counter extends the readings.
 * Minutes of a machine's time take milliseconds. */

#define J INT64_C(1000000)
static const char zone[] = "class/powercap/intel-rapl:0";
static const char range_text[] = "262143328850\n";

enum act {
	WRITE,   // in place, as the kernel does
	REPLACE, // a new file renamed over it
	VANISH,  // the counter disappears
	UNPLUG,  // the whole zone disappears
	FORBID,  // unreadable, though it exists: root reads all files, so a folder takes its place
	LOOP,    // as above: a link to itself
	SUSPEND, // suspend; then as WRITE
};

struct frame {
	double t_s;
	enum act act;
	const char *text;
	enum counter_event event;
	int64_t total_uj;
};

static const struct film {
	const char *teaches;
	struct frame frames[10]; // up to the first at 0 s after the first
} films[] = {
	// clang-format off
	{"an ordinary minute", {
		{1, WRITE, "5000000\n", COUNTER_FIRST, 0},
		{31, WRITE, "305000000\n", COUNTER_OK, 300 * J},
		{61, WRITE, "605000000\n", COUNTER_OK, 600 * J},
	}},
	{"wrap during a run", {
		{1, WRITE, "262140328850\n", COUNTER_FIRST, 0},
		{1.1, WRITE, "262143328850\n", COUNTER_OK, 3 * J},
		{1.2, WRITE, "2999999\n", COUNTER_WRAP, 6 * J},
		{1.3, WRITE, "3999999\n", COUNTER_OK, 7 * J},
	}},
	{"suspend, counter restarts: the time asleep is not charged", {
		{1, WRITE, "90000000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "90010000000\n", COUNTER_OK, 10 * J},
		{2.1, SUSPEND, "250000\n", COUNTER_RESET, 10 * J},
		{3.1, WRITE, "5250000\n", COUNTER_OK, 15 * J},
	}},
	{"suspend, counter continues", {
		{1, WRITE, "90000000000\n", COUNTER_FIRST, 0},
		{1.1, SUSPEND, "90001000000\n", COUNTER_OK, 1 * J},
	}},
	{"counter stuck for half a minute, then catches up", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{11, WRITE, "1000000\n", COUNTER_STALLED, 0},
		{31, WRITE, "1000000\n", COUNTER_STALLED, 0},
		{31.1, WRITE, "3011000000\n", COUNTER_OK, 3010 * J},
	}},
	{"counter's file disappears and returns with a higher value: the gap is bridged", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{2, VANISH, NULL, COUNTER_GAP, 0},
		{3, VANISH, NULL, COUNTER_GAP, 0},
		{4, WRITE, "31000000\n", COUNTER_GAP_ENDED, 30 * J},
		{5, WRITE, "41000000\n", COUNTER_OK, 40 * J},
	}},
	{"last CPU of the package goes offline; the zone is new when it returns", {
		{1, WRITE, "70001000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "70011000000\n", COUNTER_OK, 10 * J},
		{3, UNPLUG, NULL, COUNTER_GAP, 10 * J},
		{9, WRITE, "4000000\n", COUNTER_RESET, 10 * J},
		{10, WRITE, "5000000\n", COUNTER_OK, 11 * J},
	}},
	{"counter stops and continues from its value: the time stopped has no energy", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "51000000\n", COUNTER_OK, 50 * J},
		{3, WRITE, "51000000\n", COUNTER_STALLED, 50 * J},
		{63, WRITE, "51000000\n", COUNTER_STALLED, 50 * J},
		{64, WRITE, "101000000\n", COUNTER_OK, 100 * J},
		{65, WRITE, "151000000\n", COUNTER_OK, 150 * J},
	}},
	{"counter stops just before its maximum: the following wrap counts once", {
		{1, WRITE, "262143000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "262143000000\n", COUNTER_STALLED, 0},
		{12, WRITE, "262143000000\n", COUNTER_STALLED, 0},
		{13, WRITE, "671149\n", COUNTER_WRAP, 1 * J},
	}},
	{"zone missing for a minute, returns with a higher value: the gap is bridged", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "31000000\n", COUNTER_OK, 30 * J},
		{3, UNPLUG, NULL, COUNTER_GAP, 30 * J},
		{62, WRITE, "1831000000\n", COUNTER_GAP_ENDED, 1830 * J},
		{63, WRITE, "1861000000\n", COUNTER_OK, 1860 * J},
	}},
	{"zone returns with more than any package can use: no energy added", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "31000000\n", COUNTER_OK, 30 * J},
		{3, UNPLUG, NULL, COUNTER_GAP, 30 * J},
		{4, WRITE, "150000000000\n", COUNTER_RESET, 30 * J},
		{5, WRITE, "150030000000\n", COUNTER_OK, 60 * J},
	}},
	{"permission removed and restored", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "31000000\n", COUNTER_OK, 30 * J},
		{3, FORBID, NULL, COUNTER_GAP, 30 * J},
		{4, FORBID, NULL, COUNTER_GAP, 30 * J},
		{5, WRITE, "121000000\n", COUNTER_GAP_ENDED, 120 * J},
		{6, LOOP, NULL, COUNTER_GAP, 120 * J},
		{7, WRITE, "181000000\n", COUNTER_GAP_ENDED, 180 * J},
	}},
	{"permission removed for good: energy counted so far is kept", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "31000000\n", COUNTER_OK, 30 * J},
		{3, FORBID, NULL, COUNTER_GAP, 30 * J},
		{100, FORBID, NULL, COUNTER_GAP, 30 * J},
	}},
	{"suspend, then wrap or restart: ambiguous, no energy charged", {
		{1, WRITE, "262100000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "262110000000\n", COUNTER_OK, 10 * J},
		{3, SUSPEND, "5000000\n", COUNTER_RESET, 10 * J},
		{4, SUSPEND, "0\n", COUNTER_RESET, 10 * J},
		{5, WRITE, "7000000\n", COUNTER_OK, 17 * J},
	}},
	{"gap of half an hour at 300 W: as many wraps as that power causes", {
		{1, WRITE, "0\n", COUNTER_FIRST, 0},
		{31, WRITE, "9000000000\n", COUNTER_OK, 9000 * J},
		{61, WRITE, "18000000000\n", COUNTER_OK, 18000 * J},
		{62, VANISH, NULL, COUNTER_GAP, 18000 * J},
		{2061, WRITE, "93713342298\n", COUNTER_WRAPS, 618000 * J},
		{2062, WRITE, "94013342298\n", COUNTER_OK, 618300 * J},
	}},
	{"gap of half an hour at 30 W: no wrap", {
		{1, WRITE, "0\n", COUNTER_FIRST, 0},
		{61, WRITE, "1800000000\n", COUNTER_OK, 1800 * J},
		{62, VANISH, NULL, COUNTER_GAP, 1800 * J},
		{2061, WRITE, "61800000000\n", COUNTER_GAP_ENDED, 61800 * J},
	}},
	{"invalid content for a while", {
		{1, WRITE, "1000000\n", COUNTER_FIRST, 0},
		{2, WRITE, "", COUNTER_GAP, 0},
		{3, WRITE, "garbage\n", COUNTER_GAP, 0},
		{4, WRITE, "-3\n", COUNTER_GAP, 0},
		{5, WRITE, "999999999999999999\n", COUNTER_GAP, 0}, // above the range
		{6, WRITE, "6000000\n", COUNTER_GAP_ENDED, 5 * J},
	}},
	{"each value in a new file, renamed into place", {
		{1, REPLACE, "1000000\n", COUNTER_FIRST, 0},
		{2, REPLACE, "2000000\n", COUNTER_OK, 1 * J},
		{3, REPLACE, "4000000\n", COUNTER_OK, 3 * J},
	}},
	{"driver reloaded", {
		{1, WRITE, "5000000000\n", COUNTER_FIRST, 0},
		{2, REPLACE, "12000000\n", COUNTER_RESET, 0},
		{3, REPLACE, "13000000\n", COUNTER_OK, 1 * J},
	}},
	// clang-format on
};

static void write_zone(const struct tree *tree, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/name", zone);
	tree_write(tree, path, "package-0\n");
	snprintf(path, sizeof(path), "%s/max_energy_range_uj", zone);
	tree_write(tree, path, range_text);
	char counter[512];
	struct stat st;
	tree_path(tree, counter, "%s/energy_uj", zone);
	if (lstat(counter, &st) == 0 && !S_ISREG(st.st_mode))
		assert_int_equal(remove(counter), 0);
	snprintf(path, sizeof(path), "%s/energy_uj", zone);
	tree_write(tree, path, text);
}

static void remove_file(const struct tree *tree, const char *name)
{
	char path[512];
	tree_path(tree, path, "%s/%s", zone, name);
	unlink(path);
}

static void replace_counter(const struct tree *tree, const char *text)
{
	char path[512], next[512];
	snprintf(path, sizeof(path), "%s/next", zone);
	tree_write(tree, path, text);
	tree_path(tree, next, "%s/next", zone);
	tree_path(tree, path, "%s/energy_uj", zone);
	assert_int_equal(rename(next, path), 0);
}

static void forbid(const struct tree *tree, enum act act)
{
	char path[512];
	remove_file(tree, "energy_uj");
	tree_path(tree, path, "%s/energy_uj", zone);
	rmdir(path);
	int r = act == FORBID ? mkdir(path, 0755) : symlink("energy_uj", path);
	assert_int_equal(r, 0);
}

static void show(const struct tree *tree, const struct frame *frame)
{
	char path[512];
	switch (frame->act) {
	case WRITE:
	case SUSPEND:
		write_zone(tree, frame->text);
		break;
	case REPLACE:
		replace_counter(tree, frame->text);
		break;
	case VANISH:
		remove_file(tree, "energy_uj");
		break;
	case FORBID:
	case LOOP:
		forbid(tree, frame->act);
		break;
	case UNPLUG:
		remove_file(tree, "energy_uj");
		remove_file(tree, "name");
		remove_file(tree, "max_energy_range_uj");
		tree_path(tree, path, "%s", zone);
		assert_int_equal(rmdir(path), 0);
	}
}

static void play(void **state)
{
	const struct film *film = *state;
	struct tree tree;
	struct wattle_env env;
	struct counter counter;
	tree_make(&tree);
	setenv("WATTLE_SYSFS", tree.root, 1);
	setenv("WATTLE_PROCFS", tree.root, 1);
	assert_int_equal(env_open(&env, NULL), 0);

	void *sensor = calloc(1, sensor_powercap.state_size);
	const struct frame *end = film->frames + ARRAY_SIZE(film->frames);
	for (const struct frame *frame = film->frames; frame < end && frame->t_s > 0; frame++) {
		if (frame == film->frames) {
			write_zone(&tree, frame->text);
			assert_int_equal(sensor_powercap.open(sensor, &env, &(struct sensor_options){0}, NULL), 0);
			size_t n;
			const struct domain *domain = sensor_powercap.domains(sensor, &n);
			assert_int_equal(n, 1);
			counter_init(&counter, domain->energy_range_uj, domain_kind_max_power_w(domain->kind));
		} else {
			show(&tree, frame);
		}
		int64_t t_ns = (int64_t)(frame->t_s * 1e9), row[1][DEVICE_COUNT];
		row[0][DEVICE_ENERGY_RAW] = VALUE_MISSING;
		sensor_powercap.read(sensor, &(struct sensor_context){.t_ns = t_ns}, row);
		enum counter_event event = counter_feed(&counter, t_ns, row[0][DEVICE_ENERGY_RAW],
			frame->act == SUSPEND);
		assert_int_equal(event, frame->event);
		assert_int_equal(counter.total, frame->total_uj);
	}
	sensor_powercap.close(sensor);
	free(sensor);
	env_close(&env);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, films, play);
	return rows_run(&tests, "films");
}
