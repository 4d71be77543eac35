#include "sensor/gpu_roster.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>

// Four equal GPUs, as in a server. The UUIDs of the second and the third are equal up to "GPU-bb".
static const char *const mig_of_1[] = {"MIG-55555555-0000", "MIG-66666666-0000"};
static const struct gpu_candidate server[] = {
	{.index = 0, .uuid = "GPU-aaaa1111", .speed = 100, .usable = true},
	{.index = 1, .uuid = "GPU-bbbb2222", .speed = 100, .usable = true, .mig_uuids = mig_of_1, .n_mig_uuids = 2},
	{.index = 2, .uuid = "GPU-bbcc3333", .speed = 100, .usable = true},
	{.index = 3, .uuid = "GPU-dddd4444", .speed = 100, .usable = true},
};
// A workstation: a small card for the display in the first slot, the fast one in the second, a broken one in the third.
static const struct gpu_candidate workstation[] = {
	{.index = 0, .uuid = "GPU-small", .speed = 10, .usable = true},
	{.index = 1, .uuid = "GPU-fast", .speed = 90, .usable = true},
	{.index = 2, .uuid = "", .speed = 0, .usable = false},
	{.index = 3, .uuid = "GPU-medium", .speed = 50, .usable = true},
};
// Unknown speeds.
static const struct gpu_candidate unknown_speeds[] = {
	{.index = 0, .uuid = "GPU-small", .usable = true},
	{.index = 1, .uuid = "GPU-fast", .usable = true},
};

// "101": the first and the third are selected.
static void assert_selected(const bool *selected, const char *expected)
{
	char text[8] = "";
	for (size_t i = 0; i < strlen(expected); i++)
		text[i] = selected[i] ? '1' : '0';
	assert_string_equal(text, expected);
}

static const struct visible_row {
	const char *teaches, *visible, *order, *expected;
	const struct gpu_candidate *candidates;
} visible_rows[] = {
	{"visible: not set shows all", NULL, NULL, "1111", server},
	{"visible: empty hides all", "", NULL, "0000", server},
	{"visible: -1 hides all", "-1", NULL, "0000", server},
	{"visible: Slurm's NoDevFiles hides all", "NoDevFiles", NULL, "0000", server},
	{"visible: none, void and other words hide all", "none", NULL, "0000", server},
	{"visible: one index", "2", NULL, "0010", server},
	{"visible: several, in any order", "3,0", NULL, "1001", server},
	{"visible: blanks around an index", " 1 , 2 ", NULL, "0110", server},
	{"visible: an unknown index hides the rest", "0,4,1", NULL, "1000", server},
	{"visible: a negative index hides the rest", "0,2,-1,1", NULL, "1010", server},
	{"visible: an empty entry hides the rest", "0,,1", NULL, "1000", server},
	{"visible: a comma at the end is ignored", "0,1,", NULL, "1100", server},
	{"visible: CUDA reads leading digits only", "1x,2abc", NULL, "0110", server},
	{"visible: a plus sign is part of a number", "+3", NULL, "0001", server},
	{"visible: a number that overflows", "99999999999999999999", NULL, "0000", server},
	{"visible: a GPU named twice hides all", "0,1,0", NULL, "0000", server},
	{"visible: a complete UUID", "GPU-dddd4444", NULL, "0001", server},
	{"visible: an abbreviated UUID", "GPU-a,GPU-bbc", NULL, "1010", server},
	{"visible: an ambiguous UUID hides itself and the rest", "GPU-a,GPU-bb,GPU-d", NULL, "1000",
		server},
	{"visible: an unknown UUID hides the rest", "GPU-d,GPU-ee,GPU-a", NULL, "0001", server},
	{"visible: a GPU named by two abbreviations counts as named twice", "GPU-aa,GPU-aaaa", NULL, "0000", server},
	{"visible: the first entry is a UUID, so all must be", "GPU-a,3", NULL, "1000", server},
	{"visible: the first entry is an index, so all must be", "3,GPU-a", NULL, "0001", server},
	{"visible: MIG instance: its GPU is measured", "MIG-55555555-0000", NULL, "0100", server},
	{"visible: two instances of one GPU are no repetition", "MIG-5,MIG-6", NULL, "0100", server},
	{"visible: MIG UUID of drivers before R470", "MIG-GPU-dddd4444/1/0", NULL, "0001", server},
	{"visible: unknown MIG instance", "MIG-77777777", NULL, "0000", server},
	{"visible: FASTEST_FIRST numbers the fastest first, in any slot", "0", NULL, "0100", workstation},
	{"visible: FASTEST_FIRST continues by speed", "1", "FASTEST_FIRST", "0001", workstation},
	{"visible: PCI_BUS_ID numbers by slot, without unusable GPUs", "2", "PCI_BUS_ID", "0001", workstation},
	{"visible: equal or unknown speeds are ordered by slot", "0", NULL, "10", unknown_speeds},
};

