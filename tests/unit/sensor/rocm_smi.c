#include "sensor/gpu/drm.h"

#include "base/util.h"
#include "rows.h"
#include "sensor/gpu_roster.h"
#include "sensor/sensor.h"
#include "tree.h"

#include <fcntl.h>
#include <stdio.h>

#define CARD "class/drm/card0/device/"

// One card in /sys with power but no counter, and the library's data for two.
struct fixture {
	struct tree tree;
	char library[512], cards[512];
	struct wattle_env env;
	struct gpu_roster roster;
	void *state;
	struct domain *domains;
	size_t n;
	int64_t rows[4][DEVICE_COUNT];
};

static const char library_cards[] =
	"gpu\naddress 0000:01:00.0\npower_w 1\nstart_units 1\n"
	"gpu\naddress 0000:43:00.0\nname AMD Instinct MI210\nunique_id 5d\npower_w 200\n"
	"start_units 6553600000\nmemory_bytes 1000 64000\nbusy_percent 88\nmemory_temperature_c 62\n";

static void init(struct fixture *f, const char *text)
{
	*f = (struct fixture){0};
	tree_make(&f->tree);
	tree_write(&f->tree, "cards", text);
	tree_path(&f->tree, f->cards, "cards");
	setenv("WATTLE_FAKE_ROCM", f->cards, 1);
	snprintf(f->library, sizeof(f->library), "%.400s/tests/fakes/rocm/librocm_smi64-fake.so",
		getenv("WATTLE_BUILD"));
	f->env.sysfs_fd = open(f->tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->env.procfs_fd = -1;
	f->env.rocm_smi = f->library;
}

static void put_card(struct fixture *f)
{
	tree_write(&f->tree, CARD "vendor", "0x1002\n");
	tree_write(&f->tree, CARD "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:43:00.0\n");
	tree_write(&f->tree, CARD "hwmon/hwmon0/power1_average", "150000000\n");
}

static void read_once(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->rows); i++)
		for (size_t m = 0; m < DEVICE_COUNT; m++)
			f->rows[i][m] = VALUE_MISSING;
	sensor_amdgpu.read(f->state, &(struct sensor_context){.t_ns = NS_PER_S}, f->rows);
}

static void open_sensor(struct fixture *f)
{
	f->state = calloc(1, sensor_amdgpu.state_size);
	assert_int_equal(gpu_roster_open(&f->roster, NULL, NULL), 0);
	const struct sensor_options options = {.roster = &f->roster};
	assert_int_equal(sensor_amdgpu.open(f->state, &f->env, &options, NULL), 0);
	f->domains = sensor_amdgpu.domains(f->state, &f->n);
	read_once(f);
}

static void finish(struct fixture *f)
{
	if (f->state != NULL) {
		sensor_amdgpu.close(f->state);
		gpu_roster_close(&f->roster);
	}
	free(f->state);
	close(f->env.sysfs_fd);
	tree_finish(&f->tree);
}

// The card is matched by its address; power comes from the file, energy from the library's counter, exact in 2^-16 J.
static void fills_what_the_files_lack(void **state)
{
	struct fixture f;
	init(&f, library_cards);
	put_card(&f);
	open_sensor(&f);
	assert_int_equal(f.n, 1);
	assert_true(f.domains[0].has_energy);
	assert_int_equal(f.domains[0].provenance, PROVENANCE_MEASURED);
	assert_string_equal(f.domains[0].uuid, "GPU-000000000000005d");
	assert_int_equal(f.rows[0][DEVICE_POWER], 150000);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW] / 1000000000, 100); // 15.3 uJ for each count would give 100.27 kJ
	assert_true(f.rows[0][DEVICE_ENERGY_RAW] < INT64_C(100200000000));
	assert_int_equal(f.rows[0][DEVICE_MEMORY_USED], 1000);
	finish(&f);
}

static void is_not_asked_where_nothing_lacks(void **state)
{
	struct fixture f;
	unsigned char table[120];
	init(&f, library_cards);
	put_card(&f);
	memset(table, 0xff, sizeof(table));
	memcpy(table, "\x78\x00\x01\x03", 4);
	memcpy(table + 24, &(uint64_t){65536}, 8);
	tree_write_bytes(&f.tree, CARD "gpu_metrics", table, sizeof(table));
	open_sensor(&f);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 1000000);
	assert_true(f.rows[0][DEVICE_MEMORY_USED] == VALUE_MISSING);
	finish(&f);
}

static void does_not_wake_a_card(void **state)
{
	struct fixture f;
	init(&f, library_cards);
	put_card(&f);
	tree_write(&f.tree, CARD "power/runtime_status", "suspended\n");
	open_sensor(&f);
	assert_true(f.rows[0][DEVICE_ENERGY_RAW] == VALUE_MISSING);
	finish(&f);
}

static void lists_cards_where_sys_has_none(void **state)
{
	struct fixture f;
	init(&f, library_cards);
	open_sensor(&f);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.domains[1].device, "AMD Instinct MI210");
	assert_true(f.domains[0].used && f.domains[1].used);
	assert_int_equal(f.rows[0][DEVICE_POWER], 1000);
	assert_int_equal(f.rows[1][DEVICE_UTILIZATION], 88);
	assert_int_equal(f.rows[1][DEVICE_TEMPERATURE], 40);
	assert_int_equal(f.rows[1][DEVICE_MEMORY_TEMPERATURE], 62);
	assert_true(f.rows[0][DEVICE_MEMORY_TEMPERATURE] == VALUE_MISSING);
	assert_string_equal(f.domains[1].note, "");
	finish(&f);
}

static const struct failing_row {
	const char *teaches, *text;
	bool has_energy;
	int64_t power_mw;
} failing_rows[] = {
	{"failure: no counter, power is used",
		"gpu\naddress 0000:43:00.0\npower_w 7\nerror rsmi_dev_energy_count_get 2\n", false, 150000},
	{"failure: the library does not start", "error rsmi_init 8\ngpu\n", false, 150000},
	{"failure: no address, matched by position", "error rsmi_dev_pci_id_get 2\ngpu\npower_w 7\n", true, 150000},
	{"failure: the library has another card only", "gpu\naddress 0000:44:00.0\npower_w 7\n", false, 150000},
	{"failure: the library has no card", "", false, 150000},
};

static void check_failing(void **state)
{
	const struct failing_row *row = *state;
	struct fixture f;
	init(&f, row->text);
	put_card(&f);
	open_sensor(&f);
	assert_int_equal(f.domains[0].has_energy, row->has_energy);
	assert_int_equal(f.rows[0][DEVICE_POWER], row->power_mw);
	finish(&f);
}

static void no_library(void **state)
{
	const struct wattle_env env = {.rocm_smi = "/nonexistent/librocm_smi64.so"};
	assert_null(rocm_smi_open(&env));
	const struct wattle_env another = {.rocm_smi = "libm.so.6"};
	assert_null(rocm_smi_open(&another));
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "files without a counter: the library's counter is used", fills_what_the_files_lack);
	ROWS_ADD_ONE(&tests, "files are complete: the library is not queried", is_not_asked_where_nothing_lacks);
	ROWS_ADD_ONE(&tests, "suspended card: the library is not loaded", does_not_wake_a_card);
	ROWS_ADD_ONE(&tests, "library named explicitly: its cards are used without any in /sys",
		lists_cards_where_sys_has_none);
	ROWS_ADD(&tests, failing_rows, check_failing);
	ROWS_ADD_ONE(&tests, "no library, or another one", no_library);
	return rows_run(&tests, "rocm_smi");
}
