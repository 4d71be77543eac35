#include "sensor/sensor.h"

#include "base/util.h"
#include "rows.h"
#include "sensor/gpu_roster.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define MISSING VALUE_MISSING
#define CARD0 "class/drm/card0/device/"
#define CARD1 "class/drm/card1/device/"

struct fixture {
	struct tree tree;
	struct wattle_env env;
	struct sensor_options options;
	struct gpu_roster roster;
	void *state;
	struct domain *domains;
	size_t n;
	struct wattle_error error;
	int64_t rows[8][DEVICE_COUNT];
};

struct file {
	const char *path, *text;
};

// A table v1.3 as the driver fills it.
static void write_metrics(const struct fixture *f, const char *path, uint64_t energy_units, uint16_t power_w)
{
	unsigned char bytes[120];
	memset(bytes, 0xff, sizeof(bytes));
	memcpy(bytes, "\x78\x00\x01\x03", 4);
	memcpy(bytes + 22, &power_w, sizeof(power_w));
	memcpy(bytes + 24, &energy_units, sizeof(energy_units));
	tree_write_bytes(&f->tree, path, bytes, sizeof(bytes));
}

static void write_card(const struct fixture *f, const char *card, const char *pci, const struct file *files, size_t n)
{
	char path[256], text[256];
	snprintf(path, sizeof(path), "class/drm/%s/device/vendor", card);
	tree_write(&f->tree, path, "0x1002\n");
	snprintf(path, sizeof(path), "class/drm/%s/device/device", card);
	tree_write(&f->tree, path, "0x744c\n");
	snprintf(path, sizeof(path), "class/drm/%s/device/uevent", card);
	snprintf(text, sizeof(text), "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME=%s\n", pci);
	tree_write(&f->tree, path, text);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "class/drm/%s/device/%s", card, files[i].path);
		tree_write(&f->tree, path, files[i].text);
	}
}

static const struct file navi31[] = {
	{"hwmon/hwmon4/name", "amdgpu\n"},
	{"hwmon/hwmon4/power1_average", "25000000\n"},
	{"hwmon/hwmon4/power1_cap", "303000000\n"},
	{"hwmon/hwmon4/power1_cap_max", "348000000\n"},
	{"hwmon/hwmon4/temp1_input", "45000\n"},
	{"hwmon/hwmon4/temp2_input", "52000\n"},
	{"hwmon/hwmon4/temp3_label", "mem\n"},
	{"hwmon/hwmon4/temp3_input", "58000\n"},
	{"hwmon/hwmon4/freq1_input", "1500000000\n"},
	{"hwmon/hwmon4/freq2_input", "96000000\n"},
	{"gpu_busy_percent", "7\n"},
	{"mem_busy_percent", "2\n"},
	{"mem_info_vram_total", "25753026560\n"},
	{"mem_info_vram_used", "536870912\n"},
	{"unique_id", "7d3a5f2c9b8e1046\n"},
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){0};
	tree_make(&f->tree);
	f->env.sysfs_fd = open(f->tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->env.procfs_fd = -1;
	text_copy(f->env.sysfs, sizeof(f->env.sysfs), "/sys");
	f->env.rocm_smi = "/nonexistent/librocm_smi64.so";
}

static int fixture_try_open(struct fixture *f)
{
	f->state = calloc(1, sensor_amdgpu.state_size);
	assert_non_null(f->state);
	int r = gpu_roster_open(&f->roster, f->options.gpus, &f->error);
	f->options.roster = &f->roster;
	if (r == 0)
		r = sensor_amdgpu.open(f->state, &f->env, &f->options, &f->error);
	if (r == 0)
		r = gpu_roster_check(&f->roster, &f->error);
	f->domains = sensor_amdgpu.domains(f->state, &f->n);
	return r;
}

static void fixture_read(struct fixture *f, int64_t t_ms)
{
	const struct sensor_context context = {.t_ns = t_ms * NS_PER_MS};
	for (size_t i = 0; i < ARRAY_SIZE(f->rows); i++)
		for (size_t k = 0; k < DEVICE_COUNT; k++)
			f->rows[i][k] = VALUE_MISSING;
	sensor_amdgpu.read(f->state, &context, f->rows);
}

static void fixture_close(struct fixture *f)
{
	sensor_amdgpu.close(f->state);
	free(f->state);
	gpu_roster_close(&f->roster);
	close(f->env.sysfs_fd);
	tree_finish(&f->tree);
}