static void check_visible(void **state)
{
	const struct visible_row *row = *state;
	bool selected[4] = {true, false, true, false};
	gpu_select_visible(row->visible, row->order, row->candidates, strlen(row->expected), selected);
	assert_selected(selected, row->expected);
}

static const struct list_row {
	const char *teaches, *list;
	const char *expected; // selection, or NULL: refused
	const char *sentence; // part of the message
} list_rows[] = {
	{"--gpus: an index", "1", "0100", NULL},
	{"--gpus: indices and UUIDs mixed, repeated, with blanks", "0, GPU-dddd4444, 3,0", "1001", NULL},
	{"--gpus: an abbreviated UUID", "GPU-bbb", "0100", NULL},
	{"--gpus: MIG instance: its GPU is measured", "MIG-6", "0100", NULL},
	{"--gpus: MIG UUID of drivers before R470", "MIG-GPU-aaaa1111/7/0", "1000", NULL},
	{"--gpus: an unknown index is refused", "4", NULL,
		"--gpus 4: 4 matches no GPU of this machine; valid are: 0 (GPU-aaaa1111), 1 ("},
	{"--gpus: an unknown UUID after a valid one is refused", "0,GPU-zz", NULL,
		"GPU-zz matches no GPU of this machine"},
	{"--gpus: an ambiguous UUID is refused", "GPU-bb", NULL, "GPU-bb matches several GPUs"},
	{"--gpus: an empty list is refused", "", NULL, "empty entry"},
	{"--gpus: an empty entry is refused", "0,,1", NULL, "empty entry"},
	{"--gpus: a negative index is refused", "-1", NULL, "-1 matches no GPU"},
	{"--gpus: an index with trailing text is refused", "1x", NULL, "1x matches no GPU"},
};

static struct gpu_list server_list(const char *text)
{
	return (struct gpu_list){.text = text, .candidates = server, .n = ARRAY_SIZE(server), .absent = ""};
}

static void check_list(void **state)
{
	const struct list_row *row = *state;
	const struct gpu_list list = server_list(row->list);
	bool selected[4] = {true, true, true, true};
	struct wattle_error error = {0};
	int r = gpu_select_check_form(row->list, &error);
	if (r == 0)
		r = gpu_select_check(&list, &error);
	if (row->expected != NULL) {
		assert_int_equal(r, 0);
		gpu_select_claimed(row->list, server, ARRAY_SIZE(server), selected);
		assert_selected(selected, row->expected);
		return;
	}
	assert_int_equal(r, -EINVAL);
	assert_int_equal(error.code, -EINVAL);
	if (strstr(error.text, row->sentence) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", row->sentence, error.text);
}

static void no_gpu_at_all(void **state)
{
	const struct gpu_list list = {.text = "0", .absent = ""};
	struct wattle_error error = {0};
	bool selected[1] = {false};
	gpu_select_visible("0", NULL, NULL, 0, selected);
	assert_int_equal(gpu_select_check(&list, &error), -EINVAL);
	assert_non_null(strstr(error.text, "valid are: none"));
}

// A list of 10,000 bytes without a comma, and one of only commas.
static void endless_lists(void **state)
{
	static char text[10001];
	bool selected[4];
	const char fills[] = {'7', 'G', ','};
	for (size_t i = 0; i < sizeof(fills); i++) {
		memset(text, fills[i], sizeof(text) - 1);
		struct wattle_error error = {0};
		gpu_select_visible(text, NULL, server, ARRAY_SIZE(server), selected);
		assert_selected(selected, "0000");
		const struct gpu_list list = server_list(text);
		gpu_select_claimed(text, server, ARRAY_SIZE(server), selected);
		assert_selected(selected, "0000");
		assert_int_equal(gpu_select_check(&list, &error), -EINVAL);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, visible_rows, check_visible);
	ROWS_ADD(&tests, list_rows, check_list);
	ROWS_ADD_ONE(&tests, "machine without GPUs", no_gpu_at_all);
	ROWS_ADD_ONE(&tests, "text longer than any UUID", endless_lists);
	return rows_run(&tests, "gpu_select");
}
