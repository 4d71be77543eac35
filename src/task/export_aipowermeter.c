#include "task/task.h"

#include "base/util.h"
#include "report/aipowermeter.h"
#include "store/export.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum file { METADATA, POWER, RESULTS, MODEL, WALL, FILES };
static const char *const names[FILES] = {"metadata.json", "power_metrics.json", "results_exp.json",
	"model_summary.json", "omegawatt.csv"};

struct folder {
	const char *path;
	bool made; // created by this export
	char paths[FILES][OUTPUT_FILE_PATH_SIZE];
	struct export_out outs[FILES];
	bool open[FILES];
};

/* ---- the folder ---- */

static bool is_empty(DIR *dir)
{
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return false;
	return true;
}

static int open_folder(struct folder *folder, bool overwrite, struct wattle_error *reterr)
{
	if (strcmp(folder->path, "-") == 0)
		return error_set(reterr, -EINVAL, "format aipowermeter writes several files: give a folder with -o");
	if (mkdir(folder->path, 0777) == 0) {
		folder->made = true;
		return 0;
	}
	if (errno != EEXIST)
		return error_set(reterr, -errno, "%s: %s", folder->path, strerror(errno));
	DIR *dir = opendir(folder->path);
	if (dir == NULL)
		return error_set(reterr, -errno, "%s: %s", folder->path, strerror(errno));
	bool free = overwrite || is_empty(dir);
	closedir(dir);
	return free ? 0 : error_set(reterr, -EEXIST, "%s exists and is not empty: choose another name", folder->path);
}

static int open_files(struct folder *folder, const bool *wanted, struct wattle_error *reterr)
{
	for (size_t i = 0; i < FILES; i++) {
		int length = snprintf(folder->paths[i], sizeof(folder->paths[i]), "%s/%s", folder->path, names[i]);
		if (length >= (int)sizeof(folder->paths[i]))
			return error_set(reterr, -ENAMETOOLONG, "%s: %s", folder->path, strerror(ENAMETOOLONG));
		if (!wanted[i])
			continue;
		folder->open[i] = true;
		int r = export_out_open(&folder->outs[i], folder->paths[i], true, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

// Renames all files into place, or none if an earlier step failed; removes files that only an earlier export wrote.
static int close_files(struct folder *folder, int r, struct wattle_error *reterr)
{
	for (size_t i = 0; i < FILES; i++) {
		if (!folder->open[i]) {
			if (r == 0)
				unlink(folder->paths[i]);
			continue;
		}
		if (r < 0)
			folder->outs[i].failed = r;
		int closed = export_out_close(&folder->outs[i], folder->paths[i], r < 0 ? NULL : reterr);
		r = r < 0 ? r : closed;
	}
	if (r < 0 && folder->made)
		rmdir(folder->path); // succeeds only if empty
	return r;
}

/* ---- contents ---- */

static void pass_on(void *data)
{
	export_out_more(data);
}

static void write_files(struct folder *folder, const struct aipowermeter *a)
{
	struct export_out *outs = folder->outs;
	aipowermeter_metadata(a, &outs[METADATA].text);
	aipowermeter_power(a, &outs[POWER].text, pass_on, &outs[POWER]);
	if (folder->open[RESULTS])
		aipowermeter_results(a, &outs[RESULTS].text);
	if (folder->open[MODEL])
		buf_printf(&outs[MODEL].text, "%s\n", aipowermeter_model(a));
	if (folder->open[WALL])
		aipowermeter_wall(a, &outs[WALL].text, pass_on, &outs[WALL]);
}

static int check_model(const struct aipowermeter *a, const char *run_path, struct wattle_error *reterr)
{
	const char *text = aipowermeter_model(a);
	if (text == NULL)
		return 0;
	json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	bool fits = json_is_object(document);
	json_decref(document);
	return fits ? 0 : error_set(reterr, -EINVAL, "%s: its model_summary is not a JSON object", run_path);
}

static int write_folder(const struct aipowermeter *a, const struct export_choice *choice, struct wattle_error *reterr)
{
	const bool wanted[FILES] = {
		[METADATA] = true,
		[POWER] = true,
		[RESULTS] = aipowermeter_has_results(a),
		[MODEL] = aipowermeter_model(a) != NULL,
		[WALL] = aipowermeter_has_wall(a),
	};
	struct folder *folder = calloc(1, sizeof(*folder));
	if (folder == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", choice->path);
	folder->path = choice->path;
	int r = open_folder(folder, choice->overwrite, reterr);
	if (r == 0) {
		r = open_files(folder, wanted, reterr);
		if (r == 0)
			write_files(folder, a);
		r = close_files(folder, r, reterr);
	}
	free(folder);
	return r;
}

int export_aipowermeter(const struct run *run, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr)
{
	struct arena *arena = arena_new();
	const struct aipowermeter *a = arena != NULL ? aipowermeter_new(run, arena) : NULL;
	int r = 0;
	if (a == NULL)
		r = error_set(reterr, -ENOMEM, "%s: out of memory", run_path);
	else if (!aipowermeter_has_rows(a))
		r = error_set(reterr, -ENODATA, "%s has no samples", run_path);
	if (r == 0)
		r = check_model(a, run_path, reterr);
	if (r == 0)
		r = write_folder(a, choice, reterr);
	arena_free(arena);
	return r;
}