// The usual card, opened.
static void open_navi31(struct fixture *f)
{
	fixture_init(f);
	write_card(f, "card0", "0000:03:00.0", navi31, ARRAY_SIZE(navi31));
	write_metrics(f, CARD0 "gpu_metrics", 65536 * 1000, 25);
	assert_int_equal(fixture_try_open(f), 0);
	assert_int_equal(f->n, 1);
}

static void describes_a_card(void **state)
{
	struct fixture f;
	open_navi31(&f);
	const struct domain *d = &f.domains[0];
	assert_string_equal(d->name, "gpu-0");
	assert_int_equal(d->kind, DOMAIN_GPU);
	assert_string_equal(d->uuid, "GPU-7d3a5f2c9b8e1046");
	assert_string_equal(d->device, "AMD GPU 1002:744c at 0000:03:00.0");
	assert_string_equal(d->inside, "");
	assert_true(d->has_energy && d->readable && d->used);
	assert_int_equal(d->provenance, PROVENANCE_MEASURED);
	assert_int_equal(d->memory_total_bytes, 25753026560);
	assert_true(d->max_power_w > 417 && d->max_power_w < 418);
	fixture_close(&f);
}

static void reads_a_card(void **state)
{
	struct fixture f;
	open_navi31(&f);
	fixture_read(&f, 0);
	static const struct {
		enum device_metric metric;
		int64_t value;
	} expected[] = {
		{DEVICE_ENERGY_RAW, 1000000000},
		{DEVICE_POWER, 25000},
		{DEVICE_POWER_CAP, 303000},
		{DEVICE_UTILIZATION, 7},
		{DEVICE_MEMORY_UTILIZATION, 2},
		{DEVICE_MEMORY_USED, 536870912},
		{DEVICE_TEMPERATURE, 45},
		{DEVICE_MEMORY_TEMPERATURE, 58},
		{DEVICE_SM_CLOCK, 1500},
		{DEVICE_MEMORY_CLOCK, 96},
	};
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(f.rows[0][expected[i].metric], expected[i].value);
	write_metrics(&f, CARD0 "gpu_metrics", 65536 * 1003, 30);
	fixture_read(&f, 100);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 1003000000);
	fixture_close(&f);
}

static void takes_the_instant_where_there_is_no_mean(void **state)
{
	struct fixture f;
	static const struct file files[] = {{"hwmon/hwmon0/power1_input", "40000000\n"},
		{"hwmon/hwmon0/temp2_input", "60000\n"}};
	fixture_init(&f);
	write_card(&f, "card0", "0000:03:00.0", files, ARRAY_SIZE(files));
	assert_int_equal(fixture_try_open(&f), 0);
	fixture_read(&f, 0);
	assert_int_equal(f.rows[0][DEVICE_POWER], 40000);
	assert_int_equal(f.rows[0][DEVICE_TEMPERATURE], 60);
	assert_true(f.rows[0][DEVICE_ENERGY_RAW] == MISSING);
	assert_false(f.domains[0].has_energy);
	assert_int_equal(f.domains[0].provenance, PROVENANCE_DERIVED);
	fixture_close(&f);
}

// GPUs are numbered in PCI order, not by the kernel's card number; connectors, render nodes and other vendors' cards
// are skipped.
static void finds_cards_in_pci_order(void **state)
{
	struct fixture f;
	fixture_init(&f);
	write_card(&f, "card0", "0000:43:00.0", navi31, ARRAY_SIZE(navi31));
	write_card(&f, "card1", "0000:03:00.0", navi31, 2);
	tree_write(&f.tree, "class/drm/card0-HDMI-A-1/device/vendor", "0x1002\n");
	tree_write(&f.tree, "class/drm/renderD128/device/vendor", "0x1002\n");
	tree_write(&f.tree, "class/drm/card2/device/vendor", "0x8086\n");
	tree_write(&f.tree, "class/drm/card3/device/vendor", "0x1002\n");
	tree_write(&f.tree, "class/drm/card3/device/uevent", "DRIVER=vfio-pci\nPCI_SLOT_NAME=0000:04:00.0\n");
	tree_write(&f.tree, "class/drm/card4/device/vendor", "rubbish\n");
	assert_int_equal(fixture_try_open(&f), 0);
	assert_int_equal(f.n, 2);
	assert_non_null(strstr(f.domains[0].device, "0000:03:00.0"));
	assert_non_null(strstr(f.domains[1].device, "0000:43:00.0"));
	assert_string_equal(f.domains[1].name, "gpu-1");
	fixture_close(&f);
}

