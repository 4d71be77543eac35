#include "sensor/gpu_roster.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>

// A workstation with GPUs of two brands, as their sensors describe them: two of NVIDIA, then two of AMD.
static const char *const mig[] = {"MIG-77770000"};
static const struct gpu_candidate nvidia[] = {
	{.index = 0, .uuid = "GPU-aaaa1111", .usable = true},
	{.index = 1, .uuid = "GPU-bbbb2222", .usable = true, .mig_uuids = mig, .n_mig_uuids = 1},
};
static const struct gpu_candidate amd[] = {
	{.index = 2, .uuid = "GPU-aa553333", .usable = true},
	{.index = 3, .uuid = "", .usable = false},
};

static const struct row {
	const char *teaches, *list;
	const char *nvidia, *amd; // selection passed to each sensor: "10" is the first of its GPUs; NULL: refused
	const char *sentence;     // part of the message
} rows[] = {
	{"numbers continue from brand to brand", "1,2", "01", "10", NULL},
	{"unreadable GPU: may be selected", "3", "00", "01", NULL},
	{"UUIDs and abbreviated UUIDs", "GPU-bb,GPU-aa553333", "01", "10", NULL},
	{"abbreviation of one GPU among all brands", "GPU-aaa", "10", "00", NULL},
	{"abbreviation of GPUs of two brands: refused", "GPU-aa", NULL, NULL,
		"GPU-aa matches several GPUs; valid are: 0 (GPU-a"},
	{"MIG instance: its GPU is measured", "MIG-7777", "01", "00", NULL},
	{"number beyond the last: refused", "0,4", NULL, NULL,
		"--gpus 0,4: 4 matches no GPU of this machine; valid are: 0 (GPU-aaaa1111), 1 (GPU-bbbb2222), "
		"2 (GPU-aa553333), 3 (no UUID)"},
	{"empty entry in the list: refused", "0,,1", NULL, NULL, "empty entry"},
	{"empty list: refused", "", NULL, NULL, "empty entry"},
};

static void assert_told(const bool *selected, const char *expected)
{
	for (size_t i = 0; expected[i] != '\0'; i++)
		assert_int_equal(selected[i], expected[i] == '1');
}

static void ask(void **state)
{
	const struct row *row = *state;
	struct gpu_roster roster;
	struct wattle_error error = {0};
	bool of_nvidia[2] = {false}, of_amd[2] = {false};
	int r = gpu_roster_open(&roster, row->list, &error);
	assert_int_equal(gpu_roster_next(&roster), 0);
	assert_int_equal(gpu_roster_add(&roster, nvidia, 2, of_nvidia), 0);
	assert_int_equal(gpu_roster_next(&roster), 2);
	assert_int_equal(gpu_roster_add(&roster, amd, 2, of_amd), 0);
	assert_int_equal(gpu_roster_next(&roster), 4);
	if (r == 0)
		r = gpu_roster_check(&roster, &error);
	gpu_roster_close(&roster);
	if (row->nvidia != NULL) {
		assert_int_equal(r, 0);
		assert_told(of_nvidia, row->nvidia);
		assert_told(of_amd, row->amd);
		return;
	}
	assert_int_equal(r, -EINVAL);
	if (strstr(error.text, row->sentence) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", row->sentence, error.text);
}

static void without_a_list(void **state)
{
	struct gpu_roster roster;
	bool by_environment[2] = {true, false};
	assert_int_equal(gpu_roster_open(&roster, NULL, NULL), 0);
	assert_int_equal(gpu_roster_add(&roster, nvidia, 2, by_environment), 0);
	assert_told(by_environment, "10");
	assert_int_equal(gpu_roster_check(&roster, NULL), 0);
	gpu_roster_close(&roster);
}

// The texts of a sensor may be freed before the list of GPUs is used.
static void texts_are_copied(void **state)
{
	struct gpu_roster roster;
	struct wattle_error error = {0};
	char uuid[] = "GPU-1234";
	const struct gpu_candidate gpu = {.uuid = uuid};
	bool selected;
	assert_int_equal(gpu_roster_open(&roster, "GPU-9", &error), 0);
	assert_int_equal(gpu_roster_add(&roster, &gpu, 1, &selected), 0);
	memset(uuid, 'x', strlen(uuid));
	assert_int_equal(gpu_roster_check(&roster, &error), -EINVAL);
	assert_non_null(strstr(error.text, "valid are: 0 (GPU-1234)"));
	gpu_roster_close(&roster);
}

static void a_driver_that_fails(void **state)
{
	struct gpu_roster roster;
	struct wattle_error error = {0};
	bool selected[2];
	assert_int_equal(gpu_roster_open(&roster, "0", &error), 0);
	gpu_roster_explain(&roster, "NVIDIA", "the driver is not loaded");
	assert_int_equal(gpu_roster_check(&roster, &error), -EINVAL);
	assert_string_equal(error.text, "--gpus 0: no NVIDIA GPU can be used: the driver is not loaded");
	assert_int_equal(gpu_roster_add(&roster, amd, 1, selected), 0); // number 2, so 0 is still unassigned
	assert_int_equal(gpu_roster_check(&roster, &error), -EINVAL);
	assert_string_equal(error.text,
		"--gpus 0: 0 matches no GPU of this machine; valid are: 2 (GPU-aa553333); "
		"no NVIDIA GPU can be used: the driver is not loaded");
	gpu_roster_close(&roster);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, ask);
	ROWS_ADD_ONE(&tests, "no --gpus: every sensor uses its own variables", without_a_list);
	ROWS_ADD_ONE(&tests, "texts are copied", texts_are_copied);
	ROWS_ADD_ONE(&tests, "failing driver: named in the message", a_driver_that_fails);
	return rows_run(&tests, "gpu_roster");
}
