#include "spank/spank.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>

static const struct site {
	const char *teaches, *argument;
	bool good;
} site[] = {
	{"default: measured", "default=on", true},
	{"site's interval", "default=1s", true},
	{"unknown word: refused", "default=often", false},
	{"a folder", "folder=/scratch/%j", true},
	{"empty folder: refused", "folder=", false},
	{"a duration", "wait=30s", true},
	{"duration without its unit: refused", "wait=30", false},
	{"negative duration: refused", "ready=-1s", false},
	{"yes or no: accepted", "comment=no", true},
	{"neither yes nor no: refused", "comment=maybe", false},
	{"unknown setting: refused", "colour=red", false},
	{"no value", "default", false},
	{"no key", "=on", false},
};

static void check_site(void **state)
{
	const struct site *row = *state;
	struct settings settings;
	struct wattle_error error = {0};
	settings_init(&settings, "/usr/bin/wattle");
	int r = settings_take_site(&settings, row->argument, &error);
	assert_int_equal(r, row->good ? 0 : -EINVAL);
	assert_int_equal(error.text[0] != '\0', !row->good);
}

static const struct user {
	const char *teaches, *site, *value;
	bool good, wanted;
	const char *interval;
} user[] = {
	{"--wattle alone", NULL, NULL, true, true, "100ms"},
	{"--wattle of sbatch, as Slurm passes it on to srun", NULL, "(null)", true, true, "100ms"},
	{"--wattle of sbatch, as Slurm passes it on to the script", NULL, "", true, true, "100ms"},
	{"an interval", NULL, "1s", true, true, "1s"},
	{"no interval from the user: the site's is used", "default=2s", NULL, true, true, "2s"},
	{"user's interval overrides the site's", "default=2s", "20ms", true, true, "20ms"},
	{"off", "default=on", "off", true, false, "100ms"},
	{"too often", NULL, "1us", false, false, "100ms"},
	{"too seldom", NULL, "2h", false, false, "100ms"},
	{"interval without a unit: refused, nothing changes", "default=off", "50", false, false, "100ms"},
};

static void check_user(void **state)
{
	const struct user *row = *state;
	struct settings settings;
	struct wattle_error error = {0};
	settings_init(&settings, "/usr/bin/wattle");
	if (row->site != NULL)
		assert_int_equal(settings_take_site(&settings, row->site, &error), 0);
	int r = settings_take_user(&settings, SETTINGS_INTERVAL, row->value, &error);
	assert_int_equal(r, row->good ? 0 : -EINVAL);
	assert_int_equal(settings.wanted, row->wanted);
	assert_string_equal(settings.interval, row->interval);
}

static void check_words(void **state)
{
	struct settings settings;
	struct wattle_error error = {0};
	settings_init(&settings, "/usr/bin/wattle");
	assert_int_equal(settings_take_site(&settings, "option=--per-process", &error), 0);
	assert_int_equal(settings_take_site(&settings, "option=--budget=0", &error), 0);
	assert_string_equal(settings.site_words, " --per-process --budget=0");
	for (int i = 0; i < 2; i++) // Slurm reports it twice
		assert_int_equal(settings_take_user(&settings, SETTINGS_WORDS, "--label x", &error), 0);
	assert_string_equal(settings.user_words, " --label x");
}

static const struct folder {
	const char *teaches, *folder, *becomes; // NULL: refused
} folders[] = {
	{"default file name", "wattle-%j", "wattle-42_7"},
	{"file name with a path, the job twice, a percent sign", "/a/%j/%%/%j", "/a/42_7/%/42_7"},
	{"ranks in one folder", "wattle-%r", NULL},
	{"percent sign at the end", "wattle-%", NULL},
};

static void check_folder(void **state)
{
	const struct folder *row = *state;
	struct settings settings;
	struct wattle_error error = {0};
	char folder[64] = "";
	settings_init(&settings, "/usr/bin/wattle");
	text_copy(settings.folder, sizeof(settings.folder), row->folder);
	int r = settings_folder(&settings, "42_7", folder, sizeof(folder), &error);
	assert_int_equal(r, row->becomes != NULL ? 0 : -EINVAL);
	if (row->becomes != NULL)
		assert_string_equal(folder, row->becomes);
}

static void check_long_folder(void **state)
{
	struct settings settings;
	struct wattle_error error = {0};
	char folder[8];
	settings_init(&settings, "/usr/bin/wattle");
	assert_int_equal(settings_folder(&settings, "42", folder, sizeof(folder), &error), -EINVAL);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, site, check_site);
	ROWS_ADD(&tests, user, check_user);
	ROWS_ADD_ONE(&tests, "additional options: the site's and the user's", check_words);
	ROWS_ADD(&tests, folders, check_folder);
	ROWS_ADD_ONE(&tests, "folder name too long: refused, not truncated", check_long_folder);
	return rows_run(&tests, "settings");
}