static void an_apu_lies_inside_its_package(void **state)
{
	struct fixture f;
	static const struct file files[] = {{"hwmon/hwmon0/power1_input", "12000000\n"}};
	fixture_init(&f);
	write_card(&f, "card0", "0000:0c:00.0", files, ARRAY_SIZE(files));
	unsigned char table[128];
	memset(table, 0xff, sizeof(table));
	memcpy(table, "\x80\x00\x02\x02", 4);
	tree_write_bytes(&f.tree, CARD0 "gpu_metrics", table, sizeof(table));
	assert_int_equal(fixture_try_open(&f), 0);
	assert_string_equal(f.domains[0].inside, "package-0");
	assert_false(f.domains[0].has_energy);
	fixture_close(&f);
}

static void a_sleeping_card_is_left_alone(void **state)
{
	struct fixture f;
	fixture_init(&f);
	write_card(&f, "card0", "0000:03:00.0", navi31, ARRAY_SIZE(navi31));
	write_metrics(&f, CARD0 "gpu_metrics", 65536, 25);
	tree_write(&f.tree, CARD0 "power/runtime_status", "suspended\n");
	assert_int_equal(fixture_try_open(&f), 0);
	assert_true(f.domains[0].used && f.domains[0].has_energy);
	fixture_read(&f, 0);
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		assert_true(f.rows[0][m] == MISSING);
	assert_non_null(strstr(f.domains[0].note, "suspended"));

	tree_write(&f.tree, CARD0 "power/runtime_status", "active\n");
	fixture_read(&f, 100);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 1000000);
	assert_string_equal(f.domains[0].note, "");
	fixture_close(&f);
}

static void write_navi31(const struct fixture *f, const char *card, const char *metrics, uint64_t energy_units)
{
	write_card(f, card, "0000:03:00.0", navi31, ARRAY_SIZE(navi31));
	write_metrics(f, metrics, energy_units, 25);
}

static void a_card_that_is_pulled_and_comes_back(void **state)
{
	struct fixture f;
	struct tree card;
	open_navi31(&f);
	fixture_read(&f, 0);
	snprintf(card.root, sizeof(card.root), "%.200s/class/drm/card0", f.tree.root);
	tree_finish(&card);
	for (int64_t t_ms = 100; t_ms < 3000; t_ms += 100) {
		fixture_read(&f, t_ms);
		for (size_t m = 0; m < DEVICE_COUNT; m++)
			assert_true(f.rows[0][m] == MISSING);
	}
	assert_non_null(strstr(f.domains[0].note, "removed"));
	write_navi31(&f, "card1", CARD1 "gpu_metrics", 65536 * 1010);
	fixture_read(&f, 4000); // starts a scan
	fixture_read(&f, 4100);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 1010000000);
	assert_int_equal(f.rows[0][DEVICE_POWER], 25000);
	assert_string_equal(f.domains[0].note, "");
	fixture_close(&f);
}

static void a_frozen_counter_is_not_believed(void **state)
{
	struct fixture f;
	fixture_init(&f);
	f.options.calibrate_ns = NS_PER_MS;
	write_card(&f, "card0", "0000:03:00.0", navi31, ARRAY_SIZE(navi31));
	write_metrics(&f, CARD0 "gpu_metrics", 65536, 25);
	assert_int_equal(fixture_try_open(&f), 0);
	assert_false(f.domains[0].has_energy);
	assert_int_equal(f.domains[0].provenance, PROVENANCE_DERIVED);
	assert_non_null(strstr(f.domains[0].note, "does not change"));
	fixture_read(&f, 0);
	assert_true(f.rows[0][DEVICE_ENERGY_RAW] == MISSING);
	assert_int_equal(f.rows[0][DEVICE_POWER], 25000);
	assert_non_null(strstr(f.domains[0].note, "does not change"));
	fixture_close(&f);
}

static void a_counter_that_stops_later(void **state)
{
	struct fixture f;
	open_navi31(&f);
	for (int64_t t_ms = 0; t_ms <= 3000; t_ms += 100)
		fixture_read(&f, t_ms);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW] / 1000000, 1075); // 25 W for 3 s
	assert_non_null(strstr(f.domains[0].note, "sometimes stops"));
	fixture_close(&f);
}

