#include "task/export_file.h"

#include "base/util.h"
#include "report/folded.h"
#include "store/export.h"
#include "store/export_out.h"
#include "store/run.h"
#include "task/export_aipowermeter.h"

#include <errno.h>

static void pass_on(void *data)
{
	export_out_more(data);
}

static int write_folded(const struct findings *findings, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr)
{
	enum folded_weight weight = choice->weight != NULL && strcmp(choice->weight, "time") == 0 ? FOLDED_TIME
												  : FOLDED_ENERGY;
	struct export_out out;
	if (findings->n_blocks == 0)
		return error_set(reterr, -ENODATA, "%s has no code blocks", run_path);
	if (weight == FOLDED_ENERGY && isnan(findings->outside_j))
		return error_set(reterr, -ENODATA, "%s has no energy; --weight time writes seconds", run_path);
	int r = export_out_open(&out, choice->path, choice->overwrite, reterr);
	if (r == 0) {
		folded_text(findings, weight, &out.text, pass_on, &out);
		return export_out_close(&out, choice->path, reterr);
	}
	out.failed = r; // nothing gets its name
	export_out_close(&out, choice->path, NULL);
	return r;
}

static int export_folded(const struct run *run, const struct export_choice *choice, const char *run_path,
	struct wattle_error *reterr)
{
	struct findings findings;
	if (findings_make(run, &findings) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", run_path);
	int r = write_folded(&findings, choice, run_path, reterr);
	findings_finish(&findings);
	return r;
}

static int check_weight(const struct export_choice *choice, bool is_folded, struct wattle_error *reterr)
{
	if (choice->weight == NULL)
		return 0;
	if (!is_folded)
		return error_set(reterr, -EINVAL, "a weight is for format folded alone");
	if (strcmp(choice->weight, "energy") != 0 && strcmp(choice->weight, "time") != 0)
		return error_set(reterr, -EINVAL, "no weight '%s'; there are: energy, time", choice->weight);
	return 0;
}

int export_file(const char *run_path, const struct export_choice *choice, struct wattle_error *reterr)
{
	bool is_folded = strcmp(choice->format, "folded") == 0;
	struct run run;
	int r = check_weight(choice, is_folded, reterr);
	if (r == 0)
		r = run_load(run_path, &run, reterr);
	if (r < 0)
		return r;
	if (is_folded)
		r = export_folded(&run, choice, run_path, reterr);
	else if (strcmp(choice->format, "aipowermeter") == 0)
		r = export_aipowermeter(&run, choice, run_path, reterr);
	else
		r = export_run(&run, choice->format, choice->path, choice->overwrite, reterr);
	run_finish(&run);
	return r;
}
