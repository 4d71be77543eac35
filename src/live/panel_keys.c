/* The key line and the help panel. */
#include "live/internal.h"

#include "base/util.h"

static void draw_filter(const struct canvas *canvas)
{
	struct line line = line_in(canvas->frame, canvas->area, 0);
	line_text(&line, pen_bold, "filter: ");
	line_text(&line, pen_plain, canvas->view->ui->filter);
	line_text(&line, pen_bold, "_");
	line_text(&line, pen_faint, "   Enter apply  Esc cancel");
}

void panel_keys(const struct canvas *canvas)
{
	const struct live_view *view = canvas->view;
	if (view->is_once)
		return;
	if (view->ui->editing) {
		draw_filter(canvas);
		return;
	}
	struct line line = line_in(canvas->frame, canvas->area, 0);
	for (size_t i = 0; i < n_live_keys; i++) {
		const struct live_key_row *key = &live_keys[i];
		bool is_useless = strcmp(key->keys, "a") == 0 && !view->ui->has_target;
		if (key->brief == NULL || is_useless)
			continue;
		int width = (int)strlen(key->keys) + 1 + (int)strlen(key->brief);
		bool is_help = i + 1 == n_live_keys;
		if (!is_help && line.x + width + 8 > line.end && i > 0) // leave room for the help key
			continue;
		line_text(&line, pen_bold, key->keys);
		line_printf(&line, pen_faint, " %s", key->brief);
		line_blank(&line, 2);
	}
}

static const char *const legend[] = {
	"",
	"Power of a process is its share: of a package by CPU time, of DRAM by resident",
	"memory, of a GPU by SM time, else by memory. `idle` belongs to no process.",
	"~ and hatched bars: estimated; solid bars: measured. J: since it was first seen",
	"here. GPU -: none, or its driver does not report it. CPU%: 100 is one core.",
};

void panel_help(const struct canvas *canvas)
{
	int row = 0;
	for (size_t i = 0; i < n_live_keys; i++, row++) {
		struct line line = line_in(canvas->frame, canvas->area, row);
		line_column(&line, pen_bold, live_keys[i].keys, 10, false);
		line_blank(&line, 1);
		line_text(&line, pen_plain, live_keys[i].does);
	}
	for (size_t i = 0; i < ARRAY_SIZE(legend); i++, row++) {
		struct line line = line_in(canvas->frame, canvas->area, row);
		line_text(&line, pen_faint, legend[i]);
	}
}
