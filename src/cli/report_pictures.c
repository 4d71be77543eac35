#include "cli/report_pictures.h"

#include "base/util.h"
#include "cli/command.h"
#include "report/picture/picture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static int fail(const char *path, int error)
{
	fprintf(stderr, "wattle: can't write pictures into %s: %s\n", path, strerror(error));
	return EXIT_FAILED;
}

static int make_folder(const char *path)
{
	struct stat status;
	if (mkdir(path, 0777) == 0)
		return EXIT_DONE;
	int error = errno;
	if (error != EEXIST)
		return fail(path, error);
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? EXIT_DONE : fail(path, ENOTDIR);
}

static int write_picture(const struct charts *charts, enum picture_kind kind, const char *folder)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/%s.svg", folder, picture_name(kind));
	if (length < 0 || (size_t)length >= sizeof(path))
		return fail(folder, ENAMETOOLONG);
	struct buf out = cli_buf();
	picture_svg(charts, kind, &(struct picture_look){.is_file = true}, &out);
	int status = out.failed == 0 ? cli_write(&out, path) : fail(path, -out.failed);
	buf_finish(&out);
	return status;
}

int report_pictures(const struct charts *charts, const char *folder)
{
	size_t n = 0;
	if (make_folder(folder) != EXIT_DONE)
		return EXIT_FAILED;
	for (enum picture_kind kind = 0; kind < PICTURE_KINDS; kind++) {
		if (!picture_has(charts, kind))
			continue;
		if (write_picture(charts, kind, folder) != EXIT_DONE)
			return EXIT_FAILED;
		fprintf(stderr, "%s%s.svg", n++ > 0 ? ", " : "wattle: pictures: ", picture_name(kind));
	}
	if (n > 0)
		fprintf(stderr, " in %s\n", folder);
	else
		fprintf(stderr, "wattle: no picture: the run is too short or too empty to show anything\n");
	return EXIT_DONE;
}
