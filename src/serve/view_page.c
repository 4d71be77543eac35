/* The live page. The server renders all figures as HTML, with or without scripts in the browser. The script fetches the
 * changed parts and replaces the old ones, so only the server formats figures. */
#include "serve/view.h"

#include "base/util.h"
#include "report/html.h"
#include "report/page/page.h"

enum { TITLE_CEILING = 1 << 12, COLUMNS_CEILING = 1 << 24 };

// Chart data for the script: the columns from `first` on.
static void data(const struct view *view, const char *id, size_t first, struct buf *out)
{
	struct buf text;
	buf_init(&text, COLUMNS_CEILING);
	view_charts(view, first, &text);
	if (!text.failed)
		html_json(out, id, text.data, text.size);
	buf_finish(&text);
}

static void first_figures(const struct view *view, struct buf *out)
{
	buf_str(out, "<div id=\"first\">\n");
	page_heading(view, out);
	page_tiles(view, out);
	page_ledger(view, out);
	buf_str(out, "</div>\n");
}

static void other_figures(const struct view *view, struct buf *out)
{
	buf_str(out, "<div id=\"rest\">\n");
	page_domains(view, out);
	page_processes(view, out);
	page_about(view, out);
	buf_str(out, "</div>\n");
}

void view_figures(const struct view *view, struct buf *out)
{
	first_figures(view, out);
	other_figures(view, out);
	data(view, "newest", view->history->n > 0 ? view->history->n - 1 : 0, out);
}

static void begin(const struct view *view, struct buf *out)
{
	struct buf title;
	buf_init(&title, TITLE_CEILING);
	buf_printf(&title, "%s · wattle", view->host[0] != '\0' ? view->host : "this machine");
	page_begin(out, title.data, PAGE_SCRIPT_LIVE, true);
	buf_finish(&title);
}

void view_page(const struct view *view, struct buf *out)
{
	begin(view, out);
	// Without scripts, the browser reloads the whole page.
	buf_str(out, "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n");
	first_figures(view, out);
	buf_str(out, "<section id=\"charts\" class=\"live\" aria-label=\"Charts of the last minutes\"></section>\n");
	other_figures(view, out);
	data(view, "history", 0, out);
	page_end(out, PAGE_SCRIPT_LIVE);
}