static const struct visible_row {
	const char *teaches, *rocr, *hip, *cuda, *gpus, *expected;
} visible_rows[] = {
	{"visible: no variable set", NULL, NULL, NULL, NULL, "111"},
	{"visible: HIP by number", NULL, "2,0", NULL, NULL, "101"},
	{"visible: HIP stops at the first invalid number", NULL, "1,7,0", NULL, NULL, "010"},
	{"visible: HIP -1", NULL, "-1", NULL, NULL, "000"},
	{"visible: an empty HIP variable counts as unset", NULL, "", NULL, NULL, "111"},
	{"visible: CUDA's variable is used if HIP's is unset", NULL, NULL, "1", NULL, "010"},
	{"visible: HIP's variable takes precedence over CUDA's", NULL, "0", "1", NULL, "100"},
	{"visible: ROCR selects first, HIP numbers the rest in its order", "2,1", "0", NULL, NULL, "001"},
	{"visible: ROCR by UUID", "GPU-bb,GPU-aa", NULL, NULL, NULL, "110"},
	{"visible: an empty ROCR variable hides all", "", NULL, NULL, NULL, "000"},
	{"visible: --gpus takes precedence over all variables", "", "0", "0", "1,GPU-cc", "011"},
};

static void check_visible(void **state)
{
	const struct visible_row *row = *state;
	static const struct file ids[] = {{"unique_id", "aa\n"}, {"unique_id", "bb\n"}, {"unique_id", "cc\n"}};
	struct fixture f;
	fixture_init(&f);
	write_card(&f, "card0", "0000:01:00.0", &ids[0], 1);
	write_card(&f, "card1", "0000:02:00.0", &ids[1], 1);
	write_card(&f, "card2", "0000:03:00.0", &ids[2], 1);
	f.options = (struct sensor_options){.rocr_visible_devices = row->rocr,
		.hip_visible_devices = row->hip,
		.cuda_visible_devices = row->cuda,
		.gpus = row->gpus};
	assert_int_equal(fixture_try_open(&f), 0);
	for (size_t i = 0; i < 3; i++) {
		bool wanted = row->expected[i] == '1';
		assert_int_equal(f.domains[i].used, wanted);
		assert_int_equal(f.domains[i].unwanted, !wanted);
		assert_int_equal(f.domains[i].why[0] == '\0', wanted);
	}
	fixture_close(&f);
}

static const struct garbage_row {
	const char *teaches, *path, *text;
	enum device_metric metric; // values that must be missing
} garbage_rows[] = {
	{"garbage: empty power file", "hwmon/hwmon4/power1_average", "", DEVICE_POWER},
	{"garbage: a word", "gpu_busy_percent", "N/A\n", DEVICE_UTILIZATION},
	{"garbage: more than 64 bits", "mem_info_vram_used", "99999999999999999999999\n", DEVICE_MEMORY_USED},
	{"garbage: empty table", "gpu_metrics", "", DEVICE_ENERGY_RAW},
	{"garbage: text in place of the table", "gpu_metrics", "what a table this is, is it not", DEVICE_ENERGY_RAW},
};

static void check_garbage(void **state)
{
	const struct garbage_row *row = *state;
	struct fixture f;
	char path[256];
	open_navi31(&f);
	tree_write(&f.tree, CARD0 "hwmon/hwmon4/power1_average", "25000000\n");
	snprintf(path, sizeof(path), CARD0 "%s", row->path);
	tree_write(&f.tree, path, row->text);
	fixture_read(&f, 100);
	if (row->metric == DEVICE_POWER || row->metric == DEVICE_UTILIZATION)
		assert_true(f.rows[0][row->metric] == 25000 ||
			f.rows[0][row->metric] == MISSING); // the table may contain values
	else
		assert_true(f.rows[0][row->metric] == MISSING);
	fixture_close(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "card: description", describes_a_card);
	ROWS_ADD_ONE(&tests, "card: readings", reads_a_card);
	ROWS_ADD_ONE(&tests, "no other source: power1_input and the junction temperature",
		takes_the_instant_where_there_is_no_mean);
	ROWS_ADD_ONE(&tests, "cards are numbered in PCI order", finds_cards_in_pci_order);
	ROWS_ADD_ONE(&tests, "APU: its power is that of the package", an_apu_lies_inside_its_package);
	ROWS_ADD_ONE(&tests, "suspended card: not read", a_sleeping_card_is_left_alone);
	ROWS_ADD_ONE(&tests, "card removed and returned under another name",
		a_card_that_is_pulled_and_comes_back);
	ROWS_ADD_ONE(&tests, "counter that never changes", a_frozen_counter_is_not_believed);
	ROWS_ADD_ONE(&tests, "counter that stops later", a_counter_that_stops_later);
	ROWS_ADD(&tests, visible_rows, check_visible);
	ROWS_ADD(&tests, garbage_rows, check_garbage);
	return rows_run(&tests, "amdgpu");
}
