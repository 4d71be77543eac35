#include "store/export.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_SIZE = 65536, CEILING = 1 << 26 };

static bool is_special(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int export_check_free(const char *path, bool overwrite, struct wattle_error *reterr)
{
	struct stat st;
	if (overwrite || stat(path, &st) != 0 || is_special(path))
		return 0;
	return error_set(reterr, -EEXIST, "%s exists: choose another name", path);
}

int export_out_open(struct export_out *out, const char *path, bool overwrite, struct wattle_error *reterr)
{
	*out = (struct export_out){.fd = -1, .output.fd = -1};
	buf_init(&out->text, CEILING);
	if (strcmp(path, "-") == 0) {
		out->fd = STDOUT_FILENO;
		return 0;
	}
	int r = export_check_free(path, overwrite, reterr);
	if (r < 0)
		return r;
	if (is_special(path)) {
		out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		out->owned = true;
		return out->fd < 0 ? error_set(reterr, -errno, "%s: %s", path, strerror(errno)) : 0;
	}
	r = output_file_open(&out->output, &(struct store_open_options){.path = path, .overwrite = true}, "export",
		reterr);
	out->fd = out->output.fd;
	return r;
}

static void flush(struct export_out *out)
{
	if (out->failed == 0)
		out->failed = out->text.failed != 0 ? out->text.failed : buf_write_fd(&out->text, out->fd);
	buf_clear(&out->text);
}

void export_out_more(struct export_out *out)
{
	if (out->text.size >= PIECE_SIZE || out->text.failed != 0)
		flush(out);
}

int export_out_close(struct export_out *out, const char *path, struct wattle_error *reterr)
{
	flush(out);
	int r = out->failed;
	if (r < 0)
		error_set(reterr, r, "%s: %s", strcmp(path, "-") == 0 ? "stdout" : path, strerror(-r));
	if (r == 0 && out->output.fd >= 0)
		r = output_file_publish(&out->output, reterr);
	output_file_close(&out->output, false);
	if (out->owned && out->fd >= 0)
		close(out->fd);
	buf_finish(&out->text);
	return r;
}
