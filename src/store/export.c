#include "store/export.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

static const struct text_format {
	const char *name;
	int (*write)(const struct run *run, struct export_out *out);
} text_formats[] = {
	{"csv", export_csv},
	{"jsonl", export_jsonl},
};

const char *export_formats(void)
{
	return "csv, jsonl, gpu_tracker";
}

static int export_text(const struct run *run, const struct text_format *format, const char *path, bool overwrite,
	struct wattle_error *reterr)
{
	struct export_out out;
	int r = export_out_open(&out, path, overwrite, reterr);
	if (r == 0 && format->write(run, &out) < 0)
		out.failed = -ENOMEM;
	if (r == 0)
		return export_out_close(&out, path, reterr);
	out.failed = r; // the file is not renamed into place
	export_out_close(&out, path, NULL);
	return r;
}

int export_run(const struct run *run, const char *format, const char *path, bool overwrite, struct wattle_error *reterr)
{
	for (size_t i = 0; i < ARRAY_SIZE(text_formats); i++)
		if (strcmp(format, text_formats[i].name) == 0)
			return export_text(run, &text_formats[i], path, overwrite, reterr);
	if (strcmp(format, "gpu_tracker") == 0)
		return export_gpu_tracker(run, path, overwrite, reterr);
	return error_set(reterr, -EINVAL, "unknown export format '%s'; valid are: %s", format, export_formats());
}
