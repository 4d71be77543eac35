/* MIG: the board has one energy counter; the target's part is a share of slices. */
#include "sensor/sensor.h"

#include "nvml_fixture.h"
#include "sensor/gpu/nvml.h"

#define MISSING VALUE_MISSING
#define THREE "mig MIG-a 1 0 3 42 20000000000 NVIDIA A100-SXM4-40GB MIG 3g.20gb\n"
#define TWO "mig MIG-b 5 0 2 28 10000000000 NVIDIA A100-SXM4-40GB MIG 2g.10gb\n"

// Shares in millionths; 100 and 200 belong to the target, 7 does not.
static const struct share_row {
	const char *teaches, *cards;
	int64_t target_ppm, others_ppm;
} share_rows[] = {
	{"share: three of seven slices, and two", THREE TWO "mig_process 0 100 C 0 500\nmig_process 1 7 C 0 500\n",
		428571, 285714},
	{"share: a free instance counts for no program", THREE TWO "mig_process 1 200 C 0 500\n", 285714, 0},
	{"share: no processes", THREE TWO, 0, 0},
	{"share: an instance used by both is divided by memory",
		THREE "mig_process 0 100 C 0 3000\nmig_process 0 7 C 0 1000\n", 321429, 107143},
	{"share: divided equally where memory is unknown",
		THREE "mig_process 0 100 C 0 unknown\nmig_process 0 200 C 0 5\nmig_process 0 7 C 0 5\n", 285714,
		142857},
	{"share: the target on two instances", THREE TWO "mig_process 0 100 C 0 1\nmig_process 1 200 C 0 1\n", 714286,
		0},
	{"share: four slices on an A30", "mig_max 4\n" TWO "mig_process 0 100 C 0 1\n", 500000, 0},
	{"share: without attributes by the name",
		"mig MIG-a 1 0 0 0 20000000000 NVIDIA A100-SXM4-40GB MIG 3g.20gb\nmig_process 0 100 C 0 1\n", 428571,
		0},
	{"share: without attributes and name, by memory",
		"memory_total_bytes 40000000000\nmemory_reserved_bytes 0\n"
		"mig MIG-a 1 0 0 0 10000000000\nmig_process 0 100 C 0 1\n",
		250000, 0},
	{"share: processes listed only by the instances",
		THREE TWO "mig_lists_by_part\nmig_process 0 100 C 0 500\nmig_process 1 7 C 0 500\n", 428571, 285714},
	{"share: instances of a disabled mode are ignored", THREE "mig_off\nprocess 100 C 0 1\n", MISSING, MISSING},
	{"share: board without instances", "process 100 C 0 1\n", MISSING, MISSING},
};

static void check_share(void **state)
{
	const struct share_row *row = *state;
	struct nvml_fixture f;
	char cards[1024];
	snprintf(cards, sizeof(cards), "gpu\n%s", row->cards);
	fixture_open(&f, MODERN, cards);
	fixture_read(&f, 0);
	assert_int_equal(f.rows[0][DEVICE_TARGET_MIG_SHARE], row->target_ppm);
	assert_int_equal(f.rows[0][DEVICE_OTHERS_MIG_SHARE], row->others_ppm);
	fixture_close(&f);
}

static const struct name_row {
	const char *teaches, *name;
	uint32_t slices;
} name_rows[] = {
	{"name: a GPU instance", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 3},
	{"name: a compute instance in a GPU instance", "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", 1},
	{"name: with media extensions", "NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", 1},
	{"name: a whole GPU", "NVIDIA A100-SXM4-40GB", 0},
	{"name: nonsense", "MIG x", 0},
	{"name: more instances than any board has", "MIG 99g.1gb", 0},
};

static void check_name(void **state)
{
	const struct name_row *row = *state;
	assert_int_equal(nvml_mig_slices_of_name(row->name), row->slices);
}

static void energy_is_the_boards(void **state)
{
	struct nvml_fixture f;
	fixture_open(&f, MODERN, "gpu\npower_mw constant 250000\n" THREE TWO "mig_process 0 100 C 0 500\n");
	assert_int_equal(f.n, 1);
	fixture_read(&f, 2000);
	assert_int_equal(f.rows[0][DEVICE_ENERGY_RAW], 500000000);
	assert_int_equal(f.rows[0][DEVICE_TARGET_MEMORY], 500);
	fixture_close(&f);
}

static void instances_are_described(void **state)
{
	struct nvml_fixture f;
	fixture_init(&f, MODERN, "gpu\ngpu\n" THREE TWO);
	f.options.describe_only = true;
	assert_int_equal(fixture_try_open(&f), 0);
	assert_int_equal(f.n, 4);
	const struct domain *domain = &f.domains[3];
	assert_string_equal(domain->name, "gpu-1-mig-1");
	assert_string_equal(domain->inside, "gpu-1");
	assert_string_equal(domain->uuid, "MIG-b");
	assert_string_equal(domain->why, "part of gpu-1: its energy is divided by SM slices, 2 of 7 here");
	assert_false(domain->readable || domain->used);
	assert_int_equal(domain->index, -1);
	fixture_read(&f, 0); // rows of instances stay empty
	assert_true(f.rows[3][DEVICE_ENERGY_RAW] == MISSING);
	fixture_close(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, share_rows, check_share);
	ROWS_ADD(&tests, name_rows, check_name);
	ROWS_ADD_ONE(&tests, "energy: reported once, for the board", energy_is_the_boards);
	ROWS_ADD_ONE(&tests, "instances: described as parts of their GPU", instances_are_described);
	return rows_run(&tests, "nvml_mig");
}
